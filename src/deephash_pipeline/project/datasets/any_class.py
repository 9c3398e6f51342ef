"""Files that a class of ``kedro_datasets`` reads and writes."""

from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from textwrap import wrap
from typing import Any

from kedro.io import AbstractDataset
from kedro.io.core import parse_dataset_definition

from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset

SMALL_LETTERS = 8
HEADING_WIDTH = 12


class AtomicDataset(AtomicFileDataset[Any]):
    """Reads and writes with any class of ``kedro_datasets`` that keeps its data in one file, atomically.

    Kedro-Viz shows the preview of that class, if it has one.

    Args:
        filepath: where the file lies, relative to the project.
        dataset: entry of that class as in a catalog, without ``filepath``.
        metadata: metadata for Kedro-Viz (``layer``, ``preview_args``).

    Raises:
        DatasetError: there is no such class, or it does not take these arguments.

    Example:
        >>> import pandas as pd, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> table = AtomicDataset(f"{folder.name}/table.csv", dataset={"type": "pandas.CSVDataset"})
        >>> table.save(pd.DataFrame({"method": ["itq"], "12": [0.5]}))
        >>> table.load().to_dict("records")
        [{'method': 'itq', '12': 0.5}]
    """

    def __init__(self, filepath: str, dataset: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        super().__init__(filepath, metadata)
        self.form = dataset
        delegate = self._delegate(self.filepath)
        if hasattr(delegate, "preview"):
            # Kedro-Viz chooses how to draw by the annotation of the delegate's method, which `wraps` passes on.
            is_figure = "plotly" in type(delegate).__module__
            self.preview = _small(delegate.preview) if is_figure else delegate.preview

    def _read(self, path: Path) -> Any:
        return self._delegate(path).load()

    def _write(self, path: Path, content: Any) -> None:
        self._delegate(path).save(content)

    def _delegate(self, path: Path) -> Any:
        found = {**self.form, "type": _class_named(self.form["type"]), "filepath": str(path)}
        return AbstractDataset.from_config(path.name, found)

    def _describe(self) -> dict[str, Any]:
        return {**super()._describe(), "dataset": self.form["type"]}


def _small(preview: Callable[..., Any]) -> Callable[..., Any]:
    """Preview of a figure in three hundred pixels: letters and ticks of all panels so small that none overlap."""

    @wraps(preview)
    def small(*arguments: Any, **options: Any) -> Any:
        figure = preview(*arguments, **options)
        for name, part in figure["layout"].items():
            if name.startswith(("xaxis", "yaxis")):
                part |= {"tickfont": {"size": SMALL_LETTERS}, "nticks": 3}
                part["title"] = {**part.get("title", {}), "font": {"size": SMALL_LETTERS}}
        for heading in figure["layout"].get("annotations", ()):
            heading["text"] = "<br>".join(wrap(heading.get("text", ""), HEADING_WIDTH))
            heading["font"] = {"size": SMALL_LETTERS}
        return figure

    return small


@cache
def _class_named(name: str | type) -> type:
    """Find the class that a catalog names; Kedro tries three modules for it, which takes milliseconds."""
    found: type = parse_dataset_definition({"type": name})[0]
    return found
