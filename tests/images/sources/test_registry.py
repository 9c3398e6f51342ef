import pytest
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.registry import parse_source

FOLDER = {"kind": "folder", "image_size": 8, "channels": 1}


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ({}, "kind"),
        ({"kind": "lmdb"}, "'lmdb'"),
        ({"kind": "digits", "image_sise": 28}, "`digits`: image_sise: Extra inputs"),
        ({"kind": "digits", "image_size": 0}, "`digits`: image_size: "),
        ({"kind": "folder", "image_size": 32, "channels": 2}, "`folder`: channels: "),
        ({"kind": "folder", "channels": 1}, "`folder`: image_size: Field required"),
        (FOLDER | {"splits": {"training": "train"}}, "training and query"),
        ({"kind": "torchvision", "name": "ImageNet"}, "'CIFAR100'"),
        ({"kind": "csv", "image_size": 8, "channels": 1, "split": "train"}, "`csv`: split: Extra inputs"),
        (FOLDER | {"splits": {"all": ".", "query": "test"}}, "all alone"),
        (FOLDER | {"labelled": False, "class_folder": "parent"}, "leave it out where labelled is false"),
        (None, "source is None"),
    ],
)
def test_wrong_parameters_are_named_in_one_line(parameters, fault):
    with pytest.raises(InputError) as caught:
        parse_source(parameters)
    assert fault in str(caught.value) and "\n" not in str(caught.value)


def test_all_wrong_parameters_are_reported_at_once():
    with pytest.raises(InputError, match=r"`folder`: image_size: .*; channels: "):
        parse_source({"kind": "folder", "image_size": 0, "channels": 2})


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"kind": "folder", "image_size": 4, "channels": 1}, "train is missing: put images into"),
        ({"kind": "csv", "image_size": 4, "channels": 1}, r"images\.csv is missing: put it there"),
        ({"kind": "torchvision", "name": "KMNIST"}, "torchvision cannot read KMNIST"),
    ],
)
def test_without_raw_files_the_error_says_where_to_put_them(tmp_path, parameters, named):
    with pytest.raises(InputError, match=named) as caught:
        parse_source(parameters).read(tmp_path)
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_flat_folder_without_labels_is_one_class(tmp_path):
    for name in ("a.png", "b.png"):
        Image.new("L", (4, 4), 3).save(tmp_path / name)
    parameters = {"kind": "folder", "image_size": 4, "channels": 1, "splits": {"all": "."}}
    with pytest.raises(InputError, match=r"a\.png lies in no class: .*, or set `labelled: false` of the source if no"):
        parse_source(parameters).read(tmp_path)
    collection = parse_source({**parameters, "labelled": False}).read(tmp_path)
    assert collection.class_names == ["unlabelled"]
    assert collection.splits["all"].ids == ["a.png", "b.png"]
