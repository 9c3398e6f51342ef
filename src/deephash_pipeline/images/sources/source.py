"""Base class of image sources: their parameters, how they read images, and which files they take."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.images.decoding.image_files import Channels, ImageFiles
from deephash_pipeline.images.sources.collection import SPLITS_ALLOWED, ImageCollection


class ImageSource(Parameters, ABC):
    """The parameters of a source as they stand in the configuration; a subclass is one `kind`.

    Attributes:
        kind: name of the subclass in `deephash_pipeline.images.sources.registry.SOURCES`.
    """

    kind: str

    @abstractmethod
    def read(self, folder: Path) -> ImageCollection:
        """Read all images, or list them where each is a file of its own."""

    def is_there(self, folder: Path) -> bool:
        """Say whether there is anything to read, or will be when it is read."""
        return folder.is_dir()

    def files(self, folder: Path) -> tuple[Path, list[str]]:
        """Name the files that `read` reads: a folder, and paths below it; by default all in the raw folder."""
        return folder, sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


class ListedImages(ImageSource):
    """A source whose images are files of their own, which are decoded to one size.

    Attributes:
        image_size: height and width to decode to, in pixels.
        channels: 1 for grey, 3 for colour.
    """

    image_size: int = Field(ge=1)
    channels: Channels

    def raw(self, folder: Path) -> ImageFiles:
        """Give no file of the raw folder, and what those that are listed are decoded to."""
        return ImageFiles(folder, [], self.image_size, self.channels)

    def lists(self) -> list[str]:
        """Name the files in the raw folder that say which images there are."""
        return []

    def files(self, folder: Path) -> tuple[Path, list[str]]:
        """Name the images that are listed, and the lists; what else lies in the folder is not read."""
        try:
            splits = self.read(folder).splits.values()
        except InputError:
            return super().files(folder)
        images = {name for split in splits if isinstance(split.images, ImageFiles) for name in split.images.names}
        return folder, sorted({*images, *self.lists()})


class SplitImages(ListedImages):
    """A source that says where the images of each split are.

    Attributes:
        splits: split -> folder or list in the raw folder.
    """

    splits: dict[str, str]

    @model_validator(mode="after")
    def _splits_are_complete(self) -> Self:
        if set(self.splits) not in SPLITS_ALLOWED:
            raise ValueError("splits must name those of training and query (and validation), or of all alone")
        return self
