"""What bfloat16 gains: `python -m benchmarks.studies.precision`.

Images a second of forward and backward pass of the paper's three networks, float32 and bfloat16 in turn, CPU time of
one thread. What it costs in mAP is measured by the pipeline itself (docs/scale.md).
"""

from collections.abc import Callable

import torch

from benchmarks.documents import markdown_table
from benchmarks.measuring import Method, calls_lasting, interleaved, use_one_thread
from deephash_pipeline.networks import build_trunk, initialise

NETWORKS = ("lenet", "cifar10_full", "kaggle_face")
PRECISIONS = ("float32", "bfloat16")
BATCH, ROUNDS, SECONDS_OF_A_ROUND = 128, 9, 1.0


def forward_and_backward(network: str, precision: str) -> Callable[[], None]:
    """Make a function that does both passes of one batch, as training does them."""
    trunk = build_trunk(network).train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    initialise(trunk, seed=1)
    images = torch.rand(BATCH, *trunk.image_shape).contiguous(memory_format=torch.channels_last)

    def passes() -> None:
        trunk.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            z = trunk(images)
        z.float().sum().backward()

    return passes


def rates(network: str) -> dict[str, str]:
    """Measure images a CPU second; a row of the table."""
    passes = {precision: forward_and_backward(network, precision) for precision in PRECISIONS}
    calls = calls_lasting(passes["float32"], SECONDS_OF_A_ROUND)
    timings = interleaved([Method(name, run, calls) for name, run in passes.items()], ROUNDS)
    rate = {name: BATCH / timings[name].cpu_seconds for name in PRECISIONS}
    times = f"{rate['bfloat16'] / rate['float32']:.2f}"
    return {"network": network, **{name: f"{each:,.0f}" for name, each in rate.items()}, "times": times}


if __name__ == "__main__":
    use_one_thread()
    print(markdown_table(map(rates, NETWORKS)))
