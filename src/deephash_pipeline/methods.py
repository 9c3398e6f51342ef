"""What a cell is: one method at one code length."""

from pydantic import BaseModel, ConfigDict


class Cell(BaseModel):
    """One method at one code length; the classifier baseline's code length is the number of classes, None here.

    >>> Cell(method="itq", code_length=48).namespace
    'itq.b48'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: str
    code_length: int | None

    @property
    def bits(self) -> int:
        """Code length of a cell that is on the grid."""
        if self.code_length is None:
            raise ValueError(f"{self.method} is not on the grid: its code length is the number of classes")
        return self.code_length

    @property
    def namespace(self) -> str:
        """Name of the cell everywhere: ``itq.b48``."""
        return f"{self.method}.b{self.code_length}" if self.code_length else f"{self.method}.bC"
