"""Folders of indexes that earlier versions have written, made here byte by byte: they are opened, and go on."""

import hashlib
import json
import sqlite3
from contextlib import closing
from zlib import crc32

import numpy as np
import pytest

from deephash_pipeline.hamming import ByFeatures, HammingIndex

CODES = np.array([[7, 1], [9, 1], [7, 1], [0, 0], [9, 1], [255, 255], [7, 1]], dtype=np.uint8)
IDS = {"integers": [40, 10, 20, 60, 50, 30, 70], "consecutive": [3, 4, 5, 6, 7, 8, 9], "text": list("dabfecg")}
SEGMENT_ROWS = 5
FEATURES = np.arange(14, dtype=np.int8).reshape(7, 2)
SCALES = np.ones((7, 1), dtype="<f4")
LABELS = ["cat", "dog", None, "cat", "dog", "cat", "dog"]
NAME = "0123456789abcdef" * 2
TABLES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE segments (first_position INTEGER PRIMARY KEY, name TEXT NOT NULL, items INTEGER NOT NULL,
                       digest TEXT NOT NULL);
CREATE TABLE tail (position INTEGER PRIMARY KEY, id NOT NULL, code BLOB NOT NULL, features BLOB);
CREATE TABLE removed (change INTEGER PRIMARY KEY, position INTEGER NOT NULL UNIQUE);
CREATE TABLE metadata (position INTEGER PRIMARY KEY, "digest of this row" INTEGER, label);
"""


def digest(row, name, value):
    plain = f"b{value.hex()}" if isinstance(value, bytes) else f"s{value}" if isinstance(value, str) else f"i{value}"
    return 0 if value is None else crc32(f"{row}\0{name}\0{plain}".encode())


def arrays_of(kind):
    """What the file of the first five items has: codes 7, 9 and 0, each once, and ids."""
    arrays = {
        "words": np.array([[0x0107, 0x0109, 0]], dtype="<u8"),
        "starts": np.array([0, 2, 4, 5], dtype="<u4"),
        "rows": np.array([0, 2, 1, 4, 3], dtype="<u4"),
        "code_of": np.array([0, 1, 0, 2, 1], dtype="<u4"),
    }
    if kind == "integers":
        order = np.array([1, 2, 0, 4, 3], dtype="<u4")
        return {**arrays, "ids": np.array(IDS[kind][:SEGMENT_ROWS], dtype="<i8"), "id_order": order}
    if kind == "consecutive":
        return {**arrays, "consecutive_ids": np.array([3, SEGMENT_ROWS], dtype="<i8")}
    hashes = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in IDS[kind][:SEGMENT_ROWS]]
    hashes = np.frombuffer(b"".join(hashes), dtype="<u8")
    text = np.frombuffer("".join(IDS[kind][:SEGMENT_ROWS]).encode(), dtype=np.uint8)
    starts, order = np.arange(SEGMENT_ROWS + 1, dtype="<i8"), np.argsort(hashes).astype("<u4")
    return {**arrays, "text_ids": text, "text_starts": starts, "text_hashes": hashes, "id_order": order}


def write_segment(folder, kind, version):
    """Write the file, and that of features; return its digest."""
    header, body = {"first_position": 0, "arrays": {}}, b""
    for name, array in arrays_of(kind).items():
        header["arrays"][name] = [array.dtype.str, array.shape, len(body)]
        body += array.tobytes() + bytes(-array.nbytes % 64)
    if version == 3:
        header |= {"features": 6, "feature_dtype": "|i1"}
        stored = np.concatenate([FEATURES, SCALES.view(np.int8)], axis=1)[:SEGMENT_ROWS]
        (folder / f"{NAME}.z").write_bytes(stored.tobytes())
    text = json.dumps(header).encode()
    start = b"deephash codes 1\n" + len(text).to_bytes(8, "little") + text
    content = start + bytes(-len(start) % 64) + body
    (folder / NAME).write_bytes(content)
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def write_index(folder, kind, version):
    (folder / "segments").mkdir(parents=True)
    of_segment, sum_of_rows = write_segment(folder / "segments", kind, version), digest(1, "", 0)
    settings = {"format": version, "code_length": 16, "width": 2 * (version == 3), "next_position": 7, "generation": 1}
    settings |= {"feature_type": "int8"} if version == 3 else {}
    settings |= {"kind": "text" if kind == "text" else "integer", "described": 7}
    with closing(sqlite3.connect(folder / "index.sqlite")) as ledger:
        ledger.execute("PRAGMA journal_mode=WAL")
        ledger.executescript(TABLES)
        ledger.execute("INSERT INTO segments VALUES (0, ?, ?, ?)", (NAME, SEGMENT_ROWS, of_segment))
        for position in range(SEGMENT_ROWS, 7):
            code = CODES[position].tobytes() + bytes(6)
            features = FEATURES[position].tobytes() + SCALES[position].tobytes() if version == 3 else None
            row = {"id": IDS[kind][position], "code": code, "features": features}
            ledger.execute("INSERT INTO tail VALUES (?, ?, ?, ?)", (position, *row.values()))
            sum_of_rows += sum(digest(position, name, value) for name, value in row.items())
        ledger.execute("INSERT INTO removed (position) VALUES (1)")
        for position, label in enumerate(LABELS):
            ledger.execute("INSERT INTO metadata VALUES (?, ?, ?)", (position, digest(position, "label", label), label))
        settings["rows"] = sum_of_rows
        entry = f"SegmentEntry(first_position=0, name={NAME!r}, items={SEGMENT_ROWS}, digest={of_segment!r})"
        settings["digest"] = digest("settings", "", f"{sorted(map(str, settings.items()))}[{entry}]")
        ledger.executemany("INSERT INTO settings VALUES (?, ?)", settings.items())
        ledger.commit()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", list(IDS))
def test_an_index_of_an_earlier_version_is_opened_and_changed(tmp_path, kind, version):
    folder, ids = tmp_path / "index", IDS[kind]
    write_index(folder, kind, version)

    def check(index, present):
        assert list(index) == [ids[row] for row in present]
        for row in present:
            item = index.get(ids[row])
            assert item.code.tolist() == CODES[row].tolist()
            assert item.metadata == ({} if LABELS[row] is None else {"label": LABELS[row]})
            same = [other for other in present if (CODES[other] == CODES[row]).all()]
            assert index.search(CODES[row : row + 1], len(same))[0] == [(ids[other], 0) for other in same]
        dogs = [ids[row] for row in present if LABELS[row] == "dog"]
        assert sorted(index.search(CODES[:1], 9, {"label": "dog"}).ids[0]) == sorted(dogs)
        if version == 3:
            np.testing.assert_array_equal(index.features_of([ids[row] for row in present]), FEATURES[present])
            ordered = index.search(CODES[:1], 1, rerank=ByFeatures(FEATURES[4:5].astype(np.float32)))
            assert ordered.ids.tolist() == [[ids[4]]]

    present = [0, 2, 3, 4, 5, 6]
    with HammingIndex.open(folder, read_only=True) as index:
        check(index, present)
    with HammingIndex.open(folder) as index:
        assert ids[1] not in index
        index.remove([ids[6]])
        check(index, present[:-1])
        index.compact()
        check(index, present[:-1])
    with HammingIndex.open(folder, read_only=True) as index:
        check(index, present[:-1])
        assert index.info()["segments"] == 1 and index.info()["removed"] == 0
