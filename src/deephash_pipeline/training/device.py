"""Where to compute."""

import torch

from deephash_pipeline.errors import InputError


def resolve_device(device: str) -> torch.device:
    """Turn ``auto`` into the first CUDA device, else the CPU; anything else is taken as PyTorch names it.

    Raises:
        InputError: not a device's name, or a CUDA device that is not there.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise InputError(f"unknown device `{device}`: use auto, cpu, cuda or cuda:N") from None
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device `{device}` is not there: use auto or cpu")
    return resolved
