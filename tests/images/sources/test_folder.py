import os

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
from deephash_pipeline.images.sources.collection import require_labels
from deephash_pipeline.images.sources.folder import FolderSource

SPLITS = {"training": "train", "query": "test"}


def paint(path, colour):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (6, 4), colour).save(path, lossless=True)


def listed(root, splits=SPLITS, **options):
    return FolderSource(kind="folder", image_size=4, channels=1, splits=splits, **options).read(root)


@pytest.fixture
def root(tmp_path):
    for split in ("train", "test"):
        for value, name in enumerate(("cat", "dog")):
            for row in range(2):
                paint(tmp_path / split / name / f"{row}.png", 100 * value + row)
    return tmp_path


def test_images_come_in_the_order_of_their_paths_with_the_labels_of_their_folders(root):
    collection = listed(root)
    assert collection.class_names == ["cat", "dog"]
    names = ("cat/0", "cat/1", "dog/0", "dog/1")
    assert collection.splits["training"].ids == [f"train/{name}.png" for name in names]
    assert collection.splits["query"].ids[0] == "test/cat/0.png"
    assert collection.splits["training"].labels.tolist() == [0, 0, 1, 1]
    assert collection.splits["training"].images.shape == (4, 1, 4, 4)


def test_nothing_is_decoded_while_files_are_listed(root, monkeypatch):
    monkeypatch.setattr(Image, "open", lambda _: pytest.fail("an image was opened"))
    assert len(listed(root).splits["training"]) == 4


def test_every_format_is_listed_at_any_depth(root):
    for suffix in ("JPG", "jpeg", "webp", "bmp"):
        paint(root / "train" / "cat" / "deep" / "deeper" / f"x.{suffix}", 50)
    assert listed(root).splits["training"].labels.tolist() == [0] * 6 + [1] * 2


def test_linked_folders_are_entered_once(root, tmp_path):
    before = listed(root).splits["training"]
    elsewhere = tmp_path / "elsewhere"
    paint(elsewhere / "linked.png", 9)
    (root / "train" / "cat" / "more").symlink_to(elsewhere)
    (root / "train" / "cat" / "twin").symlink_to(elsewhere)
    (elsewhere / "round").symlink_to(elsewhere)
    after = listed(root).splits["training"]
    assert sorted(set(after.ids) - set(before.ids)) == ["train/cat/more/linked.png"]
    assert len(after) == len(before) + 1


def test_hidden_files_and_folders_are_passed_over(root):
    (root / "train" / "cat" / "._0.png").write_bytes(b"what an archive of another system leaves there")
    paint(root / "train" / ".cache" / "0.png", 1)
    paint(root / "train" / "cat" / ".ipynb_checkpoints" / "0.png", 1)
    assert len(listed(root).splits["training"]) == 4


def test_files_of_other_kinds_are_counted_in_one_line(root, caplog):
    for name in ("notes.txt", "readme"):
        (root / "train" / "cat" / name).write_text("not an image")
    assert len(listed(root).splits["training"]) == 4
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.endswith(f": 2 (.txt 1, no suffix 1), such as {root}/train/cat/notes.txt")


def test_what_cannot_be_read_is_listed_to_be_found_broken(root):
    cat = root / "train" / "cat"
    whole = listed(root).splits["training"].ids
    for name in ("9.png", "more", "round", "../cow", "../loop"):
        (cat / name).symlink_to(os.path.basename(name) if name in ("round", "../loop") else f"/nowhere/{name}")
    os.mkfifo(cat / "pipe.png")
    found = listed(root)
    lost = ["train/cat/9.png", "train/cat/more", "train/cat/pipe.png", "train/cat/round", "train/cow", "train/loop"]
    assert sorted(set(found.splits["training"].ids) - set(whole)) == lost
    assert found.class_names == ["cat", "cow", "dog", "loop"]
    for name in lost:
        with pytest.raises(BrokenImageError, match=r"No such file|no regular file|Too many levels"):
            decode_image(root / name, 8, 3)


