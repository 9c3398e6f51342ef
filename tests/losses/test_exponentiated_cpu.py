"""The compiled loss against the reference, which is in float64, in both of its precisions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses import ExponentiatedLoss
from deephash_pipeline.losses.exponentiated import reference
from tests.losses.batches import random_batch

FAITHFUL = ExponentiatedLoss()
DEPARTURES = (("paper", 1.0, False), ("unit", 0.5, False), ("paper", 3.0, True), ("unit", 1.0, True))
LOSSES = [ExponentiatedLoss(*departures) for departures in DEPARTURES]


def assert_agree(found, expected, u, loss):
    """Compare in u's precision, relative to the size that sums have before their terms cancel."""
    epsilon = 1e-13 if u.dtype == torch.float64 else 2e-6
    batch, code_length = u.shape
    loss_scale, temperature, _ = loss.departures
    value_scale, slope_scale = (1.0, 1 / code_length**2) if loss_scale == "paper" else (code_length, 1.0)
    gradient_scale = slope_scale * temperature * u.abs().max().item() / batch
    assert found.value.dtype == found.gradient.dtype == found.true_loss.dtype == u.dtype
    assert abs(found.value.item() - expected.value.item()) <= 3 * epsilon * value_scale
    assert found.true_loss.item() == pytest.approx(expected.true_loss.item(), rel=epsilon)
    assert found.gradient.shape == u.shape
    gradient_scale = max(gradient_scale, expected.gradient.abs().max().item())
    assert (found.gradient.double() - expected.gradient).abs().max().item() <= epsilon * gradient_scale


@st.composite
def batches(draw):
    batch, code_length = draw(st.integers(1, 40)), draw(st.one_of(st.integers(1, 70), st.sampled_from([128, 255, 256])))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    u = generator.standard_normal((batch, code_length)) * draw(st.sampled_from([1e-3, 0.3, 1.0, 5.0]))
    u[generator.random(u.shape) < draw(st.sampled_from([0.0, 0.2, 1.0]))] = 0.0
    u[generator.random(u.shape) < 0.1] *= -1.0  # zeros of both signs
    labels = {
        "equal": np.full(batch, 7),
        "different": generator.permutation(batch) - 3,
        "few": generator.integers(-1, 2, batch),
        "many": generator.integers(-(2**40), 2**40, batch) // 2**37,
    }[draw(st.sampled_from(["equal", "different", "few", "many"]))]
    return torch.from_numpy(u), torch.from_numpy(labels)


@settings(max_examples=60, deadline=None)
@given(batches(), st.sampled_from(LOSSES), st.sampled_from([torch.float32, torch.float64]))
def test_value_gradient_and_true_loss_are_those_of_the_reference(batch, loss, dtype):
    u, labels = batch[0].to(dtype), batch[1]
    found = loss.loss_and_gradient(u, labels)
    assert_agree(found, reference.loss_and_gradient(u, labels, loss.departures), u, loss)


