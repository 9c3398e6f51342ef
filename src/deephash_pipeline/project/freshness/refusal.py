"""What a run may read: what is stale, damaged or missing stops it before its first node, in one line."""

import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kedro.framework.project import pipelines
from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import FIELD
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.freshness.graph import ProjectGraph, flatten, is_parameter
from deephash_pipeline.provenance.artefacts import FoundFiles, Source
from deephash_pipeline.provenance.lineage import Kind, State, summarised

logger = logging.getLogger(__name__)


@dataclass
class Policy:
    """How strict runs are.

    Attributes:
        stale_allowed: whether a run may read what is stale.
        forced: whether what is finished is made anew, trainings with checkpoints too.
    """

    stale_allowed: bool = False
    forced: bool = False


POLICY = Policy()


@contextmanager
def policy(*, stale_allowed: bool = False, forced: bool = False) -> Iterator[None]:
    """Run with another `Policy` within it."""
    before = vars(POLICY).copy()
    vars(POLICY).update(stale_allowed=stale_allowed, forced=forced)
    try:
        yield
    finally:
        vars(POLICY).update(before)


def refuse_what_is_stale(graph: ProjectGraph, pipeline: Pipeline, run_params: Mapping[str, Any]) -> str:
    """Return what the report's readers are to know of what is stale; nothing if nothing is.

    Raises:
        InputError: a run may not read what this one reads.
    """
    faults = list(_faults(graph, pipeline))
    if not faults:
        return ""
    missing = [name for name, state in faults if state.kind is Kind.MISSING]
    if missing:
        more = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
        raise InputError(
            f"{graph.lineage.stored(missing[0]).path}{more} not there: run the stage that makes it, or "
            f"`{_mending_command(run_params, missing)}`"
        )
    message = "; ".join(summarised(faults))
    if not POLICY.stale_allowed or any(state.kind is Kind.DAMAGED for _, state in faults):
        raise InputError(f"{message}: {_remedy(graph, faults, run_params)}; --stale=allow uses what is stale")
    logger.warning("stale artefacts are used: %s", message)
    return f"Stale artefacts were used for this report: {message}."


def _remedy(graph: ProjectGraph, faults: Iterable[tuple[str, State]], run_params: Mapping[str, Any]) -> str:
    """Say what to do: a pipeline makes artefacts again; what is read only where it is there can be deleted."""
    names: list[str] = []
    unneeded: list[str] = []
    # Both make all they need; what others make of it, they could not make before.
    of_whole = pipelines["full"].all_outputs() | pipelines[FIELD].all_outputs()
    for name, _ in faults:
        found = graph.artefact(name)
        if not isinstance(found, FoundFiles):
            names.append(name)
            continue
        for path, own, _ in found.faults(graph.lineage):
            made = own in of_whole and graph.lineage.stored(own).path == path
            (names if made else unneeded).append(own if made else str(path))
    if unneeded:
        return f"delete {' and '.join(unneeded)}, which this run can do without"
    return f"`{_mending_command(run_params, names)}` makes again what is needed"


def _faults(graph: ProjectGraph, pipeline: Pipeline) -> Iterator[tuple[str, State]]:
    """Yield what a pipeline reads, does not make, and should not read."""
    for name in sorted(pipeline.inputs()):
        if is_parameter(name):
            continue
        artefact = graph.artefact(name)
        if artefact is None or isinstance(artefact, Source):
            continue
        state = graph.lineage.state(name)
        if state.kind is not Kind.FRESH:
            yield name, state


def _mending_command(run_params: Mapping[str, Any], names: Iterable[str]) -> str:
    """Name a pipeline that makes some datasets: ``full`` if it does, else that of this run, or the first that does."""
    own = run_params.get("pipeline_names") or ()
    order = [name for name in ("full", *own, FIELD, *pipelines) if name in pipelines]
    wanted = set(names)
    made_by = next((name for name in order if wanted <= pipelines[name].all_outputs()), "full")
    words = ["kedro", "run", f"--pipelines={made_by}"]
    if run_params.get("env"):
        words.append(f"--env={run_params['env']}")
    given = flatten("", run_params.get("runtime_params") or {})
    if given:
        words.append("--params=" + ",".join(f"{name}={value}" for name, value in given.items()))
    return shlex.join(words)
