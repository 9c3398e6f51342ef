"""Command line of the images: `python -m deephash_pipeline.images download mnist data/01_raw/mnist`."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.corel5k import prepare_corel5k
from deephash_pipeline.images.sources.download import download_cifar10, download_mnist
from deephash_pipeline.images.sources.label_list import write_label_list

DOWNLOADS = {"cifar10": download_cifar10, "mnist": download_mnist}
LISTS = {"training": "train.txt", "validation": "validation.txt", "query": "test.txt"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code, 1 after an error, which is printed in one line."""
    parser = argparse.ArgumentParser(prog="python -m deephash_pipeline.images")
    commands = parser.add_subparsers(dest="command", required=True)
    download = commands.add_parser("download", help="fetch the raw files of a benchmark")
    download.add_argument("benchmark", choices=sorted(DOWNLOADS))
    download.add_argument("folder", type=Path, help="where to put them, such as data/01_raw/mnist")
    corel5k = commands.add_parser("corel5k", help="make folders and lists of Corel5k from a clone of its repository")
    corel5k.add_argument("repository", type=Path, help="a clone of github.com/ParkByungYoon/corel-5k")
    corel5k.add_argument("folder", type=Path, help="where to put them, such as data/01_raw/corel5k")
    corel5k.add_argument("--words", type=int, default=21, help="how many of the most frequent words are labels (21)")
    lists = commands.add_parser("lists", help="write the splits of a run as lists for other toolboxes, path 0 1 0 ...")
    lists.add_argument("splits", type=Path, help="of the run, such as data/02_intermediate/corel5k")
    lists.add_argument("folder", type=Path, help="where to put train.txt, validation.txt, test.txt and classes.txt")
    options = parser.parse_args(arguments)

    try:
        for line in _run(options):
            sys.stdout.write(f"{line}\n")
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def write_lists(splits: Path, folder: Path) -> Iterator[str]:
    """Write the splits that `data_ingestion` stored as lists, one column a class; yield a line on each.

    Args:
        splits: folder with `class_names.json`, and `ids.json` and `labels.npy` of each split.
        folder: gets `train.txt`, `validation.txt` where there are such images, `test.txt` and `classes.txt`.

    Raises:
        InputError: there are no such files.
    """
    try:
        class_names = json.loads((splits / "class_names.json").read_text("utf-8"))
        ids = {split: json.loads((splits / split / "ids.json").read_text("utf-8")) for split in LISTS}
        labels = {split: np.load(splits / split / "labels.npy", mmap_mode="r", allow_pickle=False) for split in LISTS}
    except (OSError, ValueError) as error:
        raise InputError(f"{splits} holds no splits ({error}): run `kedro run --pipelines=data_ingestion`.") from error
    folder.mkdir(parents=True, exist_ok=True)
    for split, name in LISTS.items():
        if not ids[split] and (folder / name).exists():
            # Another run's would not fit.
            raise InputError(f"{folder / name} is there, but {split} has no image: remove it, or name another folder.")
    for split, name in LISTS.items():
        if ids[split]:
            write_label_list(folder / name, ids[split], labels[split], len(class_names))
            yield f"{folder / name}: {len(ids[split]):,} images"
    (folder / "classes.txt").write_text("".join(f"{name}\n" for name in class_names), encoding="utf-8")


def _run(options: argparse.Namespace) -> Iterator[str]:
    if options.command == "corel5k":
        return prepare_corel5k(options.repository, options.folder, options.words)
    if options.command == "lists":
        return write_lists(options.splits, options.folder)
    return DOWNLOADS[options.benchmark](options.folder)


if __name__ == "__main__":
    sys.exit(main())
