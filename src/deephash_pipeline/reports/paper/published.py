"""Every mean average precision that Mu & Liu print; `published.csv` has them.

Sources in "Deep Hashing: A Joint Approach for Image Signature Learning": the table of all methods and the table of the
three DeepHash variants (12, 24 and 48 bits), and both halves of the table on hand-crafted features (16 and 32 bits,
CIFAR10 and SUN397). The rows `cnnh`, `cnnh_plus`, `liong_sdh` and `dnnh` (the paper's DH-1, DH*-1, DH-2 and DH-3) were
not measured there but cited from their own publications, whose protocols differ: they stand apart, and no measured
metric is compared with them.
"""

import csv
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

MAIN_CODE_LENGTHS = (12, 24, 48)
"""Bits of the paper's tables of all methods and of the three DeepHash variants."""

FEATURE_CODE_LENGTHS = (16, 32)
"""Bits of the paper's table of hand-crafted against network features."""

CITED_HEADING = "as cited by the paper, other protocol"
CITED_NOTE = (
    "Cited metrics are not the paper's own and are compared with nothing: CNNH, CNNH+ and DNNH learned from 5,000 "
    "labelled images and were asked 1,000 queries; SDH's are those of 16, 32 and 64 bits, on raw pixels (MNIST) and "
    "GIST (CIFAR10), which the paper prints under 12, 24 and 48."
)
"""Above and below the column of what the paper cites from other publications, wherever it is shown."""

VARIANTS = {"deephash_faithful": "deephash"}
"""Other ways to do what a row of the paper does: both stand beside the same value."""


@cache
def _printed(table: str) -> Mapping[tuple[str, str, int], float]:
    """Read what the paper prints: on the features of the `network`, on `hand_crafted` ones, or what is only `cited`.

    Hand-crafted features are GIST of CIFAR10's images and a bag of dense SIFT words of SUN397's; "DeepHash" on them is
    the one without fine-tuning.

    Returns:
        Benchmark, key of the method and bits -> mAP.
    """
    with Path(__file__).with_name("published.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == table]
    return {(row["benchmark"], row["method"], int(row["code_length"])): float(row["map"]) for row in rows}


def published_map(benchmark: str, method: str, code_length: int, table: str = "network") -> float:
    """Mean average precision that the paper prints for one cell, in [0, 1].

    Args:
        benchmark: `mnist`, `cifar10`, `kaggle_face` or `sun397`; any other has no published metrics.
        method: key of the method, for example `itq` or `deephash`.
        code_length: bits of the code.
        table: ``network`` for scores on its features; ``hand_crafted`` for those on GIST (`cifar10`) or on a bag of
            dense SIFT words (`sun397`); ``cited`` for what the paper cites, of other protocols (`CITED_NOTE`).

    Returns:
        The printed value; NaN where there is none, for nothing is interpolated between code lengths.

    Example:
        >>> published_map("mnist", "deephash", 48), published_map("mnist", "deephash", 32)
        (0.9938, nan)
        >>> published_map("cifar10", "ksh", 16, "hand_crafted"), published_map("mnist", "liong_sdh", 16, "cited")
        (0.2191, 0.4675)
    """
    return _printed(table).get((benchmark, VARIANTS.get(method, method), code_length), math.nan)


def beside_published(benchmark: str, method: str, code_length: int, measured: float) -> tuple[float, ...]:
    """Give what was measured, what is published, the difference, and what is cited."""
    published = published_map(benchmark, method, code_length)
    return measured, published, measured - published, published_map(benchmark, method, code_length, "cited")


def cited_map(benchmark: str, method: str) -> dict[int, float]:
    """Mean average precisions that the paper cites from a method's own publication, by their true code length in bits.

    They are of other protocols (`CITED_NOTE`).

    Args:
        benchmark: `mnist` or `cifar10`; any other has no cited metrics.
        method: key of the method: `cnnh`, `cnnh_plus`, `liong_sdh` or `dnnh`.

    Example:
        >>> cited_map("mnist", "liong_sdh")
        {16: 0.4675, 32: 0.5101, 64: 0.525}
    """
    cells = _printed("cited").items()
    return {bits: score for (of, key, bits), score in cells if (of, key) == (benchmark, method)}


def citations(benchmark: str, display_names: Mapping[str, str]) -> dict[str, str]:
    """Put what the paper cites into words: each method's values and their code lengths, which are not always ours.

    Args:
        benchmark: key of the benchmark.
        display_names: display name of each method key.

    Returns:
        Display name to the method's values, of those methods only that the paper cites.

    Example:
        >>> citations("mnist", {"itq": "ITQ", "liong_sdh": "Liong SDH"})
        {'Liong SDH': '0.4675 / 0.5101 / 0.5250 (16 / 32 / 64 bits)'}
    """
    return {
        name: f"{' / '.join(f'{score:.4f}' for score in cited.values())} ({' / '.join(map(str, cited))} bits)"
        for method, name in display_names.items()
        if (cited := cited_map(benchmark, method))
    }
