"""Checkpoints: all that a training needs to go on as if it had never stopped, in files that are whole or not there.

A checkpoint is two files. ``checkpoint-<n>.safetensors`` holds the tensors. ``checkpoint-<n>.json`` is written after
it, holds its SHA-256 and everything else, and makes the checkpoint valid. Both are written under a temporary name,
flushed and renamed, and no number is used twice, so what stands there is never written over. No state of a random
generator is among it, because order, augmentation and dropout are functions of the seed.
"""

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import flush

logger = logging.getLogger(__name__)

KEPT = 2
FORMAT = 1
TENSORS = ".safetensors"
DOCUMENT = ".json"
DIGITS = 9
CODE = "code"
"""Name in the provenance of a digest of the code that trains: what other code has left is not gone on with."""
FORCED = "forced"
"""Name in the provenance of the run that trains anew: what others have left is not gone on with, if it has a name."""


@dataclass(frozen=True)
class TrainingState:
    """A training between two steps.

    Attributes:
        tensors: by name; those of the module, of the optimiser, of the current epoch's sums.
        progress: epoch, step, history, the states of optimiser and schedule; numbers, texts, lists and dictionaries.
        configuration: what must not change on the way, as flat dotted names and values.
    """

    tensors: Mapping[str, Tensor]
    progress: Mapping[str, Any]
    configuration: Mapping[str, Any]

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return bool(self.progress["finished"])


class CheckpointFolder:
    """The checkpoints of one training.

    Args:
        folder: made when the first checkpoint is saved.
        seconds_between: a training that is asked to saves no more often than this, in seconds; 0 means at every step.
        provenance: to be stored along, such as the commit; only `CODE` and `FORCED` are compared.

    Example:
        >>> import tempfile, torch
        >>> state = TrainingState({"w": torch.ones(2)}, {"step": 7, "finished": False}, {"seed": 0})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     CheckpointFolder(Path(folder), seconds_between=30).save(state)
        ...     CheckpointFolder(Path(folder), seconds_between=30).load().progress["step"]
        7
    """

    def __init__(self, folder: Path, seconds_between: float, provenance: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.seconds_between = seconds_between
        self.provenance = dict(provenance or {})
        self._damaged: set[str] = set()

    def save(self, state: TrainingState) -> None:
        """Write a checkpoint and remove all but the last two.

        Raises:
            InputError: it cannot be written, as on a full disk. The checkpoints before it are still there.
        """
        tensors = safetensors.torch.save({name: tensor.contiguous() for name, tensor in state.tensors.items()})
        content = {
            "format": FORMAT,
            "tensors_sha256": hashlib.sha256(tensors).hexdigest(),
            "progress": state.progress,
            "configuration": state.configuration,
            "configuration_sha256": hashlib.sha256(_text(state.configuration, sort_keys=True)).hexdigest(),
            "provenance": self.provenance,
        }
        sealed = {"sha256": hashlib.sha256(_text(content)).hexdigest(), "content": content}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"checkpoint-{self._next_number():0{DIGITS}d}"
            _write(path.with_suffix(TENSORS), tensors)
            _write(path.with_suffix(DOCUMENT), json.dumps(sealed, indent=1).encode())
        except OSError as error:
            raise InputError(
                f"no checkpoint could be written into {self.folder} ({error.strerror}): make it possible, and the same "
                "command goes on from the last one"
            ) from error
        self.tidy()

    def load(self) -> TrainingState | None:
        """Read the last checkpoint that is whole; one that is not is passed over with a warning.

        Returns:
            None where there is none, or other code has made it, or another run than the forced one; it stays until
            this training saves its own.

        Raises:
            InputError: there are checkpoints, but each is damaged.
        """
        self._damaged.clear()
        for name in reversed(self._names()):
            document = self.folder / f"{name}{DOCUMENT}"
            if not document.exists():
                # The mark of a process that was killed between the two files, even at its first checkpoint.
                logger.warning("passing over the checkpoint %s: it is not complete", document)
                continue
            try:
                state, provenance = _read(document)
            except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
                logger.warning("passing over the checkpoint %s, it is damaged: %s", document, error)
                self._damaged.add(name)
                continue
            if self.provenance.get(CODE) not in (None, provenance.get(CODE)):
                logger.info("the code has changed since %s, training starts anew", document)
                return None
            if self.provenance.get(FORCED) and self.provenance[FORCED] != provenance.get(FORCED):
                return None
            return state
        if self._damaged:
            raise InputError(f"all checkpoints in {self.folder} are damaged: delete the folder to start over")
        return None

    def tidy(self) -> None:
        """Remove all but the last two checkpoints, and whatever a process that was killed has left."""
        whole = [name for name in self._names(DOCUMENT) if name not in self._damaged]
        kept = whole[-KEPT:]
        for name in self._names():
            if name not in kept:
                self._remove(name)
        self._remove_partial_files()

    def clear(self) -> None:
        """Remove all checkpoints, the last one last: a process that is killed here finds it again and goes on."""
        for name in sorted(self._names(), key=lambda name: (name not in self._damaged, name)):
            self._remove(name)
        self._remove_partial_files()

    def _names(self, *suffixes: str) -> list[str]:
        """Names of checkpoints, complete or not, from the first to the last."""
        suffixes = suffixes or (DOCUMENT, TENSORS)
        stem = f"checkpoint-{'[0-9]' * DIGITS}"
        return sorted({path.stem for suffix in suffixes for path in self.folder.glob(f"{stem}{suffix}")})

    def _next_number(self) -> int:
        names = self._names()
        return int(names[-1].removeprefix("checkpoint-")) + 1 if names else 1

    def _remove(self, name: str) -> None:
        for suffix in (DOCUMENT, TENSORS):
            (self.folder / f"{name}{suffix}").unlink(missing_ok=True)

    def _remove_partial_files(self) -> None:
        for leftover in self.folder.glob(".checkpoint-*.partial"):
            leftover.unlink(missing_ok=True)


def first_difference(configuration: Mapping[str, Any], stored: Mapping[str, Any]) -> str | None:
    """Name the first parameter in which two configurations differ; None if they are the same.

    Values are compared as JSON writes them: a tuple is a list then, and NaN is NaN.

    Example:
        >>> first_difference({"seed": 1, "epochs": 3}, {"seed": 1, "epochs": 4})
        'epochs'
    """
    for name in sorted(configuration.keys() | stored.keys()):
        if name not in configuration or name not in stored:
            return name
        if _text(configuration[name], sort_keys=True) != _text(stored[name], sort_keys=True):
            return name
    return None


def _text(content: Any, sort_keys: bool = False) -> bytes:
    """Write content as JSON, the same before and after it has been stored; floats keep every bit."""
    return json.dumps(json.loads(json.dumps(content)), sort_keys=sort_keys).encode()


def _read(document: Path) -> tuple[TrainingState, dict[str, Any]]:
    sealed = json.loads(document.read_bytes())
    content = sealed["content"]
    if hashlib.sha256(_text(content)).hexdigest() != sealed["sha256"]:
        raise ValueError("its text is not what was written")
    if content["format"] != FORMAT:
        raise ValueError(f"its format is {content['format']}, not {FORMAT}")
    tensors = document.with_suffix(TENSORS).read_bytes()
    if hashlib.sha256(tensors).hexdigest() != content["tensors_sha256"]:
        raise ValueError("its tensors are not what was written")
    state = TrainingState(safetensors.torch.load(tensors), content["progress"], content["configuration"])
    return state, content["provenance"]


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    flush(path.parent)
