"""What the document on approximate search says in words, every number of it from the results."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.approximate_search_tables import (
    CHALLENGERS,
    GOOD_RECALL,
    Database,
    all_settings,
    best_settings,
    conditions,
    database_name,
    exact,
    exact_search,
    exact_seconds,
    fastest,
    most_accurate,
    parameters_of,
    three_digits,
    wrapped,
)
from benchmarks.search_indexes import FLAT_MERGED, FLAT_UNPADDED, HNSW, HNSW_MERGED, IVF, MULTI_HASH

# Time of a query on one core that a user may have in mind, from a service under load to one person who waits.
BUDGETS_MILLISECONDS = (1, 10, 100)


def document_sections(results: Mapping[str, Any]) -> dict[str, str]:
    """Return the content of every marked place of the document."""
    databases = results["databases"]
    return {
        "conditions": conditions(results),
        "exact search": exact_search(databases),
        "best settings": best_settings(databases),
        "findings": findings(databases),
        "all settings": "\n\n".join(
            f"**{database_name(database)}** ({database['distinct_codes']:,} distinct)\n\n{all_settings(database)}"
            for database in databases
        ),
    }


def findings(databases: Sequence[Database]) -> str:
    """Return the findings, a paragraph each."""
    paragraphs = (
        until_when_exact(databases),
        padding(databases),
        equal_codes(databases),
        *(about_family(family, databases) for family in (IVF, MULTI_HASH, HNSW, HNSW_MERGED)),
        what_to_choose(databases),
    )
    return "\n".join(wrapped(f"- {paragraph}", indent="  ") for paragraph in paragraphs)


def until_when_exact(databases: Sequence[Database]) -> str:
    """Say up to which size exact search stays within a budget of time."""
    largest = max(databases, key=lambda database: exact_seconds(database) / database["items"])
    per_item = exact_seconds(largest) / largest["items"]
    sizes = [rounded_items(1e-3 * milliseconds / per_item) for milliseconds in BUDGETS_MILLISECONDS]
    longer = zip(sizes[1:], BUDGETS_MILLISECONDS[1:], strict=True)
    others = ", ".join(f"{size} in {milliseconds} ms" for size, milliseconds in longer)
    return (
        f"**Exact search is enough up to about {sizes[0]} codes** if a query may take {BUDGETS_MILLISECONDS[0]} ms of "
        f"one core; {others}; at the slowest measured {1e9 * per_item:.2f} ns a code. There is nothing to build or to "
        "tune, nothing is missed, and every further core divides the time."
    )


def padding(databases: Sequence[Database]) -> str:
    """Say what codes cost that do not fill words of 64 bits."""
    ratios = [exact_seconds(database, FLAT_UNPADDED) / exact_seconds(database) for database in databases]
    return (
        f"**Pad codes to 8 bytes.** faiss takes {least_to_most(ratios)} times as long for codes of 6 bytes as for the "
        "same codes with two bytes of zeros behind them, which change no distance. All other rows are padded."
    )


def equal_codes(databases: Sequence[Database]) -> str:
    """Say how far codes coincide, and what is gained by searching each once."""
    sentences = []
    for database in largest_of_each(databases):
        gain = speed(exact_seconds(database) / exact_seconds(database, FLAT_MERGED))
        ties = database["ties"]["10"]
        sentences.append(
            f"{database_name(database)}: {database['distinct_codes']:,} of them distinct, and for the median query "
            f"{ties['median_items_as_near']:,.0f} are as near as the tenth; searched by distinct code, {gain}"
        )
    return f"**Equal codes need one comparison**, and the result is exact. {'; '.join(sentences)}."


def about_family(family: str, databases: Sequence[Database]) -> str:
    """Say of one kind of index how often it finds enough, how fast, and what it costs to build."""
    best, short_of = [], []
    for database in databases:
        own = [entry for entry in database["indexes"] if entry["family"] == family]
        chosen = fastest(own)
        if chosen is None:
            short_of.append(f"{most_accurate(own)['neighbours']['10']['recall']:.4f} ({database_name(database)})")
        else:
            best.append((chosen, exact_seconds(database) / chosen["neighbours"]["10"]["cpu_seconds"]))
    sentences = [f"**{family}** finds {GOOD_RECALL} of the ten nearest in {len(best)} of {len(databases)} databases"]
    if best:
        hundred = [chosen["neighbours"]["100"]["recall"] for chosen, _ in best]
        sentences[0] += f", at {speed(*(ratio for _, ratio in best))}"
        sentences.append(f"the same settings find {min(hundred):.4f} to {max(hundred):.4f} of the hundred nearest")
    if short_of:
        sentences.append(f"the most it finds elsewhere is {', '.join(short_of)}")
    entries = [entry for database in databases for entry in database["indexes"] if entry["family"] == family]
    slowest, widest = (max(float(entry[name]) for entry in entries) for name in ("build_seconds", "bytes_per_item"))
    sentences.append(f"it takes up to {three_digits(slowest)} s to build and {widest:.0f} bytes an item")
    return f"{'; '.join(sentences)}."


def largest_of_each(databases: Sequence[Database]) -> list[Database]:
    """The largest database of every model."""
    largest: dict[str, Database] = {}
    for database in sorted(databases, key=lambda database: int(database["items"])):
        largest[database["codes"]] = database
    return [largest[name] for name in dict.fromkeys(database["codes"] for database in databases)]


def what_to_choose(databases: Sequence[Database]) -> str:
    """Name the fastest index of every database among those that find enough."""
    winners = {database_name(database): fastest(database["indexes"]) or exact(database) for database in databases}
    named = "; ".join(
        f"{name}: {winner['family']}{f' ({parameters_of(winner)})' if parameters_of(winner) else ''}"
        for name, winner in winners.items()
    )
    best = {winner["family"] for winner in winners.values()}
    never = [family for family in CHALLENGERS if family not in best]
    return (
        f"**What to choose.** Fastest with at least {GOOD_RECALL} of the ten nearest: {named}. Never the fastest: "
        f"{', '.join(never) or 'none'}. So: Flat on padded codes until its time is too long; then look at the number "
        "of distinct codes, and search those alone if they are few; else IVF, nprobe raised until recall is enough."
    )


def speed(*ratios: float) -> str:
    """Say how fast something is beside exact search, at the least and at the most."""
    written = [f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}" for ratio in sorted({min(ratios), max(ratios)})]
    return f"{' to '.join(written)} times the speed of exact search"


def least_to_most(values: Sequence[float]) -> str:
    """Say a range, to a tenth."""
    return f"{min(values):.1f} to {max(values):.1f}"


def rounded_items(items: float) -> str:
    """A number of items to two significant digits."""
    rounded = float(f"{items:.2g}")
    return f"{rounded / 1e6:g} million" if rounded >= 1e6 else f"{rounded:,.0f}"
