"""Raw images that change, appear or vanish make another digest; what else lies beside them does not."""

import pytest
from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project
from PIL import Image

from deephash_pipeline.project.datasets import ImageSourceDataset
from tests.conftest import copied_project


def paint(path, grey):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (4, 4), grey).save(path)


@pytest.fixture
def images(tmp_path):
    """Two classes with two images each."""
    for at, name in enumerate(("owl/0.png", "owl/1.png", "wren/0.png", "wren/1.png")):
        paint(tmp_path / "raw" / name, 10 * at)
    return tmp_path / "raw"


def dataset_of(images, source):
    return ImageSourceDataset(images.as_posix(), source, (images.parent / "work/raw_images.verified").as_posix())


def digest(images, image_size=4):
    source = {"kind": "folder", "splits": {"all": "."}, "image_size": image_size, "channels": 1}
    return dataset_of(images, source).digest()


CHANGES = {
    "another image": lambda images: paint(images / "owl/0.png", 99),
    "a new image": lambda images: paint(images / "owl/2.png", 0),
    "an image in another class": lambda images: (images / "owl/1.png").rename(images / "wren/7.png"),
    "exchanged images": lambda images: [
        (images / "owl/0.png").rename(images / "kept"),
        (images / "wren/0.png").rename(images / "owl/0.png"),
        (images / "kept").rename(images / "wren/0.png"),
    ],
}


@pytest.mark.parametrize("change", CHANGES)
def test_raw_images_that_change_are_noticed(images, change):
    before = digest(images)
    CHANGES[change](images)
    assert digest(images) not in (before, None)


def test_what_is_no_image_and_the_time_of_reading_change_nothing(images):
    before = digest(images)
    (images / "owl/notes.txt").write_text("of 1998")
    assert digest(images) == before
    assert digest(images, image_size=8) != before


def listed(kind, images):
    """Write what lists two of four images, and give the source."""
    if kind == "list":
        (images / "train.txt").write_text("owl/0.png 1 0\nwren/0.png 0 1\n")
        (images / "test.txt").write_text("owl/1.png 1 0\n")
    else:
        (images / "images.csv").write_text("path,label\nowl/0.png,owl\nowl/1.png,owl\nwren/0.png,wren\n")
    return {"kind": kind, "image_size": 4, "channels": 1}


@pytest.mark.parametrize(("kind", "list_file"), [("list", "train.txt"), ("csv", "images.csv")])
def test_of_a_folder_with_lists_only_what_they_name_counts(images, kind, list_file):
    dataset = dataset_of(images, listed(kind, images))
    before = dataset.digest()
    paint(images / "wren/1.png", 200)
    paint(images / "stray.png", 0)
    (images / "notes.txt").write_text("of 1998")
    assert dataset.digest() == before
    paint(images / "wren/0.png", 201)
    changed = dataset.digest()
    assert changed != before
    (images / list_file).write_text((images / list_file).read_text().replace("wren/0", "wren/1"))
    assert dataset.digest() not in (before, changed)


def test_what_remembers_the_digest_lies_in_the_project_from_whatever_folder_it_runs(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    project = copied_project(tmp_path / "project")
    images = project / "data" / "01_raw" / "images"
    for split in ("train", "test"):
        (images / split / "a").mkdir(parents=True)
        Image.new("L", (8, 8)).save(images / split / "a" / "1.png")
    bootstrap_project(project)
    with KedroSession.create(project, env="images") as session:
        session.load_context().catalog.get("raw_images").digest()
    assert (project / "data/02_intermediate/images/raw_images.verified").is_file()
    assert not list((tmp_path / "elsewhere").iterdir())
    dataset = ImageSourceDataset(
        str(images), {"kind": "folder", "splits": {"all": "."}, "image_size": 4, "channels": 1}
    )
    dataset.digest()
    assert not list((tmp_path / "elsewhere").iterdir())
