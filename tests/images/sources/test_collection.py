from dataclasses import replace

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet


def image_set(labels, prefix="a"):
    images = np.arange(len(labels) * 8, dtype=np.uint8).reshape(len(labels), 2, 2, 2)
    return ImageSet(images, np.array(labels, dtype=np.int64), [f"{prefix}{row}" for row in range(len(labels))])


@pytest.mark.parametrize("field", ["labels", "ids"])
def test_a_count_that_differs_is_refused_with_the_split(field):
    whole = image_set([0, 1, 1])
    short = replace(whole, **{field: getattr(whole, field)[:2]})
    with pytest.raises(InputError, match=r"'training' has images of uint8 \(3, 2, 2, 2\), labels .*: give .* n ids"):
        ImageCollection({"training": short}, ["cat", "dog"])


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_outside_the_classes_is_refused(label):
    with pytest.raises(InputError, match=rf"'query' has .* from .*{label} .*below 2, the number of classes"):
        ImageCollection({"training": image_set([0, 1]), "query": image_set([label], "b")}, ["cat", "dog"])


@pytest.mark.parametrize("split", ["training", "all"])
def test_a_class_without_images_to_train_from_is_named(split):
    with pytest.raises(InputError, match=f"'dog' has no image in the split '{split}'"):
        ImageCollection({split: image_set([0, 0])}, ["cat", "dog"])


def test_a_class_without_queries_is_accepted():
    ImageCollection({"training": image_set([0, 1]), "query": image_set([0], "b")}, ["cat", "dog"])


def test_an_id_in_two_splits_is_named():
    with pytest.raises(InputError, match="'a0' occurs twice in training, query"):
        ImageCollection({"training": image_set([0, 1]), "query": image_set([0])}, ["cat", "dog"])


def test_images_that_are_not_bytes_are_refused():
    scaled = image_set([0, 1])
    with pytest.raises(InputError, match="float64"):
        ImageCollection({"training": replace(scaled, images=scaled.images / 255)}, ["cat", "dog"])


def test_labels_that_are_not_int64_are_refused():
    narrow = image_set([0, 1])
    with pytest.raises(InputError, match=r"'training' has .* labels of uint8 \(2,\)"):
        ImageCollection({"training": replace(narrow, labels=narrow.labels.astype(np.uint8))}, ["cat", "dog"])


def test_first_and_after_part_a_set_without_copying_it():
    whole = image_set([0, 1, 1])
    head, tail = whole.first(1), whole.after(1)
    assert head.ids + tail.ids == whole.ids
    np.testing.assert_array_equal(np.concatenate([head.labels, tail.labels]), whole.labels)
    assert np.shares_memory(head.images, whole.images) and np.shares_memory(tail.images, whole.images)


def test_take_keeps_images_labels_and_ids_together():
    whole = image_set([0, 1, 2, 3, 4, 5])
    chosen = whole.take(np.array([5, 0, 3, 1, 2]))
    np.testing.assert_array_equal(chosen.images, whole.images[[5, 0, 3, 1, 2]])
    assert chosen.labels.tolist() == [5, 0, 3, 1, 2]
    assert chosen.ids == ["a5", "a0", "a3", "a1", "a2"]


def test_rows_of_files_are_chosen_as_of_an_array(tmp_path):
    names = [f"{row}.png" for row in range(6)]
    whole = ImageSet(ImageFiles(tmp_path, names, 4, 3), np.arange(6), names)
    for chosen in (whole.take(np.array([5, 0, 3])).first(2), whole.after(3).take(np.array([2])), whole.first(0)):
        assert isinstance(chosen.images, ImageFiles)
        assert chosen.images.names == chosen.ids == [f"{label}.png" for label in chosen.labels]
        assert chosen.images.shape == (len(chosen), 3, 4, 4)


@pytest.mark.parametrize("split", ["training", "all"])
def test_one_class_is_not_enough(split):
    with pytest.raises(InputError, match=r"one class only, 'cat': retrieval needs two classes"):
        ImageCollection({split: image_set([0, 0])}, ["cat"])
