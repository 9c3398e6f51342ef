"""What is imported, and what is installed, is what somebody uses."""

import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packages import GUARD, INSTALLS, PROJECT, ROOT, with_what_they_require


def with_only(allowed, code):
    """Run code where no other package can be imported."""
    program = GUARD.format(allowed=allowed) + code
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)


REMEDY = rf"cannot be imported \(.*\): .*{INSTALLS}$"
LIBRARY = with_what_they_require(PROJECT["project"]["dependencies"])


def test_the_library_requires_no_kedro_no_tracking_and_no_service():
    assert not {"kedro", "kedro-viz", "kedro-datasets", "mlflow", "fastapi", "optuna", "plotly", "ray"} & LIBRARY


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import deephash_pipeline", set()),
        ("from deephash_pipeline.hamming import HammingIndex", {"numpy", "numba", "llvmlite"}),
        ("from deephash_pipeline.retrieval import mean_average_precision", {"numpy", "numba", "llvmlite"}),
        (
            "from deephash_pipeline import DeepHash, FeatureHash, ImageHasher\n"
            "from deephash_pipeline import hamming, hashing, losses, networks, photographs, retrieval, training\n"
            "from deephash_pipeline.losses import DPSH, ExponentiatedLoss\n"
            "import numpy\n"
            "hasher = ImageHasher.pretrained('digits-48', device='cpu')\n"
            "assert len(hasher.encode(numpy.zeros((2, 28, 28), numpy.uint8))) == 2",
            LIBRARY,
        ),
    ],
    ids=["package", "search", "retrieval", "library"],
)
def test_what_is_imported_needs_no_other_packages(code, allowed):
    finished = with_only({*allowed, "deephash-pipeline"}, code)
    assert finished.returncode == 0, finished.stderr


def test_vectors_are_built_and_served_with_the_packages_that_the_page_names(tmp_path):
    page = (ROOT / "docs" / "embeddings.md").read_text(encoding="utf-8")
    named = " ".join(re.findall(r"^\$ pip install (?!--)([^#]*)", page, re.MULTILINE)).split()
    code = f"""
import sys
import numpy, uvicorn
from deephash_pipeline.__main__ import main
from deephash_pipeline.embeddings import VectorIndex
numpy.save(r"{tmp_path}/z.npy", numpy.random.default_rng(0).normal(size=(300, 8)))
uvicorn.Server.run = lambda server, sockets: print("served")
sys.argv[1:] = ["serve", r"{tmp_path}/z.index", "--vectors", r"{tmp_path}/z.npy", "--port", "0"]
main()
"""
    finished = with_only(with_what_they_require(named), code)
    assert finished.stdout.splitlines()[-1:] == ["served"], finished.stderr


@pytest.mark.parametrize(("command", "extra"), [(["status"], "pipeline"), (["serve", "."], "serve")])
def test_a_command_without_its_extra_ends_in_one_line_with_the_remedy(command, extra):
    finished = with_only(
        LIBRARY, f"import sys; sys.argv[1:] = {command}\nfrom deephash_pipeline.__main__ import main; main()"
    )
    assert finished.returncode == 1
    assert re.search(REMEDY.format(extra), finished.stderr)


def test_folders_of_photographs_need_the_extra_photos_alone(tmp_path):
    photos = with_what_they_require(PROJECT["project"]["optional-dependencies"]["photos"])
    finished = with_only(
        LIBRARY | photos,
        f"""
import sys
sys.argv[1:] = ["index", "build", r"{tmp_path}/pictures.index", "nowhere"]
from deephash_pipeline.__main__ import main; main()
""",
    )
    assert finished.stderr.startswith("Error: nowhere is not there"), finished.stderr
    assert finished.returncode == 1


def test_a_module_without_its_extra_says_which():
    extras = dict.fromkeys(["reports", "tuning", "encoding", "images.descriptors.sift_bag"], "pipeline")
    extras["service"] = "serve"
    tried = f"""
import importlib
from deephash_pipeline.common.errors import InputError
for name in {list(extras)}:
    try:
        importlib.import_module("deephash_pipeline." + name)
    except InputError as error:
        print(error)
"""
    said = with_only(LIBRARY, tried).stdout.splitlines()
    for line, extra in zip(said, extras.values(), strict=True):
        assert re.search(REMEDY.format(extra), line)


def test_the_package_is_imported_at_once():
    code = "import time; start = time.process_time(); import deephash_pipeline; print(time.process_time() - start)"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(finished.stdout) < 0.5


def test_the_lock_pins_what_the_project_names_and_says_where_from_of_nothing():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert not re.search(r"://|\bindex\b", lock)
    locked = set(re.findall(r"^([a-z0-9-]+)==\S+ .*\\\n +--hash=sha256:[0-9a-f]{64}", lock, re.MULTILINE))
    named = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    named += [text for extra in PROJECT["project"]["optional-dependencies"].values() for text in extra]
    named += [text for group in PROJECT["dependency-groups"].values() for text in group if isinstance(text, str)]
    assert {canonicalize_name(Requirement(text).name) for text in named} - locked == {"deephash-pipeline"}


def test_every_target_of_the_makefile_installs_a_group_that_there_is():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    stamps = set(re.findall(r"^[\w-]+: \$\(VENV\)/(\w+)$", makefile, re.MULTILINE))
    assert {"test", "lint", "all"} <= stamps
    assert stamps - {"installed"} <= set(PROJECT["dependency-groups"])
