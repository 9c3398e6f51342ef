"""Numbers of different protocols, in tables of their own."""

import math
import re

import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.reports.tables import by_other_protocols, comparison_table, map_table, protocols_table


@pytest.fixture
def beside(metrics):
    """The cells with what was measured on held-out images."""
    measured = {"chance_level": 0.3, "database_size": 50}
    return [
        {
            **cell,
            "protocol": "paper",
            **{f"held_out_{name}": value for name, value in measured.items()},
            "held_out_mean_average_precision": cell["mean_average_precision"] / 2,
        }
        for cell in metrics
    ]


@pytest.fixture
def unseen(metrics):
    return [
        {**cell, "protocol": "unseen", "mean_average_precision": 0.6, "queries": 30}
        for cell in metrics
        if cell["method"] == "itq"
    ]


def test_every_protocol_has_its_own_rows_that_of_the_cells_first(metrics, beside, unseen):
    table = protocols_table(beside, unseen)
    assert list(dict.fromkeys(table["protocol"])) == ["paper", "held_out", "unseen"]
    of_itq = table[(table["method"] == "itq") & (table["code_length"] == 12)].set_index("protocol")
    assert of_itq["mean_average_precision"].to_dict() == {"paper": 0.3, "held_out": 0.15, "unseen": 0.6}
    assert of_itq["database_size"].to_dict() == {"paper": 5000, "held_out": 50, "unseen": 5000}
    assert of_itq["queries"].to_dict() == {"paper": 1000, "held_out": 1000, "unseen": 30}
    # Cells of another kind of run are not taken for unseen classes.
    assert set(protocols_table(beside, metrics)["protocol"]) == {"paper", "held_out"}


def test_each_other_protocol_is_a_table_of_methods_by_code_lengths(metrics, beside, unseen, display_names):
    held_out, of_unseen = by_other_protocols(protocols_table(beside, unseen), display_names)
    assert (held_out.heading, of_unseen.heading) == ("held_out", "unseen")
    assert held_out.table.loc["ITQ", "32"] == 0.14
    assert held_out.table.loc["Chance (reference)", "32"] == 0.3
    assert of_unseen.table.index.tolist() == ["ITQ", "Chance (reference)"]
    assert "classes that no training has seen" in of_unseen.database
    # A benchmark with one protocol has no other.
    assert by_other_protocols(protocols_table(metrics, []), display_names) == []


def test_a_protocol_with_a_k_shows_map_at_k_by_both_conventions_and_never_in_one_table(metrics, display_names):
    cells = [
        {
            **cell,
            "protocol": "imagenet100",
            "mean_average_precision_at_1000_by_hits": cell["mean_average_precision"] + 0.2,
        }
        for cell in metrics
    ]
    table = map_table(cells, display_names)
    assert table.loc["ITQ", "12"] == 0.3 + 0.1
    # The chance level is that of the whole database.
    assert "Chance (reference)" not in table.index
    (by_hits,) = by_other_protocols(protocols_table(cells, []), display_names)
    assert "mAP@1000 divided by the hits" in by_hits.heading
    assert by_hits.table.loc["ITQ", "12"] == 0.5
    assert comparison_table(cells, "imagenet100", display_names)["measured"].iloc[2] == 0.5


@pytest.mark.parametrize("protocol", ["held_out", "cifar10_1", "cifar10_2", "unseen"])
def test_published_values_stand_beside_measured_ones_of_their_own_protocol_alone(metrics, display_names, protocol):
    cells = [{**cell, "protocol": protocol} for cell in metrics]
    columns = ["published", "difference", "cited"]
    assert comparison_table(cells, "cifar10", display_names)[columns].isna().all(axis=None)
    assert comparison_table(metrics, "cifar10", display_names)["published"].notna().any()


def test_cells_of_two_protocols_share_no_table(metrics, display_names):
    metrics[0]["protocol"] = "cifar10_1"
    for tabulate in (map_table, lambda cells, names: comparison_table(cells, "cifar10", names)):
        with pytest.raises(InputError, match=re.escape("cells were measured by cifar10_1 and paper")):
            tabulate(metrics, display_names)


def test_what_is_not_measured_is_missing_and_not_zero(beside):
    assert math.isnan(protocols_table(beside, [])["mean_average_precision_at_1000_by_hits"].iloc[0])
