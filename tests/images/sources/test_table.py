import pytest
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.collection import ImageCollection
from deephash_pipeline.images.sources.table import CsvSource

NAMES = ["a.png", "b.png", "deep/c.png", "d, e.png"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in NAMES:
        Image.new("L", (4, 4), 3).save(tmp_path / name)
    return tmp_path


def listed(folder, content):
    (folder / "images.csv").write_text(content, encoding="utf-8")
    return CsvSource(kind="csv", image_size=8, channels=3).read(folder)


def test_paths_start_at_the_folder_of_the_csv(folder):
    collection = listed(folder, 'label,path\ndog,b.png\ncat,./deep/c.png\ncat,"d, e.png"\n')
    assert collection.class_names == ["cat", "dog"]
    assert collection.splits["all"].ids == ["deep/c.png", "d, e.png", "b.png"]
    assert collection.splits["all"].labels.tolist() == [0, 0, 1]


def test_a_column_gives_the_splits_under_any_of_their_names(folder):
    collection = listed(
        folder, 'path,label,split\na.png,x,train\nb.png,y,Training\ndeep/c.png,y,val\n"d, e.png",y,test\n'
    )
    ids = {name: split.ids for name, split in collection.splits.items()}
    assert ids == {"training": ["a.png", "b.png"], "validation": ["deep/c.png"], "query": ["d, e.png"]}


def test_labels_with_gaps_are_names_in_the_order_of_their_values(folder):
    collection = listed(folder, "path,label\na.png,10\nb.png,2\ndeep/c.png,0\n")
    assert collection.class_names == ["0", "2", "10"]
    assert collection.splits["all"].labels.tolist() == [0, 1, 2]


def test_labels_that_look_like_something_else_keep_their_name(folder):
    assert listed(folder, "path,label\na.png,NA\nb.png,007\ndeep/c.png,null\n").class_names == ["007", "NA", "null"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("path,label\na.png,x\nz.png,y\nzz.png,y\n", r"the file \S+z\.png is missing \(2 such lines"),
        (f"path,label\na.png,x\n{'z' * 300},y\n", r"the file \S+z is missing \(1 such lines"),
        ("path,label\na.png,x\n,y\n", "row 3: the path is empty"),
        ("path,label\na.png,x\n\n,\nb.png,\n", "row 5: the label is empty"),
        ("path,label\n\n,\n", "has no row"),
        ("path,label\na.png,x\nb\0.png,y\n", "row 3: the path 'b.x00.png' has a NUL"),
        ("path,label\na.png,x\nb.png,y\n./a.png,y\n", r"row 4: \S*a\.png is in row 2 already"),
        ("path,label\na.png,x\nb.png, \n", r"row 3: the label is empty; name the class of b\.png"),
        ("path,label,split\na.png,x,train\nb.png,y,dev\n", "row 3: the split 'dev' is unknown; take one of training"),
        ("path,label,split\na.png,x,train\nb.png,y,train\n", "has the splits training: give training and query rows"),
        (
            "path,label,split\na.png,x,train\nb.png,x,train\ndeep/c.png,y,test\n",
            "class 'y' has no image in the split 'training'",
        ),
        ("path,label\na.png,x\nb.png,x\n", "retrieval needs two classes"),
        ("path,label\na.png,x,\nb.png,y,\n", "has rows of more fields than its first line"),
        ("path,class\na.png,x\n", "has no column label"),
        ("path;label\na.png;x\n", "has no column label, path, it has path;label: .* with commas between them"),
        ("path,label\n", "has no row"),
        ("", "cannot be read as CSV"),
        ('path,label\n"a.png,x\n', "cannot be read as CSV"),
    ],
)
def test_what_is_wrong_is_reported_in_one_line_with_its_row(folder, content, message):
    with pytest.raises(InputError, match=message) as caught:
        listed(folder, content.replace("{folder}", str(folder)))
    assert "\n" not in str(caught.value)


def test_a_csv_in_another_encoding_is_reported(folder):
    (folder / "images.csv").write_bytes("path,label\na.png,Bär\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"cannot be read as CSV .*save it again, as UTF-8"):
        CsvSource(kind="csv", image_size=8, channels=3).read(folder)


def test_a_csv_with_blanks_and_a_byte_order_mark_is_read(folder):
    found = listed(folder, "\ufeffpath , label\na.png, x\nb.png,y \n")
    assert (found.splits["all"].ids, found.class_names) == (["a.png", "b.png"], ["x", "y"])


def test_a_file_that_two_rows_name_by_a_link_is_there_twice(folder):
    (folder / "same.png").symlink_to("a.png")
    with pytest.raises(InputError, match=r"row 4: same\.png is in row 2 already"):
        listed(folder, "path,label\na.png,x\nb.png,y\nsame.png,x\n")


def test_a_class_may_be_a_number_of_any_length(folder):
    long = "1" * 5000
    assert listed(folder, f"path,label\na.png,{long}\nb.png,2\n").class_names == ["2", long]


def test_class_names_must_differ(folder):
    images = listed(folder, "path,label\na.png,x\nb.png,y\n").splits
    with pytest.raises(InputError, match="the class name 'x' is given twice"):
        ImageCollection(images, ["x", "y", "x"])
