"""Bad input stops a run with one line that names the input and the remedy, and leaves no file that looks finished."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.end_to_end.refused_runs import finished, refused, run, the_error

IMAGE_FILES = Path("data/01_raw/images")
OWN_IMAGES = ("--env=images", "--pipelines=data_ingestion")


# Files of images.


def paint(path, grey, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (40, 30), grey).convert(mode).save(path)


@pytest.fixture
def image_files(here):
    """Images of three classes and of many formats and modes."""
    kinds = ("png", "RGB"), ("png", "P"), ("png", "LA"), ("jpg", "CMYK"), ("jpeg", "L"), ("webp", "RGBA"), ("bmp", "1")
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


def test_own_images_of_many_kinds_are_ingested_and_a_broken_one_is_left_out_and_listed(here, image_files):
    (image_files / "train/owl/3.jpg").write_bytes(b"")
    finished(*OWN_IMAGES, "--params=data_ingestion.broken_share_limit=0.02")
    made = here / "data/02_intermediate/images"
    listed = pd.read_csv(made / "quarantined_images.csv")
    assert listed["id"].tolist() == ["train/owl/3.jpg"] and listed["split"][0] in ("training", "validation")
    assert "cannot identify image file" in listed["reason"][0]
    shapes = [np.load(made / split / "images.npy").shape for split in ("training", "validation", "query")]
    assert {shape[1:] for shape in shapes} == {(3, 48, 48)}
    assert (sum(shape[0] for shape in shapes), shapes[2][0]) == (59, 12)
    assert json.loads((made / "class_names.json").read_text()) == ["emu", "owl", "wren"]
    assert (made / "decoded/query.npy").samefile(made / "query/images.npy")


def test_too_many_broken_images_stop_the_run(here, image_files):
    (image_files / "train/owl/3.jpg").write_bytes(b"")
    result = run(*OWN_IMAGES)
    assert result.exit_code == 1
    error = the_error(result.output)
    assert "train/owl/3.jpg" in error
    assert "broken_share_limit" in error
    assert not list((here / "data/02_intermediate/images").rglob("images.npy"))


@pytest.mark.usefixtures("here")
def test_without_images_the_error_says_where_to_put_them():
    error = refused(*OWN_IMAGES)
    assert f"put images into {Path.cwd() / IMAGE_FILES}/train/<class>/" in error


# Stages.


def test_a_diverged_training_says_what_to_lower_and_replaces_no_network(here):
    finished("--pipelines=data_ingestion")
    diverging = "--params=cnn_pretraining.training.learning_rate=1e30,cnn_pretraining.training.epochs=2"
    result = run("--pipelines=cnn_pretraining", diverging)
    assert result.exit_code == 1
    assert "lower `learning_rate`" in the_error(result.output)
    assert not list((here / "data/06_models/digits").rglob("*.safetensors"))
