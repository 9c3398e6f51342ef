"""An index that is kept at the state of some folders, look after look."""

import os
from collections.abc import Sequence
from pathlib import Path

from deephash_pipeline.common.stores import stamp_of
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.photographs.index import ImageIndex
from deephash_pipeline.photographs.listing import list_images, searched_folders
from deephash_pipeline.photographs.updating import AddedImages, bring_up_to_date

MANY_GONE = (
    "more than half of the files are gone, and stay in the index: mount their disk, or stop the service and give "
    "`index build` the option --remove-missing"
)


class Watch:
    """Brings an index to the state of some folders; a file that cannot be read is read again when it has changed.

    Args:
        images: the index, open for writing.
        paths: folders, as `list_images` takes them; they may be empty.

    Raises:
        InputError: a path is not there.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from deephash_pipeline import ImageHasher
        >>> from deephash_pipeline.hamming import HammingIndex
        >>> images = ImageIndex(ImageHasher.pretrained("digits-48"), HammingIndex(48))
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "broken.png").write_bytes(b"no image")
        ...     watch = Watch(images, [folder])
        ...     [len(watch.look().skipped) for _ in range(3)]
        [1, 0, 0]
    """

    def __init__(self, images: ImageIndex, paths: Sequence[str]) -> None:
        self.images, self.paths = images, paths
        self._unreadable: dict[Path, tuple[int, ...]] = {}
        self._left_out: set[tuple[str, str]] = set()
        list_images(paths, empty=True)

    def look(self) -> AddedImages:
        """Bring the index to the state that the folders have now.

        Returns:
            What became of the files; of those left out the ones that were not left out for the same reason before.

        Raises:
            InputError: see `list_images` and `bring_up_to_date`; items stay if more than half would go.
        """
        listed, unnamed = list_images(self.paths, empty=True)
        unchanged = {path for path, state in self._unreadable.items() if state == _state(path)}
        to_read = [image for image in listed if image.path not in unchanged]
        report = bring_up_to_date(self.images, to_read, searched_folders(self.paths), missing="few_or_none")
        if report.kept:
            report.skipped.append(SkippedImage(-1, ", ".join(self.paths), MANY_GONE))
        # What has changed while it was read is read again.
        read = {image.path for image in report.unreadable if stamp_of(image.path) == image.stamp}
        self._unreadable = {path: self._unreadable[path] for path in unchanged} | {path: _state(path) for path in read}
        report.skipped = self._new([*unnamed, *report.skipped])
        return report

    def _new(self, left_out: Sequence[SkippedImage]) -> list[SkippedImage]:
        before, self._left_out = self._left_out, {(image.name, image.reason) for image in left_out}
        return [image for image in left_out if (image.name, image.reason) not in before]


def _state(path: Path) -> tuple[int, ...]:
    """Size, and times of change of the content and of who may read it; of a file that is not there nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return (0,)
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
