import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture(scope="session")
def z() -> NDArray[np.float32]:
    """300 rows of 20 correlated features behind a ReLU: off the origin, with exact zeros, as a network gives them."""
    generator = np.random.default_rng(11)
    mixing = generator.normal(size=(20, 20)) * np.linspace(2.0, 0.2, 20)[:, np.newaxis]
    return np.maximum(generator.normal(size=(300, 20)) @ mixing + 1.0, 0.0).astype(np.float32)
