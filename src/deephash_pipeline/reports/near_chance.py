"""Cells that find hardly more than codes that are all equal: they are named beside every table, with what helps."""

from collections.abc import Iterable, Mapping

from deephash_pipeline.reports.cells import CellMetrics, cell_metric
from deephash_pipeline.retrieval import is_near_chance

MOST_CELLS_NAMED = 5
CHANCE_REMEDY = (
    "give more images of each class, check that the labels are those of the images, or set `network: small_resnet` and "
    "`cnn_pretraining.trials: true` as conf/images has them"
)


def learned_little(cell: CellMetrics) -> bool:
    """Tell whether a cell's mAP is near that of equal codes; False where one of them was not measured.

    Example:
        >>> learned_little({"mean_average_precision": 0.18, "chance_level": 0.176}), learned_little({})
        (True, False)
    """
    known = {"mean_average_precision", "chance_level"} <= cell.keys()
    return known and is_near_chance(cell_metric(cell, "mean_average_precision"), cell_metric(cell, "chance_level"))


def notes_of_little(cells: Iterable[CellMetrics], names: Mapping[str, str]) -> list[str]:
    """Name the cells near chance in a sentence, and what helps; an empty list where there are none.

    Args:
        cells: metrics of cells.
        names: method -> name.

    Example:
        >>> cell = {"method": "itq", "code_length": 48, "mean_average_precision": 0.18, "chance_level": 0.176}
        >>> notes_of_little([cell], {"itq": "ITQ"})[0][:57]
        'Hardly better than codes that are all equal: ITQ (48 bits'
    """
    near = [cell for cell in cells if learned_little(cell)]
    named = [f"{names.get(cell['method'], cell['method'])} ({cell['code_length']} bits)" for cell in near]
    more = [f"{len(named) - MOST_CELLS_NAMED} more"] if len(named) > MOST_CELLS_NAMED else []
    shown = ", ".join([*named[:MOST_CELLS_NAMED], *more])
    return [f"Hardly better than codes that are all equal: {shown}. What helps: {CHANCE_REMEDY}."] if named else []
