"""Every runner leaves the same files and manifests, by which the next run sees that nothing is to be done."""

from contextlib import nullcontext

import pytest
import torch
from kedro.framework.hooks.manager import _create_hook_manager, _register_hooks
from kedro.framework.startup import bootstrap_project
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.datasets import AtomicDataset, CheckpointsDataset, ImageSourceDataset, PlaceDataset
from deephash_pipeline.project.freshness import Provenance, graph, nodes_to_run
from deephash_pipeline.project.policy import Policy
from deephash_pipeline.project.runners import ParallelRunner, SequentialRunner
from deephash_pipeline.provenance.manifest import manifest_path, read_manifest
from deephash_pipeline.training.resuming.checkpoint import TrainingState
from tests.project.datasets.kinds import json_dataset


def scale(start, factor):
    return {name: factor * value for name, value in start.items()}


def add_one(scaled):
    return {name: value + 1 for name, value in scaled.items()}


def total(result, other):
    return {"total": sum(result.values()) + sum(other.values())}


PIPELINE = Pipeline(
    [
        Node(scale, inputs=["start", "params:factor"], outputs="scaled", name="scale"),
        Node(add_one, inputs="scaled", outputs="result", name="add_one"),
        Node(add_one, inputs="start", outputs="other", name="add_one_to_start"),
        Node(total, inputs=["result", "other"], outputs="total", name="total"),
    ]
)
STORED = ("scaled", "result", "other", "total")


def a_catalog(folder, factor=3, stored=STORED):
    catalog = DataCatalog({name: json_dataset(str(folder / f"{name}.json")) for name in ("start", *stored)})
    catalog["params:factor"] = MemoryDataset(factor)
    return catalog


def run(folder, runner, factor=3, stored=STORED, pipeline=PIPELINE, catalog=None):
    """Run as a session would."""
    catalog = catalog or a_catalog(folder, factor, stored)
    hooks = _create_hook_manager()
    _register_hooks(hooks, [Provenance(runner.policy)])
    hooks.hook.before_pipeline_run(run_params={"project_path": str(folder)}, pipeline=pipeline, catalog=catalog)
    try:
        runner.run(pipeline, catalog, hooks)
    except InputError as error:
        hooks.hook.on_pipeline_error(error=error, run_params={}, pipeline=pipeline, catalog=catalog)
        raise
    hooks.hook.after_pipeline_run(run_params={}, run_result={}, pipeline=pipeline, catalog=catalog)


@pytest.fixture
def folder(tmp_path, made_up):
    bootstrap_project(made_up)
    a_catalog(tmp_path).save("start", {"a": 1, "b": 2})
    return tmp_path


def test_every_output_has_a_manifest_with_inputs_and_parameters(folder):
    run(folder, SequentialRunner())
    manifest = read_manifest(folder / "result.json")
    assert (manifest.name, manifest.origin.node) == ("result", "add_one")
    assert manifest.origin.inputs.keys() == {"scaled"}
    final = read_manifest(folder / "total.json")
    assert final.origin.inputs["result"] == manifest.digest
    start = read_manifest(folder / "other.json").origin.inputs["start"]
    assert final.origin.parameters == {"factor": 3, "start": start}


def test_what_is_made_twice_in_a_run_is_recorded_with_what_it_was_made_from_the_second_time(folder):
    class Twice(SequentialRunner):
        def run(self, pipeline, catalog, *arguments, **options):
            super().run(pipeline, catalog, *arguments, **options)
            (folder / "result.json").unlink()
            catalog.save("start", {"a": 5, "b": 2})
            return super().run(pipeline, catalog, *arguments, **options)

    run(folder, Twice())
    catalog = a_catalog(folder)
    assert nodes_to_run(PIPELINE, catalog) == []


def train(start, stage):
    return {**start, "epochs": stage["training"]["epochs"]}


def measure(trained):
    return {"total": sum(trained.values())}


TRAINING = Pipeline(
    [
        Node(train, inputs=["start", "params:stage"], outputs="result", name="train"),
        Node(measure, inputs="result", outputs="total", name="measure"),
    ]
)


def test_what_is_written_in_another_form_or_read_by_another_argument_is_stale(folder, monkeypatch):
    run(folder, SequentialRunner())
    catalog = a_catalog(folder)
    assert nodes_to_run(PIPELINE, catalog) == []
    catalog["total"].form = {**catalog["total"].form, "save_args": {"indent": 4}}
    assert nodes_to_run(PIPELINE, catalog) == ["total"]
    swapped = Node(total, inputs=["other", "result"], outputs="total", name="total")
    others = [node for node in PIPELINE.nodes if node.name != "total"]
    assert nodes_to_run(Pipeline([*others, swapped]), a_catalog(folder)) == ["total"]
    digests = graph.sources
    monkeypatch.setattr(graph, "sources", lambda code, keys: {} if AtomicDataset in code else digests(code, keys))
    assert len(nodes_to_run(PIPELINE, a_catalog(folder))) == len(PIPELINE.nodes)


