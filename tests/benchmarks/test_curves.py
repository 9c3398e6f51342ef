"""Stored curves are whole, have their pictures, and are those of codes that can be counted by hand."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.studies.curves import PICTURES, TABLES, draw, points
from deephash_pipeline.pipelines.grid import METHODS
from deephash_pipeline.retrieval.counting import DistanceHistograms

STORED = sorted(TABLES.glob("*.csv"))


@pytest.mark.parametrize("file", STORED, ids=lambda file: file.stem)
def test_a_stored_table_has_every_kind_of_curve_of_its_methods_and_a_picture(file):
    table = pd.read_csv(file)
    assert list(table) == ["method", "code_length", "kind", "point", "precision", "recall"]
    assert set(table["method"]) <= set(METHODS)
    for (_, bits), own in table.groupby(["method", "code_length"]):
        assert set(own["kind"]) == {"radius", "rank", "within"}
        radius = own[own["kind"] == "radius"]
        assert radius["point"].tolist() == list(range(bits + 1))
        assert radius["recall"].iloc[-1] == 1 and radius["recall"].is_monotonic_increasing
    assert table["precision"].dropna().between(0, 1).all()
    assert (PICTURES / f"curves-{file.stem}.png").is_file()


def test_rows_are_the_curves_of_the_counts():
    # One item at distance 0, which is relevant, and three at distance 3, of which one is.
    counts = DistanceHistograms(all=np.array([[1, 0, 0, 3]]), relevant=np.array([[1, 0, 0, 1]]))
    rows = pd.DataFrame(points("itq", 3, counts))
    radius = rows[rows["kind"] == "radius"]
    assert radius["precision"].tolist() == [1, 1, 1, 0.5]
    assert radius["recall"].tolist() == [0.5, 0.5, 0.5, 1]
    [within] = rows[rows["kind"] == "within"].to_dict("records")
    assert (within["point"], within["precision"]) == (2, 1)
    ranks = rows[rows["kind"] == "rank"].set_index("point")["precision"]
    assert ranks[1] == 1 and ranks[2] == pytest.approx((1 + 1 / 3) / 2, abs=1e-4)


def test_a_table_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    counts = DistanceHistograms(all=np.array([[1, 0, 0, 3]]), relevant=np.array([[1, 0, 0, 1]]))
    table = pd.DataFrame(points("itq", 3, counts)).assign(code_length=48)
    draw("digits", table, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
