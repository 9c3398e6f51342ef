"""The gradient of one batch: whole, chunk by chunk, or divided among processes, and always the same.

The loss of pairs couples all samples of a batch, but only through z. So z of the whole batch is computed first, without
keeping the trunk's activations; the loss and its gradient with respect to z follow; and then each chunk goes through
the trunk once more, and its part of that gradient is propagated back. Memory grows with the chunk, not with the batch.
"""

from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deephash_pipeline.errors import InputError

from .dropout import address_dropout
from .inputs import Inputs
from .parameters import TrainingParameters
from .ranks import gather, own_part, sum_gradients


class Objective(Protocol):
    """A loss with figures to watch."""

    def __call__(self, outputs: Tensor, labels: Tensor, /) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the scalar to minimise and detached scalars by name."""


@runtime_checkable
class TrunkAndHead(Protocol):
    """A network in two parts: the trunk treats samples one by one, the head may look at the whole batch."""

    trunk: nn.Module

    def head(self, z: Tensor) -> Tensor:
        """Map z (batch, z_dimension) to the objective's first argument."""


class BatchGradients:
    """Computes the loss of batches and leaves their gradients in the parameters of a module.

    Args:
        module: a `TrunkAndHead`; or any other module, for batches in one piece.
        objective: maps (outputs, labels) of a whole batch to its loss.
        inputs: the training set.
        labels: of the training set, on the device.
        parameters: `chunk_size`, `precision` and `compile`.
        device: where to compute.

    Raises:
        InputError: batches in pieces for a module without a trunk.
    """

    def __init__(
        self,
        module: nn.Module,
        objective: Objective,
        inputs: Inputs,
        labels: Tensor,
        parameters: TrainingParameters,
        device: torch.device,
    ) -> None:
        self.module = module
        self.objective = objective
        self.inputs = inputs
        self.labels = labels
        self.parameters = parameters
        self.device = device
        self.dropouts = address_dropout(module)
        body: nn.Module = module.trunk if isinstance(module, TrunkAndHead) else module
        if body is module and parameters.chunk_size is not None:
            raise InputError("a network without a trunk takes its batches whole: leave out `chunk_size`")
        self.body = body
        self.through_body = torch.compile(body) if parameters.compile else body

    def __call__(self, indices: NDArray[np.int64], seed: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Replace the gradients of the parameters by those of a batch.

        Args:
            indices: of the whole batch, int64 (batch,).
            seed: of all that is drawn for it.

        Returns:
            The loss and the watched figures, detached; the same on every rank.

        Raises:
            InputError: the batch cannot be divided among the ranks.
        """
        self.module.zero_grad(set_to_none=True)
        labels = self.labels[torch.from_numpy(indices).to(self.device)]
        if not isinstance(self.module, TrunkAndHead):
            # Such a network is small: every rank does the whole of it.
            loss, watched = self.objective(self._through_body(indices, slice(0, len(indices)), seed), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.detach(), watched

        own = own_part(len(indices))
        chunk = min(self.parameters.chunk_size or len(indices), own.stop - own.start)
        pieces = [slice(start, min(start + chunk, own.stop)) for start in range(own.start, own.stop, chunk)]
        own_z = (
            self._through_body(indices, own, seed) if len(pieces) == 1 else self._z_without_graph(indices, pieces, seed)
        )
        z = gather(own_z.detach()).requires_grad_()
        loss, watched = self.objective(self.module.head(z), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        assert z.grad is not None, "the loss depends on z"
        if len(pieces) == 1:
            own_z.backward(z.grad[own])  # type: ignore[no-untyped-call]
        else:
            for piece in pieces:
                self._through_body(indices, piece, seed).backward(z.grad[piece])  # type: ignore[no-untyped-call]
        sum_gradients(self.body)
        return loss.detach(), watched

    def _through_body(self, indices: NDArray[np.int64], piece: slice, seed: int) -> Tensor:
        for dropout in self.dropouts:
            dropout.seed, dropout.first = seed, piece.start
        batch = self.inputs.batch(indices[piece], seed, piece.start)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.parameters.precision == "bfloat16"):
            outputs: Tensor = self.through_body(batch)
        return outputs.float()

    @torch.no_grad()
    def _z_without_graph(self, indices: NDArray[np.int64], pieces: list[slice], seed: int) -> Tensor:
        # Statistics that the trunk keeps are to see a sample once, when it comes the second time.
        kept = [buffer.clone() for buffer in self.body.buffers()]
        z = torch.cat([self._through_body(indices, piece, seed) for piece in pieces])
        for buffer, value in zip(self.body.buffers(), kept, strict=True):
            buffer.copy_(value)
        return z
