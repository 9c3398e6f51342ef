"""Parameters, names, stages and features that do not fit stop a run with one line that names them and the remedy."""

import numpy as np
import pytest

from deephash_pipeline.pipelines.grid import BASELINES
from deephash_pipeline.project.runners import GridRunner
from deephash_pipeline.provenance.manifest import manifest_path
from tests.end_to_end.refused_runs import finished, refused, run, the_error


@pytest.fixture
def without_nodes(monkeypatch):
    """Fail if a run gets as far as its nodes."""

    def come_to_nodes(*_arguments, **_options):
        raise AssertionError("the run came to its nodes")

    monkeypatch.setattr(GridRunner, "run", come_to_nodes)


@pytest.fixture
def features(here):
    """Store features of the training images, as if the stages before hashing had made them."""

    def store(z):
        files = {"04_feature/digits/training_z.npy": z}
        files |= {f"04_feature/digits/{split}_z.npy": z[:3] for split in ("validation", "query")}
        files |= {"02_intermediate/digits/training/labels.npy": np.arange(len(z)) % 10}
        for name, array in files.items():
            (here / "data" / name).parent.mkdir(parents=True, exist_ok=True)
            np.save(here / "data" / name, array)
            manifest_path(here / "data" / name).unlink(missing_ok=True)

    return store


# Fewer images than asked for, missing stages.


def test_a_diverged_training_keeps_its_last_good_weights_apart(here):
    finished("--pipelines=data_ingestion")
    diverging = "--params=cnn_pretraining.training.learning_rate=1e30,cnn_pretraining.training.epochs=2"
    result = run("--pipelines=cnn_pretraining", diverging)
    assert result.exit_code == 1
    assert "lower `learning_rate`" in the_error(result.output)
    models = here / "data/06_models/digits"
    assert [path.name for path in models.rglob("*.safetensors")] == ["cnn_pretraining.safetensors"]
    assert (models / "last_good" / "cnn_pretraining.safetensors").is_file()


@pytest.mark.usefixtures("here")
def test_a_stage_without_the_one_before_it_names_the_file_and_what_makes_it():
    error = refused("--pipelines=hash_layer_init", "--env=mnist")
    assert "data/" in error
    assert "kedro run --pipelines=full" in error or "run the stage that makes it for mnist" in error


# Parameters.


@pytest.mark.usefixtures("here", "without_nodes")
@pytest.mark.parametrize(
    ("parameter", "named"),
    [
        ("experiment.network=foo", ["experiment", "network", "lenet"]),
        ("experiment.colour=red", ["experiment", "colour"]),
        ("data_ingestion.query_count=0", ["data_ingestion", "query_count"]),
        ("cnn_pretraining.training.epoch=3", ["cnn_pretraining", "training.epoch"]),
        ("fine_tuning.deephash.loss.heat=1", ["fine_tuning.deephash", "loss.exponentiated.heat"]),
        ("fine_tuning.dpsh.loss.name=dsph", ["fine_tuning.dpsh", "loss", "dsph", "greedy_hash"]),
        ("baseline_hashing.lsh.center=true", ["baseline_hashing", "lsh.center"]),
        ("baseline_hashing.hamming.anchors=300", ["baseline_hashing", "hamming", *BASELINES]),
        ("experimnt.seed=3", ["experimnt", "experiment"]),
        ("fine_tuning.fine_tunning.training.epochs=3", ["fine_tuning.fine_tunning", "nothing reads it"]),
    ],
)
def test_a_wrong_parameter_is_named_before_the_first_node(parameter, named):
    error = refused("--pipelines=full", f"--params={parameter}")
    assert all(word in error for word in named)


# Features and codes.


def test_features_that_are_not_numbers_are_counted(features):
    z = np.random.default_rng(0).normal(size=(40, 60)).astype(np.float32)
    z[7, 3] = np.nan
    features(z)
    error = refused("--pipelines=baseline_hashing", "--namespaces=baseline_hashing.itq.b12", "--stale=allow")
    assert "NaN" in error
    assert "1 of 40 rows" in error


def test_a_code_longer_than_its_features_can_carry_is_refused(features):
    features(np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32))
    error = refused("--pipelines=baseline_hashing", "--namespaces=baseline_hashing.itq.b12", "--stale=allow")
    assert "code_length is 12" in error
    assert "8 directions" in error
    assert "shorten the code" in error
