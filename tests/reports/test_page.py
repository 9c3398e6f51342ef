import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pandas as pd
import pytest
from PIL import Image

from deephash_pipeline.reports import (
    comparison_table,
    figure_map_by_code_length,
    figure_precision_recall,
    figure_training_curves,
    map_table,
    render_report,
)

ATTRIBUTES_THAT_LOAD = {"src", "href", "srcset", "data", "poster", "action"}


class PageReader(HTMLParser):
    """Collects what the page would load, its bold cells, its embedded figures and its visible text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.best: list[str] = []
        self.figures: list[dict] = []
        self.text: list[str] = []
        self._open: list[tuple[str, dict]] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.loads += [values[name] for name in ATTRIBUTES_THAT_LOAD & values.keys()]
        self._open.append((tag, values))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, text):
        tag, attributes = self._open[-1] if self._open else ("", {})
        if tag == "script" and attributes.get("type") == "application/json":
            self.figures.append(json.loads(text))
        elif tag not in ("script", "style"):
            self.text.append(text)
            if "best" in (attributes.get("class") or "").split():
                self.best.append(text)


@pytest.fixture
def render(metrics, curves, history, display_names):
    def render_with(benchmark="cifar10", **changes):
        arguments = {
            "title": "Codes for small images",
            "benchmark": benchmark,
            "summary": {"Database": "5,000 images"},
            "map_table": map_table(metrics, display_names),
            "comparison_table": comparison_table(metrics, benchmark, display_names),
            "figures": {
                "map_by_code_length": figure_map_by_code_length(metrics, display_names),
                "precision_recall": figure_precision_recall(curves, display_names),
                "training_curves": figure_training_curves(history, display_names),
            },
            "gallery": Image.new("RGB", (20, 10)),
            "notes": ["Trained for two epochs."],
        }
        return render_report(**{**arguments, **changes})

    return render_with


def test_the_page_loads_nothing_but_itself(render):
    loads = PageReader(render()).loads
    assert any(source.startswith("data:image/png;base64,") for source in loads)
    assert all(source.startswith("data:") for source in loads)


def test_the_page_styles_load_nothing(render):
    style = re.search(r"<style>(.*?)</style>", render(), flags=re.DOTALL).group(1)
    assert "url(" not in style
    assert "@import" not in style


def test_plotly_is_in_the_page_once(render):
    assert render().count("plotly.js v") == 1


def test_the_page_states_the_protocol(render):
    text = " ".join(" ".join(PageReader(render()).text).split())
    assert "The database is the training set; the queries are the test set." in text
    assert "tie-aware" in text


def test_every_figure_stands_under_its_title_with_how_to_read_it(render, metrics, display_names):
    reader = PageReader(render())
    assert len(reader.figures) == 3
    assert "Mean average precision by code length" in reader.text
    assert figure_map_by_code_length(metrics, display_names).layout.meta["how_to_read"] in reader.text
    assert all("text" not in figure["layout"].get("title", {}) for figure in reader.figures)


def test_the_best_method_per_column_is_bold_and_references_never_are(render):
    # The 1-of-C code scores 0.75, above every method. The paper prints .6874 at 12 bits, and .2862 (ITQ) at 32 bits.
    assert sorted(PageReader(render()).best) == ["0.2800", "0.2800", "0.2862", "0.6874", "0.7000", "0.7000"]


def test_a_missing_figure_is_shown_as_a_dash_and_a_difference_with_its_sign(render):
    text = PageReader(render()).text
    assert "\N{EN DASH}" in text
    assert "+0.0126" in text
    assert "\N{MINUS SIGN}0.0062" in text
    assert "nan" not in " ".join(text).lower().split()


def test_what_the_paper_cites_has_a_column_of_its_own_and_a_note(render, metrics, display_names):
    names = {**display_names, "cnnh": "CNNH"}
    cells = [*metrics, {**metrics[0], "method": "cnnh", "code_length": 12}]
    text = PageReader(render(comparison_table=comparison_table(cells, "cifar10", names))).text
    assert "0.4390 (12 bits)" in text
    assert any("5,000 labelled images" in paragraph for paragraph in text)
    assert not any("cited" in paragraph for paragraph in PageReader(render()).text)


def test_a_benchmark_without_published_figures_says_so(render):
    text = " ".join(" ".join(PageReader(render("digits")).text).split())
    assert "The paper prints no figures" in text
    assert "published" not in PageReader(render("digits")).text


def test_text_from_outside_cannot_become_markup(render, metrics, display_names):
    hostile = "</script><b>LSH</b>"
    display_names["lsh"] = hostile
    page = render(
        title="<i>title</i>",
        map_table=map_table(metrics, display_names),
        figures={"map": figure_map_by_code_length(metrics, display_names)},
    )
    assert hostile not in page
    assert "<i>title" not in page
    assert PageReader(page).figures[0]["data"][0]["name"] == hostile


def test_the_page_is_the_same_after_its_tables_went_through_csv(render, metrics, display_names, tmp_path):
    map_table(metrics, display_names).to_csv(tmp_path / "map.csv")
    comparison_table(metrics, "cifar10", display_names).to_csv(tmp_path / "comparison.csv", index=False)
    again = render(
        map_table=pd.read_csv(tmp_path / "map.csv", index_col="method"),
        comparison_table=pd.read_csv(tmp_path / "comparison.csv"),
    )
    assert again == render()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_browser_without_network_draws_every_plot(render, tmp_path):
    page = render()
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    command = [
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=10000"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()),
    ]
    dumped = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True).stdout
    drawn = re.sub(r"<script.*?</script>", "", dumped, flags=re.DOTALL)
    figures = PageReader(page).figures
    assert len(re.findall(r'class="[^"]*svg-container', drawn)) == len(figures)
    assert len(re.findall(r'<g class="trace scatter', drawn)) == sum(len(figure["data"]) for figure in figures) == 15
