"""The ONNX file of a hasher gives its codes, and is one file that says what it is."""

import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from PIL import Image

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash.export import export_onnx
from deephash_pipeline.deephash.export.onnx import outputs
from deephash_pipeline.hashers import OnnxHasher
from deephash_pipeline.hashing import (
    ENCODERS,
    HASH_FUNCTIONS,
    KSH,
    LearnedHashLayer,
    LinearEncoder,
    LiongSDH,
    OneOfC,
    SpectralHashing,
)
from deephash_pipeline.networks import LocalResponseNormalisation, initialise
from deephash_pipeline.photographs import ImageIndex
from tests.deephash.test_hasher import assembled, random_images

CLOSE_TO_NOTHING = 1e-5
"""Outputs that are nearer to 0, in standard deviations, may have either sign."""


@pytest.fixture(scope="module")
def digits():
    return ImageHasher.pretrained("digits-48", device="cpu")


@pytest.fixture(scope="module")
def exported(digits, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "digits.onnx"
    export_onnx(digits, path)
    return path


def of_onnx(hasher, folder):
    export_onnx(hasher, folder / "hasher.onnx")
    return OnnxHasher.load(folder / "hasher.onnx")


def assert_equal_but_near_0(codes, expected, u):
    differ = np.unpackbits(codes ^ expected, axis=1, count=u.shape[1]).astype(bool)
    assert (np.abs(u) < CLOSE_TO_NOTHING * u.std(axis=0))[differ].all()
    assert codes.shape == expected.shape


# Of 34 pixels LeNet takes the middle.
@pytest.mark.parametrize(
    ("network", "side"), [("lenet", 34), ("cifar10_full", 32), ("kaggle_face", 48), ("resnet18", 8)]
)
def test_codes_of_every_network_are_those_of_pytorch_but_for_outputs_next_to_0(network, side, tmp_path):
    hasher, images, codes = assembled("lsh", network, 48, side)
    z = hasher.features(images).astype(np.float64)
    u = z @ hasher.encoder.projection_ - hasher.encoder.threshold_
    assert_equal_but_near_0(of_onnx(hasher, tmp_path).encode(images), codes, u)


@pytest.mark.parametrize("within_channel", [True, False])
def test_response_normalisation_is_the_same_by_pooling(within_channel):
    layer = LocalResponseNormalisation(5, 0.1, within_channel)
    responses = torch.randn(3, 7, 9, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer.by_pooling(responses), layer(responses))


def encoders(z):
    """One of each kind, made of features; what is linear counts as one kind."""
    labels = np.arange(len(z)) % 4
    weights = np.random.default_rng(1).normal(size=(z.shape[1], 12))
    made = {
        "sh": SpectralHashing(12).fit(z),
        "ksh": KSH(12, anchors=20, iterations=3).fit(z, labels),
        "liong_sdh": LiongSDH(12, iterations=2).fit(z, labels),
        "one_of_c": OneOfC.from_arrays(12, {"weights": weights, "bias": weights[0]}),
        "hash_layer": LearnedHashLayer.from_arrays(12, {"projection": weights, "threshold": weights[0]}),
    }
    made |= {name: HASH_FUNCTIONS[name](12, anchors=30).fit(z, labels) for name in ("agh", "sdh", "fsdh", "cosdish")}
    made["fast_hash"] = HASH_FUNCTIONS["fast_hash"](12, trees=3).fit(z, labels)
    made |= {name: HASH_FUNCTIONS[name](12).fit(z) for name in ("sph", "sign", "median")}
    others = [name for name in HASH_FUNCTIONS if name not in made and not issubclass(ENCODERS[name], LinearEncoder)]
    return made | {name: HASH_FUNCTIONS[name](12).fit(z, labels) for name in others}


def test_codes_of_every_kind_of_encoder_are_the_same(tmp_path):
    hasher, images, _ = assembled("lsh")
    z = hasher.features(images)
    for name, encoder in encoders(z).items():
        u = outputs(encoder, torch.from_numpy(z).double()).numpy()
        assert_equal_but_near_0(np.packbits(u >= 0, axis=1), np.packbits(encoder.transform(z), axis=1), u)
        made = ImageHasher(hasher.trunk, encoder, hasher.description)
        assert_equal_but_near_0(of_onnx(made, tmp_path).encode(images), made.encode(images), u)
        assert (u >= 0).any() and (u < 0).any(), name


def test_one_file_takes_any_number_of_images(exported, digits):
    assert [path.name for path in exported.parent.iterdir()] == ["digits.onnx"]
    hasher = OnnxHasher.load(exported)
    images = random_images(600, 1, 28)
    for count in (0, 1, 600):
        np.testing.assert_array_equal(hasher.encode(images[:count]), digits.encode(images[:count]))
        [codes] = onnxruntime.InferenceSession(exported).run(["codes"], {"images": images[:count]})
        np.testing.assert_array_equal(codes, digits.encode(images[:count]))


def test_files_are_turned_grey_and_resized_before_the_graph_as_before_pytorch(exported, digits, tmp_path):
    hasher = OnnxHasher.load(exported)
    for row, image in enumerate(random_images(4, 3, 50)):
        Image.fromarray(image.transpose(1, 2, 0)).resize((70, 40)).save(tmp_path / f"{row}.png")
    files = [*sorted(tmp_path.glob("*.png")), tmp_path / "missing.png"]
    encoded = hasher.encode_readable(files)
    np.testing.assert_array_equal(encoded.codes, digits.encode(files[:4]))
    assert [skipped.row for skipped in encoded.skipped] == [4]


def test_the_file_says_what_the_hasher_says(exported, digits):
    hasher = OnnxHasher.load(exported)
    assert hasher.description == digits.description
    assert (repr(hasher), hasher.code_length) == ("OnnxHasher(deephash, 48 bits, lenet, digits)", 48)


@pytest.mark.parametrize("kind", ["cut", "another model", "no images", "flipped weight", "missing"])
def test_what_is_no_hasher_is_refused_in_one_line_with_its_name(kind, exported, tmp_path):
    path = tmp_path / "hasher.onnx"
    match kind:
        case "cut":
            path.write_bytes(exported.read_bytes()[:1000])
        case "another model":
            model = onnx.load(exported)
            del model.metadata_props[:]
            onnx.save(model, path)
        case "no images":
            model = onnx.load(exported)
            zeros = onnx.helper.make_tensor("codes", onnx.TensorProto.UINT8, [1, 6], [0] * 6)
            del model.graph.input[:], model.graph.node[:], model.graph.initializer[:]
            model.graph.node.append(onnx.helper.make_node("Constant", [], ["codes"], value=zeros))
            onnx.save(model, path)
        case "flipped weight":
            weights = max((part.raw_data for part in onnx.load(exported).graph.initializer), key=len)
            path.write_bytes(exported.read_bytes().replace(weights, bytes([weights[0] ^ 1]) + weights[1:]))
    with pytest.raises(InputError, match=r"hasher\.onnx .*export-onnx") as caught:
        OnnxHasher.load(path)
    assert "\n" not in str(caught.value)


def test_a_model_that_cannot_be_written_leaves_nothing(digits, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="taken is no regular file"):
        export_onnx(digits, tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_an_index_takes_no_model_of_another_hasher(exported, digits, tmp_path):
    trunk = initialised_anew(digits)
    ImageIndex.create(tmp_path / "index", trunk).close()
    (tmp_path / "index" / "hasher.onnx").write_bytes(exported.read_bytes())
    with pytest.raises(InputError, match="made from another hasher"):
        ImageIndex.open(tmp_path / "index", read_only=True, runtime="onnx")
    with pytest.raises(InputError, match="computes on the CPU"):
        ImageIndex.open(tmp_path / "index", read_only=True, runtime="onnx", device="cuda")


def initialised_anew(hasher):
    other, _, _ = assembled("lsh", code_length=48)
    initialise(other.trunk, 9)
    return ImageHasher(other.trunk, hasher.encoder, hasher.description)


def test_nothing_of_hashers_imports_pytorch():
    program = "import sys, deephash_pipeline.hashers; print(sorted({'torch', 'pandas', 'kedro'} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed == "[]\n"
