"""Datasets that the catalog reads and does not write."""

import math
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from kedro.io import AbstractDataset, DatasetError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import refuse_remote
from deephash_pipeline.common.working_place import WorkingPlace
from deephash_pipeline.images.sources.collection import ImageCollection
from deephash_pipeline.images.sources.registry import parse_source
from deephash_pipeline.provenance import Origin, code_version
from deephash_pipeline.provenance.digests import files_digest, text_digest
from deephash_pipeline.provenance.manifest import SUFFIX, read_manifest
from deephash_pipeline.training import CheckpointFolder

LoadedContent = TypeVar("LoadedContent")


class ReadOnlyDataset(AbstractDataset[NoReturn, LoadedContent], Generic[LoadedContent]):
    """A dataset that is no node's output, and counts as there whether or not its file is.

    Args:
        filepath: path of the file or folder, relative to the project.
        metadata: metadata for Kedro-Viz (``layer``).

    Attributes:
        path: path of the file or folder.
    """

    def __init__(self, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        self.path = Path(filepath)
        self.metadata = metadata

    def save(self, data: NoReturn) -> None:
        """Refuse.

        Raises:
            DatasetError: always.
        """
        raise DatasetError(f"{self.path} is read only to the catalog: give the output another entry")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self.path)}


class OriginDataset(ReadOnlyDataset[Origin | None]):
    """Reads from a manifest what its file was made from and by; None if the file has no manifest."""

    def load(self) -> Origin | None:
        """Read the manifest.

        Raises:
            InputError: it is damaged.
        """
        manifest = read_manifest(self.path.with_name(self.path.name.removesuffix(SUFFIX)))
        return manifest.origin if manifest else None


class PlaceDataset(ReadOnlyDataset[WorkingPlace]):
    """What a node keeps by itself, such as the trials of a search: loading says where it is."""

    def load(self) -> WorkingPlace:
        """Give the place; nothing need be there."""
        return WorkingPlace(self.path)


class CheckpointsDataset(ReadOnlyDataset[CheckpointFolder]):
    """A folder of checkpoints: loading hands it to the training, which writes and reads it by itself.

    Args:
        filepath: path of the folder, relative to the project.
        seconds_between: checkpoints are made no more often than this; 0 means at every step.
        metadata: metadata for Kedro-Viz (``layer``).

    Raises:
        InputError: `seconds_between` is no number of seconds.
    """

    def __init__(self, filepath: str, seconds_between: float, metadata: dict[str, Any] | None = None) -> None:
        is_number = isinstance(seconds_between, int | float) and not isinstance(seconds_between, bool)
        if not (is_number and 0 <= seconds_between < math.inf):
            raise InputError(
                f"seconds_between_checkpoints is {seconds_between!r}: give a number of seconds, 0 for every step"
            )
        refuse_remote(filepath, "checkpoints")
        super().__init__(filepath, metadata)
        self._seconds_between = seconds_between

    def load(self) -> CheckpointFolder:
        """Hand over the folder; it need not exist."""
        return CheckpointFolder(self.path, self._seconds_between, code_version(Path.cwd()))


class FilesDataset(ReadOnlyDataset[dict[str, Any]]):
    """Reads every file of a folder that a pattern matches; none at all is no error, but an empty mapping.

    So a table can be made of the cells and the benchmarks that were run, without naming those that were not.

    Args:
        filepath: the folder, relative to the project.
        pattern: pattern of the files below it, as in `pathlib.Path.glob`.
        dataset: entry of a catalog that reads one of them, without ``filepath``.
        tracked: whether what is read counts as that which a result was made from. Not so for files that the reader
            itself replaces.
        exclude: pattern of paths below the folder that are left out, as in `fnmatch.fnmatch`.
        metadata: metadata for Kedro-Viz.
    """

    def __init__(
        self,
        filepath: str,
        pattern: str,
        dataset: dict[str, Any],
        tracked: bool = True,
        exclude: str = "",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        refuse_remote(filepath, "files that are found by a pattern")
        super().__init__(filepath, metadata)
        self._pattern = pattern
        self._dataset = dataset
        self._exclude = exclude
        self.tracked = tracked

    def load(self) -> dict[str, Any]:
        """Read them all.

        Returns:
            Path below the folder, such as ``itq/b48/metrics.json``, to content, in the order of the paths.
        """
        return {name: self.one(name).load() for name in self.names()}

    def names(self) -> list[str]:
        """List the paths below the folder of the files that are there, in their order; none that a dot hides."""
        found = (path.relative_to(self.path).as_posix() for path in sorted(self.path.glob(self._pattern)))
        return [name for name in found if not fnmatch(name, self._exclude) and "/." not in f"/{name}"]

    def one(self, name: str) -> AbstractDataset[Any, Any]:
        """Give the dataset that reads one of the files."""
        return AbstractDataset.from_config(name, {**self._dataset, "filepath": str(self.path / name)})


class ImageSourceDataset(ReadOnlyDataset[ImageCollection]):
    """Reads the raw images that a `source` describes; a new benchmark is a new entry of this type, not new code.

    Args:
        filepath: folder of the raw files.
        source: fields of one of `deephash_pipeline.images.sources.registry`, chosen by ``kind``.
        memory: file that remembers the digest of the raw files. As ``{filepath: ...}``, which Kedro reads from the
            project's folder; by default beside the arrays of the benchmark, in the project that the raw files are in:
            ``data/02_intermediate/<last part of filepath>/raw_images.verified``.
        metadata: metadata for Kedro-Viz.
    """

    def __init__(
        self,
        filepath: str,
        source: dict[str, Any],
        memory: dict[str, str] | str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(filepath, str):
            raise InputError(f"raw_images is {filepath!r}: give the path of a folder")
        refuse_remote(filepath, "raw images of a run")
        super().__init__(filepath, metadata)
        if memory is None:
            project = next((above for above in self.path.parents if (above / "conf" / "base").is_dir()), Path())
            memory = str(project / "data" / "02_intermediate" / self.path.name / "raw_images.verified")
        self._memory = Path(memory["filepath"] if isinstance(memory, dict) else memory)
        self.source = parse_source(source)

    def load(self) -> ImageCollection:
        """Read every image, or list the files that `split_images` is to decode.

        Raises:
            InputError: missing files, by name.
        """
        return self.source.read(self.path)

    def digest(self) -> str | None:
        """Digest the `source` and the names and contents of the files that it reads; None if there are none.

        Contents are read again only if a file has changed, appeared or vanished, see `files_digest`.
        """
        root, names = self.source.files(self.path)
        if not names:
            return None
        # Links whose content is not there are listed too, and will be found broken.
        there = [name for name in names if (root / name).is_file()]
        missing = "".join(f"\0{name}" for name in sorted(set(names) - set(there)))
        return text_digest(f"{self.source.model_dump_json()}\0{files_digest(root, there, self._memory)}{missing}")

    def _exists(self) -> bool:
        return self.source.is_there(self.path)
