from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.cli.run import within_stages
from deephash_pipeline.pipeline_registry import STAGES, create_pipelines, register_pipelines
from deephash_pipeline.pipelines.grid import (
    BASELINES,
    CLASSIFIER_BASELINE,
    DEEP_RIVALS,
    FINE_TUNINGS,
    GALLERY,
    METHODS,
    PAPER_METHODS,
    PAPER_RIVALS,
    PRE_TRAINING,
    cells,
    grid_parameters,
)
from deephash_pipeline.pipelines.names import FIELD
from deephash_pipeline.project.checks import parameters_read
from deephash_pipeline.project.parameters import unread_parameters
from deephash_pipeline.project.replicate import REPLICATE

GRID = list(cells(*PAPER_METHODS))
AT_ONE_LENGTH = [cell for cell in GRID if cell.code_length in (12, None)]

CLASSIFIER = {
    *("trunk_weights", "softmax_weights", "pre_training_history", "chosen_by_trials"),
    "pre_training_checkpoints",
}


@pytest.fixture(scope="module")
def pipelines():
    return register_pipelines()


@pytest.fixture(scope="module")
def project(new_project):
    return new_project("registry")


@pytest.fixture(scope="module")
def configured(project):
    """Load the project's configuration as `kedro run` does, for an environment."""
    bootstrap_project(project)

    @cache
    def configuration(environment, replicate=1):
        # Both at once: resolvers such as `globals` are those of the configuration that was loaded last.
        with KedroSession.create(project, env=environment, runtime_params={"replicate": replicate}) as session:
            context = session.load_context()
            return SimpleNamespace(catalog=context.catalog, parameters=context.config_loader["parameters"])

    return configuration


@pytest.fixture(scope="module")
def described(project, configured, pipelines):
    """Layer and file, below `data`, of every dataset of the full pipeline."""
    entries = {}
    for name in sorted(pipelines["full"].datasets()):
        if not name.startswith("params:"):
            dataset = configured(None).catalog.get(name)
            file = Path(dataset._describe()["filepath"]).relative_to(project / "data")
            entries[name] = {"file": file.as_posix(), "layer": dataset.metadata["kedro-viz"]["layer"]}
    return entries


def keys(parameters, above=""):
    """Dotted names of all parameters."""
    names = set()
    for name, value in parameters.items():
        names |= keys(value, f"{above}{name}.") if isinstance(value, dict) and value else {above + name}
    return names


def hashing_stage(cell):
    if cell.method in (*BASELINES, CLASSIFIER_BASELINE.method):
        return "baseline_hashing"
    return "hash_layer_init" if cell.method == PRE_TRAINING else "fine_tuning"


def test_the_full_pipeline_is_the_eight_stages_and_nothing_else(pipelines):
    functions = {name: Counter(node.func for node in pipelines[name].nodes) for name in (*STAGES, "full")}
    assert functions["full"] == sum((functions[name] for name in STAGES), Counter())


def test_a_node_is_tagged_with_its_stage_alone(pipelines):
    assert all(node.tags == {(node.namespace or "").split(".")[0]} for node in pipelines["full"].nodes)


def test_a_stage_reads_only_what_is_given_or_what_stages_before_it_write(pipelines):
    # What another environment or pipeline leaves stands beside, if it is there.
    known = {"raw_images", "decoded_images", "unseen_cells", "references"}
    for stage in STAGES:
        needed = {name for name in pipelines[stage].inputs() if not name.startswith("params:")}
        # Checkpoints are a place that a training is given, not something that is there before it.
        assert {name for name in needed if not name.endswith(("checkpoints", "_origin"))} <= known, stage
        known |= pipelines[stage].all_outputs()


def test_nothing_that_all_cells_share_is_learned_from_anything_of_the_queries(pipelines):
    learning = {"measure_pixels", "pre_train"}
    nodes = [node for node in pipelines["full"].nodes if node.short_name in learning]
    assert {node.short_name for node in nodes} == learning
    assert not [name for node in nodes for name in node.inputs if "query" in name]


