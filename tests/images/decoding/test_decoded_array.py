import os
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images import batches
from deephash_pipeline.images.decoding.decode import decode_image
from deephash_pipeline.images.decoding.decoded_array import HEAD, IMAGE_DIGEST_BYTES, PENDING, DecodedArray, digest
from deephash_pipeline.images.decoding.image_files import ImageFiles

COUNT = 50


@pytest.fixture
def files(tmp_path):
    root = tmp_path / "raw"
    root.mkdir()
    pixels = np.random.default_rng(0).integers(256, size=(COUNT, 8, 8, 3)).astype(np.uint8)
    names = [f"{row:02d}.png" for row in range(COUNT)]
    for name, image in zip(names, pixels, strict=True):
        Image.fromarray(image).save(root / name)
    return ImageFiles(root, names, 8, 3)


@pytest.fixture
def decoded_names(monkeypatch):
    """Names of the files that are decoded while the test runs."""
    names = []

    def note(path, image_size, channels):
        names.append(path.name)
        return decode_image(path, image_size, channels)

    monkeypatch.setattr(batches, "decode_limited", note)
    return names


def folder_of(files):
    """Where they are decoded."""
    return files.root.parent / "decoded"


def expected(files):
    return np.stack([decode_image(files.root / name, files.image_size, files.channels) for name in files.names])


def decode(files, **provenance):
    working = DecodedArray(files, "training", folder_of(files), provenance)
    assert list(working.decode()) == []
    return working


def stored_digests(files):
    content = (folder_of(files) / "training.digests").read_bytes()[HEAD * IMAGE_DIGEST_BYTES :]
    return [content[start : start + IMAGE_DIGEST_BYTES] for start in range(0, len(content), IMAGE_DIGEST_BYTES)]


def test_images_are_decoded_in_order_into_a_memory_map(files):
    working = decode(files)
    images = working.whole_images()
    assert isinstance(images, np.memmap) and not images.flags.writeable
    np.testing.assert_array_equal(images, expected(files))
    assert working.digests == [digest(image.tobytes()) for image in images]


def test_no_image_is_an_array_too(files):
    assert decode(files[:0]).whole_images().shape == (0, 3, 8, 8)


def test_what_was_whole_when_the_process_was_killed_is_not_decoded_again(files, decoded_names):
    child = f"""
        import itertools, os
        from pathlib import Path
        from deephash_pipeline.images import batches
        from deephash_pipeline.images.decoding import decoded_array, image_files
        decode_limited, calls = batches.decode_limited, itertools.count(1)
        def decode_thirty(*arguments):
            return decode_limited(*arguments) if next(calls) <= 30 else os.kill(os.getpid(), {int(signal.SIGKILL)})
        batches.decode_limited, decoded_array.IMAGES_AT_ONCE = decode_thirty, 4
        files = image_files.ImageFiles(Path({str(files.root)!r}), {files.names!r}, 8, 3)
        list(decoded_array.DecodedArray(files, "training", Path({str(folder_of(files))!r})).decode())
        """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(child)], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    pending = [name for name, known in zip(files.names, stored_digests(files), strict=True) if known == PENDING]
    assert COUNT - 30 <= len(pending) < COUNT
    working = decode(files)
    assert sorted(decoded_names) == pending
    np.testing.assert_array_equal(working.whole_images(), expected(files))


def test_pixels_that_did_not_reach_the_disk_are_decoded_again(files, decoded_names):
    decode(files)
    decoded_names.clear()
    with (folder_of(files) / "training.npy").open("r+b") as array:
        array.seek(-3 * 8 * 8, os.SEEK_END)
        array.write(bytes(7))
    np.testing.assert_array_equal(decode(files).whole_images(), expected(files))
    assert decoded_names == [files.names[-1]]


