"""A trained network over a whole set of inputs."""

from collections import deque

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deephash_pipeline.common.devices import freed_memory_is_kept
from deephash_pipeline.training.inputs import Inputs

INPUTS_AT_A_TIME = 256
"""Inputs at a time: more leave a CPU's caches, and 1,024 photographs take 12 GiB of a GPU; fewer cost more overhead."""

UNDER_WAY = 2
"""Blocks whose results may still be on their way from the device, so that it never waits for this process."""


def outputs_in_blocks(module: nn.Module, inputs: Inputs) -> NDArray[np.float32]:
    """Apply `module` in evaluation mode, without gradients and without augmentation.

    Returns:
        float32 of shape (samples, outputs).

    Example:
        >>> from deephash_pipeline.training import ArrayInputs
        >>> inputs = ArrayInputs(np.ones((300, 4), np.float32), torch.device("cpu"))
        >>> outputs_in_blocks(nn.Linear(4, 2), inputs).shape
        (300, 2)
    """
    module.eval()
    outputs = np.empty((0, 0), np.float32)
    arriving: deque[tuple[int, Tensor, torch.cuda.Event | None]] = deque()

    def receive(blocks: int) -> None:
        while len(arriving) > blocks:
            start, block, arrived = arriving.popleft()
            if arrived is not None:
                arrived.synchronize()
            outputs[start : start + len(block)] = block.numpy()

    with torch.inference_mode(), freed_memory_is_kept():
        for start in range(0, len(inputs), INPUTS_AT_A_TIME):
            block = module(inputs.batch(np.arange(start, min(start + INPUTS_AT_A_TIME, len(inputs)))))
            if not start:
                outputs = np.empty((len(inputs), *block.shape[1:]), np.float32)
            arriving.append((start, block.to("cpu", non_blocking=True), _event_after(block)))
            receive(UNDER_WAY)
        receive(0)
    return outputs


def _event_after(block: Tensor) -> torch.cuda.Event | None:
    """Mark where the copy of a block stands in the queue of its device; None where nothing is queued."""
    if not block.is_cuda:
        return None
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(block.device))
    return event
