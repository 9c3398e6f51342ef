"""Nodes and catalog of Kedro as what makes artefacts: which are what this code, these parameters and inputs make.

Each artefact has a recipe: a digest of the parameters and the code of its node, of how its files are read and written,
and of the recipes of its inputs, up to the raw images. It is fresh if the recipe in its manifest is the one that the
graph comes to now.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

from kedro.io import CatalogProtocol
from kedro.pipeline.node import Node
from kedro.validation.type_extractor import TypeExtractor
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from deephash_pipeline.common.devices import resolve_device, resolve_precision
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import flatten
from deephash_pipeline.project.datasets import FilesDataset, ImageSourceDataset
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.parameters import is_parameter
from deephash_pipeline.project.replicate import NUMBER_OF_SEED, of_any_seed
from deephash_pipeline.provenance.code import platform_version
from deephash_pipeline.provenance.digests import file_digest, text_digest
from deephash_pipeline.provenance.manifest import DamagedError, Manifest, Origin, read_manifest
from deephash_pipeline.provenance.sources import sources
from deephash_pipeline.provenance.states import AUTO, State, StateKind, first_changed_parameter

Catalog = CatalogProtocol[Any, Any]

WHERE_IT_RUNS = "experiment.device"
"""A parameter that says where something is computed, not what."""

EXPERIMENT = "params:experiment"
PRECISION = ".training.precision"
"""How the names of parameters end that may be ``auto`` and change what is computed."""

WEIGHTS_PARAMETER = "experiment.trunk.weights"
"""A parameter that names a file whose content counts, wherever it lies."""

BENCHMARK_FILE = "class_names"
"""A dataset that lies directly in the folder of the benchmark: data/02_intermediate/<benchmark>."""


class ProjectGraph:
    """The nodes of some pipelines, and the state of all that they make.

    Files that are found by a pattern are artefacts of their own, such as ``references/pq_reference.json``: the name of
    what finds them, and their path below its folder.

    Args:
        nodes: nodes of the graph. What others make is a source. Where several make the same artefact, the first counts.
        catalog: catalog with the parameters of this run.

    Attributes:
        nodes: all of them, each once.
        catalog: as given.
        state: says by name what an artefact is like.
        code: digests the code that a node reaches.
    """

    def __init__(self, nodes: Iterable[Node], catalog: Catalog) -> None:
        self.nodes = list(dict.fromkeys(nodes))
        self.catalog = catalog
        self._makers = {output: node for node in reversed(self.nodes) for output in node.outputs}
        self.state, self.code, self._form = cache(self._state), cache(self._code), cache(self._find_form)
        self._dataset, self._parameter = cache(self._find_dataset), cache(self._read_parameter)
        self._parameters, self._expected = cache(self._read_parameters), cache(self._expect)

    @cached_property
    def benchmark_folder(self) -> Path | None:
        """``data/02_intermediate/<benchmark>``; None in an object store, or a catalog that is not this project's."""
        dataset = self._dataset(BENCHMARK_FILE)
        is_here = isinstance(dataset, AtomicFileDataset) and not dataset.remote
        return dataset.filepath.parent if is_here else None

    def stored(self, names: Iterable[str]) -> list[str]:
        """Name the artefacts among some datasets: what is stored, and each of the files that are found."""
        found: list[str] = []
        for name in names:
            dataset = None if is_parameter(name) else self._dataset(name)
            if isinstance(dataset, FilesDataset) and dataset.tracked:
                found += (f"{name}/{below}" for below in dataset.names())
            elif isinstance(dataset, AtomicFileDataset | ImageSourceDataset):
                found.append(name)
        return list(dict.fromkeys(found))

    def path(self, name: str) -> Path:
        """Say where an artefact lies, or its copy, if it lies in an object store."""
        return Path(self._dataset(name).local())

    def made_as(self, name: str) -> str:
        """Give the name under which a file that was found is made by this graph; the same name where it is not."""
        manifest = self._manifest(name) if "/" in name else None
        made = manifest is not None and manifest.name in self._makers and self.path(manifest.name) == self.path(name)
        return manifest.name if manifest is not None and made else name

    def another_seed(self, name: str) -> tuple[str, int] | None:
        """Give the name and the number of the seed of a file that was found, and is of another seed than this graph.

        None if it is not what this graph would make, of the same images, with that seed.
        """
        manifest = self._manifest(name) if "/" in name else None
        if manifest is None or manifest.name not in self._makers or self.made_as(name) != name:
            return None
        of_file = manifest.origin.parameters
        if of_file.get("experiment.benchmark") != self._parameter(EXPERIMENT).get("benchmark"):
            return None
        return manifest.name, next((of_file[key] for key in of_file if NUMBER_OF_SEED.fullmatch(key)), 1)

    def origin(self, node: Node, code: Mapping[str, str], command: str) -> Origin:
        """Describe what the outputs of a node are made from when it runs now, with what its inputs were made with."""
        inputs: dict[str, str] = {}
        recipes: dict[str, str] = {}
        parameters: dict[str, Any] = {}
        own = self._parameters(node)
        if automatic := [name for name in own if name.endswith(PRECISION) and own[name] == AUTO]:
            device = resolve_device(self._parameter(EXPERIMENT).get("device", AUTO))
            own = own | dict.fromkeys(automatic, resolve_precision(AUTO, device))
        for name in self.stored(node.inputs):
            inputs[name], recipes[name], behind = self._known(name, node, self._content)
            parameters |= behind
        recipe = self._recipe_with(node, recipes)
        return Origin(node.name, recipe, inputs, {**parameters, **own}, {**code, **platform_version()}, command)

    def _state(self, name: str) -> State:
        if (made_as := self.made_as(name)) != name:
            return self.state(made_as)
        try:
            dataset = self._dataset(name)
            manifest = None if isinstance(dataset, ImageSourceDataset) else dataset.check()
        except FileNotFoundError:
            return State(StateKind.MISSING, "is not there")
        except InputError as error:
            return State(StateKind.DAMAGED, f"is damaged ({error})")
        except OSError as error:
            return State(StateKind.DAMAGED, f"cannot be read ({error})")
        if manifest is None:
            kind = StateKind.UNRECORDED if name in self._makers or "/" in name else StateKind.FRESH
            return State(kind, "has no manifest that says what it was made from", self._content(name))
        if manifest.name != name and "/" not in name:
            return State(StateKind.DAMAGED, f"has the manifest of `{manifest.name}`")
        reason = self._fault(self._makers[name], manifest.origin) if name in self._makers else ""
        if self.another_seed(name) is not None:
            reason = self._fault_of_recipe(self._makers[manifest.name], manifest.origin)
        return State(StateKind.STALE if reason else StateKind.FRESH, reason, manifest.digest)

    def _fault_of_recipe(self, node: Node, origin: Origin) -> str:
        """Say why the recipe of an artefact is not that of its node; nothing if it is, by whichever seed."""
        recipe, parameters = self._expected(node)
        if origin.recipe == recipe:
            return ""
        difference = first_changed_parameter(of_any_seed(origin.parameters), of_any_seed(parameters))
        return f"was made with {difference}" if difference else "was made by other code"

    def _fault(self, node: Node, origin: Origin) -> str:
        """Say why an artefact of a node is stale; nothing if it is not."""
        recipe, parameters = self._expected(node)
        if origin.recipe != recipe:
            if difference := first_changed_parameter(origin.parameters, parameters):
                return f"was made with {difference}"
            # Files that are found come and go.
            read = set(self.stored(node.inputs))
            if added := sorted(read - origin.inputs.keys()):
                return f"was made without `{added[0]}`"
            if removed := sorted(origin.inputs.keys() - read):
                return f"was made from `{removed[0]}`, which is gone"
        for name, digest in origin.inputs.items():
            state = self.state(name)
            if state.kind is StateKind.STALE:
                return state.reason
            if state.digest not in (None, digest):
                return f"was made from another `{name}`"
        return "was made by other code" if origin.recipe != recipe else ""

    def _expect(self, node: Node) -> tuple[str, Mapping[str, Any]]:
        """Give the recipe of a node now, with the parameters that it and all before it receive.

        Among the parameters are the digests of what no node makes.
        """
        recipes: dict[str, str] = {}
        parameters: dict[str, Any] = {}
        for name in self.stored(node.inputs):
            if name in self._makers:
                recipes[name], behind = self._expected(self._makers[name])
            else:
                _, recipes[name], behind = self._known(name, node, lambda name: self.state(name).digest)
            parameters |= behind
        return self._recipe_with(node, recipes), {**parameters, **self._parameters(node)}

    def _recipe_with(self, node: Node, recipes: Mapping[str, str]) -> str:
        # Which argument is what is said by the order of the inputs. Files of another seed lie elsewhere.
        made_by = [
            of_any_seed(self._parameters(node)),
            self.code(node),
            self._form(node),
            node.inputs,
            node.outputs,
            recipes,
        ]
        return text_digest(json.dumps(made_by, sort_keys=True))

    def _known(
        self, name: str, reader: Node, content: Callable[[str], str | None]
    ) -> tuple[str, str, Mapping[str, Any]]:
        """Give the digest, the recipe and the parameters of what is there, by its manifest.

        What has none, and each of the files that are found, has its digest for a recipe. Where it is gone, that is the
        digest which its reader has read.

        Args:
            name: name of the artefact.
            reader: node that reads it.
            content: digests what has no manifest.
        """
        manifest = self._manifest(name)
        if manifest is not None and "/" not in name:
            return manifest.digest, manifest.origin.recipe, manifest.origin.parameters
        digest = manifest.digest if manifest else content(name)
        if digest is None:
            made = self._manifest(reader.outputs[0])
            digest = made.origin.inputs.get(name, "") if made else ""
        return digest, digest, {} if manifest else {name: digest}

    def _find_dataset(self, name: str) -> Any:
        finder, _, below = name.partition("/")
        dataset: Any = self.catalog.get(finder)
        return dataset.one(below) if below else dataset

    def _manifest(self, name: str) -> Manifest | None:
        dataset = self._dataset(name)
        with suppress(DamagedError, FileNotFoundError):
            return None if isinstance(dataset, ImageSourceDataset) else read_manifest(dataset.local())
        return None

    def _content(self, name: str) -> str | None:
        """Digest what has no manifest; None if it is not there."""
        dataset = self._dataset(name)
        with suppress(OSError):
            return dataset.digest() if isinstance(dataset, ImageSourceDataset) else file_digest(dataset.local())
        return None

    def _code(self, node: Node) -> str:
        functions = set(getattr(node.func, "functions", [node.func]))
        read = map(self._dataset, self.stored(node.inputs))
        functions |= {type(dataset.source) for dataset in read if isinstance(dataset, ImageSourceDataset)}
        return text_digest(json.dumps(sources(functions, self._keys(node))))

    def _find_form(self, node: Node) -> str:
        """Digest how a node's files are read and written: code of the datasets, and what the catalog says of it."""
        datasets = map(self._dataset, self.stored([*node.inputs, *node.outputs]))
        files = [dataset for dataset in datasets if isinstance(dataset, AtomicFileDataset)]
        said = {json.dumps(dataset.form, sort_keys=True, default=str) for dataset in files}
        return text_digest(json.dumps([sources(set(map(type, files)), self._keys(node)), sorted(said)]))

    def _keys(self, node: Node) -> set[str]:
        """Name what parameters choose among others."""
        return {value for value in self._parameters(node).values() if isinstance(value, str)}

    def _read_parameters(self, node: Node) -> dict[str, Any]:
        """Flatten the parameters that a node receives; of a group with a block for each method, its own block."""
        values = {name.removeprefix("params:"): self._parameter(name) for name in node.inputs if is_parameter(name)}
        groups = [value for value in values.values() if isinstance(value, dict)]
        methods = {group["method"] for group in groups if {"method", "code_length"} <= group.keys()}
        received: dict[str, Any] = {}
        for name, value in sorted(values.items()):
            own = methods & value.keys() if isinstance(value, dict) else set()
            received |= flatten(name, {method: value[method] for method in own} if own else value)
        # A run is refused whose file is not there; here it may be looked at all the same.
        with suppress(KeyError, OSError, TypeError):
            received[WEIGHTS_PARAMETER] = file_digest(Path(received[WEIGHTS_PARAMETER]))
        received.pop(WHERE_IT_RUNS, None)
        return received

    def _read_parameter(self, name: str) -> Any:
        value, model = self.catalog.load(name), self._models.get(name.removeprefix("params:"))
        if model is not None and not isinstance(value, BaseModel):
            # Kedro gives their types, and with them the defaults, to the parameters of the pipeline that runs alone.
            with suppress(ValidationError):
                value = TypeAdapter(model).validate_python(value)
        # Methods' own fields count, not only those that all methods share.
        return to_jsonable_python(value, serialize_as_any=True, fallback=str)

    @cached_property
    def _models(self) -> dict[str, Any]:
        """Parameter -> the model that functions of nodes expect of it."""
        return TypeExtractor({"graph": cast(Any, self)}).extract_types_from_pipelines()
