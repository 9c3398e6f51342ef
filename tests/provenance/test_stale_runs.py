"""A run that would read what other parameters, inputs or code have made stops before its first node, in one line."""

import itertools
import os
import random
import re
import shutil
from pathlib import Path

import pytest
from kedro.framework.project import pipelines
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.cli.provenance import open_catalog
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.freshness import graph, nodes_to_run, states
from deephash_pipeline.project.freshness.graph import ProjectGraph
from deephash_pipeline.project.policy import Policy
from deephash_pipeline.provenance.manifest import manifest_path, read_manifest
from deephash_pipeline.provenance.states import StateKind
from tests.provenance.conftest import make_up
from tests.provenance.situations import CORRUPTIONS, STAGES, Overridden, begin, carried_out, remake, stale_situations

SEED = 16
SITUATIONS = int(os.environ.get("SITUATIONS", "20"))
DAMAGED = int(os.environ.get("CORRUPTIONS", "45"))


def refusal(stage, catalog, policy=None):
    with pytest.raises(InputError) as caught:
        begin(pipelines[stage], catalog, policy)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("stage", ["full", *STAGES])
def test_where_everything_is_up_to_date_every_stage_begins(catalog, stage):
    begin(pipelines[stage], catalog)


def test_where_everything_is_up_to_date_there_is_nothing_to_run(catalog):
    assert nodes_to_run(pipelines["full"], catalog) == []
    assert {state.kind for state in states(pipelines["full"], catalog).values()} == {StateKind.FRESH}


def test_every_stale_situation_is_noticed(catalog):
    """One parameter or one artefact is changed, and a later stage is run."""
    draw = random.Random(SEED)
    unnoticed = []
    for situation in itertools.islice(stale_situations(catalog, draw), SITUATIONS):
        restore = remake(situation.changed, catalog) if situation.value is None else None
        changed = catalog if restore else Overridden(catalog, situation.changed, situation.value)
        try:
            begin(pipelines[situation.stage], changed)
            unnoticed.append(situation)
        except InputError as error:
            named = situation.changed.removeprefix("experiment.")
            assert named in str(error) or "more" in str(error), situation
        finally:
            if restore:
                restore()
    assert unnoticed == []
    assert nodes_to_run(pipelines["full"], catalog) == []


def test_every_corruption_is_noticed_before_a_node_reads_it(catalog, project, artefacts):
    draw = random.Random(SEED)
    read = sorted(artefacts.keys() & set[str]().union(*(pipelines[stage].inputs() for stage in STAGES)))
    unnoticed = []
    kinds = itertools.cycle(CORRUPTIONS.items())
    for (kind, corrupt), _ in zip(kinds, range(DAMAGED), strict=False):
        name, other = draw.sample(read, 2)
        stage = draw.choice([stage for stage in STAGES if name in pipelines[stage].inputs()])
        path = project / artefacts[name]
        kept = {file: file.read_bytes() for file in (path, manifest_path(path))}
        corrupt(path, project / artefacts[other], draw)
        try:
            begin(pipelines[stage], catalog)
            unnoticed.append((kind, name, stage))
        except InputError as error:
            assert name in str(error) or "more" in str(error)
        finally:
            for file, content in kept.items():
                file.write_bytes(content)
    assert unnoticed == []


@pytest.mark.usefixtures("kept")
def test_an_older_artefact_with_its_manifest_is_noticed(catalog, project):
    codes = project / "data/07_model_output/digits/deephash/b12/codes.npz"
    older = {file: file.read_bytes() for file in (codes, manifest_path(codes))}
    remake("deephash_pretrained.b12.hash_layer", catalog)
    remake("deephash.b12.codes", catalog)
    assert "deephash" not in str(states(pipelines["fine_tuning"], catalog)["deephash.b12.codes"])
    for file, content in older.items():
        file.write_bytes(content)
    named = r"^`deephash\.b12\.codes` was made from another `deephash_pretrained\.b12\.hash_layer`"
    with pytest.raises(InputError, match=named):
        begin(pipelines["evaluation"].only_nodes_with_namespaces(["evaluation.deephash.b12"]), catalog)


# What the line says.


