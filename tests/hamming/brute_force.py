"""What an index must answer: distances by numpy, a stable sort, and a dict of items in the order of insertion."""

import numpy as np


def random_codes(rng, count, code_length, different=None):
    """Packed codes, uint8 (count, bytes); at most `different` ones, so that there are equal codes and ties."""
    codes = np.packbits(rng.random((count if different is None else different, code_length)) < 0.5, axis=1)
    return codes if different is None else codes[rng.integers(0, different, count)]


def distances_between(queries, codes):
    return np.bitwise_count(queries[:, None, :] ^ codes[None, :, :]).sum(axis=2, dtype=np.int64)


def nearest(distances, rows, k):
    """The k nearest of some rows (ascending) for every query of distances (queries, rows of all)."""
    order = np.argsort(distances[:, rows], axis=1, kind="stable")[:, :k]
    return rows[order], np.take_along_axis(distances[:, rows], order, axis=1)


class ListIndex:
    """An index that is a dict: ids in the order of insertion, with code and metadata."""

    def __init__(self, code_length):
        self.code_length = code_length
        self.items = {}

    def add(self, ids, codes, metadata):
        for row, (item, code) in enumerate(zip(ids, codes, strict=True)):
            self.items.pop(item, None)
            self.items[item] = code, {name: values[row] for name, values in metadata.items()}

    def remove(self, ids):
        for item in ids:
            del self.items[item]

    def ranked(self, query, accept=None):
        """All items that are accepted by their metadata, with their distances, in order."""
        found = [
            (item, int(np.bitwise_count(code ^ query).sum()))
            for item, (code, metadata) in self.items.items()
            if accept is None or accept(metadata)
        ]
        return sorted(found, key=lambda answer: answer[1])