# Around the borders of vectors and of blocks: odd and even numbers of blocks, and the larger blocks.
@pytest.mark.parametrize(
    ("batch", "code_length"),
    [(2, 1), (31, 3), (128, 12), (129, 48), (300, 5), (512, 4), (641, 3), (1024, 1), (1100, 2), (9, 300)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batches_of_several_blocks_agree_with_the_reference(batch, code_length, dtype):
    u, labels = random_batch(batch, batch, code_length)
    for loss in LOSSES[1:3]:
        found = loss.loss_and_gradient(u.to(dtype), labels)
        assert_agree(found, reference.loss_and_gradient(u.to(dtype), labels, loss.departures), u.to(dtype), loss)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("batch", [5, 700, 1024, 1300])
def test_the_number_of_threads_changes_no_bit(threads, batch):
    u, labels = random_batch(batch, batch, 12)
    results = []
    for number in (1, 2, 3, 7, 1, 2):
        threads(number)
        results.append(LOSSES[2].loss_and_gradient(u.float(), labels))
    for result in results[1:]:
        assert all(torch.equal(part, first) for part, first in zip(result, results[0], strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_u_and_labels_may_lie_in_memory_as_they_like(dtype):
    u, labels = random_batch(2, 50, 20)
    u = u.to(dtype)
    expected = FAITHFUL.loss_and_gradient(u, labels)
    for other_u, other_labels in (
        (u.T.contiguous().T, labels),
        (torch.stack([u, -u], dim=2)[:, :, 0], torch.stack([labels, labels + 1], dim=1)[:, 0]),
        (u.flip(0).flip(0), labels.int()),
    ):
        found = FAITHFUL.loss_and_gradient(other_u, other_labels)
        assert all(torch.equal(part, first) for part, first in zip(found, expected, strict=True))
        assert found.gradient.is_contiguous()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [40.0, 1e4, 1e15, 1e30])
def test_saturated_u_gives_the_true_loss_and_no_gradient(dtype, scale):
    u, labels = random_batch(5, 64, 32)
    u = (torch.where(u >= 0, 1, -1) * scale).to(dtype)
    value, gradient, true_loss = FAITHFUL.loss_and_gradient(u, labels)
    assert value.item() == pytest.approx(true_loss.item(), rel=1e-6)
    assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("exponent", [-18.0, -6.0, 3.0, 4.4, 5.0])
def test_gradients_keep_their_relative_accuracy_far_out(dtype, exponent):
    """A saturated pair gives a small gradient, not what rounding 1 - sigma leaves of it."""
    u = torch.tensor([[1.0, 1.0], [2.0**exponent, -(2.0**exponent)]], dtype=dtype)
    labels = torch.tensor([0, 1])
    found = FAITHFUL.loss_and_gradient(u, labels).gradient
    # tanh of autograd loses the small slopes, so they come from the exponential function.
    x = (u[0] * u[1]).double()
    sigma_slope = torch.exp(-x.abs()) / (1 + torch.exp(-x.abs())) ** 2
    near = reference.loss_and_gradient(torch.full_like(u, 1e-6) * u.sign(), labels, FAITHFUL.departures).gradient / 1e-6
    expected = near * 4 * sigma_slope * u.flip(0).abs()
    torch.testing.assert_close(found.double(), expected, rtol=2e-5 if dtype == torch.float32 else 1e-9, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_not_a_number_is_not_hidden(dtype):
    u, labels = random_batch(6, 40, 16)
    u = u.to(dtype)
    u[17, 3] = float("nan")
    value, gradient, _ = FAITHFUL.loss_and_gradient(u, labels)
    assert value.isnan()
    assert gradient[:, 3].isnan().all()


def test_autograd_and_the_module_give_what_the_plain_function_gives():
    u, labels = random_batch(10, 30, 12)
    u = u.float().requires_grad_()
    plain = LOSSES[1].loss_and_gradient(u, labels)
    assert not any(part.requires_grad for part in plain)
    (3 * LOSSES[1](u, labels)).backward()
    assert torch.equal(u.grad, 3 * plain.gradient)
    assert torch.equal(LOSSES[1](u, labels).detach(), plain.value)
    assert torch.equal(LOSSES[1].metrics["true_loss"], plain.true_loss)


@pytest.mark.parametrize(("batch", "loss"), [(0, FAITHFUL), (1, FAITHFUL), (1, LOSSES[3])])
def test_without_pairs_there_is_no_loss_and_no_gradient(batch, loss):
    value, gradient, true_loss = loss.loss_and_gradient(torch.ones(batch, 3), torch.zeros(batch, dtype=torch.int64))
    assert (value, true_loss) == (0, 0)
    assert torch.equal(gradient, torch.zeros(batch, 3))


def test_a_matrix_that_is_not_one_of_the_samples_is_refused():
    with pytest.raises(InputError, match=r"^supervision must be labels \(3,\) or a matrix \(3, 3\), got shape"):
        FAITHFUL.loss_and_gradient(torch.ones(3, 2), torch.zeros(3, 2))
    with pytest.raises(InputError, match=r"^labels must be \(3,\) for u of 3 samples"):
        FAITHFUL.loss_and_gradient(torch.ones(3, 2), torch.zeros(4, 4))
    for matrix in ([[1, 0], [1, 0]], [[1, 0], [0, 1]], [[0.0, 2.0], [2.0, 0.0]], [[0.0, -1.0], [1.0, 0.0]]):
        with pytest.raises(InputError, match=r"^a matrix of supervision must be symmetric, .*; several labels"):
            FAITHFUL(torch.ones(2, 3), torch.tensor(matrix))
