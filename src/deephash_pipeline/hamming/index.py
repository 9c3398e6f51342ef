"""`HammingIndex`: binary codes that are searched exactly, added to and removed from, in memory or in a folder."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import INDEX_FILE, SEGMENTS
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.hamming.answers import GivenIds
from deephash_pipeline.hamming.features import FeatureType, checked_features, checked_numbers
from deephash_pipeline.hamming.filters import checked_metadata
from deephash_pipeline.hamming.ids import HIGHEST, MISSING, TEXT, checked_ids
from deephash_pipeline.hamming.ledger import UNFINISHED
from deephash_pipeline.hamming.locking import LOCK
from deephash_pipeline.hamming.searchable import Closing
from deephash_pipeline.hamming.searching import ExactSearch
from deephash_pipeline.hamming.segments import Contents
from deephash_pipeline.hamming.store import BULK_ITEMS, MADE_BY, Store
from deephash_pipeline.hamming.written import written
from deephash_pipeline.retrieval.codes import check_code_length

LEFT_BY_CREATE = {SEGMENTS, LOCK, *(INDEX_FILE + UNFINISHED + end for end in ("", "-wal", "-shm", "-journal"))}


class HammingIndex(ExactSearch, Closing):
    """Binary codes of 1 to 4,096 bits under ids of one's own, searched exactly.

    Answers are ordered by (distance, insertion order) and equal to brute force always, whatever was added and removed
    before, on any number of threads (`numba.set_num_threads`). Searches may run on several threads, also while another
    thread adds and removes: each sees the state of one moment.

    Args:
        code_length: bits per code, 1..4096.
        features: numbers in the real-valued features that are stored with every item for re-ranking; 0 for none.
        feature_type: type that they are stored as, ``float16``, or ``int8`` with a scale for each item.

    Raises:
        InputError: if `code_length` or `features` is out of range, or there is no such `feature_type`.

    Example:
        >>> index = HammingIndex(8)
        >>> index.add([10, 11], np.array([[0b1111_0000], [0b1111_1111]], dtype=np.uint8), {"label": ["a", "b"]})
        >>> index.search(np.array([[0b1111_0001]], dtype=np.uint8), k=2)[0]
        [(10, 1), (11, 3)]
        >>> index.search(np.array([[0b1111_0001]], dtype=np.uint8), k=2, where={"label": "b"})[0]
        [(11, 3)]
    """

    def __init__(self, code_length: int, features: int = 0, feature_type: FeatureType = "float16") -> None:
        super().__init__(Store(None, check_code_length(code_length), checked_features(features, feature_type)))

    @classmethod
    def create(
        cls, folder: str | Path, code_length: int, features: int = 0, feature_type: FeatureType = "float16"
    ) -> Self:
        """Make a new index in a folder, to be written by this object.

        Args:
            folder: folder that is made; must be empty or missing, but for what a `create` that was killed has left.
            code_length: bits per code, 1..4096.
            features: size of an item's features, see `HammingIndex`.
            feature_type: type of the features, see `HammingIndex`.

        Raises:
            InputError: if there is something in the folder, or a number is out of range.
        """
        form = check_code_length(code_length), checked_features(features, feature_type)
        path = Path(folder)
        if path.exists() and (not path.is_dir() or any(found.name not in LEFT_BY_CREATE for found in path.rglob("*"))):
            raise InputError(f"{path} is not empty; give a new folder, or open the index in it.")
        try:
            (path / SEGMENTS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        return cls._of(Store(path, *form))

    @classmethod
    def open(cls, folder: str | Path, read_only: bool = False) -> Self:
        """Open the index in a folder.

        Args:
            folder: folder of `create`.
            read_only: True if others may write meanwhile; every search then sees what they have written before it.

        Raises:
            InputError: if there is no index, a segment is damaged, or, unless read_only, another process writes.
        """
        path = Path(folder)
        if not (path / INDEX_FILE).is_file():
            raise InputError(f"{path} has no index; make one with HammingIndex.create.")
        return cls._of(Store(path, read_only=read_only))

    @classmethod
    def _of(cls, store: Store) -> Self:
        index = cls.__new__(cls)
        ExactSearch.__init__(index, store)
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder: a copy in another process reads it, since one object alone writes."""
        if self._store.folder is None:
            raise InputError("an index in memory cannot be pickled; create it in a folder.")
        return type(self).open, (str(self._store.folder.absolute()), True)

    def close(self) -> None:
        """Let others write; nothing else is lost without it."""
        with self._store.lock:
            self._store.close()

    @own_settings()
    def add(
        self,
        ids: GivenIds | None,
        codes: NDArray[np.uint8],
        metadata: Mapping[str, Sequence[Any]] | None = None,
        *,
        features: NDArray[Any] | None = None,
        replace: bool = False,
    ) -> None:
        """Add items; when this returns, they are stored for good and found by the next search.

        Args:
            ids: 64-bit integers, strings or UUIDs, which become strings, of one kind in an index; None numbers items
                on, after all that there were and the largest id.
            codes: packed codes, uint8 (items, ceil(code_length / 8)), see `deephash_pipeline.retrieval.pack_bits`.
            metadata: columns, one value for each item: str, int, float, bool, bytes, a list of str, a date or time,
                which becomes text, or None.
            features: real numbers (items, width) for an index with features; stored as its `feature_type`.
            replace: True if an item whose id is there already takes the old one's place, at the end of the order;
                otherwise it is an error, and nothing is added.

        Raises:
            InputError: if an argument has another form, or an id is there already.
        """
        words = self._words(codes, "codes")
        with self._writing() as store:
            checked, kind = checked_ids(_numbered_on(store, len(words)) if ids is None else ids, store.kind)
            if len(checked) != len(words):
                raise InputError(f"there are {len(checked)} ids for {len(words)} codes; give one id for each code.")
            real = self._checked_features(features, len(checked))
            columns = checked_metadata(metadata, len(checked), store.ledger.columns() if metadata else ())
            if not len(checked):
                return
            rows = store.snapshot.find(checked)
            there = rows[rows != MISSING]
            if len(there) and not replace:
                first = checked.tolist()[int(np.flatnonzero(rows != MISSING)[0])]
                raise InputError(f"id {first!r} is in the index already; remove it before, or add with replace=True.")
            positions = np.arange(store.next_position, store.next_position + len(checked))
            contents = Contents(np.ascontiguousarray(words.T), checked, positions, real)
            store.add(contents, kind, columns, store.snapshot.positions_of(there))
            if len(checked) >= BULK_ITEMS:
                self._columns.added(int(positions[0]), columns)

    @own_settings()
    def update(self, ids: GivenIds, metadata: Mapping[str, Sequence[Any]]) -> None:
        """Change metadata of items; their codes, features and other columns stay.

        The items move to the end of the order, as if each had been replaced.

        Args:
            ids: ids of items, each once.
            metadata: columns to change, one value for each item; None takes a value away.

        Raises:
            InputError: an id is not there, or an argument has another form; nothing is changed then.
        """
        with self._writing() as store:
            checked, kind = checked_ids(ids, store.kind)
            changed = checked_metadata(metadata, len(checked), store.ledger.columns())
            snapshot, rows = self._known_rows(checked.tolist())
            if not len(rows):
                return
            before = self._metadata_at(snapshot, rows)
            named = {name.lower(): name for name in (*changed, *chain.from_iterable(before))}
            columns = {name: [written(values.get(name)) for values in before] for name in named.values()}
            columns |= {named[name.lower()]: values for name, values in changed.items()}
            contents = snapshot.contents_of(rows)
            positions = np.arange(store.next_position, store.next_position + len(rows))
            store.add(contents._replace(positions=positions), kind, columns, contents.positions)

    def remove(self, ids: GivenIds, *, missing_ok: bool = False) -> int:
        """Remove items, for good and before the next search; return how many.

        Args:
            ids: identifiers of the items.
            missing_ok: True to pass over ids that are not there; otherwise one is an error, and nothing is removed.

        Raises:
            InputError: if an id is not there, or they are of another kind.
        """
        with self._writing() as store:
            checked, _ = checked_ids(ids, store.kind)
            rows = store.snapshot.find(checked)
            if not missing_ok and np.any(rows == MISSING):
                first = checked.tolist()[int(np.flatnonzero(rows == MISSING)[0])]
                raise InputError(
                    f"id {first!r} is not in the index; leave it out, or pass over it by missing_ok (--missing-ok)"
                )
            rows = rows[rows != MISSING]
            if len(rows):
                store.remove(store.snapshot.positions_of(rows))
            return len(rows)

    def mark(self, made_by: str) -> None:
        """Store a digest of what makes the codes, so that whoever opens the index can tell another from it."""
        with self._writing() as store, store.ledger.transaction():
            store.ledger.set(MADE_BY, made_by)

    def compact(self) -> None:
        """Merge all items into one segment without those removed.

        Searches by codes go on meanwhile; those with a condition or by an id, and whatever reads metadata, wait for it.
        Readers in other processes do not.

        Raises:
            InputError: if the index is read-only.
        """
        with self._writing() as store:
            store.compact()

    def require_writable(self) -> None:
        """Raise InputError where this object may not change the index."""
        store = self._store
        if store.process != os.getpid() and store.folder is not None:
            raise InputError(
                f"{store.folder} was opened by process {store.process}, from which this one was forked, and is read "
                "here; change it there, or close it there and open it here."
            )
        if store.read_only:
            raise InputError(f"{store.folder} is open for reading; open it without read_only=True to change it.")

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        self.require_writable()
        store = self._store
        with store.lock:
            try:
                yield store
            except InputError:
                raise
            except (OSError, sqlite3.OperationalError) as error:
                store.reload()
                raise cannot_write(str(store.folder), error) from error
            except BaseException:
                store.reload()
                raise

    def _checked_features(self, features: Any, items: int) -> NDArray[Any]:
        if not self.features:
            if features is not None:
                raise InputError("features are given, but this index has none; create it with their number.")
            return self._store.form.no_rows(items)
        if features is None:
            raise InputError(f"features are missing; this index has {self.features} numbers for each item.")
        return self._store.form.stored(checked_numbers(features, items, self.features, "features"))


def _numbered_on(store: Store, count: int) -> NDArray[np.int64]:
    """Numbers for new items that no item has, nor had if all were numbered so."""
    if store.kind == TEXT:
        raise InputError("no ids are given, and those of this index are strings; give one for each item.")
    first = max(store.next_position, store.snapshot.largest_id() + 1)
    if first + count > HIGHEST:
        raise InputError("no ids are given, and the largest of this index leaves no room for more; give them.")
    return np.arange(first, first + count)
