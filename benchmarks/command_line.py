"""The command line of benchmarks whose results are tables of `docs/performance.md`."""

import argparse
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from benchmarks.documents import (
    PERFORMANCE_DOCUMENT,
    PROJECT,
    RESULTS,
    read_results,
    write_results,
)
from deephash_pipeline.errors import InputError

INTERRUPTED = 130

Settings = TypeVar("Settings", bound=Any)


def benchmark_parser(name: str, documentation: str | None) -> argparse.ArgumentParser:
    """Make the parser of ``python -m benchmarks.<name>`` with the options that all benchmarks have."""
    description = (documentation or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--quick", action="store_true", help="a short measurement, printed and not written: for trying")
    parser.add_argument("--tables", action="store_true", help="only write the tables again, from the last results")
    return parser


def add_rounds(parser: argparse.ArgumentParser) -> None:
    """Add the option that `chosen` reads."""
    parser.add_argument("--rounds", type=int, metavar="N", help="measurements of everything; the median counts")


def chosen(options: argparse.Namespace, full: Settings, quick: Settings) -> Settings:
    """Choose what is measured: a dataclass with a field `rounds`, which the option of this name replaces."""
    settings: Settings = quick if options.quick else full
    return settings if options.rounds is None else replace(settings, rounds=options.rounds)


def run_benchmark(
    name: str,
    options: argparse.Namespace,
    measure: Callable[[], dict[str, Any]],
    render: Callable[[dict[str, Any]], str],
    write_tables: Callable[[dict[str, Any]], None],
) -> int:
    """Measure, and write results and tables; or what the options ask for instead.

    Args:
        name: of the file of results.
        options: `quick` and `tables`.
        measure: gives the results.
        render: turns them into tables.
        write_tables: puts these into the document.

    Returns:
        The exit code, 1 after an error that was told in one line.
    """
    logging.basicConfig(format="%(message)s")
    logging.getLogger("deephash_pipeline").setLevel(logging.INFO)
    results_file = RESULTS / f"{name}.json"
    try:
        if options.tables:
            write_tables(read_results(results_file))
            return 0
        results = measure()
        if options.quick:
            print(render(results))
            return 0
        write_results(results_file, results)
        write_tables(results)
        print(f"{results_file.relative_to(PROJECT)} and {PERFORMANCE_DOCUMENT.relative_to(PROJECT)} are written")
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        return INTERRUPTED
    return 0
