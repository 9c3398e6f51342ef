"""Kedro-Viz, made light: a pipeline is laid out when it is looked at, in a time that grows with its nodes alone.

By itself it lays out all registered pipelines before it listens, and for each namespace makes two pipelines of all
nodes: minutes, where there are thousands.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence, Set
from typing import Any

import pandas as pd
from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from kedro.io import DataCatalog
from kedro.pipeline import Node, Pipeline
from kedro_viz.api import apps
from kedro_viz.api.rest.responses import save_responses
from kedro_viz.data_access import DataAccessManager, data_access_manager
from kedro_viz.data_access.repositories import CatalogRepository, ModularPipelinesRepository
from kedro_viz.models.flowchart.named_entities import RegisteredPipeline
from kedro_viz.models.metadata import NodeExtras
from kedro_viz.services import layers_services

from deephash_pipeline.pipelines.names import FULL_AT_A_GLANCE
from deephash_pipeline.project.tracking.description import stored_file


class LateLayout(DataAccessManager):  # type: ignore[misc]
    """What Kedro-Viz shows; it opens with `FULL_AT_A_GLANCE`, for with more code lengths the codes hide the stages."""

    catalog: CatalogRepository
    _waiting: dict[str, Pipeline]

    def add_catalog(self, catalog: Any, pipelines: dict[str, Pipeline]) -> None:
        """Take the catalog; datasets are looked up as they are shown."""
        self.catalog.set_catalog(catalog)

    def add_pipelines(self, pipelines: dict[str, Pipeline]) -> None:
        """Take the names of the pipelines."""
        self._waiting = dict(pipelines)
        for name in pipelines:
            self.registered_pipelines.add_pipeline(name)

    def lay_out_all(self) -> None:
        """Lay out what has not been looked at."""
        for name in list(self._waiting):
            self.create_modular_pipelines_tree_for_registered_pipeline(name)

    def get_default_selected_pipeline(self) -> RegisteredPipeline:
        """Give the pipeline that the page opens with."""
        shown = self.registered_pipelines.get_pipeline_by_id(FULL_AT_A_GLANCE)
        return shown or super().get_default_selected_pipeline()

    def create_modular_pipelines_tree_for_registered_pipeline(self, registered_pipeline_id: str = "__default__") -> Any:
        """Lay out a pipeline, the first thing that is asked of it."""
        if (pipeline := self._waiting.pop(registered_pipeline_id, None)) is not None:
            self.modular_pipelines[registered_pipeline_id] = Namespaces()
            self.resolve_dataset_factory_patterns(self.catalog.get_catalog(), {registered_pipeline_id: pipeline})
            # One that looks for layers again, for datasets were looked up just now.
            catalog = self.catalog.get_catalog()
            self.catalog = CatalogRepository()
            self.catalog.set_catalog(catalog)
            self.node_extras |= statistics(catalog, pipeline)
            self.add_pipeline(registered_pipeline_id, pipeline)
        return super().create_modular_pipelines_tree_for_registered_pipeline(registered_pipeline_id)

    def get_sorted_layers_for_registered_pipeline(self, registered_pipeline_id: str = "__default__") -> Any:
        """Give the layers of one pipeline, without those of others that are laid out."""
        nodes = {node.id: node for node in self.get_nodes_for_registered_pipeline(registered_pipeline_id)}
        return layers_services.sort_layers(nodes, self.node_dependencies[registered_pipeline_id])


def statistics(catalog: DataCatalog, pipeline: Pipeline) -> dict[str, NodeExtras]:
    """Give the size of each file that a pipeline reads or makes, and the rows and columns of tables.

    From the files themselves: what Kedro-Viz's own hook notes are tables that the process of a run has seen.
    """
    found = {}
    for name in pipeline.datasets():
        if (file := stored_file(catalog, name)) is not None:
            stats = {"file_size": file.stat().st_size}
            if file.suffix == ".csv":
                table = pd.read_csv(file)
                stats = {"rows": len(table), "columns": table.shape[1], **stats}
            found[name] = NodeExtras.create_node_extras(stats=stats, styles=None)
    return found


class Namespaces(ModularPipelinesRepository):  # type: ignore[misc]
    """The tree of namespaces of one pipeline."""

    def populate_tree(self, pipeline: Pipeline) -> None:
        """Note what each namespace reads, makes and holds."""
        super().populate_tree(NamespaceParts(pipeline))


class NamespaceParts:
    """A pipeline as its parts by namespace are asked for, each looked up in place of made.

    Args:
        pipeline: the pipeline.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.nodes = pipeline.nodes
        self._readers = Counter(name for node in self.nodes for name in node.inputs)
        self._inside = defaultdict(list)
        for node in self.nodes:
            parts = (node.namespace or "").split(".")
            for depth in range(1, len(parts) + 1):
                self._inside[".".join(parts[:depth])].append(node)

    def only_nodes_with_namespaces(self, namespaces: Sequence[str]) -> "NamespacePart":
        """Give the part with one namespace."""
        return NamespacePart(self._inside[namespaces[0]])

    def __sub__(self, part: "NamespacePart") -> "NamespacePart":
        """Give what reads of the rest."""
        return NamespacePart([], {name for name, readers in self._readers.items() if readers > part.reads[name]})


class NamespacePart:
    """Some nodes of a pipeline, or what the rest of it reads."""

    def __init__(self, nodes: Sequence[Node], read: Set[str] = frozenset()) -> None:
        self.nodes = nodes
        self.reads = Counter(name for node in nodes for name in node.inputs)
        self._read = read or self.reads.keys() - self.all_outputs()

    def inputs(self) -> Set[str]:
        """Name what is read and not made."""
        return set(self._read)

    def outputs(self) -> set[str]:
        """Name what is made and not read."""
        return self.all_outputs() - self.reads.keys()

    def all_outputs(self) -> set[str]:
        """Name what is made."""
        return {name for node in self.nodes for name in node.outputs}


def lay_out_late() -> None:
    """Have Kedro-Viz in this process lay pipelines out late, and open on the stages alone.

    What is written to files, by ``kedro viz build`` and ``kedro viz run --save-file``, is all of them.

    With the datasets between them the page shows a hundred nodes, at a fifth of their size. A click on a stage unfolds
    it, and the filter on the left brings the datasets back.
    """
    if isinstance(data_access_manager, LateLayout):
        return
    # Private: every module of Kedro-Viz has imported this one object.
    data_access_manager.__class__ = LateLayout
    save_nodes, create_app = save_responses.save_api_node_response_to_fs, apps.create_api_app_from_project

    def save_all_nodes(*arguments: Any) -> None:
        data_access_manager.lay_out_all()
        save_nodes(*arguments)

    # Private: there is no hook before Kedro-Viz writes files.
    save_responses.save_api_node_response_to_fs = save_all_nodes

    def create_app_that_opens_on_stages(*arguments: Any, **options: Any) -> FastAPI:
        app: FastAPI = create_app(*arguments, **options)

        @app.middleware("http")
        async def open_on_stages(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
            if request.url.path == "/" and not request.url.query:
                shown = data_access_manager.get_default_selected_pipeline().id
                return RedirectResponse(f"/?pid={shown}&types=nodes&expandAllPipelines=false")
            return await call_next(request)

        return app

    # Private: nor one that gives the page an address to begin with.
    apps.create_api_app_from_project = create_app_that_opens_on_stages
