import json
import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from deephash_pipeline.reports.figures import figure_map_by_code_length, figure_precision_recall
from deephash_pipeline.reports.page import Report, render_report
from deephash_pipeline.reports.tables import by_other_protocols, comparison_table, map_table, protocols_table
from deephash_pipeline.retrieval.protocols import PROTOCOLS
from tests.services import dumped, in_a_browser

ATTRIBUTES_THAT_LOAD = {"src", "href", "srcset", "data", "poster", "action"}


class PageReader(HTMLParser):
    """Collects what the page would load, its embedded figures and its visible text."""

    def __init__(self, page):
        super().__init__()
        self.loads = []
        self.figures = []
        self.text = []
        self._open = []
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


@pytest.fixture
def render(metrics, curves, display_names, groups):
    def render_with(benchmark="cifar10", title="Codes for small images", **changes):
        arguments = {
            "benchmark": benchmark,
            "protocol": PROTOCOLS["paper"],
            "methods": display_names,
            "by_protocol": (),
            "summary": {"Database": "5,000 images"},
            "map_table": map_table(metrics, display_names),
            "comparison_table": comparison_table(metrics, benchmark, display_names),
            "figures": {
                "map_by_code_length": figure_map_by_code_length(metrics, display_names, groups),
                "precision_recall": figure_precision_recall(curves, display_names, groups),
            },
            "gallery": '<div class="gallery"><img src="data:image/png;base64,AAAA" alt="seven"></div>',
            "made_with": {"Version": "1.2.3"},
            "notes": ["Trained for two epochs."],
        }
        return render_report(title, Report(**{**arguments, **changes}))

    return render_with


def test_the_page_loads_nothing_but_itself_and_has_plotly_once(render):
    loads = PageReader(render()).loads
    assert any(source.startswith("data:image/png;base64,") for source in loads)
    assert all(source.startswith("data:") for source in loads)
    style = re.search(r"<style>(.*?)</style>", render(), flags=re.DOTALL).group(1)
    assert "url(" not in style
    assert "@import" not in style
    assert render().count("plotly.js v") == 1


def test_the_page_states_the_protocol(render):
    text = " ".join(" ".join(PageReader(render()).text).split())
    assert "protocol paper . The database is the training set; no query is in it." in text
    assert "tie-aware" in text


def test_other_protocols_stand_below_in_tables_of_their_own(render, metrics, display_names):
    cells = [{**cell, "protocol": "unseen", "mean_average_precision": 0.1234} for cell in metrics]
    others = by_other_protocols(protocols_table(metrics, cells), display_names)
    text = " ".join(" ".join(PageReader(render(by_protocol=others)).text).split())
    assert "By other protocols" in text
    assert "1,000 queries; the database is other images of classes that no training has seen: 5,000 images." in text
    assert "From the environment cifar10_unseen, with its parameters." in text
    assert "0.1234" in text
    assert "By other protocols" not in render()


def test_every_figure_stands_under_its_title_with_how_to_read_it(render, metrics, display_names, groups):
    reader = PageReader(render())
    assert len(reader.figures) == 2
    assert "Mean average precision by code length" in reader.text
    assert figure_map_by_code_length(metrics, display_names, groups).layout.meta["how_to_read"] in reader.text
    assert all("text" not in figure["layout"].get("title", {}) for figure in reader.figures)


def test_a_missing_metric_is_shown_as_a_dash_and_a_difference_with_its_sign(render):
    text = PageReader(render()).text
    assert "\N{EN DASH}" in text
    assert "+0.0126" in text
    assert "\N{MINUS SIGN}0.0062" in text
    assert "nan" not in " ".join(text).lower().split()


def test_what_the_paper_cites_has_a_column_of_its_own_and_a_note(render, metrics, display_names):
    names = {**display_names, "cnnh": "CNNH", "liong_sdh": "SDH"}
    cells = [*metrics, *({**metrics[0], "method": method} for method in ("cnnh", "liong_sdh"))]
    text = PageReader(render(comparison_table=comparison_table(cells, "cifar10", names), methods=names)).text
    # All of them, whichever code lengths were measured.
    assert {"0.4390 / 0.5110 / 0.5220 (12 / 24 / 48 bits)", "0.1880 / 0.2083 / 0.2251 (16 / 32 / 64 bits)"} <= {*text}
    assert any("5,000 labelled images" in paragraph for paragraph in text)
    assert not any("cited" in paragraph for paragraph in PageReader(render()).text)


