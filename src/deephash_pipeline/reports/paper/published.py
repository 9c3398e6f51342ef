"""Every mean average precision that Mu & Liu print, as data.

Sources in "Deep Hashing: A Joint Approach for Image Signature Learning": the table of all methods and the table of the
three DeepHash variants (12, 24 and 48 bits), and both halves of the table on hand-crafted features (16 and 32 bits,
CIFAR10 and SUN397). The rows `cnnh`, `cnnh_plus`, `liong_sdh` and `dnnh` (the paper's DH-1, DH*-1, DH-2 and DH-3) were
not measured there but cited from their own publications, whose protocols differ: they stand apart, and no measured
metric is compared with them.
"""

from typing import TypeAlias

Row: TypeAlias = tuple[float, ...]

MAIN_CODE_LENGTHS = (12, 24, 48)
"""Bits of the paper's tables of all methods and of the three DeepHash variants."""

_MAIN_TABLES: dict[str, dict[str, Row]] = {
    "mnist": {
        "lsh": (0.3717, 0.4933, 0.5725),
        "itq": (0.7578, 0.8132, 0.8293),
        "pcah": (0.4997, 0.4607, 0.3641),
        "sh": (0.5175, 0.5330, 0.4898),
        "ldah": (0.5052, 0.3685, 0.3093),
        "bre": (0.6950, 0.7498, 0.7785),
        "mlh": (0.6731, 0.4404, 0.4258),
        "ksh": (0.9537, 0.9713, 0.9817),
        "deephash_random_start": (0.9806, 0.9862, 0.9873),
        "deephash_pretrained": (0.9673, 0.9753, 0.9796),
        "deephash": (0.9918, 0.9931, 0.9938),
    },
    "cifar10": {
        "lsh": (0.1311, 0.1619, 0.2034),
        "itq": (0.2711, 0.2825, 0.2909),
        "pcah": (0.2056, 0.1867, 0.1695),
        "sh": (0.1935, 0.1921, 0.1750),
        "ldah": (0.2187, 0.1794, 0.1587),
        "bre": (0.2552, 0.2668, 0.2864),
        "mlh": (0.1737, 0.1675, 0.1737),
        "ksh": (0.3441, 0.4617, 0.5482),
        "deephash_random_start": (0.5728, 0.6503, 0.6585),
        "deephash_pretrained": (0.4986, 0.5588, 0.5966),
        "deephash": (0.6874, 0.7289, 0.7410),
    },
    "kaggle_face": {
        "lsh": (0.1911, 0.2011, 0.1976),
        "itq": (0.2435, 0.2513, 0.2514),
        "pcah": (0.2169, 0.2058, 0.1991),
        "sh": (0.2117, 0.2054, 0.2015),
        "ldah": (0.2154, 0.2032, 0.1961),
        "bre": (0.2414, 0.2522, 0.2587),
        "mlh": (0.2000, 0.2115, 0.2162),
        "ksh": (0.2862, 0.3668, 0.4132),
        "deephash_random_start": (0.4125, 0.4473, 0.4620),
        "deephash_pretrained": (0.4282, 0.4484, 0.4589),
        "deephash": (0.5487, 0.5552, 0.5615),
    },
    "sun397": {
        "lsh": (0.0057, 0.0060, 0.0071),
        "itq": (0.0268, 0.0361, 0.0471),
        "pcah": (0.0218, 0.0261, 0.0315),
        "sh": (0.0210, 0.0236, 0.0273),
        "ldah": (0.0224, 0.0262, 0.0306),
        "bre": (0.0226, 0.0293, 0.0372),
        "mlh": (0.0070, 0.0100, 0.0210),
        "ksh": (0.0194, 0.0261, 0.0325),
        "deephash_random_start": (0.0211, 0.0384, 0.0360),
        "deephash_pretrained": (0.0335, 0.0430, 0.0592),
        "deephash": (0.0748, 0.1054, 0.1293),
    },
}

CITED_HEADING = "as cited by the paper, other protocol"
CITED_NOTE = (
    "Cited metrics are not the paper's own and are compared with nothing: CNNH, CNNH+ and DNNH learned from 5,000 "
    "labelled images and were asked 1,000 queries; SDH's are those of 16, 32 and 64 bits, on raw pixels (MNIST) and "
    "GIST (CIFAR10), which the paper prints under 12, 24 and 48."
)
"""Above and below the column of what the paper cites from other publications, wherever it is shown."""

