"""Which images go into which batch: a function of (seed, epoch), never of a generator's state."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.training.parameters import TrainingParameters


def steps_per_epoch(size: int, parameters: TrainingParameters, name: str = "") -> int:
    """Whole batches in a training set of `size` images; an error begins with the name of the training, if any.

    Raises:
        InputError: fewer images than one batch.

    Example:
        >>> steps_per_epoch(100, TrainingParameters(epochs=1, batch_size=32, learning_rate=0.1))
        3
    """
    if size < parameters.batch_size:
        remedy = f"set `batch_size` to at most {size}" if size > 1 else "losses compare two at least"
        fault = f"{size} training images are fewer than one batch: {remedy}"
        raise InputError(f"{name}: {fault}" if name else fault)
    return size // parameters.batch_size


def epoch_batches(size: int, parameters: TrainingParameters, seed: int, epoch: int) -> Iterator[NDArray[np.int64]]:
    """Yield the indices (batch_size,) of each batch of an epoch.

    ``random_skip`` walks round one fixed shuffled order (the image database of the paper) and begins each epoch at a
    random place, so a batch may hold an image twice, as the paper's may.

    Example:
        >>> parameters = TrainingParameters(epochs=1, batch_size=2, learning_rate=0.1)
        >>> sorted(np.concatenate(list(epoch_batches(4, parameters, seed=0, epoch=1))).tolist())
        [0, 1, 2, 3]
    """
    steps = steps_per_epoch(size, parameters)
    generator = np.random.default_rng(derive_seed(seed, "order", epoch))
    count = steps * parameters.batch_size
    if parameters.sampler == "shuffle":
        order = generator.permutation(size)[:count]
    else:
        database = np.random.default_rng(derive_seed(seed, "database order")).permutation(size)
        skips = generator.integers(0, parameters.random_skip_maximum + 1, count)
        order = database[(generator.integers(size) + np.cumsum(skips + 1)) % size]
    yield from order.reshape(steps, parameters.batch_size)


def first_batch(size: int, parameters: TrainingParameters, seed: int) -> NDArray[np.int64]:
    """Indices (batch_size,) of the batch that training begins with, by which weights are scaled before it.

    Not the first images: a folder lists those class by class.

    Example:
        >>> first_batch(100, TrainingParameters(epochs=1, batch_size=8, learning_rate=0.1), seed=0).shape
        (8,)
    """
    return next(epoch_batches(size, parameters, seed, epoch=1))