def test_a_benchmark_or_protocol_without_published_metrics_says_so(render, metrics, display_names):
    text = " ".join(" ".join(PageReader(render("digits")).text).split())
    assert "The paper prints no values" in text
    assert "published" not in PageReader(render("digits")).text
    of_others = comparison_table([{**cell, "protocol": "held_out"} for cell in metrics], "cifar10", display_names)
    text = " ".join(PageReader(render(protocol=PROTOCOLS["held_out"], comparison_table=of_others)).text)
    assert "measured by protocol held_out: values of" in text and "prints no values" not in text


def test_text_from_outside_cannot_become_markup(render, metrics, display_names, groups):
    hostile = "</script><b>LSH</b>"
    display_names["lsh"] = hostile
    page = render(
        title="<i>title</i>",
        map_table=map_table(metrics, display_names),
        figures={"map": figure_map_by_code_length(metrics, display_names, groups)},
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


def test_the_page_shows_what_its_metrics_were_made_with(render):
    text = PageReader(render()).text
    assert text[text.index("Version") + 1] == "1.2.3"
    assert "What the metrics were made with" not in PageReader(render(made_with={})).text


def seen_by_a_browser(page, folder, width=1000, script="", dark=False):
    """The page's elements after Chromium has drawn it, without network, and run a script in it."""
    ending = f"<script>drawAll().then(() => {{{script}}})</script></body>"
    (folder / "page.html").write_text(page.replace("</body>", ending), encoding="utf-8")
    # Chromium's window is at least 500 pixels wide, a frame in it may be narrower.
    frame = f"""<iframe src="page.html" style="width: {width}px; height: 900px" onload="setTimeout(() => {{
        const inside = this.contentDocument.documentElement.outerHTML; this.remove();
        document.body.appendChild(document.createElement('template')).innerHTML = inside;
    }}, 6000)"></iframe>"""
    (folder / "frame.html").write_text(frame, encoding="utf-8")
    options = ["--allow-file-access-from-files", *(["--force-dark-mode"] if dark else [])]
    drawn = dumped((folder / "frame.html").as_uri(), folder / "profile", *options)
    return re.sub(r"<script.*?</script>", "", drawn, flags=re.DOTALL)


@in_a_browser
def test_a_name_pointed_at_fades_all_other_curves_of_its_figure(render, tmp_path):
    script = """
        const entry = [...document.querySelectorAll(".legend .traces")].find(node => node.textContent === "ITQ");
        entry.firstChild.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
        for (const node of document.querySelectorAll(".scatterlayer .trace"))
          node.setAttribute("data-name", node.__data__[0].trace.name);
    """
    drawn = seen_by_a_browser(render(), tmp_path, script=script)
    traces = re.findall(r'<g class="trace scatter \w+( faded)?"[^>]*data-name="([^"]*)"', drawn)
    assert len(traces) == 7
    of_the_map = traces[:5]
    assert {name for faded, name in of_the_map if not faded} == {"ITQ"}
    assert not any(faded for faded, _ in traces[5:])


@in_a_browser
@pytest.mark.parametrize(("width", "columns"), [(1000, 2), (390, 1)])
def test_panels_stand_beside_each_other_or_on_a_phone_one_below_the_other(render, tmp_path, width, columns):
    page = render()
    drawn = seen_by_a_browser(page, tmp_path, width=width)
    figures = PageReader(page).figures
    assert len(re.findall(r'class="[^"]*svg-container', drawn)) == len(figures)
    assert len(re.findall(r'<g class="trace scatter', drawn)) == sum(len(figure["data"]) for figure in figures) == 7
    assert "fill: rgb(36, 41, 47)" in drawn
    first_figure = drawn[drawn.index('id="map_by_code_length"') : drawn.index('id="precision_recall"')]
    backgrounds = re.findall(r'<rect class="bg" x="([\d.]+)" y="([\d.]+)"', first_figure)
    # A legend has a background too, in its own corner.
    panels = {(float(left), float(top)) for left, top in backgrounds if float(left) > 1}
    assert len(panels) == 2
    assert len({left for left, _ in panels}) == columns


@in_a_browser
def test_plots_wear_the_colours_of_a_dark_page(render, tmp_path):
    assert "fill: rgb(228, 231, 235)" in seen_by_a_browser(render(), tmp_path, dark=True)