def a_catalog_of_trainings(folder, precision):
    catalog = a_catalog(folder)
    catalog["params:stage"] = MemoryDataset({"training": {"epochs": 2, "precision": precision}})
    catalog["params:experiment"] = MemoryDataset({"device": "cpu"})
    return catalog


def test_what_an_automatic_precision_was_is_recorded_with_all_that_is_made_from_it_and_makes_nothing_stale(
    folder, monkeypatch
):
    def processor_of(precision):
        monkeypatch.setattr("deephash_pipeline.project.freshness.graph.resolve_precision", lambda *arguments: precision)

    processor_of("bfloat16")
    run(folder, SequentialRunner(), pipeline=TRAINING, catalog=a_catalog_of_trainings(folder, "auto"))
    processor_of("float32")
    for name in ("result", "total"):
        manifest = read_manifest(folder / f"{name}.json")
        known = {key: value for key, value in manifest.origin.parameters.items() if key != "start"}
        assert known == {"stage.training.epochs": 2, "stage.training.precision": "bfloat16"}
    assert nodes_to_run(TRAINING, a_catalog_of_trainings(folder, "auto")) == []
    assert nodes_to_run(TRAINING, a_catalog_of_trainings(folder, "float32")) == ["train", "measure"]


def test_what_a_node_keeps_by_itself_is_told_the_code_and_the_raw_images(folder):
    catalog, told = a_catalog(folder), []
    catalog["place"] = PlaceDataset(str(folder / "kept"))
    tell = Node(lambda _, place: told.append(place.provenance) or {}, ["raw_images", "place"], "result", name="tell")
    for size in (8, 8, 9):
        catalog["raw_images"] = ImageSourceDataset(str(folder), {"kind": "digits", "image_size": size})
        run(folder, SequentialRunner(), pipeline=Pipeline([tell]), catalog=catalog)
    assert told[0] == told[1]
    assert [name for name in told[0] if told[0][name] != told[2][name]] == ["raw_images"]


def test_forced_a_training_begins_anew_and_interrupted_it_goes_on_without_force(folder):
    begun, failing = [], [True]

    def train_on(checkpoints, start):
        if checkpoints.load() is None:
            begun.append(1)
            checkpoints.save(TrainingState({"w": torch.ones(1)}, {"finished": True}, {}))
        return start

    def fail_at_first(trained):
        if failing and failing.pop():
            raise InputError("interrupted")
        return trained

    pipeline = Pipeline([Node(train_on, ["checkpoints", "start"], "result"), Node(fail_at_first, "result", "total")])
    benchmark = folder / "data" / "02_intermediate" / "made_up"
    catalog = a_catalog(folder)
    catalog["class_names"] = json_dataset(f"{benchmark}/names.json")
    catalog["checkpoints"] = CheckpointsDataset(str(folder / "checkpoints"), 0)

    def trainings_after(forced, interrupted=False):
        failing[:] = [interrupted]
        with pytest.raises(InputError) if interrupted else nullcontext():
            run(folder, SequentialRunner(policy=Policy(forced=forced)), pipeline=pipeline, catalog=catalog)
        return len(begun)

    assert [trainings_after(forced=False) for _ in range(2)] == [1, 1]
    assert [trainings_after(forced=True) for _ in range(2)] == [2, 3]
    assert trainings_after(forced=True, interrupted=True) == 4
    assert trainings_after(forced=False) == 4
    assert trainings_after(forced=True) == 5
    assert [path.read_bytes() for path in benchmark.iterdir()] == [b""]


@pytest.mark.usefixtures("fork_server")
def test_processes_leave_the_same_files_and_manifests(folder):
    run(folder, SequentialRunner())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in STORED:
        (folder / f"{name}.json").unlink()
        manifest_path(folder / f"{name}.json").unlink()
    run(folder, ParallelRunner(workers=2))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("runner", [ParallelRunner, SequentialRunner])
def test_what_would_be_passed_on_in_memory_is_refused(folder, runner):
    with pytest.raises(InputError, match="`scaled` is stored nowhere"):
        run(folder, runner(), stored=STORED[1:])


def skipping():
    return SequentialRunner(policy=Policy(skipping=True))


def test_a_second_run_runs_nothing(folder):
    run(folder, skipping())
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert nodes_to_run(PIPELINE, a_catalog(folder)) == []
    run(folder, skipping())
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_a_parameter_makes_all_stale_that_is_made_with_it(folder):
    run(folder, skipping())
    assert nodes_to_run(PIPELINE, a_catalog(folder, factor=4)) == ["scale", "add_one", "total"]


def test_what_is_remade_as_it_was_not_leaves_more_to_make_and_it_is_made(folder, monkeypatch):
    run(folder, skipping())
    (folder / "other.json").unlink()
    assert nodes_to_run(PIPELINE, a_catalog(folder)) == ["add_one_to_start"]
    node = next(node for node in PIPELINE.nodes if node.name == "add_one_to_start")
    monkeypatch.setattr(node, "_func", lambda start: {"x": 100})
    monkeypatch.setattr("deephash_pipeline.project.freshness.graph.sources", lambda *code: {})
    run(folder, skipping())
    assert a_catalog(folder).load("total") == {"total": 3 * 3 + 2 + 100}