def test_the_line_names_what_is_stale_why_and_the_command_that_mends_it(project):
    assert project.is_dir()
    policy = Policy(conf_source="elsewhere")
    other = {"experiment": {"seed": 7}, "data_ingestion": {"query_count": None}}
    with pytest.raises(InputError) as caught:
        begin(pipelines["fine_tuning"], open_catalog(None, other), policy, env="mnist", runtime_params=other)
    message = str(caught.value)
    assert "was made with seed 42, this run has 7" in message
    given = "--env=mnist --conf-source=elsewhere --params=experiment.seed=7,data_ingestion.query_count=null"
    command = rf"`kedro run --pipelines=full --to-outputs=\S*training_images\S* {given}` makes again what is needed"
    assert re.search(command, message)
    assert "--stale=allow" in message
    with pytest.raises(
        InputError, match=r"`kedro run --pipelines=full --to-outputs=pcah\.b32\.codes,query_labels,.* --params=.*7"
    ):
        asked = pipelines["evaluation"].only_nodes_with_namespaces(["evaluation.pcah.b32"])
        begin(asked, open_catalog(None, other), namespaces=["evaluation.pcah.b32"], runtime_params=other)


def test_a_file_of_weights_counts_by_its_content_wherever_it_lies(project, tmp_path):
    def received(weights):
        catalog = open_catalog(None, {"experiment": {"network": "resnet18", "trunk": {"weights": str(weights)}}})
        graph = ProjectGraph(pipelines["cnn_pretraining"].nodes, catalog)
        return graph.origin(pipelines["cnn_pretraining"].nodes[0], {}, "").parameters["experiment.trunk.weights"]

    assert project.is_dir()
    one, same, other = tmp_path / "one.pth", tmp_path / "same.pth", tmp_path / "other.pth"
    for path, content in ((one, b"one"), (same, b"one"), (other, b"two")):
        path.write_bytes(content)
    assert received(one) == received(same) != received(other)
    with pytest.raises(InputError, match=r"there is no file .*missing\.pth"):
        received(tmp_path / "missing.pth")


def test_changed_code_is_reported(catalog, monkeypatch):
    digests = graph.sources

    def changed(*code):
        found = digests(*code)
        return {name: "0" * 32 if name.endswith("losses.dpsh") else digest for name, digest in found.items()}

    monkeypatch.setattr(graph, "sources", changed)
    message = refusal("evaluation", catalog)
    assert "`dpsh.b12.codes` (and 4 more) was made by other code" in message
    begin(pipelines["feature_extraction"], catalog)


@pytest.mark.usefixtures("kept")
def test_an_artefact_without_manifest_is_refused_with_the_command_that_makes_it_again(catalog, project):
    manifest_path(project / "data/07_model_output/digits/itq/b12/codes.npz").unlink()
    message = refusal("evaluation", catalog)
    assert "`itq.b12.codes` has no manifest that says what it was made from" in message
    assert "`kedro run --pipelines=full`" in message
    assert carried_out(message, project, catalog) == {"baseline_hashing.itq.b12.fit_and_encode"}
    begin(pipelines["evaluation"], catalog)


@pytest.mark.usefixtures("kept")
def test_the_command_makes_what_one_changed_method_has_made_and_nothing_else(catalog, project):
    changed = Overridden(catalog, "baseline_hashing.ksh.iterations", 7)
    message = refusal("evaluation", changed)
    cells = [f"ksh.b{bits}" for bits in (12, 16, 24, 32, 48)]
    steps = {f"baseline_hashing.{cell}.fit_and_encode" for cell in cells}
    assert carried_out(message, project, changed) == steps | {f"evaluation.{cell}.measure" for cell in cells}
    begin(pipelines["evaluation"], changed)


@pytest.mark.usefixtures("kept")
def test_cells_of_a_changed_method_of_the_field_are_measured_again_and_the_rest_of_the_field_is_not(
    catalog, project, monkeypatch
):
    steps = ("baseline_hashing.median", "evaluation.median")
    make_up(project, pipelines["field"].only_nodes_with_namespaces(list(steps)), catalog)
    digests = graph.sources

    def changed(*code):
        return {name: "0" * 32 if name.endswith("hashing.median") else value for name, value in digests(*code).items()}

    monkeypatch.setattr(graph, "sources", changed)
    message = refusal("measured_cells", catalog)
    assert "`kedro run --pipelines=field --namespaces=median`" in message
    made = carried_out(message, project, catalog)
    assert made and all(name.startswith(steps) for name in made)
    begin(pipelines["measured_cells"], catalog)


def test_the_command_that_mends_it_is_of_a_pipeline_that_makes_what_is_missing(project, catalog):
    assert project.is_dir()
    evaluation = pipelines["field_at_32_bits"].filter(node_namespaces=["evaluation"])
    with pytest.raises(InputError, match=r"not there: .* `kedro run --pipelines=field_at_32_bits") as caught:
        begin(evaluation, catalog, pipeline_names=["field_at_32_bits"])
    carried_out(str(caught.value), project, catalog)
    begin(evaluation, catalog, pipeline_names=["field_at_32_bits"])


