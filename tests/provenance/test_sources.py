"""What makes an artefact includes the code that its node reaches: that, all of that, and nothing else."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deephash_pipeline.pipelines.data_ingestion.nodes import split_images
from deephash_pipeline.pipelines.fine_tuning.nodes import tune
from deephash_pipeline.pipelines.shared.encoding import encode_z
from deephash_pipeline.provenance import sources as provenance_sources
from deephash_pipeline.provenance.sources import sources

NODE = '''"""A node."""

from toy.maths import double


def node(number: int) -> int:
    """Double it."""
    return double(number)  # twice
'''
MODULES = {
    "__init__.py": "from toy.unrelated import nothing\n",
    "node.py": NODE,
    "maths/__init__.py": "from .doubling import double\n",
    "maths/doubling.py": "def double(number):\n    from toy import constants\n\n    return constants.TWO * number\n",
    "constants.py": "TWO = 2\n",
    "unrelated.py": "nothing = None\n",
    "errors.py": "",
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of which a node reaches a part."""
    for name, text in MODULES.items():
        (tmp_path / "toy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "toy" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "toy"
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
        del sys.modules[name]
    forget()


def forget() -> None:
    for cached in ("_closure", "_read", "_file", "_root"):
        getattr(sys.modules["deephash_pipeline.provenance.sources"], cached).cache_clear()


def reached() -> dict[str, str]:
    forget()
    node: Callable[..., int] = importlib.import_module("toy.node").node
    return sources(node)


def test_it_follows_imports_into_packages_and_functions_and_not_beyond(toy: Path) -> None:
    assert toy.is_dir()
    assert sorted(reached()) == ["toy.constants", "toy.maths", "toy.maths.doubling", "toy.node"]


@pytest.mark.parametrize("module", ["constants.py", "maths/__init__.py", "maths/doubling.py", "node.py"])
def test_a_changed_line_changes_the_digest_of_its_module_alone(toy: Path, module: str) -> None:
    before = reached()
    path = toy / module
    path.write_text(path.read_text() + "\nanother = 3\n")
    after = reached()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {f"toy.{module.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # twice", ""),
        ("# twice", "# two times"),
        ('"""Double it."""', '"""Double\n\n    the number.\n    """'),
        ('"""A node."""\n\n', ""),
        ("\n\n\n", "\n\n\n\n\n"),
    ],
)
def test_comments_docstrings_and_empty_lines_do_not_count(toy: Path, old: str, new: str) -> None:
    before = reached()
    assert old in NODE
    (toy / "node.py").write_text(NODE.replace(old, new))
    assert reached() == before


@pytest.mark.parametrize("text", ['x = """text"""\n', "x = '# no comment'\n", "def f():\n    x = 1; 'text'\n"])
def test_strings_that_are_no_docstrings_count(toy: Path, text: str) -> None:
    (toy / "constants.py").write_text("TWO = 2\n" + text)
    before = reached()
    (toy / "constants.py").write_text("TWO = 2\n" + text.replace("text", "other").replace("no comment", "other"))
    assert reached()["toy.constants"] != before["toy.constants"]


def test_an_unrelated_change_makes_nothing_stale(toy: Path) -> None:
    before = reached()
    (toy / "unrelated.py").write_text("nothing = 1\n")
    (toy / "__init__.py").write_text("from toy.unrelated import nothing as something\n")
    assert reached() == before


def test_training_reaches_its_losses_and_ingestion_no_code_of_training() -> None:
    losses = {name for name in sources(tune) if name.startswith("deephash_pipeline.losses.")}
    assert {"deephash_pipeline.losses.dpsh", "deephash_pipeline.losses.hashnet"} <= losses
    packages = {name.split(".")[1] for name in sources(split_images)}
    assert not {"losses", "training", "networks", "deephash", "hashing"} & packages
    assert "deephash_pipeline.training.loop" not in sources(encode_z)


def test_no_node_reaches_what_only_records_and_reports() -> None:
    for function in (split_images, encode_z, tune):
        assert not [name for name in sources(function) if "provenance" in name or "tracking" in name or "hook" in name]
    assert provenance_sources is sources
