"""What is refused because its file is not what was written, and what is read although nobody can write."""

import pickle
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex

ITEMS = 1500
DAMAGES = 60
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An index whose items are all in the ledger, some removed, some without a label; not to be changed."""
    folder = tmp_path_factory.mktemp("whole") / "index"
    codes = np.random.default_rng(0).integers(0, 256, (ITEMS, 6), dtype=np.uint8)
    with HammingIndex.create(folder, 48) as index:
        labels = [None if item % 7 == 0 else str(item % 10) for item in range(ITEMS)]
        metadata = {"label": labels, "year": [item / 2 for item in range(ITEMS)]}
        index.add([f"photos/{item}.png" for item in range(ITEMS)], codes, metadata)
        index.remove([f"photos/{item}.png" for item in range(3, 400, 7)])
        index.mark("the hasher")
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "index")


def answers(folder, read_only=True):
    with HammingIndex.open(folder, read_only) as index:
        return answers_of(index)


def answers_of(index):
    """All that can be asked of an index."""
    queries = np.random.default_rng(1).integers(0, 256, (10, 6), dtype=np.uint8)
    conditions = [None, {"label": ["3", "4"]}, {"label": None}, {"year": {">": 100}}]
    found = [index.search(queries, 5, where) for where in conditions]
    items = [(item.id, item.code.tolist(), item.metadata) for item in index.items(list(index))]
    return [*((some.ids.tolist(), some.distances.tolist()) for some in found), items, index.made_by]


def test_damage_of_the_ledger_is_refused_or_changes_no_answer(whole, folder):
    expected, ledger = answers(whole), (whole / "index.sqlite").read_bytes()
    rng, refused = np.random.default_rng(2), 0
    for damage in range(DAMAGES):
        content, length = bytearray(ledger), (1, 1, 64)[damage % 3]
        # Of the whole file, and of its first pages, which say what the others are.
        start = int(rng.integers((len(content), 8192, len(content))[damage % 3] - length))
        content[start : start + length] = bytes(
            value ^ 1 << int(rng.integers(8)) for value in content[start : start + length]
        )
        (folder / "index.sqlite").write_bytes(content)
        for read_only in (True, False):
            try:
                assert answers(folder, read_only) == expected
            except InputError as error:
                refused += 1
                assert "\n" not in str(error)
            for log in folder.glob("index.sqlite-*"):
                log.unlink()
    assert refused > DAMAGES / 2


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tail SET code = zeroblob(8) WHERE position = 9",
        "UPDATE tail SET id = 'photos/x.png' WHERE position = 9",
        "DELETE FROM tail WHERE position = 9",
        "DELETE FROM removed WHERE position = 3",
        "UPDATE settings SET value = 'another' WHERE name = 'made_by'",
        "UPDATE settings SET value = 40 WHERE name = 'code_length'",
        "UPDATE metadata SET label = '8' WHERE position = 9",
        "DELETE FROM metadata WHERE position = 9",
    ],
)
def test_a_row_that_is_not_what_was_written_is_noticed(folder, change):
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        connection.execute(change)
        connection.commit()
    with pytest.raises(InputError, match=r"index\.sqlite is damaged"):
        answers(folder)


def test_digests_follow_every_change(folder):
    code = np.zeros((1, 6), dtype=np.uint8)
    with HammingIndex.open(folder) as index:
        index.add(["new"], code, {"label": ["x"], "colour": [-0.0]})
        index.add(["new"], code, {"LABEL": [True]}, replace=True)
        index.add(["without"], code)
        expected = list(index)
    with HammingIndex.open(folder) as index:
        assert index.search(code, 3, {"label": 1}).ids.tolist() == [["new"]]
        index.compact()
        index.remove(["without"])
        index.compact()
    with HammingIndex.open(folder) as index:
        assert list(index) == [name for name in expected if name != "without"]
        assert index.search(code, 1, {"label": 1}).ids.tolist() == [["new"]]


def test_a_folder_of_segments_that_is_missing_is_named_where_items_were_in_it(whole, folder):
    (folder / "segments").rmdir()
    assert answers(folder) == answers(folder, read_only=False) == answers(whole)
    with HammingIndex.open(folder) as index:
        index.compact()
    shutil.rmtree(folder / "segments")
    for read_only in (True, False):
        with pytest.raises(InputError, match=r"segments/[0-9a-f]+ is missing"):
            HammingIndex.open(folder, read_only)
    (folder / "segments").touch()
    with pytest.raises(InputError, match=r"segments/[0-9a-f]+ cannot be read"):
        HammingIndex.open(folder)


def test_an_index_on_a_disk_that_is_mounted_for_reading_is_searched_and_followed(folder):
    program = (
        "import itertools, sys; from deephash_pipeline.hamming import HammingIndex; "
        "from tests.hamming.test_damage import answers_of; index = HammingIndex.open(sys.argv[1], read_only=True)\n"
        "for _ in itertools.chain([0], sys.stdin): print(answers_of(index), flush=True)"
    )
    mounted = 'mount --bind $0 $0 && mount -o remount,bind,ro $0 && ! touch $0/x 2>/dev/null && exec $1 -c "$2" $0'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounted, str(folder), sys.executable, program]
    if shutil.which("unshare") is None or subprocess.run([*command[:3], "true"], check=False).returncode:
        pytest.skip("nobody but root can mount here")
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:

        def follows():
            reader.stdin.write("\n")
            reader.stdin.flush()
            return reader.stdout.readline() == f"{answers(folder)}\n"

        assert reader.stdout.readline() == f"{answers(folder)}\n"
        # It is mounted for writing elsewhere.
        with HammingIndex.open(folder) as index:
            index.add(["new"], np.zeros((1, 6), dtype=np.uint8), {"label": ["3"]})
            assert follows()
        assert follows()
        with HammingIndex.open(folder) as index:
            index.remove(["photos/1.png"])
            index.compact()
        assert follows()


def test_a_pickled_index_opens_its_folder_anew(folder):
    with HammingIndex.open(folder) as index, pickle.loads(pickle.dumps(index)) as copy:
        index.add(["new"], np.zeros((1, 6), dtype=np.uint8))
        assert list(copy) == list(index)
        with pytest.raises(InputError, match="open for reading"):
            copy.remove(["new"])
    with pytest.raises(InputError, match="an index in memory cannot be pickled; create it in a folder"):
        pickle.dumps(HammingIndex(48))


@pytest.mark.parametrize(
    "use",
    [
        lambda index: index.add(["new"], np.zeros((1, 6), dtype=np.uint8)),
        lambda index: index.remove(["photos/0.png"]),
        lambda index: index.compact(),
        lambda index: index.metadata(["photos/0.png"]),
        lambda index: index.search(np.zeros((1, 6), dtype=np.uint8), 1, {"label": "3"}),
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_an_index_that_is_closed_says_so(folder, use, read_only):
    index = HammingIndex.open(folder, read_only)
    index.close()
    index.close()
    with pytest.raises(InputError, match=r"is closed; open it again|is open for reading"):
        use(index)
