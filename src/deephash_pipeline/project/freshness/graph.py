"""Nodes and catalog of Kedro as the graph of a `Lineage`."""

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, get_type_hints

from kedro.framework.project import pipelines
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from pydantic import BaseModel, ValidationError

from deephash_pipeline.common.devices import resolve_device, resolve_precision
from deephash_pipeline.project.datasets import (
    CheckpointsDataset,
    EncoderDataset,
    FilesDataset,
    HasherDataset,
    ImageSourceDataset,
    IndexDataset,
)
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset, fetched
from deephash_pipeline.provenance.artefacts import FoundFiles, Source, StoredFile
from deephash_pipeline.provenance.digests import file_digest
from deephash_pipeline.provenance.lineage import Artefact, Kind, Lineage, State, Step
from deephash_pipeline.provenance.sources import sources

Catalog = CatalogProtocol[Any, Any]

WHERE_IT_RUNS = "experiment.device"
"""A parameter that says where something is computed, not what."""

EXPERIMENT, AUTO = "params:experiment", "auto"
PRECISION = ".training.precision"
"""How the names of parameters end that may be ``auto`` and change what is computed."""

FILES = ("experiment.trunk.weights",)
"""Parameters that name a file whose content counts, wherever it lies."""

BENCHMARK_FILE = "class_names"
"""A dataset that lies directly in the folder of the benchmark: data/02_intermediate/<benchmark>."""


