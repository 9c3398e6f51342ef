"""Which of several seeds a run has: ``--params=replicate=2`` names the second, whose files lie in folders ``r2``.

The first seed is that of the experiment and has no folder. All seeds have the same images, in the same splits.
"""

import re
from collections.abc import Mapping
from typing import Any

from deephash_pipeline.common.cell import replicate_name
from deephash_pipeline.common.errors import InputError

REPLICATE = "replicate"
"""Parameter of a run: the number of its seed, 1 where none is given."""
SEED_FOLDER = "seed_folder"
"""Global that stands in paths of the catalog before what depends on the seed."""
NUMBER_OF_SEED = re.compile(rf"cells\..*\.{REPLICATE}")
"""Names of parameters that say which of several seeds a cell has."""
LARGEST_REPLICATE = 10**6
EXAMPLE = f"give it to the run, --params={REPLICATE}=2 for the second seed"


def replicate_of(run_parameters: Mapping[str, Any]) -> int:
    """Give the number of the seed of a run.

    Raises:
        InputError: it is no number from 1 to a million.

    Example:
        >>> replicate_of({}), replicate_of({"replicate": 3})
        (1, 3)
    """
    given = run_parameters.get(REPLICATE, 1)
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= LARGEST_REPLICATE:
        raise InputError(f"`{REPLICATE}` is {given!r}: seeds are numbered from 1, {EXAMPLE}")
    return given


def require_replicate(parameters: Mapping[str, Any], replicate: int) -> None:
    """Refuse a file that numbers the seed: the paths of the catalog would be those of another.

    Raises:
        InputError: one does.
    """
    if parameters.get(REPLICATE, replicate) != replicate:
        raise InputError(f"`{REPLICATE}: {parameters[REPLICATE]}` stands in a file of parameters: {EXAMPLE}")


def seed_folder(replicate: int) -> str:
    """Give what stands in paths before the files of a seed.

    >>> seed_folder(1), seed_folder(2)
    ('', 'r2/')
    """
    return "" if replicate == 1 else f"{replicate_name(replicate)}/"


def of_any_seed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give parameters without the number of the seed, by names: the first seed's in the place of any.

    >>> of_any_seed({"cells.itq.b48.replicate": 3, "cells.itq.b48.code_length": 48})
    {'cells.itq.b48.replicate': 1, 'cells.itq.b48.code_length': 48}
    """
    return {name: 1 if NUMBER_OF_SEED.fullmatch(name) else value for name, value in parameters.items()}
