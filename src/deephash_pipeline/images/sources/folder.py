"""A tree of image files, `<root>/<split>/<class>/**`: CIFAR-10, Kaggle-Face, SUN397 and a user's own images."""

import os
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import walk
from deephash_pipeline.images.decoding.formats import FORMAT_NAMES, SUFFIXES, only_images
from deephash_pipeline.images.sources.collection import (
    UNLABELLED,
    ImageCollection,
    Rows,
    by_class,
    collect,
    natural_order,
)
from deephash_pipeline.images.sources.source import SplitImages

ClassFolder = Literal["top", "parent"]


class FolderSource(SplitImages):
    """A tree of image files; `splits` says which folder below the raw folder is which split, {"all": "."} for none.

    `class_folder` names a class: "top" of the split, or "parent" of the image as in SUN397, where `a/abbey` and
    `o/office/home` are classes.
    Where `labelled` is false, folders are no classes: all images are of the class `UNLABELLED`.

    Example:
        >>> FolderSource(kind="folder", image_size=32, channels=3, class_folder="parent").labelled
        True
    """

    kind: Literal["folder"]
    labelled: bool = True
    splits: dict[str, str] = Field(default={"training": "train", "query": "test"})
    class_folder: ClassFolder = "top"

    @model_validator(mode="after")
    def _labels_are_somewhere(self) -> "FolderSource":
        if not self.labelled and self.class_folder != "top":
            raise ValueError("class_folder says where the labels are: leave it out where labelled is false")
        return self

    def read(self, folder: Path) -> ImageCollection:
        """List the tree, in the order of its paths, without decoding any image; ids are the paths below the raw folder.

        What cannot be read, such as a link whose content is not there, is listed: decoding will count it as broken.

        Raises:
            InputError: if a folder is missing or has no image, an image is in no class, a link takes a folder of the
                split into another class, a name is no UTF-8, or a class has no image to train from.

        Example:
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     for name in ("cat", "dog"):
            ...         Path(folder, name).mkdir()
            ...         Path(folder, name, "1.png").touch()
            ...     source = FolderSource(kind="folder", splits={"all": "."}, image_size=32, channels=3)
            ...     source.read(Path(folder)).splits["all"].ids
            ['cat/1.png', 'dog/1.png']
        """
        found: dict[str, Rows] = {}
        class_names: set[str] = set()
        for split, below in self.splits.items():
            classes = _image_files(folder / below, self.class_folder if self.labelled else None)
            class_names |= set(classes)
            found[split] = by_class([(_name_below(folder, path), [name]) for name in classes for path in classes[name]])
        return collect(found, self.raw(folder), sorted(class_names, key=natural_order))


def _image_files(folder: Path, class_folder: ClassFolder | None) -> dict[str, list[Path]]:
    """Return the sorted image files of one split by class; what is hidden is passed over, other kinds are counted."""
    place = f"{folder}/<class>/" if class_folder else f"{folder}/"
    if not folder.is_dir():
        raise InputError(
            f"the folder {folder} is missing: put images into {place}, or mend `splits` of the source "
            "({all: .} where they are not split yet)."
        )
    # Unlike the methods of `Path`, those of `os.path` raise nothing for a link that cannot be followed.
    real_path = cache(lambda path: Path(os.path.realpath(path)))
    real_folder = real_path(folder)
    classes: dict[str, list[Path]] = {}
    if class_folder == "top":
        classes = {entry.name: [] for entry in folder.iterdir() if entry.name[0] != "." and os.path.isdir(entry)}
    for path in sorted(only_images(Path(folder, name) for name in walk(folder))):
        # A folder is listed itself where what is in it cannot be, and so is a class that is a link to nowhere.
        lost = os.path.isdir(path) or not (os.path.exists(path) or path.suffix.lower() in SUFFIXES)
        if class_folder and path.parent == folder and not lost:
            raise InputError(
                f"{path} lies in no class: move it into {place}, or set `labelled: false` of the source if no "
                "image has a class."
            )
        own = path if os.path.isdir(path) or path.parent == folder else path.parent
        below, real = own.relative_to(folder), real_path(own)
        if class_folder and real.is_relative_to(real_folder) and real != real_folder / below:
            raise InputError(f"by a link {real} is in two classes, {own} the other: remove the link.")
        name = {"top": below.parts[:1], "parent": below.parts, None: (UNLABELLED,)}[class_folder]
        classes.setdefault("/".join(name), []).append(path)
    if not any(classes.values()):
        raise InputError(f"{folder} holds no image: put {FORMAT_NAMES} files into {place}.")
    return classes


def _name_below(root: Path, path: Path) -> str:
    name = path.relative_to(root).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the name {name!r} below {root} is no UTF-8: rename the file or its folder.") from error
    return name