def test_a_cell_is_one_node_that_makes_codes_and_one_that_measures_them(pipelines):
    for cell in cells():
        nodes = pipelines["field"].only_nodes_with_namespaces(within_stages([cell.namespace], pipelines["field"])).nodes
        making, measuring = sorted(nodes, key=lambda node: node.short_name == "measure")
        assert f"{cell.namespace}.codes" in {*making.outputs} & {*measuring.inputs}
        assert not [name for name in measuring.inputs if name.endswith((".encoder", ".hasher"))]
    assert len(pipelines["field"].nodes) <= 540


def test_evaluation_needs_codes_and_labels_alone(pipelines):
    needed = {name for name in pipelines["evaluation"].inputs() if not name.startswith("params:")}
    labels = {"training_labels", "validation_labels", "query_labels"}
    assert needed == labels | {f"{cell.namespace}.codes" for cell in GRID}


@pytest.mark.parametrize("name", ["evaluation", "full"])
@pytest.mark.parametrize("cell", AT_ONE_LENGTH, ids=lambda cell: cell.namespace)
def test_a_cell_is_evaluated_alone_by_its_namespace(pipelines, cell, name):
    selected = pipelines[name].only_nodes_with_namespaces([f"evaluation.{cell.namespace}"])
    assert selected.all_outputs() == {f"{cell.namespace}.{name}" for name in ("metrics", "curves")}


def test_namespaces_that_lie_in_one_another_run_once(pipelines):
    named = within_stages(["evaluation.itq.b12", "itq.b12", "evaluation", "itq", "itq"], pipelines["full"])
    assert named == ["evaluation", "baseline_hashing.itq"]
    assert pipelines["full"].only_nodes_with_namespaces(named).nodes


@pytest.mark.parametrize("cell", AT_ONE_LENGTH, ids=lambda cell: cell.namespace)
def test_a_cell_is_hashed_alone_by_its_namespace(pipelines, cell):
    stage = hashing_stage(cell)
    namespace = [f"{stage}.{cell.namespace}"]
    selected = pipelines[stage].only_nodes_with_namespaces(namespace)
    learned = "hasher" if stage == "fine_tuning" else "encoder"
    assert {f"{cell.namespace}.{learned}", f"{cell.namespace}.codes"} <= selected.all_outputs()
    assert all(name.startswith(f"{cell.namespace}.") for name in selected.all_outputs())
    assert selected.nodes == pipelines["full"].only_nodes_with_namespaces(namespace).nodes


def test_fine_tuning_starts_from_the_hash_layer_of_the_same_code_length(pipelines):
    for cell in cells(*FINE_TUNINGS, *PAPER_RIVALS):
        selected = pipelines["fine_tuning"].only_nodes_with_namespaces([f"fine_tuning.{cell.namespace}"])
        layers = {name for name in selected.inputs() if name.endswith(".hash_layer")}
        assert layers == {f"deephash_pretrained.b{cell.code_length}.hash_layer"}


@pytest.mark.parametrize(("name", "grid"), [("full", GRID), ("field", list(cells()))], ids=["full", "field"])
def test_a_run_at_32_bits_is_the_part_of_the_whole_run_with_that_code_length(pipelines, name, grid):
    part = pipelines[f"{name}_at_32_bits"]
    codes = {output for output in part.all_outputs() if output.endswith(".codes")}
    assert codes == {f"{cell.namespace}.codes" for cell in grid if cell.code_length in (32, None)}
    assert part.all_outputs() < pipelines[name].all_outputs()


def test_a_pipeline_is_made_when_it_is_looked_at():
    registered = create_pipelines.__wrapped__()
    assert len(registered["cnn_pretraining"].nodes) == 1
    made = {name for name, pipeline in registered.items() if "_nodes" in vars(pipeline)}
    assert made == {"cnn_pretraining"}
    with pytest.raises(AttributeError, match="nothing"):
        _ = registered["cnn_pretraining"].nothing


def test_pipelines_are_made_once_however_often_kedro_asks_for_them():
    first, second = register_pipelines(), register_pipelines()
    first.pop("full")
    assert all(second[name] is pipeline for name, pipeline in first.items())
    assert "full" in second


