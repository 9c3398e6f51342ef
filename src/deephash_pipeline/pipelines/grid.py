"""The grid: which methods, at which code lengths. A cell is one method at one code length.

`METHODS` is the table of all methods, which the pipeline ``field`` runs; those of the paper's tables, `PAPER_METHODS`,
are what ``full`` runs. A new hash function or loss is on the grid of ``field`` by its line in its own registry.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from deephash_pipeline.common.cell import SHOWN_CODE_LENGTH, Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.pipelines.method_facts import HASH_FUNCTION_FACTS, LOSS_FACTS

CODE_LENGTHS = (12, 16, 24, 32, 48)
LONG_CODE_LENGTHS = (64, 128)
ALL_CODE_LENGTHS = (*CODE_LENGTHS, *LONG_CODE_LENGTHS)
"""Those of the pipeline ``long_codes``: photographs of many classes need them."""
BASELINES = tuple(HASH_FUNCTION_FACTS)
PRE_TRAINING = "deephash_pretrained"
RANDOM_START = "deephash_random_start"
FINE_TUNINGS = ("deephash", "deephash_faithful")
DEEP_RIVALS = tuple(loss for loss in LOSS_FACTS if loss != "exponentiated")
"""Losses of others on the same network, from the same start."""
if shared := set(BASELINES) & {*DEEP_RIVALS, *FINE_TUNINGS}:
    raise InputError(f"`{min(shared)}` is a hash function and a loss: give one of them another name in its registry")

OWN_TRUNK = (RANDOM_START, *FINE_TUNINGS, *DEEP_RIVALS)
"""Methods that train a trunk of their own."""
TUNED_METHODS = (*FINE_TUNINGS, *DEEP_RIVALS)
"""Methods whose parameters are searched, by equal budgets."""

COMPARED_METHODS = ("lsh", "itq", "bre", "mlh", "ksh", PRE_TRAINING)
COMPARED_CODE_LENGTHS = (16, 32)
"""Rows and columns of the paper's table of hand-crafted against network features."""

PAPER_BASELINES = ("lsh", "pcah", "itq", "sh", "ldah", "bre", "mlh", "ksh", "liong_sdh")
PAPER_RIVALS = ("cnnh", "cnnh_plus", "dnnh", "dpsh", "hashnet", "greedy_hash", "csq")
PAPER_METHODS = (*PAPER_BASELINES, *PAPER_RIVALS, RANDOM_START, PRE_TRAINING, *FINE_TUNINGS, "one_of_c")
"""Methods of the paper's tables, in their order. What joins later is on the grid of ``field`` alone."""

_NAMES = {
    **{method: hash_function.display_name for method, hash_function in HASH_FUNCTION_FACTS.items()},
    **{method: LOSS_FACTS[method].display_name for method in DEEP_RIVALS},
    RANDOM_START: "DeepHash (random initialisation)",
    PRE_TRAINING: "DeepHash (pre-training)",
    "deephash": LOSS_FACTS["exponentiated"].display_name,
    "deephash_faithful": "DeepHash (fine-tuning, faithful)",
    "one_of_c": "1-of-C code of the classifier",
}
METHODS = {method: _NAMES[method] for method in (*PAPER_METHODS, *_NAMES)}
"""Method -> name in tables and figures, in their order: the paper's first, so that no other changes their colours."""

NAMES_OF_PAPER, NAMES_OF_ALL = "params:method_names.paper", "params:method_names.all"
"""Parameters of the nodes that show names: those of the paper's tables, and `METHODS`."""

WITHOUT_LABELS = tuple(method for method, hash_function in HASH_FUNCTION_FACTS.items() if not hash_function.supervised)
"""Methods that learn from features alone."""

METHOD_GROUPS = {
    "Shallow methods on z": PAPER_BASELINES,
    "Deep rivals": PAPER_RIVALS,
    "DeepHash": (RANDOM_START, PRE_TRAINING, *FINE_TUNINGS),
    "Other shallow methods": tuple(method for method in BASELINES if method not in PAPER_BASELINES),
    "Other deep rivals": tuple(method for method in DEEP_RIVALS if method not in PAPER_RIVALS),
}
"""Heading -> methods, as the paper groups them: a panel of a figure each."""

CLASSIFIER_BASELINE = Cell(method="one_of_c", code_length=None)
GALLERY = Cell(method="deephash", code_length=SHOWN_CODE_LENGTH)
"""The cell whose neighbours the report shows."""
INDEXED = Cell(method="deephash", code_length=48)
"""The cell whose index the pipeline ``indexing`` makes where none is named, and ``make search`` serves."""


def cells(*methods: str, code_lengths: Sequence[int] = CODE_LENGTHS) -> Iterator[Cell]:
    """Yield the cells of some methods, or of all; the classifier baseline has one, whatever the code lengths."""
    for method in methods or METHODS:
        if method == CLASSIFIER_BASELINE.method:
            yield CLASSIFIER_BASELINE
            continue
        for code_length in code_lengths:
            yield Cell(method=method, code_length=code_length)


def compared_cells() -> Iterator[Cell]:
    """Yield the cells of the grid that are compared with the same methods on hand-crafted features."""
    return cells(*COMPARED_METHODS, code_lengths=COMPARED_CODE_LENGTHS)


def on_descriptor(cell: Cell) -> Cell:
    """Give the cell with the same method on hand-crafted features, ``descriptor_itq.b16``; it is not on the grid."""
    return Cell(method=f"descriptor_{cell.method}", code_length=cell.code_length)


def grid_parameters(replicate: int = 1) -> dict[str, Any]:
    """Give what nodes are told of the grid as parameters, so that the configuration repeats nothing.

    Every cell, see `Cell.parameter`, with the number of the seed of the run; and the names of methods, so that a table
    that shows them is made anew if one changes.
    """
    every_cell = (*cells(code_lengths=ALL_CODE_LENGTHS), *map(on_descriptor, compared_cells()))
    of_seed = {cell.parameter: cell.model_copy(update={"replicate": replicate}) for cell in every_cell}
    names = {NAMES_OF_PAPER: {method: METHODS[method] for method in PAPER_METHODS}, NAMES_OF_ALL: METHODS}
    return {**{f"params:{name}": cell for name, cell in of_seed.items()}, **names}
