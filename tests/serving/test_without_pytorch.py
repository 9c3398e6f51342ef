"""The service computed by ONNX Runtime runs with the packages of its image, and with no others."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

from deephash_pipeline import ImageHasher
from deephash_pipeline.export import export_onnx
from deephash_pipeline.image_index import ImageIndex
from deephash_pipeline.serving.answering import bits_of
from tests.serving.pictures import TOKEN, WRITER, picture

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements-serving.lock"

# Refuses to import what belongs to a package that is not in the lock, as where it is not installed.
GUARDED = """
import sys
from importlib.metadata import packages_distributions
from importlib.abc import MetaPathFinder

ALLOWED = {allowed!r}
PACKAGES = packages_distributions().items()
OWNERS = {{name: {{owner.lower().replace("_", "-") for owner in owners}} for name, owners in PACKAGES}}

class Guard(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        owners = OWNERS.get(name.partition(".")[0])
        if owners and not owners & ALLOWED:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Guard())
from deephash_pipeline.__main__ import main
sys.argv = ["deephash-pipeline", *sys.argv[1:]]
main()
"""


def locked() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)==", LOCK.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of one picture, the model of its hasher, and a token."""
    folder = tmp_path_factory.mktemp("served")
    with ImageIndex.create(folder / "new.index", ImageHasher.pretrained("digits-48", device="cpu")) as index:
        export_onnx(ImageHasher.load(folder / "new.index" / "hasher.safetensors"), folder / "new.index" / "hasher.onnx")
        (folder / "zero.png").write_bytes(picture(0))
        index.add(["zero"], [folder / "zero.png"], [str(folder / "zero.png")], ["0"])
    (folder / "token").write_text(TOKEN)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    program = GUARDED.format(allowed={*locked(), "deephash-pipeline"})
    command = [sys.executable, "-c", program, "serve", "new.index", "--runtime=onnx", "--port=0", "--token-file=token"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    # What ends before it serves prints why.
    first = process.stdout.readline()
    served = re.match(r"(http://127\.0\.0\.1:\d+)/ ", first)
    assert served, first + process.communicate(timeout=60)[0]
    yield served.group(1)
    process.terminate()
    assert "Traceback" not in process.communicate(timeout=60)[0]


def test_it_searches_adds_and_shows_with_the_codes_of_pytorch(address: str, folder: Path) -> None:
    hasher = ImageHasher.load(folder / "new.index" / "hasher.safetensors", device="cpu")
    (folder / "seven.png").write_bytes(picture(7))
    with httpx.Client(base_url=address, headers=WRITER, timeout=120) as client:
        added = client.post("/v1/items", files={"image": picture(7)}, data={"id": "seven", "label": "7"})
        assert added.status_code == 201, added.text
        found = client.post("/v1/search", files={"image": picture(7)}, data={"k": "2"}).json()
        assert found["results"][0]["id"] == "seven"
        assert found["query"]["code"] == bits_of(hasher.encode(folder / "seven.png")[0], 48)
        assert client.get("/v1/items/seven/thumbnail").status_code == 200
        assert client.get("/healthz").json() == {"status": "ok", "images": 2}


def test_the_lock_has_what_the_group_of_the_project_names_and_no_pytorch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = {Requirement(text).name for text in project["dependency-groups"]["serving"]}
    assert named <= locked()
    assert not {"torch", "kedro", "mlflow", "pandas", "scikit-learn"} & locked()


def test_the_image_is_made_of_files_that_are_there_and_lets_its_user_do_no_more_than_serve() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    instructions = re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for name, words in instructions:
        if name == "COPY" and not words.startswith("--from"):
            *sources, _ = words.split()
            assert all((ROOT / source).exists() and f"!{source}" in ignored for source in sources)
    assert [words for name, words in instructions if name == "USER"] == ["1000"]
    assert "--require-hashes -r /tmp/requirements-serving.lock" in text
    from deephash_pipeline.commands.serve import serve  # noqa: PLC0415 - the command whose options are named

    known = {option for parameter in serve.params for option in parameter.opts}
    assert set(re.findall(r'"(--[a-z-]+)"', text.rpartition("CMD")[2])) <= known
