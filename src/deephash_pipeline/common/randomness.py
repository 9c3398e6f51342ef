"""Every random draw is a function of the configured seed and of where it happens, never of call order.

`derive_seed` gives each place a seed of its own. `uniform_numbers` is counter-based: the draw of a sample is a hash of
(seed, sample, draw), on any device, in any order. A generator's state would have to be saved with a checkpoint and
would make a batch in two pieces differ from the batch in one.
"""

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

# SplitMix64 (Steele, Lea and Flood 2014), as signed numbers because PyTorch has no unsigned arithmetic.
_GOLDEN_RATIO = 0x9E3779B97F4A7C15 - 2**64
_FIRST_FACTOR = 0xBF58476D1CE4E5B9 - 2**64
_SECOND_FACTOR = 0x94D049BB133111EB - 2**64


def derive_seed(seed: int, *place: int | str) -> int:
    """Derive an independent 63-bit seed from the configured one and a place such as ``("augmentation", epoch, step)``.

    The same arguments give the same number on every machine, so an interrupted run can redo any step alone.

    Example:
        >>> derive_seed(42, "augmentation", 3, 17) == derive_seed(42, "augmentation", 3, 17)
        True
        >>> derive_seed(42, "augmentation", 3, 17) == derive_seed(42, "augmentation", 3, 18)
        False
    """
    words = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in place]
    state = np.random.SeedSequence([seed, *words]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def uniform_numbers(seed: "int | Tensor", samples: "Tensor", draws: int) -> "Tensor":
    """Draw numbers in [0, 1), independent for each seed, sample and draw.

    Each sample has a SplitMix64 sequence of its own, which begins at a hash of the seed and the sample's number.

    Args:
        seed: 63 bits, of `derive_seed`; or an int64 scalar on the device of `samples`.
        samples: int64 (n,), numbers of samples.
        draws: number of draws for each sample.

    Returns:
        float64 (n, draws) on the device of `samples`, multiples of 2^-53; the same on every device.

    Example:
        >>> import torch
        >>> numbers = uniform_numbers(seed=7, samples=torch.arange(5), draws=2)
        >>> bool((uniform_numbers(seed=7, samples=torch.tensor([3]), draws=2) == numbers[3]).all())
        True
    """
    import torch  # noqa: PLC0415 - indexes of vectors derive seeds without it

    if not isinstance(seed, torch.Tensor):
        seed = torch.full((), seed, dtype=torch.int64, device=samples.device)
    draw = torch.arange(1, draws + 1, device=samples.device)
    of_sample = _mix(_mix(seed) + samples * _GOLDEN_RATIO)
    hashed = _mix(of_sample[:, None] + draw * _GOLDEN_RATIO)
    return _shift_right(hashed, 11).double() * 2.0**-53


def _mix(numbers: "Tensor") -> "Tensor":
    numbers = (numbers ^ _shift_right(numbers, 30)) * _FIRST_FACTOR
    numbers = (numbers ^ _shift_right(numbers, 27)) * _SECOND_FACTOR
    return numbers ^ _shift_right(numbers, 31)


def _shift_right(numbers: "Tensor", bits: int) -> "Tensor":
    """Shift in zeros from the left, whereas PyTorch repeats the sign."""
    return (numbers >> bits) & ((1 << (64 - bits)) - 1)
