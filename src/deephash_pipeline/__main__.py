"""``python -m deephash_pipeline`` and the ``deephash-pipeline`` command: ``kedro run`` for the installed package."""

import sys
from pathlib import Path

from kedro.framework.project import configure_project


def main() -> None:
    """Run the pipelines from a folder with a ``conf``."""
    configure_project(Path(__file__).parent.name)
    from deephash_pipeline.cli import run  # noqa: PLC0415 - Kedro's commands want a configured project

    run(sys.argv[1:])


if __name__ == "__main__":
    main()
