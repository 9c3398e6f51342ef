"""The Triton kernel against the reference: interpreted on the CPU, and, where there is one, on a CUDA device."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from deephash_pipeline.losses import ExponentiatedLoss, LossAndGradient
from deephash_pipeline.losses.exponentiated import reference

FOLDER = Path(__file__).parent
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed (PyTorch for CPUs)")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

FAITHFUL = ExponentiatedLoss()
BALANCED = ExponentiatedLoss(loss_scale="unit", temperature=0.5, balance_pairs=True)

# Samples, bits, classes, loss, and samples in a tile and the number of bands. The interpreter takes the same time for
# every bit of every two tiles, so there are few of either, but a border of each kind: incomplete and empty tiles, bands
# of one and of several tiles, and groups of bits, which are 16.
CASES = [
    *((1, 4, 1, FAITHFUL, (16, 32)), (1, 4, 1, BALANCED, (64, 32)), (5, 1, 2, FAITHFUL, (16, 32))),
    *((20, 12, 3, BALANCED, (16, 32)), (33, 18, 3, FAITHFUL, (32, 2)), (9, 48, 3, FAITHFUL, (32, 32))),
    *((70, 2, 2, BALANCED, (16, 3)), (70, 3, 1, BALANCED, (64, 32)), (20, 5, 20, BALANCED, (16, 1))),
]


def random_batch(batch, code_length, classes):
    generator = torch.Generator().manual_seed(batch + code_length)
    u = torch.randn(batch, code_length, generator=generator)
    u[0, 0], u[-1, -1] = 0.0, -0.0
    labels = torch.arange(batch) if classes == batch else torch.randint(classes, (batch,), generator=generator) - 1
    return u, labels


def assert_agree(found, expected, code_length, loss):
    # Relative to the size of terms; with `unit` those of the value are at most code_length, and cancel.
    value_scale = 1 if loss.departures.loss_scale == "paper" else code_length
    assert abs(found.value.item() - expected.value.item()) <= 5e-6 * value_scale
    assert found.true_loss.item() == pytest.approx(expected.true_loss.item(), rel=2e-6)
    largest = expected.gradient.abs().max().item()
    assert (found.gradient.cpu().double() - expected.gradient).abs().max().item() <= 5e-6 * largest


@needs_triton
def test_the_interpreted_kernel_agrees_with_the_reference(tmp_path):
    batches = [random_batch(*case[:3]) for case in CASES]
    batches[4][0][7] *= 1e20  # huge enough for its products to be infinite
    inputs = {"cases": np.array(len(CASES))}
    for number, ((u, labels), case) in enumerate(zip(batches, CASES, strict=True)):
        inputs[f"{number} u"], inputs[f"{number} labels"] = u.numpy(), labels.numpy()
        inputs[f"{number} departures"] = np.array(json.dumps(case[3].departures))
        inputs[f"{number} tile and bands"] = np.array(case[4])
    np.savez(tmp_path / "inputs.npz", **inputs)
    subprocess.run(
        [sys.executable, str(FOLDER / "interpreted_kernel.py"), tmp_path / "inputs.npz", tmp_path / "outputs.npz"],
        check=True,
        timeout=300,
    )
    outputs = np.load(tmp_path / "outputs.npz")
    for number, ((u, labels), case) in enumerate(zip(batches, CASES, strict=True)):
        found = LossAndGradient(*(torch.from_numpy(outputs[f"{number} {name}"]) for name in LossAndGradient._fields))
        assert found.gradient.shape == u.shape
        assert {part.dtype for part in found} == {torch.float32}
        assert_agree(found, reference.loss_and_gradient(u, labels, case[3].departures), u.shape[1], case[3])


@needs_triton
@pytest.mark.complete
def test_the_kernel_compiles_for_a_device_that_is_not_there(tmp_path):
    compiled = subprocess.run(
        [sys.executable, str(FOLDER / "compiled_kernel.py"), "90"],
        env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    assert ".target sm_90" in compiled
    # Nothing is added atomically, or the order of additions would be that of chance.
    assert not re.search(r"\b(atom|red)\.", compiled)


@needs_cuda
@needs_triton
@pytest.mark.parametrize(("batch", "code_length"), [(1, 12), (63, 1), (64, 48), (200, 256), (700, 12), (3000, 3)])
@pytest.mark.parametrize("loss", [FAITHFUL, BALANCED], ids=["faithful", "balanced"])
def test_the_kernel_on_a_device_agrees_with_the_compiled_one_of_the_cpu(batch, code_length, loss):
    u, labels = random_batch(batch, code_length, 3)
    expected = loss.loss_and_gradient(u.double(), labels)
    results = [loss.loss_and_gradient(u.cuda(), labels.cuda()) for _ in range(3)]
    assert_agree(results[0], expected, code_length, loss)
    for result in results[1:]:
        assert all(torch.equal(part, first) for part, first in zip(result, results[0], strict=True))
