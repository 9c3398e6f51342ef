"""Private names of other packages in the code of this one, found in its syntax trees and its classes.

Counted are lines that import a name with a leading underscore from elsewhere, that read or call one, that override one
of a class of another package, and that assign to what belongs to another package.
"""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import deephash_pipeline

PACKAGE = deephash_pipeline.__name__
ROOT = Path(deephash_pipeline.__file__).parent
DOCUMENTED = {"_asdict", "_exit", "_fields", "_make", "_replace", "_value_"}
"""Names of the standard library that its documentation tells everybody to use."""
EXTENDED = {"_exists"}
"""Names that Kedro's documentation tells authors of datasets to override."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in {*DOCUMENTED, "_"}


@cache
def trees() -> dict[str, ast.Module]:
    """Give the syntax tree of each module, by its path below the package."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(ROOT.rglob("*.py"))
    }


@cache
def own_names() -> frozenset[str]:
    """Name all that this package defines with a leading underscore: functions, classes, attributes and variables."""
    found = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    found.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self")):
                    found.add(name)
    return frozenset(filter(is_private, found))


def private_lines() -> list[str]:
    """Give ``<module>:<line> <name>`` of every line with such a name, each line once."""
    found: dict[tuple[str, int], str] = {}
    for module, tree in trees().items():
        for line, name in (*_imported(tree), *_reached(tree), *_assigned(tree), *_of_bases(module, tree)):
            found.setdefault((module, line), name)
    return [f"{module}:{line} {name}" for (module, line), name in sorted(found.items())]


def _imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(PACKAGE):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        else:
            continue
        yield from ((node.lineno, name) for name in names if is_private(name))


def _reached(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield attributes that nothing in this package defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own_names():
            yield node.lineno, node.attr


def _assigned(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield attributes that are set on what was imported from another package, and classes that are exchanged."""
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not _is_own(node))
        for alias in node.names
    }
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute):
                holder = target.value
                if is_private(target.attr) and not (isinstance(holder, ast.Name) and holder.id in ("self", "cls")):
                    yield from [(node.lineno, target.attr)] * (target.attr not in own_names())
                while isinstance(holder, ast.Attribute | ast.Subscript):
                    holder = holder.value
                if target.attr == "__class__" or (isinstance(holder, ast.Name) and holder.id in imported):
                    yield node.lineno, target.attr


def _is_own(node: ast.ImportFrom) -> bool:
    return bool(node.level) or (node.module or "").startswith(PACKAGE)


def _of_bases(module: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield what classes override of classes of other packages, or reach in them through ``self`` and ``super()``.

    What such a class leaves abstract is there to be overridden.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        theirs = _names_of_bases(module, node.name)
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef) and inner.name in theirs:
                yield inner.lineno, inner.name
            elif isinstance(inner, ast.Attribute) and inner.attr in theirs and _is_self(inner.value):
                yield inner.lineno, inner.attr


def _is_self(value: ast.expr) -> bool:
    match value:
        case ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super")):
            return True
    return False


@cache
def _names_of_bases(module: str, name: str) -> frozenset[str]:
    """Give the private names, none of them abstract, that the bases of a class in other packages define."""
    path = ".".join([PACKAGE, *Path(module).with_suffix("").parts]).removesuffix(".__init__")
    found: Any = getattr(import_module(path), name, None)
    if not inspect.isclass(found):
        return frozenset()
    theirs = [base for base in found.__mro__ if not base.__module__.startswith(PACKAGE)]
    abstract = {name for base in theirs for name in getattr(base, "__abstractmethods__", ())}
    names = {name for base in theirs for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return frozenset(filter(is_private, names)) - abstract - EXTENDED
