"""Tables of names: what is chosen by a name in the configuration is imported when it is asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import resolve_name
from typing import Any, TypeVar

from deephash_pipeline.common.errors import InputError

Entry_co = TypeVar("Entry_co", covariant=True)


class Registry(Mapping[str, Entry_co]):
    """Name -> object, written as name -> place, ``".dpsh:DPSH"``: a module below a package, and a name in it.

    The code of a result includes the entries that its parameters name, and no others: see
    `deephash_pipeline.provenance.sources`, which reads the places where they are written.

    Args:
        places: name -> place.
        package: package that the modules are relative to: ``__package__``.
        others: tables whose entries come first.

    Example:
        >>> Registry({"decimal": ".decimal:Decimal"}, "json")["decimal"]
        Traceback (most recent call last):
        ModuleNotFoundError: No module named 'json.decimal'
        >>> Registry({"decoder": ".decoder:JSONDecoder"}, "json")["decoder"].__name__
        'JSONDecoder'
    """

    def __init__(self, places: Mapping[str, str], package: str | None, *others: "Registry[Entry_co]") -> None:
        absolute = {name: resolve_name(place, package) for name, place in places.items()}
        self._places: dict[str, str] = {**{name: other._places[name] for other in others for name in other}, **absolute}

    def __getitem__(self, name: str) -> Entry_co:
        module, _, attribute = self._places[name].partition(":")
        if not hasattr(found := import_module(module), attribute):
            raise InputError(f"the registry says `{name}` is {module}:{attribute}, which is not there: mend its line")
        entry: Entry_co = getattr(found, attribute)
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def class_named(self, name: str) -> Entry_co:
        """Give the entry whose class has a name: what a package answers that is asked for it.

        Raises:
            AttributeError: none has it.
        """
        for key, place in self._places.items():
            if place.partition(":")[2] == name:
                return self[key]
        raise AttributeError(f"no entry is called {name}")

    def name_of(self, entry: type[Any]) -> str:
        """Give the name of a class.

        Raises:
            LookupError: it is not in the table.
        """
        place = f"{entry.__module__}:{entry.__qualname__}"
        for name, known in self._places.items():
            if known == place:
                return name
        raise LookupError(f"{place} is not in the table")
