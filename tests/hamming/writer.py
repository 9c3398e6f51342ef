"""A process that changes an index until it is killed, and says what is stored for good."""

import os

import numpy as np

from deephash_pipeline.hamming import HammingIndex, store
from deephash_pipeline.hamming.ledger import Ledger

CODE_LENGTH = 48


def code_of(item):
    return np.random.default_rng(item).integers(0, 256, (1, CODE_LENGTH // 8), dtype=np.uint8)


def codes_of(items):
    return np.concatenate([code_of(item) for item in items])


def create_and_be_killed(folder, last):
    """Begin to make an index, and end as if killed where a method of its ledger is called."""
    setattr(Ledger, last, lambda *_: os._exit(9))
    HammingIndex.create(folder, CODE_LENGTH)


def forget(folder, item):
    with HammingIndex.open(folder) as index:
        index.remove([item])
        index.compact()


def change_until_killed(folder, seed, said):
    def say(action, *ids):
        said.send((action, ids))

    store.BULK_ITEMS, store.TAIL_ITEMS, store.MERGED_ITEMS = 100, 60, 400
    rng = np.random.default_rng(seed)
    index = HammingIndex.open(folder)
    present = list(index)
    next_id = max(present, default=0) + 1 + 1000 * seed
    while True:
        action = rng.choice(["add", "add", "bulk", "remove", "compact"])
        if action in ("add", "bulk"):
            ids = list(range(next_id, next_id + (120 if action == "bulk" else int(rng.integers(1, 8)))))
            next_id += len(ids)
            say("adding", *ids)
            index.add(ids, codes_of(ids), {"label": [item % 3 for item in ids]})
            present += ids
            say("added", *ids)
        elif action == "remove" and len(present) > 3:
            ids = [present.pop(int(rng.integers(len(present)))) for _ in range(3)]
            say("removing", *ids)
            index.remove(ids)
            say("removed", *ids)
        elif action == "compact":
            index.compact()
