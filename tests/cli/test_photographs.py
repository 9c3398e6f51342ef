"""An index of photographs without a hasher of one's own: features are kept, and a hash function is fitted on them."""

import json
import os

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.deephash import FeatureExtractor, ImageHasher
from deephash_pipeline.deephash.feature_hash import learned_hash
from deephash_pipeline.embeddings import VectorIndex
from deephash_pipeline.hashers import OnnxHasher
from deephash_pipeline.hashing import ITQ
from deephash_pipeline.photographs import ImageIndex, distinct, fitted
from deephash_pipeline.photographs.stored import SHIPPED
from tests.cli.conftest import write_digits
from tests.cli.test_search import one_line

SIZE = (32, 32)


@pytest.fixture(scope="module")
def extractor(weights):
    """Of a small network, in the place of that for photographs."""
    return FeatureExtractor.pretrained("squeezenet1_1", weights=weights, image_size=SIZE, unit_length=True)


def write_photos(folder, rows):
    """Pictures of two colours by their rows, in a folder for each of two classes."""
    for row in rows:
        path = folder / ("warm" if row % 2 else "cold") / f"{row:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(row).integers(0, 256, (4, 4, 3), dtype=np.uint8)
        pixels[..., 0 if row % 2 else 2] |= 128
        Image.fromarray(pixels).resize(SIZE).save(path)


@pytest.fixture
def colours(tmp_path, extractor, monkeypatch):
    """140 pictures, where 128 are enough to fit on, and a shipped hasher that was fitted on others."""
    write_photos(tmp_path / "colours", range(140))
    noise = np.random.default_rng(0).integers(0, 256, (70, *SIZE, 3), dtype=np.uint8)
    encoder, about = learned_hash(ITQ(64), extractor, extractor.features(noise))
    about = about.model_copy(update={"benchmark": SHIPPED})
    shipped = ImageHasher(extractor.trunk, encoder, about)
    pretrained = ImageHasher.pretrained
    monkeypatch.setattr(
        ImageHasher, "pretrained", lambda name, device: shipped if name == "photos-64" else pretrained(name, device)
    )
    monkeypatch.setattr(fitted, "FEWEST", 20)
    return tmp_path / "colours"


def build(command, colours, *options):
    return command("index", "build", colours.parent / "x.index", colours, "--bits", 64, *options)


def stored(colours):
    with ImageIndex.open(colours.parent / "x.index", read_only=True) as images:
        names = list(images)
        codes = np.stack([item.code for item in images.index.items(names)])
        return images.hasher, names, codes, images.index.features_of(names)


def test_few_pictures_get_the_shipped_hash_function_and_their_own_once_there_are_enough(command, colours, extractor):
    for path in sorted(colours.rglob("*.png"))[:70]:
        path.unlink()
    assert "fit a hash function from 128 images on" in build(command, colours, "--method", "itq").output
    hasher, names, codes, _ = stored(colours)
    assert hasher.description.benchmark == SHIPPED and len(names) == 70
    write_photos(colours, range(140))
    result = build(command, colours)
    assert "70 added, 70 there already" in result.output
    assert "fitted on 140 of its images" in result.output
    hasher, names, codes, features = stored(colours)
    assert (hasher.description.method, hasher.description.benchmark) == ("srh", "images")
    # What is kept has half precision; so has what the codes are computed from.
    z = extractor.features(names)
    np.testing.assert_array_equal(features, z.astype(np.float16).astype(np.float32))
    assert (np.unpackbits(codes ^ hasher.encode(names)).mean()) < 0.01
    assert "fitted on" not in build(command, colours).output


