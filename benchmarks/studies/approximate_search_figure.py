"""The figure of the document on approximate search: `python -m benchmarks.studies.approximate_search_figure`."""

import io
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from benchmarks.documents import PROJECT, Results
from benchmarks.studies.approximate_search import APPROXIMATE_SEARCH, codes_name
from benchmarks.studies.search_indexes import FLAT, FLAT_MERGED, FLAT_UNPADDED, HNSW, HNSW_MERGED, IVF, MULTI_HASH
from deephash_pipeline.reports.panels import REFERENCE_COLOUR, method_styles

FAMILIES = (FLAT, IVF, MULTI_HASH, HNSW, HNSW_MERGED, FLAT_MERGED)
COLOURS = {family: style.colour for family, style in method_styles(dict.fromkeys(FAMILIES, "")).items()}
COLOURS[FLAT_UNPADDED] = REFERENCE_COLOUR
# Indexes of one kind that are built with other parameters share a colour and differ in marker and line.
STYLES = ("o-", "s--", "D:")
# Share of the nearest that is missed, where the axis has its labels, and where it is drawn if none is.
MISSED, DRAWN_AS_NONE = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003), 0.00005


def draw(results: Results, k: str = "10") -> Figure:
    """Draw recall@k against queries per second, a panel for each database, models below each other."""
    databases = results["databases"]
    models = list(dict.fromkeys(database["codes"] for database in databases))
    sizes = sorted({database["items"] for database in databases})
    # Figure, not pyplot's subplots: nothing asks for a screen, and nothing is left to close.
    figure = Figure(figsize=(11, 9), layout="constrained")
    panels = figure.subplots(len(models), len(sizes), sharex=True, sharey=True, squeeze=False)
    for database in databases:
        panel = panels[models.index(database["codes"])][sizes.index(database["items"])]
        panel.set(title=f"{codes_name(database['codes'])}, {database['items']:,} codes", xscale="log", yscale="log")
        curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for entry in database["indexes"]:
            built = "".join(f", {name} {value}" for name, value in entry["build"].items())
            measured = entry["neighbours"][k]
            point = (1 / measured["cpu_seconds"], max(1 - measured["recall"], DRAWN_AS_NONE))
            curves.setdefault((entry["family"], built), []).append(point)
        families = [family for family, _ in curves]
        for rank, ((family, built), points) in enumerate(curves.items()):
            style = STYLES[families[:rank].count(family) % len(STYLES)]
            panel.plot(*zip(*points, strict=True), style, color=COLOURS[family], label=f"{family}{built}", markersize=5)
        panel.axvline(curves[FLAT, ""][0][0], color=REFERENCE_COLOUR, linestyle=":", linewidth=1)
        panel.grid(color="#e4e7eb")
    panel.invert_yaxis()
    # Most settings find nearly all, so the axis is that of what is missed, labelled with what is found.
    panel.set_yticks([*MISSED, DRAWN_AS_NONE], [*(f"{1 - share:g}" for share in MISSED), "1"])
    panel.set_yticks([], minor=True)
    figure.suptitle(f"Recall@{k} against queries per second on one core (dotted: exact search)")
    plt.setp(panels[-1], xlabel="Queries per second")
    plt.setp(panels[:, 0], ylabel=f"Recall@{k}")
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def save(picture: Path = PROJECT / "docs" / "images" / "approximate-search.png") -> None:
    """Draw the stored results into a file."""
    drawn = io.BytesIO()
    draw(APPROXIMATE_SEARCH.read()).savefig(drawn, dpi=100)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(128).save(picture, optimize=True)


if __name__ == "__main__":
    save()
