"""Stale situations and corruptions, drawn from the graph and from what lies in a project.

Each is one change to a project in which everything was up to date, and a later run that must not pass it over.
"""

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kedro.framework.project import pipelines

from deephash_pipeline.cli.provenance import joined_pipelines
from deephash_pipeline.cli.run import WHOLE_PIPELINES, selection, within_stages
from deephash_pipeline.project.freshness import Provenance, nodes_to_run
from deephash_pipeline.project.freshness.graph import WHERE_IT_RUNS, ProjectGraph
from deephash_pipeline.provenance.manifest import manifest_path, manifest_text
from tests.provenance.conftest import make_up

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


def begin(pipeline, catalog, policy=None, **run_params):
    """Do what happens before the first node of a run, and end it."""
    hook = Provenance(policy)
    hook.before_pipeline_run({"project_path": ".", "env": None, **run_params}, pipeline, catalog)
    hook.after_pipeline_run()
    return hook


def ancestors(stage):
    """Give the nodes that make what a pipeline reads."""
    made_elsewhere = [name for name in stage.inputs() if name in pipelines["full"].all_outputs()]
    return pipelines["full"].to_outputs(*made_elsewhere)


def stale_situations(catalog, draw):
    """Draw situations: one parameter or one artefact above a later stage has changed."""
    while True:
        stage = draw.choice(STAGES)
        above = ancestors(pipelines[stage])
        if draw.random() < 0.3:
            read = set[str]().union(*(node.inputs for node in above.nodes))
            yield Situation(draw.choice(sorted(read & above.all_outputs())), stage)
            continue
        node = draw.choice(above.nodes)
        parameters = ProjectGraph(above.nodes, catalog)._parameters(node)
        names = sorted(name for name in parameters if name not in WHERE_IT_RUNS and not name.startswith("cells."))
        if names:
            name = draw.choice(names)
            yield Situation(name, stage, another(parameters[name], draw))


def another(value, draw):
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

    def __init__(self, catalog, name, value):
        self._catalog = catalog
        self._name = name
        self._value = value

    def get(self, name):
        """Give a dataset."""
        return self._catalog.get(name)

    def load(self, name):
        """Load parameters."""
        value = self._catalog.load(name)
        group = name.removeprefix("params:")
        if not f"{self._name}.".startswith(f"{group}."):
            return value
        value = value.model_dump(mode="json", serialize_as_any=True) if hasattr(value, "model_dump") else value
        return replaced(value, self._name.removeprefix(group).removeprefix("."), self._value)


def replaced(tree, name, value):
    """Copy nested mappings with another value under a dotted name."""
    key, _, rest = name.partition(".")
    if not key:
        return value
    inner = tree.get(key, {}) if isinstance(tree, Mapping) else {}
    return {**(tree if isinstance(tree, Mapping) else {}), key: replaced(inner, rest, value)}


def remake(name, catalog):
    """Write an artefact anew, as its node would, with other content; return what puts the old one back."""
    graph = ProjectGraph([*pipelines["full"].nodes, *pipelines["descriptor_extraction"].nodes], catalog)
    path = graph.path(name)
    kept = {file: file.read_bytes() for file in (path, manifest_path(path))}
    path.write_bytes(path.read_bytes() + b"and more")
    origin = graph.origin(graph._makers[name], {"version": "0.1.0"}, "kedro run")
    manifest_path(path).write_text(manifest_text(name, path, origin))

    def restore():
        for file, content in kept.items():
            file.write_bytes(content)

    return restore


# Corruptions.


def flipped(bits):
    def flip(path, _other, draw):
        content = bytearray(path.read_bytes())
        for at in draw.sample(range(8 * len(content)), bits):
            content[at // 8] ^= 1 << at % 8
        path.write_bytes(content)

    return flip


def cut(path, _other, draw):
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content))])


def emptied(path, _other, _draw):
    path.write_bytes(b"")


def zeroed(path, _other, _draw):
    path.write_bytes(bytes(path.stat().st_size))


def exchanged(path, other, _draw):
    shutil.copyfile(other, path)


def exchanged_with_manifest(path, other, _draw):
    shutil.copyfile(other, path)
    shutil.copyfile(manifest_path(other), manifest_path(path))


def manifest_flipped(path, other, draw):
    flipped(1)(manifest_path(path), other, draw)


def manifest_lost(path, _other, _draw):
    manifest_path(path).unlink()


CORRUPTIONS = {
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


def carried_out(message, project, catalog):
    """Make up what the command in a message would make; return the names of its nodes."""
    words = shlex.split(re.search(r"`kedro run ([^`]*)`", message)[1])
    options = {name.lstrip("-").replace("-", "_"): value for name, _, value in (word.partition("=") for word in words)}
    names = options["pipelines"].split(",")
    pipeline = joined_pipelines(names)
    chosen = {name: options[name].split(",") for name in ("namespaces", "to_outputs") if name in options}
    chosen["namespaces"] = within_stages(chosen.get("namespaces", []), pipeline)
    selected = selection(chosen, pipeline)
    waiting = nodes_to_run(selected, catalog, whole=set(names) <= WHOLE_PIPELINES and not any(chosen.values()))
    made = selected.only_nodes(*waiting)
    begin(made, catalog)
    make_up(project, made, catalog)
    return set(waiting)
