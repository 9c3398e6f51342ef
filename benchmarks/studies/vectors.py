"""Indexes of vectors side by side, in one process on one thread: ours, faiss, usearch and, if it is there, hnswlib.

    python -m benchmarks.studies.vectors --items 200000 --numbers 384        # vectors by the recipe below
    python -m benchmarks.studies.vectors --vectors embeddings.npy            # your own; the last 1,000 rows are queries
    python -m benchmarks.studies.vectors --skip hnswlib --skip usearch       # not what is slow to build; or --only

Recipe: normal numbers whose variance falls along the directions as (1 + i / 8)^-1.1, not rotated, and added to one
of a thousand centres of the same spectrum; scaled to length 1. Neighbours are those of the exact cosine. An index
is tuned as its guide says: its one knob of the search is raised until recall@10 is reached, and once more under a
condition that 1 % of the items meet. Times are CPU time, the median of three rounds in which all indexes take turns:
other work on the machine disturbs it less than the wall's. MiB are what the process holds more after an index is built
and searched. hnswlib is optional: it takes part where it is installed.
"""

import argparse
import ctypes
import gc
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from mmap import MADV_DONTNEED, mmap
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.documents import markdown_table, three_digits
from benchmarks.measuring import describe_run, use_one_thread
from benchmarks.processes import process_bytes
from deephash_pipeline.embeddings import VectorIndex

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

