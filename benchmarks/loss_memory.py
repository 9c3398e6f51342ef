"""Peak memory of one loss, in a process of its own: `python -m benchmarks.loss_memory fused 2048 48` prints MiB.

Counted is what value and gradient add to the resident memory of a process that has done the same on a few samples.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.documents import PROJECT
from benchmarks.process_memory import MEBIBYTE, process_bytes
from benchmarks.rival_losses import LOSSES, gradient_of, random_batch
from deephash_pipeline.errors import InputError

CLASSES = 10
FEW_SAMPLES = 40
RESET_PEAK = "5"


def added_mebibytes(loss: str, batch: int, code_length: int) -> float:
    """Measure in this process: peak resident memory of one value and gradient, less what was resident before.

    Raises:
        InputError: the system does not tell, as only Linux does.
    """
    process = Path("/proc/self")
    if not (process / "clear_refs").exists():
        raise InputError("peak memory is read from /proc/self, which this system has not; run it on Linux.")
    torch.set_num_threads(1)
    gradient_of(LOSSES[loss], *random_batch(FEW_SAMPLES, code_length, CLASSES))
    u, labels = random_batch(batch, code_length, CLASSES)
    (process / "clear_refs").write_text(RESET_PEAK)
    before = process_bytes("VmRSS")
    gradient_of(LOSSES[loss], u, labels)
    return (process_bytes("VmHWM") - before) / MEBIBYTE


def added_in_new_process(loss: str, batch: int, code_length: int) -> float:
    """Run `added_mebibytes` in a process that has done nothing else."""
    command = [sys.executable, "-m", "benchmarks.loss_memory", loss, str(batch), str(code_length)]
    return float(subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("loss", choices=LOSSES)
    parser.add_argument("batch", type=int)
    parser.add_argument("code_length", type=int)
    sys.stdout.write(str(added_mebibytes(**vars(parser.parse_args()))))
