from dataclasses import replace

import numpy as np
import pytest

from deephash_pipeline.errors import InputError
from deephash_pipeline.images import collection
from deephash_pipeline.images.collection import ImageCollection, ImageSet, allocate_images


def image_set(labels: list[int], prefix: str = "a") -> ImageSet:
    images = np.arange(len(labels) * 8, dtype=np.uint8).reshape(len(labels), 2, 2, 2)
    return ImageSet(images, np.array(labels, dtype=np.int64), [f"{prefix}{row}" for row in range(len(labels))])


def test_a_sound_collection_is_accepted() -> None:
    held = ImageCollection({"training": image_set([0, 1]), "query": image_set([1], "b")}, ["cat", "dog"])
    assert len(held.splits["training"]) == 2


@pytest.mark.parametrize("field", ["labels", "ids"])
def test_a_count_that_differs_is_named_with_the_split_and_both_counts(field: str) -> None:
    whole = image_set([0, 1, 1])
    short = replace(whole, **{field: getattr(whole, field)[:2]})
    with pytest.raises(InputError, match=f"'training' has 3 images but 2 {field}"):
        ImageCollection({"training": short}, ["cat", "dog"])


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_outside_the_classes_is_refused(label: int) -> None:
    with pytest.raises(InputError, match=r"'query' run from .*2\s*classes"):
        ImageCollection({"training": image_set([0, 1]), "query": image_set([label], "b")}, ["cat", "dog"])


@pytest.mark.parametrize("split", ["training", "all"])
def test_a_class_without_images_to_train_from_is_named(split: str) -> None:
    with pytest.raises(InputError, match=f"'dog' has no image in the split '{split}'"):
        ImageCollection({split: image_set([0, 0])}, ["cat", "dog"])


def test_a_class_without_queries_is_accepted() -> None:
    ImageCollection({"training": image_set([0, 1]), "query": image_set([0], "b")}, ["cat", "dog"])


def test_an_id_in_two_splits_is_named() -> None:
    with pytest.raises(InputError, match="'a0' occurs twice in training, query"):
        ImageCollection({"training": image_set([0, 1]), "query": image_set([0])}, ["cat", "dog"])


def test_images_that_are_not_bytes_are_refused() -> None:
    scaled = image_set([0, 1])
    with pytest.raises(InputError, match="float64"):
        ImageCollection({"training": replace(scaled, images=scaled.images / 255)}, ["cat", "dog"])  # type: ignore[arg-type]


def test_labels_that_are_not_int64_are_refused() -> None:
    narrow = image_set([0, 1])
    with pytest.raises(InputError, match="labels of the split 'training' are uint8"):
        ImageCollection({"training": replace(narrow, labels=narrow.labels.astype(np.uint8))}, ["cat", "dog"])


def test_first_and_after_part_a_set_without_copying_it() -> None:
    whole = image_set([0, 1, 1])
    head, tail = whole.first(1), whole.after(1)
    assert head.ids + tail.ids == whole.ids
    np.testing.assert_array_equal(np.concatenate([head.labels, tail.labels]), whole.labels)
    assert np.shares_memory(head.images, whole.images) and np.shares_memory(tail.images, whole.images)


def test_take_keeps_images_labels_and_ids_together_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "ROWS_PER_BLOCK", 2)
    whole = image_set([0, 1, 2, 3, 4, 5])
    chosen = whole.take(np.array([5, 0, 3, 1, 2]))
    np.testing.assert_array_equal(chosen.images, whole.images[[5, 0, 3, 1, 2]])
    assert chosen.labels.tolist() == [5, 0, 3, 1, 2]
    assert chosen.ids == ["a5", "a0", "a3", "a1", "a2"]


def test_beyond_the_limit_images_lie_in_a_file_that_holds_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "LARGEST_ARRAY_IN_MEMORY", 7)
    images = allocate_images((2, 1, 2, 2))
    images[:] = np.arange(8).reshape(2, 1, 2, 2)
    assert isinstance(images, np.memmap)
    assert images.ravel().tolist() == list(range(8))
    assert not isinstance(allocate_images((1, 1, 2, 2)), np.memmap)
