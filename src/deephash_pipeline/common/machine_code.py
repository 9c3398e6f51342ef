"""Functions that numba compiles, and where their machine code is kept.

Machine code inlines functions and numbers of other modules, so it is kept in a folder that is named by a digest of all
source that its module imports: after an edit of any of it, code is compiled anew. numba by itself looks at the file of
the function alone, and raises an error where it finds no folder to write to.
"""

import functools
import hashlib
import importlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numba
from numba.core import config

# Private: numba has no public way to say where machine code is kept and what makes it out of date.
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]
KEPT_STATES = 4
"""States of a module whose machine code stays: those of the branches that somebody goes to and fro between."""

Function = TypeVar("Function", bound=Callable[..., Any])

OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH

IMPORTS = re.compile(
    rf"^[ \t]*(?:from|import) +{PACKAGE_FOLDER.name}([\w.]*)(?: +import +(\([^)]*\)|[^(\n]*))?", re.MULTILINE
)


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function when it is called first, to run without Python's lock; processes after this one find it.

    Args:
        options: those of `numba.njit`.

    Returns:
        A decorator.
    """

    def compile_late(function: Function) -> Function:
        dispatcher: Any = numba.njit(nogil=True, **options)(function)
        if base_folder() is not None:
            # Private: as above; `enable_caching` puts numba's own there.
            dispatcher._cache = _Kept(function)  # type: ignore[no-untyped-call]
        return cast(Function, dispatcher)

    return compile_late


@functools.cache
def base_folder() -> Path | None:
    """Find the folder of all machine code, the first of these that can be written to.

    One in ``$NUMBA_CACHE_DIR`` if it is set, in ``__pycache__`` of the package, in the user's folder for caches, in
    that for temporary files; None if there is none, and then nothing is kept.
    """
    return next((folder for folder, is_private in _candidates() if _is_usable(folder, is_private)), None)


def _candidates() -> Iterator[tuple[Path, bool]]:
    """Yield folders, and whether others must be unable to write there: the content is run."""
    name = f"{PACKAGE_FOLDER.name}-kernels"
    if given := str(config.CACHE_DIR):  # type: ignore[attr-defined]
        yield Path(given, name), False
    yield PACKAGE_FOLDER / "__pycache__" / "kernels", False
    with suppress(RuntimeError):
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / PACKAGE_FOLDER.name / "kernels", True
    with suppress(OSError):
        yield Path(tempfile.gettempdir(), f"{name}-{os.geteuid()}"), True


def _is_usable(folder: Path, is_private: bool) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & OF_OTHERS
    return (is_own or not is_private) and os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def source_digest(path: Path) -> str:
    """Digest a module of the package and all that it imports of it, and that these import.

    Example:
        >>> len(source_digest(Path(__file__)))
        24
    """
    digest = hashlib.blake2b(digest_size=12)
    for file in sorted(_reached(path)):
        digest.update(f"{file.relative_to(PACKAGE_FOLDER)}\0".encode() + _source(file) + b"\0")
    return digest.hexdigest()


def _reached(path: Path) -> set[Path]:
    reached, waiting = set[Path](), [path]
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting += _imported(file)
    return reached


@functools.cache
def _source(file: Path) -> bytes:
    return file.read_bytes()


@functools.cache
def _imported(file: Path) -> frozenset[Path]:
    found = set()
    for below, names in IMPORTS.findall(_source(file).decode()):
        module = PACKAGE_FOLDER.joinpath(*below.split("."))
        found |= {module, *(module / name for name in re.findall(r"\w+", names))}
    return frozenset(file for module in found for file in _files(module))


def _files(module: Path) -> Iterator[Path]:
    yield from (file for file in (module.with_suffix(".py"), module / "__init__.py") if file.is_file())


class _Place(_CacheLocator):
    """Tells numba where the machine code of a function lies."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._line = file, function.__code__.co_firstlineno
        self._module, self._digest = _state(file)
        self._base = base_folder()

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Place":
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        return f"{self._base}/{self._module}-{self._digest}"

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Make the folder, and remove those of former states of the module."""
        folder = Path(self.get_cache_path())
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
            former = sorted(folder.parent.glob(f"{self._module}-*"), key=lambda place: place.stat().st_mtime_ns)
            for place in former[:-KEPT_STATES]:
                shutil.rmtree(place, ignore_errors=True)


@functools.cache
def _state(file: str) -> tuple[str, str]:
    """Give the name of a module below the package, and the digest of what its machine code is made from."""
    path = Path(file).resolve()
    return ".".join(path.relative_to(PACKAGE_FOLDER).with_suffix("").parts), source_digest(path)


def _import_numba_without_scipy() -> None:
    """Import what numba imports before it loads machine code, but not SciPy's linear algebra, a sixth of a second.

    numba imports that to see whether there is a BLAS. Whoever compiles a product of matrices makes it look again.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    # Not at the top: by itself it takes a twentieth of a second, and not everybody searches.
    from numba.np import linalg  # noqa: PLC0415

    # Private: its own function imports SciPy to see whether it is there; nothing here calls BLAS through numba.
    looked_for, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        # Private: as it was.
        linalg.ensure_blas = looked_for


class _Found(CompileResultCacheImpl):
    _locator_classes: ClassVar = [_Place]  # type: ignore[misc]


class _Kept(FunctionCache):
    """Machine code of one function below `base_folder`; what is damaged is compiled, and where no room is, not kept."""

    _impl_class = _Found

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load what was compiled for some types; None if there is nothing that can be loaded."""
        _import_numba_without_scipy()
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled."""
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
