"""Tables, figures and pages, with the previews that Kedro-Viz shows."""

import base64
import json
from pathlib import Path
from typing import Any, NewType

import pandas as pd
import plotly.io
from PIL import Image
from plotly.graph_objects import Figure

from deephash_pipeline.datasets.atomic_file import AtomicFileDataset

# Kedro-Viz chooses how to preview by the name of the annotation of `preview`.
TablePreview = NewType("TablePreview", dict)  # type: ignore[type-arg]
PlotlyPreview = NewType("PlotlyPreview", dict)  # type: ignore[type-arg]
JSONPreview = NewType("JSONPreview", str)
ImagePreview = NewType("ImagePreview", str)

PREVIEW_ROWS = 50


class JSONDataset(AtomicFileDataset[Any]):
    """A JSON document, indented and sorted so that two runs can be compared line by line."""

    def _read(self, path: Path) -> Any:
        return json.loads(path.read_text(encoding="utf-8"))

    def _write(self, path: Path, content: Any) -> None:
        path.write_text(json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")

    def preview(self) -> JSONPreview:
        """Show the document."""
        return JSONPreview(json.dumps(self.load()))


class CSVDataset(AtomicFileDataset[pd.DataFrame]):
    """A table without its index."""

    def _read(self, path: Path) -> pd.DataFrame:
        return pd.read_csv(path)

    def _write(self, path: Path, content: pd.DataFrame) -> None:
        content.to_csv(path, index=False)

    def preview(self) -> TablePreview:
        """Show the first rows."""
        table: dict[str, Any] = json.loads(self.load().head(PREVIEW_ROWS).to_json(orient="split"))
        return TablePreview(table)


class PlotlyDataset(AtomicFileDataset[Figure]):
    """A Plotly figure as JSON."""

    def _read(self, path: Path) -> Figure:
        return plotly.io.read_json(path)

    def _write(self, path: Path, content: Figure) -> None:
        path.write_text(content.to_json(), encoding="utf-8")

    def preview(self) -> PlotlyPreview:
        """Show the figure."""
        return PlotlyPreview(json.loads(self._path.read_text(encoding="utf-8")))


class PNGDataset(AtomicFileDataset[Image.Image]):
    """A picture."""

    def _read(self, path: Path) -> Image.Image:
        with Image.open(path) as picture:
            picture.load()
            return picture

    def _write(self, path: Path, content: Image.Image) -> None:
        content.save(path, format="PNG", optimize=True)

    def preview(self) -> ImagePreview:
        """Show the picture."""
        return ImagePreview(base64.b64encode(self._path.read_bytes()).decode())


class HTMLDataset(AtomicFileDataset[str]):
    """A page that opens in a browser."""

    def _read(self, path: Path) -> str:
        return path.read_text(encoding="utf-8")

    def _write(self, path: Path, content: str) -> None:
        path.write_text(content, encoding="utf-8")


class MarkdownDataset(HTMLDataset):
    """A page for readers of the repository."""
