"""`ImageIndex`: images under ids, searched by image or by id, added and removed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import INDEX_FILE
from deephash_pipeline.hamming import Answers, HammingIndex, ItemId, RangeAnswers, Searchable
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hamming.conditions import Where
from deephash_pipeline.hamming.index_folder import HASHER, PICTURE
from deephash_pipeline.hamming.replacing import refuse_exchanged, tidy_former
from deephash_pipeline.hamming.texts import Texts, one_form, texts
from deephash_pipeline.hashers import BaseHasher
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.images.batches import Images
from deephash_pipeline.photographs.changes import DIGEST_COLUMN, STAMP
from deephash_pipeline.photographs.listing import ListedImage
from deephash_pipeline.photographs.ordering import in_best_order
from deephash_pipeline.photographs.stored import (
    AskedRuntime,
    keep_hasher,
    make_way,
    require_begun,
    require_maker,
    require_same_hasher,
    stored_hasher,
    write_picture,
)

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher


class ImageIndex(CodedItems):
    """A hasher and the index of its codes.

    Ids are strings. The metadata are `path`, of the file, where it starts in the index's folder if the picture is
    stored there, and `label`.

    Args:
        hasher: hasher that makes the codes.
        index: index of the codes; one in another engine is only read.
        folder: directory of the index; None for one in memory.

    Raises:
        InputError: the code lengths differ.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> from deephash_pipeline import ImageHasher
        >>> images = (load_digits().images * 15).astype("uint8")
        >>> index = ImageIndex(ImageHasher.pretrained("digits-48"), HammingIndex(48))
        >>> index.add(["zero", "one"], images[:2], [None, None], ["0", "1"])
        >>> index.search(images[1], k=1)[0]
        [('one', 0)]
    """

    takes = frozenset({"distinct", "folder", "radius", "rescore"})

    def __init__(self, hasher: BaseHasher, index: Searchable, folder: Path | None = None) -> None:
        if hasher.code_length != index.code_length:
            raise InputError(
                f"the hasher makes {hasher.code_length} bits, the index has {index.code_length}: use the hasher that "
                "the index was made with"
            )
        super().__init__(index, folder)
        self.hasher = hasher

    @classmethod
    def create(cls, folder: str | Path, hasher: "ImageHasher", features: bool = False) -> Self:
        """Make a new index, to be written by this object.

        Args:
            folder: directory of the index.
            hasher: hasher that makes its codes.
            features: True to keep the hasher's features of every image, as float16, to bring answers into order by
                them, and to fit another hash function on them.

        Raises:
            InputError: there is something in the folder.
        """
        index = HammingIndex.create(folder, hasher.code_length, hasher.z_dimension if features else 0)
        keep_hasher(index, hasher, Path(folder))
        return cls(hasher, index, Path(folder))

    @classmethod
    def open(
        cls,
        folder: str | Path,
        read_only: bool = False,
        device: str = "auto",
        runtime: AskedRuntime = "torch",
        engine: Searchable | None = None,
    ) -> Self:
        """Open an index.

        Args:
            folder: directory of the index.
            read_only: True if others may write meanwhile; every search then sees what they have written before it.
            device: device to encode on, ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
            runtime: runtime that computes codes. ``onnx`` takes the hasher that `index build` or `export-onnx` has put
                into the folder, and needs no PyTorch; ``auto`` takes it where it is there.
                ``late`` loads PyTorch when codes are computed for the first time.
            engine: engine of the codes in place of the folder, which then needs its hasher alone; see
                `deephash_pipeline.engines`.

        Raises:
            InputError: there is no index, it is damaged, or, unless read_only, another process writes.
        """
        path = Path(folder)
        refuse_exchanged(path)
        if not read_only:
            tidy_former(path)
        if not path.is_dir():
            raise InputError(f"there is no index {path}: make it by `deephash-pipeline index build {path} PATHS`")
        index = HammingIndex.open(path, read_only) if engine is None else engine
        try:
            require_begun(index, path)
            opened = cls(stored_hasher(path, device, runtime), index, path)
            require_maker(index, path)
            return opened
        except BaseException as error:
            index.close()
            if isinstance(error, InputError) and isinstance(index, HammingIndex) and index.is_replaced:
                # Its hasher is that of the new one.
                return cls.open(folder, read_only, device, runtime)
            raise

    @classmethod
    def create_or_open(cls, folder: str | Path, hasher: BaseHasher, features: bool = False) -> Self:
        """Make an index, or go on with one that was made with the same hasher.

        Args:
            folder: directory of the index.
            hasher: hasher that makes its codes.
            features: True for the features of a new index, see `create`.

        Raises:
            InputError: that which is there was made with another hasher; see also `create` and `open`.
        """
        path = Path(folder)
        refuse_exchanged(path)
        make_way(path, hasher)
        made_with_it = (path / HASHER).exists()
        if made_with_it:
            require_same_hasher(path, hasher)
        elif not (path / INDEX_FILE).exists():
            # A model lies in an index that has its hasher.
            return cls.create(path, cast("ImageHasher", hasher), features)
        index = HammingIndex.open(path)
        try:
            opened = cls(hasher, index, path)
            if made_with_it:
                require_maker(index, path)
            elif len(opened):
                raise InputError(f"{path} has codes of an unknown hasher: build images into another folder")
            else:
                # One that was killed between index and hasher has no item.
                keep_hasher(index, cast("ImageHasher", hasher), path)
            return opened
        except BaseException:
            index.close()
            raise

    def store(self, encoded: EncodedPixels, images: Sequence[ListedImage]) -> None:
        """Store listed images for good, by what the hasher made of them."""
        metadata: dict[str, Sequence[str | None]] = {"path": [str(image.path) for image in images]}
        metadata["label"] = [image.label and one_form(image.label) for image in images]
        metadata |= {STAMP: [image.stamp for image in images], DIGEST_COLUMN: [image.digest for image in images]}
        self._add([image.id for image in images], encoded, metadata, replace=True)

    def _add(
        self, ids: Sequence[str], encoded: EncodedPixels, metadata: Mapping[str, Sequence[Any]], replace: bool
    ) -> None:
        index = self._own()
        index.add(ids, encoded.codes, metadata, features=encoded.features if index.features else None, replace=replace)

    def add(
        self, ids: Texts, images: Images, paths: Texts | None = None, labels: Texts | None = None, replace: bool = False
    ) -> None:
        """Add images that are in memory.

        Args:
            ids: one for each, in a list, a tuple, an array or a Series; whole numbers are written as text, here and in
                what follows.
            images: images, as `deephash_pipeline.deephash.ImageHasher` takes them.
            paths: paths where their pictures are, see `keep_picture`; None for nowhere.
            labels: names of their classes; None for none.
            replace: True if an image of the same id gives way; otherwise it is an error.

        Raises:
            InputError: an image cannot be read, an id is there, a value is no text, or the index is read-only.
        """
        self.add_codes(ids, self.hasher.encode_with_features(images), paths, labels, replace)

    def add_codes(
        self,
        ids: Texts,
        codes: NDArray[np.uint8] | EncodedPixels,
        paths: Texts | None = None,
        labels: Texts | None = None,
        replace: bool = False,
    ) -> None:
        """Add images by their codes, with their features where the index keeps them; see `add`."""
        names = texts("id", ids)
        columns = {
            name: [None] * len(names) if values is None else texts(name, values, empty=True)
            for name, values in (("path", paths), ("label", labels))
        }
        columns["label"] = [label and one_form(label) for label in columns["label"]]
        encoded = codes if isinstance(codes, EncodedPixels) else EncodedPixels(codes)
        self._add(names, encoded, columns, replace)

    def keep_picture(self, image: Image.Image) -> str:
        """Write a picture into the index's folder, for good; return its path from there.

        Raises:
            InputError: the index is in memory or read-only, or the disk is full.
        """
        self._own().require_writable()
        if self.folder is None:
            raise InputError("an index in memory keeps no pictures: make one in a folder")
        return write_picture(self.folder, image, uuid4().hex)

    def remove(self, ids: Texts, missing_ok: bool = False) -> int:
        """Remove images, and their pictures where the index's folder has them; return how many.

        Raises:
            InputError: an id is not there, or the index is read-only.
        """
        ids = texts("id", ids)
        paths = [item.metadata.get("path") for item in self.index.items([name for name in ids if name in self.index])]
        removed = super().remove(ids, missing_ok)
        for path in paths:
            self.forget_picture(path)
        return removed

    def forget_picture(self, path: str | None) -> None:
        """Delete a picture that `keep_picture` wrote; other files stay."""
        if self.folder is not None and path is not None and PICTURE.fullmatch(path):
            (self.folder / path).unlink(missing_ok=True)

    def warm_up(self) -> None:
        """Encode a black image and search once: the first time takes seconds."""
        self.index.search(self.encode(np.zeros((1, *self.image_shape), dtype=np.uint8)), 1)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Shape of images as they are encoded."""
        return self.hasher.description.image_shape

    def told(self, metadata: Mapping[str, Any]) -> None:
        """Of images an answer has the label, and the picture."""

    @property
    def maker(self) -> str:
        """Method and benchmark of the hasher."""
        return f"{self.hasher.description.method} {self.hasher.description.benchmark}"

    def encode(self, images: Images) -> NDArray[np.uint8]:
        """Packed codes of images."""
        return self.hasher.encode(images)

    def search(self, images: Images, k: int, where: Where | None = None, rescore: bool = False) -> Answers:
        """Find the k nearest of each image; see `HammingIndex.search`, and `labelled` for conditions.

        Args:
            images: the queries.
            k: number of answers.
            where: conditions on the answers.
            rescore: bring the nearest codes into the best order that the index's features give, see `best_order`.

        Raises:
            InputError: it keeps none.
        """
        if not rescore:
            return self.index.search(self.hasher.encode(images), k, where)
        if not self._own().features:
            raise InputError("this index keeps no features: build one without --hasher, or leave rescore out")
        return self.search_rescored(self.hasher.encode_with_features(images), k, where)

    def search_rescored(self, query: EncodedPixels | ItemId, k: int, where: Where | None = None) -> Answers:
        """Find the k nearest of queries that are encoded, or of an item without itself, in the best order."""
        index = self._own()
        if isinstance(query, EncodedPixels):
            return index.search(query.codes, k, where, in_best_order(self.hasher, index, query))
        own = EncodedPixels(index.get(query).code[np.newaxis], index.features_of([query]))
        return self.search_rescored(own, k + 1, where).without(query, k)

    def within(self, images: Images, radius: int, where: Where | None = None) -> RangeAnswers:
        """Find all images at most `radius` bits from each image."""
        return self._own().within(self.hasher.encode(images), radius, where)
