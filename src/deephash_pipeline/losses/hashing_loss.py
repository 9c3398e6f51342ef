"""What every loss of hash codes has in common: how it is called, what it needs, and what is watched beside it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeAlias, dataclass_transform

import torch
from torch import Tensor, nn
from torch.nn import functional

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import validated

Need: TypeAlias = Literal["code_length", "classes", "labels", "random_state"]
"""What a constructor may want of a training set: bits, number of classes, labels (samples,), seed of its draws."""

Outputs: TypeAlias = Any
"""What the network's head gives: u of shape (batch, code_length), or (u, logits) or (u, z) to losses that read more."""

OF_SEVERAL_LABELS = "several labels a sample are uint8 or bool, (batch, classes)"


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

    def forward(self, outputs: Outputs, labels: Tensor, indices_tuple: None = None) -> Tensor:
        """Compute the loss of a batch, and leave its `metrics`; in float32 at least, also under ``torch.autocast``.

        Args:
            outputs: u, floating, shape (batch, code_length); or (u, logits) for a loss with a `classification_head`,
                logits of shape (batch, classes); or (u, z) for one that `reads_features`, z of shape
                (batch, z_dimension).
            labels: class labels of any type of integers, shape (batch,), classes numbered from 0; or, for a loss with
                `several_labels`, uint8 or bool of shape (batch, classes), 1 where an image has the label.
            indices_tuple: value that must be None; trainers of pytorch-metric-learning pass it.

        Returns:
            A scalar that autograd can differentiate.

        Raises:
            InputError: shapes or types of outputs and labels do not fit, or pairs that a miner has chosen.
        """
        if indices_tuple is not None:
            raise InputError(f"{type(self).__name__} takes all pairs of a batch: leave out the miner")
        outputs, labels = self.checked_batch(outputs, labels)
        with torch.autocast(labels.device.type, enabled=False):
            loss, metrics = self.loss_and_metrics(outputs, labels)
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
            return outputs, class_numbers(labels, len(u))
        require_one_label(self.several_labels, owner)
        return outputs, labels


def require_one_label(several_labels: bool, owner: str) -> None:
    """Refuse labels that may be several for an image with an InputError, unless the owner can take them."""
    if not several_labels:
        raise InputError(f"{owner}: this method needs one label an image; choose one that compares pairs, such as dpsh")


def is_multi_hot(labels: Any) -> bool:
    """Whether labels, a tensor or an array, are (n, classes) of 0 and 1, stored as uint8 or bool.

    Example:
        >>> is_multi_hot(torch.tensor([[1, 0]], dtype=torch.uint8)), is_multi_hot(torch.tensor([1, 0]))
        (True, False)
    """
    return labels.ndim == 2 and str(labels.dtype).removeprefix("torch.") in ("uint8", "bool")


def number_of_classes(labels: Any) -> int:
    """Count the classes of labels, a tensor or an array: class numbers (n,) or multi-hot (n, classes).

    Example:
        >>> number_of_classes(torch.tensor([0, 3, 1])), number_of_classes(torch.zeros(2, 5, dtype=torch.uint8))
        (4, 5)
    """
    return int(labels.shape[1]) if is_multi_hot(labels) else int(labels.max()) + 1


def shares_a_label(labels: Tensor) -> Tensor:
    """Which samples are similar: those of one class or, where each has any number of labels, with one in common.

    Args:
        labels: class numbers (batch,), or multi-hot (batch, classes), uint8 or bool.

    Returns:
        bool (batch, batch); a sample is similar to itself, even without a label.

    Example:
        >>> shares_a_label(torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 0]], dtype=torch.uint8))
        tensor([[ True,  True, False],
                [ True,  True, False],
                [False, False,  True]])
    """
    if not is_multi_hot(labels):
        return labels[:, None] == labels[None, :]
    # Counts of shared labels are exact in float32.
    has_label = labels.float()
    return (has_label @ has_label.T > 0).fill_diagonal_(True)


def class_numbers(labels: Tensor, batch: int) -> Tensor:
    """Bring whole numbers of shape (batch,) into int64, whatever their type; others are refused by an InputError.

    PyTorch takes uint8 for a mask where it is an index.

    Example:
        >>> class_numbers(torch.tensor([3, 1], dtype=torch.uint8), batch=2)
        tensor([3, 1])
    """
    if labels.ndim != 1 or len(labels) != batch:
        hint = f"; {OF_SEVERAL_LABELS}" if labels.ndim == 2 else ""
        raise InputError(f"labels must be ({batch},) for u of {batch} samples, got shape {tuple(labels.shape)}{hint}")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise InputError(f"labels must be whole numbers, got {labels.dtype}; convert them with `.long()`")
    return labels.long()


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


