"""Parts of an index, in memory or in a folder, and how it changes.

A folder has one SQLite file, the ledger, and one file for each segment. Small additions go to the ledger's tail; large
ones, and a tail that has grown long, become a segment: its file is written and synchronised first, and it counts from
the moment the ledger names it. Nothing that the ledger names is ever written again, so a process that is killed leaves
at most a file that no one names, which the next writer deletes.
"""

import os
import sqlite3
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import INDEX_FILE, SEGMENTS
from deephash_pipeline.common.forks import tell_after_fork
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.hamming.database import identity_of
from deephash_pipeline.hamming.features import NO_FEATURES, FeatureForm
from deephash_pipeline.hamming.ledger import Ledger
from deephash_pipeline.hamming.locking import COPY, WriterLock
from deephash_pipeline.hamming.segment_files import delete_segments, made_segment, read_segment, segments_in
from deephash_pipeline.hamming.segments import Contents, Segment, empty_tail
from deephash_pipeline.hamming.snapshots import Snapshot

MADE_BY = "made_by"
# The second has features of int8, the third rotated ones.
FORMATS_READ = FORMAT, FORMAT_WITH_TYPE, FORMAT_ROTATED = 2, 3, 4
FEATURE_TYPE = "feature_type"
# So many items at once become a segment without a detour.
BULK_ITEMS = 4096
# A longer tail becomes a segment, and takes segments of at most so many items in all along.
TAIL_ITEMS = 16_384
MERGED_ITEMS = 262_144
# Items with features fill memory and disk much sooner.
MERGED_BYTES = 2**28
READING_ATTEMPTS = 20


def unreadable(error: OSError, folder: Path | None) -> InputError:
    """What is to be raised where a file of an index cannot be read."""
    return InputError(f"{error.filename or folder} cannot be read ({error.strerror}); mend that.")


