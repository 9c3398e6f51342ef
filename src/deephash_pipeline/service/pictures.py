"""Bytes from outside -> pictures within limits; pictures -> thumbnails."""

import base64
import binascii
from collections import OrderedDict
from hashlib import blake2b
from pathlib import Path
from threading import Lock

from fastapi import HTTPException

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import stamp_of
from deephash_pipeline.images.decoding.apart import BusyError, Decoded, Decoders
from deephash_pipeline.images.decoding.decode import BrokenImageError
from deephash_pipeline.images.decoding.image_files import Channels
from deephash_pipeline.images.decoding.sent import TooManyPixelsError
from deephash_pipeline.photographs.duplicates.groups import read_photo
from deephash_pipeline.photographs.thumbnails import Thumbnail, thumbnail
from deephash_pipeline.service.schemas import PictureFile

MOST_KEPT_BYTES = 2**28


def from_base64(text: str) -> bytes:
    """Decode base64, also as a data: URL, and broken into lines as mail and command lines have it.

    Raises:
        HTTPException: 422, it is none.
    """
    encoded = text.partition(",")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise HTTPException(422, f"image: no base64 ({error})") from error


def read_picture(
    decoders: Decoders, content: bytes, image_shape: tuple[Channels, int, int], most_pixels: int, keep: bool
) -> Decoded:
    """Decode a picture, see `read_sent`.

    Raises:
        HTTPException: 413, it has too many pixels; 400, it is no picture, or damaged, or takes too long; 503, memory
            has run out.
    """
    try:
        return decoders.read(content, image_shape, most_pixels, keep)
    except TooManyPixelsError as error:
        raise HTTPException(413, f"image: {error}") from error
    except BrokenImageError as error:
        raise HTTPException(400, f"image: {error}") from error
    except (InputError, BusyError) as error:
        later = {"Retry-After": "1"}
        raise HTTPException(503, "the service is short of memory; send the picture again later", later) from error


def picture_file(path: Path, item_id: str, tells_paths: bool) -> PictureFile | None:
    """What a person wants to know of the file of a picture; None where it is gone or damaged."""
    try:
        photo = read_photo(item_id, path)
    except Exception:  # a damaged file can make Pillow's readers raise anything
        return None
    day, _, time = photo.extras.taken.partition(" ")
    return PictureFile(
        name=Path(item_id).name,
        path=str(path) if tells_paths else None,
        width=photo.width,
        height=photo.height,
        bytes=photo.bytes,
        changed=photo.date,
        taken=f"{day.replace(':', '-')} {time.partition('.')[0]}".strip(),
        camera=photo.extras.camera,
    )


class Thumbnails:
    """Makes thumbnails, and keeps them in memory; those that were not asked for the longest give way to others.

    Args:
        most_bytes: number of bytes that are kept: 16 kB for each of 16,384. Of a photograph, 192 pixels take 6 to 9 kB.
    """

    def __init__(self, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self._kept: OrderedDict[str, Thumbnail] = OrderedDict()
        self._lock = Lock()

    @staticmethod
    def key(path: Path, size: int) -> str:
        """Name a thumbnail; it is another once the file has changed."""
        return blake2b(f"{path} {stamp_of(path)} {size}".encode(), digest_size=16).hexdigest()

    def of(self, path: Path, size: int, key: str) -> Thumbnail:
        """A picture of at most `size` pixels in either direction, under its key.

        Raises:
            HTTPException: 404, there is no picture that can be read.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        try:
            made = thumbnail(path, size)
        except Exception as error:
            raise HTTPException(404, "the picture of this item cannot be read; its file is gone or damaged") from error
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self.bytes += len(made.content)
            while self.bytes > self.most_bytes:
                self.bytes -= len(self._kept.popitem(last=False)[1].content)
        return made
