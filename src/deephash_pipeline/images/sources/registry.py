"""Where raw images come from: a kind of source is one module, and one line in the table here."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import faults_in_one_line
from deephash_pipeline.common.registry import Registry
from deephash_pipeline.images.sources.source import ImageSource

SOURCES: Registry[type[ImageSource]] = Registry(
    {
        "digits": ".digits:DigitsSource",
        "folder": ".folder:FolderSource",
        "csv": ".table:CsvSource",
        "list": ".label_list:ListSource",
        "torchvision": ".torchvision_sets:TorchvisionSource",
    },
    __package__,
)


def parse_source(parameters: dict[str, Any]) -> ImageSource:
    """Turn the parameters of a source, as they stand in the configuration, into the model that their `kind` names.

    Raises:
        InputError: one line with every wrong parameter.

    Example:
        >>> parse_source({"kind": "folder", "image_size": 32, "channels": 3}).splits
        {'training': 'train', 'query': 'test'}
    """
    if not isinstance(parameters, Mapping):
        raise InputError(f"the image source is {parameters!r}: give a group with `kind`, one of {', '.join(SOURCES)}.")
    kind = str(parameters.get("kind"))
    if kind not in SOURCES:
        raise InputError(f"the image source has the kind {kind!r}: set `kind` to one of {', '.join(SOURCES)}.")
    try:
        return SOURCES[kind].model_validate(parameters)
    except ValidationError as error:
        raise InputError(f"image source `{kind}`: {faults_in_one_line(error)}") from error
