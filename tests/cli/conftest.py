import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from kedro.framework.project import configure_project
from PIL import Image
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def command():
    """Run a command of `deephash-pipeline`; returns exit code and output, both streams."""
    configure_project("deephash_pipeline")
    from deephash_pipeline.cli.main import cli  # noqa: PLC0415 - wants a configured project

    def run(*arguments):
        return CliRunner(env={"COLUMNS": "200"}).invoke(cli, [str(argument) for argument in arguments])

    return run


def write_digits(folder, rows):
    """Digits as PNG files, a folder for each class."""
    digits = load_digits()
    for row in rows:
        path = folder / str(digits.target[row]) / f"{row:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.rint(digits.images[row] * 255 / 16).astype("uint8")).save(path)


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Sixty digits and a file that is no image; not to be changed."""
    folder = tmp_path_factory.mktemp("photos")
    write_digits(folder, range(60))
    (folder / "3" / "broken.png").write_bytes(b"no image")
    return folder


@pytest.fixture(scope="session")
def built(command, photos, tmp_path_factory):
    """An index of the photos; not to be changed."""
    folder = tmp_path_factory.mktemp("indexes") / "photos.index"
    result = command("index", "build", folder, "--hasher", "pretrained:digits-48", photos)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def index(built, tmp_path):
    """A copy of the index, to be changed."""
    return shutil.copytree(built, tmp_path / "copy.index")
