"""The tables of the evaluation benchmark, in Markdown, from its results."""

from collections.abc import Callable
from textwrap import fill
from typing import Any

from benchmarks.documents import markdown_table

# Names of methods in the results, besides those of the rivals.
OURS, OURS_TWO_THREADS = "ours", "ours, two threads"
COUNTING, COUNTING_TWO_THREADS = "counting", "counting, two threads"
WITHOUT_COMPILER = "without a compiler"

# Operations of bit-sliced counting in 512-bit registers at four a cycle: processor cycles for a query and an item.
FLOOR_CYCLES_PER_PAIR = {12: 0.031, 24: 0.063, 32: 0.086, 48: 0.127, 64: 0.172}
FLOOR_GOAL_LENGTH = 48
NOT_ON_THE_PACKAGE_INDEX = ("argsort loop",)

Cell = dict[str, Any]


def evaluation_tables(results: dict[str, Any]) -> str:
    """Return everything that stands between the markers of the document."""
    cells = results["cells"]
    rivals = list(cells[0]["mean_average_precision"]["rivals"])
    return "\n\n".join(
        (
            _preamble(results),
            "**Aims, and the cell that comes out worst**",
            _aims(cells, rivals),
            "**Rivals.** CPU seconds for all queries on one thread; in brackets, how many times ours they are.",
            _rivals(cells, rivals),
            "**Our own.** `counting` is `count_distances` alone, `whole` goes on to average precision. The columns of "
            "two threads are ratios of wall time, all others are CPU time of one thread.",
            _own(cells),
            "**Mean average precision of the queries that rivals got**, each by its own definition, beside the "
            "expectation over ties and what the best and the worst order of ties give.",
            _figures(cells, rivals),
            "**First calls**, seconds: what numba's compilation costs, and that the next process does not pay it.",
            _first_calls(results["first_calls"]),
        )
    )


def _preamble(results: dict[str, Any]) -> str:
    machine, settings, cells = results["machine"], results["settings"], results["cells"]
    clocks = [cell["clock_hertz"] / 1e9 for cell in cells]
    busy_cores = [
        measured["cpu"] / measured["wall"]
        for cell in cells
        for name, measured in cell["seconds"].items()
        if name not in (OURS_TWO_THREADS, COUNTING_TWO_THREADS)
    ]
    sentences = (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']};",
        f"load {machine['load_average']} at the start; clock {min(clocks):.2f} to {max(clocks):.2f} GHz in the cells.",
        ", ".join(f"{name} {version}" for name, version in results["versions"].items()) + ".",
        f"{settings['queries']:,} queries x {settings['items']:,} items; rivals: {settings['rival_queries']} queries.",
        f"Medians of {settings['rounds']} rounds.",
        f"Methods on one thread kept {min(busy_cores):.2f} to {max(busy_cores):.2f} cores busy (CPU by wall time).",
    )
    return fill(" ".join(sentences), width=150, break_on_hyphens=False)


def _aims(cells: list[Cell], rivals: list[str]) -> str:
    rows = [
        _aim(f"`{rival}` / ours", _ratio_to_ours(rival), cells, at_least=300)
        for rival in rivals
        if rival not in NOT_ON_THE_PACKAGE_INDEX
    ]
    rows.append(_aim("without a compiler / ours", _ratio_to_ours(WITHOUT_COMPILER), cells, at_least=8))
    if OURS_TWO_THREADS in cells[0]["seconds"]:
        rows.append(_aim("one thread / two threads, counting", _gain_of_counting, cells, at_least=1.8))
        rows.append(_aim("one thread / two threads, whole", _gain_of_whole, cells, at_least=1.8))
    of_length = [cell for cell in cells if cell["code_length"] == FLOOR_GOAL_LENGTH]
    if of_length:
        what = f"floor, {FLOOR_GOAL_LENGTH} bits"
        rows.append(_aim(f"counting / {what}", _times_floor(COUNTING), of_length, at_most=3))
        rows.append(_aim(f"whole / {what}", _times_floor(OURS), of_length, at_most=3))
    return markdown_table(("ratio", "aim", "worst", "where", ""), rows)


def _aim(
    what: str,
    ratio: Callable[[Cell], float],
    cells: list[Cell],
    at_least: float | None = None,
    at_most: float | None = None,
) -> tuple[str, ...]:
    if at_least is not None:
        worst = min(cells, key=ratio)
        aim, reached = f"at least {at_least:g}", ratio(worst) >= at_least
    else:
        worst = max(cells, key=ratio)
        aim, reached = f"at most {at_most:g}", at_most is not None and ratio(worst) <= at_most
    return what, aim, _rounded(ratio(worst)), _where(worst), "reached" if reached else "missed"


