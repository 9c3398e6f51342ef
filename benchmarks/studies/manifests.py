"""What share of a run provenance takes: looking what is up to date, comparing, recording, writing manifests.

``make clean`` and ``python -m benchmarks.studies.manifests`` make all of the digits, one node after the other in this
process, and add up the time spent in the functions of provenance.
"""

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.cli import run as command
from deephash_pipeline.cli.main import cli
from deephash_pipeline.common.stores import replacing
from deephash_pipeline.project.datasets import atomic_file
from deephash_pipeline.project.freshness import hook
from deephash_pipeline.provenance.manifest import SUFFIX

PLACES: list[tuple[Any, str]] = [
    (command, "_is_up_to_date"),
    (hook.Provenance, "before_pipeline_run"),
    (hook.Provenance, "before_node_run"),
    (hook.Provenance, "before_dataset_saved"),
    (atomic_file, "manifest_text"),
    (atomic_file, "checked"),
]


def timed(function: Callable[..., Any], name: str, seconds: dict[str, float]) -> Callable[..., Any]:
    """Add the time that a function takes to what stands under its name."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            seconds[name] += time.perf_counter() - begun

    return wrapped


def main() -> None:
    """Print seconds by function, and their share of the run."""
    seconds: dict[str, float] = defaultdict(float)
    for place, name in PLACES:
        setattr(place, name, timed(getattr(place, name), name, seconds))

    @contextmanager
    def replacing_timed(path: Path, **options: Any) -> Iterator[Path]:
        with replacing(path, **options) as temporary:
            yield temporary
            begun = time.perf_counter()
        if path.name.endswith(SUFFIX):
            seconds["to the disk"] += time.perf_counter() - begun

    setattr(atomic_file, "replacing", replacing_timed)  # noqa: B010
    bootstrap_project(Path.cwd())
    begun = time.perf_counter()
    result = CliRunner().invoke(cli, ["run", "--pipelines=full", "--runner=SequentialRunner"])
    assert result.exit_code == 0, result.output
    whole = time.perf_counter() - begun
    for name, spent in sorted(seconds.items(), key=lambda item: -item[1]):
        print(f"{name:24}{spent:8.2f} s")
    print(f"{sum(seconds.values()):.2f} of {whole:.1f} s, {sum(seconds.values()) / whole:.1%}")


if __name__ == "__main__":
    main()
