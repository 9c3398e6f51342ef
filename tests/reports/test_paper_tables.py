import math

import numpy as np
import pandas as pd
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.pipelines.grid import CODE_LENGTHS, METHODS, PAPER_METHODS
from deephash_pipeline.reports.paper.pages import compared_page
from deephash_pipeline.reports.paper.published import cited_map
from deephash_pipeline.reports.paper.tables import (
    BENCHMARKS,
    FEATURE_METHODS,
    HAND_CRAFTED_FEATURES,
    NOT_RUN,
    all_methods_table,
    features_table,
    for_readers,
    with_stored_metrics,
)

PAPER = {method: METHODS[method] for method in PAPER_METHODS}
NAMES = {method: name for method, name in PAPER.items() if method != "one_of_c"}


def cell(method, code_length, score):
    return {
        "method": method,
        "code_length": code_length,
        "mean_average_precision": score,
        "queries": 1000,
        "database_size": 45000,
        "chance_level": 0.1002,
    }


RESULTS = {
    "cifar10": [
        cell("itq", 12, 0.31),
        cell("itq", 16, 0.32),
        cell("deephash", 48, 0.9),
        cell("liong_sdh", 16, 0.8),
        cell("cnnh", 12, 0.7),
        cell("one_of_c", 10, 0.75),
    ]
}
SCORES = {0.31, 0.32, 0.9, 0.8, 0.7}


def rows_of(table, *place):
    columns = ["benchmark", "method", "code_length"][: len(place)]
    return table[np.logical_and.reduce([table[column] == value for column, value in zip(columns, place, strict=True)])]


def section(page, heading):
    return page.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def test_every_cell_of_the_papers_table_is_there_once_run_or_not():
    table = all_methods_table({}, NAMES)
    cells = set(table[["benchmark", "method", "code_length"]].itertuples(index=False, name=None))
    for benchmark, name in BENCHMARKS.items():
        assert {(name, method, length) for method in NAMES.values() for length in CODE_LENGTHS} <= cells
        for method, method_name in NAMES.items():
            assert {(name, method_name, length) for length in cited_map(benchmark, method)} <= cells
    assert table["measured"].isna().all()
    with pytest.raises(InputError, match="two cells of itq at 12 bits"):
        all_methods_table({"cifar10": 2 * RESULTS["cifar10"]}, NAMES)


@pytest.mark.parametrize("results", [{}, RESULTS])
def test_no_published_or_cited_figure_is_ever_called_measured(results):
    for table in (all_methods_table(results, NAMES), features_table(results, {}, NAMES)):
        measured = set(table["measured"].dropna())
        assert measured <= (SCORES if results else set())
        shown = for_readers(table)["measured"]
        assert set(shown) <= {NOT_RUN, *(f"{score:.4f}" for score in measured)}
        assert (shown == NOT_RUN).sum() == table["measured"].isna().sum()


def test_what_was_not_run_and_what_is_not_printed_are_kept_apart():
    shown = for_readers(all_methods_table(RESULTS, NAMES))
    columns = ["measured", "published", "difference", "cited"]
    dash = "\N{EN DASH}"
    for place, expected in (
        (("CIFAR10", "ITQ", 12), ["0.3100", "0.2711", "+0.0389", dash]),
        (("CIFAR10", "ITQ", 24), [NOT_RUN, "0.2825", NOT_RUN, dash]),
        (("CIFAR10", "CSQ", 24), [NOT_RUN, dash, dash, dash]),
        (("CIFAR10", NAMES["cnnh"], 12), ["0.7000", dash, dash, "0.4390"]),
        (("CIFAR10", NAMES["liong_sdh"], 16), ["0.8000", dash, dash, "0.1880"]),
        (("CIFAR10", NAMES["liong_sdh"], 64), [NOT_RUN, dash, dash, "0.2251"]),
    ):
        assert rows_of(shown, *place)[columns].to_numpy().tolist() == [expected], place


