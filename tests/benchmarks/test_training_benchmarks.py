import numpy as np
import pytest

from benchmarks import training_loop
from benchmarks.documents import markdown_table
from benchmarks.studies.large_batch import CPU, LARGE_BATCH, kept_for_backward, random_images
from benchmarks.training_cases import CASES, hash_network
from benchmarks.training_loop import measure_case
from deephash_pipeline.images.inputs import ImageInputs

STATISTICS = {"mean": [0.5], "standard_deviation": [0.29]}


def test_tables_of_the_loop_come_from_a_real_measurement(monkeypatch):
    monkeypatch.setattr(training_loop, "WARM_UP_STEPS", 1)
    case = CASES[1]
    measured = measure_case(case, {"images": 2 * case.batch_size, "rounds": 1})
    assert set(measured["seconds_of_step"]) == {"data", "forward", "loss", "backward", "optimiser", "other"}
    assert all(seconds > 0 for seconds in measured["seconds_of_step"].values())
    assert 0.2 < measured["share_of_products"] < 1
    options = [{"network": "lenet", "options": {}, "images_per_second": 50.0, "first_call_seconds": 1.0}]
    options.append({**options[0], "options": {"chunk_size": 8}, "images_per_second": 25.0})
    rows = training_loop.tables({"device": "CPU, one thread", "cases": [measured], "options": options})
    assert "| MNIST, fine-tuning | 128 |" in markdown_table(rows["shares"])
    assert "| lenet | `chunk_size: 8` | 25 | 0.50 | 1.0 |" in markdown_table(rows["options"])


def test_what_autograd_keeps_grows_with_the_batch_and_weights_do_not_count():
    with random_images(32, (1, 28, 28)) as images:
        inputs = ImageInputs(images, STATISTICS, CPU)
        kept = [kept_for_backward(hash_network("lenet", 12), inputs, np.arange(size)) for size in (16, 32)]
    weights = sum(parameter.nbytes for parameter in hash_network("lenet", 12).parameters())
    assert kept[1] == pytest.approx(2 * kept[0], rel=0.2)
    assert 0 < kept[0] / 16 < weights


def test_the_row_of_the_large_batch_scales_what_autograd_keeps():
    few = {"batch_size": 20, "chunk_size": 8, "plain_batch": 8, "compared_batch": 8}
    (row,) = LARGE_BATCH.measure({"network": "lenet", "code_length": 12, **few})["tables"]["step"]
    assert row["plain autograd would keep"].startswith("0 GiB (")
    assert float(row["relative difference of the gradient in chunks"]) < 1e-4
