"""Where raw images come from: one parameter model per kind of source, and one function for them all."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.decoding.image_files import Channels, RawFolder
from deephash_pipeline.images.sources.collection import ImageCollection
from deephash_pipeline.images.sources.digits import read_digits
from deephash_pipeline.images.sources.fer2013 import read_fer2013
from deephash_pipeline.images.sources.folder import ClassFolder, list_folder
from deephash_pipeline.images.sources.idx import read_idx_collection
from deephash_pipeline.images.sources.label_list import list_label_lists
from deephash_pipeline.images.sources.listing import SPLITS_ALLOWED
from deephash_pipeline.images.sources.table import list_table
from deephash_pipeline.images.sources.torchvision_sets import TorchvisionName, read_torchvision


class _Source(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DigitsSource(_Source):
    """The digits of scikit-learn, embedded: no raw files."""

    kind: Literal["digits"]
    image_size: int = Field(default=28, ge=1)


class IdxSource(_Source):
    """MNIST and what shares its format; the names are those of the four files below the raw folder."""

    kind: Literal["idx"]
    training_images: str = "train-images-idx3-ubyte.gz"
    training_labels: str = "train-labels-idx1-ubyte.gz"
    query_images: str = "t10k-images-idx3-ubyte.gz"
    query_labels: str = "t10k-labels-idx1-ubyte.gz"
    class_names: tuple[str, ...] = tuple("0123456789")


class FolderSource(_Source):
    """A tree of image files; `splits` says which folder below the raw folder is which split.

    Where `labelled` is false, folders are no classes: all images are of the class `UNLABELLED`.

    Example:
        >>> FolderSource(kind="folder", image_size=32, channels=3, class_folder="parent").labelled
        True
    """

    kind: Literal["folder"]
    labelled: bool = True
    image_size: int = Field(ge=1)
    channels: Channels
    splits: dict[str, str] = Field(default={"training": "train", "query": "test"})
    class_folder: ClassFolder = "top"

    @model_validator(mode="after")
    def _splits_are_complete(self) -> "FolderSource":
        if set(self.splits) not in SPLITS_ALLOWED:
            raise ValueError("splits must name the folders of training and query (and validation), or of all alone")
        if not self.labelled and self.class_folder != "top":
            raise ValueError("class_folder says where the labels are: leave it out where labelled is false")
        return self


class CsvSource(_Source):
    """Image files that a CSV in the raw folder lists, with columns path, label and perhaps split.

    `label_separator` stands between the labels of an image that may have several, as in ``sky;sea``.

    Example:
        >>> CsvSource(kind="csv", image_size=32, channels=3, label_separator=";").file
        'images.csv'
    """

    kind: Literal["csv"]
    image_size: int = Field(ge=1)
    channels: Channels
    file: str = "images.csv"
    label_separator: str | None = Field(default=None, min_length=1)


class ListSource(_Source):
    """Image files with several labels, listed as other toolboxes do it: a line ``path 0 1 0 ...`` an image.

    `splits` says which list in the raw folder, where paths begin, is which split; `class_names` names the columns, or
    the file in the raw folder that does, a name on each line.

    Example:
        >>> ListSource(kind="list", image_size=32, channels=3, class_names=("sky", "sea")).splits
        {'training': 'train.txt', 'query': 'test.txt'}
    """

    kind: Literal["list"]
    image_size: int = Field(ge=1)
    channels: Channels
    splits: dict[str, str] = Field(default={"training": "train.txt", "query": "test.txt"})
    class_names: tuple[str, ...] | str | None = None

    @model_validator(mode="after")
    def _splits_are_complete(self) -> "ListSource":
        if set(self.splits) not in SPLITS_ALLOWED:
            raise ValueError("splits must name the lists of training and query (and validation), or of all alone")
        return self


class Fer2013Source(_Source):
    """FER2013 as Kaggle gives it: one CSV in the raw folder."""

    kind: Literal["fer2013"]
    channels: Channels = 1
    file: str = "fer2013.csv"


class TorchvisionSource(_Source):
    """A data set of torchvision; the raw folder is its `root`."""

    kind: Literal["torchvision"]
    name: TorchvisionName
    download: bool = False


ImageSource = Annotated[
    DigitsSource | IdxSource | FolderSource | CsvSource | ListSource | Fer2013Source | TorchvisionSource,
    Field(discriminator="kind"),
]

_ADAPTER: TypeAdapter[ImageSource] = TypeAdapter(ImageSource)


def parse_source(parameters: dict[str, Any]) -> ImageSource:
    """Turn the parameters of a source, as they stand in the configuration, into the model that their `kind` names.

    Raises:
        InputError: one line with every wrong parameter.

    Example:
        >>> parse_source({"kind": "folder", "image_size": 32, "channels": 3}).splits
        {'training': 'train', 'query': 'test'}
    """
    try:
        return _ADAPTER.validate_python(parameters)
    except ValidationError as error:
        faults = "; ".join(
            ": ".join([".".join(map(str, fault["loc"])), fault["msg"]]).removeprefix(": ") for fault in error.errors()
        )
        raise InputError(f"the image source cannot be used, mend these parameters of it: {faults}.") from error


def read_source(source: ImageSource, path: Path, working_folder: Path) -> ImageCollection:
    """Read all images of a source, or list them where each is a file of its own.

    Args:
        source: what to read, see `parse_source`.
        path: folder of the raw files; the digits need none.
        working_folder: where the arrays of listed files are to grow while they are decoded.

    Returns:
        The splits "training" and "query" (and "validation" where the source has one), or "all".

    Raises:
        InputError: if a file is missing or broken, or the labels do not fit the images.

    Example:
        >>> source = parse_source({"kind": "digits"})
        >>> len(read_source(source, Path("data/01_raw/digits"), Path("decoded")).class_names)
        10
    """
    match source:
        case DigitsSource():
            return read_digits(source.image_size)
        case IdxSource():
            files = {
                "training": (path / source.training_images, path / source.training_labels),
                "query": (path / source.query_images, path / source.query_labels),
            }
            return read_idx_collection(files, source.class_names)
        case FolderSource():
            class_folder = source.class_folder if source.labelled else None
            raw = RawFolder(path, source.image_size, source.channels, working_folder)
            return list_folder(raw, source.splits, class_folder)
        case CsvSource():
            return list_table(
                path / source.file, source.image_size, source.channels, working_folder, source.label_separator
            )
        case ListSource():
            raw = RawFolder(path, source.image_size, source.channels, working_folder)
            return list_label_lists(raw, source.splits, source.class_names)
        case Fer2013Source():
            return read_fer2013(path / source.file, source.channels)
        case TorchvisionSource():
            return read_torchvision(source.name, path, source.download)
