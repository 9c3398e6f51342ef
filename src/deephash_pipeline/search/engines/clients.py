"""What goes wrong with another engine."""

from deephash_pipeline.common.errors import InputError


class EngineError(InputError):
    """Another engine does not answer, or not as it should."""
