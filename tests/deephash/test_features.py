"""Features of images by either runtime, and hashers and indexes that keep theirs."""

import pickle
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from deephash_pipeline import FeatureHash, ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.hashing import LSH
from deephash_pipeline.photographs import ImageIndex
from tests.packages import INSTALLS

IMAGES = np.random.default_rng(0).integers(0, 256, (9, 40, 40, 3), dtype=np.uint8)


def extractor(weights, runtime):
    return FeatureExtractor.pretrained("squeezenet1_1", weights=weights, image_size=(48, 64), runtime=runtime)


def test_both_runtimes_give_the_same_features_of_files_and_arrays(weights, tmp_path):
    Image.fromarray(IMAGES[0]).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no image")
    of_torch, of_onnx = extractor(weights, "torch"), extractor(weights, "onnx")
    expected = of_torch.features(IMAGES)
    np.testing.assert_allclose(of_onnx.features(IMAGES), expected, rtol=0, atol=1e-5 * expected.std())
    assert expected.shape == (9, of_onnx.dimension) and expected.dtype == np.float32
    [batch] = of_onnx.batches([tmp_path / "b.png", tmp_path / "a.png"])
    np.testing.assert_allclose(batch.features, expected[:1], atol=1e-5 * expected.std())
    assert (batch.rows.tolist(), batch.skipped[0].row) == ([1], 0)


def test_of_larger_pixels_both_runtimes_see_the_middle(weights):
    larger = np.random.default_rng(1).integers(0, 256, (5, 3, 56, 64), dtype=np.uint8)
    expected = extractor(weights, "torch")(larger)
    of_onnx = extractor(weights, "onnx")
    np.testing.assert_allclose(of_onnx(larger), expected, rtol=0, atol=1e-5 * expected.std())
    np.testing.assert_array_equal(of_onnx(larger), of_onnx(larger[:, :, 4:52]))


def test_networks_of_equal_weights_size_and_statistics_alone_are_the_same(weights):
    network = extractor(weights, "torch")
    assert network.is_same(extractor(weights, "torch"))
    others = [FeatureExtractor(network.trunk, {"mean": [0.0] * 3}, network.device), extractor(weights, "torch")]
    with torch.no_grad():
        next(others[1].trunk.parameters()).add_(1)
    others.append(FeatureExtractor.pretrained("squeezenet1_1", weights=weights, image_size=(48, 48), runtime="torch"))
    assert not any(network.is_same(other) for other in others)


def test_features_by_onnx_do_not_depend_on_what_is_computed_beside_them(weights):
    of_onnx = extractor(weights, "onnx")
    alone = np.concatenate([of_onnx.features(image[None]) for image in IMAGES])
    np.testing.assert_array_equal(of_onnx.features(IMAGES), alone)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(of_onnx)).features(IMAGES), alone)


def test_a_hasher_keeps_its_runtime_and_an_index_takes_no_other(weights, tmp_path):
    def hasher(runtime):
        options = {"weights": weights, "image_size": (48, 64), "runtime": runtime}
        return FeatureHash(LSH(16), "squeezenet1_1", **options).fit(IMAGES)

    hasher("onnx").save(tmp_path / "onnx.safetensors")
    loaded = ImageHasher.load(tmp_path / "onnx.safetensors")
    assert loaded.description.runtime == "onnx"
    np.testing.assert_array_equal(loaded.encode(IMAGES), hasher("onnx").encode(IMAGES))
    with pytest.raises(InputError, match="ONNX Runtime computes on the CPU"):
        loaded.to("cuda")
    # An index that never had an item takes any hasher.
    with ImageIndex.create(tmp_path / "index", loaded) as index:
        index.add(["first"], IMAGES[:1])
    with pytest.raises(InputError, match=r"made by ONNX Runtime, .* --hasher .*hasher.safetensors and the extra"):
        ImageIndex.create_or_open(tmp_path / "index", hasher("torch"))


def test_without_onnx_runtime_pytorch_computes_and_a_hasher_of_the_other_names_the_package(weights, monkeypatch):
    made = FeatureHash(LSH(16), "squeezenet1_1", weights=weights, image_size=(48, 64)).fit(IMAGES)
    assert made.description.runtime == "onnx"
    copied = pickle.loads(pickle.dumps(made))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=INSTALLS.format("onnx")):
        copied.encode(IMAGES)
    monkeypatch.setattr("deephash_pipeline.deephash.features.find_spec", lambda _: None)
    assert extractor(weights, "auto").runtime == "torch"


def test_any_number_of_pictures_is_searched_by_features_and_codes_alone_keep_none(weights, tmp_path):
    hasher = FeatureHash(LSH(16), "squeezenet1_1", weights=weights, image_size=(48, 64)).fit(IMAGES)
    hasher.batch_size = 4
    names = [f"{row}.png" for row in range(len(IMAGES))]
    with ImageIndex.create(tmp_path / "index", hasher, features=True) as index:
        index.add(names, IMAGES)
        assert index.search(IMAGES, 3, rescore=True).ids[:, 0].tolist() == names
        assert len(index.search(IMAGES[:0], 3, rescore=True).ids) == 0
    assert hasher.encode_readable(IMAGES).features is None
