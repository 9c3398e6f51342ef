"""Fingerprints and comparisons of an earlier look, beside an index: the next look at the same files takes seconds.

The file may be deleted at any time. One that is damaged, or that other code has made, is passed over.
"""

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import replacing, stamp_of
from deephash_pipeline.hamming.replacing import FINGERPRINTS
from deephash_pipeline.images import decoding
from deephash_pipeline.photographs.duplicates.registration import Registration

Print = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""PHash in eight orientations (8, 8), and a small grey picture (height, width)."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Kept:
    """What is known of files by their paths and stamps, see `file_key`.

    Attributes:
        prints: pHash and grey picture of a file.
        pairs: how two pictures agree, the one before the other as they were listed.

    Example:
        >>> Kept().prints
        {}
    """

    prints: Mapping[str, Print] = field(default_factory=dict)
    pairs: Mapping[Pair, Registration] = field(default_factory=dict)


def file_key(path: Path) -> str:
    """Name a file as it is; another content has another name."""
    return f"{path}\n{stamp_of(path)}"


def read_kept(folder: Path | None) -> Kept:
    """Read what an earlier look has kept beside an index; nothing where there is no file of use."""
    if folder is None:
        return Kept()
    try:
        with np.load(folder / FINGERPRINTS, allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            if about["code"] != _code():
                return Kept()
            keys, shapes = about["keys"], file["shapes"]
            ends = np.cumsum(shapes.prod(axis=1))
            greys = np.split(file["greys"], ends[:-1])
            prints = {
                key: (hashes, grey.reshape(shape))
                for key, hashes, grey, shape in zip(keys, file["hashes"], greys, shapes, strict=True)
            }
            rows, values = file["rows"].tolist(), file["values"]
            pairs = {
                (keys[one], keys[other]): Registration(float(of[0]), float(of[1]), of[2:].reshape(2, 3))
                for (one, other), of in zip(rows, values, strict=True)
            }
    except (OSError, ValueError, KeyError, IndexError, TypeError, EOFError, zipfile.BadZipFile):
        return Kept()
    return Kept(prints, pairs)


def write_kept(
    folder: Path | None, keys: Sequence[str], prints: Sequence[Print], pairs: Mapping[tuple[int, int], Registration]
) -> None:
    """Keep what a look has found beside an index, in place of what an earlier one has; where that cannot be, nothing.

    Args:
        folder: directory of the index.
        keys: names of the files, see `file_key`.
        prints: of each of them.
        pairs: how two of them agree, by their numbers.
    """
    if folder is None or not keys:
        return
    values = [[found.correlation, found.changed, *found.placement.ravel()] for found in pairs.values()]
    arrays: dict[str, NDArray[Any]] = {
        "about": np.frombuffer(json.dumps({"code": _code(), "keys": list(keys)}).encode(), dtype=np.uint8),
        "hashes": np.stack([hashes for hashes, _ in prints]),
        "shapes": np.array([grey.shape for _, grey in prints], dtype=np.int64),
        "greys": np.concatenate([grey.ravel() for _, grey in prints]),
        "rows": np.array(list(pairs), dtype=np.int64).reshape(-1, 2),
        "values": np.array(values, dtype=np.float64).reshape(-1, 8),
    }
    with suppress(OSError, InputError), replacing(folder / FINGERPRINTS) as beside:
        np.savez(beside, allow_pickle=False, **arrays)


def _code() -> str:
    """The digest of the modules that make what is kept: decoding, and all that compares."""
    digest = hashlib.blake2b(digest_size=16)
    for folder in (Path(__file__).parent, *map(Path, decoding.__path__)):
        for module in sorted(folder.glob("*.py")):
            digest.update(module.read_bytes())
    return digest.hexdigest()
