import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.pipelines.grid import METHOD_GROUPS, METHODS
from deephash_pipeline.reports.figures import figure_map_by_code_length, figure_precision_recall
from deephash_pipeline.reports.panels import method_styles
from deephash_pipeline.reports.tables import map_table


def panel_titles(figure):
    return [annotation.text for annotation in figure.layout.annotations]


def test_the_map_figure_has_a_panel_for_each_group_and_the_classifier_baseline_in_each(metrics, display_names, groups):
    figure = figure_map_by_code_length(metrics, display_names, groups)
    assert panel_titles(figure) == ["Shallow", "DeepHash"]
    assert sorted(((trace.name, trace.yaxis) for trace in figure.data), key=lambda drawn: drawn[1]) == [
        ("LSH", "y"),
        ("ITQ", "y"),
        ("1-of-C code (10 bits)", "y"),
        ("DeepHash (fine-tuning)", "y2"),
        ("1-of-C code (10 bits)", "y2"),
    ]
    itq = figure.data[1]
    assert list(itq.x) == [12, 32]
    assert list(itq.y) == [0.30, 0.28]
    assert "chance (all codes equal) is 0.1002" in figure.layout.meta["how_to_read"]
    # An axis starts where its data does, each panel has a legend, and the baseline stretches no axis.
    assert [(axis.range, axis.rangemode) for axis in figure.select_yaxes()] == [(None, None)] * 2
    assert {(trace.yaxis, trace.legend) for trace in figure.data} == {("y", "legend"), ("y2", "legend2")}
    assert figure.layout.legend.x < figure.layout.legend2.x
    assert list(figure.layout.xaxis.tickvals) == [12, 32]
    assert {x for trace in figure.data for x in trace.x} == {12, 32}


def test_the_map_figure_has_the_metric_of_the_protocol_which_is_that_of_the_table(metrics, display_names, groups):
    cells = [{**cell, "protocol": "imagenet100"} for cell in metrics]
    figure = figure_map_by_code_length(cells, display_names, groups)
    assert list(figure.data[1].y) == map_table(cells, display_names).loc["ITQ"].tolist() == [0.30 + 0.1, 0.28 + 0.1]
    assert figure.layout.yaxis.title.text == "Mean average precision of the first 1,000"
    assert "chance" not in figure.layout.meta["how_to_read"] and "ties" not in figure.data[1].hovertemplate


def test_methods_of_no_group_are_drawn_in_a_panel_of_their_own(metrics, display_names):
    groups = {"Shallow": ["lsh", "itq"]}
    assert panel_titles(figure_map_by_code_length(metrics, display_names, groups)) == ["Shallow", "Other methods"]
    assert panel_titles(figure_map_by_code_length(metrics, display_names, {})) == ["All methods"]


def test_one_code_length_is_a_point_for_each_method(metrics, display_names, groups):
    cells = [cell for cell in metrics if cell["code_length"] in (12, 10)]
    figure = figure_map_by_code_length(cells, display_names, groups)
    points = {trace.name: trace.y.tolist() for trace in figure.data if not trace.name.startswith("1-of-C")}
    assert points == {"LSH": [0.15], "ITQ": [0.30], "DeepHash (fine-tuning)": [0.70]}
    assert list(figure.layout.xaxis.tickvals) == [12]


def test_precision_recall_curves_are_those_by_radius_at_the_code_length_asked_for(curves, display_names, groups):
    figure = figure_precision_recall(curves.sample(frac=1, random_state=0), display_names, groups, code_length=12)
    assert [trace.name for trace in figure.data] == ["LSH", "ITQ", "DeepHash (fine-tuning)"]
    expected = curves.query("method == 'itq' and code_length == 12 and kind == 'radius'")
    np.testing.assert_array_equal(figure.data[1].x, expected["recall"])
    np.testing.assert_array_equal(figure.data[1].y, expected["precision"])


def test_radii_that_return_nothing_have_no_point(curves, display_names, groups):
    curves.loc[curves["point"] < 3, "precision"] = np.nan
    figure = figure_precision_recall(curves, display_names, groups)
    assert all(min(trace.customdata) == 3 for trace in figure.data)


def test_a_code_length_without_curves_is_refused_with_those_there_are(curves, display_names, groups):
    with pytest.raises(InputError, match="at 48 bits: choose one of 10, 12, 32"):
        figure_precision_recall(curves, display_names, groups, code_length=48)


def test_methods_keep_their_colour_in_all_figures(metrics, curves, display_names, groups):
    figures = [
        figure_map_by_code_length(metrics, display_names, groups),
        figure_precision_recall(curves, display_names, groups, code_length=12),
    ]
    for method in ("itq", "deephash"):
        drawn = [trace for figure in figures for trace in figure.data if trace.name.startswith(display_names[method])]
        assert {trace.line.color for trace in drawn} == {method_styles(display_names)[method].colour}


def test_a_methods_style_does_not_depend_on_which_methods_are_drawn(metrics, display_names, groups):
    def styles(cells):
        figure = figure_map_by_code_length(cells, display_names, groups)
        return {trace.name: (trace.line, trace.marker) for trace in figure.data}

    every = styles(metrics)
    fewer = styles([cell for cell in metrics if cell["method"] != "lsh"])
    assert fewer == {name: style for name, style in every.items() if name != "LSH"}


def test_no_two_methods_look_alike_and_in_a_panel_line_and_colour_are_enough():
    looks = method_styles(METHODS)
    assert len(set(looks.values())) == len(METHODS) > 24
    for methods in METHOD_GROUPS.values():
        assert len({(looks[method].colour, looks[method].dash) for method in methods}) == len(methods)


def relative_luminance(colour):
    channels = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


@pytest.mark.parametrize("page", ["#ffffff", "#14171b"])
def test_every_colour_stands_out_from_the_light_and_the_dark_page(page):
    for style in method_styles({f"method_{number}": "" for number in range(6)}).values():
        darker, lighter = sorted([relative_luminance(style.colour), relative_luminance(page)])
        assert (lighter + 0.05) / (darker + 0.05) > 2.7
