"""Public names of the package that more than one module defines at its top."""

import ast
from collections import defaultdict
from pathlib import Path

import deephash_pipeline

ROOT = Path(deephash_pipeline.__file__).parent


def definitions() -> dict[str, list[str]]:
    """Give each public name of a function, class or constant with the modules that define it, by their paths."""
    found = defaultdict(set)
    for path in sorted(ROOT.rglob("*.py")):
        module = path.relative_to(ROOT).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for name in _names(node):
                if not name.startswith("_"):
                    found[name].add(module)
    return {name: sorted(modules) for name, modules in sorted(found.items())}


def double_names() -> dict[str, list[str]]:
    """Give those that several modules define."""
    return {name: modules for name, modules in definitions().items() if len(modules) > 1}


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []
