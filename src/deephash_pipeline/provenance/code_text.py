"""Text of code that a result can depend on: no comments, docstrings, annotations, nor display names."""

import ast
from typing import Any, TypeGuard

SHOWN_ATTRIBUTES = ("display_name", "reference")
"""Attributes of classes that tables show; a table that shows them has them among its parameters."""

TABLE = "Registry"

WITHOUT_MEANING = ("ctx", "kind", "returns", "type_comment")
"""Fields of syntax trees that change no result."""


def is_table(call: Any) -> TypeGuard[ast.Call]:
    """Tell whether a piece of code makes a table of names.

    Example:
        >>> is_table(ast.parse("Registry({})", mode="eval").body), is_table(None)
        (True, False)
    """
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == TABLE


def text_of(node: Any, in_class: bool = False) -> str:
    """Write what counts of a syntax tree; the same for every version of Python, and however lines are broken.

    Annotations count in the body of a class, where they may make fields.

    Example:
        >>> text_of(ast.parse("f(1, 2)  # a call")) == text_of(ast.parse("f(1,2)"))
        True
    """
    if isinstance(node, list):
        return f"[{','.join(map(text_of, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.AnnAssign) and not in_class:
        return "" if node.value is None else text_of(ast.Assign([node.target], node.value))
    fields = []
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list):
            is_class = isinstance(node, ast.ClassDef)
            lines = [text_of(each, is_class) for each in value if not _is_for_people(each, is_class)]
            fields.append(f"body=[{','.join(lines)}]")
        elif value not in (None, []) and name not in WITHOUT_MEANING and not (name == "annotation" and not in_class):
            # The entries of a table count one by one.
            fields.append(f"{name}={text_of(value[1:] if name == 'args' and is_table(node) else value)}")
    return f"{type(node).__name__}({','.join(fields)})"


def _is_for_people(statement: ast.stmt, in_class: bool) -> bool:
    """Say whether a statement is a text by itself, such as a docstring, or an attribute of `SHOWN_ATTRIBUTES`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return isinstance(statement.value.value, str)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return in_class and all(isinstance(target, ast.Name) and target.id in SHOWN_ATTRIBUTES for target in targets)
