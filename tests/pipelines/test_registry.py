from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kedro.framework.context import KedroContext
from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project
from kedro.pipeline import Pipeline

from deephash_pipeline.grid import BASELINES, FINE_TUNINGS, GALLERY, PRE_TRAINING, YARDSTICK, Cell, cells
from deephash_pipeline.pipeline_registry import register_pipelines

STAGES = [
    "data_ingestion",
    "cnn_pretraining",
    "feature_extraction",
    "baseline_hashing",
    "hash_layer_init",
    "fine_tuning",
    "evaluation",
    "reporting",
]
GRID = list(cells())

LAYERS = {
    "01_raw": "raw",
    "02_intermediate": "intermediate",
    "03_primary": "primary",
    "04_feature": "feature",
    "06_models": "models",
    "07_model_output": "model_output",
    "08_reporting": "reporting",
}

# Placeholders of a pattern match dots too, so that a pattern may catch a name meant for another.
FILES = [
    ("raw_images", "01_raw/digits"),
    ("training_images", "02_intermediate/digits/training/images.npy"),
    ("validation_labels", "02_intermediate/digits/validation/labels.npy"),
    ("query_ids", "02_intermediate/digits/query/ids.json"),
    ("class_names", "02_intermediate/digits/class_names.json"),
    ("pixel_statistics", "03_primary/digits/pixel_statistics.json"),
    ("training_z", "04_feature/digits/training_z.npy"),
    ("trunk_weights", "06_models/digits/pre_training/trunk.safetensors"),
    ("softmax_weights", "06_models/digits/pre_training/softmax.safetensors"),
    ("pre_training_history", "06_models/digits/pre_training_history.csv"),
    ("fine_tuning_history", "06_models/digits/fine_tuning_history.csv"),
    ("itq.b12.encoder", "06_models/digits/itq/b12/encoder.safetensors"),
    ("one_of_c.bC.encoder", "06_models/digits/one_of_c/bC/encoder.safetensors"),
    ("pre_training.b24.hash_layer", "06_models/digits/pre_training/b24/hash_layer.safetensors"),
    ("pre_training.b24.history", "06_models/digits/pre_training/b24/history.csv"),
    ("fine_tuning.b12.tuned_trunk_weights", "06_models/digits/fine_tuning/b12/trunk.safetensors"),
    ("fine_tuning_faithful.b48.history", "06_models/digits/fine_tuning_faithful/b48/history.csv"),
    ("fine_tuning.b12.codes", "07_model_output/digits/fine_tuning/b12/codes.npz"),
    ("fine_tuning.b12.query_histograms", "07_model_output/digits/fine_tuning/b12/query_histograms.npz"),
    ("random_initialisation.b16.metrics", "07_model_output/digits/random_initialisation/b16/metrics.json"),
    ("sh.b32.curves", "07_model_output/digits/sh/b32/precision_recall.csv"),
    ("all_metrics", "07_model_output/digits/metrics.json"),
    ("precision_recall_curves", "07_model_output/digits/precision_recall.csv"),
    ("map_table", "08_reporting/digits/map.csv"),
    ("figure_precision_recall", "08_reporting/digits/precision_recall.json"),
    ("gallery", "08_reporting/digits/gallery.png"),
    ("report", "08_reporting/digits/report.html"),
]


@pytest.fixture(scope="module")
def pipelines() -> dict[str, Pipeline]:
    return register_pipelines()


@pytest.fixture(scope="module")
def load_context(new_project: Callable[[str], Path]) -> Callable[[str | None], KedroContext]:
    """Load the project's configuration as `kedro run` does, for an environment."""
    project = new_project("registry")
    bootstrap_project(project)

    def load(environment: str | None) -> KedroContext:
        with KedroSession.create(project, env=environment) as session:
            return session.load_context()

    return load


@pytest.fixture(scope="module")
def context(load_context: Callable[[str | None], KedroContext]) -> KedroContext:
    return load_context(None)


@pytest.fixture(scope="module")
def described(context: KedroContext, pipelines: dict[str, Pipeline]) -> dict[str, dict[str, Any]]:
    """Layer and file, below `data`, of every dataset of the full pipeline."""
    catalog = context.catalog
    entries = {}
    for name in sorted(pipelines["full"].datasets()):
        if not name.startswith("params:"):
            dataset = catalog.get(name)
            file = Path(dataset._describe()["filepath"]).relative_to(context.project_path / "data")
            entries[name] = {"file": file.as_posix(), "layer": dataset.metadata["kedro-viz"]["layer"]}
    return entries


def names_of(cell: Cell) -> str:
    return cell.namespace


def test_each_stage_can_be_run_alone_and_all_together(pipelines: dict[str, Pipeline]) -> None:
    assert set(pipelines) == {*STAGES, "full", "__default__"}


def test_what_runs_without_a_name_is_the_full_pipeline(pipelines: dict[str, Pipeline]) -> None:
    assert pipelines["__default__"].nodes == pipelines["full"].nodes


def test_the_full_pipeline_is_the_eight_stages_and_nothing_else(pipelines: dict[str, Pipeline]) -> None:
    functions = {name: Counter(node.func for node in pipelines[name].nodes) for name in (*STAGES, "full")}
    assert functions["full"] == sum((functions[name] for name in STAGES), Counter())


def test_the_full_pipeline_folds_into_eight_boxes(pipelines: dict[str, Pipeline]) -> None:
    assert {(node.namespace or "").split(".")[0] for node in pipelines["full"].nodes} == set(STAGES)


