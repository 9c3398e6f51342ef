import csv
import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from deephash_pipeline.retrieval import (
    average_precision_at,
    average_precision_at_by_hits,
    count_distances,
    count_shared_labels,
    graded_metrics,
    pack_bits,
    precision_at,
    precision_recall_by_radius,
    precision_recall_by_rank,
    precision_within_radius,
    recall_at,
    retrieval_metrics,
)
from deephash_pipeline.retrieval.__main__ import main
from deephash_pipeline.retrieval.code_files import LabelledCodes, read_labelled_codes
from deephash_pipeline.retrieval.stable_order import stable_order_average_precision
from tests.retrieval.random_codes import (
    BITS,
    CLASSES,
    CODE_LENGTH,
    DATABASE_BITS,
    DATABASE_LABELS,
    QUERY_BITS,
    QUERY_LABELS,
    RNG,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evaluate-your-own-codes.md"

PACKED = (pack_bits(QUERY_BITS), QUERY_LABELS, pack_bits(DATABASE_BITS), DATABASE_LABELS, CODE_LENGTH)
HISTOGRAMS = count_distances(*PACKED)


def evaluate(folder, arrays, *options):
    """Run the command on a file of these arrays."""
    np.savez(folder / "codes.npz", **arrays)
    return CliRunner().invoke(main, [str(folder / "codes.npz"), *options])


def one_error(result):
    """Return the one line of an error that ended the command."""
    assert result.exit_code == 1
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: ")
    return line.removeprefix("Error: ")


def test_the_table_names_every_metric_and_both_bounds_of_ties(tmp_path):
    result = evaluate(tmp_path, BITS)
    assert result.exit_code == 0
    shown = dict(re.findall(r"(\w+)\s+│\s+([\d.,]+) │", result.stdout))
    expected = retrieval_metrics(HISTOGRAMS)
    assert expected["mean_average_precision_pessimistic"] < expected["mean_average_precision_optimistic"]
    for name, value in expected.items():
        assert shown[name] == (f"{value:.4f}" if isinstance(value, float) else str(value))


def test_json_holds_the_same_metrics_unrounded_and_the_code_length(tmp_path):
    metrics = json.loads(evaluate(tmp_path, BITS, "--json").stdout)
    assert metrics.pop("code_length") == CODE_LENGTH
    del metrics["chance_level"]
    assert metrics == retrieval_metrics(HISTOGRAMS)


def test_undefined_metrics_are_null_in_json_and_nan_in_the_table(tmp_path):
    unknown = {**BITS, "query_labels": QUERY_LABELS + CLASSES}
    metrics = json.loads(evaluate(tmp_path, unknown, "--json", "--at", "3", "--radius", "1", "--stable-order").stdout)
    counts = {"code_length": 12, "queries": 7, "queries_without_relevant_items": 7, "database_size": 60}
    assert {name: value for name, value in metrics.items() if value is not None} == counts
    assert re.search(r"mean_average_precision +│ +nan", evaluate(tmp_path, unknown).stdout)


def test_queries_without_relevant_items_are_left_out_of_every_metric(tmp_path):
    unanswerable = np.arange(7) < 3
    labels = np.where(unanswerable, CLASSES, QUERY_LABELS)
    options = ("--json", "--at", "5", "--radius", "4", "--stable-order")
    metrics = json.loads(evaluate(tmp_path, {**BITS, "query_labels": labels}, *options).stdout)
    answerable = {**BITS, "query_codes": QUERY_BITS[3:], "query_labels": QUERY_LABELS[3:]}
    expected = json.loads(evaluate(tmp_path, answerable, *options).stdout)
    assert metrics == {**expected, "queries": 7, "queries_without_relevant_items": 3}


def test_ranks_radii_and_the_stable_order_are_added_under_their_names(tmp_path):
    options = ("--at", "5", "--at", "20", "--radius", "3", "--radius", "4", "--stable-order", "--json")
    metrics = json.loads(evaluate(tmp_path, BITS, *options).stdout)
    for k in (5, 20):
        assert metrics[f"mean_average_precision_at_{k}"] == average_precision_at(HISTOGRAMS, k).mean()
        by_hits = average_precision_at_by_hits(HISTOGRAMS, k)
        assert metrics[f"mean_average_precision_at_{k}_by_hits"] == by_hits.mean()
        assert metrics[f"precision_at_{k}"] == precision_at(HISTOGRAMS, k).mean()
        assert metrics[f"recall_at_{k}"] == recall_at(HISTOGRAMS, k).mean()
    for radius in (3, 4):
        precision, failed = precision_within_radius(HISTOGRAMS, radius)
        assert metrics[f"precision_within_radius_{radius}"] == precision.mean()
        assert metrics[f"lookup_failure_rate_radius_{radius}"] == failed.mean()
    stable = metrics["mean_average_precision_stable_order"]
    assert stable == stable_order_average_precision(LabelledCodes(*PACKED)).mean()
    assert metrics["mean_average_precision_pessimistic"] <= stable <= metrics["mean_average_precision_optimistic"]


def test_of_items_with_several_labels_graded_relevance_is_added(tmp_path):
    query_labels, database_labels = (RNG.random((count, CLASSES)) < 0.5 for count in (7, 60))
    several = {**BITS, "query_labels": query_labels.astype(float), "database_labels": database_labels.astype(float)}
    metrics = json.loads(evaluate(tmp_path, several, "--json", "--at", "5").stdout)
    packed = (pack_bits(QUERY_BITS), query_labels, pack_bits(DATABASE_BITS), database_labels, CODE_LENGTH)
    graded = count_shared_labels(*packed)
    expected = {**retrieval_metrics(graded.distances), **graded_metrics(graded), **graded_metrics(graded, 5)}
    assert {name: metrics[name] for name in expected} == expected
    assert "ndcg_at_100" not in json.loads(evaluate(tmp_path, BITS, "--json").stdout)


def test_the_curves_are_those_by_radius_and_by_rank(tmp_path):
    assert evaluate(tmp_path, BITS, "--curves", str(tmp_path / "curves.csv")).exit_code == 0
    with (tmp_path / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    curves = {
        "radius": precision_recall_by_radius(HISTOGRAMS),
        "rank": precision_recall_by_rank(HISTOGRAMS, np.arange(1, 61)),
    }
    for kind, curve in curves.items():
        written = [row for row in rows if row["kind"] == kind]
        points = [int(row["point"]) for row in written]
        assert points[-1] == curve.point[-1]
        chosen = np.searchsorted(curve.point, points)
        for name in ("precision", "recall"):
            np.testing.assert_array_equal([float(row[name]) for row in written], getattr(curve, name)[chosen])


def test_the_written_json_is_the_printed_one(tmp_path):
    result = evaluate(tmp_path, BITS, "--json", "--output", str(tmp_path / "metrics.json"))
    assert (tmp_path / "metrics.json").read_text() == result.stdout


def test_a_write_that_fails_leaves_the_former_files(tmp_path, monkeypatch):
    former, new = tmp_path / "metrics.json", tmp_path / "curves.csv"
    former.write_text("former")
    flushed = []

    def full_disk(file):
        flushed.append(file.name)
        if len(flushed) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    result = evaluate(tmp_path, BITS, "--output", str(former), "--curves", str(new))
    assert one_error(result) == f"{new} cannot be written: No space left on device; name another file."
    assert former.read_text() == "former"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["codes.npz", "metrics.json"]


@pytest.mark.parametrize("path", ["", "missing/metrics.json", "codes.npz/metrics.json"])
def test_a_path_that_cannot_be_written_is_refused_before_anything_is_read(tmp_path, path):
    result = CliRunner().invoke(main, [str(tmp_path / "not_there.npz"), "--output", str(tmp_path / path)])
    assert "cannot be written" in one_error(result)


def test_no_output_replaces_the_codes_or_the_other_output(tmp_path):
    codes, other = tmp_path / "codes.npz", tmp_path / "metrics.json"
    assert "different files" in one_error(evaluate(tmp_path, BITS, "--output", str(codes)))
    assert "different files" in one_error(evaluate(tmp_path, BITS, "--output", str(other), "--curves", str(other)))
    assert read_labelled_codes(codes).code_length == CODE_LENGTH
    assert not other.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query_codes": np.sign(QUERY_BITS - 0.5) * (RNG.random((7, 12)) < 0.9)}, "the sign of 0 is neither bit"),
        ({"query_labels": QUERY_LABELS[1:]}, "query_labels has 6 entries for 7 codes"),
        ({"query_labels": QUERY_LABELS.astype(object)}, "codes.npz is damaged or no .npz of numbers"),
    ],
)
def test_bad_input_is_reported_in_one_line_and_nothing_is_written(tmp_path, change, message):
    outputs = ["--output", str(tmp_path / "metrics.json"), "--curves", str(tmp_path / "curves.csv")]
    assert message in one_error(evaluate(tmp_path, {**BITS, **change}, *outputs))
    assert [path.name for path in tmp_path.iterdir()] == ["codes.npz"]


