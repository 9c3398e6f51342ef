"""Bad input stops a run with one line that names the input and the remedy, and leaves no file that looks finished."""

import gzip
import itertools
import json
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from kedro.runner import SequentialRunner
from numpy.typing import NDArray
from PIL import Image

from deephash_pipeline import cli
from deephash_pipeline.errors import InputError
from deephash_pipeline.grid import BASELINES
from deephash_pipeline.hashing import HASH_FUNCTIONS

IMAGES = np.random.default_rng(0).integers(256, size=(40, 28, 28)).astype(np.uint8)
LABELS = (np.arange(40) % 10).astype(np.uint8)
RAW = Path("data/01_raw/mnist")
TRAINING_IMAGES = RAW / "train-images-idx3-ubyte.gz"
TRAINING_LABELS = RAW / "train-labels-idx1-ubyte.gz"
QUERY_IMAGES = RAW / "t10k-images-idx3-ubyte.gz"
QUERY_LABELS = RAW / "t10k-labels-idx1-ubyte.gz"
IMAGE_FILES = Path("data/01_raw/images")
OWN_IMAGES = ("--env=images", "--pipelines=data_ingestion")
INGESTION = ("--env=mnist", "--pipelines=data_ingestion", "--params=data_ingestion.training_count=40")


@pytest.fixture
def without_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a run gets as far as its nodes."""

    def come_to_nodes(*_arguments: Any, **_options: Any) -> None:
        raise AssertionError("the run came to its nodes")

    monkeypatch.setattr(SequentialRunner, "run", come_to_nodes)


@pytest.fixture
def raw_files(here: Path) -> None:
    """Four small IDX files that fit each other."""
    (here / RAW).mkdir(parents=True, exist_ok=True)
    for path, array in (
        (TRAINING_IMAGES, IMAGES),
        (TRAINING_LABELS, LABELS),
        (QUERY_IMAGES, IMAGES[:10]),
        (QUERY_LABELS, LABELS[:10]),
    ):
        (here / path).write_bytes(gzip.compress(idx_bytes(array)))


@pytest.fixture
def features(here: Path) -> Callable[[NDArray[np.float32]], None]:
    """Store features of the training images, as if the stages before hashing had made them."""

    def store(z: NDArray[np.float32]) -> None:
        files = {"04_feature/digits/training_z.npy": z}
        files |= {f"04_feature/digits/{split}_z.npy": z[:3] for split in ("validation", "query")}
        files |= {"02_intermediate/digits/training/labels.npy": np.arange(len(z)) % 10}
        for name, array in files.items():
            (here / "data" / name).parent.mkdir(parents=True, exist_ok=True)
            np.save(here / "data" / name, array)

    return store


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def stored(project: Path) -> dict[Path, int]:
    """All files of a project that a run could take for results, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in (project / "data").rglob("*") if path.is_file()}


def the_error(output: str) -> str:
    errors = [line for line in output.splitlines() if line.startswith("Error:")]
    assert len(errors) == 1, output
    assert "Traceback" not in output
    assert "pydantic" not in errors[0]
    return errors[0]


def refused(*arguments: str) -> str:
    """Run the project's `kedro run`, expect it to refuse, and return the line that says why."""
    before = stored(Path.cwd())
    result = CliRunner().invoke(cli.run, arguments)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert stored(Path.cwd()) == before
    return the_error(result.output)


# Raw files.


