"""What makes an artefact includes the code that its node reaches: that, all of that, and nothing else."""

import sys

import pytest

from deephash_pipeline.deephash.fine_tune import fine_tune
from deephash_pipeline.pipelines.data_ingestion.nodes import split_images
from deephash_pipeline.pipelines.shared.fitting import encode_z
from deephash_pipeline.pipelines.shared.measuring import measure_retrieval
from deephash_pipeline.provenance.sources import sources

NODE = '''"""A node."""

from toy.maths import double
from toy.common.registry import Registry

WORDS = "# no comment"
UNUSED = 0
TABLE = Registry({"two": ".constants:TWO", "many": ".constants:MANY"}, __package__)


class Shown:
    """A method."""

    display_name = "Node"

    def call(self, number: int) -> int:
        """Double it."""
        return double(number)  # twice


def node(number: int) -> int:
    """Double it."""
    print(WORDS)
    return Shown().call(number) + TABLE[number]
'''
MODULES = {
    "__init__.py": "from toy.unrelated import nothing\n",
    "node.py": NODE,
    "common/registry.py": "Registry = dict\n",
    "maths/__init__.py": "from .doubling import double\nfrom .unused import triple\n",
    "maths/doubling.py": "def double(number):\n    from toy import constants\n\n    return constants.TWO * number\n",
    "maths/unused.py": "triple = None\n",
    "constants.py": "TWO = 2\nMANY = 7\nCLASS = 1\n",
    "unrelated.py": "nothing = None\n",
    "common/errors.py": "",
}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package of which a node reaches a part."""
    for name, text in MODULES.items():
        (tmp_path / "toy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "toy" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.print", lambda *words: None)
    (tmp_path / "toy" / "called.py").write_text("def node(number: int) -> int:\n    return 0\n")
    yield tmp_path / "toy"
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
        del sys.modules[name]
    forget()


def forget():
    for cached in ("_closure", "_digests", "_definition", "table_entries", "read_module", "_file", "_root"):
        getattr(sys.modules["deephash_pipeline.provenance.sources"], cached).cache_clear()


def node_of_toy(number):
    raise NotImplementedError


def reached(*keys, module="node"):
    """Digest what the node reaches; its module is never imported, so that tests may write what they like there."""
    forget()
    node = node_of_toy
    node.__module__, node.__qualname__ = f"toy.{module}", "node"
    return sources([node], keys)


def changed(toy, module, old, new, *keys):
    """Name the modules whose digest differs after a change."""
    before, path = reached(*keys), toy / module
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    after = reached(*keys)
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def test_it_follows_names_into_packages_and_functions_and_not_beyond(toy):
    assert toy.is_dir()
    assert sorted(reached()) == ["toy.constants", "toy.maths.doubling", "toy.node"]


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("constants.py", "TWO = 2", "TWO = 3"),
        ("maths/doubling.py", "* number", "+ number"),
        ("node.py", "double(number)", "double(-number)"),
        ("node.py", "# no comment", "# another"),
    ],
)
def test_a_change_of_what_is_reached_changes_the_digest_of_its_module_alone(toy, module, old, new):
    assert changed(toy, module, old, new) == {f"toy.{module.removesuffix('.py').replace('/', '.')}"}


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("node.py", "  # twice", ""),
        ("node.py", '"""Double it."""', '"""Double\n\n    the number.\n    """'),
        ("node.py", "double(number)", "double(\n            number,\n        )"),
        ("node.py", "node(number: int) -> int", "node(number: float) -> float"),
        ("node.py", 'WORDS = "', 'WORDS: str = "'),
        ("node.py", 'display_name = "Node"', 'display_name = "Better node"'),
        ("node.py", "UNUSED = 0", "UNUSED = 1"),
        ("node.py", "UNUSED = 0", ""),
        ("node.py", '"many":', '"more": ".constants:CLASS", "many":'),
        ("constants.py", "MANY = 7", "MANY = 8"),
        ("maths/unused.py", "None", "1"),
        ("unrelated.py", "None", "1"),
        ("common/registry.py", "dict", "list"),
        ("__init__.py", "import nothing", "import nothing as something"),
    ],
)
def test_what_changes_no_result_does_not_count(toy, module, old, new):
    assert changed(toy, module, old, new) == set()


def test_of_a_table_the_entries_count_that_parameters_name(toy):
    assert reached("many") != reached() == reached("nothing of it")
    assert changed(toy, "constants.py", "MANY = 7", "MANY = 8", "many") == {"toy.constants"}
    assert changed(toy, "node.py", "TABLE[number]", 'TABLE["many"]') == {"toy.constants", "toy.node"}


WAYS = {
    "an attribute of a module": "import toy.constants\ndef node():\n    return toy.constants.CLASS\n",
    "another name of a module": "import toy.constants as c\ndef node():\n    return c.CLASS\n",
    "a relative import": "from .constants import CLASS as given\ndef node():\n    return given\n",
    "any attribute of a module": "from toy import constants\ndef node(name):\n    return getattr(constants, name)\n",
    "a default": "from toy.constants import CLASS\ndef node(number=CLASS):\n    return number\n",
    "an annotation": "from toy.constants import CLASS\ndef node(number: CLASS):\n    return number\n",
    "a quoted annotation": "from toy.constants import CLASS\ndef node(number: 'list[CLASS]'):\n    return number\n",
    "a decorator": "from toy.constants import CLASS\n@CLASS\ndef node():\n    pass\n",
    "a base class": "from toy.constants import CLASS\nclass A(CLASS): pass\ndef node():\n    return A\n",
    "a condition": "try:\n    from toy.constants import CLASS as a\nexcept ImportError:\n    a = 0\n"
    "def node():\n    return a\n",
    "a change in place": "from toy.constants import CLASS\na = {}\na['x'] = CLASS\ndef node():\n    return a\n",
    "an overload": "from f import f\n@f\ndef g(): ...\n@g.register\ndef _():\n    from toy.constants import CLASS\n"
    "    return CLASS\ndef node():\n    return g()\n",
    "what numba puts in the place of a function": "from numba import extending\nfrom toy.constants import CLASS\n"
    "def g(): ...\n@extending.overload(g, inline='always')\ndef _g():\n    return lambda: CLASS\n"
    "def node():\n    return g()\n",
    "what numba puts in the place of another library's": "from numba.extending import overload\n"
    "from toy.constants import CLASS\nimport math\n@overload(math.floor)\ndef _floor(x):\n    return lambda x: CLASS\n"
    "def node():\n    return math.floor(1)\n",
    "a function that numba compiles": "import numba\nfrom toy.constants import CLASS\n"
    "@numba.extending.register_jitable\ndef g():\n    return CLASS\n@numba.cfunc('i8()')\ndef h():\n    return g()\n"
    "def node():\n    return h.address\n",
    "a module by its name": "from importlib import import_module\n"
    "def node():\n    return import_module('toy.constants').CLASS\n",
    "any name of a package that hands it on": "from toy import handing\n"
    "def node(name):\n    return getattr(handing, name)\n",
    "a call when it is imported": "from toy.constants import CLASS\nprint(CLASS)\ndef node():\n    return 1\n",
    "all names of a module": "from toy.constants import *\ndef node():\n    return CLASS\n",
    "one name of two modules": "def node():\n    from toy.constants import CLASS as a\n    return a\n"
    "def other():\n    from toy.unrelated import nothing as a\n    return a\n",
    "what a package finds late": "from toy.late import found\ndef node():\n    return found\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_way_the_code_takes_a_change_is_noticed(toy, way):
    (toy / "late.py").write_text("def __getattr__(name):\n    from toy.constants import CLASS\n    return CLASS\n")
    (toy / "handing.py").write_text("from toy.constants import CLASS\n")
    (toy / "node.py").write_text(WAYS[way])
    assert changed(toy, "constants.py", "CLASS = 1", "CLASS = 2") == {"toy.constants"}


@pytest.mark.parametrize("changed_file", ["page.html.j2", "style.css", "table.csv"])
def test_the_content_of_a_file_counts_that_is_named_in_code_or_in_such_a_file(toy, changed_file):
    (toy / "below").mkdir()
    for name in ("page.html.j2", "style.css", "table.csv", "unnamed.csv"):
        (toy / "below" / name).write_text("{% include 'style.css' %}\n" if ".j2" in name else "1\n")
    (toy / "node.py").write_text("def node():\n    return ['page.html.j2', 'below/table.csv']\n")
    before = reached()
    (toy / "below" / "unnamed.csv").write_text("2\n")
    assert reached() == before
    with (toy / "below" / changed_file).open("a") as file:
        file.write("2\n")
    assert reached() != before


def test_training_reaches_the_loss_that_it_names_and_ingestion_no_code_of_training():
    losses = {name for name in sources([fine_tune], {"dpsh"}) if name.startswith("deephash_pipeline.losses.")}
    assert "deephash_pipeline.losses.dpsh" in losses
    assert not losses & {"deephash_pipeline.losses.hashnet", "deephash_pipeline.losses.csq"}
    packages = {name.split(".")[1] for name in sources([split_images])}
    assert not {"losses", "training", "networks", "deephash", "hashing"} & packages
    for function in (encode_z, measure_retrieval):
        assert not {name.split(".")[1] for name in sources([function])} & {"training", "losses", "networks", "deephash"}


def test_no_node_reaches_what_only_records_and_reports():
    for name in sources([split_images, encode_z, fine_tune]):
        assert not any(word in name for word in ("provenance", "tracking", "hook"))