class ProjectGraph:
    """The nodes of some pipelines as the steps of a `Lineage`.

    Args:
        nodes: nodes of the graph. What others make is a source.
        catalog: catalog with the parameters of this run.

    Attributes:
        nodes: all of them, each once.
        artefact: gives what is stored under a name; None for what is only passed on in memory.
        lineage: their steps and artefacts.
    """

    def __init__(self, nodes: Iterable[Node], catalog: Catalog) -> None:
        self._catalog = catalog
        self.nodes = list({(node.name, tuple(node.inputs), tuple(node.outputs)): node for node in nodes}.values())
        self._makers = {output: node for node in reversed(self.nodes) for output in node.outputs}
        self.artefact = cache(self._find_artefact)
        self._parameter = cache(self._read_parameter)
        self._dataset = cache(catalog.get)
        self._steps = {self._key(node): self._as_step(node) for node in self.nodes}
        self.lineage = Lineage(self._steps.values(), self.artefact)

    def step(self, node: Node) -> Step:
        """Give the step that a node is."""
        return self._steps[self._key(node)]

    def resolved(self, node: Node) -> dict[str, str]:
        """Say what parameters of a node that are ``auto`` come to in this process, where it runs."""
        found = [
            name for name, value in self.step(node).parameters.items() if name.endswith(PRECISION) and value == AUTO
        ]
        if not found:
            return {}
        experiment = self._parameter(EXPERIMENT, None)
        return dict.fromkeys(found, resolve_precision(AUTO, resolve_device(experiment.get("device", AUTO))))

    @cached_property
    def benchmark_folder(self) -> Path | None:
        """``data/02_intermediate/<benchmark>``; None in an object store, or a catalog that is not this project's."""
        dataset = self._dataset(BENCHMARK_FILE)
        if not isinstance(dataset, AtomicFileDataset) or dataset.remote:
            return None
        return dataset.filepath.parent

    def benchmark_folders(self) -> list[Path]:
        """Give the folders of the benchmark in all layers."""
        folder = self.benchmark_folder
        return [] if folder is None else sorted(folder.parents[1].glob(f"*/{folder.name}"))

    @staticmethod
    def _key(node: Node) -> tuple[str, frozenset[str]]:
        return node.name, frozenset(node.inputs)

    def _as_step(self, node: Node) -> Step:
        def read_parameters() -> dict[str, Any]:
            nodes = self.with_what_only_memory_has(node)
            return self._received({name: model for each in nodes for name, model in parameter_models(each).items()})

        return Step(
            node.name,
            tuple(node.outputs),
            lambda: self._stored_inputs(node),
            read_parameters,
            lambda: sources(*self._code(node)),
        )

    def _stored_inputs(self, node: Node) -> tuple[str, ...]:
        names = dict.fromkeys(name for each in self.with_what_only_memory_has(node) for name in each.inputs)
        return tuple(name for name in names if not is_parameter(name) and self.artefact(name) is not None)

    def _code(self, node: Node) -> tuple[set[Callable[..., Any]], set[str]]:
        """Give the functions that make a step's outputs, and the names by which parameters choose among others."""
        functions: set[Callable[..., Any]] = set()
        keys = {value for value in self.step(node).parameters.values() if isinstance(value, str)}
        for each in self.with_what_only_memory_has(node):
            functions |= set(getattr(each.func, "functions", [each.func]))
        for name in self.step(node).inputs:
            dataset = self._dataset(name)
            if isinstance(dataset, ImageSourceDataset):
                functions.add(type(dataset.source))
            elif isinstance(dataset, EncoderDataset | HasherDataset) and name in self._makers:
                # What it does is in the code that made it, and the same file may be made by other code.
                of_maker, keys_of_maker = self._code(self._makers[name])
                functions, keys = functions | of_maker, keys | keys_of_maker
        return functions, keys

    def with_what_only_memory_has(self, node: Node) -> Iterator[Node]:
        """Yield a node, and those before it whose outputs are not stored: together they are one step."""
        yield node
        for name in node.inputs:
            if name in self._makers and self.artefact(name) is None and not self._is_checkpoints(name):
                yield from self.with_what_only_memory_has(self._makers[name])

    def _is_checkpoints(self, name: str) -> bool:
        return isinstance(self._dataset(name), CheckpointsDataset)

    def _find_artefact(self, name: str) -> Artefact | None:
        dataset = self._dataset(name)
        if isinstance(dataset, AtomicFileDataset):
            path = dataset.filepath
            if dataset.remote:
                return StoredFile(path, fetch=partial(fetched, dataset.remote))
            if name in self._makers:
                return StoredFile(path, check=dataset.check if isinstance(dataset, IndexDataset) else None)
            return Source(path, lambda: file_digest(path) if path.is_file() else None)
        if isinstance(dataset, FilesDataset) and dataset.tracked:
            return FoundFiles(dataset.folder, dataset.files, self._name_of_file)
        if isinstance(dataset, ImageSourceDataset):
            return Source(dataset.folder, dataset.digest)
        return None

    def _name_of_file(self, path: Path) -> tuple[str | None, bool]:
        """Name the dataset that a file is here, or would be if it were of this benchmark; and say whether it is."""
        if path in self._names:
            return self._names[path], True
        folder = self.benchmark_folder
        if folder is not None:
            with suppress(ValueError):
                layer, _benchmark, *rest = path.relative_to(folder.parents[1]).parts
                return self._names.get(folder.parents[1].joinpath(layer, folder.name, *rest)), False
        return None, False

    @cached_property
    def _names(self) -> dict[Path, str]:
        found = ((name, self.artefact(name)) for name in self._makers)
        return {artefact.path: name for name, artefact in found if isinstance(artefact, StoredFile)}

    def _received(self, models: Mapping[str, type[BaseModel] | None]) -> dict[str, Any]:
        """Flatten the parameters that a node receives; of a group with a block for each method, its own block."""
        values = {name.removeprefix("params:"): self._parameter(name, model) for name, model in models.items()}
        methods = {
            value["method"]
            for value in values.values()
            if isinstance(value, dict) and {"method", "code_length"} <= set(value)
        }
        received: dict[str, Any] = {}
        for name, value in sorted(values.items()):
            own = methods & value.keys() if isinstance(value, dict) else set()
            received |= flatten(name, {method: value[method] for method in own} if own else value)
        for name in (name for name in FILES if received.get(name)):
            # A run is refused whose file is not there; here it may be looked at all the same.
            with suppress(OSError, TypeError):
                received[name] = file_digest(Path(received[name]))
        return {name: value for name, value in received.items() if name != WHERE_IT_RUNS}

    def _read_parameter(self, name: str, model: type[BaseModel] | None) -> Any:
        value = self._catalog.load(name)
        if model is not None and not isinstance(value, BaseModel):
            # Kedro gives their types, and with them the defaults, to the parameters of the pipeline that runs alone.
            with suppress(ValidationError):
                value = model.model_validate(value)
        if isinstance(value, BaseModel):
            # Methods' own fields count, not only those that all methods share.
            value = value.model_dump(mode="json", serialize_as_any=True)
        return json.loads(json.dumps(value, default=str))


