"""The sets of each protocol, on as many generated images as the benchmark has, or on a small tree of files."""

from dataclasses import replace

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.images.protocol_splits import split_by_protocol
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.splits import SplitParameters
from deephash_pipeline.pipelines.data_ingestion.nodes import IngestionParameters
from deephash_pipeline.retrieval.protocols import PROTOCOLS
from tests.configuration import ENVIRONMENTS, configured

DEFAULTS = SplitParameters()
CLASSES = [f"class {label}" for label in range(10)]


def dots(count, prefix, classes=10):
    """Images of one pixel, as many of each class."""
    labels = np.arange(count, dtype=np.int64) % classes
    return ImageSet(np.zeros((count, 1, 1, 1), np.uint8), labels, [f"{prefix}/{row}" for row in range(count)])


@pytest.fixture(scope="module")
def cifar10():
    return ImageCollection({"training": dots(50_000, "train"), "query": dots(10_000, "test")}, CLASSES)


def sizes(splits):
    return {name: len(images) for name, images in splits.items()}


def test_cifar10_1_has_a_hundred_queries_and_five_hundred_training_images_of_each_class(cifar10):
    splits = split_by_protocol(cifar10, DEFAULTS, 42, PROTOCOLS["cifar10_1"])
    assert np.bincount(splits["query"].labels).tolist() == [100] * 10
    assert np.bincount(splits["training"].labels).tolist() == [500] * 10
    searched = sum(len(splits[name]) for name in PROTOCOLS["cifar10_1"].database)
    assert searched == 59_000
    ids = [name for images in splits.values() for name in images.ids]
    assert len(set(ids)) == 60_000
    for images in splits.values():
        assert [int(name.rpartition("/")[2]) % 10 for name in images.ids] == images.labels.tolist()
    # From all images, not from the test images alone.
    assert {name.partition("/")[0] for name in splits["query"].ids} == {"train", "test"}


def test_the_seed_decides_the_sets_of_cifar10_1(cifar10):
    first, again, other = (
        split_by_protocol(cifar10, DEFAULTS, seed, PROTOCOLS["cifar10_1"])["query"].ids for seed in (42, 42, 43)
    )
    assert first == again
    assert first != other


def test_cifar10_2_is_the_official_split_and_searches_the_training_set(cifar10):
    splits = split_by_protocol(cifar10, DEFAULTS, 42, PROTOCOLS["cifar10_2"])
    assert sizes(splits) == {"training": 50_000, "validation": 0, "query": 10_000}
    assert splits["query"].ids == cifar10.splits["query"].ids
    assert PROTOCOLS["cifar10_2"].database == ("training",)


def test_imagenet100_searches_its_published_list_with_the_training_set_in_it():
    lists = {"training": dots(13_000, "t", 100), "validation": dots(115_503, "d", 100), "query": dots(5_000, "q", 100)}
    collection = ImageCollection(lists, [str(label) for label in range(100)])
    splits = split_by_protocol(collection, DEFAULTS, 42, PROTOCOLS["imagenet100"])
    assert sum(len(splits[name]) for name in PROTOCOLS["imagenet100"].database) == 128_503
    assert PROTOCOLS["imagenet100"].k == 1_000


def test_files_are_drawn_as_arrays_are(tmp_path):
    sets = {"training": dots(16, "train", 2), "query": dots(8, "test", 2)}
    files = {name: replace(images, images=ImageFiles(tmp_path, images.ids, 4, 3)) for name, images in sets.items()}
    small = replace(PROTOCOLS["cifar10_1"], sizes={"query": 4, "training": 6, "validation": 14})
    for images in split_by_protocol(ImageCollection(files, CLASSES[:2]), DEFAULTS, 1, small).values():
        assert list(images.images.names) == images.ids


def test_a_benchmark_of_other_sizes_is_no_benchmark_of_that_name():
    few = ImageCollection({"training": dots(20, "train"), "query": dots(10, "test")}, CLASSES)
    with pytest.raises(InputError, match="protocol cifar10_1 divides 60,000 images, and here are 30"):
        split_by_protocol(few, DEFAULTS, 1, PROTOCOLS["cifar10_1"])
    with pytest.raises(InputError, match=r"cifar10_2 has 10,000 images in the set 'query', and here are 10"):
        split_by_protocol(few, DEFAULTS, 1, PROTOCOLS["cifar10_2"])


@pytest.mark.parametrize("protocol", ["cifar10_1", "cifar10_2", "imagenet100"])
@pytest.mark.parametrize("given", [{"query_count": 5}, {"validation_share": 0.1}, {"training_count": 3}])
def test_what_a_protocol_fixes_is_not_configured_beside_it(cifar10, protocol, given):
    with pytest.raises(InputError, match=rf"{protocol} fixes its sets: remove data_ingestion\.{next(iter(given))}"):
        split_by_protocol(cifar10, SplitParameters(**given), 42, PROTOCOLS[protocol])


def test_unseen_classes_and_the_protocol_of_that_name_go_together(cifar10):
    with pytest.raises(InputError, match="set unseen_classes"):
        split_by_protocol(cifar10, DEFAULTS, 42, PROTOCOLS["unseen"])
    with pytest.raises(InputError, match="set protocol to unseen"):
        split_by_protocol(cifar10, SplitParameters(unseen_classes=3), 42, PROTOCOLS["paper"])
    splits = split_by_protocol(cifar10, SplitParameters(unseen_classes=3), 42, PROTOCOLS["unseen"])
    assert sizes(splits) == {"training": 35_000, "validation": 15_000, "query": 3_000}
    assert not set(splits["training"].labels.tolist()) & set(splits["query"].labels.tolist())


def test_held_out_images_are_asked_for_before_anything_is_trained(cifar10):
    with pytest.raises(InputError, match=r"there are none: set data_ingestion\.validation_share"):
        split_by_protocol(cifar10, DEFAULTS, 42, PROTOCOLS["held_out"])
    splits = split_by_protocol(cifar10, SplitParameters(validation_share=0.1), 42, PROTOCOLS["held_out"])
    assert sizes(splits) == {"training": 45_000, "validation": 5_000, "query": 10_000}


def test_every_environment_names_a_protocol_that_its_sets_fit():
    for environment in ENVIRONMENTS:
        given = configured(environment, "globals")
        parameters = IngestionParameters.model_validate(given["data_ingestion"])
        protocol = PROTOCOLS[given["protocol"]]
        assert bool(parameters.unseen_classes) == protocol.unseen, environment
        assert not protocol.sizes or parameters == IngestionParameters(), environment
