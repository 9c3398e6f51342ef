"""Checks before a run takes the lock: parameters and paths that no node would refuse in time."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.framework.project import pipelines
from kedro.pipeline import Pipeline
from pydantic import BaseModel, ValidationError

from deephash_pipeline.common.devices import resolve_device
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import faults_in_one_line, flatten, refuse_booleans_for_numbers
from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.pipeline_registry import OTHER_PIPELINES
from deephash_pipeline.pipelines.grid import DEEP_RIVALS, grid_parameters
from deephash_pipeline.pipelines.names import FIELD_AT_A_GLANCE
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.freshness.graph import BENCHMARK_FILE, Catalog
from deephash_pipeline.project.parameters import unread_parameters
from deephash_pipeline.project.replicate import REPLICATE
from deephash_pipeline.retrieval.protocols import require_protocol

NUMBER_LIMIT = 2**63


class SoundRun:
    """Refuses parameters that nothing reads, and numbers, names, devices and paths that would end a run late."""

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline, catalog: Catalog) -> None:
        """Look at all parameters, the experiment, and every dataset of the pipeline.

        Raises:
            InputError: one of them cannot be used.
        """
        refuse_versions(run_params.get("load_versions"))
        check_run_parameters(catalog, Path(run_params["project_path"]))
        missing = min((n for n in pipeline.inputs() if n.startswith("params:") and n not in catalog), default=None)
        if missing is not None:
            raise InputError(f"there are no parameters `{missing.removeprefix('params:')}`: write them in conf/base")
        for name in pipeline.datasets():
            if name in catalog:
                # A catalog entry that cannot be made into a dataset says so here, before anything is written.
                catalog.get(name)


def refuse_versions(load_versions: Mapping[str, str] | None) -> None:
    """Refuse versions of datasets, which Kedro passes over where a dataset has none.

    Raises:
        InputError: some are given.
    """
    if load_versions:
        name = next(iter(load_versions))
        raise InputError(f"--load-versions names a version of `{name}`: files of a run have none, leave it out")


def check_run_parameters(catalog: Catalog, project: Path) -> None:
    """Look at all parameters and the experiment.

    Raises:
        InputError: one of them cannot be used.
    """
    given = catalog.load("parameters")
    refuse_unread(given)
    if "protocol" in given:
        require_protocol(given["protocol"])
    check_numbers(given)
    check_losses(given)
    stated = given.get("experiment")
    stated = stated.model_dump() if isinstance(stated, BaseModel) else stated
    folder = catalog.get(BENCHMARK_FILE) if BENCHMARK_FILE in catalog else None
    if not isinstance(stated, Mapping) or not isinstance(folder, AtomicFileDataset):
        return
    try:
        experiment = Experiment.model_validate(stated)
    except ValidationError as error:
        raise InputError(f"parameter `experiment`: {faults_in_one_line(error)}") from error
    refuse_booleans_for_numbers({"experiment": stated}, {"experiment": experiment}, "parameters")
    at = folder.filepath.parent
    if at.name != experiment.benchmark or not at.resolve().is_relative_to(project.resolve()):
        raise InputError(
            f"the benchmark is `{experiment.benchmark}`, but its files would lie in {at}: choose a benchmark by "
            "--env, or name it once, as `benchmark` in conf/<env>/globals.yml"
        )
    if experiment.trunk.weights is not None and not (project / experiment.trunk.weights).is_file():
        raise InputError(f"`experiment.trunk.weights`: there is no file {experiment.trunk.weights}: name one")
    resolve_device(experiment.device)


def refuse_unread(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that no pipeline reads, a misspelt group for example.

    Raises:
        InputError: there is one.
    """
    read = parameters_read() | {REPLICATE}
    unread = min(unread_parameters(parameters, read), default=None)
    if unread is None:
        return
    below = min((name for name in read if name.startswith(f"{unread}.")), default=None)
    if below is not None:
        raise InputError(f"`{unread}` is a group: name a value in it, such as {below}")
    groups = sorted({name.partition(".")[0] for name in read})
    raise InputError(f"unknown parameter `{unread}`: nothing reads it; the groups are {', '.join(groups)}")


def parameters_read() -> set[str]:
    """Name the parameters that any pipeline reads, which are the same at all code lengths; not those of the grid."""
    inputs = set[str]().union(*(pipelines[name].inputs() for name in (FIELD_AT_A_GLANCE, *OTHER_PIPELINES)))
    return {name.removeprefix("params:") for name in inputs - grid_parameters().keys() if name.startswith("params:")}


def check_numbers(parameters: Mapping[str, Any]) -> None:
    """Refuse numbers that no array and no loop can have.

    Raises:
        InputError: one is not finite, or is whole and larger than 64 bits.

    Example:
        >>> check_numbers({"training": {"epochs": 10**22}})
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: `training.epochs` is 10000000000000000000000: numbers ...
    """
    for name, value in flatten("", parameters).items():
        for number in value if isinstance(value, list | tuple) else [value]:
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            if not math.isfinite(number) or (isinstance(number, int) and abs(number) >= NUMBER_LIMIT):
                raise InputError(f"`{name}` is {number}: numbers are finite, and whole ones fit into 64 bits")


def check_losses(parameters: Mapping[str, Any]) -> None:
    """Refuse to train another loss under the name of one.

    Raises:
        InputError: a block of `fine_tuning` with the name of a loss names another, or none, which is the paper's.

    Example:
        >>> check_losses({"fine_tuning": {"dpsh": {"hash_layer": {"bias": True}}}})
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: `fine_tuning.dpsh` would train the loss exponentiated: write ...
    """
    blocks = parameters.get("fine_tuning")
    for method, block in blocks.items() if isinstance(blocks, Mapping) else ():
        is_loss = method in DEEP_RIVALS and isinstance(block, Mapping | BaseModel)
        if is_loss and (name := flatten("", block).get("loss.name", "exponentiated")) != method:
            raise InputError(f"`fine_tuning.{method}` would train the loss {name}: write `loss: {{name: {method}}}`")
