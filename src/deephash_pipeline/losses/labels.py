"""Labels of a batch as losses read them: numbers of classes, or several labels a sample."""

from typing import Any

import torch
from torch import Tensor

from deephash_pipeline.common.errors import InputError

OF_SEVERAL_LABELS = "several labels a sample are uint8 or bool, (batch, classes)"


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


def codes_of(labels: Tensor, class_codes: Tensor) -> Tensor:
    """Row of each label, (batch, code_length), of the codes of all classes (classes, code_length).

    Raises:
        InputError: labels on the CPU that are none of the classes.

    Example:
        >>> codes_of(torch.tensor([1, 0]), torch.tensor([[1.0, 1.0], [-1.0, 1.0]]))
        tensor([[-1.,  1.],
                [ 1.,  1.]])
    """
    require_known(labels, len(class_codes))
    return class_codes[labels]


def require_known(labels: Tensor, classes: int) -> None:
    """Refuse labels on the CPU that are none of the classes with an InputError; elsewhere that would wait for them.

    Example:
        >>> require_known(torch.tensor([1, 0]), classes=2)
    """
    if labels.device.type == "cpu" and len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise InputError(
            f"labels lie in {int(labels.min())}..{int(labels.max())}, but the loss was made for the classes "
            f"0..{classes - 1}"
        )


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
