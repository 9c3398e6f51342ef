"""Counter-based draws: a published generator's, and the same wherever and whenever they are made."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deephash_pipeline.common.randomness import derive_seed, uniform_numbers

SEEDS = st.integers(0, 2**63 - 1)


def numbers(seed=42, samples=1000, draws=100, first=0):
    return uniform_numbers(seed, torch.arange(first, first + samples), draws).numpy()


def split_mix(state):
    """One number of the published generator, in Python's unbounded integers."""
    mixed = state % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> shift)) * factor % 2**64
    return mixed ^ (mixed >> 31)


def test_the_first_sample_of_seed_zero_draws_the_published_sequence_of_split_mix_64():
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert numbers(seed=0, samples=1, draws=3)[0].tolist() == [(value >> 11) * 2.0**-53 for value in published]


@given(seed=SEEDS, sample=st.integers(0, 10**9), draw=st.integers(0, 5))
def test_a_number_is_a_hash_of_its_seed_sample_and_draw(seed, sample, draw):
    golden_ratio = 0x9E3779B97F4A7C15
    start = split_mix(split_mix(seed) + sample * golden_ratio)
    expected = (split_mix(start + (draw + 1) * golden_ratio) >> 11) * 2.0**-53
    assert numbers(seed, samples=1, draws=6, first=sample)[0, draw] == expected


def test_nothing_depends_on_what_was_drawn_before_and_no_generator_is_touched():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    before = numbers()
    numbers(seed=7)
    np.testing.assert_array_equal(before, numbers())
    assert torch.equal(state, torch.get_rng_state())


@given(SEEDS)
def test_a_seed_may_be_a_tensor(seed):
    samples = torch.arange(5)
    assert torch.equal(uniform_numbers(torch.tensor(seed), samples, 3), uniform_numbers(seed, samples, 3))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_cuda_device_draws_the_same_numbers_to_the_last_bit():
    on_gpu = uniform_numbers(42, torch.arange(1000, device="cuda"), 100)
    assert on_gpu.is_cuda
    np.testing.assert_array_equal(on_gpu.cpu().numpy(), numbers())


def test_a_seed_is_a_function_of_the_configured_seed_and_the_place():
    assert derive_seed(42, "order", 3) == derive_seed(42, "order", 3)
    places = [(42, "order", 3), (42, "order", 4), (42, "augmentation", 3), (43, "order", 3), (42, 3, "order")]
    assert len({derive_seed(*place) for place in places}) == len(places)


def test_a_seed_is_the_same_on_every_machine_and_fits_a_signed_word():
    assert derive_seed(42, "order", 1) == 2000385278109083267
    assert all(0 <= derive_seed(seed, "order") < 2**63 for seed in range(100))
