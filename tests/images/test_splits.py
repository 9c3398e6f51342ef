import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.splits import SplitParameters, split_class_names, split_collection, stratified_draw

CLASSES = ["a", "b", "c"]


def image_set(count, prefix):
    images = np.arange(count, dtype=np.uint8).reshape(count, 1, 1, 1)
    return ImageSet(images, np.arange(count) % len(CLASSES), [f"{prefix}{row}" for row in range(count)])


def undivided(count=60):
    return ImageCollection({"all": image_set(count, "image")}, CLASSES)


def divided():
    return ImageCollection({"training": image_set(60, "t"), "query": image_set(12, "q")}, CLASSES)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.data())
def test_a_stratified_draw_takes_every_class_in_proportion(labels, data):
    classes = np.array(labels, dtype=np.int64)
    count = data.draw(st.integers(0, len(labels)))
    drawn = stratified_draw(classes, count, seed=data.draw(st.integers(0, 9)))
    assert len(set(drawn.tolist())) == count
    taken = np.bincount(classes[drawn], minlength=classes.max() + 1)
    assert np.all(np.abs(taken - np.bincount(classes) * count / len(labels)) < 1)


@given(st.integers(1, 54), st.floats(0, 0.8), st.integers(0, 3))
def test_the_three_splits_are_disjoint_and_lose_no_image(query_count, share, seed):
    try:
        splits = split_collection(undivided(), SplitParameters(query_count=query_count, validation_share=share), seed)
    except InputError as error:
        assert "has no image in the split 'training'" in str(error)
        return
    assert list(splits) == ["training", "validation", "query"]
    ids = [name for split in splits.values() for name in split.ids]
    assert sorted(ids) == sorted(undivided().splits["all"].ids)
    assert len(splits["query"]) == query_count
    for split in splits.values():
        assert [f"image{pixel}" for pixel in split.images.ravel()] == split.ids


def test_a_rare_label_that_only_queries_got_is_said(caplog):
    labels = np.ones((8, 2), dtype=np.uint8)
    labels[1:, 1] = 0
    images = ImageSet(np.zeros((8, 1, 1, 1), dtype=np.uint8), labels, [str(row) for row in range(8)])
    drawn = [
        split_collection(ImageCollection({"all": images}, ["cat", "rare"]), SplitParameters(query_count=4), seed)
        for seed in range(8)
    ]
    told = [record.getMessage() for record in caplog.records]
    assert told == ["no training image has the label rare (1 such labels): nothing finds it"] * len(told)
    assert len(told) == sum(not splits["training"].labels[:, 1].any() for splits in drawn) > 0


def test_the_seed_decides_the_draw():
    parameters = SplitParameters(query_count=12, validation_share=0.25)
    first, again, other = (split_collection(undivided(), parameters, seed) for seed in (1, 1, 2))
    for name in ("training", "validation", "query"):
        assert first[name].ids == again[name].ids
        assert first[name].ids != other[name].ids


def test_the_seed_decides_which_images_validate_where_the_queries_are_given():
    parameters = SplitParameters(validation_share=0.25)
    first, other = (split_collection(divided(), parameters, seed)["validation"].ids for seed in (1, 2))
    assert first != other


def test_another_validation_share_leaves_the_queries_as_they_were():
    drawn = [
        split_collection(undivided(), SplitParameters(query_count=12, validation_share=share), 1)["query"].ids
        for share in (0, 0.25)
    ]
    assert drawn[0] == drawn[1]


def test_training_count_takes_the_first_images_and_validates_with_the_rest():
    splits = split_collection(divided(), SplitParameters(training_count=50), seed=0)
    assert splits["training"].ids == [f"t{row}" for row in range(50)]
    assert splits["validation"].ids == [f"t{row}" for row in range(50, 60)]
    assert splits["query"].ids == [f"q{row}" for row in range(12)]


def test_by_default_all_images_train_and_none_validates():
    splits = split_collection(divided(), SplitParameters(), seed=0)
    assert len(splits["training"]) == 60
    assert splits["validation"].images.shape == (0, 1, 1, 1)
    assert splits["validation"].labels.dtype == np.int64


def test_a_validation_split_of_the_source_is_kept():
    collection = ImageCollection({**divided().splits, "validation": image_set(5, "v")}, CLASSES)
    assert (
        split_collection(collection, SplitParameters(), seed=0)["validation"].ids == collection.splits["validation"].ids
    )
    with pytest.raises(InputError, match="its own validation split"):
        split_collection(collection, SplitParameters(validation_share=0.5), seed=0)


