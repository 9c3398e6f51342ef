"""Lists `path 0 1 0 ...`, and the benchmarks that are read from them."""

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.ingestion import decode_splits
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.sources.registry import parse_source
from deephash_pipeline.images.sources.table import CsvSource
from deephash_pipeline.images.splits import SplitParameters, split_collection, stratified_draw
from tests.configuration import configured

LISTS = {
    "train.txt": "a.png 0 1 1\nb c.png 1 0 0\nd.png 0 1 1\n",
    "test.txt": "q.png 1 1 0\n",
    "database.txt": "a.png 0 1 1\ne.png 0 0 1\n",
}


def paint(folder, *names):
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 4), (40 * number, 9, 9)).save(folder / name)


@pytest.fixture
def folder(tmp_path):
    paint(tmp_path, "a.png", "b c.png", "d.png", "e.png", "q.png")
    for name, content in LISTS.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def read(folder, **source):
    parameters = {"kind": "list", "image_size": 8, "channels": 3, **source}
    return parse_source(parameters).read(folder)


def test_a_list_gives_each_image_the_labels_of_its_columns(folder):
    collection = read(folder, class_names=["sky", "sea", "sun"])
    training = collection.splits["training"]
    assert training.ids == ["a.png", "b c.png", "d.png"]
    assert training.labels.dtype == np.uint8
    assert training.labels.tolist() == [[0, 1, 1], [1, 0, 0], [0, 1, 1]]
    assert collection.splits["query"].labels.tolist() == [[1, 1, 0]]
    assert collection.class_names == ["sky", "sea", "sun"]


def test_where_every_image_has_one_label_they_are_class_numbers(folder):
    for name, content in (("train.txt", "a.png 0 1\nd.png 1 0\n"), ("test.txt", "q.png 0 1\n")):
        (folder / name).write_text(content)
    collection = read(folder)
    assert collection.class_names == ["0", "1"]
    assert collection.splits["training"].labels.tolist() == [1, 0]
    assert collection.splits["training"].labels.dtype == np.int64


