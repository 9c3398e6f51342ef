"""The names that the rooms of the search had before version 1.0: they lead there, with a warning, until 1.1."""

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

ROOMS = {
    "encoding": "deephash_pipeline.encoding",
    "engines": "deephash_pipeline.engines",
    "images": "deephash_pipeline.photographs",
    "serving": "deephash_pipeline.service",
    "vectors": "deephash_pipeline.embeddings",
}
"""Name of a module that was below this one -> where its names are now. Those of this one are in `hamming`."""


def _moved(old: str, room: str) -> Callable[[str], Any]:
    """Make what finds the names of a module that has moved."""

    def found(name: str) -> Any:
        # Were the path found too, a module below it would be imported a second time.
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        value = getattr(import_module(room), name)
        message = f"`{old}` is `{room}` since version 1.0; the old name goes with version 1.1"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return value

    return found


def _register(name: str, room: str) -> ModuleType:
    module = ModuleType(f"{__name__}.{name}", f"`{room}`, under its old name.")
    vars(module)["__getattr__"] = _moved(module.__name__, room)
    sys.modules[module.__name__] = module
    return module


globals().update({name: _register(name, room) for name, room in ROOMS.items()})
__getattr__ = _moved(__name__, "deephash_pipeline.hamming")
