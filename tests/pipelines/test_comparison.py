"""Several seeds, compared: from codes to the table and the page."""

import numpy as np
import pytest

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import Run
from deephash_pipeline.deephash.experiment import ClassifierRun
from deephash_pipeline.deephash.fine_tune import build_network
from deephash_pipeline.pipelines.comparison.nodes import compare_methods, map_of_seeds
from deephash_pipeline.pipelines.grid import METHODS
from deephash_pipeline.pipelines.shared.fitting import BaselineParameters, fit_hash_function
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.reports.seeds import seeds_page
from deephash_pipeline.retrieval import CodeSets, average_precision, average_precision_at, count_distances, pack_bits
from deephash_pipeline.retrieval.protocols import Protocol
from deephash_pipeline.tuning.significance import SignificanceParameters
from tests.pipelines.squares import EXPERIMENT, LABELS, TRAINING_SET
from tests.pipelines.test_fine_tuning_stages import fine_tuning_parameters

TRAINING_LABELS = np.arange(60, dtype=np.int64) % 3
VALIDATION_LABELS = np.arange(30, dtype=np.int64) % 3
QUERY_LABELS = np.arange(24, dtype=np.int64) % 3


def codes(noise, seed, code_length=12):
    """Codes that tell the class, with some bits flipped."""
    generator = np.random.default_rng(seed)

    def of(labels):
        clean = np.arange(code_length) % 3 == labels[:, None]
        return pack_bits(clean ^ (generator.uniform(size=clean.shape) < noise))

    return CodeSets(of(TRAINING_LABELS), of(VALIDATION_LABELS), of(QUERY_LABELS), code_length)


FILES = {
    "itq/b12/codes.npz": codes(0.3, 0),
    "itq/b12/r2/codes.npz": codes(0.3, 1),
    "itq/b12/r3/codes.npz": codes(0.3, 2),
    "deephash/b12/codes.npz": codes(0.02, 3),
    "deephash/b12/r3/codes.npz": codes(0.02, 4),
    "csq/b12/codes.npz": codes(0.02, 5),
    "itq/b12/r10/codes.npz": codes(0.3, 9),
    "lsh/b48/codes.npz": codes(0.4, 6, 48),
    "lsh/b64/codes.npz": codes(0.4, 6, 64),
    "one_of_c/bC/codes.npz": codes(0.0, 7, 3),
    "descriptor_itq/b16/codes.npz": codes(0.0, 8, 16),
}


def compared(files, training=TRAINING_LABELS, protocol="paper"):
    return compare_methods(
        files, Sets(QUERY_LABELS, training, VALIDATION_LABELS), protocol, SignificanceParameters(), METHODS
    )


@pytest.fixture(scope="module")
def table():
    return compared(FILES)


def test_each_cell_that_is_there_has_the_mean_of_the_seeds_that_are_there(table):
    found = {(row.protocol, row.method, row.code_length): row.seeds for row in table.itertuples()}
    of_one_database = {("ITQ", 12): 4, (METHODS["deephash"], 12): 2, ("CSQ", 12): 1, ("LSH", 48): 1, ("LSH", 64): 1}
    assert found == {
        (protocol, *cell): seeds for protocol in ("paper", "held_out") for cell, seeds in of_one_database.items()
    }
    scores = []
    for name in ("", "r2/", "r3/", "r10/"):
        own = FILES[f"itq/b12/{name}codes.npz"]
        histograms = count_distances(own.query, QUERY_LABELS, own.validation, VALIDATION_LABELS, 12)
        scores.append(average_precision(histograms).mean())
    row = table[(table["protocol"] == "held_out") & (table["method"] == "ITQ")].iloc[0]
    assert row["mean"] == pytest.approx(np.mean(scores))
    assert row["standard_deviation"] == pytest.approx(np.std(scores, ddof=1))
    assert [float(mean) for mean in row["mean_of_each_seed"].split()] == pytest.approx(scores)