def test_names_of_classes_may_be_a_file(folder):
    (folder / "classes.txt").write_text("sky\nsea\nsun\n")
    assert read(folder, class_names="classes.txt").class_names == ["sky", "sea", "sun"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a.png 0 1 1\nd.png 0 1\n", r"train\.txt, line 2: 'd\.png 0 1' is no path and 3 columns of 0 and 1"),
        ("a.png 0 1 2\n", r"train\.txt, line 1: 'a\.png 0 1 2'"),
        ("a.png 0 1 1\nz.png 1 0 0\n", r"the file \S+z\.png is missing \(1 such lines"),
        ("\n", r"train\.txt is empty"),
        ("a.png 0 1 0\nd.png 0 1 1\n", r"class '0' has no image in the split 'training'"),
        ("a.png 0 1 1\nq.png 1 0 0\n", r"the image id 'q\.png' occurs twice"),
        ("a.png 0 1\nd.png 1 1\n", r"test\.txt: the file \S+q\.png 1 is missing"),
    ],
)
def test_faulty_lists_end_in_one_line_that_names_the_place(folder, content, message):
    (folder / "train.txt").write_text(content)
    with pytest.raises(InputError, match=message) as raised:
        read(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("spelling", ["./q.png", "here/../q.png", "{folder}/q.png"])
def test_a_query_is_found_in_the_database_however_its_path_is_spelt(folder, spelling):
    content = LISTS["test.txt"].replace("q.png", spelling.format(folder=folder))
    (folder / "here").mkdir()
    (folder / "database.txt").write_text(LISTS["database.txt"] + content)
    with pytest.raises(InputError, match=r"the image id 'q\.png' occurs twice"):
        read(folder, splits={"training": "train.txt", "validation": "database.txt", "query": "test.txt"})


def test_a_mark_of_the_byte_order_is_no_part_of_a_list(folder):
    (folder / "train.txt").write_text(LISTS["train.txt"], encoding="utf-8-sig")
    (folder / "names.txt").write_text("sky\nsea\ncat\n", encoding="utf-8-sig")
    read_again = read(folder, class_names="names.txt")
    assert read_again.class_names == ["sky", "sea", "cat"]
    assert "a.png" in read_again.splits["training"].ids


def test_a_missing_list_is_named(folder):
    with pytest.raises(InputError, match=r"lost\.txt is missing"):
        read(folder, splits={"training": "lost.txt", "query": "test.txt"})


@pytest.mark.parametrize("benchmark", ["nuswide21", "coco", "mirflickr", "imagenet100"])
def test_benchmarks_of_published_lists_are_read_from_a_tree_of_their_layout(benchmark, folder):
    raw_images = configured(benchmark, "catalog")["raw_images"]
    assert raw_images["filepath"] == f"data/01_raw/{benchmark}"
    source = {**raw_images["source"], "image_size": 8}
    collection = parse_source(source).read(folder)
    splits = split_collection(collection, SplitParameters(), seed=0)
    decoded, broken = decode_splits(splits, collection.class_names, 0, folder / "decoded")
    assert broken == []
    # Of the database's list, the training image is left out.
    ids = {name: images.ids for name, images in decoded.items()}
    assert ids == {"training": ["a.png", "b c.png", "d.png"], "validation": ["e.png"], "query": ["q.png"]}
    assert decoded["training"].images.shape == (3, 3, 8, 8)
    assert decoded["validation"].labels.tolist() == [[0, 0, 1]]


def test_the_labels_of_a_csv_may_be_several(folder):
    (folder / "images.csv").write_text("path,label\na.png,sky; sea\nb c.png,sun\nd.png,sea\n")
    collection = CsvSource(kind="csv", image_size=8, channels=3, label_separator=";").read(folder)
    assert collection.class_names == ["sea", "sky", "sun"]
    assert collection.splits["all"].ids == ["a.png", "b c.png", "d.png"]
    assert collection.splits["all"].labels.tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 0]]
    (folder / "images.csv").write_text("path,label\na.png,sky; sea\nb c.png, ;\n")
    with pytest.raises(InputError, match=r"row 3: the label is empty; name the class of b c\.png"):
        CsvSource(kind="csv", image_size=8, channels=3, label_separator=";").read(folder)


def several(images, seed=0):
    return (np.random.default_rng(seed).random((images, 4)) < 0.4).astype(np.uint8)


def test_the_seed_decides_which_images_with_several_labels_are_drawn():
    labels = several(60)
    drawn = stratified_draw(labels, 20, seed=1)
    assert len(set(drawn.tolist())) == 20
    np.testing.assert_array_equal(drawn, stratified_draw(labels, 20, seed=1))
    assert drawn.tolist() != stratified_draw(labels, 20, seed=2).tolist()


def test_unseen_classes_are_refused_where_images_have_several_labels():
    images = ImageSet(np.zeros((60, 1, 2, 2), dtype=np.uint8), several(60), [str(row) for row in range(60)])
    parameters = SplitParameters(query_count=10, unseen_classes=("a", "b"))
    with pytest.raises(InputError, match="unseen_classes needs one label an image"):
        split_collection(ImageCollection({"all": images}, list("abcd")), parameters, seed=0)


def test_labels_of_several_columns_are_checked():
    pixels, ids = np.zeros((2, 1, 2, 2), dtype=np.uint8), ["a", "b"]
    one, two = np.array([0, 1]), np.array([[1, 0], [1, 1]], dtype=np.uint8)
    with pytest.raises(InputError, match=r"from 0 to 2 .* of 0 and 1"):
        ImageCollection({"all": ImageSet(pixels, 2 * two, ids)}, ["sky", "sea"])
    with pytest.raises(InputError, match="some splits have one label an image and others several"):
        ImageCollection(
            {"training": ImageSet(pixels, two, ids), "query": ImageSet(pixels, one, ["c", "d"])}, list("xy")
        )
