"""Files that show the same picture, found and grouped, with a proposal of which to keep; nothing is deleted."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deephash_pipeline.photographs.duplicates.finding import Duplicates, find_duplicates

__all__ = ["Duplicates", "find_duplicates"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # It loads what compares, which who shows a page or a level can do without.
    from deephash_pipeline.photographs.duplicates import finding  # noqa: PLC0415

    return getattr(finding, name)
