"""A hash function that is fitted on the pictures of an index themselves, by the features that it keeps of them."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hamming.index_folder import HASHER, PICTURES, holds_vectors
from deephash_pipeline.hamming.replacing import replacing_index
from deephash_pipeline.hashers import BaseHasher
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.photographs.index import ImageIndex
from deephash_pipeline.photographs.stored import is_foreign_model, keep_model, stored_hasher
from deephash_pipeline.retrieval import pack_bits

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher

FEWEST = 200
"""Pictures below which a hash function that was fitted on others is better; of long codes, two for each bit."""
MOST = 20_000
"""Pictures that one is fitted on, drawn at random from more."""
GROWN = 2
"""Times as many pictures as at the last fit are worth another."""
USUAL = "srh"
"""Hash function that is fitted, with labels or without."""
DIFFUSION = 0.5
"""Its parameter without labels: chosen on half of the classes of Caltech-101 and SUN397, see docs/results."""
FEATURES_AT_A_TIME = 1024
BITS = (64, 128, 256)
"""Code lengths of the hashers for photographs that come with the package; usually the second."""


def hasher_of(folder: Path, code_length: int | None, device: str, anew: bool = False) -> BaseHasher:
    """Load the hasher of an index, without PyTorch where it has a model, or for a new one that of the package.

    Args:
        folder: directory of the index.
        code_length: code length in bits; None for that of the index, or the usual one.
        device: PyTorch device of the hasher.
        anew: True for a new index in place of one of another code length.

    Raises:
        InputError: the index has another code length.
    """
    if (folder / HASHER).is_file():
        own = stored_hasher(folder, device, "auto")
        if is_foreign_model(own):
            own = stored_hasher(folder, device, "torch")
        if code_length in (None, own.code_length):
            return own
        if not anew:
            raise InputError(f"{folder} has {own.code_length} bits: leave --bits out, or replace it by --anew")
    from deephash_pipeline.deephash import ImageHasher  # noqa: PLC0415 - who only looks at an index needs no PyTorch

    return ImageHasher.pretrained(f"photos-{code_length or BITS[1]}", device)


def fewest(code_length: int) -> int:
    """Pictures that a hash function is fitted on at least.

    Example:
        >>> fewest(64), fewest(256)
        (200, 512)
    """
    return max(FEWEST, 2 * code_length)


def has_outgrown(images: ImageIndex) -> bool:
    """Tell whether an index that keeps features has many more pictures than its hash function was fitted on."""
    fitted_on = images.hasher.description.training_images or MOST
    return min(len(images), MOST) >= GROWN * fitted_on


def refit(folder: Path, method: str | None = None, labels: bool = False, device: str = "auto") -> "ImageHasher":
    """Fit a hash function on the features in an index, and make all of its codes anew by it; no picture is read.

    Args:
        folder: directory of the index; it stays as it is until the new one takes its place.
        method: key of `deephash_pipeline.hashing.HASH_FUNCTIONS`; None for the usual one.
        labels: True if images of one label are to have codes near to each other. Only `srh` learns from images without
            a label besides.
        device: PyTorch device of the hasher.

    Returns:
        The hasher that the index has now.

    Raises:
        InputError: the index keeps no features or has too few pictures, or the method does not suit.
    """
    if not folder.is_dir():
        raise InputError(f"there is no index {folder}: make it by `deephash-pipeline index build {folder} PATHS`")
    if holds_vectors(folder):
        raise InputError(f"{folder} has vectors: `index build --vectors ... --anew` fits on them again")
    if method is not None:
        from deephash_pipeline.hashing import require_hash_function  # noqa: PLC0415

        require_hash_function(method)
    # Who writes the index is told before the work.
    with replacing_index(folder) as beside:
        hasher = _fitted(folder, method or USUAL, labels, device)
        with ImageIndex.create(beside, hasher, features=True) as made:
            if (folder / PICTURES).is_dir():
                shutil.copytree(folder / PICTURES, beside / PICTURES)
            with HammingIndex.open(folder, read_only=True) as old:
                for _, items, features in old.batches(FEATURES_AT_A_TIME):
                    names = [str(item.id) for item in items]
                    codes = pack_bits(hasher.encoder.transform(features))
                    metadata = {column: [item.metadata.get(column) for item in items] for column in old.columns}
                    made._add(names, EncodedPixels(codes, features), metadata, replace=False)
            made.compact()
        # A service that goes over to it finds the model at once.
        keep_model(beside, hasher)
    return hasher


def _fitted(folder: Path, method: str, labels: bool, device: str) -> "ImageHasher":
    from deephash_pipeline.deephash import ImageHasher  # noqa: PLC0415
    from deephash_pipeline.deephash.feature_hash import learned_hash  # noqa: PLC0415
    from deephash_pipeline.hashing import HASH_FUNCTIONS  # noqa: PLC0415
    from deephash_pipeline.hashing.srh import SRH  # noqa: PLC0415

    with ImageIndex.open(folder, read_only=True, device=device) as images:
        assert isinstance(images.index, HammingIndex) and isinstance(images.hasher, ImageHasher)
        if not images.index.features:
            raise InputError(f"{folder} keeps no features to fit on: build an index without --hasher")
        if len(images) < (needed := fewest(images.hasher.code_length)):
            raise InputError(f"{folder} has {len(images)} pictures, and {needed} are needed to fit a hash function")
        bits = images.hasher.code_length
        usual = SRH(bits, supervised=True) if labels else SRH(bits, diffusion=DIFFUSION)
        function = usual if method == USUAL else HASH_FUNCTIONS[method](bits)
        if function.supervised and not labels:
            raise InputError(f"`{method}` learns from labels: add --labels folder")
        ids = images.index.sample(MOST, seed=0)
        classes = None
        if labels:
            known = [item.get("label") for item in images.index.metadata(ids)]
            if method != USUAL:
                ids = [name for name, label in zip(ids, known, strict=True) if label is not None]
                known = [label for label in known if label is not None]
            names = sorted({label for label in known if label is not None})
            numbers = {name: number for number, name in enumerate(names)}
            classes = np.array([numbers.get(label, -1) for label in known])
        encoder, about = learned_hash(function, images.hasher.extractor, images.index.features_of(ids), classes)
        return ImageHasher(images.hasher.trunk, encoder, about, device)
