"""A network of torchvision with weights of its own, for tests of features."""

import pytest
import torch
import torchvision


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    """A file of the state of squeezenet1_1."""
    file = tmp_path_factory.mktemp("weights") / "squeezenet1_1.pth"
    with torch.random.fork_rng():
        torch.manual_seed(5)
        torch.save(torchvision.models.squeezenet1_1().state_dict(), file)
    return str(file)
