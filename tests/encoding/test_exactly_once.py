"""Every image is in one file of codes once, however often workers or the command are killed."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.encoding import CodeFolder, EncodingWorkers, Source, encode_source
from deephash_pipeline.encoding.code_folder import MANIFEST
from tests.encoding.conftest import BROKEN

pytestmark = pytest.mark.usefixtures("fork_server")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def living_in_group(group):
    """Processes of a group that have not ended; one whose exit code nobody asks for stays listed as a zombie."""
    return [
        process
        for process in psutil.process_iter(["status"])
        if process.info["status"] not in (None, psutil.STATUS_ZOMBIE) and os.getpgid(process.pid) == group
    ]


@pytest.fixture(scope="module")
def undisturbed(folder, hasher, tmp_path_factory):
    """Codes of the pictures, two images a block, made without a kill; not to be changed."""
    codes = tmp_path_factory.mktemp("codes") / "undisturbed"
    report = encode_source(hasher, Source(str(folder)), codes, EncodingWorkers(2, device="cpu"), 2)
    assert (report.blocks, report.images, len(report.broken)) == (20, 38, 2)
    assert {broken.name for broken in report.broken} == BROKEN
    return codes


def test_files_of_codes_have_every_image_once_with_the_librarys_code(undisturbed, code_of):
    blocks = list(CodeFolder(undisturbed))
    names = [name for block in blocks for name in block.names]
    assert names == list(code_of)
    assert np.concatenate([block.codes for block in blocks]).tolist() == list(code_of.values())
    assert {broken.name for block in blocks for broken in block.broken} == BROKEN


def test_of_what_is_done_nothing_is_done_again(undisturbed, folder, hasher):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.iterdir()}
    report = encode_source(hasher, Source(str(folder)), undisturbed, workers=EncodingWorkers(device="cpu"))
    assert (report.there, report.images) == (20, 0)
    assert {path: path.stat().st_mtime_ns for path in undisturbed.iterdir()} == before


def test_a_killed_worker_ends_the_command_in_one_line_and_the_same_command_goes_on(
    undisturbed, folder, hasher, tmp_path
):
    def kill_one():
        while not ended.wait(0.001):
            if list(tmp_path.glob("codes/codes-*")):
                for worker in multiprocessing.active_children()[:1]:
                    worker.kill()

    ended = threading.Event()
    killer = threading.Thread(target=kill_one)
    killer.start()
    arguments = (hasher, Source(str(folder)), tmp_path / "codes", EncodingWorkers(2, device="cpu"), 2)
    try:
        with pytest.raises(InputError, match=r"a worker was killed.*the same command goes on") as refused:
            encode_source(*arguments)
    finally:
        ended.set()
        killer.join()
    assert "\n" not in str(refused.value)
    assert encode_source(*arguments).there > 0
    assert contents(tmp_path / "codes") == contents(undisturbed)


@pytest.mark.complete
def test_a_command_that_is_killed_goes_on_where_it_was_and_leaves_no_worker(undisturbed, folder, hasher, tmp_path):
    arguments = ("encode", "pretrained:digits-48", folder, "-o", tmp_path / "codes", "--images-per-block=2")
    command = subprocess.Popen(
        [sys.executable, "-m", "deephash_pipeline", *map(str, arguments)], start_new_session=True, cwd=tmp_path
    )
    until = time.monotonic() + 300
    while not list(tmp_path.glob("codes/codes-*")) and command.poll() is None and time.monotonic() < until:
        time.sleep(0.002)
    command.kill()
    command.wait()
    while living_in_group(command.pid) and time.monotonic() < until:
        time.sleep(0.05)
    if living_in_group(command.pid):
        os.killpg(command.pid, signal.SIGKILL)
        pytest.fail("workers outlive their command")
    report = encode_source(hasher, Source(str(folder)), tmp_path / "codes", workers=EncodingWorkers(device="cpu"))
    assert report.there > 0
    assert contents(tmp_path / "codes") == contents(undisturbed)


def test_blocks_of_new_changed_and_newly_readable_images_are_made_again(folder, hasher, code_of, tmp_path, monkeypatch):
    pictures = tmp_path / "pictures"
    shutil.copytree(folder / "0", pictures)
    arguments = (hasher, Source(str(pictures)), tmp_path / "codes", EncodingWorkers(1, device="cpu"), 4)
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("00.png"))
    assert encode_source(*arguments).blocks == 4
    monkeypatch.undo()
    assert encode_source(*arguments).there == 3
    shutil.copy(pictures / "00.png", pictures / "39.png")
    shutil.copy(pictures / "03.png", pictures / "99.png")
    report = encode_source(*arguments)
    assert (report.blocks, report.there, report.images) == (4, 3, 3)
    blocks = list(CodeFolder(tmp_path / "codes"))
    codes = {name: code for block in blocks for name, code in zip(block.names, block.codes, strict=True)}
    assert len(codes) == len(list(pictures.iterdir()))
    assert codes["39.png"].tolist() == code_of["0/00.png"]
    assert codes["99.png"].tolist() == code_of["0/03.png"]


def test_a_folder_of_codes_takes_no_other_hasher_and_no_other_images(undisturbed, folder, hasher, tmp_path):
    with pytest.raises(InputError, match="has codes of another hasher"):
        encode_source(ImageHasher.pretrained("mnist-48", "cpu"), Source(str(folder)), undisturbed)
    with pytest.raises(InputError, match="has codes of other images, those of"):
        encode_source(hasher, Source(str(folder / "1")), undisturbed)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match="is not empty and has no codes"):
        encode_source(hasher, Source(str(folder)), tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda block: block.unlink(), "lacks block [0-9a-f]{32}: run `deephash-pipeline encode"),
        (lambda block: block.write_bytes(block.read_bytes()[:-1]), "is damaged"),
        (lambda block: block.write_bytes(block.read_bytes()[:-1] + b"\xff"), "its content is not what was written"),
        (lambda block: block.write_bytes(max(block.parent.glob("codes-*")).read_bytes()), "other images"),
        (lambda block: os.truncate(block.parent / MANIFEST, 99), f"{MANIFEST} is damaged"),
    ],
)
def test_a_file_of_codes_or_a_description_that_is_not_what_was_written_is_refused(
    damage, message, undisturbed, tmp_path
):
    for name, content in contents(undisturbed).items():
        (tmp_path / name).write_bytes(content)
    damage(min(tmp_path.glob("codes-*")))
    with pytest.raises(InputError, match=message):
        list(CodeFolder(tmp_path))
