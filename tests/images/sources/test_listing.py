import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.images.sources.collection import by_class, collect, natural_order


def test_rows_are_in_the_order_of_classes(tmp_path):
    found = {"training": by_class([("2", ["b"]), ("1", ["b"]), ("3", ["a"])]), "query": [("4", ["b"])]}
    collection = collect(found, ImageFiles(tmp_path, [], 8, 3))
    assert collection.class_names == ["a", "b"]
    assert collection.splits["training"].ids == ["3", "2", "1"]
    assert collection.splits["training"].labels.tolist() == [0, 1, 1]
    assert collection.splits["query"].labels.tolist() == [1]
    assert collection.splits["query"].images == ImageFiles(tmp_path, [], 8, 3).of(["4"])


def test_numbers_in_names_are_sorted_by_value():
    assert sorted(["10", "2", "0"], key=natural_order) == ["0", "2", "10"]
    assert sorted(["class 10", "abbey", "class 9", "5"], key=natural_order) == ["5", "abbey", "class 9", "class 10"]
    for names in (["1", "01", "001"], ["001", "01", "1"]):
        assert sorted(names, key=natural_order) == ["001", "01", "1"]


@pytest.mark.parametrize("split", ["query", "validation"])
def test_a_class_without_images_to_train_from_is_named(tmp_path, split):
    found = {
        "training": [("1", ["a"]), ("2", ["b"])],
        "validation": [],
        "query": [],
        split: [("3", ["c"]), ("4", ["d"])],
    }
    with pytest.raises(InputError, match="class 'c' has no image in the split 'training' \\(2 such"):
        collect(found, ImageFiles(tmp_path, [], 8, 3))
