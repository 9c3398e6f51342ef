import pytest
from kedro.io import DatasetError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.project.datasets import ImageSourceDataset


def test_the_embedded_digits_need_no_folder(tmp_path):
    dataset = ImageSourceDataset(str(tmp_path / "nothing"), {"kind": "digits", "image_size": 8})
    assert dataset.exists()
    digits = dataset.load()
    assert digits.splits["all"].images.shape == (1797, 1, 8, 8)
    assert digits.class_names == list("0123456789")


def test_other_images_are_there_if_their_folder_is_or_they_are_downloaded(tmp_path):
    source = {"kind": "torchvision", "name": "MNIST"}
    dataset = ImageSourceDataset(str(tmp_path / "mnist"), source)
    assert not dataset.exists()
    assert ImageSourceDataset(str(tmp_path / "mnist"), source | {"download": True}).exists()
    (tmp_path / "mnist").mkdir()
    assert dataset.exists()


def test_image_files_are_listed_and_not_read(tmp_path):
    for folder in ("birds/train/wren", "birds/train/robin", "birds/test/wren"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.png").touch()
    source = {"kind": "folder", "image_size": 8, "channels": 3}
    images = ImageSourceDataset(str(tmp_path / "birds"), source).load().splits["training"].images
    assert isinstance(images, ImageFiles)
    assert images.names == ["train/robin/a.png", "train/wren/a.png"]


def test_raw_images_cannot_be_written(tmp_path):
    with pytest.raises(DatasetError, match="read only"):
        ImageSourceDataset(str(tmp_path), {"kind": "digits"}).save("anything")


def test_a_wrong_source_or_folder_is_refused_by_name_before_anything_is_read(tmp_path):
    with pytest.raises(InputError, match="size"):
        ImageSourceDataset(str(tmp_path), {"kind": "digits", "size": 8})
    with pytest.raises(InputError, match="raw_images is 5: give the path of a folder"):
        ImageSourceDataset(5, {"kind": "digits"})
