"""`index build` and `duplicates --index`, killed at random moments and given again: nothing is lost or left.

DEEPHASH_KILLS sets how often.
"""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import FeatureExtractor, ImageHasher
from deephash_pipeline.deephash.feature_hash import learned_hash
from deephash_pipeline.hamming.index_folder import own_files
from deephash_pipeline.hashing import ITQ
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.photographs.duplicates.kept import read_kept
from deephash_pipeline.photographs.stored import SHIPPED
from tests.cli import killed
from tests.cli.test_photographs import write_photos

KILLS = int(os.environ.get("DEEPHASH_KILLS", "3"))
PICTURES, TWICE = 140, (4, 6, 9)
pytestmark = pytest.mark.usefixtures("fork_server")


@pytest.fixture(scope="module")
def run(weights, tmp_path_factory):
    """Run a command in a process, with a shipped hasher that was fitted on other pictures."""
    extractor = FeatureExtractor.pretrained("squeezenet1_1", weights=weights, image_size=killed.SIZE, unit_length=True)
    noise = np.random.default_rng(0).integers(0, 256, (70, *killed.SIZE, 3), dtype=np.uint8)
    encoder, about = learned_hash(ITQ(64), extractor, extractor.features(noise))
    shipped = tmp_path_factory.mktemp("shipped") / "hasher.safetensors"
    ImageHasher(extractor.trunk, encoder, about.model_copy(update={"benchmark": SHIPPED})).save(shipped)
    return lambda arguments, seconds=None: killed.run(arguments, weights, shipped, seconds)


@pytest.fixture(scope="module")
def undisturbed(run, tmp_path_factory):
    """Pictures, some of them twice, the command that indexes them, and what it makes in how many seconds."""
    folder = tmp_path_factory.mktemp("undisturbed")
    write_photos(folder / "colours", range(PICTURES))
    for row in TWICE:
        picture, again = files_of(folder, row)
        again.write_bytes(picture.read_bytes() + b"\0")
    status, seconds = run(("index", "build", folder / "x.index", folder / "colours", "--bits", 64))
    assert status == 0
    return folder, seconds


def files_of(folder, row):
    """A picture and its copy, which need not be there."""
    picture = folder / "colours" / ("warm" if row % 2 else "cold") / f"{row:03d}.png"
    return picture, picture.with_stem(f"again-{row}")


def files_in(folder):
    """Bytes of all files, but for what SQLite keeps beside a ledger while one that was killed had it open."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    return {path: path.read_bytes() for path in files}


def stored(folder):
    """Hash function, and by its name the code, features and metadata of every item of an index."""
    with ImageIndex.open(folder, read_only=True, device="cpu") as images:
        names = list(images)
        items = images.index.items(names)
        rows = zip(names, items, images.index.features_of(names), strict=True)
        of_items = {name: (item.code.tolist(), features.tolist(), item.metadata) for name, item, features in rows}
        return images.hasher.description.method, of_items


def moments(seconds):
    """Seconds after which a command that takes so many is killed, spread over its time."""
    rng = np.random.default_rng(5)
    return (rng.uniform(0, 1) * seconds for _ in iter(int, 1))


def test_a_killed_build_of_a_folder_loses_nothing_and_ends_as_one_that_nobody_disturbed(run, undisturbed, tmp_path):
    folder, seconds = undisturbed
    method, expected = stored(folder / "x.index")
    assert (method, len(expected)) == ("srh", PICTURES + len(TWICE))
    kills, number, at = 0, 0, moments(seconds)
    while kills < KILLS:
        number += 1
        index = tmp_path / f"{number}.index"
        build = ("index", "build", index, folder / "colours", "--bits", 64)
        certain = set()
        while kills < KILLS and (status := run(build, next(at))[0]):
            assert status == -signal.SIGKILL
            kills += 1
            try:
                method, present = stored(index)
            except InputError as error:
                # Nothing that was there has gone.
                assert "has no index" in str(error) and not certain
                continue
            assert certain <= present.keys() <= expected.keys()
            certain = present.keys()
            for name, (code, features, metadata) in present.items():
                assert (features, metadata) == expected[name][1:]
                assert method != "srh" or code == expected[name][0]
        assert run(build)[0] == 0
        assert stored(index) == ("srh", expected)
        for made in (index, folder / "x.index"):
            assert {path.relative_to(made).parts[0] for path in own_files(made)} >= {"hasher.safetensors", "segments"}
        assert sorted(path.name for path in tmp_path.iterdir()) == [f"{past + 1}.index" for past in range(number)]


def test_duplicates_that_are_killed_leave_outputs_whole_or_not_there_and_the_index_as_it_was(
    run, undisturbed, tmp_path
):
    folder, _ = undisturbed
    outputs = {f"--{kind}": tmp_path / f"found.{kind}" for kind in ("json", "csv", "html", "remove-list")}
    options = [word for option in outputs.items() for word in option]
    paths = [*(path for row in TWICE for path in files_of(folder, row)), *(files_of(folder, row)[0] for row in (1, 2))]
    find = ("duplicates", *paths, "--index", folder / "x.index", *options, "--overwrite")
    items = files_in(folder)
    status, seconds = run(find)
    assert status == 0
    # A look keeps what it has computed beside the items, for the next one.
    before = files_in(folder)
    assert before.items() - items.items() == {(kept := folder / "x.index" / "fingerprints.npz", before[kept])}
    assert items.items() <= before.items()
    expected = {path: path.read_bytes() for path in outputs.values()}
    groups = json.loads(outputs["--json"].read_text())["groups"]
    assert {frozenset(member["path"] for member in group) for group in groups} == {
        frozenset(map(str, files_of(folder, row))) for row in TWICE
    }
    kills, at = 0, moments(seconds)
    while kills < KILLS:
        for path in outputs.values():
            path.unlink(missing_ok=True)
        status, _ = run(find, next(at))
        assert status in (0, -signal.SIGKILL)
        kills += status != 0
        for path in outputs.values():
            assert not path.exists() or path.read_bytes() == expected[path]
        assert files_in(folder) == before
    assert run(find)[0] == 0
    assert {path: path.read_bytes() for path in outputs.values()} == expected


def test_first_looks_at_once_or_killed_find_the_same_and_leave_of_what_they_keep_all_or_nothing(
    run, undisturbed, tmp_path
):
    folder, _ = undisturbed
    index, paths = folder / "x.index", [path for row in TWICE for path in files_of(folder, row)]

    def look(name, seconds=None):
        return run(("duplicates", *paths, "--index", index, "--json", tmp_path / name, "--overwrite"), seconds)

    def forget():
        (index / "fingerprints.npz").unlink(missing_ok=True)

    forget()
    status, seconds = look("alone.json")
    assert status == 0
    expected, known, before = (tmp_path / "alone.json").read_bytes(), read_kept(index), files_in(folder).keys()
    assert known.prints.keys() == {photo for pair in known.verdicts for photo in pair}

    def require_known():
        read = read_kept(index)
        assert (read.prints.keys(), read.verdicts) == (known.prints.keys(), known.verdicts)

    forget()
    with ThreadPoolExecutor(2) as pool:
        assert [status for status, _ in pool.map(look, ("one.json", "other.json"))] == [0, 0]
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes() == expected
    assert files_in(folder).keys() == before
    require_known()
    kills, at = 0, moments(seconds)
    while kills < KILLS:
        forget()
        status, _ = look("killed.json", next(at))
        kills += status != 0
        if (index / "fingerprints.npz").exists():
            require_known()
        assert look("next.json")[0] == 0
        assert (tmp_path / "next.json").read_bytes() == expected
        require_known()
