"""Images in, packed codes out, batch by batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from deephash_pipeline.images.batches import ImageBatch, Images, SkippedImage, image_batches
from deephash_pipeline.images.decoding.image_files import Channels

Runtime = Literal["torch", "onnx"]
"""What computes codes: PyTorch or ONNX Runtime."""


class HasherDescription(BaseModel):
    """What a user must know about a hasher, stored with it.

    Attributes:
        network: name, as in `deephash_pipeline.networks.build_trunk`.
        trunk: fields of `deephash_pipeline.networks.TrunkParameters`, for a network of torchvision or timm.
        image_shape: image shape of the images it was trained on: channels, height, width.
        code_length: bits.
        method: key of the method that made it, such as ``deephash``.
        encoder: key of `deephash_pipeline.hashing.ENCODERS`.
        class_names: class names of the training images.
        statistics: ``mean`` and ``standard_deviation`` of each channel of the training images, in units of [0, 1].
        benchmark: name of the data.
        seed: seed of the experiment.
        training_images: number of images that it was trained on; None where a file of an earlier version does not say.
        notice: notice naming whose pictures and weights it was made from, and their licences.
        runtime: runtime that computes its features; codes of the other may differ in a bit of a thousand codes.
        code_version: ``version`` of the package and, where known, ``git_commit`` and ``git_dirty``.

    Example:
        >>> from deephash_pipeline import ImageHasher
        >>> description = ImageHasher.pretrained("digits-48").description
        >>> description.network, description.image_shape
        ('lenet', (1, 28, 28))
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: str
    trunk: Mapping[str, bool | int | str | None] = {}
    image_shape: tuple[Channels, int, int]
    code_length: int
    method: str
    encoder: str
    class_names: tuple[str, ...]
    statistics: dict[str, list[float]]
    benchmark: str
    seed: int
    training_images: int | None = None
    notice: str = ""
    runtime: Runtime = "torch"
    code_version: dict[str, str]

    @property
    def trained_on(self) -> str:
        """Say which images it knows, for it tells others apart badly."""
        channels, height, width = self.image_shape
        count = "images" if self.training_images is None else f"{self.training_images:,} images"
        classes = f" in {len(self.class_names)} classes" if len(self.class_names) > 1 else ""
        pixels = f"{width} x {height} pixels in {'grey' if channels == 1 else 'colour'}"
        return f"{count} of {self.benchmark}{classes}, {pixels}, seed {self.seed}"


DECODED_AT_A_TIME = 1024
"""Images decoded before they are encoded, where the caller names no `batch_size`; a multiple of the network's block."""


class EncodedPixels(NamedTuple):
    """What a hasher makes of decoded images.

    Attributes:
        codes: uint8 of shape (n, ceil(code_length / 8)).
        features: z, float32 of shape (n, z_dimension); None of a hasher that gives codes alone.

    Example:
        >>> EncodedPixels(np.zeros((1, 6), np.uint8)).features is None
        True
    """

    codes: NDArray[np.uint8]
    features: NDArray[np.float32] | None = None


class EncodedImages(NamedTuple):
    """Codes of the images that could be read.

    Attributes:
        codes: uint8 of shape (n, ceil(code_length / 8)).
        rows: int64 of shape (n,), of each image in the input.
        skipped: images that could not be read, and why.
        features: features, see `EncodedPixels`; None where codes alone were asked for.

    Example:
        >>> skipped = [SkippedImage(1, "b.png", "the file is empty")]
        >>> EncodedImages(np.zeros((1, 6), np.uint8), np.array([0]), skipped).codes.shape
        (1, 6)
    """

    codes: NDArray[np.uint8]
    rows: NDArray[np.int64]
    skipped: list[SkippedImage]
    features: NDArray[np.float32] | None = None


