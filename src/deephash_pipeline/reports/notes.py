"""Notes beside every table: cells near chance, and DeepHash below its own pre-training, each with what helps."""

from collections.abc import Iterable, Iterator, Mapping

from deephash_pipeline.reports.cells import CellMetrics, cell_metric
from deephash_pipeline.retrieval import is_near_chance

MOST_CELLS_NAMED = 5
TOLERATED_LOSS = 0.01
"""Of mAP: by so much less than pre-training fine-tuning may find without a note."""
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


def notes_on_cells(cells: Iterable[CellMetrics], names: Mapping[str, str]) -> list[str]:
    """Name the cells near chance, and what helps; and those of DeepHash that fine-tuning made worse, by validation mAP.

    Args:
        cells: metrics of cells.
        names: method -> name.

    Example:
        >>> cell = {"method": "itq", "code_length": 48, "mean_average_precision": 0.18, "chance_level": 0.176}
        >>> notes_on_cells([cell], {"itq": "ITQ"})[0][:57]
        'Hardly better than codes that are all equal: ITQ (48 bits'
    """
    cells = list(cells)
    near = [cell for cell in cells if learned_little(cell)]
    named = [f"{names.get(cell['method'], cell['method'])} ({cell['code_length']} bits)" for cell in near]
    more = [f"{len(named) - MOST_CELLS_NAMED} more"] if len(named) > MOST_CELLS_NAMED else []
    shown = ", ".join([*named[:MOST_CELLS_NAMED], *more])
    little = [f"Hardly better than codes that are all equal: {shown}. What helps: {CHANCE_REMEDY}."] if named else []
    return [*little, *_notes_of_fine_tuning(cells)]


def _notes_of_fine_tuning(cells: Iterable[CellMetrics]) -> Iterator[str]:
    name = "validation_mean_average_precision"
    scores = {(cell["method"], cell["code_length"]): cell_metric(cell, name) for cell in cells if cell.get(name)}
    for (method, bits), score in scores.items():
        before = scores.get(("deephash_pretrained", bits), 0.0)
        if method == "deephash" and score < before - TOLERATED_LOSS:
            yield (
                f"Fine-tuning made DeepHash worse at {bits} bits: on the validation images its mAP is {score:.3f}, "
                f"that of pre-training {before:.3f}. Take `deephash_pretrained.b{bits}`, or lower "
                "`fine_tuning.deephash.training.learning_rate`."
            )