def test_a_missing_raw_file_is_named_with_its_origin_and_the_command_that_gets_it(
    new_project: Callable[[str], Path], kedro: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    project = new_project("no raw files")
    finished = kedro(project, "run", "--pipelines=full", "--env=mnist")
    assert finished.returncode == 1
    error = the_error(finished.stdout)
    assert "train-images-idx3-ubyte.gz is missing" in error
    assert "https://" in error
    assert "python -m deephash_pipeline.images download mnist" in error
    assert stored(project) == {}


@pytest.mark.usefixtures("raw_files")
def test_whole_raw_files_are_accepted(here: Path) -> None:
    result = CliRunner().invoke(cli.run, INGESTION)
    assert result.exit_code == 0, result.output
    assert np.load(here / "data/02_intermediate/mnist/training/images.npy").shape == (40, 1, 28, 28)


@pytest.mark.usefixtures("raw_files")
def test_a_truncated_archive_is_named(here: Path) -> None:
    (here / TRAINING_IMAGES).write_bytes((here / TRAINING_IMAGES).read_bytes()[:2000])
    error = refused(*INGESTION)
    assert TRAINING_IMAGES.name in error
    assert "truncated" in error
    assert "download it anew" in error


@pytest.mark.usefixtures("raw_files")
def test_a_file_that_was_truncated_before_it_was_packed_is_named(here: Path) -> None:
    (here / QUERY_IMAGES).write_bytes(gzip.compress(idx_bytes(IMAGES[:10])[:-1]))
    error = refused(*INGESTION)
    assert QUERY_IMAGES.name in error
    assert "truncated" in error


@pytest.mark.usefixtures("raw_files")
def test_swapped_files_are_told_from_each_other(here: Path) -> None:
    (here / TRAINING_IMAGES).write_bytes(gzip.compress(idx_bytes(LABELS)))
    (here / TRAINING_LABELS).write_bytes(gzip.compress(idx_bytes(IMAGES)))
    error = refused(*INGESTION)
    assert TRAINING_IMAGES.name in error
    assert "swapped" in error


@pytest.mark.usefixtures("raw_files")
def test_images_and_labels_of_different_number_are_counted(here: Path) -> None:
    (here / TRAINING_LABELS).write_bytes(gzip.compress(idx_bytes(LABELS[:-1])))
    error = refused(*INGESTION)
    assert "40 images" in error
    assert "39 labels" in error


# Files of images.


def paint(path: Path, grey: int, mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (40, 30), grey).convert(mode).save(path)


@pytest.fixture
def image_files(here: Path) -> Iterator[Path]:
    """Images of three classes and of many formats and modes."""
    kinds = [
        ("png", "RGB"),
        ("png", "P"),
        ("png", "LA"),
        ("jpg", "CMYK"),
        ("jpeg", "L"),
        ("webp", "RGBA"),
        ("bmp", "1"),
    ]
    folder = here / IMAGE_FILES
    grey = itertools.count(start=1, step=3)
    for split, count in (("train", 16), ("test", 4)):
        for name in ("emu", "owl", "wren"):
            for row in range(count):
                suffix, mode = kinds[row % len(kinds)]
                paint(folder / split / name / f"{row}.{suffix}", next(grey), mode)
    yield folder
    for made in (folder, here / "data/02_intermediate/images"):
        shutil.rmtree(made, ignore_errors=True)


def test_own_images_of_many_kinds_are_ingested(here: Path, image_files: Path) -> None:
    result = CliRunner().invoke(cli.run, OWN_IMAGES)
    assert result.exit_code == 0, result.output
    made = here / "data/02_intermediate/images"
    assert np.load(made / "training/images.npy").shape == (43, 3, 32, 32)
    assert np.load(made / "validation/images.npy").shape == (5, 3, 32, 32)
    assert np.load(made / "query/images.npy").shape == (12, 3, 32, 32)
    assert json.loads((made / "class_names.json").read_text()) == ["emu", "owl", "wren"]
    assert pd.read_csv(made / "quarantined_images.csv").columns.tolist() == ["split", "id", "reason"]
    assert (made / "decoded/training.npy").samefile(made / "training/images.npy")


def test_a_broken_image_is_left_out_and_listed(here: Path, image_files: Path) -> None:
    (image_files / "train/owl/3.jpg").write_bytes(b"")
    result = CliRunner().invoke(cli.run, (*OWN_IMAGES[:2], "--params=data_ingestion.broken_share_limit=0.02"))
    assert result.exit_code == 0, result.output
    made = here / "data/02_intermediate/images"
    listed = pd.read_csv(made / "quarantined_images.csv")
    assert listed["id"].tolist() == ["train/owl/3.jpg"]
    assert "cannot identify image file" in listed["reason"][0]
    ids = {split: json.loads((made / split / "ids.json").read_text()) for split in ("training", "validation", "query")}
    assert sum(map(len, ids.values())) == 59
    for split, of_split in ids.items():
        assert "train/owl/3.jpg" not in of_split
        assert len(np.load(made / split / "images.npy")) == len(np.load(made / split / "labels.npy")) == len(of_split)


def test_too_many_broken_images_stop_the_run(here: Path, image_files: Path) -> None:
    (image_files / "train/owl/3.jpg").write_bytes(b"")
    result = CliRunner().invoke(cli.run, OWN_IMAGES)
    assert result.exit_code == 1
    error = the_error(result.output)
    assert "train/owl/3.jpg" in error
    assert "broken_share_limit" in error
    assert not list((here / "data/02_intermediate/images").rglob("images.npy"))


@pytest.mark.usefixtures("here")
def test_without_images_the_error_says_where_to_put_them() -> None:
    error = refused(*OWN_IMAGES)
    assert f"put images into {Path.cwd() / IMAGE_FILES}/train/<class>/" in error


def remove_all_images(folder: Path) -> None:
    for path in (folder / "train").rglob("*.*"):
        path.unlink()


def leave_one_class(folder: Path) -> None:
    for path in folder.glob("*/*"):
        if path.name != "owl":
            shutil.rmtree(path)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (remove_all_images, "train holds no image: put PNG, JPEG, WebP or BMP files into"),
        (leave_one_class, "one class only, 'owl': retrieval needs two classes"),
        (lambda folder: paint(folder / "test/kiwi/0.png", 9), "class 'kiwi' is in the split 'query' but not in"),
        (lambda folder: paint(folder / "train/0.png", 9), "0.png lies in no class"),
    ],
)
def test_a_folder_that_cannot_be_used_is_told_why(image_files: Path, spoil: Callable[[Path], None], named: str) -> None:
    spoil(image_files)
    assert named in refused(*OWN_IMAGES)