class Store:
    """The items of an index.

    Args:
        folder: folder of the index; None for memory.
        code_length: bits per code of a new index; None opens one that there is.
        form: form of the features of a new index.
        read_only: True to refuse changes, and to follow those of others.

    Attributes:
        lock: lock to be taken for everything but searching a snapshot.
        snapshot: the present state.
        process: the one that opened it.
    """

    def __init__(
        self,
        folder: Path | None,
        code_length: int | None = None,
        form: FeatureForm = NO_FEATURES,
        read_only: bool = False,
    ) -> None:
        self.folder = folder
        self.read_only = read_only
        self.identity = None if folder is None else identity_of(folder / INDEX_FILE)
        self.lock = threading.RLock()
        self.process = os.getpid()
        self._writer = WriterLock(folder) if folder is not None and not read_only else None
        try:
            path = folder / INDEX_FILE if folder is not None else None
            if code_length is None:
                self.ledger = Ledger(path, read_only)
            else:
                settings: dict[str, Any] = {"format": FORMAT, "code_length": code_length, "width": form.width}
                if form.kind != FeatureForm.kind:
                    settings |= {"format": FORMAT_ROTATED, FEATURE_TYPE: form.kind}
                self.ledger = Ledger.create(path, {**settings, "next_position": 0, "generation": 0})
            settings = self.ledger.settings()
            if settings.get("format") not in FORMATS_READ:
                raise InputError(
                    f"{folder} has the format {settings.get('format')}, this version reads {FORMAT_ROTATED}; "
                    "build it anew."
                )
            self.ledger.verify()
            self.code_length = int(settings["code_length"])
            kind, is_rotated = settings.get(FEATURE_TYPE, FeatureForm.kind), settings["format"] == FORMAT_ROTATED
            self.form = FeatureForm(int(settings["width"]), kind, is_rotated)
            self.kind: str | None = None
            self.next_position = self._last_change = 0
            self.snapshot = Snapshot((), -1, self.form)
            self._follow(anew=True)
            self._delete_unnamed()
        except sqlite3.Error as error:
            self.close()
            raise cannot_write(str(folder), error, COPY) from error
        except OSError as error:
            self.close()
            raise unreadable(error, folder) from error
        except BaseException:
            self.close()
            raise
        tell_after_fork(self)

    def after_fork(self) -> None:
        """Read what the process that this one was forked from writes on."""
        was_free = self.lock.acquire(blocking=False)
        self.lock = threading.RLock()
        if self.folder is not None:
            self.read_only, self._writer = True, None
        elif not was_free:
            # In memory, what another thread was changing stays half changed.
            self.ledger.close()

    def close(self) -> None:
        """Give back the ledger and the right to write; what has been closed answers nothing."""
        if hasattr(self, "ledger"):
            self.ledger.close()
        if self._writer is not None:
            self._writer.release()
            self._writer = None

    @property
    def words(self) -> int:
        """Words of a code."""
        return -(-self.code_length // 64)

    def current(self) -> Snapshot:
        """The present state, with what another process has written."""
        if self.read_only:
            with self.lock:
                if self.ledger.version() != self._version:
                    self._follow()
        self.ledger.require_open()
        return self.snapshot

    def bytes_on_disk(self) -> int:
        """Size of all files of the folder, also while a writer deletes some."""
        total = 0
        for path in () if self.folder is None else self.folder.rglob("*"):
            with suppress(FileNotFoundError):
                status = path.stat()
                total += status.st_size if stat.S_ISREG(status.st_mode) else 0
        return total

    def merged_since(self, snapshot: Snapshot) -> bool:
        """Whether segments have been merged since a snapshot, which forgets removed items; `lock` is taken."""
        return bool(self.ledger.settings()["generation"] != snapshot.generation)

    def reload(self) -> None:
        """Go back to what the ledger has, after a change that was broken off."""
        if self.folder is not None:
            self._follow(anew=True)
            # What cannot be deleted now, the next writer deletes.
            with suppress(OSError):
                self._delete_unnamed()

    def _follow(self, anew: bool = False) -> None:
        """Read from the ledger what is new since the present state, or all of it, and map the segments it names."""
        for attempt in range(READING_ATTEMPTS):
            version = self.ledger.version()
            with self.ledger.transaction(reading=True):
                settings = self.ledger.settings()
                state = int(settings["generation"]), settings.get("kind")
                merged = anew or state != (self.snapshot.generation, self.kind)
                position, change = (-1, 0) if merged else (self.next_position - 1, self._last_change)
                entries = self.ledger.segments() if merged else ()
                added = self.ledger.tail_after(position, self.words, self.form)
                change, removed = self.ledger.removed_after(change)
            try:
                segments = self._mapped(entries) if entries else []
            except FileNotFoundError as error:
                # A writer may have merged segments in between; then the ledger names others by now.
                if attempt == READING_ATTEMPTS - 1 or not self.read_only:
                    raise InputError(f"{error.filename} is missing; restore it from a backup.") from error
                continue
            except OSError as error:
                raise unreadable(error, self.folder) from error
            break
        self.kind, self.next_position = state[1], int(settings["next_position"])
        snapshot = self._snapshot_of(segments, state[0]) if merged else self.snapshot
        self.snapshot = snapshot.extended(added).without(removed)
        self._version, self._last_change = version, change

    def _mapped(self, entries: Sequence[tuple[int, str, int, str]]) -> list[Segment]:
        """Segments as they were written, from their files; those of the present state are there."""
        there = {segment.name: segment.whole() for segment in self.snapshot.segments}
        folder, length = (self.folder or Path()) / SEGMENTS, self.code_length
        return [there.get(name) or read_segment(folder, name, digest, length) for _, name, _, digest in entries]

    def _snapshot_of(self, segments: Sequence[Segment], generation: int) -> Snapshot:
        """The state of an index where all items are in segments."""
        in_order = sorted(segments, key=lambda segment: segment.first_position)
        return Snapshot.of([*in_order, empty_tail(self.words, self.kind, self.form)], generation, self.form)

    def add(self, contents: Contents, kind: str, metadata: dict[str, list[Any]], replaced: NDArray[np.int64]) -> None:
        """Add items, and remove those at replaced positions, in one transaction; `lock` is taken."""
        count = len(contents.positions)
        snapshot = self.snapshot.without(replaced)
        # The tail precedes what is added, so both go into one segment.
        bulk = count >= BULK_ITEMS or snapshot.tail.size + count > TAIL_ITEMS
        merged = self._mergeable(snapshot) if bulk else []
        segment = self._made(merged, contents) if bulk else None
        with self.ledger.transaction():
            self.ledger.set("kind", kind)
            self.ledger.set("next_position", self.next_position + count)
            self.ledger.remove(replaced.tolist())
            self.ledger.add_metadata(contents.positions.tolist(), metadata)
            if bulk:
                self.ledger.replace_segments(merged, segment)
            else:
                self.ledger.append_to_tail(contents)
        if kind != self.kind:
            self.kind = kind
            snapshot = self._snapshot_of((), snapshot.generation)
        self.next_position += count
        if bulk:
            self._swap(snapshot, merged, segment)
        else:
            self.snapshot = snapshot.extended(contents)

    def remove(self, positions: NDArray[np.int64]) -> None:
        """Remove the items at some positions; `lock` is taken."""
        with self.ledger.transaction():
            self.ledger.remove(positions.tolist())
        self.snapshot = self.snapshot.without(positions)

    def compact(self) -> None:
        """Make one segment of all items; `lock` is taken, and searches of a snapshot go on."""
        segments = [segment for segment in self.snapshot.segments if segment.size]
        if len(segments) > 1 or any(segment.removed or not segment.name for segment in segments):
            made = self._made(segments)
            with self.ledger.transaction():
                self.ledger.replace_segments(segments, made)
            self._swap(self.snapshot, segments, made)

    def _mergeable(self, snapshot: Snapshot) -> list[Segment]:
        """The tail, and the segments before it that are small enough to be merged with it."""
        bytes_each = 8 * self.words + self.form.columns * self.form.dtype.itemsize
        most, total = min(MERGED_ITEMS, MERGED_BYTES // bytes_each), 0
        kept: list[Segment] = []
        for segment in reversed(snapshot.segments):
            total += segment.size
            if kept and total > most:
                break
            kept.insert(0, segment)
        return [segment for segment in kept if segment.size]

    def _made(self, segments: Sequence[Segment], added: Contents | None = None) -> Segment | None:
        if added is None and all(segment.removed == segment.size for segment in segments):
            return None
        return made_segment(segments, added, None if self.folder is None else self.folder / SEGMENTS, self.code_length)

    def _swap(self, snapshot: Snapshot, old: Sequence[Segment], new: Segment | None) -> None:
        """Do in memory what `replace_segments` has done in the ledger, and delete files that it names no more."""
        kept = [segment for segment in snapshot.segments if segment.name and segment not in old]
        self.snapshot = self._snapshot_of([*kept, *([new] if new else [])], snapshot.generation + 1)
        if self.folder is not None:
            delete_segments(self.folder / SEGMENTS, [segment.name for segment in old if segment.name])

    def _delete_unnamed(self) -> None:
        """Delete files that the ledger does not name: those of a writer that was killed."""
        if self.folder is not None and not self.read_only:
            folder = self.folder / SEGMENTS
            folder.mkdir(exist_ok=True)
            delete_segments(folder, segments_in(folder) - {segment.name for segment in self.snapshot.segments})
