"""The gradient of one batch: whole, chunk by chunk, or divided among processes, and always the same.

The loss of pairs couples all samples of a batch, but only through z. So z of the whole batch is computed first, without
keeping the trunk's activations; the loss and its gradient with respect to z follow; and then each chunk goes through
the trunk once more, and its part of that gradient is propagated back. Memory grows with the chunk, not with the batch.

A trunk must treat samples one by one for that to be exact. One with batch normalisation does not: it normalises by the
statistics of the chunk, and its running statistics take in one chunk after the other, on several devices those of the
first. The head sees the whole batch, so statistics of the hash layer are exact.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deephash_pipeline.common.devices import to_device
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.training.dropout import replace_dropout
from deephash_pipeline.training.inputs import LabelledInputs
from deephash_pipeline.training.parameters import TrainingParameters
from deephash_pipeline.training.ranks import gather, own_part, sum_gradients, take_from_first_rank

Objective: TypeAlias = Callable[[Any, Tensor], Tensor]
"""Maps (outputs, labels) to the scalar to minimise, as PyTorch's losses do. A module is moved to the device."""


@runtime_checkable
class HasMetrics(Protocol):
    """An objective with something to watch: detached scalars by name, of the batch that was computed last.

    Example:
        >>> from deephash_pipeline.training import CrossEntropy
        >>> isinstance(CrossEntropy(), HasMetrics), isinstance(nn.CrossEntropyLoss(), HasMetrics)
        (True, False)
    """

    metrics: Mapping[str, Tensor]


@runtime_checkable
class FollowsProgress(Protocol):
    """An objective that changes in the course of training.

    Example:
        >>> class Warming(nn.Module):
        ...     def set_progress(self, progress):
        ...         self.weight = min(1.0, 10 * progress)
        >>> isinstance(Warming(), FollowsProgress)
        True
    """

    def set_progress(self, progress: float) -> None:
        """Take the share of all steps that is done, in [0, 1), before every step; the same if training is resumed."""


@runtime_checkable
class KnowsItsBatch(Protocol):
    """An objective that knows which samples a batch consists of."""

    def set_batch(self, indices: Tensor) -> None:
        """Take which samples the next batch consists of, before every step."""


@runtime_checkable
class LearnsCodes(KnowsItsBatch, Protocol):
    """An objective with variables for every sample of the training set, for which it solves between epochs.

    They are its buffers: it is a module.
    """

    def start_epoch(self, outputs: Tensor) -> None:
        """Take the module's outputs for the whole training set, as it is, before each epoch."""


class TrunkAndHead(Protocol):
    """A network in two parts: the trunk treats samples one by one, the head may look at the whole batch."""

    trunk: nn.Module

    def head(self, z: Tensor) -> Any:
        """Map z (batch, z_dimension) to the objective's first argument."""


def has_trunk_and_head(module: nn.Module) -> TypeGuard[TrunkAndHead]:
    """Tell whether a network is in two parts. From Python 3.12 on, isinstance of a protocol sees no submodules.

    Example:
        >>> from deephash_pipeline.networks import SoftmaxNetwork, build_trunk
        >>> network = SoftmaxNetwork(build_trunk("lenet"), classes=10)
        >>> has_trunk_and_head(network), has_trunk_and_head(nn.Linear(2, 2))
        (True, False)
    """
    return hasattr(module, "trunk") and hasattr(module, "head")


