"""Answers without copies of those before them."""

from collections.abc import Callable, Sequence

import numpy as np

from deephash_pipeline.search import Answers, HammingIndex, ItemId, Searchable
from deephash_pipeline.search.images.changes import DIGEST

NEAR = 0.08
"""Cosine distance of features up to which a picture is hidden. Of all pairs of 3,231 photographs of Caltech-101, copies
among them, .001 % are that near; of 3,078 of SUN .0001 %."""


def distinct(index: Searchable, ask: Callable[[int], Answers], k: int) -> Answers:
    """Answer a query by the k nearest that are no copies of one before: of its bytes, or near by kept features.

    Args:
        index: which is searched.
        ask: gives as many answers to one query as it is asked for, or all there are.
        k: how many are wanted.
    """
    wanted = k
    while True:
        found = ask(wanted)
        kept = _first_of_copies(index, found.ids[0].tolist(), k)
        if len(kept) == k or found.ids.shape[1] < wanted:
            scores = None if found.scores is None else found.scores[:, kept]
            return Answers(found.ids[:, kept], found.distances[:, kept], scores)
        wanted *= 2


def _first_of_copies(index: Searchable, ids: Sequence[ItemId], most: int) -> list[int]:
    """Rows of the first items of which none before is a copy."""
    digests = [item.metadata.get(DIGEST) or item.id for item in index.items(ids)]
    has_features = isinstance(index, HammingIndex) and bool(index.features)
    z = index.features_of(ids) if isinstance(index, HammingIndex) and has_features else np.zeros((len(ids), 1))
    z = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    kept: list[int] = []
    for row, digest in enumerate(digests):
        same = any(digests[other] == digest for other in kept)
        if not (same or (z[kept] @ z[row] >= 1 - NEAR).any()):
            kept.append(row)
            if len(kept) == most:
                break
    return kept