def test_an_image_in_two_splits_is_told(image_files: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copy(image_files / "train/owl/0.png", image_files / "test/owl/copy.png")
    result = CliRunner().invoke(cli.run, OWN_IMAGES)
    assert result.exit_code == 0, result.output
    told = [record.getMessage() for record in caplog.records if "same pixels" in record.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("1 images have the same pixels")
    assert "train/owl/0.png" in told[0] and "test/owl/copy.png" in told[0]


# Fewer images than asked for, missing stages.


@pytest.mark.usefixtures("here")
def test_more_queries_than_images_are_refused() -> None:
    error = refused("--pipelines=data_ingestion", "--params=data_ingestion.query_count=5000")
    assert "query_count" in error
    assert "1797" in error


def test_fewer_images_than_one_batch_are_refused_with_the_key_to_change(here: Path) -> None:
    ingested = CliRunner().invoke(cli.run, ("--pipelines=data_ingestion", "--params=data_ingestion.query_count=1700"))
    assert ingested.exit_code == 0, ingested.output
    error = refused("--pipelines=cnn_pretraining", "--params=cnn_pretraining.training.batch_size=98")
    assert "97 training images" in error
    assert "batch_size" in error


def test_a_diverged_training_keeps_its_last_good_weights_apart(here: Path) -> None:
    ingested = CliRunner().invoke(cli.run, ("--pipelines=data_ingestion",))
    assert ingested.exit_code == 0, ingested.output
    diverging = "--params=cnn_pretraining.training.learning_rate=1e30,cnn_pretraining.training.epochs=2"
    result = CliRunner().invoke(cli.run, ("--pipelines=cnn_pretraining", diverging))
    assert result.exit_code == 1
    assert "lower `learning_rate`" in the_error(result.output)
    models = here / "data/06_models/digits"
    assert [path.name for path in models.rglob("*.safetensors")] == ["cnn_pretraining.safetensors"]
    assert (models / "last_good" / "cnn_pretraining.safetensors").is_file()


@pytest.mark.usefixtures("here")
def test_a_stage_without_the_one_before_it_names_the_file_and_what_makes_it() -> None:
    error = refused("--pipelines=hash_layer_init", "--env=mnist")
    assert "data/" in error
    assert "kedro run --pipelines=full" in error


# Parameters.


@pytest.mark.usefixtures("here", "without_nodes")
@pytest.mark.parametrize(
    ("parameter", "named"),
    [
        ("experiment.network=foo", ["experiment", "network", "lenet"]),
        ("experiment.seed=-1", ["experiment", "seed"]),
        ("experiment.colour=red", ["experiment", "colour"]),
        ("data_ingestion.query_count=0", ["data_ingestion", "query_count"]),
        ("data_ingestion.queries=10", ["data_ingestion", "queries"]),
        ("data_ingestion.validation_share=1.5", ["data_ingestion", "validation_share"]),
        ("data_ingestion.broken_share_limit=2", ["data_ingestion", "broken_share_limit"]),
        ("cnn_pretraining.training.epochs=0", ["cnn_pretraining", "training.epochs"]),
        ("cnn_pretraining.training.epoch=3", ["cnn_pretraining", "training.epoch"]),
        ("cnn_pretraining.augmentation.scale_range=2", ["cnn_pretraining", "augmentation.scale_range"]),
        ("hash_layer_init.training.learning_rate=-1", ["hash_layer_init", "training.learning_rate"]),
        ("hash_layer_init.training.learning_rates=1", ["hash_layer_init", "training.learning_rates"]),
        ("fine_tuning.fine_tuning.loss.temperature=0", ["fine_tuning.fine_tuning", "loss.exponentiated.temperature"]),
        ("fine_tuning.fine_tuning.loss.heat=1", ["fine_tuning.fine_tuning", "loss.exponentiated.heat"]),
        ("fine_tuning.csq.loss.quantisation_weight=-1", ["fine_tuning.csq", "loss.csq.quantisation_weight"]),
        ("fine_tuning.dpsh.loss.name=dsph", ["fine_tuning.dpsh", "loss", "dsph", "greedy_hash"]),
        ("fine_tuning.fine_tuning_faithful.hash_layer.scale=0", ["fine_tuning_faithful", "hash_layer.scale"]),
        ("fine_tuning.random_initialisation.training.schedule=cosine", ["random_initialisation", "training.schedule"]),
        ("baseline_hashing.itq.iterations=0", ["baseline_hashing", "iterations"]),
        ("baseline_hashing.lsh.center=true", ["baseline_hashing", "lsh.center"]),
        ("baseline_hashing.hamming.anchors=300", ["baseline_hashing", "hamming", *BASELINES]),
        ("reporting.gallery_queries=0", ["reporting", "gallery_queries"]),
        ("reporting.gallery_rows=3", ["reporting", "gallery_rows"]),
        ("experimnt.seed=3", ["experimnt", "experiment"]),
        ("fine_tuning.fine_tunning.training.epochs=3", ["fine_tuning.fine_tunning", "nothing reads it"]),
    ],
)
def test_a_wrong_parameter_is_named_before_the_first_node(parameter: str, named: list[str]) -> None:
    error = refused("--pipelines=full", f"--params={parameter}")
    assert all(word in error for word in named)


@pytest.mark.usefixtures("here", "without_nodes")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--pipelines=foo"], ["unknown pipeline `foo`", "full, full_at_32_bits"]),
        (["--pipelines=evaluation", "--namespaces=foo"], ["unknown namespace `foo`", "itq.b48"]),
        (["--env=foo"], ["conf/foo"]),
    ],
)
def test_a_pipeline_a_namespace_and_an_environment_that_are_not_there_are_named(
    arguments: list[str], named: list[str]
) -> None:
    error = refused(*arguments)
    assert all(word in error for word in named)


