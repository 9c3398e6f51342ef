from decimal import Decimal

import ml_dtypes
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.embeddings import ArrayVectors, VectorIndex, open_vectors

KINDS = {"float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64()}


def written(path, vectors, **columns):
    if path.suffix == ".npy":
        np.save(path, vectors)
    elif path.suffix == ".safetensors":
        safetensors.numpy.save_file({"bias": vectors[0].copy(), "embeddings": vectors}, path)
    else:
        lists = pa.array(list(vectors), type=pa.list_(KINDS[vectors.dtype.name]))
        # Rows of several groups.
        pq.write_table(pa.table({"vector": lists, **columns}), path, row_group_size=130)
    return path


def whole(source):
    return np.concatenate([block.vectors for block in source.blocks(97)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["z.npy", "z.safetensors", "z.parquet"])
def test_files_are_read_as_they_were_written(tmp_path, vectors, name, kind):
    z = vectors.astype(kind)
    source = open_vectors(written(tmp_path / name, z))
    assert (source.count, source.width) == z.shape
    assert [block.start for block in source.blocks(97)][:2] == [0, 97]
    np.testing.assert_array_equal(whole(source), z)
    rows = np.array([0, 5, 129, 130, 599])
    np.testing.assert_array_equal(source.take(rows), z[rows])


@pytest.mark.parametrize("kind", [pa.list_(pa.float32(), 24), pa.large_list(pa.float32())])
def test_lists_of_a_fixed_size_and_large_ones_are_vectors_too(tmp_path, vectors, kind):
    path = tmp_path / "z.parquet"
    pq.write_table(pa.table({"vector": pa.array(list(vectors), type=kind)}), path)
    np.testing.assert_array_equal(whole(open_vectors(path)), vectors)


class Exchanged:
    """What knows DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


FORMS = {
    "tensor that requires a gradient": lambda z: torch.tensor(z, requires_grad=True),
    "tensor of bfloat16": lambda z: torch.tensor(z).bfloat16(),
    "list of tensors": lambda z: [torch.tensor(row) for row in z],
    "Arrow lists of a fixed size": lambda z: pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), z.shape[1]),
    "Arrow chunks": lambda z: pa.chunked_array([pa.array(list(z[:7])), pa.array(list(z[7:]))]),
    "series": lambda z: pd.Series(list(z)),
    "data frame": pd.DataFrame,
    "array of bfloat16": lambda z: z.astype(ml_dtypes.bfloat16),
    "DLPack": Exchanged,
    "list of arrays": list,
    "list of lists": lambda z: z.tolist(),
}


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_vectors_come_as_whatever_libraries_have_them_in(vectors, make):
    source = ArrayVectors(make(vectors))
    assert (source.count, source.width) == vectors.shape
    np.testing.assert_allclose(whole(source), vectors, rtol=2**-8)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint32])
def test_whole_numbers_are_vectors_of_these_numbers(vectors, kind):
    z = np.abs(40 * vectors).clip(0, 127).astype(kind)
    for given in (z, torch.tensor(z.astype(np.int64)).to(torch.uint8)):
        np.testing.assert_array_equal(whole(ArrayVectors(given)), z)
        assert whole(ArrayVectors(given)).dtype.kind == "f"


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.int8, torch.uint8])
def test_files_have_numbers_of_8_and_16_bits(tmp_path, vectors, kind):
    z = torch.tensor(np.abs(40 * vectors).clip(0, 127)).to(kind)
    safetensors.torch.save_file({"z": z}, tmp_path / "z.safetensors")
    source = open_vectors(tmp_path / "z.safetensors")
    np.testing.assert_array_equal(whole(source), z.float().numpy())
    np.testing.assert_array_equal(source.take(np.array([3, 9])), z[[3, 9]].float().numpy())
    if kind == torch.int8:
        pq.write_table(pa.table({"z": pa.array(list(z.numpy()), type=pa.list_(pa.int8()))}), tmp_path / "z.parquet")
        np.testing.assert_array_equal(whole(open_vectors(tmp_path / "z.parquet")), z.float().numpy())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.array([1.0, 2.0]), "vectors are double of Arrow: give lists of numbers"),
        (pa.array([[1.0], None]), "row 1 has no vector"),
        (pa.array([[1.0], [1.0, 2.0]]), "row 1 has 2 numbers, the first has 1"),
        (pa.array([], type=pa.list_(pa.float32())), "has no vector"),
        (np.zeros((2, 3), np.complex64), "vectors is complex64 of shape"),
        (np.array(["a", "b"]), "vectors is <U1 of shape"),
        (pd.Series(["a", "b"]), "no table of numbers|vectors is"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_in_a_line(given, message):
    with pytest.raises(InputError, match=message) as caught:
        ArrayVectors(given)
    assert "\n" not in str(caught.value)


def test_other_columns_of_parquet_are_ids_and_metadata(tmp_path, vectors):
    columns = {
        "doi": pa.array([f"10.1/{row}" for row in range(600)]),
        "year": pa.array([2000 + row % 20 for row in range(600)]),
        "day": pa.array([row for row in range(600)], type=pa.date32()),
        "label": pa.array(["ab"[row % 2] for row in range(600)]).dictionary_encode(),
        "price": pa.array([Decimal(row) / 2 for row in range(600)]),
        "authors": pa.array([["x"]] * 600),
    }
    source = open_vectors(written(tmp_path / "z.parquet", vectors, **columns), ids="doi")
    assert source.left_out == ["authors"]
    with VectorIndex.build(tmp_path / "papers.index", source, code_length=24) as index:
        found = index.search(vectors[7], 3, {"year": 2007, "label": "b"})
        assert found.ids[0, 0] == "10.1/7"
        assert index.index.get("10.1/7").metadata == {
            "year": 2007,
            "day": "1970-01-08",
            "label": "b",
            "price": 3.5,
        }
        cheap = index.search(vectors[7], 600, {"price": {"<": 10}}).ids[0]
        assert sorted(cheap) == sorted(f"10.1/{row}" for row in range(20))


def test_durations_times_of_a_zone_and_long_decimals_compare_as_they_are(tmp_path, vectors):
    hours = pa.timestamp("s", "UTC")
    columns = {
        "length": pa.array([row * 1500 for row in range(600)], pa.duration("ms")),
        "day": pa.array([None, *range(599)], pa.duration("ns")),
        "taken": pa.array([1_698_500_000 + 3600 * row for row in range(600)], hours).cast(
            pa.timestamp("s", "Europe/Berlin")
        ),
        "big": pa.array([Decimal(2**53 + row) for row in range(600)], pa.decimal128(38, 0)),
        "huge": pa.array([Decimal(10**30)] * 600, pa.decimal128(38, 0)),
    }
    source = open_vectors(written(tmp_path / "z.parquet", vectors, **columns))
    with VectorIndex.build(tmp_path / "films.index", source, code_length=24) as index:
        items = [index.index.get(row).metadata for row in range(600)]
        assert [item["length"] for item in items] == [1.5 * row for row in range(600)]
        assert [item.get("day") for item in items[:3]] == [None, 0.0, 1e-9]
        taken = [item["taken"] for item in items]
        assert taken == sorted(set(taken)) and taken[0] == "2023-10-28 13:33:20.000Z"
        assert [item["big"] for item in items] == [2**53 + row for row in range(600)]
        assert items[0]["huge"] == 1e30


def table_of(rows):
    return pa.table({"v": pa.array(rows, pa.list_(pa.float32()))})


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("z.npy", lambda path, z: path.write_bytes(b"\x93NUMPY junk"), "cannot be read"),
        ("z.npy", lambda path, z: path.write_bytes(written(path, z).read_bytes()[:5000]), "cannot be read"),
        ("z.npy", lambda path, z: np.save(path, np.array([{}]), allow_pickle=True), "cannot be read"),
        ("z.npy", lambda path, z: np.save(path, z[:, :0]), r"of shape \(600, 0\)"),
        ("z.safetensors", lambda path, z: path.write_bytes(written(path, z).read_bytes()[:5000]), "cannot be read"),
        ("z.safetensors", lambda path, z: safetensors.numpy.save_file({"a": z, "b": z}, path), "2 tables .a, b."),
        ("z.safetensors", lambda path, z: safetensors.numpy.save_file({"a": z.astype("i4")}, path), "no tensor 'a'"),
        ("z.parquet", lambda path, z: path.write_bytes(written(path, z).read_bytes()[:5000]), "cannot be read"),
        ("z.parquet", lambda path, z: pq.write_table(table_of([*z[:400], z[0, 1:]]), path), "row 400 has 23 numbers"),
        ("z.parquet", lambda path, z: pq.write_table(table_of([*z[:9], None]), path), "row 9 has no vector"),
        (
            "z.parquet",
            lambda path, z: pq.write_table(pa.table({"year": [1, 2]}), path),
            "no column of lists of floats: .* it has year .int64",
        ),
        ("z.csv", lambda path, z: path.write_text("1,2"), "is no file of vectors"),
    ],
)
def test_a_file_that_has_no_vectors_is_named_and_leaves_nothing(tmp_path, vectors, name, write, message):
    path = tmp_path / name
    write(path, vectors)
    with pytest.raises(InputError, match=message) as caught:
        VectorIndex.build(tmp_path / "papers.index", path, code_length=8)
    assert name in str(caught.value) and "\n" not in str(caught.value)
    assert [found.name for found in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("suffix", [".npy", ".safetensors", ".parquet"])
@pytest.mark.parametrize("named", ["folder", "folder/*", "folder/**/*{suffix}"])
def test_a_folder_and_a_glob_are_their_files_in_the_order_of_their_names(tmp_path, vectors, suffix, named):
    (tmp_path / "folder" / "z").mkdir(parents=True)
    places = [tmp_path / "folder" / f"{name}{suffix}" for name in ("1", "0", "z/2")]
    parts = [vectors[200:310], vectors[:200], vectors[310:]]
    for place, part in zip(places, parts, strict=True):
        written(place, np.ascontiguousarray(part))
    (tmp_path / "folder" / "notes.txt").touch()
    expected = vectors[:310] if named == "folder/*" else vectors
    source = open_vectors(tmp_path / named.format(suffix=suffix))
    assert (source.count, source.width) == expected.shape
    np.testing.assert_array_equal(whole(source), expected)
    rows = np.array([0, 5, 199, 200, 309])
    np.testing.assert_array_equal(source.take(rows), vectors[rows])
    with VectorIndex.build(tmp_path / "x.index", tmp_path / named.format(suffix=suffix), code_length=16) as index:
        assert index.search(vectors[[3, 305]], 1).ids[:, 0].tolist() == [3, 305]


def test_ids_and_metadata_of_several_files_follow_one_another(tmp_path, vectors):
    for part, rows in (("a", range(300)), ("b", range(300, 600))):
        names = [f"paper/{row}" for row in rows]
        written(tmp_path / f"{part}.parquet", vectors[list(rows)], id=pa.array(names), year=pa.array([*rows]))
    with VectorIndex.build(tmp_path / "x.index", str(tmp_path / "*.parquet"), code_length=16) as index:
        assert index.search(vectors[[450]], 1, {"year": {">": 400}}).ids.tolist() == [["paper/450"]]


def test_files_that_do_not_belong_together_are_named(tmp_path, vectors):
    written(tmp_path / "a.npy", vectors)
    for second, message in (("b.npy", "has 5 numbers a row, .*a.npy has"), ("b.parquet", "several kinds, .*a.npy and")):
        written(tmp_path / second, np.ascontiguousarray(vectors[:, :5]))
        with pytest.raises(InputError, match=message):
            open_vectors(tmp_path)
        (tmp_path / second).unlink()
    (tmp_path / "empty").mkdir()
    for place, message in (("empty", "has no file of vectors"), ("*.parquet", "is not there")):
        with pytest.raises(InputError, match=message):
            open_vectors(tmp_path / place)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32(), 24), pa.list_(pa.float32())])
def test_a_row_without_a_vector_is_named(tmp_path, vectors, kind):
    rows = [*vectors[:70], None, *vectors[70:]]
    pq.write_table(pa.table({"vector": pa.array(rows, type=kind)}), tmp_path / "z.parquet")
    with pytest.raises(InputError, match=r"z\.parquet: (row 70|a row from 0 on) has no vector: mend or drop it"):
        VectorIndex.build(tmp_path / "x.index", tmp_path / "z.parquet", code_length=16)