K, BATCH, SINGLES, CHANGED, ROUNDS = 10, 500, 100, 1000, 3
GOALS = (0.95, 0.99)
CENTRES, ONE_PERCENT = 1000, 100
ROWS_AT_ONCE = 16_384
EFFORTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def of_length_1(rows: Floats) -> Floats:
    """Scale rows to length 1, where they are."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        rows[start : start + ROWS_AT_ONCE] /= np.linalg.norm(rows[start : start + ROWS_AT_ONCE], axis=1, keepdims=True)
    return rows


def recipe(items: int, numbers: int, seed: int = 0) -> Floats:
    """Make vectors with the spectrum of sentence embeddings, float32 (items, numbers), of length 1."""
    generator = np.random.default_rng(seed)
    scale = ((1 + np.arange(numbers) / 8) ** -0.55).astype(np.float32)
    centres = generator.normal(size=(CENTRES, numbers)).astype(np.float32) * scale
    rows = np.empty((items, numbers), dtype=np.float32)
    # A block at a time: numbers of double precision would take twice the memory of all rows.
    blocks = [slice(start, min(start + ROWS_AT_ONCE, items)) for start in range(0, items, ROWS_AT_ONCE)]
    for block in blocks:
        rows[block] = generator.normal(size=rows[block].shape)
        rows[block] *= scale
    chosen = generator.integers(0, CENTRES, items)
    for block in blocks:
        rows[block] += np.float32(0.7) * centres[chosen[block]]
    return of_length_1(rows)


class Tried(NamedTuple):
    """An index of one kind.

    Attributes:
        search: rows of the k nearest of queries, with so much effort, and only where flags say if there are any.
        size: bytes.
        add: adds vectors; None if it cannot.
        remove: removes the rows that were added; None if it cannot.
        filtered: whether the search takes flags of the rows that may be found.
    """

    search: Callable[[Floats, float, NDArray[np.bool_] | None], Rows]
    size: Callable[[], int]
    add: Callable[[Floats], Any] | None = None
    remove: Callable[[Rows], Any] | None = None
    filtered: bool = False


def ours(vectors: Floats, folder: Path, **options: Any) -> Tried:
    """Make an index of this package."""
    index = VectorIndex.build(folder, vectors, metadata={"chosen": np.arange(len(vectors)) % ONE_PERCENT}, **options)

    def search(queries: Floats, effort: float, allowed: NDArray[np.bool_] | None) -> Rows:
        where = None if allowed is None else {"chosen": 0}
        return np.asarray(index.search(queries, K, where, recall=effort).ids, dtype=np.int64)

    def add(rows: Floats) -> None:
        ids = range(len(vectors), len(vectors) + len(rows))
        index.add(rows, ids, metadata={"chosen": np.ones(len(rows), dtype=np.int64)})

    size = lambda: sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())  # noqa: E731
    return Tried(search, size, add, lambda ids: index.remove(ids.tolist()), True)


def of_faiss(vectors: Floats, recipe_of_index: str, knob: str | None) -> Tried:
    """Make an index of faiss by its factory."""
    index = faiss.index_factory(vectors.shape[1], recipe_of_index, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    space = faiss.ParameterSpace()

    def search(queries: Floats, effort: float, allowed: NDArray[np.bool_] | None) -> Rows:
        if knob is not None and allowed is None:
            for name in knob.split(","):
                space.set_index_parameter(index, name, int(effort))
        parameters = None
        if allowed is not None:
            selector = faiss.IDSelectorBatch(np.flatnonzero(allowed))
            if "HNSW" in recipe_of_index:
                parameters = faiss.SearchParametersHNSW(sel=selector, efSearch=int(effort))
            elif "IVF" in recipe_of_index:
                parameters = faiss.SearchParametersIVF(sel=selector, nprobe=int(effort))
            else:
                parameters = faiss.SearchParameters(sel=selector)
        return index.search(queries, K, params=parameters)[1]

    removes = "HNSW" not in recipe_of_index and "Refine" not in recipe_of_index
    return Tried(
        search,
        lambda: len(faiss.serialize_index(index)),
        index.add,
        index.remove_ids if removes else None,
        "Refine" not in recipe_of_index,
    )


def of_usearch(vectors: Floats) -> Tried:
    """Make a graph of usearch, of numbers of one byte."""
    from usearch.index import Index  # noqa: PLC0415

    index = Index(ndim=vectors.shape[1], metric="cos", dtype="i8")
    index.add(np.arange(len(vectors)), vectors, threads=1)

    def search(queries: Floats, effort: float, allowed: NDArray[np.bool_] | None) -> Rows:
        index.expansion_search = max(K, int(effort))
        return np.atleast_2d(index.search(queries, K, threads=1).keys).astype(np.int64)

    def add(rows: Floats) -> None:
        index.add(np.arange(len(vectors), len(vectors) + len(rows)), rows, threads=1)

    return Tried(search, lambda: int(index.serialized_length), add, lambda ids: index.remove(ids, threads=1))


def of_hnswlib(vectors: Floats) -> Tried:
    """Make a graph of hnswlib."""
    import hnswlib  # noqa: PLC0415

    index = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.init_index(len(vectors) + CHANGED, ef_construction=200, M=16)
    index.set_num_threads(1)
    index.add_items(vectors)

    def search(queries: Floats, effort: float, allowed: NDArray[np.bool_] | None) -> Rows:
        index.set_ef(max(K, int(effort)))
        chosen = None if allowed is None else lambda row: bool(allowed[row])
        return index.knn_query(queries, K, filter=chosen)[0].astype(np.int64)

    def remove(ids: Rows) -> None:
        for row in ids.tolist():
            index.mark_deleted(row)

    add = lambda rows: index.add_items(rows, np.arange(len(vectors), len(vectors) + len(rows)))  # noqa: E731
    return Tried(search, index.index_file_size, add, remove, True)


def kinds(vectors: Floats, folder: Path) -> Iterator[tuple[str, Callable[[], Tried], Sequence[float]]]:
    """Yield the name of each index, how to make it, and the efforts to try."""
    lists = int(4 * len(vectors) ** 0.5)
    wanted = (0.9, 0.95, 0.97, 0.98, 0.99, 0.995)
    yield "ours, default", lambda: ours(vectors, folder / "default"), wanted
    yield "ours, 256 bits", lambda: ours(vectors, folder / "256", code_length=256), wanted
    yield "ours, float16", lambda: ours(vectors, folder / "float16", rescore="float16"), wanted
    yield "faiss Flat", lambda: of_faiss(vectors, "Flat", None), (1,)
    yield f"faiss IVF{lists}, SQ8", lambda: of_faiss(vectors, f"IVF{lists},SQ8", "nprobe"), EFFORTS
    yield "faiss HNSW32", lambda: of_faiss(vectors, "HNSW32", "efSearch"), tuple(16 * e for e in EFFORTS[:8])
    sub = vectors.shape[1] // 4
    fine = "k_factor_rf"
    yield f"faiss PQ{sub}x4fs, SQ8", lambda: of_faiss(vectors, f"PQ{sub}x4fs,Refine(SQ8)", fine), EFFORTS
    rabitq = f"IVF{lists},RaBitQfs,Refine(SQ8)"
    yield f"faiss IVF{lists}, RaBitQfs, SQ8", lambda: of_faiss(vectors, rabitq, f"nprobe,{fine}"), EFFORTS
    yield "usearch HNSW, int8", lambda: of_usearch(vectors), tuple(16 * e for e in EFFORTS[:8])
    if find_spec("hnswlib"):
        yield "hnswlib", lambda: of_hnswlib(vectors), tuple(16 * e for e in EFFORTS[:8])


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of something."""
    began = time.process_time()
    work()
    return time.process_time() - began