def test_only_the_first_k_count_where_the_protocol_says_so():
    protocol = Protocol("first_five", ("training",), "the training set", k=5)
    scores = map_of_seeds(FILES, Sets(QUERY_LABELS, TRAINING_LABELS, VALIDATION_LABELS), protocol)
    own = FILES["lsh/b48/codes.npz"]
    histograms = count_distances(own.query, QUERY_LABELS, own.database, TRAINING_LABELS, 48)
    assert scores["lsh", 48] == [pytest.approx(average_precision_at(histograms, 5).mean())]
    assert scores["lsh", 48] != [pytest.approx(average_precision(histograms).mean(), abs=1e-3)]


def test_the_worse_method_is_worse_and_one_seed_has_no_verdict(table):
    of_twelve = table[(table["protocol"] == "held_out") & (table["code_length"] == 12)].set_index("method")["verdict"]
    assert of_twelve.to_dict() == {"ITQ": "worse", METHODS["deephash"]: "best", "CSQ": None}
    assert table[table["code_length"] == 48]["verdict"].isna().all()


def test_where_queries_find_nothing_in_the_training_set_only_held_out_images_are_searched():
    assert set(compared(FILES, TRAINING_LABELS + 3)["protocol"]) == {"held_out"}
    assert set(compared(FILES, TRAINING_LABELS + 3, "unseen")["protocol"]) == {"unseen"}


def test_a_protocol_that_searches_both_sets_is_compared_over_both_and_with_held_out_images_beside():
    table = compared(FILES, protocol="cifar10_1")
    assert table["protocol"].unique().tolist() == ["cifar10_1", "held_out"]
    own = FILES["csq/b12/codes.npz"]
    both = np.concatenate([own.database, own.validation]), np.concatenate([TRAINING_LABELS, VALIDATION_LABELS])
    scores = average_precision(count_distances(own.query, QUERY_LABELS, *both, 12))
    row = table[(table["protocol"] == "cifar10_1") & (table["method"] == "CSQ")].iloc[0]
    assert row["mean"] == pytest.approx(scores.mean())


def test_the_page_shows_spread_seeds_and_ties(table):
    page = seeds_page(table, EXPERIMENT.benchmark, SignificanceParameters())
    lines = page[page.index("## Protocol held_out") :].splitlines()
    row = table[(table["protocol"] == "held_out") & (table["method"] == "ITQ")].iloc[0]
    assert f"| ITQ | {row['mean']:.4f} ± {row['standard_deviation']:.4f} (4) | \N{EN DASH} | \N{EN DASH} |" in lines
    (csq,) = (line for line in lines if line.startswith("| CSQ"))
    assert "**" not in csq
    assert "±" not in csq
    (deephash,) = (line for line in lines if line.startswith(f"| {METHODS['deephash']} |"))
    assert deephash.count("**") == 2


def test_no_codes_are_refused():
    with pytest.raises(InputError, match="--params=replicate=2"):
        compared({})


# What another seed changes.


def cell(replicate):
    return Cell(method="lsh", code_length=12, replicate=replicate)


def test_the_first_replicate_is_the_cell_itself_and_others_draw_anew():
    z = np.random.default_rng(0).normal(size=(36, 20)).astype(np.float32)

    def directions(which):
        encoder = fit_hash_function(z, LABELS, which, BaselineParameters.model_validate({}), EXPERIMENT.seed)
        return encoder.transform(z)

    first, second, third = (directions(cell(replicate)) for replicate in (1, 2, 3))
    assert (first == directions(Cell(method="lsh", code_length=12))).all()
    assert (first != second).any()
    assert (second != third).any()


def test_weights_of_trunk_and_hash_layer_are_drawn_anew_with_every_seed():
    networks = [
        build_network(TRAINING_SET, fine_tuning_parameters(), Run.of_replicate(EXPERIMENT, cell(replicate)))
        for replicate in (1, 2)
    ]
    again = build_network(TRAINING_SET, fine_tuning_parameters(), Run(EXPERIMENT, cell(1)))
    first, second = (network.hash_layer.weight for network in networks)
    assert (first == again.hash_layer.weight).all()
    assert (first != second).all()
    assert ClassifierRun.of_replicate(EXPERIMENT, cell(3)).experiment.seed == EXPERIMENT.seed + 2
