import math

import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.reports.tables import comparison_table, map_table, metrics_table


def test_map_table_puts_each_cell_at_its_method_and_code_length_and_leaves_others_empty(metrics, display_names):
    table = map_table(reversed(metrics), display_names)
    assert list(table.columns) == ["12", "32"]
    assert list(table.index[:3]) == ["LSH", "ITQ", "DeepHash (fine-tuning)"]
    assert table.loc["LSH", "32"] == 0.20
    assert table.loc["DeepHash (fine-tuning)", "12"] == 0.70
    assert math.isnan(table.loc["DeepHash (fine-tuning)", "32"])


def test_reference_rows_have_one_value_in_every_column(metrics, display_names):
    table = map_table(metrics, display_names)
    baseline, chance = [label for label in table.index if label not in display_names.values()]
    assert "10 bits" in baseline
    assert set(table.loc[baseline]) == {0.75}
    assert set(table.loc[chance]) == {0.1002}
    # Without the classifier's code the only reference is chance.
    table = map_table([cell for cell in metrics if cell["method"] != "one_of_c"], display_names)
    assert sum(label not in display_names.values() for label in table.index) == 1


def test_metrics_table_has_one_row_per_cell_and_no_invented_metric(metrics, display_names):
    del metrics[0]["precision_at_1000"]
    table = metrics_table(metrics, display_names)
    assert len(table) == len(metrics)
    assert table["method"].iloc[-1] == "1-of-C code"
    assert math.isnan(table["precision_at_1000"].iloc[0])
    assert table["precision_at_1000"].iloc[1:].notna().all()
    assert table["validation_mean_average_precision"].isna().all()
    assert table["distinct_database_codes"].dtype.kind == "i"


def test_difference_is_measured_minus_published(metrics, display_names):
    table = comparison_table(metrics, "cifar10", display_names).set_index(["method", "code_length"])
    assert table.loc[("ITQ", 12), "published"] == 0.2711
    assert table.loc[("ITQ", 12), "difference"] == pytest.approx(0.30 - 0.2711)
    assert table.loc[("DeepHash (fine-tuning)", 12), "difference"] == pytest.approx(0.70 - 0.6874)


def test_where_nothing_is_published_the_comparison_stays_empty(metrics, display_names):
    table = comparison_table(metrics, "mnist", display_names).set_index(["method", "code_length"])
    assert table.loc[("ITQ", 32), "measured"] == 0.28
    assert table.loc[("ITQ", 32), ["published", "difference"]].isna().all()
    unpublished = comparison_table(metrics, "digits", display_names)
    assert unpublished[["published", "difference"]].isna().all(axis=None)


def test_what_the_paper_cites_stands_apart_and_has_no_difference(metrics, display_names):
    metrics += [{**metrics[0], "method": "liong_sdh", "code_length": length} for length in (12, 16)]
    table = comparison_table(metrics, "mnist", {**display_names, "liong_sdh": "SDH"}).set_index(
        ["method", "code_length"]
    )
    assert table.loc[("SDH", 16), "cited"] == 0.4675
    assert math.isnan(table.loc[("SDH", 12), "cited"])
    assert table.loc["SDH"][["published", "difference"]].isna().all(axis=None)
    assert table.drop("SDH", level="method")["cited"].isna().all()


def test_the_comparison_has_one_row_per_cell_of_the_grid_and_none_for_the_classifier_baseline(metrics, display_names):
    table = comparison_table(metrics, "cifar10", display_names)
    assert len(table) == len(metrics) - 1
    assert not table["method"].str.contains("1-of-C").any()


def test_cells_of_two_databases_repeated_or_unnamed_ones_and_none_are_refused(metrics, display_names):
    metrics[0]["chance_level"] = 0.2
    with pytest.raises(InputError, match="differ in chance_level"):
        map_table(metrics, display_names)
    twice, of_nobody = ([*metrics[1:], {**metrics[1], "method": method}] for method in ("lsh", "of_somebody_else"))
    for tabulate in (map_table, metrics_table, lambda *of: comparison_table(of[0], "mnist", of[1])):
        with pytest.raises(InputError, match=r"two cells of lsh at 32 bits: move copies of folders, such as lsh_old"):
            tabulate(twice, display_names)
        with pytest.raises(InputError, match="metrics of 'of_somebody_else', which is no method with a name"):
            tabulate(of_nobody, display_names)
    with pytest.raises(InputError, match="evaluate at least one method"):
        map_table([], display_names)
