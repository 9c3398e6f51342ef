"""Where the trials of a search lie, and by which code they were made."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class StudyFile:
    """The SQLite file of Optuna that a search keeps its trials in.

    Attributes:
        path: path of the file; it is made if it is not there.
        provenance: `CODE` of the run that searches, and whether it is `FORCED`, as of a `CheckpointFolder`.

    Example:
        >>> StudyFile(Path("study.db")).provenance
        {}
    """

    path: Path
    provenance: dict[str, str] = field(default_factory=dict)
