"""A tree of image files, `<root>/<split>/<class>/**`: CIFAR-10, Kaggle-Face, SUN397 and a user's own images."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.collection import ImageCollection, ImageSet, allocate_images

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp"}
FORMATS = "PNG, JPEG, WebP or BMP"
MODES = {1: "L", 3: "RGB"}

ClassFolder = Literal["top", "parent"]


def read_folder(
    root: Path, splits: dict[str, str], image_size: int, channels: Literal[1, 3], class_folder: ClassFolder = "top"
) -> ImageCollection:
    """Decode a tree of PNG, JPEG, WebP and BMP files, in the order of their paths.

    Args:
        root: folder of the raw files; ids are the paths below it.
        splits: split name -> its folder below `root`; {"all": "."} for a tree without splits.
        image_size: height and width in pixels; other images are resized bilinearly, their aspect given up as in Caffe's
            `convert_imageset`.
        channels: 1 for grey, 3 for colour; images of the other mode are converted.
        class_folder: the folder that names a class: "top" of the split, or "parent" of the image as in SUN397, where
            `a/abbey` and `o/office/home` are classes.

    Raises:
        InputError: if a folder is missing or holds no image, an image is broken or in no class, or the splits differ in
            their classes.
    """
    files = {split: _image_files(root / folder, class_folder) for split, folder in splits.items()}
    class_names = _common_classes(files, root)
    collection = {}
    for split, classes in files.items():
        paths = [path for name in class_names for path in classes[name]]
        labels = np.repeat(np.arange(len(class_names)), [len(classes[name]) for name in class_names]).astype(np.int64)
        ids = [path.relative_to(root).as_posix() for path in paths]
        collection[split] = ImageSet(_decode_all(paths, image_size, channels), labels, ids)
    return ImageCollection(collection, class_names)


def _image_files(folder: Path, class_folder: ClassFolder) -> dict[str, list[Path]]:
    """Return the sorted image files of one split by class; hidden files and other kinds of file are passed over."""
    if not folder.is_dir():
        raise InputError(f"the folder {folder} is missing: fill {folder}/<class>/, or mend `splits` of the source.")
    visible = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    classes: dict[str, list[Path]] = {}
    for entry in visible:
        if entry.is_dir():
            found = sorted(path for path in entry.rglob("*") if _is_image(path))
            if class_folder == "top":
                classes[entry.name] = found
            for path in found if class_folder == "parent" else ():
                classes.setdefault(path.parent.relative_to(folder).as_posix(), []).append(path)
        elif _is_image(entry):
            raise InputError(f"{entry} lies in no class: move it into {folder}/<class>/.")
    if not any(classes.values()):
        raise InputError(f"{folder} holds no image: put {FORMATS} files into {folder}/<class>/.")
    return classes


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()


def _common_classes(files: dict[str, dict[str, list[Path]]], root: Path) -> list[str]:
    everywhere = set.intersection(*(set(classes) for classes in files.values()))
    for split, classes in files.items():
        if strange := sorted(set(classes) - everywhere):
            lacking = [other for other in files if strange[0] not in files[other]]
            raise InputError(
                f"the class {strange[0]!r} is in the split {split!r} but not in {', '.join(map(repr, lacking))} "
                f"under {root}: give all splits the same class folders."
            )
    return sorted(everywhere)


def _decode_all(paths: list[Path], image_size: int, channels: Literal[1, 3]) -> NDArray[np.uint8]:
    images = allocate_images((len(paths), channels, image_size, image_size))

    def decode_into_place(row: int) -> None:
        images[row] = _decode(paths[row], image_size, channels)

    # Pillow decodes outside the interpreter's lock, and every thread writes rows of its own.
    with ThreadPoolExecutor() as pool:
        for _ in pool.map(decode_into_place, range(len(paths))):
            pass
    return images


def _decode(path: Path, image_size: int, channels: Literal[1, 3]) -> NDArray[np.uint8]:
    """Return one image as uint8 of shape (channels, image_size, image_size)."""
    try:
        with Image.open(path) as file:
            image = ImageOps.exif_transpose(file)
            if image.mode.startswith("I;16"):
                # Pillow clips 16-bit grey at 255 instead of scaling it, which leaves a white image.
                image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
            image = image.convert(MODES[channels])
            if image.size != (image_size, image_size):
                image = image.resize((image_size, image_size), Image.Resampling.BILINEAR)
            pixels = np.asarray(image, dtype=np.uint8)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{path} cannot be read as an image ({error}): replace or remove it.") from error
    return pixels.reshape(image_size, image_size, channels).transpose(2, 0, 1)
