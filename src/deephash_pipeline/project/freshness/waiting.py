"""Which nodes of a pipeline have something to do."""

from collections.abc import Iterator

from kedro.framework.project import pipelines
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.project.datasets import FilesDataset
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.freshness.graph import Catalog, ProjectGraph
from deephash_pipeline.project.parameters import is_parameter
from deephash_pipeline.provenance.states import Kind, State


def nodes_to_run(pipeline: Pipeline, catalog: Catalog, stale_allowed: bool = False) -> list[str]:
    """Name the nodes whose outputs are missing, damaged, or not what the nodes would make now.

    Args:
        pipeline: one that makes all it needs, such as ``full``.
        catalog: catalog with the parameters of this run.
        stale_allowed: whether what is stale or without a manifest stays as it is.

    Returns:
        Names of nodes, in the order of the graph; empty if everything is up to date.
    """
    return [node.name for node in waiting_nodes(ProjectGraph(pipeline.nodes, catalog), stale_allowed)]


def waiting_nodes(graph: ProjectGraph, stale_allowed: bool = False) -> Iterator[Node]:
    """Yield the nodes with stored outputs that are not up to date, see `nodes_to_run`."""
    accepted = (Kind.FRESH, Kind.STALE, Kind.UNRECORDED) if stale_allowed else (Kind.FRESH,)
    for node in graph.nodes:
        if any(graph.state(output).kind not in accepted for output in graph.stored(node.outputs)):
            yield node


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
