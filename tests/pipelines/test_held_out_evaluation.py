from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from kedro.io import DataCatalog, MemoryDataset
from kedro.runner import SequentialRunner
from numpy.typing import NDArray

from deephash_pipeline.datasets import CodesDataset, FilesDataset
from deephash_pipeline.deephash import ClassifierRun, Experiment, LabelledImages, PreTrainingParameters, TrainingSet
from deephash_pipeline.errors import InputError
from deephash_pipeline.grid import METHODS, cells
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.splits import SplitParameters, split_class_names, split_collection
from deephash_pipeline.pipelines.cnn_pretraining.nodes import pre_train
from deephash_pipeline.pipelines.held_out_evaluation import create_pipeline
from deephash_pipeline.pipelines.held_out_evaluation.nodes import measure_held_out
from deephash_pipeline.retrieval import CodeSets, pack_bits

ROOT = Path(__file__).resolve().parents[2]
TRAINING_LABELS = np.arange(30, dtype=np.int64) % 3
VALIDATION_LABELS = np.arange(12, dtype=np.int64) % 3
QUERY_LABELS = np.arange(9, dtype=np.int64) % 3


def bits(labels: NDArray[np.int64], code_length: int = 12) -> NDArray[np.uint8]:
    """Codes that tell the class and nothing else."""
    return pack_bits(np.arange(code_length) % 7 == labels[:, None])


def codes(validation: NDArray[np.int64] = VALIDATION_LABELS, code_length: int = 12) -> CodeSets:
    sets = (bits(labels, code_length) for labels in (TRAINING_LABELS, validation, QUERY_LABELS))
    return CodeSets(*sets, code_length)


def measured(files: dict[str, CodeSets]) -> pd.DataFrame:
    return measure_held_out(files, QUERY_LABELS, VALIDATION_LABELS, TRAINING_LABELS)


def row(table: pd.DataFrame, method: str, code_length: int) -> "pd.Series[float]":
    return table[(table["method"] == METHODS[method]) & (table["code_length"] == code_length)].iloc[0]


def slow_map(database: NDArray[np.int64], codes_: NDArray[np.uint8], queries: NDArray[np.uint8]) -> float:
    """Mean average precision by ranking one query after the other; for codes at distinct distances per class."""
    scores = []
    for query, label in zip(queries, QUERY_LABELS, strict=True):
        distances = np.unpackbits(codes_ ^ query, axis=1).sum(axis=1)
        relevant = (database == label)[np.argsort(distances, kind="stable")]
        ranks = np.flatnonzero(relevant) + 1
        scores.append((np.arange(1, len(ranks) + 1) / ranks).mean())
    return float(np.mean(scores))


def test_queries_search_the_validation_images_and_the_training_set_beside_it() -> None:
    held = codes((VALIDATION_LABELS + (np.arange(12) < 6)) % 3)
    found = row(measured({"itq/b12/codes.npz": held}), "itq", 12)
    assert found["state"] == "measured"
    assert found["training_mean_average_precision"] == slow_map(TRAINING_LABELS, held.database, held.query) == 1
    assert 0 < found["mean_average_precision"] < 1
    perfect = row(measured({"itq/b12/codes.npz": codes()}), "itq", 12)
    assert perfect["mean_average_precision"] == 1
    assert (found["queries"], found["database_size"]) == (9, 12)
    assert found["chance_level"] == pytest.approx(1 / 3, abs=0.15)


def test_every_cell_of_the_grid_has_a_row_and_those_without_codes_are_not_run() -> None:
    table = measured({"itq/b12/codes.npz": codes(), "one_of_c/bC/codes.npz": codes(code_length=3)})
    assert len(table) == len(list(cells()))
    assert table["state"].value_counts().to_dict() == {"measured": 2, "not run": len(table) - 2}
    assert table.loc[table["state"] == "not run", "mean_average_precision"].isna().all()
    assert row(table, "one_of_c", 3)["state"] == "measured"


