"""Hand-crafted features from the command line: names, files, parameters, and the half that other runs measure."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kedro.framework.session import KedroSession

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.pipelines.descriptor_extraction.nodes import HandCraftedParameters
from deephash_pipeline.pipelines.grid import METHODS, compared_cells, on_descriptor
from tests.end_to_end.refused_runs import finished

STAGES = ("descriptor_extraction", "hand_crafted")
DESCRIPTORS = {
    None: "gist",
    "cifar10": "gist",
    "mnist": "sift_bag",
    "kaggle_face": "sift_bag",
    "sun397": "sift_bag",
}
SMALL = {
    "experiment.device": "cpu",
    "data_ingestion.query_count": 1000,
    "data_ingestion.validation_share": 0.75,
    "hand_crafted.gist.blocks": 3,
    "hash_layer_init.training.epochs": 2,
    "baseline_hashing.mlh.batches_per_stage": 2,
    "baseline_hashing.ksh.iterations": 5,
}
PRE_TRAINED = "descriptor_deephash_pretrained"
FILES = [
    ("training_descriptor", "04_feature/digits/training_descriptor.npy"),
    ("sift_vocabulary", "04_feature/digits/sift_vocabulary.npy"),
    ("descriptor_itq.b16.encoder", "06_models/digits/descriptor_itq/b16/encoder.safetensors"),
    ("descriptor_deephash_pretrained.b32.history", "06_models/digits/descriptor_deephash_pretrained/b32/history.csv"),
    (
        "descriptor_deephash_pretrained.b32.checkpoints",
        "06_models/digits/descriptor_deephash_pretrained/b32/checkpoints",
    ),
    ("descriptor_ksh.b32.codes", "07_model_output/digits/descriptor_ksh/b32/codes.npz"),
    ("descriptor_ksh.b32.query_histograms", "07_model_output/digits/descriptor_ksh/b32/query_histograms.npz"),
    ("descriptor_lsh.b16.metrics", "07_model_output/digits/descriptor_lsh/b16/metrics.json"),
    ("descriptor_lsh.b16.curves", "07_model_output/digits/descriptor_lsh/b16/precision_recall.csv"),
    ("evaluated_cells", "07_model_output/digits"),
    ("hand_crafted_table", "08_reporting/digits/hand_crafted.csv"),
]


def load(project, environment):
    """Catalog and parameters of an environment."""
    with KedroSession.create(project, env=environment) as session:
        context = session.load_context()
        return context.catalog, context.config_loader["parameters"]


@pytest.mark.parametrize("environment", DESCRIPTORS)
def test_each_benchmark_has_its_descriptor_and_stores_all_that_is_made(here, environment):
    catalog, parameters = load(here, environment)
    chosen = HandCraftedParameters.model_validate(parameters["hand_crafted"])
    assert chosen.descriptor == DESCRIPTORS[environment]
    assert (chosen.gist.features, chosen.sift_bag.words) == (800, 5000)
    for stage in STAGES:
        assert catalog.describe_datasets([stage])[stage]["defaults"] == {}


def test_a_name_resolves_to_its_own_file(here):
    catalog, _ = load(here, None)
    for name, file in FILES:
        assert Path(catalog.get(name)._describe()["filepath"]).relative_to(here / "data").as_posix() == file


def test_the_parameters_name_the_cells(here):
    _, parameters = load(here, None)
    for cell in map(on_descriptor, compared_cells()):
        method, length = cell.namespace.split(".")
        assert Cell.model_validate(parameters["cells"][method][length]) == cell


def test_both_stages_fill_one_half_of_the_table_and_evaluated_cells_the_other(here):
    evaluated = {"method": "ksh", "code_length": 32, "mean_average_precision": 0.625}
    for name, figures in {"ksh/b32": evaluated, "sh/b12": {**evaluated, "method": "sh", "code_length": 12}}.items():
        file = here / "data/07_model_output/digits" / name / "metrics.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(figures))
    parameters = f"--params={','.join(f'{key}={value}' for key, value in SMALL.items())}"
    stages = f"--pipelines=data_ingestion,{','.join(STAGES)}"
    # The two files above have no manifests.
    finished(stages, "--stale=allow", parameters)
    table = pd.read_csv(here / "data/08_reporting/digits/hand_crafted.csv")
    measured = table.set_index(["feature", "method", "code_length"])["measured"]
    assert measured["CNN"].dropna().to_dict() == {("KSH", 32): 0.625}
    for cell in compared_cells():
        folder = here / "data/07_model_output/digits" / on_descriptor(cell).namespace.replace(".", "/")
        metrics = json.loads((folder / "metrics.json").read_text())
        assert metrics["method"] == on_descriptor(cell).method
        assert measured["GIST", METHODS[cell.method], cell.bits] == metrics["mean_average_precision"]
    described = np.load(here / "data/04_feature/digits/training_descriptor.npy", mmap_mode="r")
    assert described.shape == (metrics["database_size"], 3 * 3 * 32)
