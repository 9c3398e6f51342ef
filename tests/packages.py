"""Which packages others require, and Python as it is where no others are installed."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# How a command ends that installs an extra: from the clone, whether by pip or by uv.
INSTALLS = rf"pip install '{re.escape(str(ROOT))}\[{{}}\]'"

# Refuses to import what belongs to a package that is not allowed, as where it is not installed.
GUARD = """
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
"""


def with_what_they_require(requirements):
    """Names of packages, with those that they require as they are installed here."""
    found = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        for extra in ("", *requirement.extras):
            key = (canonicalize_name(requirement.name), extra)
            if key in found:
                continue
            found.add(key)
            try:
                texts = distribution(requirement.name).requires or []
            except PackageNotFoundError:
                continue
            asked = map(Requirement, texts)
            waiting += [each for each in asked if each.marker is None or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in found} | {"deephash-pipeline"}
