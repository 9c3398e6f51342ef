"""Beside the stages: the paper's tables and figures, out of what the runs of all benchmarks have left."""

from collections.abc import Callable
from typing import Any

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.paper_tables.nodes import (
    draw_map,
    draw_precision_recall,
    tabulate,
    write_all_methods,
    write_features,
    write_initialisations,
    write_unseen,
)

METRICS = "metrics_of_benchmarks"


def create_pipeline() -> Pipeline:
    """Lay out all tables, then write each with its page.

    ::

        files of all benchmarks, tables as they are -> tabulate -> paper_tables
        paper_tables -> paper_<name>_rows (CSV), paper_<name>_page (Markdown) and, if drawn, paper_<name>_figure
    """
    nodes: dict[str, tuple[Callable[..., Any], str]] = {
        "map_of_all_methods": (write_all_methods, METRICS),
        "three_initialisations": (write_initialisations, METRICS),
        "hand_crafted_against_cnn": (write_features, METRICS),
        "map_against_bits": (draw_map, METRICS),
        "precision_recall_at_32_bits": (draw_precision_recall, METRICS),
        "unseen_classes": (write_unseen, METRICS),
    }
    drawn = (draw_map, draw_precision_recall)
    return Pipeline(
        [
            Node(
                tabulate,
                inputs=[
                    METRICS,
                    "curves_of_benchmarks",
                    "hand_crafted_of_benchmarks",
                    "stored_paper_tables",
                ],
                outputs="paper_tables",
                name="tabulate",
            ),
            *(
                Node(
                    function,
                    inputs=["paper_tables", described_by],
                    outputs=[
                        f"paper_{name}_{kind}" for kind in ("rows", "page", *(["figure"] if function in drawn else []))
                    ],
                    name=name,
                )
                for name, (function, described_by) in nodes.items()
            ),
        ]
    )
