"""Base class of hashing losses: how a loss is called, what it needs, and which figures are watched beside it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeAlias, dataclass_transform

import torch
from torch import Tensor, nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import validated
from deephash_pipeline.losses.labels import class_numbers, is_multi_hot, require_known, require_one_label
from deephash_pipeline.losses.pairs import weighing

Need: TypeAlias = Literal["code_length", "classes", "labels", "random_state"]
"""What a constructor may want of a training set: bits, number of classes, labels (samples,), seed of its draws."""

Outputs: TypeAlias = Any
"""What the network's head gives: u of shape (batch, code_length), or (u, logits) or (u, z) to losses that read more."""


TAKEN = {"epoch", "learning_rate", "loss"}
"""Columns that every history has."""


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class _OfFields(nn.Module):
    """Makes of the annotated attributes of its subclasses the keywords of their constructors, which check them."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(eq=False, repr=False)(cls)
        cls.__init__ = validated(cls.__init__, skip=["labels"])  # type: ignore[method-assign]

    def __new__(cls, *_: Any, **__: Any) -> Self:
        # A module is one before its fields are set.
        module = super().__new__(cls)
        nn.Module.__init__(module)
        return module


class HashingLoss(_OfFields, ABC):
    """A loss on u, the hash layer's output before its signs: ``loss(u, labels)`` is a scalar to minimise.

    A subclass declares its parameters as fields of a dataclass, and computes in `loss_and_metrics`. They are checked by
    their annotations; the labels of a training set are given to `__post_init__` alone.

    Attributes:
        display_name: name in tables and figures, of the method that trains with this loss.
        reference: authors, title, venue and year of the paper.
        needs: keywords of the constructor that follow from a training set; `build_loss` supplies them.
        classification_head: input of a softmax layer of the network, whose logits such a loss is given: ``z``, the
            ``code`` (sign(u), whose gradient is passed on as that of u) or the ``relaxed_code`` (tanh(u)). None for a
            loss on u alone.
        supervised: True if the loss reads labels.
        reads_features: True if the loss is given the frozen trunk's z beside u, and only the hash layer is trained.
        several_labels: True if an image may have any number of labels; losses of pairs compare by `shares_a_label`.
        views: number of times that a batch has every image, each time augmented by a draw of its own: first all images
            once, then all again in the same order.
        metrics: detached scalars by name that are watched beside the loss, of the batch that was computed last.

    Example:
        >>> from deephash_pipeline.losses import DPSH, HashingLoss
        >>> loss, u = DPSH(), torch.tensor([[1.0, -1.0], [1.0, 1.0]])
        >>> isinstance(loss, HashingLoss), loss(u, torch.tensor([0, 1])).ndim, loss.several_labels
        (True, 0, True)
    """

    display_name: ClassVar[str]
    reference: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    classification_head: ClassVar[Literal["z", "code", "relaxed_code"] | None] = None
    supervised: ClassVar[bool] = True
    reads_features: ClassVar[bool] = False
    several_labels: ClassVar[bool] = False
    views: ClassVar[int] = 1
    metrics: dict[str, Tensor] = field(init=False, default_factory=dict)

    def forward(
        self, outputs: Outputs, labels: Tensor, indices_tuple: None = None, *, pair_weights: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch, and leave its `metrics`; in float32 at least, also under ``torch.autocast``.

        Args:
            outputs: u, floating, shape (batch, code_length); or (u, logits) for a loss with a `classification_head`,
                logits of shape (batch, classes); or (u, z) for one that `reads_features`, z of shape
                (batch, z_dimension).
            labels: class labels of any type of integers, shape (batch,), classes numbered from 0; or, for a loss with
                `several_labels`, uint8 or bool of shape (batch, classes), 1 where an image has the label.
            indices_tuple: value that must be None; trainers of pytorch-metric-learning pass it.
            pair_weights: for a loss of pairs the weight of each, not negative, floating of shape (batch, batch); its
                means over pairs are weighted ones then. None for equal weights.

        Returns:
            A scalar that autograd can differentiate.

        Raises:
            InputError: shapes or types of outputs, labels and weights do not fit; the loss has no pairs to weigh; or
                pairs that a miner has chosen.
        """
        if indices_tuple is not None:
            raise InputError(f"{type(self).__name__} takes all pairs of a batch: leave out the miner")
        outputs, labels = self.checked_batch(outputs, labels)
        require_weights(pair_weights, len(labels))
        with torch.autocast(labels.device.type, enabled=False), weighing(pair_weights) as weights:
            loss, metrics = self.checked_result(self.loss_and_metrics(outputs, labels), outputs)
        if weights is not None and not weights.were_read:
            raise InputError(f"{type(self).__name__} is no loss of pairs: leave out pair_weights")
        self.metrics = {name: metric.detach() for name, metric in metrics.items()}
        return loss

    @abstractmethod
    def loss_and_metrics(self, outputs: Outputs, labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the scalar to minimise, and scalars by name; arguments are those of `checked_batch`."""

    def checked_batch(self, outputs: Outputs, labels: Tensor) -> tuple[Outputs, Tensor]:
        """Refuse, as `forward` says, what is no batch; return outputs in float32 at least, class numbers as int64."""
        u, owner = outputs, type(self).__name__
        if self.classification_head is not None or self.reads_features:
            beside, width = ("z", "z_dimension") if self.reads_features else ("logits", "classes")
            if not isinstance(outputs, tuple) or len(outputs) != 2:
                raise InputError(f"{owner} is called with ((u, {beside}), labels): it needs {beside} beside u")
            u, second = outputs
            if second.ndim != 2 or len(second) != len(labels):
                raise InputError(
                    f"{beside} must be (batch, {width}) for {len(labels)} labels, got shape {tuple(second.shape)}"
                )
        if not isinstance(u, Tensor) or u.ndim != 2 or u.shape[1] == 0 or not u.is_floating_point():
            got = f"{u.dtype} {tuple(u.shape)}" if isinstance(u, Tensor) else f"a {type(u).__name__}"
            raise InputError(f"u must be floating, (batch, code_length >= 1), got {got}")
        outputs = tuple(map(at_least_float32, outputs)) if isinstance(outputs, tuple) else at_least_float32(u)
        if not is_multi_hot(labels) or len(labels) != len(u):
            numbers = class_numbers(labels, len(u))
            if self.classification_head is not None:
                require_known(numbers, outputs[1].shape[1])
            return outputs, numbers
        require_one_label(self.several_labels, owner)
        return outputs, labels

    def checked_result(self, result: Any, outputs: Outputs) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Refuse what `loss_and_metrics` must not return, so that an error names it."""
        owner, u = type(self).__name__, outputs[0] if isinstance(outputs, tuple) else outputs
        two = isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping)
        if not two or not all(map(is_scalar, (result[0], *result[1].values()))):
            raise InputError(f"{owner}.loss_and_metrics must return a floating scalar, and a dictionary of others")
        loss, metrics = result
        if torch.is_grad_enabled() and u.requires_grad and not loss.requires_grad:
            raise InputError(f"{owner}.loss_and_metrics returns a loss without gradient: compute it from u")
        if taken := TAKEN & metrics.keys():
            raise InputError(f"{owner} watches `{min(taken)}`, a name that every history has: give it another")
        return loss, metrics


