"""Answers without copies of those before them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming import Answers, HammingIndex, ItemId, Searchable
from deephash_pipeline.photographs.changes import DIGEST_COLUMN

HIDDEN_DISTANCE = 0.08
"""Cosine distance of features up to which a picture is hidden. Of all pairs of 3,231 photographs of Caltech-101, copies
among them, .001 % are that near; of 3,078 of SUN .0001 %."""


KnownPicture = tuple[ItemId, NDArray[Any]]
"""Digest of the bytes, and features of unit length."""


def distinct(index: Searchable, ask: Callable[[int], Answers], k: int) -> Answers:
    """Answer a query by the k nearest that are no copies of one before: of its bytes, or near by kept features.

    Args:
        index: index that is searched.
        ask: function that gives as many answers to one query as it is asked for, or all there are.
        k: number of answers that are wanted.
    """
    wanted = k
    known: dict[ItemId, KnownPicture] = {}
    while True:
        found = ask(wanted)
        ids = found.ids[0].tolist()
        new = [item_id for item_id in ids if item_id not in known]
        known |= zip(new, _pictures(index, new), strict=True)
        kept = _first_of_copies([known[item_id] for item_id in ids], k)
        if len(kept) == k or found.ids.shape[1] < wanted:
            return found.at(kept)
        wanted *= 2


def _pictures(index: Searchable, ids: Sequence[ItemId]) -> list[KnownPicture]:
    digests = [item.metadata.get(DIGEST_COLUMN) or item.id for item in index.items(ids)]
    has_features = isinstance(index, HammingIndex) and bool(index.features)
    z = index.features_of(ids) if isinstance(index, HammingIndex) and has_features else np.zeros((len(ids), 1))
    z = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return list(zip(digests, z, strict=True))


def _first_of_copies(pictures: Sequence[KnownPicture], most: int) -> list[int]:
    """Rows of the first pictures of which none before is a copy."""
    kept: list[int] = []
    for row, (digest, z) in enumerate(pictures):
        before = [pictures[other] for other in kept]
        if not any(other == digest or z_of_other @ z >= 1 - HIDDEN_DISTANCE for other, z_of_other in before):
            kept.append(row)
            if len(kept) == most:
                break
    return kept
