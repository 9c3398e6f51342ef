"""`deephash-pipeline duplicates`: copies of pictures are found, others are not, and nothing is deleted."""

import csv
import json
import os
import re
import shutil
from copy import deepcopy

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

from deephash_pipeline.deephash import FeatureExtractor, ImageHasher
from deephash_pipeline.deephash.feature_hash import learned_hash
from deephash_pipeline.hamming.index_folder import delete_index
from deephash_pipeline.hashing import ITQ
from deephash_pipeline.photographs import ImageIndex, add_files, list_images
from deephash_pipeline.photographs.duplicates import finding, fingerprints, groups, kept, proposals
from deephash_pipeline.photographs.duplicates.candidates import whitened
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.photographs.duplicates.network import Network
from deephash_pipeline.photographs.duplicates.registration import Registration
from tests.cli.test_photographs import extractor  # noqa: F401 - a small network in the place of that for photographs
from tests.cli.test_search import one_line

SIZE = (160, 120)


@pytest.fixture(autouse=True)
def small_network(monkeypatch, extractor):  # noqa: F811
    monkeypatch.setattr(FeatureExtractor, "pretrained", lambda **options: extractor)


def scene(seed, size=SIZE):
    """Blobs and lines on a ground that is not flat."""
    rng = np.random.default_rng(seed)
    ground = Image.fromarray(rng.integers(60, 200, (5, 6, 3), dtype=np.uint8)).resize(size, Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(ground)
    for _ in range(25):
        x, y, r = rng.integers(0, size[0]), rng.integers(0, size[1]), rng.integers(3, 18)
        draw.ellipse((x - r, y - r, x + r, y + r // 2), fill=tuple(rng.integers(0, 256, 3).tolist()))
    return ground


@pytest.fixture
def folder(tmp_path):
    """Three scenes, of the first of which there are eight copies."""
    folder = tmp_path / "photos"
    folder.mkdir()
    first = scene(1, (320, 240))
    first.save(folder / "a.png")
    first.save(folder / "compressed.jpg", quality=40)
    first.resize((160, 120)).save(folder / "half.png")
    first.crop((20, 10, 310, 230)).save(folder / "cropped.png")
    ImageOps.mirror(first).save(folder / "mirror.png")
    first.transpose(Image.Transpose.ROTATE_90).save(folder / "turned.png")
    ImageEnhance.Brightness(first).enhance(1.3).save(folder / "bright.png")
    first.convert("L").save(folder / "grey.png")
    shutil.copy(folder / "a.png", folder / "again <b>.png")
    (folder / "hard link.png").hardlink_to(folder / "a.png")
    scene(2).save(folder / "b.png")
    scene(3).save(folder / "c.png")
    (folder / "broken.png").write_bytes(b"no image")
    os.mkfifo(folder / "pipe.png")
    return folder


def found(command, tmp_path, *arguments):
    result = command("duplicates", *arguments, "--json", tmp_path / "found.json", "--overwrite")
    assert result.exit_code == 0, result.output
    return json.loads((tmp_path / "found.json").read_text())


def names(group):
    return {os.path.basename(member["path"]) for member in group}


def test_every_copy_is_in_one_group_with_what_to_keep_and_why(command, folder, tmp_path):
    report = found(command, tmp_path, folder)
    [group] = report["groups"]
    everything = {path.name for path in folder.iterdir()}
    assert names(group) == everything - {"b.png", "c.png", "broken.png", "pipe.png", "hard link.png"}
    kept, *others = group
    # The brighter one has most bytes, and has lost what was bright; these two have the same pixels.
    assert kept["action"] == "keep"
    assert os.path.basename(kept["path"]) in {"a.png", "mirror.png"}
    assert (kept["width"], kept["reason"]) == (320, "as many pixels, and others are made of it")
    assert {member["action"] for member in others} == {"remove"}
    assert names(report["skipped"]) == {"broken.png", "pipe.png"}
    assert {path.name for path in folder.iterdir()} == everything
    assert json.loads(command("duplicates", folder, "--json", "-").stdout) == report


@pytest.mark.parametrize(("level", "copies"), [("--strict", []), ("--loose", ["captioned.png"])])
def test_levels_differ_in_how_much_may_have_changed(command, tmp_path, level, copies):
    captioned = scene(1)
    ImageDraw.Draw(captioned).rectangle((60, 50, 110, 60), fill="white")
    (tmp_path / "photos").mkdir()
    scene(1).save(tmp_path / "photos" / "a.png")
    scene(1).save(tmp_path / "photos" / "a.jpg", quality=90)
    captioned.save(tmp_path / "photos" / "captioned.png")
    [group] = found(command, tmp_path, tmp_path / "photos", level)["groups"]
    assert names(group) - {"a.png", "a.jpg"} == set(copies)
    measured = Level(level.removeprefix("--")).measured
    assert measured in command("duplicates", tmp_path / "photos", level).output
    assert all(word in command("duplicates", "--help").output for word in measured.split())


def page_of(form):
    """A form of which some words are others."""
    page = Image.new("RGB", (850, 1100), "white")
    draw = ImageDraw.Draw(page)
    rng, names = np.random.default_rng(0), ["to Ada Lovelace, London", "an Emmy Noether in Erlangen"]
    for line in range(25):
        words = " ".join(rng.choice(["first", "people", "water", "number", "about", "would"], rng.integers(1, 13)))
        draw.text((80, 60 + 40 * line), names[form] if line == 9 else words, "black", font_size=20)
    return page


def tinted(picture, blue, red):
    grey = picture.convert("L")
    return Image.merge("YCbCr", [grey, *(Image.new("L", grey.size, value) for value in (blue, red))]).convert("RGB")


def test_other_words_things_or_colours_in_one_frame_are_only_to_be_looked_at(command, tmp_path):
    def actions(**pictures):
        folder = tmp_path / "-".join(pictures)
        folder.mkdir()
        for name, (picture, suffix, options) in pictures.items():
            picture.save(folder / f"{name}.{suffix}", **options)
        [group] = found(command, tmp_path, folder)["groups"]
        return {os.path.basename(member["path"]): (member["action"], member["reason"]) for member in group}

    png, jpeg = ("png", {}), ("jpg", {"quality": 90})
    pages = actions(one=(page_of(0), *png), other=(page_of(1), *png))
    assert sorted(pages.values()) == [("keep", "as many pixels, most bytes"), ("look", "other details: look at it")]
    assert actions(page=(page_of(0), *png), copy=(page_of(0), *jpeg))["copy.jpg"] == ("remove", "same picture")
    coloured = actions(red=(tinted(scene(5), 110, 170), *png), blue=(tinted(scene(5), 170, 110), *jpeg))
    assert coloured["blue.jpg"] == ("look", "other colours: look at it")
    grey = actions(g=(scene(6).convert("L"), *png), colour=(scene(6), "jpg", {"quality": 50}))
    assert grey == {"colour.jpg": ("keep", "as many pixels, in colour"), "g.png": ("remove", "same picture")}
    kept = actions(l=(scene(7), *png), lossy=(scene(7), "jpg", {"quality": 100}))
    assert kept["l.png"] == ("keep", "as many pixels, lossless")
    larger = actions(large=(scene(8, (320, 240)).convert("L"), *png), s=(scene(8, (320, 240)).resize(SIZE), *png))
    assert larger["s.png"] == ("look", "in colour, and the larger one is grey: look at it")
    # That a file could have colours says nothing, nor does it that its format could lose none.
    without_colours = actions(g=(scene(10).convert("L"), *png), rgb=(scene(10).convert("L").convert("RGB"), *jpeg))
    assert without_colours["g.png"] == ("keep", "as many pixels, lossless")
    tiff, profile = ("tif", {"compression": "jpeg", "quality": 25}), {"lossless": True, "icc_profile": b"odd"}
    assert actions(t=(scene(11), *tiff), better=(scene(11), "jpg", {"quality": 97}))["t.tif"][0] == "remove"
    webp = actions(w=(scene(12), "webp", profile), lossy=(scene(12), "jpg", {"quality": 100}))
    assert webp["w.webp"] == ("keep", "as many pixels, lossless")
    cut_out = scene(13).convert("RGBA")
    cut_out.paste((255, 255, 255, 0), (0, 0, 60, 240))
    on_white = Image.alpha_composite(Image.new("RGBA", SIZE, "white"), cut_out).convert("RGB")
    flat = actions(logo=(cut_out, *png), flat=(on_white, "bmp", {}))
    assert flat == {"logo.png": ("keep", "as many pixels, transparent"), "flat.bmp": ("remove", "same picture")}
    smaller = actions(icon=(cut_out.reduce(2), *png), white=(on_white, *png))
    assert smaller["icon.png"] == ("look", "transparent, and the larger one is not: look at it")


def test_the_same_is_written_in_every_form(command, folder, tmp_path):
    outputs = {form: tmp_path / f"out.{form}" for form in ("csv", "html", "txt")}
    written = ("--csv", outputs["csv"], "--html", outputs["html"], "--remove-list", outputs["txt"])
    result = command("duplicates", folder, *written)
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(outputs["csv"].open(newline="")))
    assert len(rows) == 9
    listed = outputs["txt"].read_text().splitlines()
    assert listed == [row["path"] for row in rows if row["action"] == "remove"]
    assert all(row["path"] in result.output for row in rows)
    page = outputs["html"].read_text()
    assert "again &lt;b&gt;.png" in page and "<b>" not in page
    assert re.findall(r'data-path="[^"]*"[^>]*data-proposed checked', page).__len__() == 8
    assert not re.search(r'(src|href)="(?!data:)', page)
    # What is there may be all that somebody has of it.
    for option, form in (("--csv", "csv"), ("--html", "html"), ("--remove-list", "txt"), ("--json", "csv")):
        before = outputs[form].read_bytes()
        assert "is there: name another file" in one_line(command("duplicates", folder, option, outputs[form]))
        assert outputs[form].read_bytes() == before
    below = folder / "a.png" / "deep" / "found.csv"
    assert f"{folder}/a.png is no folder or read-only" in one_line(command("duplicates", folder, "--csv", below))
    assert "no picture in" in command("duplicates", folder / "pipe.png").output


def test_pages_behind_the_first_turned_tiffs_and_names_that_a_list_cannot_have(command, tmp_path):
    for place in ("real/target", "real/photos", "photos"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "target")
    folder, turned = tmp_path / "real" / "photos", Image.Exif()
    turned[0x0112] = 6
    for name, second in (("a", 2), ("b", 3)):
        scene(1).save(folder / f"{name}.tif", save_all=True, append_images=[scene(second)])
    # Of its second page the directory is cut off.
    os.truncate(folder / "b.tif", os.path.getsize(folder / "b.tif") - 57_700)
    scene(4).save(folder / "c.tif", exif=turned)
    scene(4).transpose(Image.Transpose.ROTATE_270).save(folder / "c\nd.png")
    scene(9).save(tmp_path / "photos" / "b.tif")
    outputs = "--html", tmp_path / "page", "--remove-list", tmp_path / "list"
    groups = found(command, tmp_path, tmp_path / "link" / ".." / "photos", *outputs)["groups"]
    assert sorted(sorted(map(os.path.basename, (m["path"] for m in group))) for group in groups) == [
        ["a.tif", "b.tif"],
        ["c\nd.png", "c.tif"],
    ]
    assert {os.path.realpath(member["path"]) for group in groups for member in group} == set(map(str, folder.iterdir()))
    assert {m["action"] for group in groups for m in group if m["path"][-3:] == "tif"} == {"keep", "look"}
    assert (tmp_path / "list").read_text() == "" and "data-proposed checked" not in (tmp_path / "page").read_text()


def test_against_a_reference_only_what_has_a_copy_there_is_a_copy(command, folder, tmp_path):
    reference = tmp_path / "reference"
    reference.mkdir()
    scene(2).resize((80, 60)).save(reference / "small b.png")
    [group] = found(command, tmp_path, folder, "--against", reference)["groups"]
    proposed = [(os.path.basename(member["path"]), member["action"]) for member in group]
    # Of what is larger than its copy in the reference nobody would want to lose the original.
    assert proposed == [("small b.png", "keep"), ("b.png", "look")]
    scene(2).save(reference / "b.webp", lossless=True)
    [group] = found(command, tmp_path, folder, "--against", reference)["groups"]
    proposed = [(os.path.basename(member["path"]), member["action"]) for member in group]
    assert proposed == [("b.webp", "keep"), ("small b.png", "keep"), ("b.png", "remove")]
    # What is in both is of the reference.
    result = command("duplicates", folder, folder / "a.png", "--against", folder)
    assert "all of PATHS is in --against" in one_line(result)
    result = command("duplicates", folder, reference, "--against", reference)
    assert "2 of 16 files are in --against too" in result.output and result.exit_code == 0


def test_flat_pictures_pages_of_text_and_frames_of_a_burst_are_no_copies(command, tmp_path):
    folder, rng = tmp_path / "others", np.random.default_rng(0)
    folder.mkdir()
    for number in range(6):
        noise = rng.integers(0, 3, (120, 160, 3), dtype=np.uint8)
        Image.fromarray(noise + 250).save(folder / f"bright {number}.png")
        Image.fromarray(noise).save(folder / f"dark {number}.png")
        page = Image.new("L", (240, 320), "white")
        draw = ImageDraw.Draw(page)
        for line in range(14):
            words = " ".join("".join(rng.choice(list("abcdefgimnostw"), rng.integers(2, 9))) for _ in range(7))
            draw.text((20, 20 + 20 * line), words[:36], fill="black")
        page.save(folder / f"page {number}.png")
        frame = scene(9)
        x = 20 * number
        ImageDraw.Draw(frame).rectangle((x, 20, x + 50, 110), fill=(200, 180, 40), outline="black", width=3)
        frame.save(folder / f"frame {number}.png")
    shutil.copy(folder / "dark 0.png", folder / "dark 0 again.png")
    [group] = found(command, tmp_path, folder)["groups"]
    assert names(group) == {"dark 0.png", "dark 0 again.png"}


def build_keeping_features(index, folder, extractor):  # noqa: F811
    """Build an index of a folder that keeps its features."""
    noise = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    encoder, about = learned_hash(ITQ(16), extractor, extractor.features(noise))
    with ImageIndex.create(index, ImageHasher(extractor.trunk, encoder, about), features=True) as images:
        add_files(images, list_images([folder])[0])


@pytest.fixture
def index(tmp_path, folder, extractor):  # noqa: F811
    """An index of the folder that keeps features."""
    build_keeping_features(tmp_path / "x.index", folder, extractor)
    return tmp_path / "x.index"


@pytest.fixture
def computed(monkeypatch):
    """Numbers of pictures whose features a network has computed."""
    counts, compute = [], FeatureExtractor.__call__
    monkeypatch.setattr(
        FeatureExtractor, "__call__", lambda self, pixels: (counts.append(len(pixels)), compute(self, pixels))[1]
    )
    return counts


def test_features_of_unchanged_files_are_those_of_an_index(command, folder, tmp_path, index, computed):
    expected = found(command, tmp_path, folder)
    assert sum(computed) == 10  # of 12 files one is broken, and one has the bytes of another
    computed.clear()
    assert found(command, tmp_path, folder, "--index", index) == expected
    assert sum(computed) == 0
    scene(4).save(folder / "b.png")
    scene(2).save(folder / "new.png")
    assert found(command, tmp_path, folder, "--index", index)["groups"] == expected["groups"]
    assert sum(computed) == 2


class Work:
    """What looks have done: files that were opened and decoded, pairs, and loads of the network."""

    def __init__(self):
        self.opened, self.decoded, self.coloured, self.laid, self.compared, self.loaded = [], [], [], [], [], []

    def taken(self):
        """What was done since this was asked the last time."""
        done = self.__dict__.copy()
        self.__init__()
        return done


NOTHING = Work().taken()


@pytest.fixture
def worked(monkeypatch):
    """Watch what looks do."""
    work = Work()

    def watch(module, name, kind, told):
        function = getattr(module, name)

        def watched(*arguments):
            getattr(work, kind).extend(told(*arguments))
            return function(*arguments)

        monkeypatch.setattr(module, name, watched)

    watch(finding, "read_photo", "opened", lambda name, path: [path.name])
    watch(fingerprints, "image_batches", "decoded", lambda paths, *rest: [path.name for path in paths])
    watch(groups, "_colours_of", "coloured", lambda photo: [photo.path.name])
    watch(finding, "register", "laid", lambda one, other: [1])
    watch(proposals, "difference", "compared", lambda best, other, placement: [{best.path.name, other.path.name}])
    watch(Network, "__call__", "loaded", lambda network: [1])
    return work


def test_a_second_look_reads_and_compares_what_is_new_alone(command, folder, tmp_path, index, worked):
    (folder / "broken.png").unlink()
    (folder / "pipe.png").unlink()
    first = found(command, tmp_path, folder, "--index", index)
    assert all(worked.taken().values())
    assert found(command, tmp_path, folder, "--index", index) == first
    assert worked.taken() == NOTHING
    # One that is changed, and has no features in the index any more, is compared with all of its group.
    scene(1, (320, 240)).save(folder / "compressed.jpg", quality=70)
    os.utime(folder / "compressed.jpg", (1, 1))
    changed = found(command, tmp_path, folder, "--index", index)
    work = worked.taken()
    assert work["opened"] == work["decoded"] == work["coloured"] == ["compressed.jpg"]
    assert work["loaded"] == [1]
    assert work["laid"]
    assert work["compared"]
    assert all("compressed.jpg" in pair for pair in work["compared"])
    # The next look has features of it beside those of the index.
    assert found(command, tmp_path, folder, "--index", index) == changed
    assert worked.taken() == NOTHING
    # One that is gone.
    (folder / "half.png").unlink()
    fewer = found(command, tmp_path, folder, "--index", index)
    assert worked.taken()["compared"] == []
    # What is kept may be deleted.
    (index / "fingerprints.npz").unlink()
    assert found(command, tmp_path, folder, "--index", index) == fewer
    assert worked.taken()["compared"]


def test_a_look_at_a_part_leaves_what_is_known_of_the_rest(command, folder, tmp_path, index, worked):
    (folder / "broken.png").unlink()
    first = found(command, tmp_path, folder, "--index", index)
    found(command, tmp_path, folder / "a.png", folder / "half.png", folder / "b.png", "--index", index, "--strict")
    worked.taken()
    assert found(command, tmp_path, folder, "--index", index)["groups"] == first["groups"]
    assert worked.taken() == NOTHING | {"opened": ["pipe.png"]}


def test_a_look_that_is_broken_off_keeps_what_it_has_found(command, folder, tmp_path, index, worked, monkeypatch):
    expected = found(command, tmp_path, folder)
    with monkeypatch.context() as patched:
        patched.setattr(proposals, "difference", lambda *pair: (_ for _ in ()).throw(KeyboardInterrupt))
        command("duplicates", folder, "--index", index)
    worked.taken()
    assert found(command, tmp_path, folder, "--index", index) == expected
    work = worked.taken()
    assert work["compared"]
    assert (work["decoded"], work["loaded"]) == ([], [])


def test_a_file_that_another_replaces_while_it_is_compared_leaves_no_verdict(
    command, folder, tmp_path, index, worked, monkeypatch
):
    compare = proposals.difference

    def replaced(best, other, placement):
        left = compare(best, other, placement)
        for photo in (best, other):
            os.utime(photo.path, (1, 1))
        return left

    with monkeypatch.context() as patched:
        patched.setattr(proposals, "difference", replaced)
        found(command, tmp_path, folder, "--index", index)
    known = kept.read_kept(index)
    assert known.prints
    assert not known.verdicts


def test_a_broken_picture_loads_no_network(command, folder, tmp_path, index, worked):
    whole = (folder / "c.png").read_bytes()
    (folder / "broken.png").write_bytes(whole[: len(whole) // 2])
    first = found(command, tmp_path, folder, "--index", index)
    assert names(first["skipped"]) == {"broken.png", "pipe.png"}
    worked.taken()
    assert found(command, tmp_path, folder, "--index", index) == first
    assert worked.taken() == NOTHING | {"opened": ["pipe.png"], "decoded": ["broken.png"]}


def test_what_is_kept_is_bounded(tmp_path, monkeypatch):
    grey, placed = np.zeros((8, 8), np.uint8), Registration(1.0, np.eye(2, 3))
    keys = [f"{row}.png\n1:1" for row in range(6)]
    pairs = {(one, other): placed for one in keys for other in keys}
    known = kept.Kept(dict.fromkeys(keys, grey), pairs, verdicts=dict.fromkeys(pairs))
    for most_others, left in ((4, 6), (3, 2)):
        kept.write_kept(tmp_path, known, keys[:2], most_others)
        read = kept.read_kept(tmp_path)
        assert list(read.prints) == keys[:left]
        assert len(read.pairs) == len(read.verdicts) == left**2
    assert len(known.of(keys[:1]).pairs) == 1
    # Of comparisons the latest stay.
    monkeypatch.setattr(kept, "PAIRS_A_FILE", 2)
    assert list(known.of(keys).pairs) == list(pairs)[-12:]


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_fingerprints_that_are_damaged_or_of_other_code_are_made_again(
    command, folder, tmp_path, index, worked, content, monkeypatch
):
    first = found(command, tmp_path, folder, "--index", index)
    if content:
        (index / "fingerprints.npz").write_bytes(content)
    else:
        monkeypatch.setattr(kept, "_code", lambda: "other")
    worked.taken()
    assert found(command, tmp_path, folder, "--index", index) == first
    assert all(worked.taken().values())
    delete_index(index)
    assert not index.exists()


def test_features_of_another_network_are_not_taken(command, folder, tmp_path, index, computed, extractor, monkeypatch):  # noqa: F811
    other = deepcopy(extractor)
    with torch.no_grad():
        next(other.trunk.parameters()).add_(1)
    monkeypatch.setattr(FeatureExtractor, "pretrained", lambda **options: other)
    found(command, tmp_path, folder, "--index", index)
    assert sum(computed) == 10


def test_an_index_without_features_is_refused(command, folder, tmp_path):
    ImageIndex.create(tmp_path / "x.index", ImageHasher.pretrained("digits-48", device="cpu")).close()
    assert "keeps no features" in one_line(command("duplicates", folder, "--index", tmp_path / "x.index"))


def test_one_picture_and_its_copy_need_no_network(command, tmp_path, monkeypatch):
    monkeypatch.setattr(FeatureExtractor, "pretrained", lambda **options: pytest.fail("nothing is to be computed"))
    scene(1).save(tmp_path / "a.png")
    shutil.copy(tmp_path / "a.png", tmp_path / "b\n.png")
    assert len(found(command, tmp_path, tmp_path)["groups"]) == 1
    assert "/b\\n.png  equal bytes\n" in command("duplicates", tmp_path).output


def test_features_are_whitened_by_their_deviations():
    z = (np.random.default_rng(0).normal(size=(4000, 3)) * [10, 1, 0.1]).astype(np.float32)
    centred = z - z.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(z))
    expected = centred @ directions / np.sqrt(variances + variances.sum() / 3)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(whitened(z)), np.abs(expected), atol=1e-4)
