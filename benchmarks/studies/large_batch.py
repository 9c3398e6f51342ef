"""One exact step with a batch of 10,000 images of 227x227 pixels: `python -m benchmarks.studies.large_batch`.

With the paper's network and code length for SUN397. Images are random bytes in a mapped file: neither memory nor time
depends on what they show. Takes a quarter of an hour on one core.
"""

import math
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.documents import Benchmark, Results, Rows, Settings, rows_by
from benchmarks.measuring import use_one_thread
from benchmarks.processes import GIBIBYTE, MEBIBYTE, process_bytes
from benchmarks.training_cases import hash_network, hashing_loss
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import HashNetwork
from deephash_pipeline.training import LabelledInputs, TrainingParameters, TrainingRun, train
from deephash_pipeline.training.gradients import BatchGradients

CPU, CLASSES = torch.device("cpu"), 397


@contextmanager
def random_images(count: int, shape: tuple[int, ...]) -> Iterator[NDArray[np.uint8]]:
    """Give images of random bytes, uint8 (count, *shape), in a mapped file that is gone afterwards."""
    generator = np.random.default_rng(0)
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(count):
            file.write(generator.bytes(math.prod(shape)))
        file.flush()
        yield np.memmap(file.name, np.uint8, "r", shape=(count, *shape))


def gradient(
    network: HashNetwork, inputs: ImageInputs, labels: NDArray[np.int64], batch_size: int, chunk_size: int | None
) -> Tensor:
    """Compute the gradient of one batch with the loop's own means, float64 (weights,)."""
    network = network.train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    parameters = TrainingParameters(epochs=1, batch_size=batch_size, learning_rate=0.01, chunk_size=chunk_size)
    compute = BatchGradients(network, hashing_loss(), LabelledInputs(inputs, labels), parameters, CPU)
    compute(np.arange(batch_size), 3)
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    return torch.cat([part.flatten() for part in gradients]).double()


def kept_for_backward(network: HashNetwork, inputs: ImageInputs, labels: NDArray[np.int64]) -> int:
    """Bytes that autograd keeps for the backward pass of a whole batch: every block of memory once, without weights."""
    blocks: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        blocks[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    network.train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        outputs = network(inputs.batch(np.arange(len(labels)), 3))
        hashing_loss()(outputs, torch.from_numpy(labels))
    weights = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
    return sum(size for pointer, size in blocks.items() if pointer not in weights)


def _measure(settings: Settings) -> Results:
    use_one_thread()
    network = partial(hash_network, settings["network"], settings["code_length"])
    batch_size, plain, compared = (settings[name] for name in ("batch_size", "plain_batch", "compared_batch"))
    labels = np.random.default_rng(0).integers(0, CLASSES, batch_size)
    statistics = {"mean": [0.5] * 3, "standard_deviation": [0.29] * 3}
    with random_images(batch_size, network().trunk.image_shape) as images:
        inputs = ImageInputs(images, statistics, CPU, AugmentationParameters(horizontal_flip=True, shift_pixels=10))
        kept = kept_for_backward(network(), inputs, labels[:plain])
        pieces, whole = (gradient(network(), inputs, labels, compared, size) for size in (max(1, compared // 7), None))
        before = process_bytes("VmHWM")
        chunk = settings["chunk_size"]
        parameters = TrainingParameters(epochs=1, batch_size=batch_size, learning_rate=0.01, chunk_size=chunk)
        cpu, wall = time.process_time(), time.perf_counter()
        training_set, run = LabelledInputs(inputs, labels), TrainingRun("large batch", 1)
        history = train(network(), hashing_loss(), training_set, parameters, run)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    memory = {"bytes_before": before, "peak_bytes": process_bytes("VmHWM"), "kept_bytes_per_image": kept / plain}
    difference = float((pieces - whole).norm() / whole.norm())
    found = {"cpu_seconds": cpu, "wall_seconds": wall, "loss": history[0]["loss"]}
    return {**found, **memory, "relative_difference": difference}


STEP = (
    "peak memory: {peak:.2f} GiB | plain autograd would keep: {plain:.0f} GiB ({per_image:.1f} MiB per image) | "
    "CPU time of one thread: {cpu_seconds:,.0f} s | wall time: {wall_seconds:,.0f} s | "
    "relative difference of the gradient in chunks: {relative_difference:.0e}"
)


def tables(results: Results) -> dict[str, Rows]:
    """Rows of the table of the document: one exact step beside what plain autograd would keep."""
    peak, per_image = results["peak_bytes"] / GIBIBYTE, results["kept_bytes_per_image"]
    plain = per_image * results["settings"]["batch_size"] / GIBIBYTE
    return {"step": rows_by(STEP, [{**results, "peak": peak, "plain": plain, "per_image": per_image / MEBIBYTE}])}


LARGE_BATCH = Benchmark(
    "large_batch",
    _measure,
    tables,
    settings={"network": "caffenet", "code_length": 48, "batch_size": 10_000, "chunk_size": 50}
    | {"plain_batch": 16, "compared_batch": 48},
    quick={"batch_size": 200, "plain_batch": 8, "compared_batch": 16},
)

if __name__ == "__main__":
    sys.exit(LARGE_BATCH.main(__doc__))
