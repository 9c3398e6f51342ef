"""What every page of a run's results is told."""

from collections.abc import Mapping

from deephash_pipeline.common.parameters import Parameters


class ReportingParameters(Parameters):
    """What to show.

    Attributes:
        notes: paragraphs of the page, such as where the images come from.
        written: time of writing and seconds of the run until then, label to text; the run fills it in.
    """

    notes: tuple[str, ...] = ()
    written: Mapping[str, str] = {}