def recall(found: Rows, truth: Rows) -> float:
    """Share of the true neighbours that were found."""
    return float(np.mean([len(np.intersect1d(*rows)) / len(rows[1]) for rows in zip(found, truth, strict=True)]))


def resident(vectors: Floats) -> int:
    """Bytes that the process holds, without what has been given back to its allocator, and without mapped vectors."""
    gc.collect()
    mapped = getattr(vectors.base, "base", None)
    if isinstance(mapped, mmap):
        mapped.madvise(MADV_DONTNEED)
    ctypes.CDLL(None).malloc_trim(0)
    return process_bytes("VmRSS")


def least_effort(reached: Sequence[tuple[float, float]], goal: float) -> float:
    """The first effort of pairs (recall, effort) that reaches a goal; 0 if none does."""
    return next((effort for found, effort in reached if found >= goal), 0)


def tune(
    index: Tried, efforts: Sequence[float], queries: Floats, truth: Rows, allowed: NDArray[np.bool_] | None = None
) -> list[tuple[float, float]]:
    """Recall by effort, up to the first that finds all that was asked for."""
    reached: list[tuple[float, float]] = []
    for effort in efforts:
        reached.append((recall(index.search(queries, effort, allowed), truth), effort))
        if reached[-1][0] >= (max(GOALS) if allowed is None else GOALS[0]):
            break
    return reached


def times_of(index: Tried, effort: float, queries: Floats) -> tuple[float, float]:
    """CPU seconds of a query in a batch, and of a single one."""
    batch = seconds(lambda: index.search(queries[:BATCH], effort, None)) / BATCH
    return batch, seconds(lambda: [index.search(queries[q : q + 1], effort, None) for q in range(SINGLES)]) / SINGLES


def is_wanted(name: str, only: Sequence[str], skipped: Sequence[str]) -> bool:
    """Whether an index takes part: parts of names choose."""
    return (not only or any(part in name for part in only)) and not any(part in name for part in skipped)


