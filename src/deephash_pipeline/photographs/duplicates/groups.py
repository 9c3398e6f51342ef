"""Files of one picture: which to keep, and why."""

import os
from collections.abc import MutableMapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from PIL import ExifTags, Image

from deephash_pipeline.common.stores import stamp_of
from deephash_pipeline.images.decoding.formats import FORMATS, check_readable
from deephash_pipeline.photographs.duplicates.extras import (
    DATE,
    PLACE,
    SIDECAR,
    Extras,
    extras_of,
    has_sidecar,
    is_managed,
)
from deephash_pipeline.photographs.duplicates.raw_files import is_raw

SIDEWAYS = range(5, 9)
"""EXIF's orientations that swap height and width."""

GREY_MODES = ("1", "L", "LA", "I", "I;16", "F")
LOSSLESS = ("PNG", "TIFF", "BMP", "PPM")
LOSSY_TIFF = ("jpeg", "tiff_jpeg", "webp")
LOOKED_AT = (256, 256)
GREYISH = 12
"""Difference of red, green and blue, of 255, up to which a picture has no colours."""

Action = Literal["keep", "remove", "look"]


class Photo(NamedTuple):
    """A file of a picture.

    Attributes:
        name: path of the file as it was given.
        path: path of the file without links.
        width: width in pixels, as the picture is shown.
        height: height in pixels, as the picture is shown.
        bytes: size of the file.
        modified: time of its last change, in seconds since 1970.
        reference: True if it is of the reference, which is never to be removed.
        pages: pictures in the file, of a TIFF or an animation; the first is compared.
        grey: True if the picture has no colours; before it is `seen`, if its file can have none.
        lossless: True if the file keeps every pixel.
        transparent: True if the picture, once it is `seen`, can be seen through.
        extras: what it has beside its pixels.
        preferred: number of the folder to keep from that it is in, the first being 0; as many as there are for none.
        raw: True for the file of a camera's sensor, which is an original.
        key: name of the file as it was when it was read, see `file_key`.

    Example:
        >>> Photo("a.jpg", Path("/photos/a.jpg"), 640, 480, 51_200, 1.6e9).pixels
        307200
    """

    name: str
    path: Path
    width: int
    height: int
    bytes: int
    modified: float
    reference: bool = False
    pages: int = 1
    grey: bool = False
    lossless: bool = False
    transparent: bool = False
    extras: Extras = Extras()
    preferred: int = 0
    raw: bool = False
    key: str = ""

    @property
    def pixels(self) -> int:
        """Width times height."""
        return self.width * self.height

    @property
    def date(self) -> str:
        """Local time of the last change; empty for one that no calendar has, as network drives give."""
        try:
            return datetime.fromtimestamp(self.modified).isoformat(" ", "seconds")
        except (ValueError, OverflowError, OSError):
            return ""


class Colours(NamedTuple):
    """What the pixels of a file tell.

    Attributes:
        grey: True if none has a colour.
        transparent: True if any can be seen through.

    Example:
        >>> Colours(grey=True, transparent=False).grey
        True
    """

    grey: bool
    transparent: bool


class Member(NamedTuple):
    """A file of a group.

    Attributes:
        photo: the file.
        action: ``keep``, ``remove`` for a copy of the one that is kept, or ``look`` for what is a copy of a copy only.
        agreement: agreement with the one that is kept, 1 for equal bytes or itself.
        reason: reason of the action.
    """

    photo: Photo
    action: Action
    agreement: float
    reason: str


class Group(NamedTuple):
    """Files of one picture, the one to keep first."""

    members: list[Member]

    @property
    def removable(self) -> list[Photo]:
        """Files that are copies of the first."""
        return [member.photo for member in self.members if member.action == "remove"]


def file_key(path: Path) -> str:
    """Name a file as it is; another content has another name."""
    return f"{path}\n{stamp_of(path)}"


def is_as_it_was(photo: Photo) -> bool:
    """Tell whether what is read of a file now is of the file that was listed.

    Example:
        >>> is_as_it_was(Photo("gone.jpg", Path("gone.jpg"), 640, 480, 51_200, 1.6e9))
        False
    """
    return photo.key == file_key(photo.path)


def read_photo(name: str, path: Path, reference: bool = False) -> Photo:
    """Read size and date of a file of which nothing is decoded.

    Raises:
        OSError: it is no regular file.
        Exception: whatever Pillow raises for what is no picture.
    """
    check_readable(path)
    # Before all else: what is read of a file that another replaces meanwhile is of no file then.
    key, status = file_key(path), os.stat(path)
    with Image.open(path, formats=FORMATS) as image:
        width, height = image.size
        grey = image.mode in GREY_MODES
        lossless = image.format in LOSSLESS and image.mode != "P" and image.info.get("compression") not in LOSSY_TIFF
        lossless |= image.format == "WEBP" and _is_lossless_webp(path)
        try:
            # Pillow gives the size of a TIFF as it is shown.
            sideways = image.format != "TIFF" and image.getexif().get(ExifTags.Base.Orientation) in SIDEWAYS
        except Exception:  # without EXIF that can be read it is as it is
            sideways = False
        raw = is_raw(image, path)
        extras = extras_of(image)
        # What follows the first picture of an MPO, a JPEG of cameras, belongs to it: a depth or a preview.
        try:
            pages = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
        except Exception:  # there are others, which are damaged
            pages = 2
    if sideways:
        width, height = height, width
    size, modified = status.st_size, status.st_mtime
    photo = Photo(name, path, width, height, size, modified, reference, pages, grey, lossless)
    return photo._replace(extras=extras, raw=raw, key=key)


