"""What the pages say of which methods are worse is what the stored tables carry, by a test that errs as it says."""

import re

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from benchmarks.documents import replaced_between_markers
from benchmarks.studies import fair_comparison, verdicts
from benchmarks.studies.verdicts import (
    Noise,
    by_moderated_variances,
    by_own_variances,
    by_pooled_variance,
    by_queries,
    by_stepping_down,
    error_among_unequal,
    family_wise_error,
    found_worse,
    power,
)
from deephash_pipeline.tuning.significance import compare_with_best
from deephash_pipeline.tuning.study import best_trials, tuned_parameters
from tests.conftest import ROOT

DRAWS = 4000
ON_Z = ["LSH", "ITQ", "BRE", "MLH", "KSH"]


@pytest.mark.parametrize("name", verdicts.CELLS)
def test_of_equal_methods_with_published_deviations_any_is_called_worse_as_often_as_level_and_page_say(name):
    deviations = verdicts.published_deviations(*verdicts.CELLS[name][:3])
    (shown,) = [row for row in verdicts.VERDICTS.read()["tables"]["errors"] if row["variances"] == name]
    assert shown["methods"] == len(deviations)
    found = family_wise_error(by_stepping_down, deviations, 3, DRAWS)
    assert found == pytest.approx(verdicts.LEVEL, abs=0.02)
    assert found == pytest.approx(float(shown["Tukey, own variances"]), abs=0.01)
    assert family_wise_error(by_stepping_down, deviations, 3, DRAWS, Noise(shared=0.5)) <= verdicts.LEVEL
    for noise in (Noise(freedom=4), Noise(failing=0.02)):
        assert family_wise_error(by_stepping_down, deviations, 3, DRAWS, noise) <= verdicts.LEVEL + 0.02
    assert error_among_unequal(by_stepping_down, deviations, 3, DRAWS) <= verdicts.LEVEL + 0.02


@pytest.mark.parametrize("name", verdicts.FOUND)
def test_stepping_down_finds_more_of_what_is_worse_and_never_less(name):
    means, deviations = verdicts.published(*verdicts.FOUND[name])
    noise, spread = verdicts.drawn(deviations, 3, 500)
    one_step, stepping = (calls(noise + means, spread, 3) for calls in (by_own_variances, by_stepping_down))
    assert not (one_step & ~stepping).any()
    (shown,) = [row for row in verdicts.VERDICTS.read()["tables"]["found"] if row["means and deviations"] == name]
    found = found_worse(by_stepping_down, means, deviations, 3, DRAWS)
    assert found == pytest.approx(float(shown["stepping down"]), abs=0.2)
    assert float(shown["one step"]) < float(shown["stepping down"])


@pytest.mark.parametrize(
    ("trials", "file"),
    [
        ("trials", "digits_held_out/parameters_tuned.yml"),
        ("trials-mnist", "recipes/tuned_on_mnist.yml"),
        ("trials-cifar10", "recipes/tuned_on_cifar10.yml"),
    ],
)
def test_the_configuration_has_all_that_the_winners_of_the_stored_trials_have(trials, file):
    won = tuned_parameters(best_trials(pd.read_csv(fair_comparison.FOLDER / f"{trials}.csv")))
    configured = OmegaConf.load(ROOT / "conf" / file)
    assert OmegaConf.merge(configured, won) == configured


def test_the_former_test_and_one_variance_for_all_err_more_often_where_seeds_deviate_more_and_differently():
    *cell, query_error = verdicts.CELLS["CIFAR-10, 48 bits"]
    deviations = verdicts.published_deviations(*cell)
    assert family_wise_error(by_queries(query_error), deviations, 3, DRAWS) > 0.9
    assert family_wise_error(by_pooled_variance, np.ones(14), 3, DRAWS) == pytest.approx(verdicts.LEVEL, abs=0.01)
    assert family_wise_error(by_pooled_variance, deviations, 3, DRAWS) > 3 * verdicts.LEVEL


def test_moderated_variances_find_more_and_err_where_one_method_deviates_more_than_the_others():
    means, deviations = verdicts.published(*verdicts.FOUND["digits, held out"])
    steps, moderated = (
        found_worse(calls, means, deviations, 3, DRAWS) for calls in (by_stepping_down, by_moderated_variances)
    )
    assert moderated > steps + 1
    assert family_wise_error(by_stepping_down, verdicts.ONE_DEVIATES, 3, DRAWS) <= verdicts.LEVEL + 0.02
    assert family_wise_error(by_moderated_variances, verdicts.ONE_DEVIATES, 3, DRAWS) > verdicts.LEVEL + 0.03


