"""The tables of the loss benchmark, in Markdown, from its results."""

from textwrap import fill
from typing import Any

from benchmarks.documents import markdown_table

# Names of methods in the results, besides those of `rival_losses`.
CLOCK = "clock"
OURS, OURS_TWO_THREADS = "fused", "fused, two threads"

AIM_BATCH, AIM_CODE_LENGTH = 2048, 48
AIMS = {"naive": 100.0, "bit by bit": 40.0, "DPSH": 1.0}

# What a multiprocessor of an NVIDIA GPU starts in a cycle, and what one bit of one pair takes of it.
SPECIAL_FUNCTIONS_PER_CYCLE, SPECIAL_FUNCTIONS = 16, 2
FLOATS_PER_CYCLE, FLOATS = 128, 12
DEVICE_AIM = 4.0

Cell = dict[str, Any]


def loss_tables(results: dict[str, Any]) -> str:
    """Return everything that stands between the markers of the document."""
    cells = results["cells"]
    parts = [_preamble(results)]
    if any(_is_of_aims(cell) for cell in cells):
        parts += [f"**Aims**, at {AIM_BATCH:,} samples and {AIM_CODE_LENGTH} bits", _aims(cells)]
    parts += [
        "**Time.** CPU milliseconds for value and gradient on one thread; in brackets, how many times that of `fused`.",
        _times(cells, "seconds"),
        "**Time in kept memory.** The same where freed memory stays with the process, as in the training loop.",
        _times(cells, "seconds_in_kept_memory"),
        "**Memory.** MiB that value and gradient add at their peak to a process of their own.",
        _memory(cells),
        "**Our own.** Cycles are of one thread, for a bit of an unordered pair of samples; two threads are a ratio of "
        "wall time.",
        _own(cells),
        "**First calls**, seconds: what numba's compilation costs, and that the next process does not pay it.",
        _first_calls(results["first_calls"]),
    ]
    if results["device"] is not None:
        parts += ["**On a GPU**", _device(results["device"])]
    return "\n\n".join(parts)


def device_floor(batch: int, code_length: int, processors: int, clock_hertz: float) -> float:
    """Seconds of the arithmetic alone on a GPU: the slower of special functions and of other operations."""
    bits_of_pairs = batch * (batch - 1) / 2 * code_length
    cycles = max(SPECIAL_FUNCTIONS / SPECIAL_FUNCTIONS_PER_CYCLE, FLOATS / FLOATS_PER_CYCLE)
    return bits_of_pairs * cycles / (processors * clock_hertz)


def _preamble(results: dict[str, Any]) -> str:
    machine, cells = results["machine"], results["cells"]
    clocks = [cell["clock_hertz"] / 1e9 for cell in cells]
    busy_cores = [
        seconds["cpu"] / seconds["wall"]
        for cell in cells
        for name, seconds in cell["seconds"].items()
        if name != OURS_TWO_THREADS
    ]
    sentences = (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']};",
        f"load {machine['load_average']} at the start; clock {min(clocks):.2f} to {max(clocks):.2f} GHz in the cells.",
        ", ".join(f"{name} {version}" for name, version in results["versions"].items()) + ".",
        f"Medians of {results['settings']['rounds']} rounds.",
        f"Losses on one thread kept {min(busy_cores):.2f} to {max(busy_cores):.2f} cores busy (CPU by wall time).",
    )
    return fill(" ".join(sentences), width=150, break_on_hyphens=False)


def _is_of_aims(cell: Cell) -> bool:
    return (cell["batch"], cell["code_length"]) == (AIM_BATCH, AIM_CODE_LENGTH)


def _aims(cells: list[Cell]) -> str:
    cell = next(cell for cell in cells if _is_of_aims(cell))
    rows = [
        (
            f"`{name}` / `{OURS}`",
            f"at least {aim:g}",
            f"{_ratio(cell, name):.1f}",
            "reached" if _ratio(cell, name) >= aim else "missed",
            f"{_ratio(cell, name, 'seconds_in_kept_memory'):.1f}",
        )
        for name, aim in AIMS.items()
    ]
    return markdown_table(("ratio", "aim", "measured", "", "in kept memory"), rows)


def _times(cells: list[Cell], seconds: str) -> str:
    names = [name for name in cells[0][seconds] if name != OURS_TWO_THREADS]
    rows = [
        (
            *_size(cell),
            *(
                _rounded(1e3 * cell[seconds][name]["cpu"])
                + (f" ({_rounded(_ratio(cell, name, seconds))})" if name != OURS else "")
                for name in names
            ),
        )
        for cell in cells
    ]
    return markdown_table(("samples", "bits", *(f"`{name}`" for name in names)), rows)


def _memory(cells: list[Cell]) -> str:
    names = list(cells[0]["mebibytes"])
    rows = [(*_size(cell), *(_rounded(cell["mebibytes"][name]) for name in names)) for cell in cells]
    return markdown_table(("samples", "bits", *(f"`{name}`" for name in names)), rows)


def _own(cells: list[Cell]) -> str:
    rows = []
    for cell in cells:
        bits_of_pairs = cell["batch"] * (cell["batch"] - 1) / 2 * cell["code_length"]
        cycles = cell["seconds"][OURS]["cpu"] * cell["clock_hertz"] / bits_of_pairs
        two_threads = cell["seconds"].get(OURS_TWO_THREADS)
        gain = f"{cell['seconds'][OURS]['wall'] / two_threads['wall']:.2f}" if two_threads else ""
        rows.append((*_size(cell), f"{cycles:.2f}", gain))
    return markdown_table(("samples", "bits", "cycles", "one thread / two threads"), rows)


def _first_calls(first_calls: list[dict[str, float]]) -> str:
    rows = [
        (name, *(f"{seconds:.2f}" for seconds in taken.values()))
        for name, taken in zip(("first process, nothing compiled", "second process"), first_calls, strict=True)
    ]
    return markdown_table(("", *first_calls[0]), rows)


def _device(device: dict[str, Any]) -> str:
    floor = device_floor(device["batch"], device["code_length"], device["processors"], device["clock_hertz"])
    ratio = device["seconds"] / floor
    row = (
        device["name"],
        f"{device['batch']:,}",
        str(device["code_length"]),
        f"{1e3 * device['seconds']:.2f}",
        f"{1e3 * floor:.2f}",
        f"{ratio:.1f} ({'reached' if ratio <= DEVICE_AIM else 'missed'}: at most {DEVICE_AIM:g})",
        f"{device['mebibytes']:.0f}",
    )
    return markdown_table(("device", "samples", "bits", "ms", "floor, ms", "ratio", "MiB"), [row])


def _size(cell: Cell) -> tuple[str, str]:
    return f"{cell['batch']:,}", str(cell["code_length"])


def _ratio(cell: Cell, name: str, seconds: str = "seconds") -> float:
    return float(cell[seconds][name]["cpu"] / cell[seconds][OURS]["cpu"])


def _rounded(figure: float) -> str:
    """Three digits, or all those before the point."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.{1 if figure >= 10 else 2}f}"