@pytest.mark.parametrize(
    ("collection", "parameters", "fault"),
    [
        (divided(), SplitParameters(training_count=61), "asks for 61 images, but there are 60"),
        (undivided(), SplitParameters(query_count=60), "asks for 60 of 60 images"),
        (undivided(), SplitParameters(), "set query_count"),
        (divided(), SplitParameters(query_count=5), "set query_count to null"),
        (divided(), SplitParameters(training_count=2), "'c' has no image in the split 'training'"),
        (undivided(6), SplitParameters(query_count=4), "has no image in the split 'training'"),
        (
            ImageCollection({"training": image_set(6, "t"), "query": image_set(0, "q")}, CLASSES),
            SplitParameters(),
            "query",
        ),
    ],
)
def test_a_split_that_cannot_be_made_is_explained(collection, parameters, fault):
    with pytest.raises(InputError, match=fault):
        split_collection(collection, parameters, seed=0)


def test_an_image_that_became_a_query_too_is_found():
    collection = divided()
    collection.splits["query"] = image_set(12, "t")
    with pytest.raises(InputError, match="'t0' occurs twice"):
        split_collection(collection, SplitParameters(), seed=0)


def test_two_ways_to_validate_at_once_are_refused():
    with pytest.raises(ValueError, match="training_count or validation_share"):
        SplitParameters(training_count=5, validation_share=0.1)


# Unseen classes.

MANY_CLASSES = ["a", "b", "c", "d", "e", "f"]


def of_many_classes(*splits):
    def images(prefix):
        pixels = np.arange(36, dtype=np.uint8).reshape(36, 1, 1, 1)
        return ImageSet(pixels, np.arange(36) % 6, [f"{prefix}{row}" for row in range(36)])

    return ImageCollection({name: images(name) for name in splits}, MANY_CLASSES)


def class_of(image, prefix):
    return MANY_CLASSES[int(image.removeprefix(prefix)) % 6]


def test_unseen_classes_take_no_part_in_training_and_are_queries_and_database():
    parameters = SplitParameters(unseen_classes=("e", "b"))
    splits = split_collection(of_many_classes("training", "query"), parameters, seed=0)
    names = split_class_names(MANY_CLASSES, parameters, seed=0)
    assert names == ["a", "c", "d", "f", "b", "e"]
    assert {name: len(split) for name, split in splits.items()} == {"training": 24, "validation": 12, "query": 12}
    for name, file, labels in (
        ("training", "training", {0, 1, 2, 3}),
        ("validation", "training", {4, 5}),
        ("query", "query", {4, 5}),
    ):
        split = splits[name]
        assert set(split.labels.tolist()) == labels
        assert split.labels.dtype == np.int64
        assert [names[label] for label in split.labels] == [class_of(image, file) for image in split.ids]
        assert [f"{file}{pixel}" for pixel in split.images.ravel()] == split.ids


@given(st.integers(2, 4), st.integers(0, 20))
def test_unseen_classes_are_drawn_from_the_seed(count, seed):
    parameters = SplitParameters(unseen_classes=count)
    names = split_class_names(MANY_CLASSES, parameters, seed)
    assert sorted(names) == MANY_CLASSES
    assert names == split_class_names(MANY_CLASSES, parameters, seed)
    splits = split_collection(of_many_classes("training", "query"), parameters, seed)
    assert set(splits["query"].labels.tolist()) == set(range(6 - count, 6))
    assert set(splits["training"].labels.tolist()) == set(range(6 - count))


def test_another_seed_draws_other_unseen_classes():
    parameters = SplitParameters(unseen_classes=3)
    assert len({tuple(split_class_names(MANY_CLASSES, parameters, seed)[3:]) for seed in range(20)}) > 5


def test_queries_that_are_drawn_are_of_unseen_classes_too():
    parameters = SplitParameters(query_count=12, unseen_classes=2)
    splits = split_collection(of_many_classes("all"), parameters, seed=0)
    assert {name: len(split) for name, split in splits.items()} == {"training": 16, "validation": 8, "query": 4}


def test_without_unseen_classes_the_names_stay_as_they_were():
    assert split_class_names(MANY_CLASSES, SplitParameters(), seed=3) == MANY_CLASSES


@pytest.mark.parametrize(
    ("unseen", "fault"),
    [
        (("a", "z"), "names 'z': the classes are a, b, c, d, e, f"),
        (("a",), "takes 1 of 6 classes"),
        (("a", "a"), "takes 1 of 6 classes"),
        (5, "takes 5 of 6 classes: take 2 at least and leave 2"),
        (7, "takes 7 of 6 classes"),
    ],
)
def test_unseen_classes_that_make_no_sense_are_refused(unseen, fault):
    with pytest.raises(InputError, match=fault):
        split_collection(of_many_classes("training", "query"), SplitParameters(unseen_classes=unseen), seed=0)


def test_unseen_classes_are_the_validation_set_and_leave_no_other():
    for other in ({"validation_share": 0.1}, {"training_count": 5}):
        with pytest.raises(ValueError, match="with unseen_classes"):
            SplitParameters(unseen_classes=2, **other)
    with pytest.raises(InputError, match="its own validation split"):
        collection = of_many_classes("training", "validation", "query")
        split_collection(collection, SplitParameters(unseen_classes=2), seed=0)
