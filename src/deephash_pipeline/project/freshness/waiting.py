"""Which nodes of a pipeline have something to do."""

from collections.abc import Collection, Iterable

from kedro.framework.project import pipelines
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.project.datasets import FilesDataset
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.freshness.graph import Catalog, ProjectGraph
from deephash_pipeline.project.parameters import is_parameter
from deephash_pipeline.provenance.states import State, StateKind


def nodes_to_run(pipeline: Pipeline, catalog: Catalog, stale_allowed: bool = False, whole: bool = True) -> list[str]:
    """Name the nodes whose outputs are missing, damaged, or not what the nodes would make now.

    Args:
        pipeline: a pipeline, or some nodes of one.
        catalog: catalog with the parameters of this run.
        stale_allowed: whether what is stale or without a manifest may be read; of a whole pipeline it then stays.
        whole: whether the pipeline makes all it needs, such as ``full``.

    Returns:
        Names of nodes, in the order of the graph; empty if everything is up to date.
    """
    graph = ProjectGraph(pipeline.nodes if whole or stale_allowed else with_those_before(pipeline, catalog), catalog)
    accepted = (
        (StateKind.FRESH, StateKind.STALE, StateKind.UNRECORDED) if whole and stale_allowed else (StateKind.FRESH,)
    )
    return [node.name for node in waiting_nodes(graph, pipeline.nodes, accepted)]


def waiting_nodes(
    graph: ProjectGraph, nodes: Iterable[Node], accepted: Collection[StateKind] = (StateKind.FRESH,)
) -> list[Node]:
    """Give the nodes with outputs that are not of an accepted kind, or of which that cannot be said."""
    return [
        node
        for node in nodes
        if len(outputs := graph.stored(node.outputs)) < len(node.outputs)
        or any(graph.state(output).kind not in accepted for output in outputs)
    ]


def states(pipeline: Pipeline, catalog: Catalog) -> dict[str, State]:
    """Say of every stored output of a pipeline what it is like, in the order of the graph."""
    graph = ProjectGraph(with_those_before(pipeline, catalog), catalog)
    return {name: graph.state(name) for node in pipeline.nodes for name in graph.stored(node.outputs)}


def with_those_before(pipeline: Pipeline, catalog: Catalog) -> list[Node]:
    """Give the nodes of a pipeline, and those of others as far as something that is read is made there.

    Most runs need ``full`` at most, and that is made in a tenth of the time that all pipelines take.
    """
    nodes = list(pipeline.nodes)
    for name in sorted(pipelines, key=lambda name: name != "full"):
        made = {output for node in nodes for output in node.outputs}
        read = {dataset for node in nodes for dataset in node.inputs if not is_parameter(dataset)}
        found = map(catalog.get, read - made)
        if not any(it.names() if isinstance(it, FilesDataset) else isinstance(it, AtomicFileDataset) for it in found):
            break
        nodes += pipelines[name].nodes
    return nodes
