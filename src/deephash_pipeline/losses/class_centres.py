"""Losses with a fixed code for every class, and how such codes are chosen."""

import math
from dataclasses import field

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses.hashing_loss import HashingLoss

CENTRE_DRAWS = 20
"""Sets of Bernoulli centres of which the one with the largest smallest distance is kept."""
MANY = 10_000
"""Classes above which fewer sets are drawn, for all of them to be compared in the same time."""
AT_ONCE = 2048


def hash_centres(classes: int, code_length: int, random_state: int = 0) -> NDArray[np.float32]:
    """Choose codes of -1 and 1 that lie far apart, one for each class.

    Rows of a Hadamard matrix, and of its negative where they do not suffice, lie half the bits apart or all of them;
    they exist where the code length is a power of two that is at least half the number of classes. Otherwise bits are
    drawn, fair and independent: about half of them differ, too.

    Returns:
        float32 of shape (classes, code_length), no two rows alike.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> hash_centres(classes=3, code_length=4)
        array([[ 1.,  1.,  1.,  1.],
               [ 1., -1.,  1., -1.],
               [ 1.,  1., -1., -1.]], dtype=float32)
    """
    require_enough_codes(classes, code_length)
    if code_length & (code_length - 1) == 0 and classes <= 2 * code_length:
        hadamard = scipy.linalg.hadamard(code_length)
        return np.concatenate([hadamard, -hadamard])[:classes].astype(np.float32)
    generator = np.random.default_rng(random_state)
    draws = max(1, min(CENTRE_DRAWS, round(CENTRE_DRAWS * (MANY / classes) ** 2)))
    drawn = [draw_distinct_codes(classes, code_length, generator) for _ in range(draws)]
    return drawn[0] if draws == 1 else max(drawn, key=smallest_distance)


def smallest_distance(centres: NDArray[np.float32]) -> int:
    """Smallest Hamming distance between two rows of -1 and 1.

    Example:
        >>> smallest_distance(hash_centres(classes=3, code_length=4))
        2
    """
    largest = -centres.shape[1]
    for start in range(0, len(centres), AT_ONCE):
        # Each pair once, as all pairs of many classes are more than memory has room for.
        products = centres[start : start + AT_ONCE] @ centres[start:].T
        np.fill_diagonal(products, -centres.shape[1])
        largest = max(largest, int(products.max()))
    return int(centres.shape[1] - largest) // 2


def draw_distinct_codes(
    classes: int, code_length: int, random_state: int | np.random.Generator = 0
) -> NDArray[np.float32]:
    """Draw codes of fair, independent bits, float32 (classes, code_length) of -1 and 1, until no two are alike.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> np.unique(draw_distinct_codes(4, 2, random_state=0), axis=0).shape
        (4, 2)
    """
    require_enough_codes(classes, code_length)
    generator = np.random.default_rng(random_state)
    codes: dict[bytes, NDArray[np.float32]] = {}
    while len(codes) < classes:
        # So many at once as are missing: the same draws as one by one.
        drawn = generator.choice(np.array([-1, 1], dtype=np.float32), (classes - len(codes), code_length))
        codes |= {code.tobytes(): code for code in drawn if code.tobytes() not in codes}
    return np.stack(list(codes.values()))


def require_enough_codes(classes: int, code_length: int) -> None:
    """Refuse with an InputError more classes than there are codes."""
    if classes > 2**code_length:
        raise InputError(f"{code_length} bits have fewer codes than the {classes} classes: use longer codes")


def gilbert_varshamov_distance(classes: int, code_length: int) -> int:
    """Smallest distance that codes of so many classes surely can keep: any fewer codes leave room for one more.

    Example:
        >>> gilbert_varshamov_distance(classes=10, code_length=48)
        20
    """
    taken, distance = 0, 0
    while (
        distance <= code_length and (classes - 1) * (taken := taken + math.comb(code_length, distance)) < 2**code_length
    ):
        distance += 1
    return distance


def separated_centres(classes: int, code_length: int, random_state: int = 0) -> NDArray[np.float32]:
    """Draw codes until there is one for each class that lies far enough from all before it.

    Returns:
        float32 of shape (classes, code_length), of -1 and 1.

    Raises:
        InputError: there are fewer codes than classes.

    Example:
        >>> smallest_distance(separated_centres(classes=10, code_length=48, random_state=0)) >= 20
        True
    """
    require_enough_codes(classes, code_length)
    generator = np.random.default_rng(random_state)
    distance = gilbert_varshamov_distance(classes, code_length)
    centres = np.empty((0, code_length), dtype=np.float32)
    while len(centres) < classes:
        drawn = generator.choice(np.array([-1, 1], dtype=np.float32), code_length)
        if len(centres) and distance == code_length:
            # Of two classes: one code alone is as far away, and would be drawn once in 2 ** code_length times.
            drawn = -centres[0]
        if (code_length - centres @ drawn >= 2 * distance).all():
            centres = np.concatenate([centres, drawn[None]])
    return centres


class ClassCentresLoss(HashingLoss):
    """A loss that draws u to the code of its class, the centre.

    Args:
        code_length: number of bits per code.
        classes: number of classes.
        random_state: seed of the centres, where they are drawn.

    Attributes:
        choose_centres: function that makes them, see `hash_centres`.
        centres: centres of -1 and 1, no two rows alike, float32 (classes, code_length).
    """

    needs = ("code_length", "classes", "random_state")
    choose_centres = staticmethod(hash_centres)
    code_length: PositiveInt
    classes: PositiveInt
    random_state: NonNegativeInt = 0
    centres: Tensor = field(init=False)

    def __post_init__(self) -> None:
        centres = self.choose_centres(self.classes, self.code_length, self.random_state)
        self.register_buffer("centres", torch.from_numpy(centres))
