"""Data of a file beside its pixels: date and place, words that somebody wrote, a video."""

from pathlib import Path
from typing import NamedTuple

from PIL import ExifTags, Image

SIDECARS = (".xmp", ".aae", ".json", ".yml", ".pp3", ".dop", ".mov", ".mp4", ".m4v", ".wav", ".thm")
"""Of files of the same name: edits and words of other programs, the video of a live photo, a spoken note."""
WORDS = (b"dc:subject", b"dc:description", b"dc:title", b"xmp:Rating", b"xmp:Label", b"mwg-rs:Regions")
MOVING = (b"MotionPhoto", b"MicroVideo", b"hdrgm:Version", b"GDepth:")
TEXTS = (ExifTags.Base.ImageDescription, 0x4746, 0x9C9B, 0x9C9C, 0x9C9E, 0x9C9F)
"""EXIF's description, rating, and title, comment, keywords and subject of Windows."""
CAMERA = (ExifTags.Base.Make, ExifTags.Base.Model)
LIBRARIES = (".photoslibrary", ".photolibrary", ".aplibrary", ".migratedphotolibrary", ".lrlibrary", ".cosessiondb")
"""Of folders that a program keeps with a database of its own: it would miss a file."""
DATE, PLACE = "date", "place"
SIDECAR = "file of the same name beside it"


class Extras(NamedTuple):
    """What a file has beside its pixels.

    Attributes:
        names: what there is, by names.
        taken: when it was taken, as EXIF says to the part of a second; empty if it does not.
        camera: maker and model of the camera, as EXIF says; empty if it does not.

    Example:
        >>> Extras(frozenset({"date"}), "2019:05:04 12:00:00.17").taken[:10]
        '2019:05:04'
    """

    names: frozenset[str] = frozenset()
    taken: str = ""
    camera: str = ""


def extras_of(image: Image.Image) -> Extras:
    """Read what an open picture, whose pixels are not yet read, says beside them."""
    names = set()
    taken, camera, has_place, has_words = _of_exif(image)
    packet = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or b""
    xmp = packet.encode() if isinstance(packet, str) else bytes(packet)
    if taken:
        names.add(DATE)
    if has_place:
        names.add(PLACE)
    # 8BIM is Photoshop's block, in which IPTC has keywords and captions.
    if has_words or any(word in xmp for word in WORDS) or 0x0404 in (image.info.get("photoshop") or {}):
        names.add("title, keywords or rating")
    if image.format == "MPO" or any(word in xmp for word in MOVING):
        names.add("video, depth or second picture in it")
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PPM", "PNG")):
        names.add("depth of 16 bits")
    return Extras(frozenset(names), taken, camera)


def is_managed(path: Path) -> bool:
    """Tell whether a file lies in the library of another program.

    Example:
        >>> is_managed(Path("/Users/ada/Photos.photoslibrary/originals/1.heic")), is_managed(Path("/photos/1.heic"))
        (True, False)
    """
    return any(folder.suffix.lower() in LIBRARIES for folder in path.parents)


def _of_exif(image: Image.Image) -> tuple[str, str, bool, bool]:
    try:
        exif = image.getexif()
        shot = exif.get_ifd(ExifTags.IFD.Exif)
        date = shot.get(ExifTags.Base.DateTimeOriginal) or ""
        part = shot.get(ExifTags.Base.SubsecTimeOriginal) or ""
        taken = ".".join(str(text).strip("\0 ") for text in (date, part) if text)
        place = ExifTags.GPS.GPSLatitude in exif.get_ifd(ExifTags.IFD.GPSInfo)
        maker, model = (" ".join(str(exif.get(tag) or "").strip("\0 ").split()) for tag in CAMERA)
        # Most models begin with their makers.
        camera = model if model.lower().startswith(maker.lower()) else f"{maker} {model}".strip()
        return taken, camera, place, any(exif.get(tag) for tag in TEXTS)
    except Exception:  # without EXIF that can be read it says nothing
        return "", "", False, False


def has_sidecar(path: Path) -> bool:
    """Tell whether another program keeps a file for this one, by whole name or stem."""
    names = (path.name, path.stem)
    suffixes = {case for suffix in SIDECARS for case in (suffix, suffix.upper())}
    return any(path.with_name(name + suffix).exists() for name in names for suffix in suffixes)