def measure(vectors: Floats, queries: Floats, only: Sequence[str], skipped: Sequence[str]) -> list[dict[str, Any]]:
    """Build all indexes that are wanted, tune them, and let them take turns."""
    exact = faiss.IndexFlatIP(vectors.shape[1])
    exact.add(vectors)
    truth = exact.search(queries, K)[1]
    allowed = np.arange(len(vectors)) % ONE_PERCENT == 0
    chosen = faiss.SearchParameters(sel=faiss.IDSelectorBatch(np.flatnonzero(allowed)))
    truth_of_chosen = exact.search(queries[:SINGLES], K, params=chosen)[1]
    del exact
    folder = Path(tempfile.mkdtemp(prefix="vectors-"))
    tried: dict[str, Tried] = {}
    rows: dict[str, dict[str, Any]] = {}
    tuned: dict[str, dict[str, float]] = {}
    for name, make, efforts in kinds(vectors, folder):
        if not is_wanted(name, only, skipped):
            continue
        made: list[Tried] = []
        before = resident(vectors)
        built = seconds(lambda make=make, made=made: made.append(make()))  # type: ignore[misc]
        index = tried[name] = made[0]
        reached = tune(index, efforts, queries, truth)
        tuned[name] = {f"{goal:.2f}": least_effort(reached, goal) for goal in GOALS}
        rows[name] = {
            "index": name,
            "build s": three_digits(built),
            "bytes": round(index.size() / len(vectors)),
            "MiB": round((resident(vectors) - before) / 2**20),
            "highest recall": f"{max(reached)[0]:.3f}",
        }
        of_chosen = tune(index, efforts, queries[:SINGLES], truth_of_chosen, allowed) if index.filtered else []
        tuned[name]["1 %"] = least_effort(of_chosen, GOALS[0])
        rows[name]["recall of 1 %"] = f"{max(of_chosen)[0]:.3f}" if of_chosen else "no"
        print(rows[name], tuned[name], flush=True)
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(ROUNDS):
        for name, index in tried.items():
            efforts_of = tuned[name]
            for effort in {efforts_of[f"{goal:.2f}"] for goal in GOALS} - {0}:
                batch, single = times_of(index, effort, queries)
                for goal in GOALS:
                    if efforts_of[f"{goal:.2f}"] == effort:
                        times.setdefault((name, f"{goal:.2f}, batch"), []).append(batch)
                        times.setdefault((name, f"{goal:.2f}, single"), []).append(single)
            if effort := efforts_of["1 %"]:
                under = seconds(lambda i=index, e=effort: i.search(queries[:SINGLES], e, allowed))  # type: ignore[misc]
                times.setdefault((name, "1 %"), []).append(under / SINGLES)
    more = of_length_1(queries[:CHANGED] + np.float32(0.01))
    added = np.arange(len(vectors), len(vectors) + len(more))
    columns = [*(f"{goal:.2f}, {kind}" for goal in GOALS for kind in ("batch", "single")), "1 %"]
    for name, index in tried.items():
        for column in columns:
            values = times.get((name, column))
            rows[name][column] = three_digits(1000 * float(np.median(values))) if values else "never"
        if not index.filtered:
            rows[name]["1 %"] = "no"
        rows[name]["add"] = three_digits(seconds(lambda i=index: i.add(more))) if index.add else "no"  # type: ignore[misc]
        can = index.add and index.remove
        rows[name]["remove"] = three_digits(seconds(lambda i=index: i.remove(added))) if can else "no"  # type: ignore[misc]
    shutil.rmtree(folder, ignore_errors=True)
    return list(rows.values())


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--numbers", type=int, default=384)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--only", action="append", default=[], help="indexes with this in their name take part alone")
    parser.add_argument("--skip", action="append", default=[], help="indexes with this in their name take no part")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    use_one_thread()
    faiss.omp_set_num_threads(1)
    if given.vectors is None:
        rows = recipe(given.items + CHANGED, given.numbers)
    else:
        rows = of_length_1(np.load(given.vectors).astype(np.float32))
        if len(rows) <= 2 * CHANGED:
            parser.error(f"{given.vectors} has {len(rows)} rows: give more than {2 * CHANGED}; the last are queries")
    with tempfile.TemporaryDirectory(prefix="vectors-") as folder:
        # Mapped, so that memory is for the indexes.
        np.save(Path(folder, "rows.npy"), rows)
        rows = np.load(Path(folder, "rows.npy"), mmap_mode="r")
        table = measure(rows[:-CHANGED], np.array(rows[-CHANGED:]), given.only, given.skip)
    versions = ["faiss-cpu", "usearch", "numba", *(["hnswlib"] if find_spec("hnswlib") else [])]
    print(f"{len(rows) - CHANGED:,} x {rows.shape[1]}. {describe_run(versions)}")
    print(markdown_table(table))
    if given.json is not None:
        given.json.write_text(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