@pytest.mark.parametrize(("seeds", "two", "six"), [(3, 0.12, 0.73), (5, 0.43, 1.0)])
def test_power_for_two_and_six_deviations_is_that_of_the_page(seeds, two, six):
    assert power(by_stepping_down, 14, seeds, DRAWS, below=2) == pytest.approx(two, abs=0.03)
    assert power(by_stepping_down, 14, seeds, DRAWS, below=6) == pytest.approx(six, abs=0.03)


def test_the_simulation_calls_worse_what_the_package_calls_worse():
    means, deviations = verdicts.drawn(np.array([1.0, 2.0, 0.5]), 3, 20, below=8)
    calls = by_stepping_down(means, deviations, 3)
    found = [compare_with_best(*of_draw, [3] * 3) for of_draw in zip(means, deviations, strict=True)]
    assert calls.tolist() == [[method.verdict == "worse" for method in methods] for methods in found]
    assert 0 < calls.mean() < 1


@pytest.fixture(scope="module")
def tables():
    return {name: fair_comparison.judged(fair_comparison.read(name)) for name in fair_comparison.TABLES}


def test_stored_verdicts_follow_from_stored_means_deviations_and_numbers_of_seeds(tables):
    for name, table in tables.items():
        stored = fair_comparison.read(name)
        assert table["verdict"].fillna("").tolist() == stored["verdict"].fillna("").tolist()
        for column in ("difference", "p_value"):
            found, expected = (pd.to_numeric(rows[column]).to_numpy() for rows in (table, stored))
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-9)
    for table in tables.values():
        rows = table.dropna(subset="mean_of_each_seed")
        of_seeds = rows["mean_of_each_seed"].str.split(expand=True).astype(float).agg(["mean", "std"], axis=1)
        np.testing.assert_allclose(of_seeds, rows[["mean", "standard_deviation"]].astype(float), atol=2e-6)


def test_page_and_readme_mark_and_say_what_the_stored_tables_carry(tables):
    page, readme = (path.read_text(encoding="utf-8") for path in (fair_comparison.PAGE, fair_comparison.README))
    for name, content in fair_comparison.sections(tables).items():
        text = readme if name == "README" else page
        assert replaced_between_markers(text, f"fair_comparison {name}", content) == text


def test_figures_in_sentences_beside_the_tables_are_those_of_stored_tables(tables):
    def at_48_bits(name, protocol):
        rows = tables[name].astype({"mean": float}).set_index("method")
        return rows[(rows["protocol"] == protocol) & (rows["code_length"] == "48")]

    trained, unseen = at_48_bits("MNIST", "held_out").drop(ON_Z), at_48_bits("digits", "unseen")
    deep = unseen.drop(ON_Z)
    several, worse = deep["verdict"].count(), (deep["verdict"] == "worse").sum()
    assert deep["mean"].max() < unseen.loc[["ITQ", "BRE", "LSH"], "mean"].min()
    paper = pd.read_csv(fair_comparison.PAGE.parent / "paper/map_of_all_methods.csv", index_col=[0, 1, 2])["measured"]
    page = fair_comparison.PAGE.read_text(encoding="utf-8")
    for sentence in (
        f"all trained networks lie within {np.ptp(trained['mean']):.4f} held out",
        f"DeepHash has {paper['MNIST', 'DeepHash (fine-tuning)', 48]} at 48 bits",
        f"it has {paper['CIFAR10', 'DeepHash (fine-tuning, faithful)', 48]}]",
        f"of the {several} with several seeds {worse} are shown to be worse than ITQ",
    ):
        assert sentence in page


def test_no_sentence_beside_the_tables_gives_a_verdict_of_its_own():
    for path, heading in ((fair_comparison.PAGE, "## Digits"), (fair_comparison.README, "# ")):
        text = path.read_text(encoding="utf-8").partition(heading)[2]
        prose = re.sub(r"<!-- (fair_comparison .*?): begin -->.*?<!-- \1: end -->", "", text, flags=re.DOTALL)
        assert re.findall(r".*\b(?:tied|told apart|(?:is|are|stays) (?:first|best)|significant\w*)\b.*", prose) == []