def _is_lossless_webp(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(12)
        # What else there is, as a profile of colours, lies before the picture.
        while len(head := file.read(8)) == 8:
            if head[:4] in (b"VP8L", b"VP8 "):
                return head[:4] == b"VP8L"
            size = int.from_bytes(head[4:], "little")
            file.seek(size + size % 2, os.SEEK_CUR)
    return False


def seen(photo: Photo, known: MutableMapping[str, Colours]) -> Photo:
    """Add what pixels tell, and whether another program keeps a file for this one.

    Args:
        photo: the file.
        known: what pixels of files tell, by their keys; that of this file is added.

    Example:
        >>> gone = Photo("gone.jpg", Path("gone.jpg"), 640, 480, 51_200, 1.6e9)
        >>> seen(gone, {}) == gone
        True
    """
    if has_sidecar(photo.path):
        photo = photo._replace(extras=photo.extras._replace(names=photo.extras.names | {SIDECAR}))
    colours = known.get(photo.key) or _colours_of(photo)
    if colours is None:
        return photo
    if is_as_it_was(photo):
        known[photo.key] = colours
    return photo._replace(grey=colours.grey, transparent=colours.transparent)


def _colours_of(photo: Photo) -> Colours | None:
    try:
        with Image.open(photo.path, formats=FORMATS) as image:
            image.thumbnail(LOOKED_AT)
            pixels = np.asarray(image.convert("RGBA" if image.has_transparency_data else "RGB")).astype(np.int16)
    except Exception:  # another file is in its place by now
        return None
    grey = photo.grey or np.ptp(pixels[..., :3], axis=2).max() <= GREYISH
    return Colours(bool(grey), bool((pixels[..., 3:] < 255).any()))


def advantage(photo: Photo, best: Photo) -> str | None:
    """Say what a file has that the one to keep lacks; None for nothing.

    Example:
        >>> large = Photo("a.jpg", Path("a.jpg"), 640, 480, 51_200, 1.6e9)
        >>> advantage(large, large._replace(width=64, height=48, reference=True))
        'larger than that in the reference: look at it'
    """
    if photo.pixels > best.pixels:
        return f"larger than {'that in the reference' if best.reference else 'the one to keep'}: look at it"
    if more := beside(photo, best):
        return more
    if best.grey and not photo.grey:
        return "in colour, and the larger one is grey: look at it"
    return "transparent, and the larger one is not: look at it" if photo.transparent and not best.transparent else None


def beside(photo: Photo, best: Photo) -> str | None:
    """Say what a file has beside its pixels that the one to keep lacks; None for nothing.

    Example:
        >>> one = Photo("a.jpg", Path("a.jpg"), 640, 480, 51_200, 1.6e9, extras=Extras(frozenset({"place"})))
        >>> beside(one, one._replace(extras=Extras()))
        'has a place, the one to keep none: look at it'
    """
    if lacking := sorted(photo.extras.names - best.extras.names):
        return f"has a {', a '.join(lacking)}, the one to keep none: look at it"
    if is_managed(photo.path):
        return "in the library of another program: look at it"
    # That of the one to keep may say something else.
    if SIDECAR in photo.extras.names:
        return f"has a {SIDECAR}: look at it"
    # Some programs leave out the part of a second.
    return None if best.extras.taken.startswith(photo.extras.taken) else "taken at another time: look at it"


def best_first(photos: Sequence[Photo]) -> tuple[list[Photo], str]:
    """Order files by what is worth keeping; say why the first is.

    Example:
        >>> small, large = (Photo(f"{side}.jpg", Path(f"{side}.jpg"), side, side, 9, 0.0) for side in (10, 20))
        >>> best, reason = best_first([small, large])
        >>> best[0].name, reason
        ('20.jpg', 'most pixels')
    """
    order = sorted(photos, key=lambda photo: (not photo.reference, *_worth(photo).values(), photo.name))
    best = order[0]
    others = [photo for photo in order[1:] if photo.reference == best.reference]
    if best.reference and not others:
        return order, "in the reference"
    first, second = _worth(best), _worth(others[0])
    return order, next((reason for reason in first if first[reason] != second[reason]), "all alike, first by name")


def _worth(photo: Photo) -> dict[str, float]:
    """What is least for the file to keep, by what is said where it decides."""
    names = photo.extras.names
    return {
        "in the folder to keep from": photo.preferred,
        "most pixels": -photo.pixels,
        "as many pixels, with date or place": -len(names & {DATE, PLACE}),
        "as many pixels, with more beside them": -len(names),
        "as many pixels, in colour": photo.grey,
        "as many pixels, transparent": not photo.transparent,
        "as many pixels, lossless": not photo.lossless,
        "as many pixels, most bytes": -photo.bytes,
        "as many pixels and bytes, oldest": photo.modified,
    }
