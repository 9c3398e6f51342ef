"""Results go into one JSON and from there into a document; errors are one line and write nothing."""

import json
import re
from importlib.metadata import PackageNotFoundError

import pytest
from click.testing import CliRunner

from benchmarks import documents, evaluation, large_database, loss, measuring, near_pairs, search, training_loop
from benchmarks.documents import Benchmark, replaced_between_markers
from benchmarks.studies import copies, embeddings, large_batch, reranking, service, verdicts
from deephash_pipeline.common.errors import InputError

TIMINGS = (evaluation.EVALUATION, large_database.LARGE_DATABASE, loss.LOSS, search.SEARCH, training_loop.TRAINING_LOOP)
STUDIES = (embeddings.EMBEDDINGS, large_batch.LARGE_BATCH, reranking.RERANKING, service.SERVICE, verdicts.VERDICTS)
BEGIN, END = "<!-- a: begin -->", "<!-- a: end -->"
DOCUMENT = f"# Title\n\n{BEGIN}\nold\n{END}\n\n<!-- b: begin -->\nstays\n<!-- b: end -->\n"


@pytest.mark.parametrize("benchmark", [*TIMINGS, *STUDIES], ids=lambda benchmark: benchmark.name)
def test_the_document_shows_the_stored_results(benchmark):
    text, results = benchmark.document.read_text(encoding="utf-8"), benchmark.read()
    assert benchmark.shown_in(text, results) == text
    sections = benchmark.sections(results)
    # Besides the run, at least one table is shown, and no marker is of a table that is no longer measured.
    marked = set(re.findall(rf"<!-- ({benchmark.name} [^:]+): begin -->", text))
    assert len(marked) > 1 and marked <= sections.keys()
    for content in sections.values():
        assert len({line.count("|") for line in content.splitlines() if line.startswith("|")}) <= 1


def test_only_what_is_between_the_markers_changes():
    replaced = replaced_between_markers(DOCUMENT, "a", "new\n")
    assert replaced == DOCUMENT.replace("begin -->\nold\n", "begin -->\n\nnew\n\n")
    assert replaced_between_markers(replaced, "a", "new") == replaced


@pytest.mark.parametrize("document", ["nothing", BEGIN, END + BEGIN, DOCUMENT + END, BEGIN + DOCUMENT])
def test_a_document_without_its_two_markers_is_refused(document):
    with pytest.raises(InputError, match="must contain <!-- a: begin -->"):
        replaced_between_markers(document, "a", "new")


def test_a_document_shows_the_tables_for_which_it_has_markers_and_always_the_run():
    some = Benchmark("some", lambda settings: settings, settings={})
    results = {"run": "A machine.", "tables": {"a": [{"x": 1}], "b": [{"y": 2}]}}
    markers = "<!-- some {0}: begin --><!-- some {0}: end -->"
    shown = some.shown_in(markers.format("run") + markers.format("a"), results)
    assert "A machine." in shown and "| x |" in shown and "| y |" not in shown
    with pytest.raises(InputError, match="must contain <!-- some run: begin -->"):
        some.shown_in(markers.format("a"), results)


def numbers(number):
    return {"numbers": [{"number": number}]}


@pytest.fixture
def benchmark_of(tmp_path, monkeypatch):
    """A benchmark of one number, whose document and results are in a temporary folder."""
    monkeypatch.setattr(documents, "RESULTS", tmp_path)
    markers = (f"<!-- some {section}: begin --><!-- some {section}: end -->" for section in ("run", "numbers"))
    (tmp_path / "page.md").write_text("\n".join(markers))

    def make(measure):
        settings, page = {"rounds": 5, "fast": False, "sizes": (1, 2)}, tmp_path / "page.md"
        return Benchmark("some", measure, settings, quick={"rounds": 1}, distributions=("numpy",), document=page)

    return make


def test_results_are_stored_and_rendered(benchmark_of, tmp_path):
    some = benchmark_of(lambda settings: {"tables": numbers(10 * settings["rounds"]), "note": "All is well."})
    assert some.main("Some.", ["--rounds", "7"]) == 0
    stored = json.loads((tmp_path / "some.json").read_text())
    assert stored["settings"] == {"rounds": 7, "fast": False, "sizes": [1, 2]}
    assert stored["tables"] == numbers(70)
    run = " ".join(stored["run"].split())
    assert re.match(r".+, \d+ cores, .+ at the start\. python [\d.]+, numpy [\d.]+\. ", run)
    assert run.endswith("Settings: rounds 7; fast false; sizes 1, 2. All is well.")
    assert "| 70 |" in (tmp_path / "page.md").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"some.json", "page.md"}


def test_a_quick_measurement_is_printed_and_not_written(benchmark_of, tmp_path, capsys):
    before = (tmp_path / "page.md").read_text()
    assert benchmark_of(lambda settings: {"tables": numbers(settings["rounds"])}).main("Some.", ["--quick"]) == 0
    assert "| 1 |" in capsys.readouterr().out
    assert (tmp_path / "page.md").read_text() == before and not (tmp_path / "some.json").exists()


def test_without_the_packages_of_a_benchmark_one_line_names_them_and_the_remedy(monkeypatch, capsys):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(measuring, "version", absent)
    for main in (search.SEARCH.main, evaluation.EVALUATION.main, lambda *_: near_pairs.main([])):
        assert main("Some.", ["--quick"]) == 1
        assert re.fullmatch(r"not installed: .*faiss-cpu.*; `make .venv/bench` installs .*\n", capsys.readouterr().err)
    refused = CliRunner().invoke(copies.main, ["nowhere"])
    assert (refused.exit_code, refused.output.partition(";")[0]) == (1, "Error: not installed: imagehash, pdqhash")


def test_errors_and_interrupts_are_one_line_and_write_nothing(benchmark_of, tmp_path, capsys):
    for error, code, line in (
        (InputError("faiss cannot be\nimported"), 1, "faiss cannot be imported\n"),
        (KeyboardInterrupt(), 130, "stopped; nothing was written\n"),
    ):

        def fail(_, error=error):
            raise error

        assert benchmark_of(fail).main("Some.", []) == code
        assert capsys.readouterr().err == line
        assert not (tmp_path / "some.json").exists()
