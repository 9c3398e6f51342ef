"""Results of looks at files, beside an index: the next look reads and compares what is new alone.

The file may be deleted at any time. One that is damaged, or that other code has made, is passed over.
"""

import hashlib
import json
import zipfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import PIL
import scipy
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import replacing
from deephash_pipeline.hamming.index_folder import FINGERPRINTS
from deephash_pipeline.images import decoding
from deephash_pipeline.photographs.duplicates.extras import Extras
from deephash_pipeline.photographs.duplicates.groups import Colours, Photo
from deephash_pipeline.photographs.duplicates.registration import Registration

Pair = tuple[str, str]
Known = TypeVar("Known")
PHOTO_FACTS = ("width", "height", "bytes", "modified", "pages", "grey", "lossless", "raw")
"""Of a file, beside its extras."""
PAIRS_A_FILE = 64
"""Comparisons that are kept at most, the latest."""


@dataclass
class Kept:
    """What is known of files by their keys, see `file_key`; a file with another content has another key.

    Attributes:
        prints: small grey picture (height, width) of a file.
        pairs: how two pictures agree, the one before the other as they were listed.
        facts: sizes and dates of a file.
        colours: whether a file has no colours, and whether it can be seen through.
        verdicts: what tells the second file of two from an edit of the first; None for nothing.
        features: features (dimension,) of a file that the index lacks, by the network that has made its own.
        network: name of the network that has made the features of the index, with the digest of its hasher.

    Example:
        >>> len(Kept())
        0
    """

    prints: dict[str, NDArray[np.uint8]] = field(default_factory=dict)
    pairs: dict[Pair, Registration] = field(default_factory=dict)
    facts: dict[str, Photo] = field(default_factory=dict)
    colours: dict[str, Colours] = field(default_factory=dict)
    verdicts: dict[Pair, str | None] = field(default_factory=dict)
    features: dict[str, NDArray[np.float16]] = field(default_factory=dict)
    network: str = ""

    def __len__(self) -> int:
        """Number of what is known; a look only adds to it."""
        of_files = len(self.prints) + len(self.facts) + len(self.colours) + len(self.features)
        return of_files + len(self.pairs) + len(self.verdicts)

    def of(self, keys: Collection[str]) -> "Kept":
        """What of it is of some files, and the latest of its comparisons."""
        return Kept(
            _of_files(self.prints, keys),
            _of_pairs(self.pairs, keys),
            _of_files(self.facts, keys),
            _of_files(self.colours, keys),
            _of_pairs(self.verdicts, keys),
            _of_files(self.features, keys),
            self.network,
        )


def read_kept(folder: Path | None) -> Kept:
    """Read what earlier looks have kept beside an index; nothing where there is no file of use."""
    if folder is None:
        return Kept()
    try:
        with np.load(folder / FINGERPRINTS, allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            if about["code"] != _code():
                return Kept()
            keys = about["keys"]
            return Kept(
                dict(zip(keys, _prints(file), strict=False)),
                {(keys[one], keys[other]): found for one, other, found in _pairs(file)},
                {keys[row]: _photo(values) for row, *values in about["facts"]},
                {keys[row]: Colours(*values) for row, *values in about["colours"]},
                {(keys[one], keys[other]): left for one, other, left in about["verdicts"]},
                dict(zip([keys[row] for row in about["featured"]], file["features"], strict=True)),
                about["network"],
            )
    except (OSError, ValueError, KeyError, IndexError, TypeError, EOFError, zipfile.BadZipFile):
        return Kept()


def write_kept(folder: Path | None, kept: Kept, keys: Collection[str], most_others: int) -> None:
    """Keep what is known beside an index, in place of what was kept there; where that cannot be, nothing.

    Args:
        folder: directory of the index.
        kept: what is known.
        keys: of the files of this look.
        most_others: number of other files of which earlier looks have kept something; where there are more, as of files
            that have changed since, they are left out.
    """
    everything = dict.fromkeys((*kept.prints, *kept.facts))
    others = everything.keys() - keys
    kept = kept.of(everything.keys() if len(others) <= most_others else everything.keys() - others)
    if folder is None or not kept.prints:
        return
    rows = {key: row for row, key in enumerate(dict.fromkeys((*kept.prints, *kept.facts)))}
    about = {
        "code": _code(),
        "network": kept.network,
        "keys": list(rows),
        "featured": [rows[key] for key in kept.features],
        "facts": [[rows[key], *_values(photo)] for key, photo in kept.facts.items()],
        "colours": [[rows[key], *map(bool, colours)] for key, colours in kept.colours.items()],
        "verdicts": [[rows[one], rows[other], left] for (one, other), left in kept.verdicts.items()],
    }
    values = [[found.agreement, *found.placement.ravel()] for found in kept.pairs.values()]
    arrays: dict[str, NDArray[Any]] = {
        "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        "shapes": np.array([grey.shape for grey in kept.prints.values()], dtype=np.int64),
        "greys": np.concatenate([grey.ravel() for grey in kept.prints.values()]),
        "features": np.array(list(kept.features.values()), dtype=np.float16),
        "rows": np.array([[rows[one], rows[other]] for one, other in kept.pairs], dtype=np.int64).reshape(-1, 2),
        "values": np.array(values, dtype=np.float64).reshape(-1, 7),
    }
    with suppress(OSError, InputError), replacing(folder / FINGERPRINTS) as beside:
        np.savez(beside, allow_pickle=False, **arrays)


def _of_files(known: dict[str, Known], keys: Collection[str]) -> dict[str, Known]:
    return {key: value for key, value in known.items() if key in keys}


def _of_pairs(known: dict[Pair, Known], keys: Collection[str]) -> dict[Pair, Known]:
    of_files = [(pair, found) for pair, found in known.items() if pair[0] in keys and pair[1] in keys]
    return dict(of_files[-PAIRS_A_FILE * len(keys) :])


def _prints(file: Any) -> Iterator[NDArray[np.uint8]]:
    shapes = file["shapes"]
    greys = np.split(file["greys"], np.cumsum(shapes.prod(axis=1))[:-1])
    yield from (grey.reshape(shape) for grey, shape in zip(greys, shapes, strict=True))


def _pairs(file: Any) -> Iterator[tuple[int, int, Registration]]:
    for (one, other), values in zip(file["rows"].tolist(), file["values"], strict=True):
        yield one, other, Registration(float(values[0]), values[1:].reshape(2, 3))


def _values(photo: Photo) -> list[Any]:
    """What is known of a file but for its name; `_photo` takes it back."""
    extras = photo.extras
    return [*(getattr(photo, fact) for fact in PHOTO_FACTS), sorted(extras.names), extras.taken, extras.camera]


def _photo(values: list[Any]) -> Photo:
    names, taken, camera = values[len(PHOTO_FACTS) :]
    facts = dict(zip(PHOTO_FACTS, values, strict=False))
    return Photo("", Path(), **facts, extras=Extras(frozenset(names), taken, camera))


def _code() -> str:
    """The digest of what makes all that is kept: the modules that decode and compare, and their libraries."""
    digest = hashlib.blake2b(f"{np.__version__} {scipy.__version__} {PIL.__version__}".encode(), digest_size=16)
    for folder in (Path(__file__).parent, *map(Path, decoding.__path__)):
        for module in sorted(folder.glob("*.py")):
            digest.update(module.read_bytes())
    return digest.hexdigest()
