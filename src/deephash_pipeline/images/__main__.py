"""Command line of the images: `python -m deephash_pipeline.images download mnist data/01_raw/mnist`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.sources.download import download_cifar10, download_mnist

DOWNLOADS = {"cifar10": download_cifar10, "mnist": download_mnist}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code, 1 after an error, which is printed in one line."""
    parser = argparse.ArgumentParser(prog="python -m deephash_pipeline.images")
    commands = parser.add_subparsers(dest="command", required=True)
    download = commands.add_parser("download", help="fetch the raw files of a benchmark")
    download.add_argument("benchmark", choices=sorted(DOWNLOADS))
    download.add_argument("folder", type=Path, help="where to put them, such as data/01_raw/mnist")
    options = parser.parse_args(arguments)

    try:
        for line in DOWNLOADS[options.benchmark](options.folder):
            sys.stdout.write(f"{line}\n")
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