def test_without_pytorch_answers_are_the_same_also_in_the_order_of_features(command, colours):
    build(command, colours)
    folder, query = colours.parent / "x.index", colours / "warm" / "003.png"
    with (
        ImageIndex.open(folder, read_only=True) as by_torch,
        ImageIndex.open(folder, read_only=True, runtime="auto") as at_once,
    ):
        assert isinstance(at_once.hasher, OnnxHasher) and isinstance(by_torch.hasher, ImageHasher)
        for rescore in (False, True):
            slow, quick = (index.search(query, 10, rescore=rescore) for index in (by_torch, at_once))
            assert slow.ids.tolist() == quick.ids.tolist()
        np.testing.assert_allclose(quick.scores, slow.scores, atol=1e-5)
        encoded = at_once.hasher.encode_with_features(query)
        np.testing.assert_allclose(encoded.features, by_torch.hasher.features(query), atol=1e-5)
    # A model of an earlier version, or of another hasher, is passed over, and made again by the next build.
    (folder / "hasher.onnx").write_bytes(b"none")
    with ImageIndex.open(folder, read_only=True, runtime="auto") as images:
        assert isinstance(images.hasher, ImageHasher)


def test_another_code_length_or_pictures_in_place_of_vectors_make_an_index_anew(command, colours, monkeypatch):
    index = colours.parent / "x.index"
    VectorIndex.build(index, np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)).close()
    assert "140 added" in build(command, colours, "--anew").output
    assert stored(colours)[3].any()
    asked = ("index", "build", index, colours, "--bits", 128)
    assert "x.index has 64 bits: leave --bits out, or replace it by --anew" in one_line(command(*asked))
    monkeypatch.setattr(ImageHasher, "pretrained", lambda name, device: pytest.fail(name))
    with pytest.raises(pytest.fail.Exception, match="photos-128"):
        command(*asked, "--anew")


def test_a_fit_reads_no_picture_and_keeps_what_is_known_of_each(command, colours):
    build(command, colours)
    _, names, before, features = stored(colours)
    kept = colours.with_name("moved away")
    colours.rename(kept)
    result = command("index", "refit", colours.parent / "x.index", "--labels", "folder")
    assert result.exit_code == 0, result.output
    hasher, again, codes, same = stored(colours)
    assert hasher.description.method == "srh"
    assert (again, same.tolist()) == (names, features.tolist())
    assert not np.array_equal(codes, before)
    warm = np.array(["warm" in name for name in names])
    bits = np.unpackbits(codes, axis=1).astype(int)
    apart = (bits[:, None] != bits[None]).mean(axis=2)
    assert apart[np.ix_(warm, warm)].mean() < apart[np.ix_(warm, ~warm)].mean()
    kept.rename(colours)
    assert "140 there already, 140 images" in build(command, colours).output


def test_pictures_without_a_label_are_learned_from_beside_those_with_one(command, colours):
    paths = sorted(colours.rglob("*.png"))
    lines = (f"{path},{path.parent.name if row % 2 else ''}\n" for row, path in enumerate(paths))
    listing = colours / "listing.csv"
    listing.write_text("path,label\n" + "".join(lines))
    result = command("index", "build", colours.parent / "x.index", listing, "--bits", 64, "--labels", "folder")
    assert result.exit_code == 0, result.output
    assert "fitted on 140 of its images" in result.output


def test_a_search_is_in_the_order_of_the_features_and_needs_no_pytorch(command, colours, extractor, monkeypatch):
    build(command, colours)
    names = sorted(str(path) for path in colours.rglob("*.png"))
    u = ImageHasher.load(colours.parent / "x.index").encoder.outputs(extractor.features(names))
    found = command("search", colours.parent / "x.index", names[3], "-k", 5, "--json")
    signs, unit = np.where(u >= 0, 1, -1), u / np.linalg.norm(u, axis=1, keepdims=True)
    expected = [names[row] for row in np.argsort(-(unit @ unit[3] + signs @ signs[3] / u.shape[1]))[:5]]
    assert [os.path.realpath(row["path"]) for row in json.loads(found.output)] == list(map(os.path.realpath, expected))
    command("index", "refit", colours.parent / "x.index", "--method", "itq")
    monkeypatch.setattr(ImageHasher, "load", None)
    (nearest,) = json.loads(command("search", colours.parent / "x.index", names[3], "-k", 1, "--json").stdout)
    assert nearest["distance"] <= 1


