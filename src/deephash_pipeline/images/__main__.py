"""Command line of the images: `python -m deephash_pipeline.images download cifar10 data/01_raw/cifar10`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.torchvision_sets import download_cifar10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code, 1 after an error, which is printed in one line."""
    parser = argparse.ArgumentParser(prog="python -m deephash_pipeline.images")
    parser.add_argument("command", choices=["download"], help="fetch the raw files of a benchmark")
    parser.add_argument("benchmark", choices=["cifar10"])
    parser.add_argument("folder", type=Path, help="where to put them, such as data/01_raw/cifar10")
    try:
        for line in download_cifar10(parser.parse_args(arguments).folder):
            sys.stdout.write(f"{line}\n")
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