@pytest.mark.parametrize(("option", "name"), [(("--at", "0"), "k is 0"), (("--radius", "-1"), "radius is -1")])
def test_ranks_and_radii_out_of_range_are_reported_in_one_line(tmp_path, option, name):
    assert name in one_error(evaluate(tmp_path, BITS, *option))


def test_ranks_and_radii_of_any_size_beyond_the_database_mean_all_of_it(tmp_path):
    largest = "9" * 20
    evaluated = [
        json.loads(evaluate(tmp_path, BITS, "--at", at, "--radius", at, "--json").stdout) for at in (largest, "9999")
    ]
    assert list(evaluated[0].values()) == list(evaluated[1].values())


def test_help_names_every_array_of_the_file():
    help_text = CliRunner().invoke(main, ["--help"]).stdout
    for name in ("query_codes", "query_labels", "database_codes", "database_labels", "code_length"):
        assert re.search(rf"^ +{name} ", help_text, re.MULTILINE)


def test_every_block_of_the_page_prints_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    blocks = [
        (match["language"], match["text"], page.count("\n", 0, match.start()) + 1)
        for match in re.finditer(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ]
    assert {language for language, _, _ in blocks} == {"python", "console"}
    assert page.count("```") == 2 * len(blocks)
    names = {}
    for language, text, line in blocks:
        if language == "console":
            command, _, shown = text.partition("\n")
            assert command.startswith("$ python ")
            assert printed_by(command.removeprefix("$ python ")) == shown, f"the command in line {line}"
            continue
        test = doctest.DocTestParser().get_doctest(text, names, PAGE.name, str(PAGE), line)
        assert test.examples
        failures = []
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(test, out=failures.append, clear_globs=False)
        assert not failures, "".join(failures)
        names = test.globs


def printed_by(arguments):
    """Run Python as the page does and return what it prints into a pipe, 100 columns wide."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FORCE_COLOR", "TTY_"))}
    finished = subprocess.run(
        [sys.executable, *shlex.split(arguments)],
        env={**environment, "COLUMNS": "100", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


# Codes of a run.


@pytest.fixture
def of_a_run(tmp_path):
    """A folder with the codes.npz and the labels of a run."""
    for split, labels in (("query", QUERY_LABELS), ("training", DATABASE_LABELS)):
        (tmp_path / "labels" / split).mkdir(parents=True)
        np.save(tmp_path / "labels" / split / "labels.npy", labels)
    query, _, database, _, code_length = PACKED
    np.savez(tmp_path / "codes.npz", query=query, database=database, validation=query[:0], code_length=code_length)
    return tmp_path


def test_the_codes_of_a_run_are_evaluated_with_its_labels(of_a_run):
    found = CliRunner().invoke(main, [str(of_a_run / "codes.npz"), "--labels", str(of_a_run / "labels"), "--json"])
    metrics = json.loads(found.stdout)
    del metrics["code_length"], metrics["chance_level"]
    assert metrics == retrieval_metrics(HISTOGRAMS)


def test_without_labels_they_are_refused_with_the_option_that_names_them(of_a_run):
    assert "add --labels" in one_error(CliRunner().invoke(main, [str(of_a_run / "codes.npz")]))


def test_labels_are_for_codes_of_a_run(of_a_run, tmp_path):
    message = one_error(evaluate(tmp_path, BITS, "--labels", str(of_a_run / "labels")))
    assert "leave out --labels" in message


def test_labels_that_are_not_there_are_named(of_a_run):
    missing = CliRunner().invoke(main, [str(of_a_run / "codes.npz"), "--labels", str(of_a_run / "elsewhere")])
    assert "cannot be read" in one_error(missing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_is_not_replaced_by_a_file(tmp_path):
    assert "cannot be written" in one_error(evaluate(tmp_path, BITS, "--output", "/dev/full"))
    assert not Path("/dev/full").is_file()