def test_where_training_holds_nothing_that_queries_look_for_only_the_held_out_figure_is_there() -> None:
    unseen = {"ksh/b12/codes.npz": codes()}
    table = measure_held_out(unseen, QUERY_LABELS + 3, VALIDATION_LABELS + 3, TRAINING_LABELS)
    assert row(table, "ksh", 12)["mean_average_precision"] == 1
    assert np.isnan(row(table, "ksh", 12)["training_mean_average_precision"])


def test_without_held_out_images_the_remedy_is_told() -> None:
    with pytest.raises(InputError, match=r"data_ingestion\.validation_share or unseen_classes"):
        measure_held_out({}, QUERY_LABELS, VALIDATION_LABELS[:0], TRAINING_LABELS)


def test_codes_of_other_images_are_refused_by_the_name_of_their_cell() -> None:
    with pytest.raises(InputError, match=r"the codes of itq\.b12 are not those of the images"):
        measured({"itq/b12/codes.npz": codes(VALIDATION_LABELS[:5])})


def test_the_pipeline_runs_on_the_codes_that_are_there(tmp_path: Path) -> None:
    CodesDataset(str(tmp_path / "itq/b12/codes.npz")).save(codes())
    given = {
        "all_codes": FilesDataset(str(tmp_path), "*/*/codes.npz", {"type": CodesDataset}),
        "query_labels": MemoryDataset(QUERY_LABELS),
        "validation_labels": MemoryDataset(VALIDATION_LABELS),
        "training_labels": MemoryDataset(TRAINING_LABELS),
    }
    outputs = SequentialRunner().run(create_pipeline(), DataCatalog(given))
    assert row(outputs["held_out_table"].load(), "itq", 12)["mean_average_precision"] == 1


# Classes that training has not seen.


def bars(classes: int, count: int) -> ImageSet:
    generator = np.random.default_rng(0)
    labels = np.arange(count, dtype=np.int64) % classes
    images = generator.integers(0, 90, size=(count, 1, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[0, :, 4 * label : 4 * label + 4] += 150
    return ImageSet(images, labels, [f"bar {row}" for row in range(count)])


def test_a_network_learns_from_the_classes_that_are_left_and_watches_no_accuracy() -> None:
    names = ["a", "b", "c", "d", "e"]
    parameters = SplitParameters(query_count=20, unseen_classes=2)
    splits = split_collection(ImageCollection({"all": bars(5, 80)}, names), parameters, seed=1)
    training = {"epochs": 1, "batch_size": 12, "learning_rate": 0.01}
    _, softmax, history = pre_train(
        TrainingSet(
            splits["training"].images,
            splits["training"].labels,
            {"mean": [0.3], "standard_deviation": [0.3]},
            split_class_names(names, parameters, seed=1),
        ),
        LabelledImages(splits["validation"].images, splits["validation"].labels),
        PreTrainingParameters.model_validate({"training": training}),
        ClassifierRun(Experiment(benchmark="bars", network="lenet", seed=1, device="cpu")),
    )
    assert set(splits["training"].labels.tolist()) == {0, 1, 2}
    assert set(splits["query"].labels.tolist()) == {3, 4}
    assert len(softmax["bias"]) == 5
    assert "validation_accuracy" not in history


def test_the_unseen_classes_of_cifar10_choose_nothing() -> None:
    seen, unseen = (
        {file.name: yaml.safe_load(file.read_text()) for file in (ROOT / "conf" / folder).glob("*.yml")}
        for folder in ("cifar10", "cifar10_unseen")
    )
    assert set(unseen) == {"catalog_01_raw.yml", "globals.yml", "parameters_data_ingestion.yml"}
    assert unseen["catalog_01_raw.yml"] == seen["catalog_01_raw.yml"]
    assert {**unseen["globals.yml"], "benchmark": "cifar10"} == seen["globals.yml"]


def test_the_environment_of_unseen_classes_has_files_of_its_own(new_project: Callable[[str], Path]) -> None:
    conf = new_project("unseen") / "conf" / "cifar10_unseen"
    assert yaml.safe_load((conf / "globals.yml").read_text())["benchmark"] == "cifar10_unseen"
    split = yaml.safe_load((conf / "parameters_data_ingestion.yml").read_text())["data_ingestion"]
    assert SplitParameters.model_validate(split).unseen_classes == 3
