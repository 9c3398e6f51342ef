"""Numbers of which YAML makes others."""

import re

import yaml  # type: ignore[import-untyped]

from deephash_pipeline.common.errors import InputError

ANOTHER_NUMBER = re.compile(r"[-+]?(0[0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
"""Plain scalars of which YAML 1.1 makes another number: octal and sexagesimal ones."""


def refuse_other_numbers(text: str, where: str) -> None:
    """Refuse plain numbers that YAML takes for others.

    Raises:
        InputError: one begins with 0, which is octal, or has colons, which are sixties; or a line is no YAML.

    Example:
        >>> refuse_other_numbers("rates: [0.5, 10, '042']", "parameters.yml")
        >>> refuse_other_numbers("seed: 042", "parameters.yml")
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: parameters.yml: `042` would be read as 34: write ...
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        scalars = [event for event in yaml.parse(text, loader) if isinstance(event, yaml.ScalarEvent)]
    except yaml.YAMLError as error:
        raise InputError(f"{where}: that is no YAML: close quotes and brackets, or put all of it in quotes") from error
    for scalar in scalars:
        if not scalar.style and ANOTHER_NUMBER.fullmatch(scalar.value):
            raise InputError(
                f"{where}: `{scalar.value}` would be read as {yaml.safe_load(scalar.value)}: write the number without "
                "leading zeros and colons, or text in quotes"
            )
