"""An index as `search` and `serve` name it: a folder, with its codes there or in another engine."""

from pathlib import Path
from typing import NamedTuple

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.search.images import ImageIndex
from deephash_pipeline.search.images.stored import Runtime
from deephash_pipeline.search.replacing import holds_vectors


class OtherEngine(NamedTuple):
    """Where codes are searched, if not in the index.

    Attributes:
        url: of `--engine`; None for the index itself.
        approximate: whether near images may be missing.
    """

    url: str | None
    approximate: bool


def opened(
    folder: Path, device: str, engine: OtherEngine, read_only: bool = True, runtime: Runtime = "torch"
) -> ImageIndex:
    """Open an index, or its hasher with codes in another engine."""
    if engine.url is None:
        if engine.approximate:
            raise InputError("--approximate is for --engine postgresql://...: this index answers exactly")
        return ImageIndex.open(folder, read_only, device, runtime)
    if not folder.is_dir():
        raise InputError(f"there is no index {folder}: name the one whose hasher made the codes")
    if holds_vectors(folder):
        raise InputError(f"{folder} has vectors: --engine is for images")
    # A service without another engine needs none of their clients.
    from deephash_pipeline.search.engines import default_name, open_engine  # noqa: PLC0415

    return ImageIndex.open(
        folder, True, device, runtime, open_engine(engine.url, default_name(folder), engine.approximate)
    )
