"""The service computed by ONNX Runtime runs with the packages of its image, and with no others."""

import re
import subprocess
import sys

import httpx
import pytest

from deephash_pipeline import ImageHasher
from deephash_pipeline.deephash.export import export_onnx
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.service.answering import bits_of
from tests.packages import GUARD, PROJECT, ROOT, with_what_they_require
from tests.service.pictures import TOKEN, WRITER, picture

INSTALLED = with_what_they_require(PROJECT["dependency-groups"]["serving"])
SERVE = """
from deephash_pipeline.__main__ import main
sys.argv = ["deephash-pipeline", *sys.argv[1:]]
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An index of one picture, the model of its hasher, and a token."""
    folder = tmp_path_factory.mktemp("served")
    with ImageIndex.create(folder / "new.index", ImageHasher.pretrained("digits-48", device="cpu")) as index:
        export_onnx(ImageHasher.load(folder / "new.index" / "hasher.safetensors"), folder / "new.index" / "hasher.onnx")
        (folder / "zero.png").write_bytes(picture(0))
        index.add(["zero"], [folder / "zero.png"], [str(folder / "zero.png")], ["0"])
    (folder / "token").write_text(TOKEN)
    return folder


@pytest.fixture(scope="module")
def address(folder):
    program = GUARD.format(allowed=INSTALLED) + SERVE
    command = [sys.executable, "-c", program, "serve", "new.index", "--runtime=onnx", "--port=0", "--token-file=token"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        # What ends before it serves prints why.
        first = process.stdout.readline()
        served = re.match(r"(http://127\.0\.0\.1:\d+)/ ", first)
        assert served, first + process.stdout.read()
        yield served.group(1)
        process.terminate()
        # `communicate` would lose what the buffer of `readline` holds already.
        said = process.stdout.read()
    assert "new.index was made by PyTorch" in said and "Traceback" not in said


def test_it_searches_adds_and_shows_with_the_codes_of_pytorch(address, folder):
    hasher = ImageHasher.load(folder / "new.index" / "hasher.safetensors", device="cpu")
    (folder / "seven.png").write_bytes(picture(7))
    with httpx.Client(base_url=address, headers=WRITER, timeout=120) as client:
        added = client.post("/v1/items", files={"image": picture(7)}, data={"id": "seven", "label": "7"})
        assert added.status_code == 201, added.text
        found = client.post("/v1/search", files={"image": picture(7)}, data={"k": "2"}).json()
        assert found["results"][0]["id"] == "seven"
        assert found["query"]["code"] == bits_of(hasher.encode(folder / "seven.png")[0], 48)
        assert client.get("/v1/items/seven/thumbnail").status_code == 200
        assert client.get("/healthz").json() == {"status": "ok", "items": 2, "images": 2}


def test_the_image_has_no_pytorch():
    assert not {"torch", "kedro", "mlflow", "pandas", "scikit-learn"} & INSTALLED


def test_the_image_is_made_of_files_that_are_there_and_lets_its_user_do_no_more_than_serve():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    instructions = re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for name, words in instructions:
        if name == "COPY" and not words.startswith("--from"):
            *sources, _ = words.split()
            assert all((ROOT / source).exists() and f"!{source}" in ignored for source in sources)
    assert [words for name, words in instructions if name == "USER"] == ["1000"]
    assert "--constraints /tmp/requirements.lock --group /tmp/pyproject.toml:serving" in text
    assert text.count("uv pip install") == text.count("--compile-bytecode")
    from deephash_pipeline.cli.serve import serve  # noqa: PLC0415 - the command whose options are named

    known = {option for parameter in serve.params for option in parameter.opts}
    assert set(re.findall(r'"(--[a-z-]+)"', text.rpartition("CMD")[2])) <= known
