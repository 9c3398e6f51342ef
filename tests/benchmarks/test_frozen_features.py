"""The page of photographs has what the stored seeds of losses on kept features carry."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.documents import PROJECT
from benchmarks.studies.frozen_features import (
    BITS,
    Data,
    cell_run,
    of_rate,
    page,
    rows_of,
    search,
    shortened,
    signs,
    stage_2,
)
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.reports.seeds import with_verdicts
from deephash_pipeline.tuning.significance import SignificanceParameters

PAGE = PROJECT / "docs" / "results" / "photographs.md"


def test_page_and_stored_verdicts_follow_from_the_stored_seeds():
    stored = pd.read_csv(PAGE.with_suffix("") / "frozen_features.csv")
    of_seeds = stored["mean_of_each_seed"].str.split(expand=True).astype(float)
    np.testing.assert_allclose(of_seeds.mean(axis=1), stored["mean"])
    np.testing.assert_allclose(of_seeds.std(axis=1), stored["standard_deviation"])
    assert with_verdicts(stored, SignificanceParameters())["verdict"].tolist() == stored["verdict"].tolist()
    assert [row for row in page(stored).splitlines()[2:] if row not in PAGE.read_text(encoding="utf-8")] == []


@pytest.fixture
def kept(tmp_path):
    labels = np.arange(120) % 20
    z = np.random.default_rng(0).normal(np.eye(20)[labels] * 3, 1, (120, 20)).astype(np.float32)
    for folder in ("04_feature/photos", "02_intermediate/photos/training"):
        (tmp_path / folder).mkdir(parents=True)
    np.save(tmp_path / "04_feature/photos/training_z.npy", z)
    np.save(tmp_path / "02_intermediate/photos/training/labels.npy", labels)
    return tmp_path


def test_classes_are_grouped_in_their_order(kept):
    _, labels = rows_of("photos", kept, "training")
    _, groups = rows_of("photos/10", kept, "training")
    assert groups.tolist() == (labels // 2).tolist()


def test_a_search_of_two_trials_finds_values_and_repeats_itself(kept):
    z, labels = rows_of("photos", kept, "training")
    data = Data(z[:90], labels[:90], z[90:], labels[90:])
    start = stage_2(data, of_rate(0.1, 0.0), cell_run("deephash_pretrained"))
    training = {"epochs": 2, "batch_size": 30, "learning_rate": 0.1}
    method = shortened(FineTuningParameters.model_validate({"training": training, "loss": {"name": "csq"}}))
    method = method.model_copy(update={"training": method.training.model_copy(update={"epochs": 2})})
    found = [search("csq", method, [data], [start], trials=2) for _ in range(2)]
    assert found[0] == found[1]
    assert "training.learning_rate" in found[0][1]
    assert signs(start)(z).shape == (120, BITS)
