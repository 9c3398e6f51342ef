"""Addresses of other engines, as a user gives them."""

import re
from pathlib import Path

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.engines.exported import ExportedIndex
from deephash_pipeline.engines.milvus import MilvusIndex
from deephash_pipeline.engines.postgres import PostgresIndex

POSTGRES = ("postgres://", "postgresql://")
MILVUS = "milvus:"


def default_name(folder: Path) -> str:
    """What the table or collection of an index is called, unless a user says otherwise.

    Folders whose names differ in capitals, signs or letters beyond a to z alone have one name: give another to each.

    Example:
        >>> default_name(Path("my/2nd photos.index"))
        'i_2nd_photos_index'
    """
    name = re.sub(r"[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_")
    return name if name[:1].isalpha() else f"i_{name}"


def open_export(kind: str, address: str, name: str, approximate: bool = False) -> ExportedIndex:
    """Open a table of PostgreSQL or a collection of Milvus, which need not be there yet.

    Args:
        kind: ``postgres`` or ``milvus``.
        address: address as the engine's own clients take it.
        name: name of the table or collection.
        approximate: True if searches may miss near items, see `PostgresIndex`.

    Raises:
        InputError: the kind is another, or the engine does not answer.
    """
    if kind == "postgres":
        return PostgresIndex(address, name, approximate)
    if kind != "milvus":
        raise InputError(f"no engine `{kind}`: choose postgres or milvus.")
    if approximate:
        raise InputError("codes in Milvus are compared one by one: leave --approximate out.")
    return MilvusIndex(address, name)


def open_engine(address: str, name: str, approximate: bool = False) -> ExportedIndex:
    """Open codes that are stored elsewhere.

    Args:
        address: ``postgresql://user@host/database`` or ``milvus:http://host:19530``. After a ``#`` may follow the name
            of the table or collection.
        name: name of the table or collection, if the address has none.
        approximate: True for near answers, see `open_export`.

    Raises:
        InputError: the address has another form, or nobody answers there.
    """
    place, _, named = address.partition("#")
    for kind, starts in (("postgres", POSTGRES), ("milvus", (MILVUS,))):
        if place.startswith(starts):
            export = open_export(kind, place.removeprefix(MILVUS), named or name, approximate)
            try:
                _ = export.finished
            except BaseException:
                export.close()
                raise
            return export
    raise InputError(f"no engine at `{place.split('@')[-1]}`: give postgresql://... or milvus:http://...")
