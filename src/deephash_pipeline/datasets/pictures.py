"""Pictures, with the preview that Kedro-Viz shows; `pillow.ImageDataset` has none."""

import base64
from pathlib import Path
from typing import NewType

from PIL import Image

from deephash_pipeline.datasets.atomic_file import AtomicFileDataset

# Kedro-Viz chooses how to preview by the name of the annotation of `preview`.
ImagePreview = NewType("ImagePreview", str)


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
        return ImagePreview(base64.b64encode(self._filepath.read_bytes()).decode())
