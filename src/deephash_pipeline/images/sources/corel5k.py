"""Corel5k with its most frequent words as labels, from the files of ParkByungYoon/corel-5k on GitHub.

The set (Duygulu, Barnard, de Freitas and Forsyth, ECCV 2002) has 4,500 training and 499 test photographs, 192x128
pixels, of 374 words. The repository states no licence; the photographs are Corel's stock, for research only.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.label_list import write_label_list

SPLITS = {"train": "training_label", "test": "test_label"}


def prepare_corel5k(repository: Path, folder: Path, words: int = 21) -> Iterator[str]:
    """Copy the photographs of the most frequent words, and write their lists; yield a line on each split.

    Words are counted in the training list; of equally frequent ones the first of the list of words is taken. A
    photograph without any of them is left out. The lists are written last, so that they name files that are there.

    Args:
        repository: a clone of the repository, with `train_jpeg`, `test_jpeg` and `labels`.
        folder: gets `train/*.jpeg`, `test/*.jpeg`, `train.txt`, `test.txt` and `classes.txt`.
        words: how many words are labels.

    Raises:
        InputError: a file of the repository is missing or is none of Corel5k.
    """
    labels = repository / "labels"
    try:
        vocabulary = (labels / "words").read_text("utf-8").split()
        words_of = {split: _words_of_images(labels / name, len(vocabulary)) for split, name in SPLITS.items()}
    except (OSError, ValueError) as error:
        raise InputError(f"{labels} is not that of ParkByungYoon/corel-5k ({error}): clone the repository.") from error
    if not 2 <= words <= len(vocabulary):
        raise InputError(f"{words} words are asked for: take 2 to {len(vocabulary)}.")
    frequency = Counter(word for image in words_of["train"].values() for word in image)
    kept = sorted(range(1, len(vocabulary) + 1), key=lambda word: -frequency[word])[:words]
    folder.mkdir(parents=True, exist_ok=True)
    lists = {}
    for split, of_images in words_of.items():
        multi_hot = {name: np.isin(kept, list(of_image)) for name, of_image in of_images.items()}
        names = [name for name, has in multi_hot.items() if has.any()]
        _copy([repository / f"{split}_jpeg" / f"{name}.jpeg" for name in names], folder / split)
        lists[split] = ([f"{split}/{name}.jpeg" for name in names], np.array([multi_hot[name] for name in names]))
    for split, (ids, columns) in lists.items():
        write_label_list(folder / f"{split}.txt", ids, columns, words)
        yield f"{folder / split}: {len(ids):,} images, {columns.sum(axis=1).mean():.2f} of {words} words each"
    (folder / "classes.txt").write_text("".join(f"{vocabulary[word - 1]}\n" for word in kept), encoding="utf-8")


def _words_of_images(path: Path, words: int) -> dict[str, set[int]]:
    """Read lines of an image's number and those of its words, counted from 1."""
    of_images = {}
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            name, *numbers = line.split()
            of_images[name] = set(map(int, numbers))
            if not of_images[name] <= set(range(1, words + 1)):
                raise ValueError(f"{path.name} has words beyond {words}")
    return of_images


def _copy(files: list[Path], folder: Path) -> None:
    """Copy those of some files that a folder lacks, each whole or not at all."""
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise InputError(f"{missing[0]} is missing ({len(missing)} such files): clone the repository again.")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".corel5k-", dir=folder.parent) as waiting_room:
        for file in files:
            if not (folder / file.name).is_file():
                os.replace(shutil.copyfile(file, Path(waiting_room) / file.name), folder / file.name)
