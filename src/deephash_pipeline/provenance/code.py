"""Which code made a file or a run."""

import platform
from importlib.metadata import version
from pathlib import Path


def code_version(folder: Path) -> dict[str, str]:
    """Name the version of the package and, inside a repository, its commit and whether files differ from it.

    Args:
        folder: inside the repository, if there is one.

    Returns:
        ``version``, and ``git_commit`` and ``git_dirty`` (``true`` or ``false``) where they are known.
    """
    found = {"version": version("deephash-pipeline")}
    try:
        import git  # noqa: PLC0415 - raises ImportError where there is no git executable
    except ImportError:
        return found
    try:
        with git.Repo(folder, search_parent_directories=True) as repository:
            commit, dirty = repository.head.commit.hexsha, repository.is_dirty(untracked_files=True)
    except (git.GitError, ValueError):
        return found
    return found | {"git_commit": commit, "git_dirty": str(dirty).lower()}


def platform_version() -> dict[str, str]:
    """Name the versions of Python and PyTorch, by which results may differ in their last digits."""
    return {"python": platform.python_version(), "pytorch": version("torch")}
