"""States of an artefact, and a line that says each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SHOWN_NAMES = 3
AUTO = "auto"
"""A value that may be another one where a node ran: it explains no difference."""


class StateKind(StrEnum):
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
        kind: see `StateKind`.
        reason: why it is not fresh, so that "`itq.b12.codes` " may stand before it.
        digest: digest of its content, if it is known.
    """

    kind: StateKind
    reason: str = ""
    digest: str | None = None


def first_changed_parameter(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """Describe the first parameter that differs, "seed 42, this run has 7"; nothing if none does."""
    for name in sorted(recorded.keys() | current.keys(), key=lambda name: (name != "experiment.seed", name)):
        before, now = (str(values.get(name, "not given")) for values in (recorded, current))
        if before != now != AUTO:
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
