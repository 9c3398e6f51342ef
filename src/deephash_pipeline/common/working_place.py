"""Files that a node keeps for itself between runs, and which code and data must have made them."""

from dataclasses import dataclass, field
from pathlib import Path

CODE_DIGEST = "code"
"""Name in the provenance of a digest of the code that makes: what other code has left is not gone on with."""
FORCED = "forced"
"""Name in the provenance of the run that makes anew: what others have left is not gone on with, if it has a name."""


@dataclass(frozen=True)
class WorkingPlace:
    """A file or a folder that a node writes and reads by itself, such as the SQLite file of a search.

    Attributes:
        path: its path; nothing need be there.
        provenance: `CODE_DIGEST` of the run, whether it is `FORCED`, and digests of what is read; empty outside a run.

    Example:
        >>> WorkingPlace(Path("study.db")).provenance
        {}
    """

    path: Path
    provenance: dict[str, str] = field(default_factory=dict)
