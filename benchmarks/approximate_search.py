"""Approximate search beside exact search: `python -m benchmarks.approximate_search`.

Codes of a trained model and of a classical one, those of a finished MNIST run, are searched by faiss's indexes at two
sizes of the database. Results go to `benchmarks/results/approximate_search.json`, and from there into
`docs/results/approximate-search.md` and its figure.
"""

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.approximate_search_figure import save_figure
from benchmarks.approximate_search_findings import document_sections
from benchmarks.augmented_codes import FinishedRun, augmented_codes, load_run
from benchmarks.documents import (
    PROJECT,
    RESULTS,
    read_results,
    replaced_between_markers,
    write_results,
    write_text,
)
from benchmarks.measuring import (
    Method,
    calls_lasting,
    describe_machine,
    describe_versions,
    interleaved,
    require_packages,
    use_one_thread,
)
from benchmarks.search_indexes import FLAT, SETTINGS, SLOW, BuiltIndex, Setting, build_index, recall
from deephash_pipeline.errors import InputError
from deephash_pipeline.progress import track
from deephash_pipeline.retrieval import count_distances, distinct_codes

RESULTS_FILE = RESULTS / "approximate_search.json"
DOCUMENT = PROJECT / "docs" / "results" / "approximate-search.md"
PICTURE = PROJECT / "docs" / "images" / "approximate-search.png"
ENVIRONMENT = "mnist"
DISTRIBUTIONS = ("numpy", "faiss-cpu", "torch")


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        neighbours: values of k.
        queries: queries that an index gets.
        slow_pairs: queries times items that a slow index gets at the most.
        rounds: measurements of each; the median counts.
        seconds_of_a_measurement: a search that takes less is repeated within a measurement.
    """

    neighbours: tuple[int, ...] = (10, 100)
    queries: int = 1000
    slow_pairs: int = 50_000_000
    rounds: int = 3
    seconds_of_a_measurement: float = 0.05


def measure_database(
    name: str,
    code_length: int,
    database: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    settings: Settings,
    indexes: Sequence[Setting] = SETTINGS,
) -> dict[str, Any]:
    """Build all indexes of one database, search it by all, and say what each costs and what it finds.

    Args:
        name: what the results call the codes, such as ``"itq.b48"``.
        code_length: bits per code.
        database: packed codes (items, bytes).
        queries: packed codes (queries, bytes).
        settings: how to measure.
        indexes: what to build; the first must be the exact one.

    Returns:
        Everything measured, fit for JSON.

    Raises:
        InputError: the database has fewer items than the largest k, or the first index is not exact.
    """
    if len(database) < max(settings.neighbours):
        raise InputError(f"{name} has {len(database)} codes: give at least {max(settings.neighbours)}, the largest k")
    if indexes[0].family != FLAT:
        raise InputError(f"the first index is {indexes[0].family}: give {FLAT} first, all others are measured by it")
    queries = queries[:: max(1, len(queries) // settings.queries)][: settings.queries]
    description = f"{name}, {len(database):,} codes"
    built = [build_index(index, database) for index in track(indexes, f"{description}: building", len(indexes))]
    entries: list[dict[str, Any]] = [
        {
            "family": index.setting.family,
            "build": dict(index.setting.build),
            "search": dict(parameters),
            "build_seconds": index.build_seconds,
            "bytes_per_item": index.size / len(database),
            "neighbours": {},
        }
        for index in built
        for parameters in index.setting.searches
    ]
    ties = {}
    distances_at_most = _cumulative_counts(database, queries, code_length)
    for k in track(settings.neighbours, f"{description}: searching", len(settings.neighbours)):
        distances, _ = built[0].searcher(queries, k, {})()
        last = distances[:, -1].astype(np.int64)
        ties[str(k)] = {
            "median_distance": float(np.median(last)),
            "median_items_as_near": float(np.median(distances_at_most[np.arange(len(queries)), last])),
        }
        for entry, figures in zip(entries, _search_all(built, database, queries, last, k, settings), strict=True):
            entry["neighbours"][str(k)] = figures
    return {
        "codes": name,
        "code_length": code_length,
        "items": len(database),
        "distinct_codes": distinct_codes(database),
        "queries": len(queries),
        "ties": ties,
        "indexes": entries,
    }


def _cumulative_counts(database: NDArray[np.uint8], queries: NDArray[np.uint8], code_length: int) -> NDArray[np.int64]:
    """Items within each distance of each query, shape (queries, code_length + 1)."""
    one_class = [np.zeros(len(codes), dtype=np.int64) for codes in (queries, database)]
    histograms = count_distances(queries, one_class[0], database, one_class[1], code_length)
    cumulative: NDArray[np.int64] = np.cumsum(histograms.all, axis=1)
    return cumulative


def _search_all(
    built: Sequence[BuiltIndex],
    database: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    distance_of_last: NDArray[np.int64],
    k: int,
    settings: Settings,
) -> list[dict[str, Any]]:
    """Search by all indexes in turn; recall and CPU seconds of a query for each, in order of index and parameters."""
    methods: list[Method] = []
    query_counts: list[int] = []
    few = max(1, min(len(queries), settings.slow_pairs // len(database)))
    for index in built:
        count = few if index.setting.family in SLOW else len(queries)
        for parameters in index.setting.searches:
            search = index.searcher(queries[:count], k, parameters)
            calls = calls_lasting(search, settings.seconds_of_a_measurement)
            methods.append(Method(f"{len(methods)}", search, calls))
            query_counts.append(count)
    timings = interleaved(methods, settings.rounds)
    return [
        {
            "recall": recall(database, queries[:count], timings[method.name].result[1], distance_of_last[:count]),
            "cpu_seconds": timings[method.name].cpu_seconds / count,
            "queries": count,
        }
        for method, count in zip(methods, query_counts, strict=True)
    ]


def measure(run: FinishedRun, moved: dict[str, NDArray[np.uint8]], settings: Settings) -> dict[str, Any]:
    """Measure every cell's codes twice: those of the images as they are, and those of moved images.

    Args:
        run: the finished run.
        moved: by cell, codes of augmented images.
        settings: how to measure.
    """
    use_one_thread()
    _one_faiss_thread()
    machine = describe_machine()
    databases = [
        measure_database(cell, codes.code_length, database, codes.query, settings)
        for cell, codes in run.codes.items()
        for database in (codes.database, moved[cell])
    ]
    return {
        "machine": machine,
        "versions": describe_versions(DISTRIBUTIONS),
        "settings": asdict(settings),
        "augmentation": run.augmentation.model_dump(),
        "databases": databases,
    }


def _one_faiss_thread() -> None:
    import faiss  # noqa: PLC0415 (optional; the command says in one line if it is missing)

    faiss.omp_set_num_threads(1)


def write_documents(results: dict[str, Any], document: Path, picture: Path, page: Path) -> None:
    """Write tables and findings into the document, and draw its figure."""
    text = document.read_text(encoding="utf-8")
    for section, content in document_sections(results).items():
        text = replaced_between_markers(text, section, content)
    write_text(document, text)
    if not save_figure(results, picture, page):
        print(f"no Chromium was found: {page} is written, {picture.name} is left as it was", file=sys.stderr)


def in_one_line(command: Callable[[], None]) -> None:
    """Run a command and tell a user's error in one line."""
    try:
        command()
    except (InputError, OSError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error


@click.command(help="Compare approximate with exact search on the codes of a finished MNIST run.")
@click.option("--project", type=click.Path(path_type=Path), default=PROJECT, help="Where the run's data lie.")
@click.option("--versions", type=click.IntRange(1), default=20, show_default=True, help="Augmentations per image.")
@click.option("--rounds", type=click.IntRange(1), default=Settings.rounds, show_default=True, help="Measurements.")
@click.option("--codes-cache", type=click.Path(path_type=Path), help="Where encoded images are kept (.npz).")
@click.option("--tables", is_flag=True, help="Only write document and figure again, from the last results.")
def main(project: Path, versions: int, rounds: int, codes_cache: Path | None, tables: bool) -> None:
    """Measure, and write results, document and figure."""
    folder = project / "data" / "08_reporting" / ENVIRONMENT

    def command() -> None:
        if not tables:
            require_packages(["faiss"])
            run = load_run(project, ENVIRONMENT)
            moved = augmented_codes(run, versions, codes_cache or folder / "augmented_codes.npz")
            write_results(RESULTS_FILE, measure(run, moved, Settings(rounds=rounds)))
        elif not RESULTS_FILE.is_file():
            raise InputError(f"{RESULTS_FILE} is not there: measure first, without --tables")
        write_documents(read_results(RESULTS_FILE), DOCUMENT, PICTURE, folder / "approximate_search.html")

    logging.basicConfig(format="%(message)s")
    logging.getLogger("deephash_pipeline").setLevel(logging.INFO)
    in_one_line(command)


if __name__ == "__main__":
    main()
