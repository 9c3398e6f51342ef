"""Hashers by the names that commands take: a file, one that comes with the package, or a cell of a run."""

from pathlib import Path
from typing import TYPE_CHECKING

from deephash_pipeline.cli.with_kedro import configure_kedro
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher

PRETRAINED = "pretrained:"
HASHER_HELP = "A .safetensors file, pretrained:NAME, or a cell as mnist/deephash.b48."


def is_cell(hasher: str) -> bool:
    """Say whether a name is that of a cell of a run, such as ``mnist/deephash.b48``."""
    benchmark, _, cell = hasher.partition("/")
    return bool(benchmark and cell) and not hasher.endswith(".safetensors") and not Path(hasher).exists()


def named_hasher(name: str, device: str = "auto") -> "ImageHasher":
    """Load the hasher of a name.

    Raises:
        InputError: there is none.
    """
    if not (name.startswith(PRETRAINED) or is_cell(name) or Path(name).exists() or name.endswith(".safetensors")):
        raise InputError(f"no hasher `{name}`: give a .safetensors file, pretrained:digits-48, or mnist/deephash.b48")
    from deephash_pipeline.deephash import ImageHasher  # noqa: PLC0415 - PyTorch takes seconds

    if name.startswith(PRETRAINED):
        return ImageHasher.pretrained(name.removeprefix(PRETRAINED), device)
    if is_cell(name):
        benchmark, _, cell = name.partition("/")
        configure_kedro()
        hasher: ImageHasher = required("deephash_pipeline.cli.project", "pipeline").hasher_of_run(benchmark, cell)
        return hasher.to(device)
    return ImageHasher.load(name, device)
