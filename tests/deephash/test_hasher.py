"""An image hasher is what the pipeline does to an image, in one file."""

import json

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from PIL import Image
from sklearn.datasets import load_digits

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import Experiment, Run, TrainingSet, extract_features
from deephash_pipeline.hashing import HASH_FUNCTIONS, ITQ
from deephash_pipeline.networks import NETWORKS, initialise
from deephash_pipeline.retrieval import pack_bits

STATISTICS = {"mean": [0.4], "standard_deviation": [0.3]}
COLOUR = {"mean": [0.4, 0.5, 0.6], "standard_deviation": [0.3, 0.2, 0.3]}


def random_images(count, channels, side):
    return np.random.default_rng(0).integers(0, 256, (count, channels, side, side)).astype(np.uint8)


def assembled(method="itq", network="lenet", code_length=12, side=28):
    """A hasher of a random network, its images, and their codes as the stages of the pipeline make them."""
    channels = NETWORKS[network][0].output[0] if network in NETWORKS else 3
    images = random_images(40, channels, side)
    statistics = STATISTICS if channels == 1 else COLOUR
    run = Run(Experiment(benchmark="noise", network=network, seed=1), Cell(method=method, code_length=code_length))
    trunk = run.experiment.trunk_for(images.shape[1:])
    initialise(trunk, 3)
    z = extract_features(images, statistics, trunk.state_dict(), run.experiment)
    labels = np.arange(40) % 4
    quick = {"ksh": {"anchors": 20, "iterations": 3}, "mlh": {"batches_per_stage": 3}, "liong_sdh": {"iterations": 2}}
    encoder = HASH_FUNCTIONS[method](code_length, **quick.get(method, {})).fit(z, labels)
    training_set = TrainingSet(images, labels, statistics, ["a", "b", "c", "d"])
    return ImageHasher.assemble(trunk, encoder, training_set, run), images, pack_bits(encoder.transform(z))


@pytest.mark.parametrize("method", HASH_FUNCTIONS)
def test_the_codes_of_a_stored_hasher_are_those_of_the_stages(method, tmp_path):
    hasher, images, codes = assembled(method)
    hasher.save(tmp_path / "hasher.safetensors")
    np.testing.assert_array_equal(ImageHasher.load(tmp_path / "hasher.safetensors").encode(images), codes)


@pytest.mark.parametrize(
    ("network", "side"), [("cifar10_full", 32), ("kaggle_face", 48), ("caffenet", 227), ("resnet18", 32), ("lenet", 34)]
)
def test_every_kind_of_network_is_rebuilt_from_the_file(network, side, tmp_path):
    hasher, images, codes = assembled("lsh", network, side=side)
    hasher.save(tmp_path / "hasher.safetensors")
    loaded = ImageHasher.load(tmp_path / "hasher.safetensors", device="cpu")
    np.testing.assert_array_equal(loaded.encode(images), codes)
    assert loaded.description == hasher.description
    assert loaded.description.network == network


def test_one_file_of_text_and_arrays_says_what_a_user_must_know(tmp_path):
    hasher, _, _ = assembled()
    hasher.save(tmp_path / "hasher.safetensors")
    with safetensors.safe_open(tmp_path / "hasher.safetensors", framework="numpy") as file:
        described = json.loads(file.metadata()["deephash_pipeline.hasher"])["description"]
    assert described["class_names"] == ["a", "b", "c", "d"]
    assert (described["method"], described["code_length"], described["seed"]) == ("itq", 12, 1)
    assert (described["benchmark"], described["image_shape"]) == ("noise", [1, 28, 28])
    assert "version" in described["code_version"]


def test_equal_hashers_are_equal_files(tmp_path):
    for name in ("a", "b"):
        assembled()[0].save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_paths_pictures_and_arrays_of_an_image_have_one_code(tmp_path):
    hasher, images, codes = assembled()
    paths = []
    for row, image in enumerate(images[:5]):
        paths.append(tmp_path / f"{row}.png")
        Image.fromarray(image[0]).save(paths[-1])
    forms = (paths, [str(path) for path in paths], list(map(Image.open, paths)), images[:5], images[:5, 0])
    for form in (*forms, images[:5].transpose(0, 2, 3, 1), iter(paths)):
        np.testing.assert_array_equal(hasher.encode(form), codes[:5])


def test_a_broken_image_is_named_or_on_demand_skipped(tmp_path):
    hasher, images, codes = assembled()
    good, broken = tmp_path / "good.png", tmp_path / "broken.png"
    Image.fromarray(images[0, 0]).save(good)
    broken.write_bytes(good.read_bytes()[:40])
    with pytest.raises(InputError, match=r"broken\.png"):
        hasher.encode([good, broken])
    encoded = hasher.encode_readable([broken, good])
    assert encoded.rows.tolist() == [1]
    assert [skipped.row for skipped in encoded.skipped] == [0]
    np.testing.assert_array_equal(encoded.codes, codes[:1])


