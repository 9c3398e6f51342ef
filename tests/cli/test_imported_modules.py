"""What a command imports before it does anything: modules are counted, since seconds depend on the machine."""

import subprocess
import sys

import pytest
from PIL import Image

from deephash_pipeline.cli.commands import COMMANDS

# What the module of each takes by itself: a second, or 50 MB, or more.
LIBRARIES = (
    *("torch", "sklearn", "pandas", "kedro", "mlflow", "numba", "numpy", "pydantic", "onnxruntime", "timm", "PIL"),
    "scipy.linalg",
)
COMMAND = f"""
import atexit, sys
atexit.register(lambda: print("\\nMODULES", len(sys.modules), *(name for name in {LIBRARIES} if name in sys.modules)))
from deephash_pipeline.__main__ import main
main()
"""


@pytest.fixture
def imported(tmp_path):
    """Give a command in an empty folder: its output, the number of modules, and those of `LIBRARIES`."""

    def run(*arguments):
        Image.new("L", (8, 8)).save(tmp_path / "a.png")
        words = [sys.executable, "-c", COMMAND, *map(str, arguments)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
        said, _, counted = done.stdout.rpartition("MODULES ")
        count, *names = counted.split()
        return said + done.stderr, int(count), set(names)

    return run


def test_help_imports_no_command(imported):
    said, count, libraries = imported("--help")
    assert all(f"\n  {name} " in said and command.summary in said for name, command in COMMANDS.items())
    assert max(map(len, said.splitlines())) <= 80
    assert libraries == set() and count < 250


def test_the_table_of_methods_imports_none_of_them(imported):
    said, count, libraries = imported("methods")
    assert "\nitq " in said
    assert libraries <= {"pydantic"} and count < 400


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not command.in_project])
def test_a_command_outside_projects_imports_no_kedro_for_its_help(imported, name):
    said, _, libraries = imported(name, "--help")
    assert said.startswith("Usage: deephash-pipeline")
    assert not libraries & {"torch", "sklearn", "pandas", "kedro", "mlflow", "timm"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("search nowhere.index a.jpg", "a.jpg is not there"),
        ("search nowhere.index --id a", "nowhere.index"),
        ("search nowhere.index a.jpg --nearest 3", "No such option"),
        ("search nowhere.index --vectors a.npy", "nowhere.index is no index of vectors"),
        ("index build a.index nowhere", "nowhere is not there"),
        ("index build a.index nowhere --bits 7", "--bits 7"),
        ("index build a.index a.png --hasher none", "no hasher `none`"),
        ("index build a.index --vectors none.npy", "none.npy"),
        ("index add a.index nowhere", "nowhere is not there"),
        ("index remove a.index a", "a.index"),
        ("index info a.index", "a.index"),
        ("index refit a.index", "a.index"),
        ("duplicates nowhere", "nowhere is not there"),
        ("duplicates . --keep-from nowhere", "--keep-from nowhere is no folder"),
        ("pairs a.index --radius 1", "a.index"),
        ("serve a.index", "a.index"),
        ("serve a.index --allowed-host http://a", "--allowed-host http://a"),
        ("encode none . -o codes", "no hasher `none`"),
        ("export a.index --to postgres postgresql://nobody", "a.index"),
        ("export-onnx none -o a.onnx", "no hasher `none`"),
        ("indices", "No such command"),
    ],
)
def test_what_is_wrong_is_said_before_libraries_are_loaded(imported, arguments, named):
    said, _, libraries = imported(*arguments.split())
    assert named in said and "Traceback" not in said
    assert not libraries & {"torch", "sklearn", "pandas", "kedro", "mlflow", "timm"}


def test_a_search_imports_neither_kedro_nor_pytorch(imported, tmp_path):
    import numpy as np  # noqa: PLC0415

    from deephash_pipeline.embeddings import VectorIndex  # noqa: PLC0415

    vectors = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    np.save(tmp_path / "a.npy", vectors[:2])
    VectorIndex.build(tmp_path / "a.index", vectors, code_length=16).close()
    for query in (("--id", 3), ("--vectors", "a.npy")):
        said, _, libraries = imported("search", "a.index", *query)
        assert "recall@10" in said, said
        assert not libraries & {"torch", "kedro", "mlflow", "timm", "onnxruntime", "sklearn", "pandas"}
        # What a search of images needs, and what numba looks for by itself.
        assert not libraries & {"PIL", "scipy.linalg"}


def test_a_search_by_features_and_a_service_import_no_pytorch(imported, tmp_path):
    from deephash_pipeline import ImageHasher  # noqa: PLC0415
    from deephash_pipeline.deephash.export import export_onnx  # noqa: PLC0415
    from deephash_pipeline.photographs import ImageIndex, add_files, list_images  # noqa: PLC0415

    Image.linear_gradient("L").save(tmp_path / "b.png")
    with ImageIndex.create(tmp_path / "a.index", ImageHasher.pretrained("digits-48"), features=True) as images:
        add_files(images, list_images([tmp_path / "b.png"])[0])
        export_onnx(images.hasher, tmp_path / "a.index" / "hasher.onnx")
    for arguments in ("search a.index b.png", "index info a.index"):
        said, _, libraries = imported(*arguments.split())
        assert "b.png" in said or "images" in said, said
        assert not libraries & {"torch", "kedro", "mlflow", "timm"}
    # What is taken for a port ends it after all has been loaded.
    said, _, libraries = imported("serve", "a.index", "--port", "1", "--host", "203.0.113.1")
    assert "nobody can listen" in said
    assert not libraries & {"torch", "pandas", "kedro", "mlflow", "timm"}


def test_a_second_look_for_copies_imports_no_pytorch(imported, tmp_path, monkeypatch):
    import numpy as np  # noqa: PLC0415

    from deephash_pipeline import ImageHasher  # noqa: PLC0415
    from deephash_pipeline.deephash import FeatureExtractor  # noqa: PLC0415
    from deephash_pipeline.photographs import ImageIndex, add_files, list_images  # noqa: PLC0415
    from deephash_pipeline.photographs.duplicates import find_duplicates  # noqa: PLC0415

    hasher = ImageHasher.pretrained("digits-48", device="cpu")
    monkeypatch.setattr(FeatureExtractor, "pretrained", lambda **options: hasher.extractor)
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (96, 96), dtype=np.uint8))
    noise.save(tmp_path / "b.png")
    noise.save(tmp_path / "c.png", compress_level=1)
    files = list_images([tmp_path / "b.png", tmp_path / "c.png"])[0]
    with ImageIndex.create(tmp_path / "a.index", hasher, features=True) as images:
        add_files(images, files)
        [group] = find_duplicates(files, index=images).groups
    said, _, libraries = imported("duplicates", "b.png", "c.png", "--index", "a.index")
    assert all(f"{member.action} " in said and member.reason in said for member in group.members), said
    # Nor does the index have a model of ONNX.
    assert not libraries & {"torch", "onnxruntime", "kedro", "mlflow", "timm"}