def test_pictures_that_are_added_have_features_too(command, colours):
    build(command, colours)
    write_photos(colours, range(140, 143))
    index = colours.parent / "x.index"
    assert "3 added" in command("index", "add", index, colours / "warm" / "141.png", colours / "cold").output
    with ImageIndex.open(index) as images:
        images.add(["in memory"], np.zeros((1, *SIZE, 3), np.uint8))
        assert images.index.features_of(["in memory"]).any()
    assert "fits it on these" not in build(command, colours).output
    write_photos(colours, range(143, 285))
    assert "fits it on these" in build(command, colours).output


def test_copies_of_few_pictures_keep_the_shipped_hash_function(command, colours):
    paths = sorted(colours.rglob("*.png"))
    for path in paths[20:]:
        path.write_bytes(paths[0].read_bytes())
    result = build(command, colours)
    assert result.exit_code == 0
    assert "keeps the hash function that was fitted on other photographs" in result.output
    assert stored(colours)[0].description.benchmark == SHIPPED


def test_what_cannot_be_fitted_is_refused_in_one_line(command, colours, built):
    index = colours.parent / "x.index"
    for path in sorted(colours.rglob("*.png"))[:70]:
        path.unlink()
    build(command, colours)
    assert "has 70 pictures, and 128 are needed" in one_line(command("index", "refit", index))
    assert "keeps no features" in one_line(command("index", "refit", built))
    write_photos(colours, range(140))
    build(command, colours)
    assert "hash function 'iqt' is unknown" in one_line(command("index", "refit", index, "--method", "iqt"))
    assert "`itq_cca` learns from labels" in one_line(command("index", "refit", index, "--method", "itq_cca"))
    assert "`index refit" in one_line(build(command, colours, "--labels", "folder"))


def test_copies_of_what_is_shown_are_hidden(command, colours, extractor, monkeypatch):
    first, second = sorted(colours.rglob("*.png"))[:2]
    for number in range(3):
        (colours / f"copy {number}.png").write_bytes(first.read_bytes())
        # Other bytes, and features that are near.
        Image.open(second).resize((30, 30)).save(colours / f"small {number}.png")
    build(command, colours)

    def found(k, *options):
        result = command("search", colours.parent / "x.index", first, "-k", k, "--json", *options)
        return [row["path"] for row in json.loads(result.output)]

    everything = found(1000)
    z = dict(zip(everything, extractor.features(everything), strict=True))
    rows = np.stack(list(z.values()))
    # By a network that was not trained, pictures are far nearer than photographs are.
    near = float(np.quantile(1 - rows @ rows.T, 0.1))
    monkeypatch.setattr(distinct, "HIDDEN_DISTANCE", near)
    shown = found(1000, "--distinct")
    expected = []
    for name in everything:
        if not any(z[name] @ z[other] >= 1 - near for other in expected):
            expected.append(name)
    assert shown == expected
    assert 10 < len(shown) <= len(everything) - 6
    # Those that are hidden make room for others.
    assert found(8, "--distinct") == expected[:8]


def test_without_features_only_files_of_equal_bytes_are_copies(command, tmp_path):
    write_digits(tmp_path / "photos", range(20))
    for path in sorted((tmp_path / "photos").rglob("*.png"))[:5]:
        (tmp_path / "photos" / path.name).write_bytes(path.read_bytes())
    command("index", "build", tmp_path / "x.index", tmp_path / "photos", "--hasher", "pretrained:digits-48")
    photo = next((tmp_path / "photos").rglob("*.png"))
    shown = json.loads(command("search", tmp_path / "x.index", photo, "-k", 25, "--distinct", "--json").output)
    assert len({os.path.basename(row["path"]) for row in shown}) == len(shown) == 20
