"""Whether a path may be written, which everything that writes a file of the user's asks."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import holds_index
from deephash_pipeline.common.writing import require_regular

STANDARD_OUTPUT = Path("-")


def check_outputs(
    outputs: Sequence[Path],
    inputs: Iterable[str | Path] = (),
    ours: Sequence[Callable[[Path], bool]] = (),
    of_index: str | None = None,
) -> None:
    """Refuse, before any work is done, what may not or could not be written after it.

    Args:
        outputs: files that are to be written; ``-`` is standard output.
        inputs: files that are read.
        ours: for each output, what tells by the format of a file that this program has made one of its kind, which may
            then be replaced; without them nothing may.
        of_index: name of a file that may lie in an index.

    Raises:
        InputError: an output is there and may not be replaced, is an input, is another output too, is no regular file,
            or lies in an index or where nothing can be written.
    """
    known: dict[object, Path] = {}
    for file in outputs:
        for identity in [file] if file == STANDARD_OUTPUT else _identities(file):
            if known.setdefault(identity, file) is not file:
                raise InputError(f"{known[identity]} and {file} are one file, for two outputs: give each its own name")
    read = {identity: name for name in inputs for identity in _identities(Path(name))} if known else {}
    for number, file in enumerate(outputs):
        if file == STANDARD_OUTPUT:
            continue
        if found := next((identity for identity in _identities(file) if identity in read), None):
            raise InputError(f"{file} is read here, as {read[found]}, and would be lost: name another file")
        require_regular(file)
        index = next((folder for folder in file.resolve().parents if holds_index(folder)), None)
        if index is not None and file.name != of_index:
            raise InputError(f"{file} would be in the index {index}: name a place outside it")
        if os.path.exists(file):
            if not ours:
                raise InputError(f"{file} is there: name another file, or add --overwrite")
            require_replaceable(file, ours[number])
        above = next(filter(Path.exists, file.absolute().parents))
        if not (above.is_dir() and os.access(above, os.W_OK)):
            raise InputError(f"{file} cannot be written: {above} is no folder or read-only, name another")


def require_replaceable(file: Path, is_ours: Callable[[Path], bool]) -> None:
    """Refuse to replace what this program has not made.

    Args:
        file: where a file is to be written.
        is_ours: tells by the format of a file whether this program has made one of its kind.

    Raises:
        InputError: there is another file, or one that cannot be read.
    """
    require_regular(file)
    try:
        replaceable = not os.path.exists(file) or is_ours(file)
    except (OSError, UnicodeDecodeError):
        replaceable = False
    if not replaceable:
        raise InputError(f"{file} is there, and was not made by what would replace it: name another file")


def _identities(file: Path) -> list[object]:
    """What two spellings of one file have in common: where it is, and once it is there, which it is."""
    place = file.resolve()
    try:
        status = place.stat()
    except OSError:
        return [str(place)]
    return [str(place), (status.st_dev, status.st_ino)]


def starts_with(*beginnings: str) -> Callable[[Path], bool]:
    """Make what knows files by how they begin, such as CSV by its header.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = Path(file.name).write_text("first,second")
        ...     starts_with("first,")(Path(file.name)), starts_with("second,", "group,")(Path(file.name))
        (True, False)
    """

    def found(file: Path) -> bool:
        with file.open("rb") as there:
            return there.read(max(map(len, beginnings))).startswith(tuple(text.encode() for text in beginnings))

    return found
