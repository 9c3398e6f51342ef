import numpy as np
import pytest

WIDTH = 24


@pytest.fixture(scope="session")
def vectors():
    """Six hundred vectors around twenty centres, far from the origin."""
    generator = np.random.default_rng(1)
    centres = generator.normal(size=(20, WIDTH))
    vectors = 0.5 + centres[np.arange(600) % 20] + generator.normal(scale=0.7, size=(600, WIDTH))
    return vectors.astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "papers.index"