_CITED: dict[str, dict[str, dict[int, float]]] = {
    "mnist": {
        "cnnh": {12: 0.957, 24: 0.963, 48: 0.960},
        "cnnh_plus": {12: 0.969, 24: 0.975, 48: 0.975},
        "liong_sdh": {16: 0.4675, 32: 0.5101, 64: 0.5250},
    },
    "cifar10": {
        "cnnh": {12: 0.439, 24: 0.511, 48: 0.522},
        "cnnh_plus": {12: 0.465, 24: 0.521, 48: 0.532},
        "liong_sdh": {16: 0.1880, 32: 0.2083, 64: 0.2251},
        "dnnh": {12: 0.552, 24: 0.566, 48: 0.581},
    },
}

FEATURE_CODE_LENGTHS = (16, 32)
"""Bits of the paper's table of hand-crafted against network features."""

_FEATURE_TABLES: dict[str, dict[str, Row]] = {
    "cifar10": {
        "lsh": (0.1354, 0.1752),
        "itq": (0.2757, 0.2862),
        "bre": (0.2634, 0.2803),
        "mlh": (0.1810, 0.1800),
        "ksh": (0.3958, 0.5039),
        "deephash_pretrained": (0.5472, 0.5674),
    },
    "sun397": {
        "lsh": (0.0059, 0.0063),
        "itq": (0.0309, 0.0410),
        "bre": (0.0252, 0.0319),
        "mlh": (0.0083, 0.0144),
        "ksh": (0.0216, 0.0300),
        "deephash_pretrained": (0.0387, 0.0525),
    },
}

_HAND_CRAFTED_TABLES: dict[str, dict[str, Row]] = {
    "cifar10": {
        "lsh": (0.1215, 0.1385),
        "itq": (0.1528, 0.1604),
        "bre": (0.1308, 0.1362),
        "mlh": (0.1373, 0.1334),
        "ksh": (0.2191, 0.2081),
        "deephash_pretrained": (0.2166, 0.2304),
    },
    "sun397": {
        "lsh": (0.0067, 0.0072),
        "itq": (0.0159, 0.0157),
        "bre": (0.0070, 0.0075),
        "mlh": (0.0148, 0.0147),
        "ksh": (0.0105, 0.0095),
        "deephash_pretrained": (0.0166, 0.0189),
    },
}
"""GIST of CIFAR10's images, a bag of dense SIFT words of SUN397's; "DeepHash" there is the one without fine-tuning."""

VARIANTS = {"deephash_faithful": "deephash"}
"""Other ways to do what a row of the paper does: both stand beside the same value."""


def published_map(benchmark: str, method: str, code_length: int) -> float | None:
    """Mean average precision that the paper prints for one cell, in [0, 1].

    Args:
        benchmark: `mnist`, `cifar10`, `kaggle_face` or `sun397`; any other has no published metrics.
        method: key of the method, for example `itq` or `deephash`.
        code_length: bits of the code.

    Returns:
        The printed value, or None where the paper prints none or only cites one (`cited_map`): nothing is interpolated
        between code lengths.

    Example:
        >>> published_map("mnist", "deephash", 48)
        0.9938
        >>> published_map("mnist", "deephash", 32) is None
        True
    """
    method = VARIANTS.get(method, method)
    for code_lengths, tables in (
        (MAIN_CODE_LENGTHS, _MAIN_TABLES),
        (FEATURE_CODE_LENGTHS, _FEATURE_TABLES),
    ):
        row = tables.get(benchmark, {}).get(method)
        if row is not None and code_length in code_lengths:
            return row[code_lengths.index(code_length)]
    return None


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
    return dict(_CITED.get(benchmark, {}).get(method, {}))


def published_hand_crafted_map(benchmark: str, method: str, code_length: int) -> float | None:
    """Mean average precision that the paper prints for a method on hand-crafted features, in [0, 1].

    Args:
        benchmark: `cifar10` (GIST) or `sun397` (bag of dense SIFT words); any other has no published metrics.
        method: key of the method: `lsh`, `itq`, `bre`, `mlh`, `ksh` or `deephash_pretrained`.
        code_length: bits of the code, 16 or 32.

    Returns:
        The printed value, or None where the paper prints none.

    Example:
        >>> published_hand_crafted_map("cifar10", "ksh", 16)
        0.2191
    """
    row = _HAND_CRAFTED_TABLES.get(benchmark, {}).get(method)
    return row[FEATURE_CODE_LENGTHS.index(code_length)] if row and code_length in FEATURE_CODE_LENGTHS else None
