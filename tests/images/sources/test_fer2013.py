import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.fer2013 import CLASS_NAMES, read_fer2013

PIXELS = np.random.default_rng(0).integers(256, size=(10, 48, 48)).astype(np.uint8)
EMOTIONS = [6, 5, 4, 3, 2, 1, 0, 0, 3, 6]
USAGES = ["Training"] * 4 + ["PublicTest"] + ["Training"] * 3 + ["PrivateTest", "Training"]
EMOTIONS[4], EMOTIONS[9] = EMOTIONS[9], EMOTIONS[4]


def words(image):
    return " ".join(map(str, image.ravel()))


def write(path, rows, header="emotion,pixels,Usage"):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows), ""]))
    return path


def whole_rows():
    return list(zip(EMOTIONS, map(words, PIXELS), USAGES, strict=True))


def test_training_and_both_tests_are_read(tmp_path):
    collection = read_fer2013(write(tmp_path / "fer2013.csv", whole_rows()))
    assert collection.class_names == CLASS_NAMES
    training, query = (np.array([usage == "Training" for usage in USAGES]) == value for value in (True, False))
    for split, rows in {"training": training, "query": query}.items():
        np.testing.assert_array_equal(collection.splits[split].images[:, 0], PIXELS[rows])
        assert collection.splits[split].labels.tolist() == np.array(EMOTIONS)[rows].tolist()
    assert collection.splits["query"].ids == ["fer2013/00004", "fer2013/00008"]


def test_grey_is_repeated_for_three_channels(tmp_path):
    images = read_fer2013(write(tmp_path / "fer2013.csv", whole_rows()), channels=3).splits["query"].images
    np.testing.assert_array_equal(images, np.repeat(PIXELS[[4, 8], np.newaxis], 3, axis=1))


def test_columns_in_another_order_with_spaces_are_read(tmp_path):
    rows = [(emotion, f" {usage}", f" {text}") for emotion, text, usage in whole_rows()]
    collection = read_fer2013(write(tmp_path / "fer2013.csv", rows, "emotion, Usage, pixels"))
    assert len(collection.splits["training"]) == 8


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((7, words(PIXELS[0]), "Training"), "row 5: emotion is to be 0..6"),
        ((-1, words(PIXELS[0]), "Training"), "row 5: emotion is to be 0..6"),
        (("", words(PIXELS[0]), "Training"), "row 5: emotion is to be 0..6"),
        ((3, words(PIXELS[0])[:-4], "Training"), "row 5: .* 2304 numbers"),
        ((3, words(PIXELS[0]).replace("1", "1000", 1), "Training"), "row 5: .* numbers 0..255"),
        ((3, words(PIXELS[0]).replace("1", "x", 1), "Training"), "row 5: .*invalid literal"),
        ((3, words(PIXELS[0]), "Test"), "Usage 'Test'"),
    ],
)
def test_a_damaged_row_is_named(tmp_path, row, message):
    rows = whole_rows()
    rows[3] = row
    with pytest.raises(InputError, match=message) as caught:
        read_fer2013(write(tmp_path / "fer2013.csv", rows))
    assert "\n" not in str(caught.value) and "fer2013.csv" in str(caught.value)


def test_a_class_that_no_row_has_is_named(tmp_path):
    rows = [row for row in whole_rows() if row[0] != 1]
    with pytest.raises(InputError, match="class 'disgust' has no image in the split 'training'"):
        read_fer2013(write(tmp_path / "fer2013.csv", rows))


def test_a_csv_without_its_columns_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no column Usage"):
        read_fer2013(write(tmp_path / "fer2013.csv", [(0, "1 2", "")], "emotion,pixels,use"))
