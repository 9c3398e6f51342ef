"""Beside the stages: the paper's tables and figures, out of what the runs of all benchmarks have left."""

from collections.abc import Callable
from typing import Any

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.paper_tables.nodes import (
    draw_map,
    draw_precision_recall,
    tabulate_all_methods,
    tabulate_features,
    tabulate_initialisations,
    tabulate_unseen,
)

METRICS = "metrics_of_benchmarks"


def create_pipeline() -> Pipeline:
    """Files of all benchmarks -> paper_<name>_rows (CSV), paper_<name>_page (Markdown) and, if drawn, its figure."""
    nodes: dict[str, tuple[Callable[..., Any], list[str]]] = {
        "map_of_all_methods": (tabulate_all_methods, [METRICS]),
        "three_initialisations": (tabulate_initialisations, [METRICS]),
        "hand_crafted_against_cnn": (tabulate_features, [METRICS, "hand_crafted_of_benchmarks"]),
        "map_against_bits": (draw_map, [METRICS]),
        "precision_recall_at_32_bits": (draw_precision_recall, [METRICS, "curves_of_benchmarks"]),
        "unseen_classes": (tabulate_unseen, ["held_out_of_benchmarks"]),
    }
    drawn = (draw_map, draw_precision_recall)
    return Pipeline(
        [
            Node(
                function,
                inputs=inputs,
                outputs=[
                    f"paper_{name}_{kind}" for kind in ("rows", "page", *(["figure"] if function in drawn else []))
                ],
                name=name,
            )
            for name, (function, inputs) in nodes.items()
        ]
    )
