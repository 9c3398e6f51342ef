"""Metrics of graded relevance by counting beside a ranking: `python -m benchmarks.graded`.

The ranking is what published code does: distances as products of signs, a stable sort for each query, then gains and
their sums along the order. It gives the metrics of one order of tied items, ours their expectation over all orders.
"""

import sys
import time
from collections.abc import Callable

import click
import numba
import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval import count_shared_labels, graded_metrics, pack_bits

CLASSES, LABELS_PER_ITEM, RANK = 21, 1.9, 100


def draw(items: int, code_length: int, generator: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Draw random codes (items, code_length), and labels (items, classes) of which each item has one at least."""
    labels = generator.random((items, CLASSES)) < (LABELS_PER_ITEM - 1) / (CLASSES - 1)
    labels[np.arange(items), generator.integers(CLASSES, size=items)] = True
    return generator.random((items, code_length)) < 0.5, labels


def sorted_metrics(
    query: tuple[NDArray[np.float32], NDArray[np.float32]],
    database: tuple[NDArray[np.float32], NDArray[np.float32]],
    k: int = RANK,
) -> dict[str, float]:
    """Rank by sorting, query by query: signs and labels in float32."""
    discounts = 1 / np.log2(np.arange(2, len(database[0]) + 2))
    values: dict[str, list[float]] = {"ndcg": [], "acg": [], "wap": []}
    for signs, labels in zip(*query, strict=True):
        distances = (len(signs) - database[0] @ signs) / 2
        shared = (database[1] @ labels)[np.argsort(distances, kind="stable")]
        gains = 2**shared - 1
        ideal = np.sort(gains)[::-1][:k] @ discounts[:k]
        averages = np.cumsum(shared) / np.arange(1, len(shared) + 1)
        relevant = shared > 0
        values["ndcg"].append(gains[:k] @ discounts[:k] / ideal)
        values["acg"].append(averages[k - 1])
        values["wap"].append((averages * relevant)[:k].sum() / min(relevant.sum(), k))
    return {f"{name}_at_{k}": float(np.mean(of_queries)) for name, of_queries in values.items()}


def cpu_seconds(run: Callable[[], object], rounds: int) -> float:
    """Least processor time of some calls."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


@click.command()
@click.option("--queries", default=10_000)
@click.option("--items", default=50_000)
@click.option("--sorted-queries", default=20, help="Queries that are ranked by sorting; their time is extrapolated.")
@click.option("--code-length", default=48)
@click.option("--seed", default=0)
@click.option("--rounds", default=5)
def main(queries: int, items: int, sorted_queries: int, code_length: int, seed: int, rounds: int) -> None:  # noqa: PLR0913 (options)
    """Time both on one thread, and print processor seconds for all queries and their ratio."""
    numba.set_num_threads(1)
    generator = np.random.default_rng(seed)
    (query_bits, query_labels), (bits, labels) = (draw(count, code_length, generator) for count in (queries, items))
    packed = (pack_bits(query_bits), query_labels, pack_bits(bits), labels, code_length)
    few = (2 * query_bits[:sorted_queries].astype(np.float32) - 1, query_labels[:sorted_queries].astype(np.float32))
    signs = (2 * bits.astype(np.float32) - 1, labels.astype(np.float32))

    def count() -> dict[str, float]:
        return graded_metrics(count_shared_labels(*packed), RANK)

    count()
    ours = cpu_seconds(count, rounds)
    rival = cpu_seconds(lambda: sorted_metrics(few, signs), rounds) * queries / sorted_queries
    sys.stdout.write(
        f"{queries:,} queries, {items:,} items, {code_length} bits: by counting {ours:.3f} s, by sorting {rival:.1f} s "
        f"(from {sorted_queries} queries), {rival / ours:.0f} times as long\n"
    )


if __name__ == "__main__":
    main()
