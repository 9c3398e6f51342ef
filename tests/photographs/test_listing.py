"""What of a folder is listed, and what is said of the rest."""

import logging

import pytest
from PIL import Image

from deephash_pipeline.photographs import list_images


def test_videos_of_live_photos_others_and_pages_are_passed_over_in_one_line(tmp_path, caplog):
    pytest.importorskip("pillow_heif")
    Image.new("RGB", (8, 8)).save(tmp_path / "IMG_1.heic", "HEIF")
    Image.new("RGB", (8, 8)).save(tmp_path / "IMG_2.jpg")
    for name in ("IMG_1.mov", "IMG_2.MOV", "film.mp4"):
        (tmp_path / name).write_bytes(b"\0\0\0\x14ftypqt  \0\0\0\0qt  ")
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.7\n")
    with caplog.at_level(logging.WARNING):
        files, unnamed = list_images([tmp_path])
    assert [image.path.name for image in files] == ["IMG_1.heic", "IMG_2.jpg"]
    [line] = caplog.messages
    assert "passed over" in line and "4 (" in line
    assert all(kind in line for kind in (".mov 1", ".MOV 1", ".mp4 1", ".pdf 1"))
    assert not unnamed