def _rivals(cells: list[Cell], rivals: list[str]) -> str:
    header = ("codes", "classes", "bits", "ours", *rivals)
    rows = [
        (
            *_cell_columns(cell),
            f"{_scaled_seconds(cell, OURS):.3f}",
            *(f"{_scaled_seconds(cell, rival):.1f} ({_ratio_to_ours(rival)(cell):,.0f})" for rival in rivals),
        )
        for cell in cells
    ]
    return markdown_table(header, rows)


def _own(cells: list[Cell]) -> str:
    header = (
        "codes",
        "classes",
        "bits",
        "distinct codes",
        "counting, s",
        "whole, s",
        "without a compiler, s (ratio)",
        "floor, s",
        "counting / floor",
        "whole / floor",
        "two threads, counting",
        "two threads, whole",
    )
    rows = []
    for cell in cells:
        has_floor, has_threads = cell["code_length"] in FLOOR_CYCLES_PER_PAIR, OURS_TWO_THREADS in cell["seconds"]
        without = f"{_scaled_seconds(cell, WITHOUT_COMPILER):.2f} ({_ratio_to_ours(WITHOUT_COMPILER)(cell):.1f})"
        rows.append(
            (
                *_cell_columns(cell),
                f"{cell['distinct_codes']:,}",
                f"{_scaled_seconds(cell, COUNTING):.3f}",
                f"{_scaled_seconds(cell, OURS):.3f}",
                without,
                f"{_floor_seconds(cell):.4f}" if has_floor else "",
                f"{_times_floor(COUNTING)(cell):.1f}" if has_floor else "",
                f"{_times_floor(OURS)(cell):.1f}" if has_floor else "",
                f"{_gain_of_counting(cell):.2f}" if has_threads else "",
                f"{_gain_of_whole(cell):.2f}" if has_threads else "",
            )
        )
    return markdown_table(header, rows)


def _figures(cells: list[Cell], rivals: list[str]) -> str:
    header = ("codes", "classes", "bits", "expectation", "best order", "worst order", *rivals)
    rows = []
    for cell in cells:
        figures = cell["mean_average_precision"]
        ours = (figures[name] for name in ("expectation", "optimistic", "pessimistic"))
        theirs = (figures["rivals"][rival] for rival in rivals)
        rows.append((*_cell_columns(cell), *(f"{figure:.5f}" for figure in (*ours, *theirs))))
    return markdown_table(header, rows)


def _first_calls(first_calls: list[dict[str, float]]) -> str:
    processes = ("first process, nothing compiled", "second process")
    rows = [
        (name, *(f"{seconds:.3f}" for seconds in taken.values()), f"{sum(taken.values()):.3f}")
        for name, taken in zip(processes, first_calls, strict=True)
    ]
    return markdown_table(("", *first_calls[0], "together"), rows)


def _cell_columns(cell: Cell) -> tuple[str, str, str]:
    return cell["codes"], str(cell["classes"]), str(cell["code_length"])


def _where(cell: Cell) -> str:
    return f"{cell['codes']}, {cell['classes']} classes, {cell['code_length']} bits"


def _scaled_seconds(cell: Cell, method: str) -> float:
    """CPU seconds for all queries of the cell."""
    measured = cell["seconds"][method]
    return float(measured["cpu"] * cell["queries"] / measured["queries"])


def _ratio_to_ours(method: str) -> Callable[[Cell], float]:
    return lambda cell: _scaled_seconds(cell, method) / _scaled_seconds(cell, OURS)


def _floor_seconds(cell: Cell) -> float:
    pairs = cell["queries"] * cell["items"]
    return float(FLOOR_CYCLES_PER_PAIR[cell["code_length"]] * pairs / cell["clock_hertz"])


def _times_floor(method: str) -> Callable[[Cell], float]:
    return lambda cell: _scaled_seconds(cell, method) / _floor_seconds(cell)


def _gain_of_counting(cell: Cell) -> float:
    return float(cell["seconds"][COUNTING]["wall"] / cell["seconds"][COUNTING_TWO_THREADS]["wall"])


def _gain_of_whole(cell: Cell) -> float:
    return float(cell["seconds"][OURS]["wall"] / cell["seconds"][OURS_TWO_THREADS]["wall"])


def _rounded(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2f}"
