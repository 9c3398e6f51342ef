"""The metrics of all cells."""

from typing import Any

import pandas as pd


def collect_metrics(*metrics: dict[str, Any]) -> list[dict[str, Any]]:
    """Put the metrics of all cells into one list, in the order of the grid."""
    return list(metrics)


def join_curves(*curves: pd.DataFrame) -> pd.DataFrame:
    """Stack the curves of all cells, a row for each point."""
    return pd.concat(curves, ignore_index=True)