class BatchGradients:
    """Computes the loss of batches and leaves their gradients in the parameters of a module.

    Args:
        module: a `TrunkAndHead`; or any other module, for batches in one piece. Its dropout layers are replaced by
            counter-based ones.
        objective: maps (outputs, labels) of a whole batch to its loss; its metrics are read if it `HasMetrics`.
        training_set: inputs, and labels, which are moved to the device.
        parameters: `batch_size`, `chunk_size`, `precision`, which is not ``auto`` any more, and `compile`.
        device: device to compute on.

    Raises:
        InputError: batches in pieces for a module without a trunk, or batches with fewer samples than ranks.

    Example:
        >>> from deephash_pipeline.training import ArrayInputs, CrossEntropy
        >>> cpu, parameters = torch.device("cpu"), TrainingParameters(epochs=1, batch_size=2, learning_rate=0.1)
        >>> training_set = LabelledInputs(ArrayInputs(np.eye(2, dtype=np.float32), cpu), np.arange(2))
        >>> module = nn.Linear(2, 2)
        >>> loss, metrics = BatchGradients(module, CrossEntropy(), training_set, parameters, cpu)(np.arange(2), seed=0)
        >>> module.weight.grad.shape, list(metrics)
        (torch.Size([2, 2]), ['accuracy'])
    """

    def __init__(
        self,
        module: nn.Module,
        objective: Objective,
        training_set: LabelledInputs,
        parameters: TrainingParameters,
        device: torch.device,
    ) -> None:
        self.module = module
        self.objective = objective
        self.inputs = training_set.inputs
        self.labels = torch.from_numpy(np.asarray(training_set.labels)).to(device)
        self.parameters = parameters
        self.device = device
        dropouts = replace_dropout(module)
        self.head: Callable[[Tensor], Any] | None = None
        self.body = module
        if has_trunk_and_head(module):
            own_part(parameters.batch_size)
            self.head, self.body = module.head, module.trunk
        elif parameters.chunk_size is not None:
            raise InputError("a network without a trunk takes its batches whole: leave out `chunk_size`")
        in_body = set(self.body.modules())
        self.body_dropouts = [dropout for dropout in dropouts if dropout in in_body]
        self.head_dropouts = [dropout for dropout in dropouts if dropout not in in_body]
        divided = set(self.body.parameters()) if self.head else set()
        # Asked once: what a protocol costs to check, every step would pay.
        self.set_batch = objective.set_batch if isinstance(objective, KnowsItsBatch) else None
        # An objective may compare several views of an image, each augmented by a draw of its own.
        self.views = getattr(objective, "views", 1)
        self.learning = [each for each in (module, objective) if isinstance(each, nn.Module)]
        parameters_of_both = (parameter for each in self.learning for parameter in each.parameters())
        self.undivided = [parameter for parameter in parameters_of_both if parameter not in divided]
        self.through_body = torch.compile(self.body) if parameters.compile else self.body

    def __call__(self, indices: NDArray[np.int64], seed: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Replace the gradients of the parameters by those of a batch.

        Args:
            indices: indices of the whole batch, int64 (batch,); where the objective compares views, of one of each.
            seed: seed of all that is drawn for it.

        Returns:
            The loss and the metrics of the objective, detached; the same on every rank.

        Raises:
            InputError: the batch has fewer samples than ranks.
        """
        for each in self.learning:
            each.zero_grad(set_to_none=True)
        indices = np.tile(indices, self.views)
        on_device = to_device(indices, self.device)
        labels = self.labels[on_device]
        if self.set_batch is not None:
            self.set_batch(on_device)
        for dropout in self.head_dropouts:
            dropout.set_counter(seed, first=0)
        if self.head is None:
            # Such a network is small: every rank does the whole of it.
            loss = self.objective(self._through_body(indices, slice(0, len(indices)), seed), labels)
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            loss = self._through_trunk_and_head(self.head, indices, labels, seed)
            sum_gradients(self.body)
        loss = loss.detach()
        metrics: dict[str, Tensor] = dict(self.objective.metrics) if isinstance(self.objective, HasMetrics) else {}
        gradients = (parameter.grad for parameter in self.undivided if parameter.grad is not None)
        take_from_first_rank([loss, *metrics.values(), *gradients])
        return loss, metrics

    def _through_trunk_and_head(
        self, head: Callable[[Tensor], Any], indices: NDArray[np.int64], labels: Tensor, seed: int
    ) -> Tensor:
        own = own_part(len(indices))
        chunk = min(self.parameters.chunk_size or len(indices), own.stop - own.start)
        pieces = [slice(start, min(start + chunk, own.stop)) for start in range(own.start, own.stop, chunk)]
        own_z = (
            self._through_body(indices, own, seed) if len(pieces) == 1 else self._z_without_graph(indices, pieces, seed)
        )
        z = gather(own_z.detach(), len(indices)).requires_grad_()
        loss = self.objective(head(z), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        if z.grad is None:
            # The head has cut itself off from a trunk that is not trained.
            return loss
        if len(pieces) == 1:
            own_z.backward(z.grad[own])  # type: ignore[no-untyped-call]
        else:
            for piece in pieces:
                self._through_body(indices, piece, seed).backward(z.grad[piece])  # type: ignore[no-untyped-call]
        return loss

    def _through_body(self, indices: NDArray[np.int64], piece: slice, seed: int) -> Tensor:
        for dropout in self.body_dropouts:
            dropout.set_counter(seed, piece.start)
        batch = self.inputs.batch(indices[piece], seed, piece.start)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.parameters.precision == "bfloat16"):
            outputs: Tensor = self.through_body(batch)
        return outputs.to(torch.promote_types(outputs.dtype, torch.float32))

    @torch.no_grad()
    def _z_without_graph(self, indices: NDArray[np.int64], pieces: list[slice], seed: int) -> Tensor:
        # Statistics that the trunk keeps are to see a sample once, when it comes the second time.
        kept = [buffer.clone() for buffer in self.body.buffers()]
        z = torch.cat([self._through_body(indices, piece, seed) for piece in pieces])
        for buffer, value in zip(self.body.buffers(), kept, strict=True):
            buffer.copy_(value)
        return z
