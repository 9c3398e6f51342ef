"""Files of a package that are no code, and decide what code makes: templates, tables of numbers."""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

FILE_NAME = re.compile(r"(?:[\w.-]+/)*([\w-][\w.-]*\.\w+)")
CODE_SUFFIXES = {".py", ".pyi", ".pyc", ".so"}


def named_files(code: ast.AST, folder: Path) -> list[Path]:
    """Find the files that a piece of code names, and those that these name.

    Args:
        code: syntax tree; names are its texts, such as ``"page.html.j2"``.
        folder: folder of the module. Files lie in it or below.
    """
    texts = {node.value for node in ast.walk(code) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = [match[1] for match in map(FILE_NAME.fullmatch, texts) if match]
    found: list[Path] = []
    if names:
        known, waiting = _files_below(folder), names
        while waiting:
            new = [file for file in known.get(waiting.pop(), ()) if file not in found]
            found += new
            waiting += (name for file in new for name in _names_in(file))
    return sorted(found)


@functools.cache
def _files_below(folder: Path) -> dict[str, list[Path]]:
    found = defaultdict(list)
    for path in folder.rglob("*.*"):
        if path.suffix not in CODE_SUFFIXES and path.is_file() and "__pycache__" not in path.parts:
            found[path.name].append(path)
    return dict(found)


def _names_in(file: Path) -> Iterator[str]:
    """Yield what is quoted in a template, and may be the name of another: ``{% include "style.css" %}``."""
    if file.suffix == ".j2":
        for quoted in re.findall(r"[\"']([^\"'\n]+)[\"']", file.read_text(encoding="utf-8")):
            if match := FILE_NAME.fullmatch(quoted):
                yield match[1]
