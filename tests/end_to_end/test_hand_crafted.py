"""Hand-crafted features from the command line: names, files, parameters, and the half that other runs measure."""

import json

import numpy as np
import pandas as pd
import pytest

from deephash_pipeline.pipelines.descriptor_extraction.nodes import HandCraftedParameters
from deephash_pipeline.pipelines.grid import METHODS, compared_cells, on_descriptor
from tests.configuration import configured
from tests.end_to_end.refused_runs import finished

DESCRIPTORS = {
    "digits": "gist",
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


@pytest.mark.parametrize("environment", DESCRIPTORS)
def test_each_benchmark_has_its_descriptor(environment):
    chosen = HandCraftedParameters.model_validate(configured(environment, "parameters")["hand_crafted"])
    assert chosen.descriptor == DESCRIPTORS[environment]
    assert (chosen.gist.features, chosen.sift_bag.words) == (800, 5000)


def test_both_stages_fill_one_half_of_the_table_and_evaluated_cells_the_other(here):
    evaluated = {"method": "ksh", "code_length": 32, "mean_average_precision": 0.625}
    for name, figures in {"ksh/b32": evaluated, "sh/b12": {**evaluated, "method": "sh", "code_length": 12}}.items():
        file = here / "data/07_model_output/digits" / name / "metrics.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(figures))
    parameters = f"--params={','.join(f'{key}={value}' for key, value in SMALL.items())}"
    # The two files above have no manifests.
    finished("--pipelines=data_ingestion,descriptor_extraction,hand_crafted", "--stale=allow", parameters)
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
