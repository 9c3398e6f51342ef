"""Real-valued features and product quantisation, measured as codes are and shown beside them."""

import sys

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.hashing.product_quantisation import quantise_products
from deephash_pipeline.pipelines.grid import CODE_LENGTHS
from deephash_pipeline.pipelines.references.nodes import measure_pq, measure_z, unit
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.reports.tables import map_table
from tests.packages import INSTALLS

EXPERIMENT = Experiment(benchmark="digits", network="lenet", seed=1)
CELL = {"method": "itq", "code_length": 12, "mean_average_precision": 0.5, "chance_level": 0.1}


def features(rows, seed):
    labels = np.arange(rows) % 5
    noise = np.random.default_rng(seed).normal(size=(rows, 17))
    return (noise + 3 * np.eye(17)[labels]).astype(np.float32), labels


TRAINING, VALIDATION, QUERIES = features(300, 0), features(50, 1), features(40, 2)
Z = Sets(QUERIES[0], TRAINING[0], VALIDATION[0])
LABELS = Sets(QUERIES[1], TRAINING[1], VALIDATION[1])


def test_real_valued_z_is_searched_in_the_sets_of_the_protocol():
    for protocol, size in (("paper", 300), ("held_out", 50), ("cifar10_1", 350)):
        [found] = measure_z(Z, LABELS, protocol)
        assert (found["method"], found["protocol"], found["database_size"]) == ("z", protocol, size)
        assert 0.5 < found["mean_average_precision"] < 1


def test_z_is_ranked_by_cosines_and_zeros_are_far_from_all():
    z = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(unit(z), [[0.6, 0.8], [0, 0]])
    scaled = Sets(*(each * np.float32(7) for each in Z))
    assert measure_z(scaled, LABELS, "paper") == [pytest.approx(found) for found in measure_z(Z, LABELS, "paper")]


def test_product_quantisation_keeps_more_the_more_bits_it_has():
    pytest.importorskip("faiss")
    kept = [quantise_products(TRAINING[0], [VALIDATION[0]], code_length)[0] for code_length in CODE_LENGTHS]
    lost = [float(((each - VALIDATION[0]) ** 2).sum()) for each in kept]
    assert lost == sorted(lost, reverse=True)
    found = measure_pq(Z, LABELS, "held_out", EXPERIMENT)
    assert [cell["code_length"] for cell in found] == list(CODE_LENGTHS)
    assert all(0.4 < cell["mean_average_precision"] < 1 for cell in found)


@pytest.mark.parametrize(
    ("code_length", "rows", "centroids"), [(12, 300, 64), (48, 300, 256), (16, 30, 16), (13, 9, 2)]
)
def test_a_part_of_the_features_is_one_of_so_many_centroids(code_length, rows, centroids):
    pytest.importorskip("faiss")
    [kept] = quantise_products(TRAINING[0][:rows], [TRAINING[0]], code_length, random_state=2**40)
    parts = code_length // int(np.log2(centroids))
    width = -(-17 // parts)
    for start in range(0, 17, width):
        assert 1 < len(np.unique(kept[:, start : start + width], axis=0)) <= centroids
    np.testing.assert_array_equal(kept, quantise_products(TRAINING[0][:rows], [TRAINING[0]], code_length, 2**40)[0])


def test_without_faiss_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=rf"^`faiss` cannot be imported .*{INSTALLS.format('faiss')}$"):
        measure_pq(Z, LABELS, "paper", EXPERIMENT)


def test_a_single_row_is_refused():
    with pytest.raises(InputError, match=r"^product quantisation needs two training rows at least, got 1"):
        quantise_products(TRAINING[0][:1], [VALIDATION[0]], 12)


def test_they_are_references_in_the_table_if_measured_by_its_protocol():
    z = {"method": "z", "code_length": None, "protocol": "paper", "mean_average_precision": 0.9}
    pq = {"method": "pq", "code_length": 12, "protocol": "paper", "mean_average_precision": 0.7}
    table = map_table([CELL, {**CELL, "code_length": 24}], {"itq": "ITQ"}, [z, pq])
    assert (table.index == "ITQ").tolist() == [True, False, False, False]
    assert table.iloc[1].to_dict() == {"12": 0.9, "24": 0.9}
    assert table.loc["Product quantisation of z, not binary (reference)", "12"] == 0.7
    assert len(map_table([CELL], {"itq": "ITQ"}, [{**z, "protocol": "held_out"}])) == 2
