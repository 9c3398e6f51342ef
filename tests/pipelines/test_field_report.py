"""What the pipeline `field` reports has a place for every method."""

import itertools

from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE, METHOD_GROUPS, METHODS, cells
from deephash_pipeline.pipelines.reporting.nodes import draw_map_by_code_length, tabulate_metrics

METRICS = [
    {
        "method": cell.method,
        "code_length": cell.code_length or 10,
        "chance_level": 0.1,
        **{f"mean_average_precision{bound}": 0.5 for bound in ("", "_pessimistic", "_optimistic")},
    }
    for cell in cells()
]


def test_every_method_but_the_classifier_is_in_one_group():
    grouped = list(itertools.chain(*METHOD_GROUPS.values()))
    assert sorted(grouped) == sorted(set(METHODS) - {CLASSIFIER_BASELINE.method})


def test_the_table_and_the_figure_show_every_method_once():
    experiment = Experiment(benchmark="digits", network="lenet", seed=1)
    table, metrics, *_ = tabulate_metrics(METRICS, {}, {}, experiment, METHODS)
    names = {METHODS[method] for method in METHODS if method != CLASSIFIER_BASELINE.method}
    assert names <= set(table["method"])
    assert len(metrics) == len(METRICS)
    drawn = [trace.name for trace in draw_map_by_code_length(METRICS, METHODS).data]
    assert [name for name in drawn if name in names] == [METHODS[m] for m in itertools.chain(*METHOD_GROUPS.values())]
