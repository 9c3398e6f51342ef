"""Losses of images with several labels: a pair is similar if it shares one."""

import numpy as np
import pytest
import torch

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses import CSQ, LOSS_PARAMETERS, LOSSES, ExponentiatedLoss, build_loss
from deephash_pipeline.losses.pairs import shares_a_label, supervision_matrix

CODE_LENGTH, CLASSES = 8, 4


@pytest.fixture(scope="module")
def u():
    return torch.randn(24, CODE_LENGTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture(scope="module")
def several():
    return (torch.rand(24, CLASSES, generator=torch.Generator().manual_seed(1)) < 0.3).to(torch.uint8)


def test_samples_are_similar_exactly_if_the_sets_of_their_labels_meet(several):
    sets = [set(row.nonzero().flatten().tolist()) for row in several]
    meet = [[bool(a & b) or i == j for j, b in enumerate(sets)] for i, a in enumerate(sets)]
    assert shares_a_label(several).tolist() == meet
    assert shares_a_label(several.bool()).tolist() == meet
    assert torch.equal(supervision_matrix(several).diagonal(), torch.zeros(24))


@pytest.mark.parametrize("balance", [False, True])
def test_the_exponentiated_loss_of_several_labels_is_that_of_their_matrix_of_similarities(balance, u, several):
    loss = ExponentiatedLoss(balance_pairs=balance)
    given, expected = loss.loss_and_gradient(u, several), loss.loss_and_gradient(u, supervision_matrix(several))
    assert given.value == expected.value
    assert torch.equal(given.gradient, expected.gradient)


def test_csq_draws_an_image_to_the_majority_of_the_centres_of_its_labels():
    loss = CSQ(code_length=CODE_LENGTH, classes=3)
    labels = torch.tensor([[1, 1, 1], [0, 1, 0], [1, 1, 0]], dtype=torch.uint8)
    votes = [loss.centres.sum(0), loss.centres[1], loss.centres[0] + loss.centres[1]]
    wanted = loss.centres_of(labels)
    assert set(wanted.flatten().tolist()) == {-1.0, 1.0}
    for row, vote in zip(wanted, votes, strict=True):
        decided = vote != 0
        assert torch.equal(row[decided], vote[decided].sign())
        assert torch.equal(row[~decided], loss.tied[~decided])


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if not loss.several_labels])
def test_losses_of_classes_refuse_several_labels_in_one_line(name, several):
    with pytest.raises(InputError, match="this method needs one label an image") as raised:
        build_loss(LOSS_PARAMETERS[name](), CODE_LENGTH, several.numpy(), random_state=0)
    assert "\n" not in str(raised.value)


def test_the_loss_that_is_built_for_several_labels_has_a_centre_for_each_class_even_one_that_does_not_occur():
    labels = np.zeros((5, 7), dtype=np.uint8)
    labels[:, 2] = 1
    assert len(build_loss(LOSS_PARAMETERS["csq"](), CODE_LENGTH, labels, random_state=0).centres) == 7
