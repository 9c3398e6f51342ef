"""The command `deephash-pipeline`: a file for each command."""

from deephash_pipeline.cli.main import cli

__all__ = ["cli"]
