"""Which files are images: known by their content, whatever their names."""

import logging
import os
import stat
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from PIL import Image, UnidentifiedImageError

from deephash_pipeline.common.folders import holds_index

logger = logging.getLogger(__name__)

FormatName = TypeVar("FormatName", str, Path)

with suppress(ImportError):
    import pillow_heif  # type: ignore[import-not-found, unused-ignore]

    pillow_heif.register_heif_opener()

Image.init()
# It comes at half of the limit; what is within is read, and what is beyond is named and left out.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
# Of what Pillow reads, formats with a signature for which it starts no other program.
FORMATS = tuple(
    form
    for form in ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "JPEG2000", "PPM", "AVIF", "HEIF")
    if form in Image.OPEN
)
FORMAT_NAMES = "PNG, JPEG, WebP, BMP, GIF, TIFF, JPEG 2000, PPM, AVIF or HEIC"
HEIC_SUFFIXES = {".heic", ".heif", ".hif"}
SUFFIXES = {suffix for suffix, form in Image.registered_extensions().items() if form in FORMATS} | HEIC_SUFFIXES
HEIC_REMEDY = "HEIC is read once `pip install pillow-heif` has been given"


def is_image(path: str | Path) -> bool:
    """Tell whether a file is an image, by its suffix or else by its content.

    What cannot be read counts as one, folders too, so that it is decoded, fails, and is reported.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     Image.new("L", (4, 4)).save(Path(folder, "scan"), "PNG")
        ...     _ = Path(folder, "notes.txt").write_text("no image")
        ...     is_image(Path(folder, "scan")), is_image(Path(folder, "notes.txt")), is_image(Path(folder, "missing"))
        (True, False, True)
    """
    if Path(path).suffix.lower() in SUFFIXES:
        return True
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            return stat.S_ISDIR(mode) and not holds_index(path)
        with Image.open(path, formats=FORMATS):
            return True
    except UnidentifiedImageError:
        return False
    except Exception:  # no content to be read, or a damaged one that makes Pillow's readers raise anything
        return True


def lacks_reader(path: str | Path) -> bool:
    """Tell whether a file is HEIC, which is read where pillow-heif is installed, and it is not.

    Example:
        >>> lacks_reader("1.png")
        False
    """
    return Path(path).suffix.lower() in HEIC_SUFFIXES and "HEIF" not in FORMATS


def check_readable(path: str | Path) -> None:
    """Raise OSError for a path that is no regular file: to open a pipe would wait for its writer, for ever."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        os.scandir(path).close()
    if not stat.S_ISREG(mode):
        raise OSError("it is no regular file")


def only_images(names: Iterable[FormatName], wanted: Callable[[FormatName], object] = is_image) -> Iterator[FormatName]:
    """Yield names of images; at the end say in a line how many others there were, of which kinds, and name the first.

    Args:
        names: file names.
        wanted: function that says of a name whether to yield it.
    """
    kinds: Counter[str] = Counter()
    first = ""
    for name in names:
        if wanted(name):
            yield name
        else:
            kinds[Path(name).suffix or "no suffix"] += 1
            first = first or ascii(str(name))[1:-1]
    if kinds:
        counts = ascii(", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))[1:-1]
        message = "files that are passed over, being no %s: %d (%s), such as %s"
        logger.warning(message, FORMAT_NAMES, kinds.total(), counts, first)
