"""Queries with their nearest database images, as HTML that follows the reader's light or dark page."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deephash_pipeline.common.templates import render
from deephash_pipeline.retrieval.labels import label_names, share_a_label

_SHOWN_SIDE = 90
_LARGEST_SIDE = 2 * _SHOWN_SIDE
"""Pixels of a stored picture: twice what is shown on a wide page, for screens of high density."""


@dataclass(frozen=True)
class Tile:
    """One picture as the reader sees it; the query has no distance. Small ones keep their pixels as squares."""

    uri: str
    small: bool
    class_name: str
    distance: int | None = None
    right: bool = True


@dataclass(frozen=True, eq=False)
class CodedImages:
    """Images with their labels and codes: the queries, or the database that they search.

    Attributes:
        images: uint8 (n, channels, height, width), one or three channels; may be memory-mapped, or a list.
        labels: int64 (n,), indices into the names of the classes; or uint8 (n, classes), 1 for each label.
        codes: packed codes, uint8 (n, ceil(code_length / 8)), unused bits zero.
    """

    images: NDArray[np.uint8] | list[NDArray[np.uint8]]
    labels: NDArray[Any]
    codes: NDArray[np.uint8]


GALLERY_ROWS, GALLERY_COLUMNS = 8, 10
"""Queries that a gallery shows, and database images beside each, at most."""


def retrieval_gallery(
    queries: CodedImages, database: CodedImages, class_names: list[str], code_length: int, seed: int = 0
) -> str:
    """Show queries of different classes, each beside its nearest database images by Hamming distance.

    Images at equal distance are put in a random order drawn from the seed, since any fixed order would favour some
    classes. Only the images that are shown are read, so both stacks may be memory-mapped.

    Args:
        queries: queries that may be shown.
        database: images that they search.
        class_names: name of each label.
        code_length: bits.
        seed: seed of the drawn queries and of the order of ties.

    Returns:
        HTML that loads nothing: a file to open, and what `page.render_report` takes into the report. Frames are green
        for the query's class, or one of its labels, and red, with a cross, for others.

    Example:
        >>> labels, codes = np.array([0, 1]), np.array([[0b11110000], [0b00001111]], dtype=np.uint8)
        >>> images = CodedImages(np.zeros((2, 1, 8, 8), dtype=np.uint8), labels, codes)
        >>> html = retrieval_gallery(images, images, ["cat", "dog"], 8)
        >>> html.count("<img")
        6
    """
    generator = np.random.default_rng(seed)
    columns = min(GALLERY_COLUMNS, len(database.labels))
    small = max(queries.images[0].shape[1:]) <= _SHOWN_SIDE
    rows = []
    # Of several labels the first decides which queries are shown.
    several_labels = queries.labels.ndim == 2
    leading = queries.labels.argmax(axis=1) if several_labels else queries.labels
    for query in stratified_queries(leading, GALLERY_ROWS, generator):
        [shown] = label_names(queries.labels[[query]], class_names)
        indices, distances = nearest(queries.codes[query], database.codes, columns, generator)
        tiles = [Tile(_data_uri(queries.images[query]), small, shown)]
        neighbour_labels = database.labels[indices]
        [right] = share_a_label(queries.labels[[query]], neighbour_labels)
        names = label_names(neighbour_labels, class_names)
        for index, distance, name, is_right in zip(indices, distances, names, right, strict=True):
            tiles.append(Tile(_data_uri(database.images[index]), small, name, int(distance), bool(is_right)))
        rows.append(tiles)
    template = Path(__file__).with_name("templates") / "gallery.html.j2"
    html = render(
        template, rows=rows, columns=columns, code_length=code_length, several_labels=several_labels, seed=seed
    )
    # Opened by itself the file says nothing of its encoding.
    return html.encode("ascii", "xmlcharrefreplace").decode()


def stratified_queries(labels: NDArray[np.int64], count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw indices of `count` queries (or all, if fewer) such that no class is drawn twice before all are drawn once.

    Args:
        labels: int64 (n,).
        count: number of queries.
        generator: source of the draw.

    Returns:
        int64 (min(count, n),), sorted by label.

    Example:
        >>> labels = np.array([2, 2, 0, 1, 2])
        >>> labels[stratified_queries(labels, 3, np.random.default_rng(0))]
        array([0, 1, 2])
    """
    shuffled = generator.permutation(len(labels))
    turn = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        own = shuffled[labels[shuffled] == label]
        turn[own] = np.arange(len(own))
    # The sort is stable, so within a turn the shuffled order decides which classes are drawn.
    drawn = shuffled[np.argsort(turn[shuffled], kind="stable")][:count]
    return drawn[np.argsort(labels[drawn], kind="stable")]


def nearest(
    code: NDArray[np.uint8], database_codes: NDArray[np.uint8], count: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The `count` database items nearest to one packed code by Hamming distance, ties in random order.

    Args:
        code: uint8 (bytes,).
        database_codes: uint8 (n, bytes).
        count: number of items, at most n.
        generator: source of the order among items at equal distance.

    Returns:
        Their rows and their distances, nearest first.

    Example:
        >>> codes = np.array([[0b111], [0b001], [0b011]], dtype=np.uint8)
        >>> nearest(np.array([0b001], dtype=np.uint8), codes, 2, np.random.default_rng(0))
        (array([1, 2]), array([0, 1]))
    """
    distances = np.bitwise_count(database_codes ^ code).sum(axis=1, dtype=np.int64)
    order = np.lexsort((generator.permutation(len(distances)), distances))[:count]
    return order.astype(np.int64), distances[order]


def _data_uri(pixels: NDArray[np.uint8]) -> str:
    """PNG of an image, (channels, height, width), with its own pixels or, if it is large, scaled down."""
    channels_last = np.ascontiguousarray(pixels.transpose(1, 2, 0))
    picture = Image.fromarray(channels_last[..., 0] if channels_last.shape[2] == 1 else channels_last)
    picture.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
