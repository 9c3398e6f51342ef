"""The figure of the document on approximate search: recall against queries per second."""

import io
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from PIL import Image
from plotly.subplots import make_subplots

from benchmarks.approximate_search_tables import (
    codes_name,
    exact_seconds,
    parameters_of,
)
from benchmarks.documents import write_text
from benchmarks.search_indexes import FLAT, FLAT_MERGED, FLAT_UNPADDED, HNSW, HNSW_MERGED, IVF, MULTI_HASH
from deephash_pipeline.errors import InputError
from deephash_pipeline.reports.style import REFERENCE_COLOUR, method_styles, report_template

FAMILIES = (FLAT, IVF, MULTI_HASH, HNSW, HNSW_MERGED, FLAT_MERGED, FLAT_UNPADDED)
# Indexes of one kind that are built with other parameters share a colour and differ in marker and line.
SYMBOLS = ("circle", "square", "diamond")
DASHES = ("solid", "dash", "dot")
# Share of the nearest that is missed, where the axis has its labels, and where it stands if none is.
MISSED = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
DRAWN_AS_NONE = 0.00005
WIDTH, HEIGHT = 1100, 980
COLOURS_OF_THE_PICTURE = 128
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=15000",
    f"--window-size={WIDTH},{HEIGHT}",
)
SECONDS_FOR_THE_BROWSER = 120


def draw(results: Mapping[str, Any], k: str = "10") -> go.Figure:
    """Draw recall@k against queries per second, a panel for each database, models below each other."""
    databases = results["databases"]
    models = list(dict.fromkeys(database["codes"] for database in databases))
    sizes = sorted({database["items"] for database in databases})
    figure = make_subplots(
        rows=len(models),
        cols=len(sizes),
        shared_xaxes="all",
        shared_yaxes="all",
        horizontal_spacing=0.03,
        vertical_spacing=0.09,
        subplot_titles=[f"{codes_name(model)}, {size:,} codes" for model in models for size in sizes],
    )
    colours = {family: style.colour for family, style in method_styles(dict.fromkeys(FAMILIES[:-1], "")).items()}
    colours[FLAT_UNPADDED] = REFERENCE_COLOUR
    for database in databases:
        place = {"row": models.index(database["codes"]) + 1, "col": sizes.index(database["items"]) + 1}
        first = database is databases[0]
        for (name, family, rank), entries in curves(database).items():
            figure.add_scatter(
                x=[1 / entry["neighbours"][k]["cpu_seconds"] for entry in entries],
                y=[max(1 - entry["neighbours"][k]["recall"], DRAWN_AS_NONE) for entry in entries],
                customdata=[[parameters_of(entry), entry["neighbours"][k]["recall"]] for entry in entries],
                name=name,
                legendgroup=name,
                showlegend=first,
                mode="lines+markers",
                line={"color": colours[family], "dash": DASHES[rank % len(DASHES)], "width": 2},
                marker={"color": colours[family], "symbol": SYMBOLS[rank % len(SYMBOLS)], "size": 9},
                hovertemplate="%{customdata[0]}<br>%{x:,.0f} queries/s, recall %{customdata[1]:.4f}",
                **place,
            )
        exactly = {"color": REFERENCE_COLOUR, "width": 1.2, "dash": "dot"}
        figure.add_vline(x=1 / exact_seconds(database, k=k), line=exactly, **place)
    figure.update_layout(
        template=report_template(),
        title_text=f"Recall@{k} against queries per second on one core (dotted: exact search)",
        width=WIDTH,
        height=HEIGHT,
        legend_y=-0.09,
        margin={"t": 90},
    )
    figure.update_xaxes(type="log", dtick=1, tickformat=",.0f", showticklabels=True)
    figure.update_xaxes(title_text="Queries per second", row=len(models))
    # Most settings find nearly all, so the axis is that of what is missed, labelled with what is found.
    labels = [*(f"{1 - share:g}" for share in MISSED), "1"]
    figure.update_yaxes(type="log", autorange="reversed", tickvals=[*MISSED, DRAWN_AS_NONE], ticktext=labels)
    figure.update_yaxes(title_text=f"Recall@{k}", col=1)
    return figure


def curves(database: Mapping[str, Any]) -> dict[tuple[str, str, int], list[Mapping[str, Any]]]:
    """Entries of each built index, by its name in the legend, its family and its rank within the family."""
    by_index: dict[str, list[Mapping[str, Any]]] = {}
    for entry in database["indexes"]:
        built = ", ".join(f"{name} {value}" for name, value in entry["build"].items())
        by_index.setdefault(f"{entry['family']}, {built}" if built else entry["family"], []).append(entry)
    ranks: dict[str, int] = {}
    found = {}
    for name, entries in by_index.items():
        family = entries[0]["family"]
        found[name, family, ranks.setdefault(family, 0)] = entries
        ranks[family] += 1
    return found


def save_figure(results: Mapping[str, Any], picture: Path, page: Path) -> bool:
    """Write the figure as a page to explore, and as a picture if there is a Chromium to draw it.

    Args:
        results: as measured.
        picture: the ``.png``.
        page: the ``.html``.

    Returns:
        Whether the picture was written.
    """
    write_text(page, draw(results).to_html(include_plotlyjs=True, full_html=True, config={"displayModeBar": False}))
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        return False
    with tempfile.TemporaryDirectory() as profile:
        shot = Path(profile) / "figure.png"
        try:
            subprocess.run(
                [
                    browser,
                    *BROWSER_OPTIONS,
                    f"--user-data-dir={profile}",
                    f"--screenshot={shot}",
                    page.resolve().as_uri(),
                ],
                check=True,
                capture_output=True,
                timeout=SECONDS_FOR_THE_BROWSER,
            )
        except subprocess.SubprocessError as error:
            raise InputError(f"{browser} could not draw {page}: draw it by hand, or take it off the path") from error
        with Image.open(shot) as drawn:
            reduced = drawn.convert("RGB").quantize(COLOURS_OF_THE_PICTURE)
    stored = io.BytesIO()
    reduced.save(stored, format="PNG", optimize=True)
    temporary = picture.with_name(f".{picture.name}.partial")
    temporary.write_bytes(stored.getvalue())
    temporary.replace(picture)
    return True
