"""Scripts that start worker processes, each of which imports the script again."""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from deephash_pipeline.common.errors import InputError


def refuse_unguarded_script() -> None:
    """Refuse to start workers from lines of a script that each worker would run again, and start workers itself.

    Raises:
        InputError: the lines do not stand below ``if __name__ == "__main__":``.

    Example:
        >>> refuse_unguarded_script()
    """
    script = vars(sys.modules["__main__"])
    path, spec = script.get("__file__"), script.get("__spec__")
    # That of a package (``python -m``) is not imported again.
    if path is None or (spec is not None and spec.name.endswith(".__main__")) or not Path(path).is_file():
        return
    frame = inspect.currentframe()
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals is script):
        frame = frame.f_back
    if frame is not None and frame.f_lineno < min(_guards(Path(path)), default=sys.maxsize):
        raise InputError(
            f'{path}, line {frame.f_lineno}, starts processes that import this script: put it below `if __name__ == "'
            '__main__":`'
        )


def _guards(path: Path) -> Iterator[int]:
    """Yield the lines that ask whether a file is run or imported."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        # No Python, such as a program that was packed.
        yield 0
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and any(
            isinstance(it, ast.Name) and it.id == "__name__" for it in ast.walk(node.test)
        ):
            yield node.lineno
