"""Where the project is that a command works in, and where a new one is made from."""

from pathlib import Path

from deephash_pipeline.common.errors import InputError

PACKAGE = Path(__file__).resolve().parents[1]


def project_root() -> Path:
    """Find the folder with ``conf/base``, here or above.

    Raises:
        InputError: there is none.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "conf" / "base").is_dir():
            return folder
    raise InputError(f"{here} is in no project: make one by `deephash-pipeline new DIRECTORY` and work there")


def template() -> Path:
    """Return the folder with the ``conf`` and ``.telemetry`` of new projects: in the package, or around its sources."""
    installed = PACKAGE / "template"
    return installed if installed.is_dir() else PACKAGE.parents[1]
