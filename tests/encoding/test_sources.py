"""What a source is listed as, and read from: folders, lists, tar shards, Parquet."""

import os

import pyarrow
import pyarrow.parquet
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.encoding import Source
from deephash_pipeline.encoding.blocks import codes_of_block
from tests.encoding.conftest import BROKEN, write_tar


def encoded(source, hasher, images_per_block=16):
    """Name -> code, names of classes and names of the broken images, of all blocks in turn."""
    blocks = [codes_of_block(block, source, hasher) for block in source.blocks(images_per_block)]
    names = [name for block in blocks for name in block.names]
    assert len(names) == len(set(names))
    codes = dict(zip(names, [code for block in blocks for code in block.codes.tolist()], strict=True))
    labels = dict(zip(names, [label for block in blocks for label in block.labels], strict=True))
    return codes, labels, {broken.name for block in blocks for broken in block.broken}


@pytest.mark.parametrize("below", ["", "/**/*.png"])
def test_blocks_of_a_folder_and_of_a_glob_are_the_names_in_order_so_many_at_a_time(below, folder, pictures):
    blocks = Source(f"{folder}{below}").blocks(16)
    assert [len(block.entries) for block in blocks] == [16, 16, 8]
    assert [entry.name for block in blocks for entry in block.entries] == sorted(pictures)


@pytest.mark.parametrize("name", ["folder", "some.tar", "some.txt"])
def test_images_of_a_folder_have_the_librarys_codes_and_broken_ones_are_listed(name, folder, hasher, code_of, tmp_path):
    (tmp_path / name).symlink_to(folder)
    codes, labels, broken = encoded(Source(str(tmp_path / name)), hasher)
    assert codes == code_of
    assert broken == BROKEN
    assert labels["2/02.png"] == "2"
    alone = encoded(Source(str(folder / "2/02.png")), hasher)
    assert alone == ({"02.png": code_of["2/02.png"]}, {"02.png": "2"}, set())


@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_a_list_names_images_from_its_own_folder_each_once(kind, folder, hasher, code_of):
    names = ["2/02.png", "0/00.png", "0/missing.png", *(["./2/02.png"] if kind == "txt" else [])]
    path = folder / f"some.{kind}"
    header, rows = ("path,label\n", [f"{name},class {name[0]}" for name in names]) if kind == "csv" else ("", names)
    path.write_text(header + "\n".join(rows), "utf-8-sig")
    codes, labels, broken = encoded(Source(str(path)), hasher)
    assert codes == {name: code_of[name] for name in ("0/00.png", "2/02.png")}
    assert broken == {"0/missing.png"}
    assert labels["2/02.png"] == ("class 2" if kind == "csv" else "2")


def test_what_is_passed_over_is_said_and_what_cannot_be_read_is_listed(tmp_path, pictures, hasher, caplog):
    photos, elsewhere = tmp_path / "photos", tmp_path / "elsewhere"
    (photos / "an.index" / "segments").mkdir(parents=True)
    elsewhere.mkdir()
    (photos / "no suffix").write_bytes(pictures["2/02.png"])
    (elsewhere / "1.jfif").write_bytes(pictures["0/00.png"])
    (photos / "linked").symlink_to(elsewhere)
    (photos / "linked again").symlink_to(elsewhere)
    (photos / "lost").symlink_to("/nowhere")
    (photos / "notes.txt").write_text("no image")
    os.mkfifo(photos / "pipe.png")
    (photos / "an.index" / "index.sqlite").touch()
    (photos / "an.index" / "1.png").write_bytes(pictures["0/00.png"])
    codes, _, broken = encoded(Source(str(photos)), hasher)
    assert set(codes) == {"linked/1.jfif", "no suffix"}
    assert broken == {"lost", "pipe.png"}
    assert all(part in caplog.text for part in ("passed over", ": 2 ("))


def test_a_bucket_is_asked_for():
    with pytest.raises(InputError, match="s3:// names no bucket: give one"):
        Source("s3://").blocks(16)


def test_tar_shards_are_a_block_each_and_samples_have_classes(tmp_path, pictures, hasher, code_of):
    names = sorted(pictures)
    for shard, half in enumerate((names[:20], names[20:])):
        members = {}
        for name in half:
            members[name] = pictures[name]
            members[name.replace(".png", ".cls")] = name[:1].encode()
        # As macOS's tar leaves them.
        members["._a.png"] = members[".DS_Store"] = b"no image"
        write_tar(tmp_path / f"shard-{shard}.tar", members)
    source = Source(f"{tmp_path}/shard-*.tar")
    codes, labels, broken = encoded(source, hasher)
    assert [block.shard for block in source.blocks(16)] == ["shard-0.tar", "shard-1.tar"]
    where = {name: f"shard-{names.index(name) // 20}.tar/{name}" for name in names}
    assert codes == {where[name]: code for name, code in code_of.items()}
    assert broken == {where[name] for name in BROKEN}
    assert all(label == name.split("/")[1] for name, label in labels.items())


