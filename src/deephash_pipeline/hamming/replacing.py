"""An index that takes the place of another, or of nothing, at once and as a whole."""

import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import flush
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.hamming.index_folder import delete_index, own_files
from deephash_pipeline.hamming.locking import WriterLock

LOOKS, SECONDS_A_LOOK = 50, 0.02


@contextmanager
def replacing_index(folder: Path) -> Iterator[Path]:
    """Give a place where to make an index that takes the place of a folder when all has gone well.

    The index in the folder, if there is one, stays as it is until then. What a killed process has left beside it is
    deleted.

    Args:
        folder: directory of the index, or a symbolic link to it.

    Raises:
        InputError: the folder has files of others, or another process writes it, or builds it too.
    """
    place = folder.resolve()
    beside, former = place.with_name(f".{place.name}.anew"), former_place(place)
    refuse_exchanged(place)
    list(own_files(place))
    with ExitStack() as locked:
        if there := place.exists():
            locked.callback(WriterLock(place).release)
        for leftover in (beside, former):
            if leftover.exists():
                WriterLock(leftover).release()
                delete_index(leftover)
        try:
            yield beside
            list(own_files(place))
            try:
                if there:
                    place.rename(former)
                beside.rename(place)
                flush(place.parent)
            except OSError as error:
                raise cannot_write(folder, error) from error
            delete_index(former)
        finally:
            delete_index(beside)


def refuse_exchanged(path: Path) -> None:
    """Wait while another index takes a place, for between two renamings there is none; refuse if it never does.

    Raises:
        InputError: there is none, but that which was there before.
    """
    place = path.resolve()
    former = former_place(place)
    for _ in range(LOOKS):
        if place.exists() or not former.is_dir():
            return
        time.sleep(SECONDS_A_LOOK)
    command = shlex.join(["mv", str(former), str(place)])
    raise InputError(f"{path} was being replaced when that was broken off: `{command}` brings it back")


def tidy_former(path: Path) -> None:
    """Delete the index whose place another has taken, where that was killed before it did."""
    place = path.resolve()
    former = former_place(place)
    if former.is_dir() and place.is_dir():
        # Whoever is at it has the lock, and deletes it; what is not of an index stays.
        with suppress(InputError):
            WriterLock(former).release()
            delete_index(former)


def former_place(folder: Path) -> Path:
    """Where an index lies for a moment while another takes its place."""
    return folder.with_name(f".{folder.name}.former")