def supervision_matrix(labels: Tensor) -> Tensor:
    """Y of Eqn (1) from labels: 1 for samples that share one (`shares_a_label`), -1 for others, 0 on the diagonal.

    A sample paired with itself would only push |u| up (Y = 1, u_i^2 >= 0), so the diagonal counts as "otherwise".

    Returns:
        float32 of shape (batch, batch).

    Example:
        >>> supervision_matrix(torch.tensor([4, 4, 7]))
        tensor([[ 0.,  1., -1.],
                [ 1.,  0., -1.],
                [-1., -1.,  0.]])
    """
    supervision = shares_a_label(labels).float() * 2 - 1
    return supervision.fill_diagonal_(0)


def codes_of(labels: Tensor, class_codes: Tensor) -> Tensor:
    """Row of each label, (batch, code_length), of the codes of all classes (classes, code_length).

    Raises:
        InputError: labels on the CPU that are none of the classes.

    Example:
        >>> codes_of(torch.tensor([1, 0]), torch.tensor([[1.0, 1.0], [-1.0, 1.0]]))
        tensor([[-1.,  1.],
                [ 1.,  1.]])
    """
    if labels.device.type == "cpu" and len(labels) and not 0 <= labels.min() <= labels.max() < len(class_codes):
        raise InputError(
            f"labels lie in {int(labels.min())}..{int(labels.max())}, but the loss was made for the classes "
            f"0..{len(class_codes) - 1}"
        )
    return class_codes[labels]


def label_matrix(labels: Tensor, classes: int) -> Tensor:
    """1 where a sample has a label, 0 elsewhere: float32 of shape (batch, classes).

    Args:
        labels: class numbers (batch,), or multi-hot (batch, classes), uint8 or bool.
        classes: number of classes.

    Raises:
        InputError: labels on the CPU that are none of the classes.

    Example:
        >>> label_matrix(torch.tensor([2, 0]), classes=3)
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    if is_multi_hot(labels):
        if labels.shape[1] != classes:
            raise InputError(f"labels have {labels.shape[1]} classes, but the loss was made for {classes}")
        return labels.float()
    return codes_of(labels, torch.eye(classes, device=labels.device))


def pair_log_odds(u: Tensor) -> Tensor:
    """theta_ij = u_i . u_j / 2, (batch, batch): the log-odds of "similar" of DPSH and those that follow it.

    Example:
        >>> pair_log_odds(torch.tensor([[1.0, -1.0], [1.0, 1.0]]))
        tensor([[1., 0.],
                [0., 1.]])
    """
    return u @ u.T / 2


def pair_likelihood(labels: Tensor, log_odds: Tensor) -> Tensor:
    """Mean over pairs of log(1 + exp(-Y theta)), Y of 1 for similar pairs and -1 for others.

    Args:
        labels: labels, as `shares_a_label` takes them.
        log_odds: theta, (batch, batch).

    Example:
        >>> pair_likelihood(torch.tensor([0, 0]), torch.zeros(2, 2))
        tensor(0.6931)
    """
    supervision = supervision_matrix(labels).to(log_odds.dtype)
    return mean_over(supervision.abs(), -functional.logsigmoid(supervision * log_odds))


def balanced_mean(similar: Tensor, cost: Tensor) -> Tensor:
    """Mean cost of similar pairs plus that of dissimilar ones, so that both kinds weigh the same; no i with itself.

    Args:
        similar: bool (batch, batch).
        cost: (batch, batch).

    Example:
        >>> similar = torch.tensor([[True, True, False], [True, True, False], [False, False, True]])
        >>> balanced_mean(similar, torch.tensor([[9.0, 1.0, 2.0], [1.0, 9.0, 2.0], [2.0, 2.0, 9.0]]))
        tensor(3.)
    """
    itself = torch.eye(len(similar), dtype=torch.bool, device=similar.device)
    return mean_over((similar & ~itself).to(cost.dtype), cost) + mean_over((~similar & ~itself).to(cost.dtype), cost)


def mean_over(pairs: Tensor, cost: Tensor) -> Tensor:
    """Mean of a cost (batch, batch) over the pairs marked by 1, others being marked by 0; 0 where there are none.

    Example:
        >>> mean_over(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[9.0, 2.0], [4.0, 9.0]]))
        tensor(3.)
    """
    return (pairs * cost).sum() / pairs.sum().clamp_min(1)


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
