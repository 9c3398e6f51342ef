"""Stale situations and corruptions, drawn from the graph and from what lies in a project.

Each is one change to a project in which everything was up to date, and a later run that must not pass it over.
"""

import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kedro.framework.project import pipelines
from kedro.pipeline import Pipeline

from deephash_pipeline.project.freshness import Provenance
from deephash_pipeline.project.freshness.graph import WHERE_IT_RUNS, Catalog, ProjectGraph
from deephash_pipeline.provenance.manifest import describe, manifest_path, manifest_text

STAGES = (
    "cnn_pretraining",
    "feature_extraction",
    "baseline_hashing",
    "hash_layer_init",
    "fine_tuning",
    "evaluation",
    "reporting",
)
"""Pipelines that read what others have made, in their order."""


@dataclass(frozen=True)
class Situation:
    """A run that would read what is stale.

    Attributes:
        changed: the parameter, or the artefact, that is not what it was.
        stage: that is run later.
        value: of the parameter; None for an artefact, which is remade with other content.
    """

    changed: str
    stage: str
    value: Any = None


def begin(pipeline: Pipeline, catalog: Catalog, **run_params: Any) -> None:
    """Do what happens before the first node of a run, and end it."""
    hook = Provenance()
    hook.before_pipeline_run({"project_path": ".", "env": None, **run_params}, pipeline, catalog)
    hook.after_pipeline_run()


def ancestors(stage: Pipeline) -> Pipeline:
    """Give the nodes that make what a pipeline reads."""
    made_elsewhere = [name for name in stage.inputs() if name in pipelines["full"].all_outputs()]
    return pipelines["full"].to_outputs(*made_elsewhere)


def stale_situations(catalog: Catalog, draw: random.Random) -> Iterator[Situation]:
    """Draw situations: one parameter or one artefact above a later stage has changed."""
    while True:
        stage = draw.choice(STAGES)
        above = ancestors(pipelines[stage])
        if draw.random() < 0.3:
            read = set[str]().union(*(node.inputs for node in above.nodes))
            yield Situation(draw.choice(sorted(read & above.all_outputs())), stage)
            continue
        node = draw.choice(above.nodes)
        parameters = ProjectGraph(above.nodes, catalog).step(node).parameters
        names = sorted(name for name in parameters if name not in WHERE_IT_RUNS and not name.startswith("cells."))
        if names:
            name = draw.choice(names)
            yield Situation(name, stage, another(parameters[name], draw))


def another(value: Any, draw: random.Random) -> Any:
    """Give a value of the same kind that is not this one."""
    match value:
        case bool():
            return not value
        case int():
            return value + draw.randint(1, 9)
        case float():
            return value / 2 if value else 0.5
        case str():
            return f"not {value}"
        case None:
            return 1
        case _:
            return ["other"]


class Overridden:
    """A catalog in which one parameter has another value, whether or not a node would take it.

    Only what the check reads is served: datasets, and the parameters of nodes.
    """

    def __init__(self, catalog: Catalog, name: str, value: Any) -> None:
        self._catalog = catalog
        self._name = name
        self._value = value

    def get(self, name: str) -> Any:
        """Give a dataset."""
        return self._catalog.get(name)

    def load(self, name: str) -> Any:
        """Load parameters."""
        value = self._catalog.load(name)
        group = name.removeprefix("params:")
        if not f"{self._name}.".startswith(f"{group}."):
            return value
        value = value.model_dump(mode="json", serialize_as_any=True) if hasattr(value, "model_dump") else value
        return replaced(value, self._name.removeprefix(group).removeprefix("."), self._value)


def replaced(tree: Any, name: str, value: Any) -> Any:
    """Copy nested mappings with another value under a dotted name."""
    key, _, rest = name.partition(".")
    if not key:
        return value
    inner = tree.get(key, {}) if isinstance(tree, Mapping) else {}
    return {**(tree if isinstance(tree, Mapping) else {}), key: replaced(inner, rest, value)}


def remake(name: str, catalog: Catalog) -> Callable[[], None]:
    """Write an artefact anew, as its node would, with other content; return what puts the old one back."""
    graph = ProjectGraph([*pipelines["full"].nodes, *pipelines["descriptor_extraction"].nodes], catalog)
    step = graph.lineage.maker(name)
    assert step is not None, "only what a node makes is remade"
    path = graph.lineage.stored(name).path
    kept = {file: file.read_bytes() for file in (path, manifest_path(path))}
    path.write_bytes(path.read_bytes() + b"and more")
    origin = graph.lineage.origin(step, {"version": "0.1.0"}, "kedro run")
    manifest_path(path).write_text(manifest_text(describe(name, path, origin)))

    def restore() -> None:
        for file, content in kept.items():
            file.write_bytes(content)

    return restore


# Corruptions.


def flipped(bits: int) -> Callable[[Path, Path, random.Random], None]:
    def flip(path: Path, _other: Path, draw: random.Random) -> None:
        content = bytearray(path.read_bytes())
        for at in draw.sample(range(8 * len(content)), bits):
            content[at // 8] ^= 1 << at % 8
        path.write_bytes(content)

    return flip


def cut(path: Path, _other: Path, draw: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content))])


def emptied(path: Path, _other: Path, _draw: random.Random) -> None:
    path.write_bytes(b"")


def zeroed(path: Path, _other: Path, _draw: random.Random) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def exchanged(path: Path, other: Path, _draw: random.Random) -> None:
    shutil.copyfile(other, path)


def exchanged_with_manifest(path: Path, other: Path, _draw: random.Random) -> None:
    shutil.copyfile(other, path)
    shutil.copyfile(manifest_path(other), manifest_path(path))


def manifest_flipped(path: Path, other: Path, draw: random.Random) -> None:
    flipped(1)(manifest_path(path), other, draw)


def manifest_lost(path: Path, _other: Path, _draw: random.Random) -> None:
    manifest_path(path).unlink()


CORRUPTIONS: dict[str, Callable[[Path, Path, random.Random], None]] = {
    "one bit flipped": flipped(1),
    "three bits flipped": flipped(3),
    "cut": cut,
    "emptied": emptied,
    "zeroed": zeroed,
    "exchanged with another's": exchanged,
    "exchanged with another's, manifest and all": exchanged_with_manifest,
    "manifest with one bit flipped": manifest_flipped,
    "manifest lost": manifest_lost,
}
