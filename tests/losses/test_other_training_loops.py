"""The losses in training loops that are not ours: a plain one of PyTorch, and pytorch-metric-learning's trainer."""

import numpy as np
import pytest
import torch
from torch import nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses import CNNH, CSQ, DNNH, DPSH, ExponentiatedLoss, GreedyHash, HashNet

CLASSES, BITS = 3, 8
LABELS = torch.arange(90) % CLASSES


def losses_on_u():
    return [
        ExponentiatedLoss(loss_scale="unit"),
        DPSH(),
        HashNet(),
        DNNH(),
        CNNH(BITS, LABELS),
        CSQ(BITS, CLASSES),
    ]


def clusters():
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(CLASSES, 5, generator=generator) * 2
    return centres[LABELS] + torch.randn(len(LABELS), 5, generator=generator)


def share_of_nearest_of_the_same_class(network):
    """Of the nearest other code of each sample; ties count by their mean."""
    with torch.no_grad():
        codes = (network(clusters()) >= 0).float()
    distances = torch.cdist(codes, codes, p=1).fill_diagonal_(torch.inf)
    nearest = distances == distances.min(dim=1, keepdim=True).values
    same = LABELS[:, None] == LABELS
    return float(((nearest & same).sum(1) / nearest.sum(1)).mean())


def test_a_loss_that_classifies_takes_logits_of_ones_own_layer():
    torch.manual_seed(0)
    network, softmax, loss = nn.Linear(5, BITS), nn.Linear(BITS, CLASSES), GreedyHash()
    optimizer = torch.optim.SGD([*network.parameters(), *softmax.parameters()], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        u = network(clusters())
        code = u + (torch.where(u >= 0, 1.0, -1.0) - u).detach()
        loss((u, softmax(code)), LABELS).backward()
        optimizer.step()
    assert loss.metrics["accuracy"] > 0.9
    assert share_of_nearest_of_the_same_class(network) > 0.9


def test_buffers_of_a_loss_are_saved_and_loaded_like_those_of_any_module():
    one, other = CSQ(BITS + 4, CLASSES, random_state=1), CSQ(BITS + 4, CLASSES, random_state=2)
    assert not torch.equal(one.centres, other.centres)
    other.load_state_dict(one.state_dict())
    assert torch.equal(one.centres, other.centres)


@pytest.mark.parametrize("loss", losses_on_u(), ids=lambda loss: type(loss).__name__)
def test_the_trainer_of_pytorch_metric_learning_takes_the_loss(loss):
    trainers = pytest.importorskip("pytorch_metric_learning.trainers")
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, BITS))
    trainers.MetricLossOnly(
        models={"trunk": trunk},
        optimizers={"trunk_optimizer": torch.optim.Adam(trunk.parameters(), lr=0.01)},
        batch_size=30,
        loss_funcs={"metric_loss": loss},
        dataset=torch.utils.data.TensorDataset(clusters(), LABELS),
        data_device=torch.device("cpu"),
        dataloader_num_workers=0,
    ).train(num_epochs=20)
    assert share_of_nearest_of_the_same_class(trunk) > 0.9


@pytest.mark.parametrize("loss", losses_on_u(), ids=lambda loss: type(loss).__name__)
def test_a_miner_of_pytorch_metric_learning_is_refused(loss):
    mined = tuple(torch.arange(4) for _ in range(3))
    with pytest.raises(InputError, match="takes all pairs of a batch: leave out the miner"):
        loss(torch.ones(4, BITS), torch.arange(4) % CLASSES, mined)


def test_labels_of_a_training_set_may_be_a_list_an_array_or_a_tensor():
    codes = [CNNH(BITS, labels).class_codes for labels in (LABELS, LABELS.numpy().astype(np.uint8), LABELS.tolist())]
    assert torch.equal(codes[0], codes[1])
    assert torch.equal(codes[0], codes[2])
