"""`deephash-pipeline duplicates`: what must stay is never on the list of what to remove."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps, TiffImagePlugin

from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.photographs import list_images
from deephash_pipeline.photographs.duplicates import groups
from tests.cli.test_duplicates import found, scene
from tests.cli.test_photographs import extractor  # noqa: F401 - a small network in the place of that for photographs
from tests.cli.test_search import one_line

LARGE = (320, 240)


@pytest.fixture(autouse=True)
def small_network(monkeypatch, extractor):  # noqa: F811
    monkeypatch.setattr(FeatureExtractor, "pretrained", lambda **options: extractor)


@pytest.fixture
def photos(tmp_path):
    (tmp_path / "photos").mkdir()
    return tmp_path / "photos"


def exif(date="2019:05:04 12:00:00", part="17", place=True):
    """What a camera says of a photograph."""
    said = Image.Exif()
    said.get_ifd(0x8769).update({0x9003: date, 0x9291: part})
    if place:
        said.get_ifd(0x8825).update({1: "N", 2: (52.0, 30.0, 0.0)})
    return said


def actions(command, tmp_path, *arguments):
    """Of each file in a group what is proposed, and why."""
    groups = found(command, tmp_path, *arguments)["groups"]
    return {
        os.path.basename(member["path"]): (member["action"], member["reason"]) for group in groups for member in group
    }


def test_raw_files_are_passed_over_by_suffix_or_by_what_they_are(command, tmp_path, photos, caplog):
    scene(1, LARGE).save(photos / "DSC_1.jpg")
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[50706] = b"\x01\x04\x00\x00"
    tags.tagtype[50706] = 1
    scene(1, LARGE).save(photos / "renamed.tif", tiffinfo=tags)
    scene(1).save(photos / "DSC_1.NEF", "TIFF")
    shutil.copy(photos / "DSC_1.NEF", photos / "again.nef")
    assert found(command, tmp_path, photos)["groups"] == []
    assert "raw files that are passed over, being originals: 3" in caplog.text


@pytest.mark.parametrize(
    "folder",
    ["#recycle", "$RECYCLE.BIN/S-1-5-21", "@Recycle", ".Trash-1000/files", "lost+found", "@eaDir/a", "_preview"],
)
def test_folders_of_trash_and_previews_are_passed_over_and_named(command, tmp_path, photos, caplog, folder):
    (photos / folder).mkdir(parents=True)
    (photos / "2020").mkdir()
    scene(1).save(photos / "2020" / "IMG_1.jpg")
    shutil.copy2(photos / "2020" / "IMG_1.jpg", photos / folder)
    assert found(command, tmp_path, photos)["groups"] == []
    name = folder.partition("/")[0]
    assert f"that are passed over: 1 ({name} 1), such as {photos / name}" in caplog.text
    assert [image.path.parent.name for image in list_images([f"{photos}/*/*.jpg", f"{photos}/**/*.jpg"])[0]] == ["2020"]
    # Whoever names such a folder means it.
    assert len(list_images([photos / folder])[0]) == 1


def test_the_file_with_date_and_place_is_kept_though_another_is_larger_or_loses_nothing(command, tmp_path, photos):
    scene(1, LARGE).save(photos / "camera.jpg", exif=exif(), quality=80)
    scene(1, LARGE).save(photos / "saved again.jpg", quality=97)
    scene(1, LARGE).save(photos / "lossless.png")
    decided = actions(command, tmp_path, photos)
    assert decided["camera.jpg"] == ("keep", "as many pixels, with date or place")
    scene(1, (640, 480)).save(photos / "larger.png")
    scene(1, (640, 480)).resize(LARGE).save(photos / "camera.jpg", exif=exif(), quality=90)
    decided = actions(command, tmp_path, photos)
    assert decided["camera.jpg"] == ("look", "has a date, a place, the one to keep none: look at it")


def test_shots_of_one_burst_are_told_apart_by_their_times(command, tmp_path, photos):
    for part in ("10", "35"):
        scene(1, LARGE).save(photos / f"{part}.jpg", exif=exif(part=part), quality=int(part) + 60)
    scene(1, LARGE).save(photos / "by a program.jpg", exif=exif(part=""), quality=50)
    decided = actions(command, tmp_path, photos)
    assert decided["10.jpg"] == ("look", "taken at another time: look at it")
    assert decided["by a program.jpg"][0] == "remove"


@pytest.mark.parametrize("sidecar", ["IMG_1.xmp", "IMG_1.jpg.xmp", "IMG_1.AAE", "IMG_1.MOV", "IMG_1.jpg.json"])
def test_a_file_with_a_sidecar_or_the_video_of_a_live_photo_stays(command, tmp_path, photos, sidecar):
    scene(1, LARGE).save(photos / "larger.png")
    scene(1, LARGE).resize((160, 120)).save(photos / "IMG_1.jpg")
    (photos / sidecar).touch()
    assert actions(command, tmp_path, photos)["IMG_1.jpg"][0] == "look"
    shutil.copy(photos / "larger.png", photos / "again.png")
    shutil.copy(photos / sidecar, photos / "again.xmp")
    assert actions(command, tmp_path, photos)["again.png"][0] == "keep"


@pytest.mark.parametrize("packet", [b"<dc:subject>Ada</dc:subject>", b'xmp:Rating="5"', b"GCamera:MotionPhoto"])
def test_keywords_ratings_and_motion_photos_are_not_lost(command, tmp_path, photos, packet):
    scene(1, LARGE).save(photos / "larger.png")
    scene(1, LARGE).resize((160, 120)).save(photos / "rated.jpg", xmp=packet)
    assert actions(command, tmp_path, photos)["rated.jpg"][0] == "look"


def test_what_lies_in_the_library_of_another_program_stays(command, tmp_path, photos):
    library = photos / "Photos.photoslibrary" / "originals"
    library.mkdir(parents=True)
    scene(1, LARGE).save(photos / "a.png")
    scene(1, LARGE).resize((160, 120)).save(library / "b.png")
    decided = actions(command, tmp_path, photos)
    assert decided["b.png"] == ("look", "in the library of another program: look at it")


def test_folders_to_keep_from_have_an_order_and_what_is_larger_elsewhere_is_looked_at(command, tmp_path, photos):
    for folder in ("inbox", "album", "archive"):
        (photos / folder).mkdir()
        scene(1, LARGE).save(photos / folder / f"{folder}.png")
    scene(1, (640, 480)).save(photos / "inbox" / "large.png")
    scene(1, (640, 480)).resize(LARGE).save(photos / "album" / "album.png")
    kept = ("--keep-from", photos / "album", "--keep-from", photos / "archive")
    decided = actions(command, tmp_path, photos, *kept)
    assert decided["album.png"] == ("keep", "in the folder to keep from")
    assert decided["large.png"] == ("look", "larger than the one to keep: look at it")
    assert "is no folder" in one_line(command("duplicates", photos, "--keep-from", photos / "albums"))


def test_patterns_leave_files_out(command, tmp_path, photos):
    for folder in ("2019", "Export web"):
        (photos / folder).mkdir()
        scene(1).save(photos / folder / "a.png")
    assert found(command, tmp_path, photos, "--exclude", "Export*")["groups"] == []
    assert found(command, tmp_path, photos, "--exclude", "*/2019/*.png")["groups"] == []
    assert len(found(command, tmp_path, photos, "--exclude", "*.tif")["groups"]) == 1
    assert "leaves no picture" in one_line(command("duplicates", photos, "--exclude", "*.png"))


def test_cropped_turned_and_mirrored_copies_are_verified_and_other_shots_are_not(command, tmp_path, photos):
    whole = scene(1, LARGE)
    whole.save(photos / "whole.png")
    edits = {
        "cropped": lambda picture: picture.crop((20, 10, 310, 230)),
        "turned": lambda picture: picture.rotate(5, Image.Resampling.BICUBIC),
        "mirrored": ImageOps.mirror,
        "on its side": lambda picture: picture.transpose(Image.Transpose.ROTATE_90),
    }
    for number, (name, edit) in enumerate(edits.items()):
        other = whole.copy()
        ImageDraw.Draw(other).ellipse((60 + 50 * number, 100, 85 + 50 * number, 125), fill="white", outline="black")
        edit(whole).save(photos / f"{name}.jpg")
        edit(other).save(photos / f"other {name}.jpg")
    decided = actions(command, tmp_path, photos)
    assert {name: decided[f"{name}.jpg"][0] for name in edits} == dict.fromkeys(edits, "remove")
    assert {decided.get(f"other {name}.jpg", ("look",))[0] for name in edits} == {"look"}


def test_a_panned_frame_shows_what_the_other_does_not(command, tmp_path, photos):
    whole = scene(1, (400, 300))
    for right in (0, 12, 24):
        whole.crop((right, 0, right + 370, 300)).save(photos / f"{right}.png")
    assert "remove" not in {action for action, _ in actions(command, tmp_path, photos).values()}


def test_the_original_of_a_frame_or_a_screen_stays_and_so_does_the_sharper_one(command, tmp_path, photos):
    scene(1, LARGE).save(photos / "original.jpg")
    ImageOps.expand(scene(1, LARGE), 30, "white").save(photos / "framed.png")
    scene(2, LARGE).save(photos / "sharp.jpg", quality=90)
    scene(2, LARGE).filter(ImageFilter.GaussianBlur(2)).save(photos / "soft.png")
    decided = actions(command, tmp_path, photos)
    assert decided["original.jpg"][0] == "look"
    assert decided.get("sharp.jpg", ("keep",))[0] != "remove"


def test_other_colours_count_where_one_of_the_pictures_has_few(command, tmp_path, photos):
    few = ImageEnhance.Color(scene(1, LARGE)).enhance(0.3)
    other = few.copy()
    light = few.convert("L").crop((100, 80, 160, 140))
    coloured = Image.merge("YCbCr", [light, Image.new("L", light.size, 100), Image.new("L", light.size, 180)])
    other.paste(coloured.convert("RGB"), (100, 80))
    few.save(photos / "few.png")
    other.save(photos / "red.png")
    assert {action for action, _ in actions(command, tmp_path, photos).values()} == {"keep", "look"}


def ofyear(year, status):
    """A status whose file was changed in a year."""
    return SimpleNamespace(st_size=status.st_size, st_mtime=(year - 1970) * 365.2425 * 86400)


def test_a_time_that_no_calendar_has_is_left_empty(command, tmp_path, photos, monkeypatch):
    scene(1).save(photos / "a.png")
    shutil.copy(photos / "a.png", photos / "b.png")
    # What a network drive gives; few file systems keep it.
    taken = groups.os.stat
    monkeypatch.setattr(groups, "os", SimpleNamespace(stat=lambda path: ofyear(30828, taken(path)), SEEK_CUR=1))
    [group] = found(command, tmp_path, photos, "--csv", tmp_path / "found.csv")["groups"]
    assert [member["modified"] for member in group] == ["", ""]


def test_a_full_disk_leaves_the_outputs_as_they_were(command, tmp_path, photos, monkeypatch):
    scene(1).save(photos / "a.png")
    shutil.copy(photos / "a.png", photos / "b.png")
    outputs = {option: tmp_path / option.strip("-") for option in ("--json", "--csv", "--html", "--remove-list")}
    outputs["--json"].write_text(before := '{"files": 0}')
    write, written = Path.write_bytes, []

    def full(path, content):
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(path)
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    result = command("duplicates", photos, "--overwrite", *(part for pair in outputs.items() for part in pair))
    said = result.output.splitlines()[-1]
    assert result.exit_code == 1 and "No space left on device" in said and "right" not in said
    assert {path.name for path in tmp_path.iterdir()} == {"photos", "json"}
    assert outputs["--json"].read_text() == before


def test_a_terminal_of_another_encoding_ends_no_command(tmp_path):
    file = tmp_path / "花.txt"
    program = (
        "import click\nfrom deephash_pipeline.cli.refusals import guarded\n"
        f"guarded(click.command()(lambda: click.echo({str(file)!a})))()"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert rb"\u82b1.txt" in result.stdout
