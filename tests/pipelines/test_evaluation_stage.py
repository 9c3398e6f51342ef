import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.retrieval import CodeSets, count_distances, mean_average_precision, pack_bits
from deephash_pipeline.retrieval.protocols import PROTOCOLS
from tests.pipelines.squares import measured_codes

LABELS = np.arange(36, dtype=np.int64) % 3
QUERY_LABELS = np.arange(9, dtype=np.int64) % 3
NO_LABELS = np.empty(0, dtype=np.int64)


def perfect_codes(*label_sets):
    """Codes of 12 bits that tell the class and nothing else."""
    database, validation, query = (
        pack_bits(np.repeat(labels[:, None] == np.arange(3), 4, axis=1)) for labels in label_sets
    )
    return CodeSets(database, validation, query, 12)


def measured(validation_labels, protocol="paper"):
    codes = perfect_codes(LABELS, validation_labels, QUERY_LABELS)
    return measured_codes(codes, Sets(QUERY_LABELS, LABELS, validation_labels), protocol)


def test_the_metrics_of_a_cell_say_what_was_measured_on_what():
    metrics, _ = measured(QUERY_LABELS[:6])
    assert metrics["method"] == "deephash"
    assert metrics["code_length"] == 12
    assert metrics["queries"] == 9
    assert metrics["database_size"] == 36
    assert metrics["mean_average_precision"] == 1
    assert metrics["validation_mean_average_precision"] == 1
    assert metrics["chance_level"] == pytest.approx(1 / 3, abs=0.1)
    assert metrics["distinct_database_codes"] == 3
    assert metrics["mean_bit_balance"] == pytest.approx(1 / 3)


def test_the_validation_figure_knows_nothing_of_the_queries():
    codes = perfect_codes(LABELS, (QUERY_LABELS + 1) % 3, QUERY_LABELS)
    metrics, _ = measured_codes(codes, Sets(QUERY_LABELS, LABELS, QUERY_LABELS))
    assert metrics["mean_average_precision"] == 1
    assert metrics["validation_mean_average_precision"] < 0.5


def test_queries_of_classes_that_the_database_lacks_are_refused():
    codes = perfect_codes(LABELS, NO_LABELS, QUERY_LABELS)
    with pytest.raises(InputError, match="set protocol to another"):
        measured_codes(codes, Sets(QUERY_LABELS + 3, LABELS, NO_LABELS))


# Protocols.


def noisy_codes(validation_labels):
    """Perfect codes of the training set, and random ones of the validation images."""
    codes = perfect_codes(LABELS, validation_labels, QUERY_LABELS)
    random = np.random.default_rng(0).integers(0, 2, (len(validation_labels), 12)).astype(bool)
    return CodeSets(codes.database, pack_bits(random), codes.query, 12)


def map_over(sets, codes, validation_labels):
    """Mean average precision of the queries over some sets put together."""
    named = {"training": (codes.database, LABELS), "validation": (codes.validation, validation_labels)}
    searched = (np.concatenate(parts) for parts in zip(*(named[name] for name in sets), strict=True))
    return mean_average_precision(count_distances(codes.query, QUERY_LABELS, *searched, 12))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_queries_search_the_sets_that_the_protocol_names(protocol):
    validation = np.arange(15, dtype=np.int64) % 3
    codes = noisy_codes(validation)
    metrics, _ = measured_codes(codes, Sets(QUERY_LABELS, LABELS, validation), protocol)
    assert metrics["protocol"] == protocol
    expected = map_over(PROTOCOLS[protocol].database, codes, validation)
    assert metrics["mean_average_precision"] == pytest.approx(expected, abs=1e-12)
    assert metrics["database_size"] == sum(
        {"training": 36, "validation": 15}[name] for name in PROTOCOLS[protocol].database
    )


@pytest.mark.parametrize("protocol", [name for name, protocol in PROTOCOLS.items() if protocol.beside])
def test_the_protocol_beside_is_measured_under_its_own_name(protocol):
    validation = np.arange(15, dtype=np.int64) % 3
    codes = noisy_codes(validation)
    beside = str(PROTOCOLS[protocol].beside)
    metrics, _ = measured_codes(codes, Sets(QUERY_LABELS, LABELS, validation), protocol)
    alone, _ = measured_codes(codes, Sets(QUERY_LABELS, LABELS, validation), beside)
    own = {name.removeprefix(f"{beside}_"): value for name, value in metrics.items() if name.startswith(f"{beside}_")}
    assert own == {name: alone[name] for name in own}
    assert {"mean_average_precision", "mean_average_precision_at_1000_by_hits", "chance_level"} <= set(own)
    assert metrics["mean_average_precision"] != own["mean_average_precision"]


def test_both_conventions_of_every_protocol_are_among_the_metrics():
    metrics, _ = measured(QUERY_LABELS)
    for protocol in PROTOCOLS.values():
        assert {protocol.metric, protocol.published_metric} <= set(metrics)


def test_nothing_is_measured_beside_where_there_is_nothing_to_search():
    for protocol, validation in (("paper", NO_LABELS), ("cifar10_2", QUERY_LABELS), ("unseen", QUERY_LABELS)):
        metrics, _ = measured(validation, protocol)
        assert not [name for name in metrics if name.startswith(("held_out_", "paper_"))]


def test_validation_images_of_other_classes_choose_nothing():
    labels = Sets(QUERY_LABELS + 3, LABELS, QUERY_LABELS + 3)
    codes = perfect_codes(LABELS, QUERY_LABELS, QUERY_LABELS)
    metrics, _ = measured_codes(codes, labels, "unseen")
    assert metrics["validation_mean_average_precision"] is None
    assert metrics["mean_average_precision"] == 1


def test_codes_of_other_images_are_refused():
    with pytest.raises(InputError, match="not those of the images"):
        labels = Sets(QUERY_LABELS, LABELS[:-1], QUERY_LABELS)
        measured_codes(noisy_codes(QUERY_LABELS), labels)


def test_curves_by_radius_and_by_rank_are_of_the_same_ranking():
    _, curves = measured(NO_LABELS)
    assert list(curves) == ["method", "code_length", "kind", "point", "precision", "recall"]
    by_radius, by_rank = (curves[curves["kind"] == kind] for kind in ("radius", "rank"))
    assert by_radius["point"].tolist() == list(range(13))
    assert by_rank["point"].is_monotonic_increasing
    assert by_radius["recall"].iloc[-1] == by_rank["recall"].iloc[-1] == 1
    assert by_radius["precision"].iloc[-1] == pytest.approx(by_rank["precision"].iloc[-1])
