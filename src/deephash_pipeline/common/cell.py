"""Cells: one method at one code length with one of the seeds."""

from pydantic import BaseModel, ConfigDict, PositiveInt

SHOWN_CODE_LENGTH = 32
"""Code length of the gallery and of what shows the whole at a glance; the paper's for its curves."""


class Cell(BaseModel):
    """One method at one code length; the classifier baseline's code length is the number of classes, None here.

    Attributes:
        method: key of the method.
        code_length: bits.
        replicate: number of one of several trainings that differ in their seed alone; the first is what there is
            without any.

    >>> Cell(method="itq", code_length=48).namespace, Cell(method="itq", code_length=48, replicate=2).namespace
    ('itq.b48', 'itq.b48.r2')
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: str
    code_length: int | None
    replicate: PositiveInt = 1

    @property
    def bits(self) -> int:
        """Code length of a cell that is on the grid."""
        if self.code_length is None:
            raise ValueError(f"{self.method} is not on the grid: its code length is the number of classes")
        return self.code_length

    @property
    def namespace(self) -> str:
        """Name of the cell everywhere: ``itq.b48``, of a further replicate ``itq.b48.r2``."""
        cell = f"{self.method}.b{self.code_length or 'C'}"
        return cell if self.replicate == 1 else f"{cell}.{replicate_name(self.replicate)}"

    @property
    def parameter(self) -> str:
        """Name of the parameter that it is: ``cells.itq.b48``."""
        first = self.model_copy(update={"replicate": 1}).namespace
        return f"cells.{first}" if self.replicate == 1 else f"cells.{replicate_name(self.replicate)}.{first}"

    def of_method(self, method: str) -> "Cell":
        """Give the cell of another method, with the same code length and replicate."""
        return self.model_copy(update={"method": method})


def replicate_name(replicate: int) -> str:
    """Name a replicate: ``r2``.

    >>> replicate_name(2)
    'r2'
    """
    return f"r{replicate}"


def seed_of_replicate(seed: int, replicate: int) -> int:
    """Return the seed of a replicate: 42, 43 and 44 of the first three where that of the experiment is 42.

    Images are split by that of the experiment in all of them.

    >>> seed_of_replicate(42, replicate=3)
    44
    """
    return seed + replicate - 1