class BaseHasher(ABC):
    """Everything between an image and its code.

    Images are file paths, contents of files as bytes, PIL images, uint8 arrays of shape (n, H, W), (n, H, W, C) or
    (n, C, H, W), or an iterable of any of them; `deephash_pipeline.images.batches` says how they are read. They are
    resized to the size of the training images. Codes are packed as `deephash_pipeline.retrieval.pack_bits` packs them:
    bit 0 is the highest of byte 0.

    Attributes:
        batch_size: images decoded at a time; memory grows with it and not with the number of images.
        threads: number of threads that decode; None for a few more than there are cores.

    Example:
        >>> class Brightness(BaseHasher):
        ...     description = HasherDescription(
        ...         network="none", image_shape=(1, 2, 2), code_length=8, method="mean", encoder="mean", class_names=(),
        ...         statistics={}, benchmark="noise", seed=0, code_version={},
        ...     )
        ...     def encode_pixels(self, pixels):
        ...         return EncodedPixels(pixels.mean(axis=(1, 2, 3)).astype(np.uint8)[:, np.newaxis])
        >>> Brightness().encode(np.full((2, 8, 8), 7, dtype=np.uint8)).tolist()
        [[7], [7]]
    """

    batch_size: int = DECODED_AT_A_TIME
    threads: int | None = None

    @property
    @abstractmethod
    def description(self) -> HasherDescription:
        """What is stored beside the weights."""

    @abstractmethod
    def encode_pixels(self, pixels: NDArray[np.uint8]) -> EncodedPixels:
        """Codes, and features where there are any, of decoded images uint8 (n, *image_shape); n may be 0."""

    def encode(self, images: Images) -> NDArray[np.uint8]:
        """Codes of images.

        Args:
            images: images, see the class.

        Returns:
            Packed codes, uint8 of shape (n, ceil(code_length / 8)).

        Raises:
            InputError: an image cannot be read, by name; or arrays of another shape or dtype.
        """
        return self._encoded(images, "raise").codes

    def encode_with_features(self, images: Images) -> EncodedPixels:
        """Codes of images, and their features where the hasher has any; see `encode`."""
        encoded = self._encoded(images, "raise", features=True)
        return EncodedPixels(encoded.codes, encoded.features)

    def encode_readable(self, images: Images) -> EncodedImages:
        """Codes of the images that can be read, and a list of the others."""
        return self._encoded(images, "skip")

    def encode_batches(
        self, images: Images, errors: Literal["raise", "skip"] = "raise", batch_size: int | None = None
    ) -> Iterator[EncodedImages]:
        """Yield codes and features batch by batch, for more images than memory has room for the codes of.

        A batch is decoded while the one before is computed.

        Args:
            images: images, see the class.
            errors: ``skip`` to leave out and name what cannot be read.
            batch_size: images of a batch; None for `batch_size` of the hasher.
        """
        for batch in self._batches(images, errors, batch_size):
            codes, features = self.encode_pixels(batch.pixels)
            yield EncodedImages(codes, batch.rows, batch.skipped, features)

    def _encoded(self, images: Images, errors: Literal["raise", "skip"], features: bool = False) -> EncodedImages:
        none = np.empty((0, -(-self.description.code_length // 8)), np.uint8)
        parts = [EncodedImages(none, np.empty(0, np.int64), [])]
        # Features that nobody asked for are let go with their batch.
        parts += (b if features else b._replace(features=None) for b in self.encode_batches(images, errors))
        codes, rows, skipped, z = zip(*parts, strict=True)
        known = [block for block in z if block is not None]
        joined = np.concatenate(known) if known else None
        return EncodedImages(np.concatenate(codes), np.concatenate(rows), list(chain.from_iterable(skipped)), joined)

    def _batches(
        self, images: Images, errors: Literal["raise", "skip"], batch_size: int | None = None
    ) -> Iterator[ImageBatch]:
        return image_batches(images, self.description.image_shape, batch_size or self.batch_size, errors, self.threads)

    @property
    def code_length(self) -> int:
        """Bits of a code."""
        return self.description.code_length

    def __repr__(self) -> str:
        about = self.description
        return f"{type(self).__name__}({about.method}, {about.code_length} bits, {about.network}, {about.benchmark})"
