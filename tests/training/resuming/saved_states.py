"""States that say which step they are of, folders of them, and what is in a folder."""

import json

import safetensors
import torch

from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder, TrainingState


def state(step=1, finished=False, **values):
    tensors = {"module.weight": torch.full((2, 3), float(step)), "total.loss": torch.tensor(0.1 * step)}
    return TrainingState(tensors, {"step": step, "finished": finished, **values}, {"seed": 42, "rate": 0.1})


def a_folder(path, *steps):
    folder = CheckpointFolder(path, 0, {"git_commit": "0123abc"})
    for step in steps:
        folder.save(state(step))
    return folder


def names(path):
    return sorted(file.name for file in path.iterdir())


def same(a, b):
    """Whether two states agree in every bit; NaN is NaN here."""
    return (
        a.tensors.keys() == b.tensors.keys()
        and all(a.tensors[name].dtype == b.tensors[name].dtype for name in a.tensors)
        and all(torch.equal(bits(a.tensors[name]), bits(b.tensors[name])) for name in a.tensors)
        and repr(a.progress) == repr(b.progress)
        and repr(a.configuration) == repr(b.configuration)
    )


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def last(path):
    return max(path.glob("checkpoint-*"))


def content_of(path):
    """What a checkpoint says besides its tensors."""
    with safetensors.safe_open(path, "pt") as file:
        return json.loads(file.metadata()["checkpoint"])["content"]
