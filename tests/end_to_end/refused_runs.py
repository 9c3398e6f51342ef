"""Runs in the process of the tests, and those to be refused: what they say, and that they write nothing."""

from pathlib import Path

from click.testing import CliRunner

from deephash_pipeline.cli.main import cli
from deephash_pipeline.provenance.lock import LOCK_FILE


def stored(project):
    """All files of a project that a run could take for results, and when they were written; not the lock of runs."""
    files = (path for path in (project / "data").rglob("*") if path.is_file() and path.name != LOCK_FILE)
    return {path: path.stat().st_mtime_ns for path in files}


def the_error(output):
    errors = [line for line in output.splitlines() if line.startswith("Error:")]
    assert len(errors) == 1, output
    assert "Traceback" not in output
    assert "pydantic" not in errors[0]
    return errors[0]


def run(*arguments):
    """Run the project's `kedro run` without workers, which take seconds to start."""
    return CliRunner().invoke(cli, ("run", *arguments, "--runner=SequentialRunner"))


def finished(*arguments):
    """Run it, and expect it to come to its end."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments):
    """Run the project's `kedro run`, expect it to refuse, and return the line that says why."""
    before = stored(Path.cwd())
    result = run(*arguments)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert stored(Path.cwd()) == before
    return the_error(result.output)
