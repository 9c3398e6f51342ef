"""Which code a function reaches, and digests of it: what changes if the code of a result has changed.

Definitions are followed from name to name within the package: those that a function names, those that these name, and
so on, through whatever ``__init__`` hands a name on, and what numba's ``overload`` puts in the place of a function. Of
files that are no code, such as templates, the content counts where their names stand. Of a table of names
(`common.registry.Registry`) the entries count that the parameters name. Not what has no effect: comments, docstrings,
annotations, what is only shown (`code_text.SHOWN_ATTRIBUTES`), and modules that only record (`WITHOUT_EFFECT`).
"""

import ast
import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any, NamedTuple

from deephash_pipeline.provenance.code_text import is_table, text_of
from deephash_pipeline.provenance.data_files import named_files
from deephash_pipeline.provenance.digests import content_digest, text_digest

WITHOUT_EFFECT = (
    "common.errors",
    "common.extras",
    "common.machine_code",
    "common.progress",
    "common.registry",
    "project.datasets.atomic_file",
    "provenance",
)
"""Modules below the package that can change no result."""

Place = tuple[str, str | None]
"""A module, and a name in it; None for all of them."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def sources(functions: Collection[Callable[..., Any]], keys: Collection[str] = ()) -> dict[str, str]:
    """Digest all code of their package that functions reach.

    Args:
        functions: functions, methods and classes.
        keys: names of entries of tables that are used besides those that the code itself names.

    Returns:
        Module -> digest of the definitions in it that are reached, sorted by module.

    Example:
        >>> from deephash_pipeline.common.randomness import derive_seed
        >>> sorted(sources([derive_seed]))
        ['deephash_pipeline.common.randomness']
    """
    reached, entries = frozenset(map(_place_of, functions)), frozenset[Place]()
    while True:
        closure = _closure(reached | entries)
        tables = [table_entries(*place) for place in closure]
        chosen = frozenset(table[key] for table in tables for key in keys if key in table)
        if chosen <= entries:
            return dict(_digests(closure))
        entries |= chosen


class _Module(NamedTuple):
    """The statements of a module that make each name, what it imports: name -> modules, name in each; its folder."""

    statements: dict[str, list[ast.stmt]]
    imports: dict[str, list[Place]]
    folder: Path


def _place_of(function: Callable[..., Any]) -> Place:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    return function.__module__, function.__qualname__.partition(".")[0]


@functools.cache
def _closure(beginning: frozenset[Place]) -> frozenset[Place]:
    reached, waiting = set[Place](), list(beginning)
    while waiting:
        place = waiting.pop()
        if place not in reached and _counts(place[0]):
            reached.add(place)
            waiting += _definition(*place)[1]
    return frozenset(reached)


@functools.cache
def _digests(closure: frozenset[Place]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for module, name in sorted(closure, key=lambda place: (place[0], place[1] or "")):
        texts.setdefault(module, []).append(f"{name}: {_definition(module, name)[0]}")
    return {module: text_digest("\n".join(of_module)) for module, of_module in texts.items()}


def _counts(module: str) -> bool:
    below = f"{module.partition('.')[2]}."
    return not below.startswith(tuple(f"{name}." for name in WITHOUT_EFFECT)) and _file(module) is not None


@functools.cache
def _definition(module: str, name: str | None) -> tuple[str, frozenset[Place]]:
    """Give the text of the code that makes a name, and the names that it uses."""
    statements, imports, _ = read_module(module)
    if name is None:
        handed_on = (_imported(module, each, []) for each in imports)
        return "", frozenset((module, each) for each in statements).union(*handed_on)
    text, names = [], set[Place]()
    # What stands in a module without making a name acts on whatever is used of it.
    for statement in [*statements.get(name, ()), *statements.get("", ())]:
        text.append(text_of(statement))
        names |= set(_names(statement, module))
        text += (f"{file.name}: {content_digest(file)}" for file in named_files(statement, read_module(module).folder))
    return "\n".join(text), frozenset(names)


@functools.cache
def table_entries(module: str, name: str | None) -> dict[str, Place]:
    """Give the entries of a table, and where they are; none of what is no table."""
    for statement in read_module(module).statements.get(name or "", ()):
        call = getattr(statement, "value", None)
        if is_table(call):
            return {key: _entry(module, place) for key, place in ast.literal_eval(call.args[0]).items()}
    return {}


def _entry(module: str, place: str) -> Place:
    of_entry, _, name = resolve_name(place, _package(module)).partition(":")
    return next(iter(_found_in(of_entry, [name])), (of_entry, name))


@functools.cache
def read_module(module: str) -> _Module:
    """Parse a module that is there."""
    path = _file(module)
    assert path is not None, "only modules that were found are read"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports: dict[str, list[Place]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package = alias.name.partition(".")[0]
                imports[alias.asname or package].append((alias.name if alias.asname else package, None))
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), _package(module))
            for alias in node.names:
                for name in _all_names(base, module) if alias.name == "*" else [alias.name]:
                    imports[alias.asname or name].append((base, name))
    statements: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        if not _is_empty(statement):
            for name in _made_by(statement, set(statements)) or [""]:
                statements.setdefault(name, []).append(statement)
    return _Module(statements, dict(imports), path.parent)


def _all_names(module: str, importer: str) -> set[str]:
    """Name what ``from module import *`` brings, and more."""
    is_read = _are_one(module, importer) and _file(module) is not None
    return read_module(module).statements.keys() | read_module(module).imports.keys() if is_read else set()


def _is_empty(statement: ast.stmt) -> bool:
    """Say whether a statement of a module does nothing to its names but import some, or is for a script."""
    if isinstance(statement, ast.If):
        is_script = any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(statement.test))
        return is_script or all(map(_is_empty, [*statement.body, *statement.orelse]))
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass)


def _made_by(statement: ast.stmt, known: Collection[str]) -> list[str]:
    """Name what a statement of a module makes or changes.

    ``sizes[0] = 1`` changes sizes; ``@f.register``, and numba's ``@overload(f)``, change f. What changes a name of
    another module is given as "".
    """
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return [statement.name, *_changed_by(statement.decorator_list, known)]
    made = []
    for node in ast.walk(statement):
        if isinstance(node, FunctionNode | ast.ClassDef):
            made.append(node.name)
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            made += [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    return made


def _changed_by(decorators: list[ast.expr], known: Collection[str]) -> Iterator[str]:
    for decorator in decorators:
        chain = chain_of_names(getattr(decorator, "func", decorator))
        if len(chain) > 1 and chain[0] in known:
            yield chain[0]
        for given in filter(None, map(chain_of_names, getattr(decorator, "args", ()))):
            yield given[0] if given[0] in known else ""


def _names(node: ast.AST, module: str) -> Iterator[Place]:
    """Yield what a piece of code names, in annotations too: they say what a function is given."""
    if chain := chain_of_names(node):
        yield from resolve(module, chain)
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(_root_name(module)):
        # The name of a module, for `import_module`.
        yield from _found_in(node.value, [])
        return
    if isinstance(node, ast.ImportFrom):
        # A name that is imported here and made there, under a condition, is found as what is made.
        for made in {alias.asname or alias.name for alias in node.names} & read_module(module).statements.keys():
            yield from _imported(module, made, [])
        return
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and chain_of_names(node.value):
        tables = [table for table in resolve(module, chain_of_names(node.value)) if _counts(table[0])]
        yield from (
            entries[key] for table in tables if (key := str(node.slice.value)) in (entries := table_entries(*table))
        )
    for name, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield from _names(_unquoted(part) if name in ("annotation", "returns") else part, module)


def chain_of_names(node: ast.AST) -> list[str]:
    """Give the parts of a dotted name; nothing for other code."""
    if isinstance(node, ast.Name):
        return [node.id]
    above = chain_of_names(node.value) if isinstance(node, ast.Attribute) else []
    return [*above, node.attr] if above and isinstance(node, ast.Attribute) else []


def _unquoted(annotation: ast.AST) -> ast.AST:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def resolve(module: str, chain: list[str]) -> set[Place]:
    """Find where a dotted name that stands in a module may be made: nowhere outside the package, and if it is local."""
    head, *rest = chain
    if head in read_module(module).statements:
        return {(module, head)}
    return _imported(module, head, rest)


def _imported(module: str, head: str, rest: list[str]) -> set[Place]:
    origins = [place for place in read_module(module).imports.get(head, ()) if _are_one(place[0], module)]
    return set().union(*(_found_in(origin, rest if name is None else [name, *rest]) for origin, name in origins))


def _root_name(module: str) -> str:
    return f"{module.partition('.')[0]}."


def _are_one(module: str, other: str) -> bool:
    """Say whether modules are of one package."""
    return module.partition(".")[0] == other.partition(".")[0]


def _found_in(module: str, chain: list[str]) -> set[Place]:
    """Find where a name of a module is made, which others import from there; all of it if that cannot be said."""
    if _file(module) is None:
        return set()
    if not chain:
        return {(module, None)}
    head, *rest = chain
    is_below = _file(f"{module}.{head}") is not None
    if head in read_module(module).statements or (head in read_module(module).imports and not is_below):
        return resolve(module, chain)
    return _found_in(f"{module}.{head}", rest) if is_below else {(module, None)}


def _package(module: str) -> str:
    path = _file(module)
    return module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]


@functools.cache
def _file(module: str) -> Path | None:
    """Find the source of a module below the folder of its package; nothing is imported for it."""
    package, *parts = module.split(".")
    root = _root(package)
    if root is None:
        return None
    path = root.joinpath(*parts)
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


@functools.cache
def _root(package: str) -> Path | None:
    """Folder of a package; None of a module that is none, or is not written in Python."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations or not spec.origin:
        return None
    return Path(spec.origin).parent