@pytest.mark.usefixtures("kept")
def test_a_stale_file_that_full_does_not_make_is_named_to_be_deleted(catalog, project):
    """`full` shows the references that are there, and `references` reads what `full` makes."""
    references = [project / f"data/07_model_output/digits/{name}_reference.json" for name in ("z", "pq")]
    make_up(project, pipelines["references"], catalog)
    begin(pipelines["full"], catalog)
    found = {states(pipelines["reporting"], catalog)[name].reason for name in ("map_table", "report")}
    assert found == {"was made without `references/pq_reference.json`"}
    changed = Overridden(catalog, "experiment.seed", 7)
    message = refusal("full", changed)
    assert "pq_reference.json and " in message
    assert "z_reference.json, which this run can do without" in message
    assert "kedro run" not in message
    for path in references:
        path.unlink()
    begin(pipelines["full"], changed)


@pytest.mark.usefixtures("kept")
def test_trials_that_are_stale_are_searched_again_and_not_deleted(catalog, project):
    make_up(project, pipelines["tuning"], catalog)
    changed = Overridden(catalog, "experiment.seed", 7)
    message = refusal("tuning_results", changed)
    assert "`kedro run --pipelines=tuning" in message
    assert "delete" not in message


@pytest.mark.usefixtures("kept")
def test_cells_on_the_descriptor_are_no_input_of_those_that_make_them(catalog, project):
    for pipeline in ("descriptor_extraction", "hand_crafted"):
        make_up(project, pipelines[pipeline], catalog)
    remake("training_descriptor", catalog)
    begin(pipelines["hand_crafted"], catalog)
    begin(pipelines["comparison"], catalog)


def test_the_device_makes_nothing_stale(catalog):
    begin(pipelines["reporting"], Overridden(catalog, "experiment.device", "cuda:1"))


@pytest.mark.usefixtures("kept")
def test_what_is_stale_may_be_used_on_request_but_not_what_is_damaged(catalog, project):
    changed = Overridden(catalog, "experiment.seed", 7)
    policy = Policy(stale_allowed=True)
    begin(pipelines["reporting"], changed, policy)
    (project / "data/07_model_output/digits/metrics.json").write_text("[]")
    message = refusal("reporting", changed, policy)
    assert "`all_metrics` is damaged" in message
    assert "--stale=allow" not in message


@pytest.mark.usefixtures("kept")
def test_a_run_that_leaves_out_what_is_there_tells_readers_of_what_is_stale_all_the_same(catalog, project):
    changed = Overridden(catalog, "experiment.seed", 7)
    policy = Policy(stale_allowed=True, skipping=True, whole=True)
    begin(pipelines["full"], changed, policy)
    assert begin(pipelines["full"], changed, policy)._banner == ""
    (project / "data/08_reporting/digits/report.html").unlink()
    assert "was made with seed 42, this run has 7" in begin(pipelines["full"], changed, policy)._banner


def test_a_date_that_no_page_can_have_is_refused_before_the_first_node(catalog, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "9" * 14)
    assert "SOURCE_DATE_EPOCH is 99999999999999: give seconds" in refusal("full", catalog)


# What is missing.


@pytest.mark.usefixtures("kept")
def test_without_images_and_features_codes_are_evaluated_and_their_seed_is_known(catalog, project):
    for layer in ("04_feature", "06_models"):
        shutil.rmtree(project / "data" / layer)
    for images in (project / "data/02_intermediate/digits").glob("*/images.npy*"):
        images.unlink()
    begin(pipelines["evaluation"], catalog)
    message = refusal("evaluation", Overridden(catalog, "cnn_pretraining.training.epochs", 3))
    assert "was made with cnn_pretraining.training.epochs 20, this run has 3" in message


@pytest.mark.usefixtures("kept")
def test_a_missing_input_is_named_with_what_makes_it(catalog, project):
    (project / "data/07_model_output/digits/itq/b12/codes.npz").unlink()
    message = refusal("evaluation", catalog)
    assert "data/07_model_output/digits/itq/b12/codes.npz is not there: run the stage that makes it" in message


# What is made again.


@pytest.mark.usefixtures("kept")
def test_a_file_that_was_deleted_is_made_again_and_nothing_else(catalog, project):
    (project / "data/04_feature/digits/training_z.npy").unlink()
    assert nodes_to_run(pipelines["full"], catalog) == ["feature_extraction.extract_training_z"]
    manifest_path(project / "data/04_feature/digits/training_z.npy").unlink()
    assert nodes_to_run(pipelines["full"], catalog) == ["feature_extraction.extract_training_z"]