def test_no_images_have_no_codes():
    hasher, images, _ = assembled()
    assert hasher.encode([]).shape == (0, 2)
    assert hasher.features(images[:0]).shape == (0, 500)


def test_codes_come_batch_by_batch():
    hasher, images, codes = assembled()
    hasher.batch_size = 16
    batches = list(hasher.encode_batches(images))
    assert [len(batch.codes) for batch in batches] == [16, 16, 8]
    # A batch of another size may round z differently in its last bits.
    assert (np.concatenate([batch.codes for batch in batches]) == codes).mean() > 0.99


DAMAGES = {
    "cut": lambda path, content: path.write_bytes(content[: len(content) // 2]),
    "text": lambda path, _: path.write_text("a letter"),
    "other tensors": lambda path, _: safetensors.numpy.save_file({"weight": np.zeros(3)}, path),
    "other metadata": lambda path, _: safetensors.numpy.save_file({}, path, {"deephash_pipeline.hasher": "[]"}),
    "flipped weight": lambda path, content: path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]),
    "other statistics": lambda path, content: path.write_bytes(content.replace(b'tion\\": [0.', b'tion\\": [1.')),
    "folder": lambda path, _: (path.unlink(), path.mkdir()),
    "missing": lambda path, _: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_no_hasher_is_refused_in_one_line_with_its_name(damage, tmp_path):
    path = tmp_path / "hasher.safetensors"
    assembled()[0].save(path)
    content = path.read_bytes()
    damage(path, content)
    assert not path.is_file() or path.read_bytes() != content
    with pytest.raises(InputError, match=r"hasher\.safetensors") as caught:
        ImageHasher.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", [None, 3, b"a.safetensors"])
def test_what_is_no_path_is_refused_in_one_line(path):
    with pytest.raises(InputError, match="a hasher is loaded from the path of its file"):
        ImageHasher.load(path)


def test_a_hasher_without_a_digest_is_taken_as_it_is_and_gets_one(tmp_path):
    path = tmp_path / "hasher.safetensors"
    hasher, _, _ = assembled()
    hasher.save(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        content = json.loads(file.metadata()["deephash_pipeline.hasher"])
    del content["digest"], content["description"]["training_images"]
    saved = path.read_bytes()
    safetensors.numpy.save_file(tensors, path, {"deephash_pipeline.hasher": json.dumps(content)})
    loaded = ImageHasher.load(path)
    assert loaded.digest == hasher.digest
    assert loaded.description.trained_on.startswith("images of noise in 4 classes, 28 x 28 pixels in grey, seed 1")
    hasher.save(path)
    assert path.read_bytes() == saved


def test_an_encoder_of_another_trunk_is_refused():
    hasher, _, _ = assembled()
    other = ITQ(12).fit(np.random.default_rng(0).normal(size=(40, 30)))
    with pytest.raises(InputError, match="the encoder takes 30 features, the network gives 500"):
        ImageHasher(hasher.trunk, other, hasher.description)


@pytest.mark.parametrize(
    ("name", "shape"), [("digits-48", (8, 8)), ("mnist-48", (28, 28)), ("cifar10-48", (32, 32, 3))]
)
def test_three_trained_hashers_come_with_the_package(name, shape):
    hasher = ImageHasher.pretrained(name)
    images = np.random.default_rng(0).integers(0, 256, (3, *shape)).astype(np.uint8)
    assert hasher.encode(images).shape == (3, 6)
    assert len(hasher.description.class_names) == 10
    known = {"digits-48": "1,297", "mnist-48": "50,000", "cifar10-48": "45,000"}
    assert hasher.description.trained_on.startswith(f"{known[name]} images of {name[:-3]} in 10 classes, ")


def test_the_shipped_hasher_of_digits_finds_digits_of_the_same_class():
    digits = load_digits()
    codes = ImageHasher.pretrained("digits-48").encode((digits.images * 15).astype(np.uint8))
    distances = np.bitwise_count(codes[:100, None] ^ codes[None, 100:]).sum(axis=2)
    assert (digits.target[100:][distances.argmin(axis=1)] == digits.target[:100]).mean() > 0.97


def test_an_unknown_shipped_hasher_is_refused_with_those_there_are():
    with pytest.raises(InputError, match="choose one of cifar10-48, digits-48, mnist-48"):
        ImageHasher.pretrained("imagenet")
