"""Settings that this package computes under, whatever a notebook or a library has set for the whole process."""

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

REPORTED = {"raise", "call", "print", "log"}
"""What NumPy may be told to do with an overflow besides to ignore it or to warn."""


class _SinglePrecision:
    """The usual type of PyTorch's new tensors, which all threads share: the last one out gives the other back."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.before: Any = None

    def enter(self, torch: Any) -> None:
        with self.lock:
            if not self.inside:
                self.before = torch.get_default_dtype()
                torch.set_default_dtype(torch.float32)
            self.inside += 1

    def leave(self, torch: Any) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                torch.set_default_dtype(self.before)


_SINGLE_PRECISION = _SinglePrecision()


@contextmanager
def own_settings() -> Iterator[None]:
    """Compute as in a process of our own: a context, or a decorator of what is called from outside.

    PyTorch makes float32 on the CPU, outside of autocast and with gradients where they are asked for; what has no
    deterministic form warns. NumPy warns of overflow and ignores underflow. Afterwards all is as it was.

    Example:
        >>> with np.errstate(all="raise"), own_settings():
        ...     float(np.float64(1e-300) * np.float64(1e-300))
        0.0
    """
    # Who has not loaded it has set nothing.
    torch, reported = sys.modules.get("torch"), not REPORTED.isdisjoint(np.geterr().values())
    if torch is None and not reported:
        # The usual case, in front of searches that take microseconds.
        yield
        return
    with ExitStack() as stack:
        if reported:
            stack.enter_context(np.errstate(all="warn", under="ignore"))
        if torch is not None and hasattr(torch, "inference_mode"):
            _enter_torch(stack, torch)
        yield


def _enter_torch(stack: ExitStack, torch: Any) -> None:
    if _SINGLE_PRECISION.inside or torch.get_default_dtype() != torch.float32:
        _SINGLE_PRECISION.enter(torch)
        stack.callback(_SINGLE_PRECISION.leave, torch)
    if torch.is_inference_mode_enabled():
        stack.enter_context(torch.inference_mode(False))
    if not torch.is_grad_enabled():
        stack.enter_context(torch.enable_grad())
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            # Without its cache, which only the outermost context clears: a training in half precision below would go on
            # with the weights of its first step.
            stack.enter_context(torch.autocast(device, enabled=False, cache_enabled=False))
    if torch.get_default_device().type != "cpu":
        stack.enter_context(torch.device("cpu"))
    if torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled():
        torch.use_deterministic_algorithms(True, warn_only=True)
        stack.callback(torch.use_deterministic_algorithms, True)
