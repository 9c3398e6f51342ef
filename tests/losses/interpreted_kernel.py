"""Runs the Triton kernel without a device: python interpreted_kernel.py inputs.npz outputs.npz.

Triton decides when it is imported whether to interpret, hence a process of its own.
"""

import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"
# The interpreter works on small arrays, over which threads would only wait for one another.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
import torch

from deephash_pipeline.losses.exponentiated import cuda
from deephash_pipeline.losses.exponentiated.formula import Departures


def main(inputs_file, outputs_file):
    inputs = np.load(inputs_file)
    outputs = {}
    for case in range(int(inputs["cases"])):
        # Small tiles and few bands make many of them out of few samples.
        cuda.TILE, cuda.MOST_BANDS = map(int, inputs[f"{case} tile and bands"])
        result = cuda.loss_and_gradient(
            torch.from_numpy(inputs[f"{case} u"]),
            torch.from_numpy(inputs[f"{case} labels"]),
            Departures(*json.loads(str(inputs[f"{case} departures"]))),
        )
        outputs |= {f"{case} {name}": part.numpy() for name, part in result._asdict().items()}
    np.savez(outputs_file, **outputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
