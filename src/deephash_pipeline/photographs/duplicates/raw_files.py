"""Files of a camera's sensor: originals, of which Pillow reads a small preview."""

from pathlib import Path

from PIL import Image, TiffImagePlugin

RAW_ENDINGS = """
3fr arw cap cr2 cr3 crw dcr dng eip erf fff gpr iiq k25 kdc mdc mef mos mrw nef nrw orf ori pef ptx raf raw rw2 rwl sr2
srf srw x3f
"""
RAW_SUFFIXES = frozenset(f".{name}" for name in RAW_ENDINGS.split())
DNG_VERSION, KIND, DIRECTORIES, LAYOUT = 50706, 254, 330, 262
PREVIEW, OF_SENSOR = 1, (32803, 34892)


def is_raw(image: Image.Image, path: Path) -> bool:
    """Tell whether an open picture is of a raw file, by its suffix or what it says of itself.

    Example:
        >>> is_raw(Image.new("L", (2, 2)), Path("DSC_1.NEF")), is_raw(Image.new("L", (2, 2)), Path("scan.tif"))
        (True, False)
    """
    if path.suffix.lower() in RAW_SUFFIXES:
        return True
    if not isinstance(image, TiffImagePlugin.TiffImageFile):
        return False
    tags = image.tag_v2
    preview = tags.get(KIND) == PREVIEW and DIRECTORIES in tags
    return preview or DNG_VERSION in tags or tags.get(LAYOUT) in OF_SENSOR