CHANGES = {
    "content": lambda files: Image.new("L", (9, 9), 77).save(files.root / files.names[0]),
    "time": lambda files: os.utime(files.root / files.names[0], ns=(1, 1)),
    "one file fewer": lambda files: files[1:],
    "order": lambda files: files[np.arange(COUNT)[::-1].copy()],
    "size": lambda files: replace(files, image_size=4),
    "channels": lambda files: replace(files, channels=1),
    "truncated": lambda files: os.truncate(folder_of(files) / "training.npy", 1000),
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_files_or_another_size_start_over(files, decoded_names, change, caplog):
    caplog.set_level("INFO")
    decode(files)
    files = CHANGES[change](files) or files
    decoded_names.clear()
    np.testing.assert_array_equal(decode(files).whole_images(), expected(files))
    assert len(decoded_names) == len(files)
    assert "training: other images, size or code, or --force: all are decoded anew" in caplog.text


def test_other_code_or_raw_images_start_over_and_a_forced_run_once(files, decoded_names):
    runs = ({}, 1), ({}, 1), ({"forced": "a"}, 2), ({"forced": "a"}, 2), ({"forced": ""}, 2), ({"forced": "b"}, 3)
    for made_by, times in (*runs, ({"code": "new"}, 4), ({"code": "new", "raw_images": "new"}, 5)):
        decode(files, **made_by)
        assert len(decoded_names) == times * COUNT


def test_starting_over_leaves_alone_what_was_linked_to_the_former_file(files, tmp_path):
    decode(files)
    finished = tmp_path / "finished.npy"
    os.link(folder_of(files) / "training.npy", finished)
    before = finished.read_bytes()
    decode(files[1:])
    assert finished.read_bytes() == before


def test_broken_files_are_reported_in_order_and_left_out(files):
    for row in (40, 3):
        (files.root / files.names[row]).write_bytes(b"")
    working = DecodedArray(files, "training", folder_of(files))
    broken = list(working.decode())
    assert [row for row, _ in broken] == [3, 40]
    assert all("cannot identify image file" in reason for _, reason in broken)
    whole = np.setdiff1d(np.arange(COUNT), [3, 40])
    np.testing.assert_array_equal(working.whole_rows(), whole)
    np.testing.assert_array_equal(working.whole_images(), expected(files[whole]))


def test_broken_files_alone_are_tried_again(files, decoded_names):
    (files.root / files.names[3]).write_bytes(b"")
    for _ in range(2):
        decoded_names.clear()
        working = DecodedArray(files, "training", folder_of(files))
        assert [row for row, _ in working.decode()] == [3]
        assert len(working.whole_images()) == COUNT - 1
    assert decoded_names == [files.names[3]]


def test_several_images_are_decoded_at_once(files, monkeypatch):
    together = threading.Barrier(2, timeout=30)

    def decode_with_another(path, image_size, channels):
        if path.name in (files.names[0], files.names[-1]):
            together.wait()
        return decode_image(path, image_size, channels)

    monkeypatch.setattr(batches, "decode_image", decode_with_another)
    decode(files)


def test_what_is_decoded_is_kept_when_the_run_is_interrupted(files, decoded_names):
    for name in files.names[:5]:
        (files.root / name).write_bytes(b"")
    rows = DecodedArray(files, "training", folder_of(files)).decode()
    assert next(rows)[0] == 0
    rows.close()
    whole = COUNT - stored_digests(files).count(PENDING)
    decoded_names.clear()
    assert len(list(DecodedArray(files, "training", folder_of(files)).decode())) == 5
    assert len(decoded_names) == COUNT - whole


def test_a_disk_that_fills_up_while_whole_images_are_copied_is_reported_in_one_line(files, monkeypatch):
    (files.root / files.names[0]).write_bytes(b"")
    working = DecodedArray(files, "training", folder_of(files))
    assert len(list(working.decode())) == 1
    with monkeypatch.context() as patched, pytest.raises(InputError, match=r"training\.whole\.npy cannot be written"):
        patched.setattr(working, "_stored", Mock(side_effect=OSError("no space left on device")))
        working.whole_images()
    assert len(working.whole_images()) == COUNT - 1


def test_a_working_folder_that_cannot_be_made_is_reported_in_one_line(files):
    folder_of(files).write_text("a file in its place")
    with pytest.raises(InputError, match=r"training\.npy cannot be written"):
        decode(files)


MEMORY = """
    import resource
    from pathlib import Path
    import numpy as np
    from deephash_pipeline.project.datasets import NumpyDataset
    from deephash_pipeline.images.decoding.image_files import ImageFiles
    from deephash_pipeline.images.decoding.decoded_array import DecodedArray
    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    root = Path({root!r})
    names = sorted(path.name for path in root.iterdir())
    working = DecodedArray(ImageFiles(root, names, 256, 3), "training", root.parent / "decoded")
    before = peak()
    broken = list(working.decode())
    images = working.whole_images()
    NumpyDataset(str(root.parent / "images.npy")).save(images)
    print(len(broken), images.nbytes / 2**20, peak() - before)
"""


@pytest.mark.complete
def test_memory_stays_flat_while_an_array_of_any_size_is_decoded_and_saved(tmp_path):
    root = tmp_path / "raw"
    root.mkdir()
    Image.new("RGB", (8, 8), (1, 2, 3)).save(root / "000.png")
    for row in range(1, 450):
        os.link(root / "000.png", root / f"{row:03d}.png")
    (root / "broken.png").touch()
    script = textwrap.dedent(MEMORY.format(root=str(root)))
    child = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    broken, array, grown = map(float, child.stdout.split())
    assert broken == 1
    assert array > 80
    assert grown < 45
    assert np.load(tmp_path / "images.npy", mmap_mode="r").shape == (450, 3, 256, 256)
