from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.batches import SkippedImage, image_batches
from deephash_pipeline.images.decoding.ingestion import decode_splits
from deephash_pipeline.images.sources.registry import parse_source

RANDOM = np.random.default_rng(0)


def pixels(*shape):
    return RANDOM.integers(256, size=shape).astype(np.uint8)


def joined(batches):
    return np.concatenate([batch.pixels for batch in batches])


@pytest.fixture
def folder(tmp_path):
    """Ten images of many formats, modes and sizes in the two splits of a benchmark."""
    kinds = [("png", "RGB"), ("png", "P"), ("jpg", "CMYK"), ("webp", "RGBA"), ("bmp", "1")]
    for split in ("train", "test"):
        for row, (suffix, mode) in enumerate(kinds):
            path = tmp_path / split / ("cat" if row % 2 else "dog") / f"{row}.{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels(30 + row, 40, 3)).convert(mode).save(path)
    # Large enough to be shrunk while it is decoded, and taken with the camera on its side.
    large = Image.fromarray(pixels(60, 80, 3)).resize((1600, 1200))
    exif = large.getexif()
    exif[0x0112] = 6
    large.save(tmp_path / "train" / "cat" / "large.jpg", exif=exif)
    return tmp_path


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("form", [str, Path, Image.open], ids=["str", "Path", "Pillow"])
def test_pixels_are_those_that_the_ingestion_of_the_same_folder_stores(folder, channels, form):
    source = parse_source({"kind": "folder", "image_size": 12, "channels": channels})
    collection = source.read(folder)
    stored, broken = decode_splits(collection.splits, collection.class_names, 0, folder / "decoded")
    assert not broken
    for split in ("training", "query"):
        given = [form(str(folder / name)) for name in stored[split].ids]
        batches = list(image_batches(given, (channels, 12, 12), batch_size=2))
        np.testing.assert_array_equal(joined(iter(batches)), stored[split].images)
        assert np.concatenate([batch.rows for batch in batches]).tolist() == list(range(len(given)))


def test_an_image_of_pillow_is_left_as_it_is(folder):
    with Image.open(folder / "train" / "cat" / "large.jpg") as image:
        for _ in range(2):
            list(image_batches(image, (3, 8, 8)))
            assert image.size == (1600, 1200)
            image.load()
        assert image.getexif()[0x0112] == 6


def test_one_image_of_pillow_may_be_given_many_times_over(tmp_path):
    Image.fromarray(pixels(50, 50, 3)).save(tmp_path / "a.png")
    [once] = image_batches(tmp_path / "a.png", (3, 8, 8))
    with Image.open(tmp_path / "a.png") as image:
        [often] = image_batches([image] * 20, (3, 8, 8))
    np.testing.assert_array_equal(often.pixels, np.repeat(once.pixels, 20, axis=0))


@pytest.mark.parametrize("shape", [(5, 3, 8, 6), (5, 8, 6, 3), (5, 1, 8, 6), (5, 8, 6, 1), (5, 8, 6)])
def test_arrays_that_fit_pass_bit_for_bit(shape):
    images = pixels(*shape)
    channels = 3 if 3 in shape[1:] else 1
    expected = images.transpose(0, 3, 1, 2) if shape[-1] in (1, 3) else images.reshape(5, channels, 8, 6)
    for size in ((8, 6), ()):
        for given in (images, list(images), iter(images), torch.from_numpy(images)):
            np.testing.assert_array_equal(joined(image_batches(given, (channels, *size), batch_size=2)), expected)


def test_arrays_that_fit_are_neither_copied_nor_read_at_once():
    images = pixels(5, 1, 8, 6)
    assert all(np.shares_memory(batch.pixels, images) for batch in image_batches(images, (1, 8, 6), batch_size=2))


@pytest.mark.parametrize("shape", [(5, 3, 8, 6), (5, 8, 6, 3), (5, 8, 6)])
@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_that_do_not_fit_are_converted_as_the_files_with_their_pixels(tmp_path, shape, channels):
    images = pixels(*shape)
    for row, image in enumerate(images):
        of_file = image.transpose(1, 2, 0) if shape[1] == 3 else image
        Image.fromarray(of_file).save(tmp_path / f"{row}.png")
    paths = [tmp_path / f"{row}.png" for row in range(5)]
    np.testing.assert_array_equal(
        joined(image_batches(images, (channels, 4, 9))), joined(image_batches(paths, (channels, 4, 9)))
    )


@pytest.mark.parametrize("shape", [(8, 6), (8, 6, 1), (8, 6, 3), (1, 8, 6)])
def test_one_image_is_a_batch_of_one(shape):
    image = pixels(*shape)
    channels = 3 if shape[-1] == 3 else 1
    for given in (image, [image], iter([image])):
        [batch] = image_batches(given, (channels, 8, 6))
        expected = image.transpose(2, 0, 1) if shape[-1] in (1, 3) else image
        np.testing.assert_array_equal(batch.pixels, expected.reshape(1, channels, 8, 6))


