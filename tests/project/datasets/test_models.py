import json

import numpy as np
import pytest
import safetensors.numpy
import torch
from kedro.io import DatasetError

from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.networks import build_trunk, initialise
from deephash_pipeline.project.datasets import EncoderDataset, TensorsDataset

CODE_LENGTH = 12


FEATURES = np.maximum(np.random.default_rng(3).normal(1, 1, size=(200, 20)), 0).astype(np.float32)


def an_encoder(kind="itq"):
    return HASH_FUNCTIONS[kind](CODE_LENGTH, random_state=5).fit(FEATURES)


def test_the_state_of_a_network_comes_back_as_it_was(tmp_path):
    trunk = build_trunk("lenet")
    initialise(trunk, seed=1)
    state = trunk.to(memory_format=torch.channels_last).state_dict()
    dataset = TensorsDataset(str(tmp_path / "trunk.safetensors"))
    dataset.save(state)
    loaded = dataset.load()
    assert set(loaded) == set(state)
    assert all(torch.equal(loaded[name], tensor) for name, tensor in state.items())
    build_trunk("lenet").load_state_dict(loaded)


# What arrays each kind has is tested with hash functions; here, of floats alone and of several types.
@pytest.mark.parametrize("kind", ["itq", "sh"])
def test_a_stored_encoder_gives_the_same_codes(tmp_path, kind):
    encoder = an_encoder(kind)
    dataset = EncoderDataset(str(tmp_path / "encoder.safetensors"))
    dataset.save(encoder)
    loaded = dataset.load()
    assert type(loaded) is type(encoder)
    assert loaded.code_length == CODE_LENGTH
    np.testing.assert_array_equal(loaded.transform(FEATURES), encoder.transform(FEATURES))


def test_equal_encoders_are_equal_files(tmp_path):
    paths = [tmp_path / f"{number}.safetensors" for number in range(5)]
    for path in paths:
        EncoderDataset(str(path)).save(an_encoder())
    assert len({path.read_bytes() for path in paths}) == 1


def test_an_unknown_kind_of_encoder_is_refused_by_name(tmp_path):
    path = tmp_path / "encoder.safetensors"
    safetensors.numpy.save_file(
        {"a": np.ones(1)}, path, metadata={"encoder": json.dumps({"kind": "hamming", "code_length": 12})}
    )
    with pytest.raises(DatasetError, match="'hamming' is unknown"):
        EncoderDataset(str(path)).load()
