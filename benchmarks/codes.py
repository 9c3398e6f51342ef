"""Codes to measure with: random ones, ones as trained networks make them, and those of a finished run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.documents import PROJECT
from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval import pack_bits

RANDOM, TRAINED = "random", "trained"
LONGEST_CODE = 64
MISLABELLED_SHARE = 0.15
# Share of bits that differ from the prototype: most items keep near the least, a few are lost altogether.
LEAST_FLIPPED_SHARE = 0.015
TAIL_EXPONENT = 1.0


@dataclass(frozen=True, eq=False)
class CodeBenchmark:
    """Queries and a database, packed as everywhere in `deephash_pipeline.retrieval`.

    Attributes:
        codes: what codes they are.
        classes: number of classes.
        code_length: bits per code.
        query_codes: uint8 (queries, ceil(code_length / 8)).
        query_labels: int64 (queries,).
        database_codes: uint8 (items, ceil(code_length / 8)).
        database_labels: int64 (items,).
    """

    codes: str
    classes: int
    code_length: int
    query_codes: NDArray[np.uint8]
    query_labels: NDArray[np.int64]
    database_codes: NDArray[np.uint8]
    database_labels: NDArray[np.int64]

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `count_distances`."""
        names = ("query_codes", "query_labels", "database_codes", "database_labels", "code_length")
        return {name: getattr(self, name) for name in names}

    def first_queries(self, count: int) -> "CodeBenchmark":
        """The same database with only the first `count` queries."""
        return CodeBenchmark(
            self.codes,
            self.classes,
            self.code_length,
            self.query_codes[:count],
            self.query_labels[:count],
            self.database_codes,
            self.database_labels,
        )


def synthetic_codes(
    codes: str, classes: int, code_length: int, queries: int, items: int, seed: int = 0
) -> CodeBenchmark:
    """Draw labels uniformly and in no order, and codes that know nothing of them (random) or a lot (trained).

    A trained code is the prototype of a class, of its own class for all but the mislabelled, with bits flipped
    independently; the share of bits that an item flips follows Pareto's law, so many codes are equal and a few far off.

    Args:
        codes: "random" or "trained".
        classes: number of classes, at least 1.
        code_length: bits per code.
        queries: number of queries.
        items: number of database items.
        seed: equal seeds give equal codes.

    Raises:
        InputError: if `codes` is neither.
    """
    if codes not in (RANDOM, TRAINED):
        raise InputError(f"codes is {codes!r}; choose {RANDOM!r} or {TRAINED!r}.")
    generator = np.random.default_rng([seed, classes, code_length])
    prototypes = generator.random((classes, code_length)) < 0.5

    def draw(count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        labels = generator.integers(0, classes, count)
        if codes == RANDOM:
            return pack_bits(generator.random((count, code_length)) < 0.5), labels
        mislabelled = generator.random(count) < MISLABELLED_SHARE
        seen_as = np.where(mislabelled, generator.integers(0, classes, count), labels)
        flipped_share = np.minimum(LEAST_FLIPPED_SHARE * (1 + generator.pareto(TAIL_EXPONENT, count)), 0.5)
        flips = generator.random((count, code_length)) < flipped_share[:, None]
        return pack_bits(prototypes[seen_as] ^ flips), labels

    database_codes, database_labels = draw(items)
    query_codes, query_labels = draw(queries)
    return CodeBenchmark(codes, classes, code_length, query_codes, query_labels, database_codes, database_labels)


def saved_codes(name: str, data: Path = PROJECT / "data") -> list[CodeBenchmark]:
    """Read the codes of a finished run, of every length up to 64 bits, shortest first.

    Args:
        name: "<benchmark>/<method>", such as "mnist/deephash".
        data: the project's folder of data.

    Raises:
        InputError: if there are none.
    """
    benchmark, _, method = name.partition("/")
    found = sorted((data / "07_model_output" / benchmark / method).glob("b*/codes.npz"))
    if not method or not found:
        raise InputError(f"there are no codes of {name!r} in {data}; give <benchmark>/<method> of a finished run.")
    labels = data / "02_intermediate" / benchmark
    database_labels = np.load(labels / "training" / "labels.npy", allow_pickle=False).astype(np.int64)
    query_labels = np.load(labels / "query" / "labels.npy", allow_pickle=False).astype(np.int64)
    classes = len(np.unique(database_labels))
    benchmarks = []
    for path in found:
        with np.load(path, allow_pickle=False) as arrays:
            length, query, database = int(arrays["code_length"]), arrays["query"], arrays["database"]
        if length <= LONGEST_CODE:
            benchmarks.append(
                CodeBenchmark(name, classes, length, query, query_labels, database, database_labels),
            )
    return sorted(benchmarks, key=lambda benchmark: benchmark.code_length)
