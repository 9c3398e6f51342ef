"""The tables of the document on approximate search, in Markdown, from the results."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from benchmarks.documents import markdown_table
from benchmarks.search_indexes import FLAT, FLAT_MERGED, HNSW, HNSW_MERGED, IVF, MULTI_HASH, SLOW
from deephash_pipeline.grid import METHODS

GOOD_RECALL = 0.99
EXTRAPOLATED_ITEMS = (10_000_000, 100_000_000)
CHALLENGERS = (FLAT_MERGED, IVF, MULTI_HASH, HNSW, HNSW_MERGED)
LINE_WIDTH = 150

Database = Mapping[str, Any]
Entry = Mapping[str, Any]


def conditions(results: Mapping[str, Any]) -> str:
    """Return the machine, the versions and how much was measured."""
    machine, settings = results["machine"], results["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    slow = " and ".join(f"*{family}*" for family in SLOW)
    queries = min(database["queries"] for database in results["databases"])
    return wrapped(
        f"{machine['processor']}, {machine['memory_gib']} GiB, {machine['system']}; load {machine['load_average']} at "
        f"the start. {versions}. One thread throughout, CPU time. Batches of {queries:,} queries, for {slow} of at "
        f"most {settings['slow_pairs']:,} / items (their number is then in brackets behind the recall). All indexes of "
        f"a database in turn, medians of {settings['rounds']} rounds."
    )


def exact_search(databases: Sequence[Database]) -> str:
    """Return what exact search takes at the measured sizes, and at larger ones if time goes on growing linearly."""
    rows = []
    for name in dict.fromkeys(database["codes"] for database in databases):
        own = [database for database in databases if database["codes"] == name]
        seconds = {database["items"]: exact(database)["neighbours"]["10"]["cpu_seconds"] for database in own}
        largest = max(seconds)
        rows += [exact_row(name, items, taken, "measured") for items, taken in sorted(seconds.items())]
        rows += [
            exact_row(name, items, seconds[largest] * items / largest, "extrapolated")
            for items in EXTRAPOLATED_ITEMS
            if items > largest
        ]
    return markdown_table(("codes", "items", "codes in memory, MB", "ms a query", "queries/s", ""), rows)


def exact_row(name: str, items: int, seconds: float, origin: str) -> tuple[str, ...]:
    """One row of the table of exact search; codes take 8 bytes each."""
    milliseconds = three_digits(1e3 * seconds)
    return codes_name(name), f"{items:,}", three_digits(8e-6 * items), milliseconds, three_digits(1 / seconds), origin


def best_settings(databases: Sequence[Database]) -> str:
    """Return, for every database and kind of index, the fastest setting that finds enough of the ten nearest."""
    rows = []
    for database in databases:
        rows.append(best_row(database, exact(database)))
        for family in CHALLENGERS:
            own = [entry for entry in database["indexes"] if entry["family"] == family]
            if own:
                rows.append(best_row(database, fastest(own) or most_accurate(own)))
    header = (
        "codes",
        "items",
        "index",
        "setting",
        "recall@10",
        "µs a query",
        "exact / this",
        "build, s",
        "bytes an item",
    )
    return markdown_table(header, rows)


def best_row(database: Database, entry: Entry) -> tuple[str, ...]:
    """One row of the table of best settings."""
    ten, exactly = entry["neighbours"]["10"], exact(database)["neighbours"]["10"]
    return (
        codes_name(database["codes"]),
        f"{database['items']:,}",
        entry["family"],
        parameters_of(entry),
        f"{ten['recall']:.4f}" if good(entry) else f"*{ten['recall']:.4f}*",
        microseconds(ten["cpu_seconds"]),
        three_digits(exactly["cpu_seconds"] / ten["cpu_seconds"]),
        three_digits(entry["build_seconds"]),
        f"{entry['bytes_per_item']:.0f}",
    )


def all_settings(database: Database) -> str:
    """Return everything measured on one database."""
    neighbours = list(database["indexes"][0]["neighbours"])
    header = ["index", "setting", "build, s", "bytes an item"]
    for k in neighbours:
        header += [f"recall@{k}", "µs a query", "queries/s"]
    rows = []
    for entry in database["indexes"]:
        row = [
            entry["family"],
            parameters_of(entry),
            three_digits(entry["build_seconds"]),
            f"{entry['bytes_per_item']:.0f}",
        ]
        for k in neighbours:
            figures = entry["neighbours"][k]
            seconds = figures["cpu_seconds"]
            fewer = f" ({figures['queries']})" if figures["queries"] < database["queries"] else ""
            row += [f"{figures['recall']:.4f}{fewer}", microseconds(seconds), three_digits(1 / seconds)]
        rows.append(row)
    return markdown_table(header, rows)


def exact(database: Database) -> Entry:
    """The entry of exact search over padded codes."""
    return next(entry for entry in database["indexes"] if entry["family"] == FLAT)


def exact_seconds(database: Database, family: str = FLAT, k: str = "10") -> float:
    """CPU seconds of one query for its k nearest, by an exact index."""
    entry = next(entry for entry in database["indexes"] if entry["family"] == family)
    return float(entry["neighbours"][k]["cpu_seconds"])


def good(entry: Entry) -> bool:
    """Whether an index finds enough of the ten nearest."""
    return bool(entry["neighbours"]["10"]["recall"] >= GOOD_RECALL)


def fastest(entries: Sequence[Entry]) -> Entry | None:
    """The fastest of those that find enough, if any does."""
    enough = [entry for entry in entries if good(entry)]
    return min(enough, key=lambda entry: float(entry["neighbours"]["10"]["cpu_seconds"]), default=None)


def most_accurate(entries: Sequence[Entry]) -> Entry:
    """The one that finds most of the ten nearest, the faster one of two that find as many."""
    return max(
        entries, key=lambda entry: (entry["neighbours"]["10"]["recall"], -entry["neighbours"]["10"]["cpu_seconds"])
    )


def codes_name(cell: str) -> str:
    """Name of a cell in the project's tables."""
    return METHODS.get(cell.partition(".")[0], cell)


def database_name(database: Database) -> str:
    """Name of codes with their number."""
    return f"{codes_name(database['codes'])}, {database['items']:,} codes"


def parameters_of(entry: Entry) -> str:
    """Parameters as they are written in tables."""
    return ", ".join(f"{name} {value}" for name, value in {**entry["build"], **entry["search"]}.items())


def microseconds(seconds: float) -> str:
    """Seconds as microseconds, three digits."""
    return three_digits(1e6 * seconds)


def three_digits(value: float) -> str:
    """A number to three significant digits, without an exponent unless it is tiny."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:#.3g}"


def wrapped(text: str, indent: str = "") -> str:
    """Wrap a paragraph."""
    return fill(text, LINE_WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
