"""One exact step with a batch of 10,000 images of 227x227 pixels: `python -m benchmarks.large_batch`.

The step is one of `train`, with the paper's network and code length for SUN397. Images are random bytes in a mapped
file and labels are drawn: neither memory nor time depends on what they show. What plain autograd would need is measured
on a small batch, as the bytes that it keeps for the backward pass, and scaled. Takes a quarter of an hour on one core.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.command_line import benchmark_parser, run_benchmark
from benchmarks.measuring import describe_machine, describe_versions, use_one_thread
from benchmarks.process_memory import process_bytes
from benchmarks.training_tables import DISTRIBUTIONS, LARGE_BATCH, large_batch_table, write_training_section
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.losses import ExponentiatedLoss
from deephash_pipeline.networks import HashLayer, HashLayerParameters, HashNetwork, build_trunk, initialise
from deephash_pipeline.training import TrainingParameters, train
from deephash_pipeline.training.gradients import BatchGradients

CPU = torch.device("cpu")
CLASSES = 397
SECONDS_BETWEEN_LINES = 30.0


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        network: by its name in `NETWORKS`.
        code_length: in bits.
        batch_size: images of the step.
        chunk_size: images that go through the trunk at a time.
        plain_batch: images for which plain autograd's memory is measured.
        compared_batch: images for which the gradient in chunks is compared with that of one piece.
    """

    network: str = "caffenet"
    code_length: int = 48
    batch_size: int = 10_000
    chunk_size: int = 50
    plain_batch: int = 16
    compared_batch: int = 48


QUICK = Settings(batch_size=200, plain_batch=8, compared_batch=16)


class ReportingInputs:
    """Inputs that say now and then how far a step has come: each image comes by twice.

    Args:
        inputs: the images.
        batch_size: images of the step.
    """

    def __init__(self, inputs: ImageInputs, batch_size: int) -> None:
        self.inputs = inputs
        self.expected = 2 * batch_size
        self.images = 0
        self.last_line = time.monotonic()

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, indices: NDArray[np.int64], seed: int | None = None, first: int = 0) -> Tensor:
        """Hand over a batch."""
        self.images += len(indices)
        if time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            print(
                f"{self.images:,} of {self.expected:,} images, {process_bytes('VmHWM') / 2**30:.2f} GiB at most",
                flush=True,
            )
        return self.inputs.batch(indices, seed, first)


@contextmanager
def random_images(count: int, shape: tuple[int, ...]) -> Iterator[NDArray[np.uint8]]:
    """Give images of random bytes, uint8 (count, *shape), in a mapped file that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        written = np.lib.format.open_memmap(path, "w+", np.uint8, (count, *shape))
        generator = np.random.default_rng(0)
        for image in written:
            image[:] = np.frombuffer(generator.bytes(image.nbytes), np.uint8).reshape(shape)
        written.flush()
        del written
        yield np.load(path, mmap_mode="r")


def build_network(settings: Settings) -> HashNetwork:
    """Trunk and hash layer with fresh weights, the statistics of the whole batch in the hash layer."""
    trunk = build_trunk(settings.network)
    initialise(trunk, seed=1)
    hash_layer = HashLayer(trunk.z_dimension, settings.code_length, HashLayerParameters(centring=True, scale=3.0), 2)
    return HashNetwork(trunk, hash_layer)


OBJECTIVE = ExponentiatedLoss(loss_scale="unit", balance_pairs=True)


def gradient(
    settings: Settings, inputs: ImageInputs, labels: NDArray[np.int64], batch_size: int, chunk_size: int | None
) -> list[Tensor]:
    """Compute the gradient of one batch with the loop's own means."""
    network = build_network(settings).train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    parameters = TrainingParameters(epochs=1, batch_size=batch_size, learning_rate=0.01, chunk_size=chunk_size)
    compute = BatchGradients(network, OBJECTIVE, inputs, torch.from_numpy(labels), parameters, CPU)
    compute(np.arange(batch_size), 3)
    return [parameter.grad for parameter in network.parameters() if parameter.grad is not None]


def kept_for_backward(settings: Settings, inputs: ImageInputs, labels: NDArray[np.int64], batch_size: int) -> int:
    """Bytes that autograd keeps for the backward pass of a whole batch: every block of memory once, without weights."""
    network = build_network(settings)
    weights = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
    blocks: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            blocks[storage.data_ptr()] = storage.nbytes()
        return tensor

    network.train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    weights |= {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        outputs = network(inputs.batch(np.arange(batch_size), 3))
        OBJECTIVE(outputs, torch.from_numpy(labels[:batch_size]))
    return sum(blocks.values())


def measure(settings: Settings) -> dict[str, Any]:
    """Make the step, and what it is compared with."""
    use_one_thread()
    network = build_network(settings)
    generator = np.random.default_rng(0)
    labels = generator.integers(0, CLASSES, settings.batch_size)
    statistics = {"mean": [0.5] * 3, "standard_deviation": [0.29] * 3}
    with random_images(settings.batch_size, network.trunk.image_shape) as images:
        inputs = ImageInputs(images, statistics, CPU, AugmentationParameters(horizontal_flip=True, shift_pixels=10))
        kept = kept_for_backward(settings, inputs, labels, settings.plain_batch)
        compared = settings.compared_batch
        pieces = gradient(settings, inputs, labels, compared, max(1, compared // 7))
        whole = gradient(settings, inputs, labels, compared, None)
        difference = relative_difference(pieces, whole)
        print(f"gradient in chunks of {max(1, compared // 7)}: {difference:.1e} from that of one piece", flush=True)

        before = process_bytes("VmHWM")
        reporting = ReportingInputs(inputs, settings.batch_size)
        parameters = TrainingParameters(
            epochs=1, batch_size=settings.batch_size, learning_rate=0.01, chunk_size=settings.chunk_size
        )
        cpu, wall = time.process_time(), time.perf_counter()
        history = train(network, OBJECTIVE, reporting, labels, parameters, 1, CPU, "large batch")
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {
        "machine": describe_machine(),
        "versions": describe_versions(DISTRIBUTIONS),
        "settings": asdict(settings),
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "loss": history[0]["loss"],
        "bytes_before": before,
        "peak_bytes": process_bytes("VmHWM"),
        "kept_bytes_per_image": kept / settings.plain_batch,
        "relative_difference": difference,
    }


def relative_difference(first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    """Norm of the difference of two gradients, divided by the norm of the second."""
    difference = sum(float((a - b).double().square().sum()) for a, b in zip(first, second, strict=True))
    return float((difference / sum(float(held.double().square().sum()) for held in second)) ** 0.5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit code."""
    options = benchmark_parser(LARGE_BATCH, __doc__).parse_args(arguments)
    return run_benchmark(
        LARGE_BATCH,
        options,
        lambda: measure(QUICK if options.quick else Settings()),
        large_batch_table,
        lambda _: write_training_section(),
    )


if __name__ == "__main__":
    sys.exit(main())