def nodes_to_run(pipeline: Pipeline, catalog: Catalog, stale_allowed: bool = False) -> list[str]:
    """Name the nodes whose outputs are missing, damaged, or not what the nodes would make now.

    Args:
        pipeline: one that makes all it needs, such as ``full``.
        catalog: catalog with the parameters of this run.
        stale_allowed: whether what is stale or without a manifest stays as it is.

    Returns:
        Names of nodes, in the order of the graph; empty if everything is up to date.
    """
    graph = ProjectGraph(pipeline.nodes, catalog)
    waiting = set(_steps_to_run(graph, stale_allowed))
    needed = {
        each.name for node in pipeline.nodes if node.name in waiting for each in graph.with_what_only_memory_has(node)
    }
    return [node.name for node in pipeline.nodes if node.name in needed]


def is_up_to_date(graph: ProjectGraph, stale_allowed: bool = False) -> bool:
    """Say whether `nodes_to_run` would name none; it ends at the first."""
    return next(_steps_to_run(graph, stale_allowed), None) is None


def _steps_to_run(graph: ProjectGraph, stale_allowed: bool) -> Iterator[str]:
    return graph.lineage.steps_to_run((Kind.FRESH, Kind.STALE, Kind.UNRECORDED) if stale_allowed else (Kind.FRESH,))


def states(pipeline: Pipeline, catalog: Catalog) -> dict[str, State]:
    """Say of every stored output of a pipeline what it is like, in the order of the graph."""
    graph = ProjectGraph(with_those_before(pipeline, catalog), catalog)
    names = (name for node in pipeline.nodes for name in node.outputs)
    return {name: graph.lineage.state(name) for name in names if graph.artefact(name) is not None}


def with_those_before(pipeline: Pipeline, catalog: Catalog) -> list[Node]:
    """Give the nodes of a pipeline, and those of others as far as something that is read is made there.

    Most runs need ``full`` at most, and that is made in a tenth of the time that all pipelines take.
    """
    nodes = list(pipeline.nodes)
    for name in sorted(pipelines, key=lambda name: name != "full"):
        made = {output for node in nodes for output in node.outputs}
        read = {dataset for node in nodes for dataset in node.inputs if not is_parameter(dataset)}
        if not any(_is_made_elsewhere(catalog.get(dataset)) for dataset in read - made):
            break
        nodes += pipelines[name].nodes
    return nodes


def _is_made_elsewhere(dataset: Any) -> bool:
    if isinstance(dataset, FilesDataset):
        return any(dataset.files())
    return isinstance(dataset, AtomicFileDataset)


def parameter_models(node: Node) -> dict[str, type[BaseModel] | None]:
    """Give for each parameter that a node receives the pydantic model that its function expects, if it does."""
    hints = get_type_hints(node.func)
    inputs = node._inputs
    if isinstance(inputs, dict):
        arguments = [(argument, name) for argument, name in inputs.items()]
    else:
        names = [inputs] if isinstance(inputs, str) else inputs or []
        known = list(inspect.signature(node.func).parameters)
        arguments = [(known[min(at, len(known) - 1)], name) for at, name in enumerate(names)]
    expected = {name: hints.get(argument) for argument, name in arguments if is_parameter(name)}
    return {
        name: model if isinstance(model, type) and issubclass(model, BaseModel) else None
        for name, model in expected.items()
    }


def flatten(name: str, value: Any) -> dict[str, Any]:
    """Turn nested mappings and models into dotted names and values."""
    value = value.model_dump(serialize_as_any=True) if isinstance(value, BaseModel) else value
    if not isinstance(value, Mapping) or (name and not value):
        return {name: value}
    flat: dict[str, Any] = {}
    for key, part in value.items():
        flat |= flatten(f"{name}.{key}" if name else str(key), part)
    return flat


def is_parameter(name: str) -> bool:
    """Say whether an input of a node is no artefact but a parameter."""
    return name == "parameters" or name.startswith("params:")