def test_hand_crafted_features_stand_beside_those_of_the_network():
    by_hand = pd.DataFrame(
        {
            "feature": ["GIST", "GIST", "GIST", "dense SIFT bag", "CNN"],
            "method": ["ITQ", "KSH", "LSH", "BRE", "ITQ"],
            "code_length": [16, 32, 16, 16, 16],
            "measured": [0.16, 0.22, math.nan, 0.5, 0.99],
        }
    )
    table = features_table(RESULTS, {"cifar10": by_hand}, NAMES)
    assert len(table) == 2 * 2 * len(FEATURE_METHODS) * 2
    assert table[["benchmark", "feature"]].drop_duplicates().to_numpy().tolist() == [
        ["CIFAR10", "GIST"],
        ["CIFAR10", "CNN"],
        ["SUN397", HAND_CRAFTED_FEATURES["sun397"]],
        ["SUN397", "CNN"],
    ]
    itq = rows_of(table, "CIFAR10", "ITQ", 16).set_index("feature")
    assert itq["measured"].to_dict() == {"GIST": 0.16, "CNN": 0.32}
    assert itq["published"].to_dict() == {"GIST": 0.1528, "CNN": 0.2757}
    assert itq.loc["GIST", "difference"] == pytest.approx(0.16 - 0.1528)
    assert table["measured"].notna().sum() == 3
    assert table["published"].notna().all()


def test_a_page_says_on_what_was_measured_and_what_was_not_run():
    page = compared_page("mAP", all_methods_table(RESULTS, NAMES), RESULTS, NAMES)
    cifar = section(page, "CIFAR10")
    assert "1,000 queries, database of 45,000 images; the paper has 10,000 queries and a database of 50,000." in cifar
    assert "1-of-C code of the classifier, 10 bits: 0.7500" in cifar
    assert "| method | 12 | 16 | 24 | 32 | 48 |" in cifar
    assert (
        "| ITQ | 0.3100 (0.2711) | 0.3200 (0.2757) | not run (0.2825) | not run (0.2862) | not run (0.2909) |" in cifar
    )
    assert "Not run: LSH, PCAH," in cifar
    assert "0.1880 / 0.2083 / 0.2251 (16 / 32 / 64 bits)" in cifar
    assert "as cited by the paper, other protocol" in cifar
    for benchmark in ("MNIST", "Kaggle-Face", "SUN397"):
        assert section(page, benchmark).lstrip().startswith("Not run; the paper has")
    assert "cited" not in section(page, "SUN397")
    assert "nan" not in page.lower().split()


def test_every_line_of_a_table_has_as_many_cells_as_its_header():
    tables = (all_methods_table(RESULTS, NAMES), features_table(RESULTS, {}, NAMES))
    for page in (compared_page("mAP", table, RESULTS, NAMES) for table in tables):
        for block in page.split("\n\n"):
            assert len({line.count("|") for line in block.splitlines() if line.startswith("|")}) <= 1


def test_hand_crafted_features_without_the_networks_are_not_called_not_run():
    by_hand = pd.DataFrame({"feature": ["GIST"], "method": ["ITQ"], "code_length": [16], "measured": [0.16]})
    page = compared_page("Features", features_table({}, {"cifar10": by_hand}, NAMES), {}, NAMES)
    assert section(page, "CIFAR10").lstrip().startswith("Sizes not recorded")


def test_a_table_keeps_what_was_stored_where_nothing_is_measured_and_no_row_that_is_gone():
    stored = for_readers(all_methods_table(RESULTS, NAMES))
    kept = with_stored_metrics(all_methods_table({}, NAMES), stored)
    pd.testing.assert_frame_equal(for_readers(kept), stored)
    again = with_stored_metrics(all_methods_table({"cifar10": [cell("itq", 12, 0.5)]}, NAMES), stored)
    assert rows_of(again, "CIFAR10", "ITQ", 12)[["measured", "difference"]].to_numpy().tolist() == [[0.5, 0.5 - 0.2711]]
    renamed = with_stored_metrics(all_methods_table({}, NAMES), stored.assign(method="a former name"))
    assert renamed["measured"].isna().all()
