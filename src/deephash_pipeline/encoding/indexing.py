"""A folder of codes -> an index that is searched."""

import os

import numpy as np

from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.common.stores import is_remote, joined_address
from deephash_pipeline.encoding.code_folder import CodeBlock, CodeFolder
from deephash_pipeline.hamming.answers import Item
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.photographs import AddedImages, ImageIndex
from deephash_pipeline.photographs.changes import has_label


def add_encoded(images: ImageIndex, codes: CodeFolder) -> AddedImages:
    """Add the images of a folder of codes to an index, a block at a time.

    Those whose ids are there already with their codes and labels are passed over, so a build that was killed goes on
    where it was; others take the place of those there. Of several images of one id the first is added. Image files on a
    disk are shown from where they are; pictures in shards and stores are not.

    Args:
        images: the index; its hasher must be the folder's.
        codes: folder of codes, of which no block may be missing or damaged.

    Raises:
        InputError: a block is missing or damaged, or the index cannot be written.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> from deephash_pipeline import ImageHasher
        >>> from deephash_pipeline.encoding import CodeBlock, Encoding, Source
        >>> with TemporaryDirectory() as folder:
        ...     codes = CodeFolder(f"{folder}/codes")
        ...     codes.begin(Encoding(Source(folder), 1024, ["0a" * 16], "hasher", 48), b"")
        ...     codes.write("0a" * 16, CodeBlock(["1.png"], np.zeros((1, 6), np.uint8), ["cat"], []))
        ...     with ImageIndex.create(f"{folder}/index", ImageHasher.pretrained("digits-48")) as index:
        ...         add_encoded(index, codes).added
        1
    """
    report = AddedImages()
    encoding = codes.encoding
    seen: set[str] = set()
    with count_steps("blocks", len(encoding.blocks)) as advance:
        for block in codes:
            row_of: dict[str, int] = {}
            for row, name in enumerate(block.names):
                if name in seen:
                    report.skipped.append(SkippedImage(row, name, "its id is another's: give each image its own"))
                else:
                    row_of[name] = row
                    seen.add(name)
            there = [name for name in row_of if name in images.index]
            known = zip(there, images.index.items(there), strict=True)
            same = {name for name, item in known if _is(item, block, row_of[name])}
            names = [name for name in row_of if name not in same]
            rows = [row_of[name] for name in names]
            paths = [_path(encoding.source.root, name) for name in names]
            images.add_codes(names, block.codes[rows], paths, [block.labels[row] for row in rows], replace=True)
            report.added += len(row_of) - len(there)
            report.changed += [name for name in there if name not in same]
            report.there += len(same)
            report.skipped += [SkippedImage(0, broken.name, broken.reason) for broken in block.broken]
            advance(f"{report.added + report.there:,} images")
    return report


def _is(item: Item, block: CodeBlock, row: int) -> bool:
    return np.array_equal(item.code, block.codes[row]) and has_label(item.metadata, block.labels[row])


def _path(root: str, name: str) -> str | None:
    path = joined_address(root, name)
    return None if is_remote(path) or not os.path.isfile(path) else path
