from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.errors import InputError
from deephash_pipeline.images import collection
from deephash_pipeline.images.folder import read_folder

SPLITS = {"training": "train", "query": "test"}


def paint(path: Path, colour: int | tuple[int, int, int], size: tuple[int, int] = (6, 4)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L" if isinstance(colour, int) else "RGB", size, colour).save(path, lossless=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for split in ("train", "test"):
        for value, name in enumerate(("cat", "dog")):
            for row in range(2):
                paint(tmp_path / split / name / f"{row}.png", 100 * value + row)
    return tmp_path


def test_images_come_in_the_order_of_their_paths_with_the_labels_of_their_folders(root: Path) -> None:
    held = read_folder(root, SPLITS, 4, 1)
    assert held.class_names == ["cat", "dog"]
    assert held.splits["training"].ids == ["train/cat/0.png", "train/cat/1.png", "train/dog/0.png", "train/dog/1.png"]
    assert held.splits["query"].ids[0] == "test/cat/0.png"
    assert held.splits["training"].labels.tolist() == [0, 0, 1, 1]
    assert held.splits["training"].images.shape == (4, 1, 4, 4)
    assert held.splits["training"].images[:, 0, 0, 0].tolist() == [0, 1, 100, 101]


def test_every_format_is_read_at_any_depth_and_other_files_are_passed_over(root: Path) -> None:
    for suffix in ("JPG", "jpeg", "webp", "bmp"):
        paint(root / "train" / "cat" / "deep" / "deeper" / f"x.{suffix}", 50)
    (root / "train" / "cat" / "notes.txt").write_text("not an image")
    (root / "train" / "cat" / "._0.png").write_bytes(b"what an archive of another system leaves behind")
    (root / "train" / ".cache").mkdir()
    training = read_folder(root, SPLITS, 4, 1).splits["training"]
    assert len(training) == 8
    assert set(training.images[training.labels == 0].ravel().tolist()) == {0, 1, 50}


def test_grey_becomes_colour_and_colour_grey_as_asked(root: Path) -> None:
    paint(root / "train" / "cat" / "red.png", (255, 0, 0))
    grey, colour = (read_folder(root, SPLITS, 2, channels).splits["training"] for channels in (1, 3))
    row = colour.ids.index("train/cat/red.png")
    assert grey.images.shape == (5, 1, 2, 2) and colour.images.shape == (5, 3, 2, 2)
    assert colour.images[row, :, 0, 0].tolist() == [255, 0, 0]
    assert grey.images[row, 0, 0, 0] == 76
    assert colour.images[row + 1, :, 0, 0].tolist() == [100, 100, 100]


def test_sixteen_bit_grey_is_scaled_not_clipped(root: Path) -> None:
    Image.fromarray(np.full((4, 4), 128 * 256, dtype=np.uint16)).save(root / "train" / "cat" / "0.png")
    assert read_folder(root, SPLITS, 4, 1).splits["training"].images[0].max() == 128


def test_a_photograph_is_turned_as_its_camera_was_held(root: Path) -> None:
    upright = np.zeros((4, 4), dtype=np.uint8)
    upright[0] = 255
    turned = Image.fromarray(np.rot90(upright))
    tag = turned.getexif()
    tag[0x0112] = 6
    turned.save(root / "train" / "cat" / "0.png", exif=tag)
    np.testing.assert_array_equal(read_folder(root, SPLITS, 4, 1).splits["training"].images[0, 0], upright)


def test_the_folder_of_the_image_can_be_the_class_as_in_sun397(tmp_path: Path) -> None:
    for place in ("a/abbey", "o/office/home", "o/office/outdoor"):
        paint(tmp_path / place / "sun_1.jpg", 9)
    held = read_folder(tmp_path, {"all": "."}, 4, 3, class_folder="parent")
    assert held.class_names == ["a/abbey", "o/office/home", "o/office/outdoor"]
    assert held.splits["all"].ids[1] == "o/office/home/sun_1.jpg"


def test_a_benchmark_larger_than_the_memory_is_decoded_into_a_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = read_folder(root, SPLITS, 4, 3).splits["training"].images
    monkeypatch.setattr(collection, "LARGEST_ARRAY_IN_MEMORY", 0)
    on_disk = read_folder(root, SPLITS, 4, 3).splits["training"].images
    assert isinstance(on_disk, np.memmap)
    np.testing.assert_array_equal(on_disk, in_memory)


@pytest.mark.parametrize(
    "break_it", [lambda content: content[: len(content) // 2], lambda _: b"", lambda _: b"not an image"]
)
def test_a_broken_image_is_named(root: Path, break_it: Callable[[bytes], bytes]) -> None:
    broken = root / "train" / "dog" / "1.png"
    paint(broken, 7, size=(64, 64))
    broken.write_bytes(break_it(broken.read_bytes()))
    with pytest.raises(InputError, match="cannot be read as an image") as caught:
        read_folder(root, SPLITS, 4, 1)
    assert str(broken) in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_split_folder_is_named(root: Path) -> None:
    with pytest.raises(InputError, match="evaluation is missing"):
        read_folder(root, {"training": "train", "query": "evaluation"}, 4, 1)


def test_a_split_without_images_is_named(root: Path) -> None:
    (root / "empty" / "cat").mkdir(parents=True)
    with pytest.raises(InputError, match="empty holds no image"):
        read_folder(root, {"training": "train", "query": "empty"}, 4, 1)


def test_a_class_in_one_split_only_is_named_with_the_split_that_lacks_it(root: Path) -> None:
    paint(root / "test" / "emu" / "0.png", 1)
    with pytest.raises(InputError, match="'emu' is in the split 'query' but not in 'training'"):
        read_folder(root, SPLITS, 4, 1)


def test_an_empty_class_folder_is_named(root: Path) -> None:
    for split in ("train", "test"):
        (root / split / "emu").mkdir()
    with pytest.raises(InputError, match="class 'emu' has no image in the split 'training'"):
        read_folder(root, SPLITS, 4, 1)


def test_an_image_outside_all_classes_is_named(root: Path) -> None:
    paint(root / "train" / "stray.png", 1)
    with pytest.raises(InputError, match=r"stray\.png lies in no class"):
        read_folder(root, SPLITS, 4, 1)