def test_an_iterable_may_mix_all_forms(tmp_path):
    grey = Image.new("L", (4, 4), 9)
    grey.save(tmp_path / "a.png")
    image = np.full((4, 4), 9, dtype=np.uint8)
    given = [tmp_path / "a.png", str(tmp_path / "a.png"), grey, image, image[np.newaxis], np.full((2, 1, 4, 4), image)]
    assert joined(image_batches(given, (3, 2, 2))).tolist() == np.full((7, 3, 2, 2), 9).tolist()
    table = pd.DataFrame({"path": [str(tmp_path / "a.png")] * 3})
    assert len(joined(image_batches(table["path"], (3, 2, 2)))) == 3


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_an_array_with_alpha_is_the_picture_that_pillow_has(mode):
    picture = Image.fromarray(pixels(8, 6, 4)).convert(mode)
    array = np.asarray(picture)
    [expected] = image_batches(picture, (3, 5, 5))
    for given in (array, [array], array[np.newaxis]):
        np.testing.assert_array_equal(joined(image_batches(given, (3, 5, 5))), expected.pixels)


def test_where_two_axes_could_be_channels_it_is_the_one_of_the_size_asked_for():
    images = pixels(2, 3, 5, 1)
    [colour] = image_batches(images, (3, 5, 1))
    np.testing.assert_array_equal(colour.pixels, images)
    [grey] = image_batches(images, (1, 3, 5))
    np.testing.assert_array_equal(grey.pixels, images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("images", "fault"),
    [
        (pixels(3, 8, 8), r"\(3, 8, 8\) is three grey images or one in colour: give it as \(3, 1, 8, 8\) or \(1, 3"),
        (pixels(5, 3, 8, 3), "the axis of the channels is not clear"),
        (pixels(5, 4, 8, 8), "the axis of the channels is not clear"),
        ([pixels(5, 8, 8)], r"item 0 of the images is of shape \(5, 8, 8\): .*grey ones as \(n, 1, H, W\)"),
        (np.zeros((5, 8, 8)), r"images: float64 of shape \(5, 8, 8\); give uint8"),
        ([pixels(8, 8), np.zeros((8, 8), dtype=bool)], "item 1 of the images: bool of shape"),
        (pixels(5, 1, 0, 8), "uint8 of shape"),
        (pixels(0, 8), "uint8 of shape"),
        (pixels(8), "uint8 of shape"),
        (
            [(pixels(8, 8), 3)],
            "item 0 of the images is of type tuple: give paths, .*, images of Pillow or uint8 arrays",
        ),
        (None, "images are of type NoneType"),
        ([pixels(8, 8), pixels(8, 9)], r"of different sizes, such as \[\(8, 8\), \(8, 9\)\] pixels: give a size to"),
    ],
)
def test_what_is_no_image_is_refused_in_one_line(images, fault):
    with pytest.raises(InputError, match=fault) as caught:
        list(image_batches(images, (3,)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [{"image_shape": (2, 8, 8)}, {"image_shape": (3, 8)}, {"batch_size": 0}, {"batch_size": 2.5}, {"errors": "ignore"}],
)
def test_arguments_that_make_no_sense_are_refused_before_anything_is_read(wrong):
    with pytest.raises(InputError, match="with 1 or 3 channels, batch_size a whole number from 1 on and errors 'raise"):
        image_batches(["missing.png"], **{"image_shape": (3, 8, 8), **wrong})


def test_no_image_is_no_batch():
    for none in ([], iter([]), pixels(0, 1, 8, 8), pixels(0, 8, 8)):
        assert list(image_batches(none, (1, 8, 8))) == []


def test_a_broken_image_is_named(tmp_path):
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"b\.png cannot be decoded \(cannot identify .*\): mend it, or leave"):
        list(image_batches([pixels(8, 8), tmp_path / "b.png"], (1, 8, 8)))
    with pytest.raises(InputError, match=r"image 1 cannot be decoded \(numbers of 32 bits \(mode F\)"):
        list(image_batches([pixels(8, 8), Image.new("F", (4, 4))], (1, 8, 8)))


def test_broken_images_are_skipped_and_reported_where_that_is_asked_for(tmp_path):
    (tmp_path / "b.png").write_bytes(b"no image")
    images = [pixels(8, 8), tmp_path / "b.png", pixels(8, 8), tmp_path / "b.png", tmp_path / "c.png", pixels(8, 8)]
    first, second, third = image_batches(images, (1, 8, 8), batch_size=2, errors="skip")
    assert [batch.rows.tolist() for batch in (first, second, third)] == [[0], [2], [5]]
    np.testing.assert_array_equal(second.pixels[0, 0], images[2])
    assert [entry[:2] for entry in third.skipped] == [(4, str(tmp_path / "c.png"))]
    assert isinstance(first.skipped[0], SkippedImage) and "cannot identify image file" in first.skipped[0].reason
    [none] = image_batches([tmp_path / "b.png"], (1, 8, 8), errors="skip")
    assert none.pixels.shape == (0, 1, 8, 8) and none.pixels.dtype == np.uint8


def test_of_a_generator_two_batches_are_taken_at_a_time():
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield pixels(9, 9)

    batches = image_batches(endless(), (1, 8, 8), batch_size=4)
    for number in range(1, 6):
        assert len(next(batches).pixels) == 4
        assert taken <= 4 * (number + 1)
    batches.close()


def test_an_error_of_the_iterable_is_passed_on():
    def failing():
        yield pixels(9, 9)
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        list(image_batches(failing(), (1, 8, 8)))


def test_rows_of_an_array_go_on_from_batch_to_batch():
    batches = image_batches(pixels(5, 3, 12, 12), (3, 12, 12), batch_size=2)
    assert [batch.rows.tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
