"""Command line of the images: `python -m deephash_pipeline.images download cifar10 data/01_raw/cifar10`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.corel5k import prepare_corel5k
from deephash_pipeline.images.sources.torchvision_sets import download_cifar10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code, 1 after an error, which is printed in one line."""
    parser = argparse.ArgumentParser(prog="python -m deephash_pipeline.images")
    commands = parser.add_subparsers(dest="command", required=True)
    download = commands.add_parser("download", help="fetch the raw files of a benchmark")
    download.add_argument("benchmark", choices=["cifar10"])
    download.add_argument("folder", type=Path, help="where to put them, such as data/01_raw/cifar10")
    corel5k = commands.add_parser("corel5k", help="make folders and lists of Corel5k from a clone of its repository")
    corel5k.add_argument("repository", type=Path, help="a clone of github.com/ParkByungYoon/corel-5k")
    corel5k.add_argument("folder", type=Path, help="where to put them, such as data/01_raw/corel5k")
    corel5k.add_argument("--words", type=int, default=21, help="how many of the most frequent words are labels (21)")
    options = parser.parse_args(arguments)

    try:
        for line in _run(options):
            sys.stdout.write(f"{line}\n")
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _run(options: argparse.Namespace) -> Iterator[str]:
    if options.command == "corel5k":
        return prepare_corel5k(options.repository, options.folder, options.words)
    return download_cifar10(options.folder)


if __name__ == "__main__":
    sys.exit(main())