def test_any_parameter_that_a_pipeline_reads_is_known_and_no_other(configured, pipelines):
    read = set[str]().union(*(pipeline.inputs() for pipeline in pipelines.values()))
    of_configuration = read - grid_parameters().keys()
    parameters = {name.removeprefix("params:") for name in of_configuration if name.startswith("params:")}
    # Of `experiment`, which most read as a whole, data_ingestion reads two.
    assert parameters_read() == parameters
    given = {name: value for name, value in configured(None).parameters.items() if name != REPLICATE}
    assert not list(unread_parameters(given, parameters_read()))


def test_the_full_pipeline_has_the_methods_of_the_papers_tables_and_the_field_has_all(pipelines):
    methods = {
        name: {dataset.partition(".")[0] for dataset in pipelines[name].all_outputs() if dataset.endswith(".codes")}
        for name in ("full", "field")
    }
    assert methods == {"full": set(PAPER_METHODS), "field": set(METHODS)}
    assert tuple(METHODS)[: len(PAPER_METHODS)] == PAPER_METHODS


def test_the_field_shares_the_cells_of_the_full_pipeline(pipelines):
    whole = {node.name: node for node in pipelines["field"].nodes}
    of_cells = [node for node in pipelines["full"].nodes if any("." in output for output in node.outputs)]
    assert all(whole[node.name].outputs == node.outputs for node in of_cells)
    assert all(whole[node.name].inputs == node.inputs for node in of_cells)


def test_what_the_field_joins_has_names_and_files_of_its_own(configured, pipelines):
    full, field = (pipelines[name] for name in ("full", "field"))
    grid_wide = {node.name: set(node.outputs) for node in full.nodes if "." not in "".join(node.outputs)}
    for node in field.nodes:
        if node.name in grid_wide and set(node.inputs) != set(full.only_nodes(node.name).nodes[0].inputs):
            assert {output.removeprefix(f"{FIELD}.") for output in node.outputs} == grid_wide[node.name]
            assert all(output.startswith(f"{FIELD}.") for output in node.outputs)
            files = [configured(None).catalog.get(output)._describe()["filepath"] for output in node.outputs]
            assert all("/digits/field/" in file for file in files)


def test_the_gallery_shows_a_cell_of_the_grid():
    assert GALLERY in GRID


@pytest.mark.parametrize("environment", [None, "mnist"])
def test_nothing_stays_in_memory_by_accident(configured, pipelines, environment):
    catalog = configured(environment).catalog
    names = set[str]().union(*(pipeline.datasets() for pipeline in pipelines.values())) - set(catalog.keys())
    assert [name for name in names if not catalog.config_resolver.match_dataset_pattern(name)] == []


@pytest.mark.parametrize("environment", [None, "mnist"])
def test_every_parameter_that_a_node_asks_for_is_configured(configured, pipelines, environment):
    inputs = pipelines["field"].inputs() | pipelines["hand_crafted"].inputs()
    asked = {name for name in inputs if name.startswith("params:")}
    assert asked <= set(configured(environment).catalog.keys())


def test_benchmarks_share_no_file(configured, described):
    catalog = configured("mnist").catalog
    of_mnist = {catalog.get(name)._describe()["filepath"] for name in described}
    assert all("/mnist" in file.partition("/data/")[2] for file in of_mnist)
    assert not any("mnist" in entry["file"] for entry in described.values())


def test_a_file_of_a_cell_lies_in_the_folder_of_the_cell(described):
    for name, entry in described.items():
        if "." in name:
            method, length, _ = name.split(".")
            assert entry["file"].split("/")[1:4] == ["digits", method, length], name


def test_no_two_names_resolve_to_the_same_file(described):
    count = Counter(entry["file"] for entry in described.values())
    assert [file for file, names in count.items() if names > 1] == []


def test_the_layer_of_a_dataset_is_that_of_its_folder(described):
    for name, entry in described.items():
        folder = entry["file"].split("/")[0]
        assert entry["layer"] == ("classifier" if name in CLASSIFIER else folder[len("01_") :]), name


# Further seeds.

OF_IMAGES = ("data_ingestion", "descriptor_extraction", "comparison")
"""Pipelines that make what is the same for all seeds."""


