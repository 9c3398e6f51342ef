import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from deephash_pipeline.hamming import HammingIndex, store
from tests.hamming.brute_force import ListIndex, random_codes


@pytest.mark.parametrize("code_length", [1, 7, 64, 65, 255, 256, 257, 512, 1000, 1024, 4095, 4096])
def test_codes_of_every_width_are_found_after_additions_removals_and_merges(tmp_path, code_length, monkeypatch):
    """Single queries and batches, ties in the order of insertion; some codes differ from a query in all bits."""
    monkeypatch.setattr(store, "BULK_ITEMS", 1000)
    rng = np.random.default_rng(code_length)
    index, expected = HammingIndex.create(tmp_path / "index", code_length), ListIndex(code_length)
    codes = random_codes(rng, 3000, code_length, different=2600)
    codes[7] = random_codes(rng, 1, code_length)[0]
    codes[2500] = codes[7] ^ np.packbits(np.ones(code_length, dtype=np.uint8))
    for rows in (slice(0, 2600), slice(2600, 2900), slice(2900, 3000)):
        some = {"label": [0] * len(codes[rows])}
        index.add(list(range(3000))[rows], codes[rows], some)
        expected.add(list(range(3000))[rows], codes[rows], some)
    queries = np.concatenate([codes[7:8], random_codes(rng, 39, code_length)])

    def check(found):
        for query, k in ((0, len(expected.items)), (1, 10)):
            ranked = expected.ranked(queries[query])[:k]
            assert found.search(queries[query : query + 1], k)[0] == ranked
            assert found.search(queries, k)[query] == ranked
        assert found.search(queries[:1], 3000).distances[0, -1] == code_length

    check(index)
    gone = rng.choice(np.setdiff1d(np.arange(3000), [7, 2500]), 400, replace=False).tolist()
    index.remove(gone)
    expected.remove(gone)
    check(index)
    # What a kill at this moment would leave is the folder as it is, of a writer that has closed nothing.
    with HammingIndex.open(shutil.copytree(tmp_path / "index", tmp_path / "left")) as reopened:
        check(reopened)
    index.compact()
    check(index)
    index.close()
    check(HammingIndex.open(tmp_path / "index", read_only=True))


@pytest.mark.complete
def test_no_kernel_reaches_beyond_its_arrays(tmp_path):
    """Of 127 and 4,095 bits, whole triples count up to more than the distances have digits for."""
    program = """
import numpy as np
from deephash_pipeline.hamming import HammingIndex
for code_length in (127, 4095):
    codes = np.packbits(np.random.default_rng(0).random((5000, code_length)) < 0.5, axis=1)
    index = HammingIndex(code_length)
    index.add(range(5000), codes)
    for queries in (codes[:1], codes[:40]):
        assert index.search(queries, 10).distances[0, 0] == 0
        assert index.within(queries, 0)[0] == [(0, 0)]
"""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=300)
