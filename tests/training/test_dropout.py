"""Counter-based dropout: PyTorch's in distribution, and the same mask wherever a sample comes by."""

import pytest
import torch
from torch import nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.training.dropout import CounterBasedDropout, replace_dropout


def dropout(probability=0.3, layer=0, seed=5, first=0):
    made = CounterBasedDropout(probability, layer)
    made.set_counter(seed, first)
    return made


def test_the_kept_share_and_the_scale_are_those_of_inverted_dropout():
    masked = dropout(0.3)(torch.ones(200, 5000))
    kept = masked != 0
    torch.testing.assert_close(masked[kept], torch.full((int(kept.sum()),), 1 / 0.7))
    # A million independent units: five standard deviations are 0.0023.
    assert float(kept.double().mean()) == pytest.approx(0.7, abs=5 * (0.3 * 0.7 / 1e6) ** 0.5)
    assert kept.double().mean(0).std() == pytest.approx((0.3 * 0.7 / 200) ** 0.5, rel=0.05)
    assert kept.double().mean(1).std() == pytest.approx((0.3 * 0.7 / 5000) ** 0.5, rel=0.2)


def test_evaluation_and_a_probability_of_zero_change_nothing():
    activations = torch.rand(3, 4)
    assert dropout(0.5).eval()(activations) is activations
    assert dropout(0.0)(activations) is activations


def test_a_probability_of_one_drops_everything():
    assert not dropout(1.0)(torch.rand(3, 4)).any()


@pytest.mark.parametrize("shape", [(12, 7), (12, 3, 4, 5)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_batch_in_pieces_is_masked_like_the_whole(shape, layout):
    activations = torch.rand(shape)
    whole = dropout()(activations)
    if len(shape) == 4:
        activations = activations.contiguous(memory_format=layout)
    pieces = [dropout(first=first)(activations[first : first + 5]) for first in (0, 5, 10)]
    assert torch.equal(torch.cat(pieces), whole)


def test_masks_differ_between_seeds_layers_samples_and_units_only():
    ones = torch.ones(64, 64)
    mask = dropout()(ones)
    torch.rand(3)
    assert torch.equal(mask, dropout()(ones))
    for other in (dropout(seed=6), dropout(layer=1), dropout(first=64)):
        agreement = float((other(ones) == mask).float().mean())
        # Independent masks agree where both keep or both drop.
        assert agreement == pytest.approx(0.7**2 + 0.3**2, abs=0.05)


def test_every_dropout_of_a_network_is_replaced_and_numbered():
    shared = nn.Dropout(0.2)
    network = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1), nn.Sequential(shared, nn.Linear(3, 3)), shared)
    network.eval()
    layers = replace_dropout(network)
    assert [(layer.probability, layer.layer) for layer in layers] == [(0.1, 0), (0.2, 1), (0.2, 2)]
    assert not any(isinstance(module, nn.Dropout) for module in network.modules())
    assert not any(layer.training for layer in layers)
    assert replace_dropout(network) == layers


def test_the_counter_is_no_part_of_the_weights():
    network = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1))
    names = list(network.state_dict())
    replace_dropout(network)
    assert list(network.state_dict()) == names


@pytest.mark.parametrize("layer", [nn.Dropout1d(), nn.Dropout2d(), nn.AlphaDropout(), nn.RReLU()])
def test_a_layer_whose_draws_depend_on_those_before_is_refused(layer):
    with pytest.raises(InputError, match=f"{type(layer).__name__} draws numbers that depend on what was drawn before"):
        replace_dropout(nn.Sequential(nn.Linear(3, 3), layer))