@pytest.mark.usefixtures("here")
def test_an_unknown_device_is_refused_with_those_there_are() -> None:
    error = refused("--pipelines=cnn_pretraining", "--params=experiment.device=tpu")
    assert "`tpu`" in error
    assert "cuda" in error


# Features and codes.


@pytest.mark.parametrize("method", BASELINES)
def test_features_that_are_not_numbers_are_counted(
    features: Callable[[NDArray[np.float32]], None], method: str
) -> None:
    z = np.random.default_rng(0).normal(size=(40, 60)).astype(np.float32)
    z[7, 3] = np.nan
    features(z)
    error = refused("--pipelines=baseline_hashing", f"--namespaces=baseline_hashing.{method}.b12")
    assert "NaN" in error
    assert "1 of 40 rows" in error


@pytest.mark.parametrize("method", ["pcah", "itq"])
def test_a_code_longer_than_its_features_can_carry_is_refused(
    features: Callable[[NDArray[np.float32]], None], method: str
) -> None:
    features(np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32))
    error = refused("--pipelines=baseline_hashing", f"--namespaces=baseline_hashing.{method}.b12")
    assert "code_length is 12" in error
    assert "8 directions" in error
    assert "shorten the code" in error


@pytest.mark.parametrize("code_length", [0, -1, 257, 300])
@pytest.mark.parametrize("method", HASH_FUNCTIONS)
def test_a_code_length_out_of_range_is_refused_in_one_line(method: str, code_length: int) -> None:
    with pytest.raises(InputError) as caught:
        HASH_FUNCTIONS[method](code_length)
    told = str(caught.value)
    assert str(code_length) in told
    assert "256" in told
    assert "\n" not in told
