"""Writes an index into another engine, and looks afterwards whether it answers alike."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.engines.exported import ExportedIndex
from deephash_pipeline.engines.rows import About, row_of
from deephash_pipeline.hamming import HammingIndex

EXPORTED_AT_ONCE = 5000
MOST_VALUES = 1000
CHECKED_QUERIES = 20
CHECKED_NEIGHBOURS = 10


@dataclass(frozen=True)
class Exported:
    """What an export has done.

    Attributes:
        written: rows that were missing or different.
        deleted: rows that the index does not have.
        there: rows that were right already.
        queries: number of queries that were answered alike afterwards.
    """

    written: int
    deleted: int
    there: int
    queries: int


def export_index(
    index: HammingIndex,
    target: ExportedIndex,
    seed: int = 0,
    advance: Callable[[int], object] = lambda done: None,
    vectors: bool = False,
) -> Exported:
    """Make the rows of another engine those of an index.

    Rows that are right are left as they are, so it may be run again: after it was broken off it goes on where it was,
    after a change of the index it writes the difference.

    Args:
        index: index with the items; read as they are when the export begins.
        target: table or collection that takes them.
        seed: seed of the queries that are asked afterwards.
        advance: function that is called after each batch with the number of items that are done.
        vectors: True if features go along, in float16, to rescore by.

    Raises:
        InputError: the target has codes of another kind, cannot be written, or does not answer as the index does.
    """
    # Ids of an index without items are of no kind.
    text_ids = not index.integer_ids if len(index) else target.about is None or target.about.text_ids
    form = About(index.code_length, text_ids, index.features if vectors else 0, made_by=index.made_by)
    if target.about is None:
        target.create(form)
    elif any(getattr(target.about, name) != getattr(form, name) for name in ("code_length", "text_ids", "width")):
        raise InputError(
            f"{target.place} has codes of {target.about.code_length} bits and vectors of {target.about.width} numbers, "
            f"the index of {form.code_length} and {form.width}, or ids are of another kind: give another name."
        )
    else:
        # Until the last row is written it is not to be searched.
        target.describe(replace(target.about, items=None))
    positions, digests = target.stored()
    there = dict(zip(positions.tolist(), digests.tolist(), strict=True))
    kept = written = 0
    exported: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    for some, items, features in index.batches(EXPORTED_AT_ONCE):
        rows = list(map(row_of, some.tolist(), items, features[:, : form.width]))
        new = [row for row in rows if there.get(row.position) != row.digest]
        if new:
            target.put(new)
        written, kept = written + len(new), kept + len(rows) - len(new)
        exported.append(some)
        advance(kept + written)
    ours = np.concatenate(exported)
    surplus = np.setdiff1d(positions, ours)
    for start in range(0, len(surplus), EXPORTED_AT_ONCE):
        target.delete(surplus[start : start + EXPORTED_AT_ONCE].tolist())
    values = {name: index.values(name, MOST_VALUES) for name in index.columns}
    kinds_of = {name: index.kinds(name) for name in index.columns}
    last = int(ours[-1]) if len(ours) else -1
    target.describe(
        replace(form, columns=index.columns, values=values, kinds=kinds_of, items=len(ours), last_position=last)
    )
    return Exported(written, len(surplus), kept, _check(index, target, seed))


def _check(index: HammingIndex, target: ExportedIndex, seed: int) -> int:
    """Compare counts, and answers to codes of the index with some bits flipped; return how many were compared."""
    items, remedy = len(index), "export again while nothing writes the index"
    if (counted := target.count()) != items:
        raise InputError(f"{target.place} has {counted:,} rows of {items:,} items: {remedy}.")
    if not items:
        return 0
    sampled = index.items(index.sample(CHECKED_QUERIES, seed))
    queries = np.stack([item.code for item in sampled])
    rng = np.random.default_rng(seed)
    flipped = np.packbits(rng.random((len(queries), index.code_length)) < 0.1, axis=1)
    flipped[::2] = 0
    queries ^= flipped
    k = min(CHECKED_NEIGHBOURS, items)
    expected, found = index.search(queries, k), target.search(queries, k)
    if any(expected[query] != found[query] for query in range(len(queries))):
        raise InputError(f"{target.place} does not answer as the index does: {remedy}.")
    for ours, theirs in zip(sampled, target.items([item.id for item in sampled]), strict=True):
        if ours.metadata != theirs.metadata or ours.code.tobytes() != theirs.code.tobytes():
            raise InputError(f"{target.place} has another item {ours.id!r} than the index: {remedy}.")
    return len(queries)
