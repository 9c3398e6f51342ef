"""Facts about hash functions and losses, read from their source code: none of them is imported.

Who lists methods, or puts them on the grid, needs their names, and neither PyTorch nor scikit-learn.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.provenance.sources import Place, chain_of_names, read_module, resolve, table_entries


@dataclass(frozen=True)
class MethodFacts:
    """Attributes of a class, see `HashFunction` and `HashingLoss`, where they are explained.

    Example:
        >>> itq, ksh = HASH_FUNCTION_FACTS["itq"], HASH_FUNCTION_FACTS["ksh"]
        >>> itq.display_name, ksh.supervised, LOSS_FACTS["dpsh"].several_labels
        ('ITQ', True, True)
    """

    display_name: str
    reference: str
    supervised: bool = False
    several_labels: bool = False
    reads_features: bool = False


def facts_of(registry: str, table: str) -> dict[str, MethodFacts]:
    """Read what the classes of a table of names say of themselves.

    Args:
        registry: module of the table.
        table: its name there.

    Returns:
        Name -> facts, in the order of the table.

    Raises:
        InputError: the table names a class that is not there.
    """
    return {name: _facts(name, place) for name, place in table_entries(registry, table).items()}


def _facts(name: str, place: Place) -> MethodFacts:
    found: dict[str, Any] = {}
    for field in fields(MethodFacts):
        for value in _values(place, field.name):
            found[field.name] = value
            break
    try:
        return MethodFacts(**found)
    except TypeError as error:
        where = ":".join(map(str, place))
        raise InputError(f"the registry says `{name}` is {where}, which is no method: mend its line") from error


def _values(place: Place, attribute: str) -> Iterator[Any]:
    """Yield what a class, then what those that it inherits from, say of an attribute."""
    module, name = place
    for statement in read_module(module).statements.get(name or "", ()):
        if not isinstance(statement, ast.ClassDef):
            continue
        for line in statement.body:
            targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
            value = getattr(line, "value", None)
            if value is not None and any(isinstance(each, ast.Name) and each.id == attribute for each in targets):
                if chain := chain_of_names(value):
                    yield from (each for of in resolve(module, chain[:-1]) for each in _values(of, chain[-1]))
                else:
                    yield ast.literal_eval(value)
        for base in statement.bases:
            chain = chain_of_names(base.value if isinstance(base, ast.Subscript) else base)
            yield from (each for of in resolve(module, chain) for each in _values(of, attribute))


HASH_FUNCTION_FACTS = facts_of("deephash_pipeline.hashing.registry", "HASH_FUNCTIONS")
LOSS_FACTS = facts_of("deephash_pipeline.losses.registry", "LOSSES")
