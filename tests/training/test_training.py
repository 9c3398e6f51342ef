"""The engine: reproducible from its seed, honest about divergence, and stepping as the paper says."""

import logging
from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from deephash_pipeline.common.devices import resolve_precision
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.training import (
    ArrayInputs,
    CrossEntropy,
    LabelledInputs,
    TrainingDiverged,
    TrainingParameters,
    TrainingRun,
    classification_objective,
    outputs_in_blocks,
    resolve_device,
    train,
)
from deephash_pipeline.training.sampling import epoch_batches
from deephash_pipeline.training.schedule import Schedule

CPU = torch.device("cpu")


def parameters(**changes):
    return TrainingParameters(**{"epochs": 5, "batch_size": 16, "learning_rate": 0.1, **changes})


def blobs(count=120):
    generator = np.random.default_rng(0)
    labels = np.arange(count) % 3
    return (generator.normal(size=(count, 4)) + 3 * np.eye(3, 4)[labels]).astype(np.float32), labels.astype(np.int64)


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(4, 3)


def labelled(x, labels, device=CPU):
    return LabelledInputs(ArrayInputs(x, device), labels)


def run(module, seed=1, **changes):
    x, labels = blobs()
    return train(module, CrossEntropy(), labelled(x, labels), parameters(**changes), TrainingRun("test", seed))


@pytest.mark.parametrize("schedule", ["plateau", "one_cycle"])
def test_training_lowers_the_loss_and_learns_the_classes(schedule):
    history = run(linear(), schedule=schedule)
    assert history[-1]["loss"] < history[0]["loss"] / 2
    assert history[-1]["accuracy"] > 0.9
    assert [row["epoch"] for row in history] == list(range(1, len(history) + 1))


def test_the_same_seed_gives_the_same_weights_bit_for_bit_and_another_seed_does_not():
    first, second, other = linear(), linear(), linear()
    run(first)
    torch.rand(7)
    run(second)
    run(other, seed=2)
    assert torch.equal(first.weight, second.weight)
    assert not torch.equal(first.weight, other.weight)


def test_each_epoch_visits_every_image_at_most_once_in_a_new_order():
    epochs = [np.concatenate(list(epoch_batches(50, parameters(), 3, epoch))) for epoch in (1, 2)]
    assert all(len(order) == len(set(order)) == 48 for order in epochs)
    assert not np.array_equal(*epochs)


def test_random_skip_strides_through_one_fixed_order_by_one_to_201_images_and_without_skips_to_the_neighbour():
    size = 100_000
    skipping = parameters(sampler="random_skip", batch_size=100)
    batches = [np.concatenate(list(epoch_batches(size, skipping, 3, epoch))) for epoch in (1, 2)]
    assert not np.array_equal(*batches)
    place = np.empty(size, dtype=np.int64)
    place[np.random.default_rng(derive_seed(3, "database order")).permutation(size)] = np.arange(size)
    strides = np.diff(place[batches[0]]) % size
    assert strides.min() == 1
    assert strides.max() == 201
    assert strides.mean() == pytest.approx(101, abs=1)
    batches = list(epoch_batches(40, parameters(sampler="random_skip", random_skip_maximum=0), 3, 1))
    assert len(set(np.concatenate(batches))) == 32


def test_fewer_images_than_one_batch_and_labels_of_another_number_are_refused_with_the_remedy():
    for size, remedy in ((120, "set `batch_size` to at most 120"), (1, "losses compare two at least")):
        with pytest.raises(InputError, match=rf"^test: {size} training images are .*: {remedy}$"):
            train(linear(), CrossEntropy(), labelled(*blobs(size)), parameters(batch_size=121), TrainingRun("test", 0))
    with pytest.raises(InputError, match="test: 120 inputs but 119 labels"):
        train(linear(), CrossEntropy(), labelled(blobs()[0], blobs(119)[1]), parameters(), TrainingRun("test", 0))


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_diverged_loss_stops_training_and_the_last_good_weights_are_kept(value):
    class Exploding(nn.Module):
        """Finite until the last step of the second epoch of seven."""

        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, outputs, labels):
            self.calls += 1
            return CrossEntropy()(outputs, labels) * (float(value) if self.calls > 13 else 1.0)

    x, labels = blobs()
    module, one_epoch = linear(), linear()
    message = f"test: the loss became {value} in epoch 2: lower `learning_rate`"
    with pytest.raises(TrainingDiverged, match=message):
        train(module, Exploding(), labelled(x, labels), parameters(), TrainingRun("test", 1))
    train(one_epoch, CrossEntropy(), labelled(x, labels), parameters(epochs=1), TrainingRun("test", 1))
    assert torch.equal(module.weight, one_epoch.weight)


