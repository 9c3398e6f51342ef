"""Checkpoints: all that a training needs to go on as if it had never stopped, in files that are whole or not there.

A checkpoint is a file, ``checkpoint-<n>.safetensors``: tensors, and in its header everything else, with the SHA-256 of
all. It is written under a temporary name, flushed and renamed, and no number is used twice, so what stands there is
never written over. No state of a random generator is among it, because order, augmentation and dropout are functions of
the seed.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import replacing
from deephash_pipeline.common.working_place import CODE_DIGEST, FORCED
from deephash_pipeline.common.writing import cannot_write

logger = logging.getLogger(__name__)

CHECKPOINTS_KEPT = 2
CHECKPOINT_FORMAT = 2
CHECKPOINT_KEY = "checkpoint"
DIGITS = 9
NAME = f"checkpoint-{'[0-9]' * DIGITS}.safetensors"


@dataclass(frozen=True)
class TrainingState:
    """A training between two steps.

    Attributes:
        tensors: tensors by name; those of the module, of the optimiser, of the current epoch's sums.
        progress: epoch, step, history, the states of optimiser and schedule; numbers, texts, lists and dictionaries.
        configuration: values by flat dotted name that must not change on the way.
    """

    tensors: Mapping[str, Tensor]
    progress: Mapping[str, Any]
    configuration: Mapping[str, Any]


class CheckpointFolder:
    """The checkpoints of one training.

    Args:
        folder: directory, made when the first checkpoint is saved.
        seconds_between: a training that is asked to saves no more often than this, in seconds; 0 means at every step.
        provenance: facts to be stored along, such as the commit; only `CODE_DIGEST` and `FORCED` are compared.

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
        self._damaged: set[Path] = set()

    def save(self, state: TrainingState) -> None:
        """Write a checkpoint and remove all but the last two.

        Raises:
            InputError: it cannot be written, as on a full disk. The checkpoints before it are still there.
        """
        tensors = {name: tensor.contiguous() for name, tensor in state.tensors.items()}
        content = {
            "format": CHECKPOINT_FORMAT,
            "progress": state.progress,
            "configuration": state.configuration,
            "configuration_sha256": hashlib.sha256(_text(state.configuration, sort_keys=True)).hexdigest(),
            "provenance": self.provenance,
        }
        # One entry, because safetensors keeps no order among several.
        metadata = {CHECKPOINT_KEY: json.dumps({"sha256": _digest(tensors, content), "content": content})}
        number = int(there[-1].stem.rpartition("-")[2]) + 1 if (there := self._files()) else 1
        try:
            with replacing(self.folder / f"checkpoint-{number:0{DIGITS}d}.safetensors") as beside:
                beside.write_bytes(safetensors.torch.save(tensors, metadata))
        except OSError as error:
            then = "; then the same command goes on from the last checkpoint"
            raise cannot_write(self.folder, error, then) from error
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
        for file in reversed(self._files()):
            try:
                state, provenance = _read(file)
            except KeyError:
                logger.warning("passing over the checkpoint %s: it is of another version", file)
                continue
            except (OSError, ValueError, TypeError, safetensors.SafetensorError) as error:
                logger.warning("passing over the checkpoint %s, it is damaged: %s", file, error)
                self._damaged.add(file)
                continue
            if self.provenance.get(CODE_DIGEST) not in (None, provenance.get(CODE_DIGEST)):
                logger.info("the code has changed since %s, training starts anew", file)
                return None
            if self.provenance.get(FORCED) and self.provenance[FORCED] != provenance.get(FORCED):
                return None
            return state
        if self._damaged:
            raise InputError(f"all checkpoints in {self.folder} are damaged: delete the folder to start over")
        return None

    def tidy(self) -> None:
        """Remove all but the last two checkpoints, and whatever a process that was killed has left."""
        whole = [file for file in self._files() if file not in self._damaged]
        self._remove(file for file in self._files() if file not in whole[-CHECKPOINTS_KEPT:])

    def clear(self) -> None:
        """Remove all checkpoints, the last one last: a process that is killed here finds it again and goes on."""
        self._remove(sorted(self._files(), key=lambda file: (file not in self._damaged, file)))

    def _files(self) -> list[Path]:
        """Checkpoints, from the first to the last."""
        return sorted(self.folder.glob(NAME))

    def _remove(self, files: Iterable[Path]) -> None:
        for file in (*files, *self.folder.glob(f".{NAME.removesuffix('.safetensors')}.*.safetensors")):
            file.unlink(missing_ok=True)


def first_difference(
    configuration: Mapping[str, Any], stored: Mapping[str, Any], last: Sequence[str] = ()
) -> str | None:
    """Name the first parameter in which two configurations differ, some of them last; None if they are the same.

    Values are compared as JSON writes them: a tuple is a list then, and NaN is NaN.

    Example:
        >>> first_difference({"seed": 1, "epochs": 3}, {"seed": 1, "epochs": 4})
        'epochs'
    """
    names = sorted((configuration.keys() | stored.keys()) - set(last))
    for name in (*names, *last):
        known = [_text(given[name], sort_keys=True) for given in (configuration, stored) if name in given]
        if known.count(known[0]) < 2:
            return name
    return None


def _text(content: Any, sort_keys: bool = False) -> bytes:
    """Write content as JSON, the same before and after it has been stored; floats keep every bit."""
    return json.dumps(json.loads(json.dumps(content)), sort_keys=sort_keys).encode()


def _digest(tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> str:
    return hashlib.sha256(weights_digest(tensors).encode() + _text(content)).hexdigest()


def _read(file: Path) -> tuple[TrainingState, dict[str, Any]]:
    data = file.read_bytes()
    tensors = safetensors.torch.load(data)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    sealed = json.loads(header["__metadata__"][CHECKPOINT_KEY])
    content = sealed["content"]
    if _digest(tensors, content) != sealed["sha256"]:
        raise ValueError("it is not what was written")
    if content["format"] != CHECKPOINT_FORMAT:
        raise ValueError(f"its format is {content['format']}, not {CHECKPOINT_FORMAT}")
    return TrainingState(tensors, content["progress"], content["configuration"]), content["provenance"]


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 of named tensors: names, types, shapes and every bit.

    Example:
        >>> weights_digest({"weight": torch.zeros(2)})[:8] == weights_digest({"weight": torch.ones(2)})[:8]
        False
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(raw_bytes(tensor))
    return digest.hexdigest()


def raw_bytes(tensor: Tensor) -> memoryview:
    """Bytes of a tensor's values, from whatever device."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
