"""Images as a caller has them -> batches of pixels, decoded in parallel, a batch ahead of the one in use."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
from deephash_pipeline.images.decoding.image_files import Channels
from deephash_pipeline.images.decoding.limited import decode_limited

OneImage: TypeAlias = str | Path | bytes | Image.Image | NDArray[np.uint8]
Images: TypeAlias = OneImage | Iterable[OneImage]

ImageShape: TypeAlias = tuple[Channels, int, int] | tuple[Channels]
"""Channels, height and width; or the channels alone, where every image keeps its own size."""

FORMS = "give paths, contents of files, images of Pillow or uint8 arrays (n, H, W), (n, H, W, C) or (n, C, H, W)"
CHANNEL_COUNTS = (1, 3)
WITH_ALPHA = (2, 4)
"""Channels that an array may have as its last axis, if none else can be theirs."""
IMAGES_PER_TASK = 16


class SkippedImage(NamedTuple):
    """A broken image: its row among those given, its path (else ``image <row>``) and why it cannot be decoded.

    Example:
        >>> SkippedImage(1, "b.png", "the file is empty").name
        'b.png'
    """

    row: int
    name: str
    reason: str


class ImageBatch(NamedTuple):
    """Images that follow one another, in the order given.

    Attributes:
        rows: rows of the images among the images given, int64 (b,), ascending.
        pixels: uint8 (b, channels, height, width).
        skipped: broken images between them; b is smaller by so many, and may be 0.

    Example:
        >>> broken = SkippedImage(1, "b.png", "the file is empty")
        >>> ImageBatch(np.array([0, 2]), np.zeros((2, 1, 8, 8), np.uint8), [broken]).pixels.shape
        (2, 1, 8, 8)
    """

    rows: NDArray[np.int64]
    pixels: NDArray[np.uint8]
    skipped: list[SkippedImage]


def image_batches(
    images: Images,
    image_shape: ImageShape,
    batch_size: int = 256,
    errors: Literal["raise", "skip"] = "raise",
    threads: int | None = None,
) -> Iterator[ImageBatch]:
    """Decode images batch by batch, as the pipeline decodes those of a folder.

    Memory stays flat however many images there are: of a generator two batches are taken at a time.

    Args:
        images: images in one of these forms.

            - Paths of files, contents of files as bytes, or images of Pillow, see `decode_image`: one, or any
              iterable. A file that takes longer than a minute counts as broken.
            - An array uint8 (n, H, W) of grey images, (n, H, W, C) or (n, C, H, W), where C is 1 or 3, as the last axis
              also 2 or 4, with alpha; if both axes could be C, it is the one of as many as asked for. It may be
              memory-mapped, then only batches are read.
            - One image as an array: (H, W), (H, W, C) or (1, H, W). (3, H, W) is three grey images where grey ones
              are asked for, and else refused, as it could be one in colour: give (1, 3, H, W). Grey images up to 4
              pixels wide are given as (n, 1, H, W).
            - Any iterable of arrays: those of two or three dimensions are an image each, (H, W), (H, W, C) or
              (C, H, W); those of four are several.

            An array that has the channels and the size already passes unchanged, all else is converted and resized
            like a file. Whatever NumPy takes for an array, such as a tensor, is one.
        image_shape: shape of every image: channels, 1 for grey or 3 for colour, height and width in pixels; or the
            channels alone, for sizes of the images' own, which then must be the same.
        batch_size: images in a batch, the last excepted.
        errors: ``raise`` for an error that names the first broken image, ``skip`` to leave broken images out and to
            report them with the batch.
        threads: number of threads that decode; None for a few more than there are cores.

    Yields:
        Batches in order; none where there is no image.

    Raises:
        InputError: an image in none of these forms, images of different sizes where `image_shape` names none, and see
            `errors`. Also with ``skip`` if the machine is at fault and not the image, see `decode_image`.

    Example:
        >>> colour = np.zeros((3, 4, 4, 3), dtype=np.uint8)
        >>> [batch.pixels.shape for batch in image_batches(colour, (1, 2, 2), batch_size=2)]
        [(2, 1, 2, 2), (1, 1, 2, 2)]
        >>> [batch] = image_batches(["missing.png", Image.new("L", (4, 4))], (1, 2, 2), errors="skip")
        >>> batch.rows.tolist(), batch.skipped[0].name
        ([1], 'missing.png')
    """
    channels, *size = image_shape
    is_count = isinstance(batch_size, Integral) and batch_size >= 1
    if channels not in CHANNEL_COUNTS or len(size) not in (0, 2) or not is_count or errors not in ("raise", "skip"):
        raise InputError(
            f"image_shape={image_shape!r}, batch_size={batch_size!r}, errors={errors!r}: image_shape is (channels, "
            "height, width) or (channels,) with 1 or 3 channels, batch_size a whole number from 1 on and errors "
            "'raise' or 'skip'."
        )
    if isinstance(images, str | Path | bytes | Image.Image):
        single: Iterator[OneImage] = iter([images])
    elif _is_array(images):
        array = _stack(_checked(images, "images"), channels)
        if array.shape[1:] == (channels, *(size or array.shape[2:])):
            return _slices(array, batch_size)
        single = iter(array)
    elif isinstance(images, Iterable):
        single = _single_images(images, channels)
    else:
        raise InputError(f"images are of type {type(images).__name__}: {FORMS}.")
    return _decoded(single, image_shape, batch_size, errors, threads)


def _slices(images: NDArray[np.uint8], batch_size: int) -> Iterator[ImageBatch]:
    for start in range(0, len(images), batch_size):
        pixels = images[start : start + batch_size]
        yield ImageBatch(np.arange(start, start + len(pixels)), pixels, [])


def _decoded(
    images: Iterator[OneImage],
    image_shape: ImageShape,
    batch_size: int,
    errors: Literal["raise", "skip"],
    threads: int | None,
) -> Iterator[ImageBatch]:
    def decode(some: list[OneImage]) -> list[NDArray[np.uint8] | BrokenImageError]:
        return [_pixels(image, image_shape) for image in some]

    pool = ThreadPoolExecutor(threads)

    def started() -> Iterator[tuple[list[OneImage], Iterator[list[NDArray[np.uint8] | BrokenImageError]]]]:
        while batch := list(islice(images, batch_size)):
            tasks = [batch[first : first + IMAGES_PER_TASK] for first in range(0, len(batch), IMAGES_PER_TASK)]
            yield batch, pool.map(decode, tasks)

    to_start = started()
    under_way = deque(islice(to_start, 1))
    start = 0
    try:
        while under_way:
            under_way.extend(islice(to_start, 1))
            batch, decoded = under_way.popleft()
            yield _batch(start, batch, list(chain.from_iterable(decoded)), image_shape, errors)
            start += len(batch)
    finally:
        pool.shutdown(cancel_futures=True)


def _batch(
    start: int,
    images: list[OneImage],
    decoded: list[NDArray[np.uint8] | BrokenImageError],
    image_shape: ImageShape,
    errors: Literal["raise", "skip"],
) -> ImageBatch:
    rows, pixels, skipped = [], [], []
    for row, (image, result) in enumerate(zip(images, decoded, strict=True), start):
        if not isinstance(result, BrokenImageError):
            rows.append(row)
            pixels.append(result)
            continue
        name = str(image) if isinstance(image, str | Path) else f"image {row}"
        if errors == "raise":
            raise InputError(f"{name} cannot be decoded ({result}): mend it, or leave it out.") from result
        skipped.append(SkippedImage(row, name, str(result)))
    sizes = {image.shape[1:] for image in pixels}
    if len(sizes) > 1:
        raise InputError(
            f"the images are of different sizes, such as {sorted(sizes)[:2]} pixels: give a size to resize to."
        )
    channels, *size = image_shape
    shape = (len(pixels), channels, *(sizes.pop() if sizes else size or (0, 0)))
    return ImageBatch(np.array(rows, dtype=np.int64), np.array(pixels, dtype=np.uint8).reshape(shape), skipped)


def _pixels(image: OneImage, image_shape: ImageShape) -> NDArray[np.uint8] | BrokenImageError:
    """Decode a file or an image of Pillow; convert an array (C, H, W) where it does not fit."""
    channels, size = image_shape[0], image_shape[1:] or None
    if isinstance(image, np.ndarray):
        if image.shape == (channels, *(size or image.shape[1:])):
            return image
        image = Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0))
    try:
        if isinstance(image, Image.Image):
            return decode_image(image, size, channels)
        return decode_limited(image, size, channels)
    except BrokenImageError as error:
        return error


def _single_images(images: Iterable[Any], channels: Channels) -> Iterator[OneImage]:
    """Yield paths, images of Pillow and arrays (C, H, W), one by one."""
    for number, image in enumerate(images):
        if isinstance(image, str | Path | bytes | Image.Image):
            yield image
        elif not _is_array(image):
            raise InputError(f"item {number} of the images is of type {type(image).__name__}: {FORMS}.")
        elif (array := _checked(image, f"item {number} of the images")).ndim == 3:
            if array.shape[0] not in CHANNEL_COUNTS and array.shape[2] not in CHANNEL_COUNTS + WITH_ALPHA:
                raise InputError(
                    f"item {number} of the images is of shape {array.shape}: among others an array is one image, "
                    "(H, W, C) or (C, H, W); give several grey ones as (n, 1, H, W)."
                )
            yield _channels_first(array[np.newaxis], channels)[0]
        else:
            yield from _stack(array, channels)


def _is_array(images: Any) -> bool:
    """Tell whether this is an array of pixels, and not one of paths."""
    return hasattr(images, "__array__") and np.asanyarray(images).dtype.kind not in "OTU"


def _checked(images: Any, name: str) -> NDArray[np.uint8]:
    array: NDArray[np.uint8] = np.asanyarray(images)
    if array.dtype != np.uint8 or array.ndim not in (2, 3, 4) or 0 in array.shape[array.ndim > 2 :]:
        raise InputError(
            f"{name}: {array.dtype} of shape {array.shape}; give uint8, (n, H, W), (n, H, W, C) or (n, C, H, W)."
        )
    return array


def _stack(images: NDArray[np.uint8], channels: Channels) -> NDArray[np.uint8]:
    """Give an array of two to four dimensions the shape (n, C, H, W)."""
    if images.ndim == 2:
        return images[np.newaxis, np.newaxis]
    if images.ndim == 4:
        return _channels_first(images, channels)
    if images.shape[2] in CHANNEL_COUNTS or (images.shape[2] in WITH_ALPHA and len(images) > 1):
        return images[np.newaxis].transpose(0, 3, 1, 2)
    if len(images) == channels == 3:
        raise InputError(
            f"an array of shape {images.shape} is three grey images or one in colour: "
            f"give it as {(3, 1, *images.shape[1:])} or {(1, *images.shape)}."
        )
    return images[:, np.newaxis]


def _channels_first(images: NDArray[np.uint8], channels: Channels) -> NDArray[np.uint8]:
    axes = [axis for axis in (1, 3) if images.shape[axis] in CHANNEL_COUNTS]
    if len(axes) > 1:
        axes = [axis for axis in axes if images.shape[axis] == channels]
    elif not axes and images.shape[3] in WITH_ALPHA:
        axes = [3]
    if len(axes) != 1:
        raise InputError(
            f"of images of shape {images.shape} the axis of the channels is not clear: give (n, H, W, C) or "
            "(n, C, H, W), where C is 1 or 3, or (n, H, W, C) with alpha, where it is 2 or 4."
        )
    return images if axes == [1] else images.transpose(0, 3, 1, 2)
