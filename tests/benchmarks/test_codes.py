from pathlib import Path

import numpy as np
import pytest

from benchmarks.codes import MISLABELLED_SHARE, saved_codes, synthetic_codes
from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval import check_codes, distinct_codes, pack_bits, unpack_bits


@pytest.mark.parametrize("codes", ["random", "trained"])
def test_equal_seeds_give_equal_codes(codes: str) -> None:
    first, again, other = (synthetic_codes(codes, 10, 12, 20, 300, seed) for seed in (0, 0, 1))
    assert np.array_equal(first.database_codes, again.database_codes)
    assert np.array_equal(first.query_labels, again.query_labels)
    assert not np.array_equal(first.database_codes, other.database_codes)
    assert check_codes(first.query_codes, 12).shape == (20, 2)
    assert set(np.unique(first.database_labels)) == set(range(10))


def test_trained_codes_gather_at_prototypes_except_the_mislabelled() -> None:
    benchmark = synthetic_codes("trained", 2, 64, 1, 4000)
    bits = unpack_bits(benchmark.database_codes, 64)
    prototypes = [np.median(bits[benchmark.database_labels == label], axis=0) for label in (0, 1)]
    distances = np.array([np.count_nonzero(bits != prototype, axis=1) for prototype in prototypes])
    elsewhere = np.argmin(distances, axis=0) != benchmark.database_labels
    # Half of the mislabelled are drawn into their own class again.
    assert np.mean(elsewhere) == pytest.approx(MISLABELLED_SHARE / 2, abs=0.03)
    nearest = distances.min(axis=0)
    assert np.median(nearest) <= 3 and nearest.max() > 15
    assert distinct_codes(benchmark.database_codes) < 3500


def test_random_codes_do_not_gather() -> None:
    assert distinct_codes(synthetic_codes("random", 2, 64, 1, 4000).database_codes) == 4000


def test_other_codes_are_refused() -> None:
    with pytest.raises(InputError, match="codes is 'learned'"):
        synthetic_codes("learned", 2, 12, 1, 10)


def test_codes_of_a_finished_run_are_read_by_length(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for name, items in (("training", 30), ("query", 4)):
        folder = tmp_path / "02_intermediate" / "birds" / name
        folder.mkdir(parents=True)
        np.save(folder / "labels.npy", np.arange(items) % 3)
    for length in (128, 24, 12):
        folder = tmp_path / "07_model_output" / "birds" / "itq" / f"b{length}"
        folder.mkdir(parents=True)
        database, query = (pack_bits(generator.random((items, length)) < 0.5) for items in (30, 4))
        np.savez(folder / "codes.npz", database=database, query=query, code_length=length)
    found = saved_codes("birds/itq", tmp_path)
    assert [(benchmark.codes, benchmark.classes, benchmark.code_length) for benchmark in found] == [
        ("birds/itq", 3, 12),
        ("birds/itq", 3, 24),
    ]
    assert found[1].database_codes.shape == (30, 3) and found[1].query_labels.tolist() == [0, 1, 2, 0]
    for name in ("birds", "birds/lsh", "fish/itq"):
        with pytest.raises(InputError, match="no codes of"):
            saved_codes(name, tmp_path)