def files_of(project, catalog, names):
    return {
        name: Path(catalog.get(name)._describe()["filepath"]).relative_to(project / "data").as_posix() for name in names
    }


@pytest.mark.parametrize("replicate", [2, 17])
def test_what_depends_on_the_seed_lies_in_a_folder_of_the_seed_and_what_does_not_is_shared(
    project, configured, pipelines, replicate
):
    shared = set[str]().union(*(pipelines[name].all_outputs() for name in OF_IMAGES))
    every = set[str]().union(*(each.all_outputs() for name, each in pipelines.items() if name != "paper_tables"))
    places = {name for each in pipelines.values() for name in each.inputs() if name.endswith(("checkpoints", "study"))}
    names = sorted(every | places)
    first = files_of(project, configured(None).catalog, names)
    further = files_of(project, configured(None, replicate).catalog, names)
    for name in names:
        parts = further[name].split("/")
        assert [part for part in parts if part != f"r{replicate}"] == first[name].split("/"), name
        assert (f"r{replicate}" in parts) == (name not in shared), name
    assert len(set(further.values())) == len(names)


def test_files_of_further_seeds_keep_the_paths_that_they_have_had(project, configured):
    files = {
        "itq.b48.encoder": "06_models/digits/itq/b48/r2/encoder.safetensors",
        "deephash.b48.hasher": "06_models/digits/deephash/b48/r2/hasher.safetensors",
        "deephash.b48.checkpoints": "06_models/digits/deephash/b48/r2/checkpoints",
        "deephash.b48.codes": "07_model_output/digits/deephash/b48/r2/codes.npz",
        "deephash.b48.metrics": "07_model_output/digits/deephash/b48/r2/metrics.json",
        "trunk_weights": "06_models/digits/pre_training/r2/trunk.safetensors",
        "pre_training_checkpoints": "06_models/digits/pre_training/r2/checkpoints",
        "training_z": "04_feature/digits/r2/training_z.npy",
    }
    assert files_of(project, configured(None, 2).catalog, files) == files


def test_files_that_are_found_are_those_of_the_seed(project, configured):
    of_seed = {1: "", 2: "r2/"}
    for folder in of_seed.values():
        path = project / f"data/07_model_output/digits/itq/b48/{folder}metrics.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    for replicate, folder in of_seed.items():
        catalog = configured(None, replicate).catalog
        assert catalog.get("evaluated_cells").names() == [f"itq/b48/{folder}metrics.json"]
        assert catalog.get("metrics_of_benchmarks").names() == ["digits/itq/b48/metrics.json"]


def test_a_cell_is_told_the_number_of_the_seed(configured):
    for replicate in (1, 5):
        catalog = configured(None, replicate).catalog
        for name in ("itq.b48", CLASSIFIER_BASELINE.namespace, "descriptor_itq.b16"):
            assert catalog.load(f"params:cells.{name}").replicate == replicate


def test_pre_training_and_every_cell_that_draws_read_the_number_of_the_seed(pipelines):
    drawing = {"pre_train", "fit_and_encode", "initialise_and_encode", "fine_tune_and_encode", "train_and_encode"}
    nodes = [node for node in pipelines["field"].nodes if node.short_name in drawing]
    assert {node.short_name for node in nodes} == drawing
    for node in nodes:
        assert any(name.startswith("params:cells.") for name in node.inputs), node.name


def test_no_graph_is_a_copy_of_another_with_another_seed(pipelines):
    assert "seeds" not in pipelines
    assert max(len(pipeline.nodes) for pipeline in pipelines.values()) <= 540


def test_each_method_that_trains_the_network_is_tuned_from_the_same_start(pipelines):
    searched = pipelines["tuning"].nodes
    assert {node.outputs[0].split(".")[0] for node in searched} == {*FINE_TUNINGS, *DEEP_RIVALS}
    for node in searched:
        assert {"trunk_weights", "deephash_pretrained.b32.hash_layer", "validation_images"} <= set(node.inputs)
        assert not [name for name in node.inputs if "query" in name or "checkpoints" in name]