def test_a_change_of_one_method_makes_its_cells_their_figures_and_the_report(catalog):
    changed = Overridden(catalog, "baseline_hashing.ksh.iterations", 7)
    cells = [f"ksh.b{bits}" for bits in (12, 16, 24, 32, 48)]
    assert set(nodes_to_run(pipelines["full"], changed)) == {
        *(f"baseline_hashing.{cell}.fit_and_encode" for cell in cells),
        *(f"evaluation.{cell}.measure" for cell in cells),
        *(f"evaluation.{step}" for step in ("collect_metrics", "join_curves")),
        *(f"reporting.{step}" for step in ("tabulate_metrics", "draw_map_by_code_length", "draw_precision_recall")),
        "reporting.write_report",
    }


def test_a_copy_elsewhere_is_as_good(project, tmp_path, monkeypatch):
    elsewhere = Path(shutil.copytree(project, tmp_path / "elsewhere", copy_function=shutil.copy))
    bootstrap_project(elsewhere)
    monkeypatch.chdir(elsewhere)
    assert nodes_to_run(pipelines["full"], open_catalog(None)) == []


def test_every_artefact_names_the_raw_images_and_the_seed_that_it_comes_from(project, artefacts):
    for name, path in artefacts.items():
        manifest = read_manifest(project / path)
        assert "raw_images" in manifest.origin.parameters, name
        if name.endswith(".metrics"):
            assert "training_labels" in manifest.origin.inputs
            assert manifest.origin.parameters["experiment.seed"] == 42


# Further seeds.

FROM_PRE_TRAINING = ("cnn_pretraining", "feature_extraction", "baseline_hashing.ksh.b12", "evaluation.ksh.b12")


@pytest.fixture
def second(project, kept):
    """The catalog of the second seed, by which one cell is made."""
    catalog = open_catalog(None, {"replicate": 2})
    make_up(project, pipelines["full"].only_nodes_with_namespaces(list(FROM_PRE_TRAINING)), catalog)
    return catalog


def test_a_further_seed_has_the_images_of_the_first_and_nothing_else_of_it(second, catalog):
    of_second, of_first = (states(pipelines["full"], each) for each in (second, catalog))
    fresh = {name for name, state in of_second.items() if state.kind is StateKind.FRESH}
    made = pipelines["full"].only_nodes_with_namespaces(["data_ingestion", *FROM_PRE_TRAINING]).all_outputs()
    assert fresh == made
    assert {state.kind for name, state in of_second.items() if name not in made} == {StateKind.MISSING}
    assert {state.kind for state in of_first.values()} == {StateKind.FRESH}


@pytest.mark.usefixtures("second")
def test_a_seed_is_recorded_and_asks_for_no_other_recipe(project):
    folder = project / "data/07_model_output/digits/ksh/b12"
    first, of_second = (read_manifest(folder / path).origin for path in ("codes.npz", "r2/codes.npz"))
    assert first.recipe == of_second.recipe
    changed = {name for name, value in of_second.parameters.items() if first.parameters[name] != value}
    assert changed == {"cells.ksh.b12.replicate", "cells.one_of_c.bC.replicate"}


@pytest.mark.usefixtures("second")
def test_codes_of_another_seed_that_other_parameters_made_are_refused_with_the_command_of_that_seed(project, catalog):
    begin(pipelines["comparison"], catalog)
    other = {"baseline_hashing": {"ksh": {"iterations": 7}}}
    # Of this seed all are made again; of the second they are as they were.
    changed = open_catalog(None, other)
    make_up(project, pipelines["full"].only_nodes_with_namespaces(["baseline_hashing.ksh", "evaluation.ksh"]), changed)
    with pytest.raises(InputError) as caught:
        begin(pipelines["comparison"], changed, runtime_params=other)
    message = str(caught.value)
    assert message.startswith("`codes_of_seeds/ksh/b12/r2/codes.npz` was made with baseline_hashing.ksh.iterations")
    selected = "--to-outputs=ksh.b12.codes --params=baseline_hashing.ksh.iterations=7,replicate=2"
    assert f"`kedro run --pipelines=full {selected}` makes again" in message
    of_seed = open_catalog(None, {**other, "replicate": 2})
    assert carried_out(message, project, of_seed) == {"baseline_hashing.ksh.b12.fit_and_encode"}
    begin(pipelines["comparison"], changed, runtime_params=other)