def test_the_folder_of_the_image_can_be_the_class_as_in_sun397(tmp_path):
    for place in ("a/abbey", "o/office/home", "o/office/outdoor"):
        paint(tmp_path / place / "sun_1.jpg", 9)
    collection = listed(tmp_path, {"all": "."}, class_folder="parent")
    assert collection.class_names == ["a/abbey", "o/office/home", "o/office/outdoor"]
    assert collection.splits["all"].ids[1] == "o/office/home/sun_1.jpg"


def test_a_name_that_is_no_utf_8_is_reported_with_the_remedy(root):
    (root / "train" / "cat" / "0.png").rename(root / "train" / "cat" / os.fsdecode(b"caf\xe9.png"))
    with pytest.raises(InputError, match=r"the name 'train/cat/caf\\udce9\.png' below .* is no UTF-8: rename"):
        listed(root)


def test_a_split_without_images_is_named(root):
    (root / "empty" / "cat").mkdir(parents=True)
    with pytest.raises(InputError, match="empty holds no image"):
        listed(root, {"training": "train", "query": "empty"})


def test_an_empty_class_folder_is_named(root):
    for split in ("train", "test"):
        (root / split / "emu").mkdir()
    with pytest.raises(InputError, match="class 'emu' has no image in the split 'training'"):
        listed(root)


def test_an_image_outside_all_classes_is_named(root):
    paint(root / "train" / "stray.png", 1)
    with pytest.raises(InputError, match=r"stray\.png lies in no class"):
        listed(root)


# Links.


@pytest.mark.parametrize("options", [{"class_folder": "top"}, {"class_folder": "parent"}, {"labelled": False}])
@pytest.mark.parametrize("target", [".", "..", "../..", "/"])
def test_a_link_that_leads_up_is_not_entered(root, target, options):
    before = listed(root, **options).splits["training"]
    (root / "train" / "cat" / "loop").symlink_to(target)
    assert listed(root, **options).splits["training"].ids == before.ids


def test_a_link_into_another_class_is_refused(root):
    (root / "test" / "cat" / "friends").symlink_to("../dog")
    with pytest.raises(InputError, match=r"by a link .*/test/dog is in two classes, .*/test/cat/friends the other: "):
        listed(root)


def test_where_every_folder_is_a_class_none_may_be_linked_into_another(tmp_path):
    for place in ("a/abbey", "a/bridge"):
        paint(tmp_path / place / "sun_1.jpg", 9)
    (tmp_path / "a" / "abbey" / "view").symlink_to("../bridge")
    with pytest.raises(InputError, match=r"/a/bridge is in two classes, .*/a/abbey/view the other: remove"):
        listed(tmp_path, {"all": "."}, class_folder="parent")


def test_a_class_may_be_a_link(root, tmp_path):
    paint(tmp_path / "elsewhere" / "emus" / "0.png", 7)
    (root / "train" / "emu").symlink_to(tmp_path / "elsewhere" / "emus")
    assert listed(root).class_names == ["cat", "dog", "emu"]


# No labels.


def test_without_labels_all_images_at_any_depth_are_of_one_class(tmp_path):
    for place in ("0.png", "deep/1.jpg", "deep/deeper/2.bmp"):
        paint(tmp_path / place, 9)
    (tmp_path / "deep" / "round").symlink_to("..")
    collection = listed(tmp_path, {"all": "."}, labelled=False)
    assert collection.class_names == ["unlabelled"]
    assert collection.splits["all"].ids == ["0.png", "deep/1.jpg", "deep/deeper/2.bmp"]
    assert collection.splits["all"].labels.tolist() == [0, 0, 0]


def test_without_labels_the_splits_stay_folders(root):
    collection = listed(root, labelled=False)
    assert {name: len(split) for name, split in collection.splits.items()} == {"training": 4, "query": 4}
    with pytest.raises(InputError, match=r"nothing is missing: put images into .*/nothing/, or mend"):
        listed(root, {"all": "nothing"}, labelled=False)


def test_labels_of_one_class_are_no_labels():
    require_labels(np.array([0, 1, 0]), "evaluation")
    with pytest.raises(InputError, match="evaluation needs labels, but all images are of one class"):
        require_labels(np.array([0, 0, 0]), "evaluation")
