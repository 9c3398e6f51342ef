import numpy as np
import pytest

from benchmarks import training_loop
from benchmarks.documents import markdown_table
from benchmarks.studies.large_batch import CPU, LARGE_BATCH, gradient, kept_for_backward, random_images
from benchmarks.training_cases import CASES, hash_network
from benchmarks.training_loop import Bench, Stopwatch, measure_case
from deephash_pipeline.images.inputs import ImageInputs

STATISTICS = {"mean": [0.5], "standard_deviation": [0.29]}


def test_a_stopwatch_starts_after_the_warm_up_and_books_all_time(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr(training_loop, "clock", lambda: next(ticks))
    started = []
    watch = Stopwatch(2, at_start=lambda: started.append("now"))
    for _ in range(2):
        assert not started
        watch.lap("forward")
        watch.lap("optimiser")
    for part in ("forward", "backward", "optimiser", "forward"):
        watch.lap(part)
    assert started == ["now"]
    assert watch.seconds == {"forward": 2, "backward": 1, "optimiser": 1}


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


def test_the_bare_network_takes_as_many_steps():
    bench = Bench(CASES[0], images=256)
    assert (bench.steps, bench.images) == (2, (training_loop.WARM_UP_STEPS + 2) * 128)
    assert bench.encode() > 0
    assert bench.train_bare() > 0


def test_what_autograd_keeps_grows_with_the_batch_and_weights_do_not_count():
    with random_images(32, (1, 28, 28)) as images:
        inputs = ImageInputs(images, STATISTICS, CPU)
        kept = [kept_for_backward(hash_network("lenet", 12), inputs, np.arange(size)) for size in (16, 32)]
    weights = sum(parameter.nbytes for parameter in hash_network("lenet", 12).parameters())
    assert kept[1] == pytest.approx(2 * kept[0], rel=0.2)
    assert 0 < kept[0] / 16 < weights


def test_the_gradient_in_chunks_is_that_of_one_piece():
    with random_images(20, (1, 28, 28)) as images:
        inputs = ImageInputs(images, STATISTICS, CPU)
        whole, chunks = (gradient(hash_network("lenet", 12), inputs, np.arange(20) % 3, 20, size) for size in (None, 3))
    assert whole.isfinite().all()
    assert (chunks - whole).norm() < 1e-4 * whole.norm()


def test_the_row_of_the_large_batch_scales_what_autograd_keeps():
    few = {"batch_size": 20, "chunk_size": 8, "plain_batch": 8, "compared_batch": 8}
    (row,) = LARGE_BATCH.measure({"network": "lenet", "code_length": 12, **few})["tables"]["step"]
    assert row["plain autograd would keep"].startswith("0 GiB (")
    assert float(row["relative difference of the gradient in chunks"]) < 1e-4
