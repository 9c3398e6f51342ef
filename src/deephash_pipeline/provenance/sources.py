"""Which modules a function reaches, and digests of their sources: what changes if the code of a result has changed.

Modules are followed from import to import within the package, wherever in a module the import stands. Comments,
docstrings and empty lines do not count. A package's ``__init__`` counts where a name is imported from it, not for its
modules alone; what only reports (`WITHOUT_EFFECT`) does not count either.
"""

import ast
import functools
import inspect
import io
import tokenize
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from deephash_pipeline.provenance.digests import text_digest

WITHOUT_EFFECT = ("errors", "progress", "provenance")
"""Modules below the package that can change no result."""


def sources(function: Callable[..., Any]) -> dict[str, str]:
    """Digest the sources of all modules of its package that a function reaches.

    Returns:
        Module -> digest, sorted by module.

    Example:
        >>> from deephash_pipeline.randomness import derive_seed
        >>> sorted(sources(derive_seed))
        ['deephash_pipeline.randomness']
    """
    while isinstance(function, functools.partial):
        function = function.func
    module = inspect.unwrap(function).__module__
    return {name: _read(name).digest for name in sorted(_closure(module))}


class _Module(NamedTuple):
    imports: frozenset[str]
    digest: str


@functools.cache
def _closure(module: str) -> frozenset[str]:
    package = module.partition(".")[0]
    ignored = {f"{package}.{name}" for name in WITHOUT_EFFECT}
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in reached or name in ignored or _file(name) is None:
            continue
        reached.add(name)
        waiting += _read(name).imports
    return frozenset(reached)


@functools.cache
def _read(module: str) -> _Module:
    """Find the modules of the same package that a module names in its imports, and digest its code."""
    path = _file(module)
    assert path is not None, "only modules that were found are read"
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    imports: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= set(_named(node, module, path.name == "__init__.py"))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for line in _docstring(node):
                lines[line - 1] = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    package = module.partition(".")[0]
    return _Module(
        frozenset(name for name in imports if name.partition(".")[0] == package),
        text_digest("\n".join(line.rstrip() for line in lines if line.strip())),
    )


def _named(node: ast.Import | ast.ImportFrom, module: str, is_package: bool) -> Iterator[str]:
    """Yield the modules that an import names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        above = parts[: len(parts) - node.level + is_package]
        base = ".".join([*above, *([node.module] if node.module else [])])
    # A name imported from a package is a module of it, or something that its __init__ knows.
    for alias in node.names:
        yield f"{base}.{alias.name}" if _file(f"{base}.{alias.name}") is not None else base


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    """Lines of a docstring, unless code stands in one of them."""
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        alone = first.lineno > getattr(node, "lineno", 0) and first.col_offset == getattr(node, "col_offset", -4) + 4
        return range(first.lineno, (first.end_lineno or first.lineno) + 1) if alone else range(0)
    return range(0)


@functools.cache
def _file(module: str) -> Path | None:
    """Find the source of a module below the folder of its package; nothing is imported for it."""
    package, *parts = module.split(".")
    root = _root(package)
    if root is None:
        return None
    if root.suffix:
        return None if parts else root
    path = root.joinpath(*parts)
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


@functools.cache
def _root(package: str) -> Path | None:
    """Folder of a package, or file of a module that is none."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations else origin
