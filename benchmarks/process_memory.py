"""What memory the system says that this process has; without PyTorch, whose import would be part of it."""

from pathlib import Path
from typing import Literal

KIBIBYTE = 1024
MEBIBYTE = 2**20


def process_bytes(entry: Literal["VmRSS", "VmHWM"]) -> int:
    """Bytes resident now (VmRSS), or at most so far (VmHWM), pages of mapped files included; on Linux."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return KIBIBYTE * int(status.split(f"{entry}:")[1].split()[0])