def test_a_node_is_tagged_with_its_stage_alone(pipelines: dict[str, Pipeline]) -> None:
    assert all(node.tags == {(node.namespace or "").split(".")[0]} for node in pipelines["full"].nodes)


def test_a_stage_reads_only_what_is_given_or_what_stages_before_it_write(pipelines: dict[str, Pipeline]) -> None:
    known = {"raw_images"}
    for stage in STAGES:
        needed = {name for name in pipelines[stage].inputs() if not name.startswith("params:")}
        assert needed <= known, stage
        known |= pipelines[stage].all_outputs()


def test_evaluation_needs_codes_and_labels_alone(pipelines: dict[str, Pipeline]) -> None:
    needed = {name for name in pipelines["evaluation"].inputs() if not name.startswith("params:")}
    labels = {"training_labels", "validation_labels", "query_labels"}
    assert needed == labels | {f"{cell.namespace}.codes" for cell in GRID}


def test_dataset_names_are_the_same_in_a_stage_and_in_the_full_pipeline(pipelines: dict[str, Pipeline]) -> None:
    assert pipelines["full"].datasets() == {name for stage in STAGES for name in pipelines[stage].datasets()}


@pytest.mark.parametrize("cell", GRID, ids=names_of)
def test_a_cell_is_selected_by_its_namespace(pipelines: dict[str, Pipeline], cell: Cell) -> None:
    selected = pipelines["evaluation"].only_nodes_with_namespaces([cell.namespace])
    assert selected.all_outputs() == {f"{cell.namespace}.{name}" for name in ("query_histograms", "metrics", "curves")}
    stage = "baseline_hashing"
    if cell.method not in (*BASELINES, YARDSTICK.method):
        stage = "hash_layer_init" if cell.method == PRE_TRAINING else "fine_tuning"
    hashed = pipelines[stage].only_nodes_with_namespaces([cell.namespace])
    assert {f"{cell.namespace}.encoder", f"{cell.namespace}.codes"} <= hashed.all_outputs()
    in_full = pipelines["full"].only_nodes_with_namespaces([f"{stage}.{cell.namespace}"])
    assert in_full.all_outputs() == hashed.all_outputs()


def test_a_method_is_selected_by_its_name(pipelines: dict[str, Pipeline]) -> None:
    selected = pipelines["fine_tuning"].only_nodes_with_namespaces(["fine_tuning"])
    assert {name.split(".")[0] for name in selected.all_outputs()} == {"fine_tuning"}


def test_fine_tuning_starts_from_the_hash_layer_of_the_same_code_length(pipelines: dict[str, Pipeline]) -> None:
    for cell in cells(*FINE_TUNINGS):
        selected = pipelines["fine_tuning"].only_nodes_with_namespaces([cell.namespace])
        layers = {name for name in selected.inputs() if name.endswith(".hash_layer")}
        assert layers == {f"pre_training.b{cell.code_length}.hash_layer"}


def test_the_gallery_shows_a_cell_of_the_grid() -> None:
    assert GALLERY in GRID


@pytest.mark.parametrize("name", [*STAGES, "full"])
@pytest.mark.parametrize("environment", [None, "mnist"])
def test_nothing_stays_in_memory_by_accident(
    load_context: Callable[[str | None], KedroContext], environment: str | None, name: str
) -> None:
    assert load_context(environment).catalog.describe_datasets([name])[name]["defaults"] == {}


@pytest.mark.parametrize("environment", [None, "mnist"])
def test_every_parameter_that_a_node_asks_for_is_configured(
    load_context: Callable[[str | None], KedroContext], pipelines: dict[str, Pipeline], environment: str | None
) -> None:
    asked = {name for name in pipelines["full"].inputs() if name.startswith("params:")}
    assert asked <= set(load_context(environment).catalog.keys())


def test_an_environment_adds_to_the_parameters_and_removes_none(
    load_context: Callable[[str | None], KedroContext],
) -> None:
    base, mnist = load_context(None).params, load_context("mnist").params
    assert set(mnist) == set(base)
    assert mnist["experiment"]["benchmark"] == "mnist"
    for stage in ("cnn_pretraining", "hash_layer_init", "fine_tuning", "baseline_hashing"):
        assert set(mnist[stage]) >= set(base[stage])


def test_benchmarks_share_no_file(
    load_context: Callable[[str | None], KedroContext], described: dict[str, dict[str, Any]]
) -> None:
    catalog = load_context("mnist").catalog
    of_mnist = {catalog.get(name)._describe()["filepath"] for name in described}
    assert all("/mnist" in file for file in of_mnist)
    assert not {Path(file).relative_to(Path(file).parents[-1]) for file in of_mnist} & {
        Path(entry["file"]) for entry in described.values()
    }


@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_name_resolves_to_its_own_file(described: dict[str, dict[str, Any]], name: str, file: str) -> None:
    assert described[name]["file"] == file


def test_a_file_of_a_cell_lies_in_the_folder_of_the_cell(described: dict[str, dict[str, Any]]) -> None:
    for name, entry in described.items():
        if "." in name:
            method, length, _ = name.split(".")
            assert entry["file"].split("/")[1:4] == ["digits", method, length], name


def test_no_two_names_resolve_to_the_same_file(described: dict[str, dict[str, Any]]) -> None:
    count = Counter(entry["file"] for entry in described.values())
    assert [file for file, names in count.items() if names > 1] == []


def test_the_layer_of_a_dataset_is_that_of_its_folder(described: dict[str, dict[str, Any]]) -> None:
    for name, entry in described.items():
        assert entry["layer"] == LAYERS[entry["file"].split("/")[0]], name
