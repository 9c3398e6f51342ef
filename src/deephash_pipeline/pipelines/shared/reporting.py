"""What every page of a run's results is told."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field


class ReportingParameters(BaseModel):
    """What to show.

    Attributes:
        precision_recall_code_length: code length of the precision-recall figure; 32 in the paper.
        gallery_queries: rows of the gallery.
        gallery_neighbours: images retrieved for each of them.
        notes: paragraphs of the page, such as where the images come from.
        written: time of writing and seconds of the run until then, label to text; the run fills it in.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    precision_recall_code_length: int = 32
    gallery_queries: int = Field(default=8, ge=1)
    gallery_neighbours: int = Field(default=10, ge=1)
    notes: tuple[str, ...] = ()
    written: Mapping[str, str] = {}
