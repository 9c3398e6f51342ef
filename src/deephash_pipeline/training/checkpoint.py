"""Checkpoints: all that a training needs to go on as if it had never stopped, in files that are whole or not there.

A checkpoint is two files. ``step-<n>.safetensors`` holds the tensors. ``step-<n>.json`` is written after it, holds its
SHA-256 and everything else, and makes the checkpoint valid. Both are written under a temporary name, flushed and
renamed. No state of a random generator is among it, because order, augmentation and dropout are functions of the seed.
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

from deephash_pipeline.errors import InputError

logger = logging.getLogger(__name__)

KEPT = 2
FORMAT = 1


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
        folder: made when the first checkpoint is saved. Nothing else may be kept in it.
        seconds_between: a training that is asked to saves no more often than this, in seconds; 0 means at every step.
        provenance: to be stored along, such as the commit; never compared.
    """

    def __init__(self, folder: Path, seconds_between: float, provenance: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.seconds_between = seconds_between
        self.provenance = dict(provenance or {})

    def save(self, state: TrainingState, steps: int) -> None:
        """Write a checkpoint and remove all but the last two; behind a finished training, all but the last.

        Args:
            state: what to keep.
            steps: number of optimiser steps made, which names the checkpoint.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"step-{steps:09d}"
        tensors = safetensors.torch.save({key: tensor.contiguous() for key, tensor in state.tensors.items()})
        content = {
            "format": FORMAT,
            "tensors_sha256": hashlib.sha256(tensors).hexdigest(),
            "progress": state.progress,
            "configuration": state.configuration,
            "provenance": self.provenance,
        }
        text = json.dumps(content, sort_keys=True)
        document = json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest(), "content": text}, indent=1)
        _write(self.folder / f"{name}.safetensors", tensors)
        _write(self.folder / f"{name}.json", document.encode())
        for old in self._documents()[1 if state.finished else KEPT :]:
            old.unlink()
            old.with_suffix(".safetensors").unlink(missing_ok=True)

    def load(self) -> TrainingState | None:
        """Read the last checkpoint that is whole; one that is damaged is passed over with a warning.

        Returns:
            None where there is none.

        Raises:
            InputError: there are checkpoints, but each is damaged.
        """
        if self.folder.is_dir():
            for leftover in self.folder.glob(".*.partial"):
                leftover.unlink()
        documents = self._documents()
        for document in documents:
            try:
                return _read(document)
            except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
                logger.warning("the checkpoint %s is damaged, the one before is taken: %s", document, error)
        if documents:
            raise InputError(f"all checkpoints in {self.folder} are damaged: delete the folder to start over")
        return None

    def clear(self) -> None:
        """Remove all checkpoints."""
        for document in self._documents():
            document.unlink()
            document.with_suffix(".safetensors").unlink(missing_ok=True)

    def _documents(self) -> list[Path]:
        return sorted(self.folder.glob("step-*.json"), reverse=True)


def first_difference(configuration: Mapping[str, Any], stored: Mapping[str, Any]) -> str | None:
    """Name the first parameter in which two configurations differ; None if they are the same."""
    # What JSON makes of a value is what can be compared: it has no tuples.
    current: dict[str, Any] = json.loads(json.dumps(configuration))
    for name in sorted(current.keys() | stored.keys()):
        if name not in current or name not in stored or current[name] != stored[name]:
            return name
    return None


def _read(document: Path) -> TrainingState:
    held = json.loads(document.read_bytes())
    if hashlib.sha256(held["content"].encode()).hexdigest() != held["sha256"]:
        raise ValueError("its text is not what was written")
    content = json.loads(held["content"])
    if content["format"] != FORMAT:
        raise ValueError(f"its format is {content['format']}, not {FORMAT}")
    tensors = document.with_suffix(".safetensors").read_bytes()
    if hashlib.sha256(tensors).hexdigest() != content["tensors_sha256"]:
        raise ValueError("its tensors are not what was written")
    return TrainingState(safetensors.torch.load(tensors), content["progress"], content["configuration"])


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.partial")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