@pytest.mark.parametrize("order", ["beside", "after", "before"])
def test_an_image_of_a_shard_has_its_own_label_whatever_dots_are_in_names_and_wherever_it_stands(
    order, tmp_path, pictures, hasher
):
    content = next(content for name, content in sorted(pictures.items()) if name not in BROKEN)
    named = {"d.1/photo.v1.0001": "cat", "d.1/photo.v1.0002": "dog", "d.2/photo.v1.0001": "cow", "plain": "owl"}
    images = {f"{stem}.png": content for stem in [*named, "plain.left", "photo.v1"]}
    labels = {f"{stem}.cls": label.encode() for stem, label in named.items()}
    beside = {name: content for stem in named for name, content in [*images.items(), *labels.items()] if stem in name}
    members = {"beside": {**beside, **images}, "after": {**images, **labels}, "before": {**labels, **images}}[order]
    write_tar(tmp_path / "some.tar", members)
    _, found, broken = encoded(Source(f"{tmp_path}/some.tar"), hasher)
    expected = {f"{stem}.png": label for stem, label in named.items()}
    assert not broken
    assert found == {f"some.tar/{name}": expected.get(name, "owl" if "plain" in name else None) for name in images}


@pytest.mark.parametrize("bytes_left", [600, 1100, 1536])
def test_a_shard_that_ends_in_the_middle_gives_what_is_before_and_is_listed(bytes_left, tmp_path, pictures, hasher):
    write_tar(tmp_path / "whole.tar", {name: pictures[name] for name in ("0/00.png", "0/03.png")})
    (tmp_path / "CUT.TAR").write_bytes((tmp_path / "whole.tar").read_bytes()[:bytes_left])
    codes, _, broken = encoded(Source(f"{tmp_path}/CUT.TAR"), hasher)
    assert set(codes) == ({"CUT.TAR/0/00.png"} if bytes_left > 1024 else set())
    assert broken == {"CUT.TAR"}


def parquet(path, pictures, rows_per_group, **columns):
    names = sorted(pictures)
    images = [{"bytes": pictures[name], "path": name} for name in names]
    table = pyarrow.table({"image": images, "label": [int(name[0]) for name in names], **columns})
    pyarrow.parquet.write_table(table, path, row_group_size=rows_per_group)
    return names


def test_blocks_of_parquet_are_row_groups_and_ids_are_rows(tmp_path, pictures, hasher, code_of):
    names = parquet(tmp_path / "images.parquet", pictures, rows_per_group=6)
    source = Source(str(tmp_path))
    assert [block.row_groups for block in source.blocks(10)] == [(0, 1), (2, 3), (4, 5), (6,)]
    codes, labels, broken = encoded(source, hasher, 10)
    row = {name: f"images.parquet:{number}" for number, name in enumerate(names)}
    assert codes == {row[name]: code for name, code in code_of.items()}
    assert broken == {row[name] for name in BROKEN}
    assert labels[row["2/02.png"]] == "2"


def test_parquet_with_a_column_of_ids_has_these_and_one_that_comes_again_is_left_out(tmp_path, pictures, hasher):
    parquet(tmp_path / "images.parquet", pictures, 40, id=[*(f"id {number}" for number in range(39)), "id 0"])
    codes, _, broken = encoded(Source(str(tmp_path / "images.parquet")), hasher)
    assert "id 0" in codes.keys() & broken
    assert len(codes) == 37


@pytest.mark.parametrize(
    ("files", "address", "message"),
    [
        ({}, "nowhere", "is not there: give a folder"),
        ({"notes.txt.bak": b""}, "", "there is no image in"),
        ({"a.png": b"", "b.tar": b""}, "", "files of several kinds, a.png and b.tar: give a glob"),
        ({"a.parquet": b"no Parquet"}, "", "cannot be read as Parquet"),
        ({}, "missing.csv", "is missing"),
        ({}, "missing.txt", "is not there: give a list"),
        ({}, "*.tar", "there is no image in"),
    ],
)
def test_a_source_that_cannot_be_listed_is_refused_in_one_line(files, address, message, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as refused:
        list(Source(f"{tmp_path}/{address}".rstrip("/")).blocks(16))
    assert "\n" not in str(refused.value)


def test_parquet_without_the_column_of_images_names_those_it_has(tmp_path, pictures):
    parquet(tmp_path / "images.parquet", pictures, 40)
    with pytest.raises(InputError, match=r"has no column `picture`: .* one of image, label"):
        list(Source(str(tmp_path), image_column="picture").blocks(16))
