import numpy as np
import pytest

from tests.hashing.little_work import LITTLE_WORK


@pytest.fixture(scope="session")
def quick():
    """Make hash functions that learn for a short time only, from (method, code length, seed, parameters of its own)."""

    def make(method, code_length, seed=0, **parameters):
        given = {**LITTLE_WORK.get(method, {}), **parameters}
        return method(code_length, random_state=seed, **given)

    return make


@pytest.fixture(scope="session")
def z():
    """300 rows of 20 correlated features after a ReLU: off the origin, with exact zeros, as a network gives them."""
    generator = np.random.default_rng(11)
    mixing = generator.normal(size=(20, 20)) * np.linspace(2.0, 0.2, 20)[:, np.newaxis]
    return np.maximum(generator.normal(size=(300, 20)) @ mixing + 1.0, 0.0).astype(np.float32)


@pytest.fixture(scope="session")
def labels(z):
    """Ten classes, in no relation to the rows of `z`."""
    return np.random.default_rng(12).permutation(len(z)) % 10