def require_weights(weights: Tensor | None, batch: int) -> None:
    """Refuse what is no weight for each pair of a batch."""
    if weights is None:
        return
    if not isinstance(weights, Tensor) or not weights.is_floating_point() or weights.shape != (batch, batch):
        got = (
            f"{weights.dtype} {tuple(weights.shape)}" if isinstance(weights, Tensor) else f"a {type(weights).__name__}"
        )
        raise InputError(f"pair_weights must be floating, ({batch}, {batch}) for {batch} labels, got {got}")
    if not bool((weights >= 0).all()):
        raise InputError("pair_weights must not be negative or NaN: weigh a pair 0 to leave it out")


def is_scalar(value: object) -> bool:
    """Tell whether a value is one floating number of PyTorch's.

    Example:
        >>> is_scalar(torch.tensor(1.0)), is_scalar(torch.ones(1)), is_scalar(1.0)
        (True, False, False)
    """
    return isinstance(value, Tensor) and value.ndim == 0 and value.is_floating_point()


def at_least_float32(outputs: Tensor) -> Tensor:
    """Return half precision in float32, in which sums over pairs stay finite; other types as they are.

    Example:
        >>> at_least_float32(torch.zeros(1, dtype=torch.float16)).dtype
        torch.float32
    """
    return outputs.to(torch.promote_types(outputs.dtype, torch.float32))


def signs(u: Tensor) -> Tensor:
    """Return b = sign(u) in {-1, 1}, of u's type; zero counts as 1, the convention of the encoders.

    Example:
        >>> signs(torch.tensor([-0.5, 0.0, 2.0]))
        tensor([-1.,  1.,  1.])
    """
    return (u >= 0).to(u.dtype) * 2 - 1


@torch.no_grad()
def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of samples that the logits (batch, classes) classify correctly."""
    return (logits.argmax(1) == labels).to(logits.dtype).mean()


@torch.no_grad()
def bit_accuracy(u: Tensor, wanted: Tensor) -> Tensor:
    """Share of bits that are those of the wanted codes, -1 and 1 of u's shape."""
    return (signs(u) == wanted).to(u.dtype).mean()


def deviation(u: Tensor) -> Tensor:
    """Return the standard deviation over samples and bits, a scalar; 0 of a single value."""
    return u.std(correction=min(1, u.numel() - 1))


@torch.no_grad()
def code_metrics(u: Tensor, relaxed_code: Tensor) -> dict[str, Tensor]:
    """Return the metrics that all losses of others have.

    Args:
        u: shape (batch, code_length).
        relaxed_code: values that the loss takes for a code, in [-1, 1] or near it, same shape.

    Returns:
        ``u_standard_deviation``, and ``quantisation_error``: mean square of what the relaxed code lacks to the code.
    """
    return {"u_standard_deviation": deviation(u), "quantisation_error": (relaxed_code - signs(u)).square().mean()}
