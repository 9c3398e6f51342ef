"""The command that makes what is stale or missing, and nothing else."""

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kedro.framework.project import pipelines
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.common.parameters import flatten
from deephash_pipeline.pipelines.names import FIELD
from deephash_pipeline.project.freshness.graph import Catalog, ProjectGraph
from deephash_pipeline.project.freshness.waiting import waiting_nodes
from deephash_pipeline.project.replicate import REPLICATE


def mending_command(
    names: Sequence[str], pipeline: Pipeline, catalog: Catalog, run_params: Mapping[str, Any], conf_source: str | None
) -> str:
    """Name a run that makes some datasets, what they wait for, and at most what the run at hand would make besides.

    Args:
        names: datasets that are stale, damaged or missing.
        pipeline: nodes of the run at hand.
        catalog: catalog with the parameters of that run.
        run_params: options of that run, as Kedro's hooks get them.
        conf_source: folder of its configuration; None for the project's.
    """
    made_by = _maker_of(names, run_params)
    narrowed = _narrowest(pipelines[made_by], names, pipeline, catalog)
    return _command(made_by, narrowed, run_params, conf_source)


def mending_commands_of_seeds(
    others: Iterable[tuple[str, int]], run_params: Mapping[str, Any], conf_source: str | None
) -> Iterator[str]:
    """Yield for each seed a run that makes some datasets by it.

    Args:
        others: names of datasets, each with the number of its seed.
        run_params: options of the run at hand, as Kedro's hooks get them.
        conf_source: folder of its configuration; None for the project's.
    """
    by_seed: dict[int, list[str]] = {}
    for name, replicate in others:
        by_seed.setdefault(replicate, []).append(name)
    for replicate, names in sorted(by_seed.items()):
        parameters = {**(run_params.get("runtime_params") or {}), REPLICATE: replicate}
        narrowed = {"to-outputs": ",".join(sorted(names))}
        yield _command(
            _maker_of(names, run_params), narrowed, {**run_params, "runtime_params": parameters}, conf_source
        )


def _maker_of(names: Collection[str], run_params: Mapping[str, Any]) -> str:
    """Name a pipeline that makes all of some datasets, ``full`` if it does, or if none does."""
    own = run_params.get("pipeline_names") or ()
    order = [name for name in ("full", *own, FIELD, *pipelines) if name in pipelines]
    return next((name for name in order if {*names} <= pipelines[name].all_outputs()), "full")


def _command(pipeline: str, narrowed: Mapping[str, str], run_params: Mapping[str, Any], conf_source: str | None) -> str:
    options = {
        "pipelines": pipeline,
        **narrowed,
        "env": run_params.get("env"),
        "conf-source": conf_source,
        "params": _written(run_params.get("runtime_params") or {}),
    }
    return shlex.join(["kedro", "run", *(f"--{name}={value}" for name, value in options.items() if value)])


def _narrowest(maker: Pipeline, names: Sequence[str], at_hand: Pipeline, catalog: Catalog) -> dict[str, str]:
    """Choose the shortest options that select what is needed of a pipeline: none, methods, cells, or the datasets."""
    known = sorted({*names} & maker.all_outputs())
    if not known:
        return {}
    graph = ProjectGraph(maker.nodes, catalog)
    needed = _names(waiting_nodes(graph, maker.to_outputs(*known).nodes))
    allowed = needed | _names(at_hand.nodes)
    for depth in (0, 1, 2):
        namespaces = sorted({".".join(name.split(".")[:depth]) for name in known})
        selected = [node for node in maker.nodes if depth == 0 or _is_of(node, namespaces)]
        if needed <= _names(selected) and _names(waiting_nodes(graph, selected)) <= allowed:
            return {"namespaces": ",".join(namespaces)} if depth else {}
    return {"to-outputs": ",".join(known)}


def _names(nodes: Iterable[Node]) -> set[str]:
    return {node.name for node in nodes}


def _is_of(node: Node, namespaces: Collection[str]) -> bool:
    """Say whether a node is of a method or a cell, in whichever stage."""
    _, _, within = (node.namespace or "").partition(".")
    return any(f"{within}.".startswith(f"{namespace}.") for namespace in namespaces)


def _written(parameters: Mapping[str, Any]) -> str:
    """Write parameters as Kedro reads them: null and true, not None and True."""
    values = flatten("", parameters).items()
    return ",".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value, default=str)}" for name, value in values
    )
