"""``python -m deephash_pipeline`` and the ``deephash-pipeline`` command: ``kedro run`` for the installed package."""

import sys
from pathlib import Path

from kedro.framework.project import configure_project


def main() -> None:
    """Run the pipelines from a folder with a ``conf``."""
    configure_project(Path(__file__).parent.name)
    from deephash_pipeline.cli import cli, run  # noqa: PLC0415 - Kedro's commands want a configured project

    given = sys.argv[1:]
    (cli if given and given[0] in cli.commands else run)(given)


if __name__ == "__main__":
    main()
