"""Codes of a database many times as large as the benchmark's: its training images, moved about, through trained models.

Random bits would make a poor stand-in for a large database: codes of images lie in clumps, and many are equal.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project
from kedro.io import DatasetError
from numpy.typing import NDArray
from torch import Tensor, nn

from deephash_pipeline.errors import InputError
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import build_trunk
from deephash_pipeline.progress import track
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.retrieval import CodeSets, pack_bits
from deephash_pipeline.training import outputs_in_blocks, resolve_device

# How many images are encoded to see whether codes that are kept are still the present ones.
BLOCK = 512
# A method's cell, and the trunk that its z comes from.
TRUNKS = {"deephash.b48": "deephash.b48.tuned_trunk_weights", "itq.b48": "trunk_weights"}


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """What a finished run left: models, images and the codes of the images as they are.

    Attributes:
        images: uint8 (n, channels, height, width), the training images, which are the database.
        pixel_statistics: mean and standard deviation of each channel.
        network: name of the trunk's table of layers.
        seed: the run's.
        augmentation: that of fine-tuning.
        trunks: weights by cell.
        encoders: by cell.
        codes: by cell.
    """

    images: NDArray[np.uint8]
    pixel_statistics: Mapping[str, list[float]]
    network: str
    seed: int
    augmentation: AugmentationParameters
    trunks: Mapping[str, Mapping[str, Tensor]]
    encoders: Mapping[str, Encoder]
    codes: Mapping[str, CodeSets]


def load_run(project: Path, environment: str) -> FinishedRun:
    """Read the models of a finished run from the Kedro catalog.

    Raises:
        InputError: the run, or a part of it, is missing; the message names the command that makes it.
    """
    bootstrap_project(project)
    logging.getLogger("kedro").setLevel(logging.WARNING)
    with KedroSession.create(project, env=environment) as session:
        catalog = session.load_context().catalog
    experiment = catalog.load("params:experiment")
    try:
        return FinishedRun(
            images=catalog.load("training_images"),
            pixel_statistics=catalog.load("pixel_statistics"),
            network=experiment.network,
            seed=experiment.seed,
            augmentation=catalog.load("params:fine_tuning.deephash").augmentation,
            trunks={cell: catalog.load(trunk) for cell, trunk in TRUNKS.items()},
            encoders={cell: catalog.load(f"{cell}.encoder") for cell in TRUNKS},
            codes={cell: catalog.load(f"{cell}.codes") for cell in TRUNKS},
        )
    except DatasetError as error:
        part = str(error).partition(":")[0]
        raise InputError(
            f"{part} is missing or unreadable: make it by `kedro run --pipeline=full --env={environment}`"
        ) from error


def augmented_codes(run: FinishedRun, versions: int, cache: Path | None = None) -> dict[str, NDArray[np.uint8]]:
    """Encode `versions` augmented versions of every training image.

    Args:
        run: the finished run.
        versions: how many times each image is moved, each time by draws of its own.
        cache: ``.npz`` file that the codes are kept in. One that was made of other models or draws is made again.

    Returns:
        By cell, packed codes of shape (versions * n, bytes), version after version.
    """
    device = resolve_device("auto")
    trunks = SideBySide([loaded_trunk(run.network, weights) for weights in run.trunks.values()]).to(device)
    inputs = ImageInputs(run.images, run.pixel_statistics, device, run.augmentation)

    def encoded(version: int, images: ImageInputs) -> dict[str, NDArray[np.uint8]]:
        z = outputs_in_blocks(trunks, AugmentedVersion(images, derive_seed(run.seed, "augmented codes", version)))
        of_each_trunk = np.split(z, len(run.trunks), axis=1)
        return {
            cell: pack_bits(run.encoders[cell].transform(own_z))
            for cell, own_z in zip(run.trunks, of_each_trunk, strict=True)
        }

    first_images = ImageInputs(run.images[:BLOCK], run.pixel_statistics, device, run.augmentation)
    made_of = fingerprint(run, versions, encoded(0, first_images))
    if cache is not None and cache.is_file():
        with np.load(cache, allow_pickle=False) as arrays:
            if str(arrays["made_of"]) == made_of:
                return {cell: arrays[cell] for cell in run.trunks}

    blocks = [encoded(version, inputs) for version in track(range(versions), "encoding augmented images", versions)]
    codes = {cell: np.concatenate([block[cell] for block in blocks]) for cell in run.trunks}
    if cache is not None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        temporary = cache.with_suffix(".partial.npz")
        kept: dict[str, Any] = {"made_of": made_of, **codes}
        np.savez(temporary, **kept)
        temporary.replace(cache)
    return codes


class AugmentedVersion:
    """Images as network inputs, each moved by one draw that depends on the seed and its block alone."""

    def __init__(self, inputs: ImageInputs, seed: int) -> None:
        self.inputs = inputs
        self.seed = seed

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, indices: NDArray[np.int64], seed: int | None = None, first: int = 0) -> Tensor:
        """Moved images at `indices`, normalised."""
        return self.inputs.batch(indices, derive_seed(self.seed, int(indices[0])))


class SideBySide(nn.Module):
    """The outputs of several networks for the same inputs, concatenated: an image is moved once for all of them."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return shape (batch, sum of the networks' outputs)."""
        return torch.cat([network(inputs) for network in self.networks], dim=1)


def loaded_trunk(network: str, weights: Mapping[str, Tensor]) -> nn.Module:
    """Build a trunk with its weights."""
    trunk = build_trunk(network)
    trunk.load_state_dict(weights)
    return trunk


def fingerprint(run: FinishedRun, versions: int, first_codes: Mapping[str, NDArray[np.uint8]]) -> str:
    """Digest of what the codes are made of, so that those of former models are never taken for those of present ones.

    Args:
        run: the finished run; its weights and hash functions count.
        versions: of each image.
        first_codes: of some images, by cell; whatever else changes, augmentation or network, changes them as well.
    """
    digest = hashlib.sha256(f"{versions} {run.seed} {run.images.shape}".encode())
    for cell, weights in run.trunks.items():
        arrays = {name: tensor.numpy() for name, tensor in weights.items()} | run.encoders[cell].arrays()
        for name, array in sorted({**arrays, "first codes": first_codes[cell]}.items()):
            digest.update(f"{cell} {name}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