def test_weights_that_the_last_step_of_an_epoch_made_infinite_are_not_good():
    def steep(outputs, labels):
        return CrossEntropy()(outputs, labels) + 1e38 * (outputs - outputs.detach()).sum()

    module = linear()
    with pytest.raises(TrainingDiverged, match="test: weights became infinite in epoch 1: lower `learning_rate`"):
        train(module, steep, labelled(*blobs(16)), parameters(learning_rate=1e3), TrainingRun("test", 1))
    assert torch.equal(module.weight, linear().weight)


def losses_to_rates(losses, **changes):
    settings = parameters(**changes)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=settings.learning_rate)
    schedule = Schedule(optimizer, settings, steps=10)
    rates = []
    for loss in losses:
        if schedule.converged:
            break
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.after_epoch(loss)
    return rates


def test_the_learning_rate_drops_tenfold_when_the_training_loss_stands_still_until_the_last_drop():
    rates = losses_to_rates([1.0] * 20, plateau_patience=2, plateau_drops=2)
    assert rates == pytest.approx([0.1, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_drops_of_small_rates_are_made_too():
    rates = losses_to_rates([1.0] * 20, learning_rate=1e-7, plateau_patience=1, plateau_drops=3)
    assert rates == pytest.approx([1e-7, 1e-7, 1e-8, 1e-9, 1e-10], rel=1e-6, abs=0)


def test_the_learning_rate_stays_while_the_training_loss_falls():
    assert losses_to_rates([1.0 - 0.01 * epoch for epoch in range(12)]) == [0.1] * 12


def test_smoothed_labels_are_spread_over_all_classes():
    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(6, 4, generator=generator, dtype=torch.float64), torch.tensor([0, 3, 1, 1, 2, 0])
    wanted = 0.9 * nn.functional.one_hot(labels, 4) + 0.1 / 4
    expected = -(wanted * logits.log_softmax(1)).sum(1).mean()
    torch.testing.assert_close(classification_objective(labels.numpy(), 0.1)(logits, labels), expected)
    several = torch.randint(0, 2, (6, 4), generator=generator, dtype=torch.uint8)
    wanted = 0.9 * several + 0.1 / 2
    expected = -(wanted * logits.sigmoid().log() + (1 - wanted) * (-logits).sigmoid().log()).sum(1).mean()
    torch.testing.assert_close(classification_objective(several.numpy(), 0.1)(logits, several), expected)


@pytest.mark.parametrize("schedule", ["plateau", "one_cycle"])
def test_averaged_training_ends_with_the_moving_average_of_its_weights_and_is_measured_by_it(schedule):
    module, after_each_step, measured = linear(), [], []
    hook = register_optimizer_step_post_hook(lambda *_: after_each_step.append(module.weight.detach().clone()))
    x, labels = blobs()
    run = TrainingRun("averaged", 1, after_epoch=lambda: measured.append(module.weight.detach().clone()) or {})
    train(module, CrossEntropy(), labelled(x, labels), parameters(schedule=schedule, averaging=0.8), run)
    hook.remove()
    averages = [after_each_step[0]]
    for step, weight in enumerate(after_each_step[1:], 1):
        past = min(0.8, (1 + step) / (10 + step))
        averages.append(past * averages[-1] + (1 - past) * weight)
    assert len(after_each_step) == 35
    torch.testing.assert_close(measured, averages[6::7])
    assert torch.equal(module.weight, measured[-1])
    assert not torch.allclose(measured[0], after_each_step[6], rtol=1e-3)


def test_one_cycle_rises_to_the_peak_and_falls_to_nearly_zero():
    settings = parameters(schedule="one_cycle", warm_up_share=0.25)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=settings.learning_rate)
    schedule = Schedule(optimizer, settings, steps=40)
    rates = []
    for _ in range(40):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.after_step()
    assert 8 <= int(np.argmax(rates)) <= 11
    assert max(rates) == pytest.approx(0.1, rel=0.02)
    assert rates[-1] < 0.001


@pytest.mark.parametrize("schedule", ["plateau", "one_cycle"])
def test_what_lies_above_the_trunk_may_move_at_another_rate(schedule):
    def moved(factor):
        torch.manual_seed(0)
        module = nn.Sequential(OrderedDict(trunk=nn.Linear(4, 5), head=nn.Linear(5, 3)))
        before = {name: weight.detach().clone() for name, weight in module.named_parameters()}
        run(module, epochs=1, batch_size=120, momentum=0, head_rate_factor=factor, schedule=schedule)
        return {name: weight.detach() - before[name] for name, weight in module.named_parameters()}

    once, fourfold = moved(1.0), moved(4.0)
    for name, step in once.items():
        torch.testing.assert_close(fourfold[name], (1 if name.startswith("trunk") else 4) * step, rtol=1e-4, atol=1e-6)
        assert step.abs().max() > 1e-4


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_one_cycle_serves_runs_of_a_few_steps(steps):
    x, labels = blobs(16 * steps)
    settings = parameters(schedule="one_cycle", epochs=1)
    history = train(linear(), CrossEntropy(), labelled(x, labels), settings, TrainingRun("test", 1))
    assert np.isfinite(history[0]["loss"])


def test_outputs_in_blocks_equal_those_of_one_piece_and_leave_no_gradient():
    x, module = np.random.default_rng(0).normal(size=(1100, 4)).astype(np.float32), linear()
    outputs = outputs_in_blocks(module, ArrayInputs(x, CPU))
    assert outputs.shape == (1100, 3)
    np.testing.assert_allclose(outputs, module(torch.from_numpy(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


class Following(CrossEntropy):
    """Notes what it receives of the training's progress."""

    def __init__(self):
        super().__init__()
        self.received = []

    def set_progress(self, progress):
        self.received.append(progress)


def test_an_objective_that_follows_progress_receives_before_each_step_how_much_is_done():
    x, labels = blobs(96)
    objective = Following()
    train(linear(), objective, labelled(x, labels), parameters(epochs=2), TrainingRun("test", 1))
    steps = len(objective.received)
    assert steps > 4
    assert objective.received == pytest.approx([step / steps for step in range(steps)])


class Sometimes(CrossEntropy):
    """Watches something in its first batch alone."""

    def forward(self, outputs, labels):
        loss = super().forward(outputs, labels)
        self.metrics, self.watched = ({} if hasattr(self, "watched") else self.metrics), True
        return loss


def test_metrics_that_come_and_go_are_refused():
    x, labels = blobs(96)
    with pytest.raises(InputError, match="watched metrics differ from batch to batch: accuracy"):
        train(linear(), Sometimes(), labelled(x, labels), parameters(), TrainingRun("test", 1))


@pytest.mark.parametrize(("device", "remedy"), [("gpu", "unknown device `gpu`"), ("cuda:99", "`cuda:99` is not there")])
def test_a_device_that_is_not_there_is_refused(device, remedy):
    with pytest.raises(InputError, match=remedy):
        resolve_device(device)


def test_auto_is_the_cpu_where_there_is_no_accelerator(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == CPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto").type == "cuda"


@pytest.mark.parametrize(
    ("capabilities", "precision"),
    [
        ({"avx512_bf16": True, "amx_bf16": False}, "bfloat16"),
        ({"avx512_bf16": False, "amx_bf16": True}, "bfloat16"),
        ({"avx512_f": True, "avx512_bf16": False}, "float32"),
        ({"bf16": True, "sve_bf16": True}, "float32"),
    ],
)
def test_an_automatic_precision_is_bfloat16_where_the_processor_multiplies_it(monkeypatch, capabilities, precision):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert resolve_precision("auto", CPU) == precision
    assert [resolve_precision(named, CPU) for named in ("float32", "bfloat16")] == ["float32", "bfloat16"]


def test_an_automatic_precision_is_float32_where_pytorch_does_not_say(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert resolve_precision("auto", CPU) == "float32"


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_an_automatic_precision_trains_bit_for_bit_as_what_it_is_and_says_so(monkeypatch, caplog, precision):
    monkeypatch.setattr("deephash_pipeline.training.loop.resolve_precision", lambda *arguments: precision)
    automatic, named, other = linear(), linear(), linear()
    with caplog.at_level(logging.DEBUG, "deephash_pipeline.training"):
        assert run(automatic, precision="auto") == run(named, precision=precision)
    assert [record.getMessage() for record in caplog.records] == [f"test: precision auto is {precision} here"]
    assert torch.equal(automatic.weight, named.weight)
    run(other, precision=next(each for each in ("float32", "bfloat16") if each != precision))
    assert not torch.equal(automatic.weight, other.weight)
