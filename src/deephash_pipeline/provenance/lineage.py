"""Which artefacts are what this code, these parameters and these inputs make, and why the others are not.

An artefact is compared with its manifest, the manifest with the step that makes it, and the digests of its inputs with
the manifests of those, up to the raw images. Where an artefact on the way is gone, what was made from it remembers the
digests and parameters of all that it came from.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from deephash_pipeline.provenance.code import platform_version
from deephash_pipeline.provenance.manifest import Manifest, Origin

SHOWN_NAMES = 3


class Kind(StrEnum):
    """What can be said of an artefact."""

    FRESH = "fresh"
    STALE = "stale"
    MISSING = "missing"
    DAMAGED = "damaged"
    UNRECORDED = "without manifest"


@dataclass(frozen=True)
class State:
    """What is to be said of one artefact.

    Attributes:
        kind: see `Kind`.
        reason: why it is not fresh, so that "`itq.b12.codes` " may stand before it.
        digest: digest of its content, if it is known.
        cause: if it was made from one that is stale itself, the first such and why it is, as "`name`, which ...".
    """

    kind: Kind
    reason: str = ""
    digest: str | None = None
    cause: str = ""


class Artefact(Protocol):
    """Something that a step reads or makes."""

    @property
    def path(self) -> Path:
        """Where it lies."""

    def state(self, lineage: "Lineage", name: str) -> State:
        """Say what it is like."""

    def digest_now(self, lineage: "Lineage") -> str:
        """Digest what a step has just read."""

    def origin(self) -> Origin | None:
        """Say what it was made from, if that is known."""


@dataclass(frozen=True)
class Step:
    """A node of the graph; what takes longer is looked up when it is asked for.

    Attributes:
        name: name of the node.
        outputs: names of the artefacts that it makes.
        find_inputs: names the artefacts that it reads.
        read_parameters: gives dotted name -> value of the parameters that this run gives to it.
        find_sources: gives module -> digest of what is reached of it.
    """

    name: str
    outputs: tuple[str, ...]
    find_inputs: Callable[[], tuple[str, ...]]
    read_parameters: Callable[[], Mapping[str, Any]]
    find_sources: Callable[[], dict[str, str]]

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the artefacts that it reads."""
        return self.find_inputs()

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Dotted name -> value of its parameters."""
        return self.read_parameters()

    @cached_property
    def sources(self) -> dict[str, str]:
        """Module -> digest of its code."""
        return self.find_sources()


class Lineage:
    """The graph, and the state of all that is in it.

    Args:
        steps: nodes. Where several make the same artefact, the first that has the inputs of its manifest counts.
        artefact: gives by name what a step reads or makes; None for what is stored nowhere.
    """

    def __init__(self, steps: Iterable[Step], artefact: Callable[[str], Artefact | None]) -> None:
        self.steps = list(steps)
        self.artefact = artefact
        self._makers: dict[str, list[Step]] = {}
        for step in self.steps:
            for output in step.outputs:
                self._makers.setdefault(output, []).append(step)
        self._states: dict[str, State] = {}

    def state(self, name: str) -> State:
        """Say what an artefact is like."""
        if name not in self._states:
            self._states[name] = self.stored(name).state(self, name)
        return self._states[name]

    def stored(self, name: str) -> Artefact:
        """Give an artefact that is stored somewhere."""
        found = self.artefact(name)
        if found is None:
            raise KeyError(name)
        return found

    def maker(self, name: str, inputs: Collection[str] | None = None) -> Step | None:
        """Give the step that makes an artefact, from these inputs if there are several."""
        makers = self._makers.get(name, [])
        if inputs is not None:
            for step in makers:
                if set(step.inputs) == set(inputs):
                    return step
        return makers[0] if makers else None

    def compare(self, name: str, manifest: Manifest) -> State:
        """Compare what an artefact was made from with what it would be made from now."""
        origin = manifest.origin
        step = self.maker(name, origin.inputs)
        if step is None:
            return State(Kind.FRESH, "", manifest.digest)
        reason = self._own_fault(step, origin)
        if reason:
            return State(Kind.STALE, reason, manifest.digest, f"`{name}`, which {reason}")
        for other in step.inputs:
            cause = self._fault_of_input(other, origin.inputs[other], origin)
            if cause:
                return State(Kind.STALE, f"was made from {cause}", manifest.digest, cause)
        return State(Kind.FRESH, "", manifest.digest)

    def origin(
        self, step: Step, code: Mapping[str, str], command: str, resolved: Mapping[str, str] | None = None
    ) -> Origin:
        """Describe what the outputs of a step are made from when it runs now, and what was `resolved` for it."""
        inputs: dict[str, str] = {}
        ancestors: dict[str, str] = {}
        inherited: dict[str, Any] = {}
        resolved = dict(resolved or {})
        for name in step.inputs:
            stored = self.stored(name)
            inputs[name], above = stored.digest_now(self), stored.origin()
            if above is not None:
                ancestors |= {**above.ancestors, **above.inputs}
                inherited |= {**above.inherited, **above.parameters}
                # What an input was made with stays what it was.
                resolved |= above.resolved
        return Origin(
            node=step.name,
            sources=step.sources,
            inputs=inputs,
            parameters=step.parameters,
            ancestors={name: ancestors[name] for name in sorted(ancestors.keys() - inputs.keys())},
            inherited={name: inherited[name] for name in sorted(inherited.keys() - step.parameters.keys())},
            code={**code, **platform_version()},
            command=command,
            resolved=resolved,
        )

    def steps_to_run(self, accepted: Collection[Kind] = (Kind.FRESH,)) -> Iterator[str]:
        """Name the steps that have an output which is not of an accepted kind, in the order of the steps."""
        for step in self.steps:
            if any(self.state(output).kind not in accepted for output in step.outputs if self.artefact(output)):
                yield step.name

    def _own_fault(self, step: Step, origin: Origin) -> str:
        if set(step.inputs) != set(origin.inputs):
            changed = sorted(set(step.inputs) ^ set(origin.inputs))
            return f"was made from other inputs ({_some(changed)})"
        difference = first_difference(origin.parameters, step.parameters)
        if difference:
            return f"was made with {difference}"
        changed = sorted(
            module
            for module in origin.sources.keys() | step.sources.keys()
            if origin.sources.get(module) != step.sources.get(module)
        )
        return f"was made by other code ({_some(changed)} changed since)" if changed else ""

    def _fault_of_input(self, name: str, recorded: str, origin: Origin) -> str:
        """Say what is wrong with an input, as "`name`, which ..."; nothing if it is what was read."""
        state = self.state(name)
        if state.kind is Kind.STALE:
            return state.cause
        if state.digest is not None and state.digest != recorded:
            return f"another `{name}`"
        step = self.maker(name)
        if state.kind is Kind.FRESH or step is None:
            return ""
        # It is gone, or cannot be trusted: what it was made from is remembered.
        digests = {**origin.ancestors, **origin.inputs}
        parameters = {**origin.inherited, **origin.parameters}
        known = {key: parameters[key] for key in step.parameters if key in parameters}
        difference = first_difference(known, {key: step.parameters[key] for key in known})
        if difference:
            return f"a `{name}` with {difference}"
        faults = (self._fault_of_input(other, digests[other], origin) for other in step.inputs if other in digests)
        return next(filter(None, faults), "")


def first_difference(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """Describe the first parameter that differs, "seed 42, this run has 7"; nothing if none does."""
    for name in sorted(recorded.keys() | current.keys(), key=lambda name: (name != "experiment.seed", name)):
        if name in recorded and name in current and recorded[name] == current[name]:
            continue
        before, now = (str(values[name]) if name in values else "not given" for values in (recorded, current))
        return f"{name.removeprefix('experiment.')} {before}, this run has {now}"
    return ""


def summarised(faults: Sequence[tuple[str, State]], shown: int = SHOWN_NAMES) -> list[str]:
    """Describe faulty artefacts, those of one reason together: "`a` (and 3 more) was made with ..."."""
    by_reason: dict[str, list[str]] = {}
    for name, state in faults:
        by_reason.setdefault(state.reason, []).append(name)
    message = []
    for reason, names in by_reason.items():
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        message.append(f"`{names[0]}`{more} {reason}")
    rest = [f"and {len(message) - shown} more"] if len(message) > shown else []
    return message[:shown] + rest


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more
