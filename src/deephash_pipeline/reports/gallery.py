"""Queries with their nearest database images, as HTML that follows the reader's light or dark page."""

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deephash_pipeline.errors import InputError
from deephash_pipeline.reports.templates import render
from deephash_pipeline.retrieval.labels import label_names

_SHOWN_SIDE = 90
_LARGEST_SIDE = 2 * _SHOWN_SIDE
"""Pixels of a stored picture: twice what is shown on a wide page, for screens of high density."""


@dataclass(frozen=True)
class Neighbours:
    """The nearest database items of one query, nearest first: indices int64 (k,) and Hamming distances int64 (k,)."""

    indices: NDArray[np.int64]
    distances: NDArray[np.int64]


@dataclass(frozen=True)
class Tile:
    """One picture as the reader sees it; the query has no distance. Small ones keep their pixels as squares."""

    uri: str
    small: bool
    class_name: str
    distance: int | None = None
    right: bool = True


def retrieval_gallery(
    query_images: NDArray[np.uint8],
    query_labels: NDArray[Any],
    database_images: NDArray[np.uint8],
    database_labels: NDArray[Any],
    query_codes: NDArray[np.uint8],
    database_codes: NDArray[np.uint8],
    class_names: list[str],
    code_length: int,
    queries: int = 8,
    neighbours: int = 10,
    seed: int = 0,
) -> str:
    """Show queries of different classes, each beside its nearest database images by Hamming distance.

    Images at equal distance are put in a random order drawn from the seed, since any fixed order would favour some
    classes. Only the images that are shown are read, so both stacks may be memory-mapped.

    Args:
        query_images: uint8 (n_queries, channels, height, width), one or three channels.
        query_labels: int64 (n_queries,), indices into `class_names`; or uint8 (n_queries, classes), 1 for each label.
        database_images: uint8 (n_database, channels, height, width).
        database_labels: as those of the queries, of the database.
        query_codes: packed codes, uint8 (n_queries, ceil(code_length / 8)), unused bits zero.
        database_codes: packed codes, uint8 (n_database, ceil(code_length / 8)).
        class_names: name of each label.
        code_length: bits.
        queries: rows at most; fewer if there are fewer queries.
        neighbours: database images per row at most.
        seed: of the drawn queries and of the order of ties.

    Returns:
        HTML that loads nothing: a file to open, and what `page.render_report` takes into the report. Frames are green
        for the query's class, or one of its labels, and red, with a cross, for others.

    Raises:
        InputError: shapes or labels disagree, or nothing is asked for.
    """
    _check_side("query", query_images, query_labels, query_codes, len(class_names), code_length)
    _check_side("database", database_images, database_labels, database_codes, len(class_names), code_length)
    if queries < 1 or neighbours < 1:
        raise InputError(
            f"a gallery of {queries} queries and {neighbours} neighbours is empty: ask for at least 1 of each"
        )
    generator = np.random.default_rng(seed)
    columns = min(neighbours, len(database_labels))
    small = max(query_images.shape[2:]) <= _SHOWN_SIDE
    rows = []
    # Of several labels the first decides which queries are shown.
    leading = query_labels.argmax(axis=1) if query_labels.ndim == 2 else query_labels
    for query in stratified_queries(leading, queries, generator):
        [shown] = label_names(query_labels[[query]], class_names)
        found = nearest(query_codes[query], database_codes, columns, generator)
        tiles = [Tile(_data_uri(query_images[query]), small, shown)]
        neighbour_labels = database_labels[found.indices]
        right = neighbour_labels == query_labels[query]
        if query_labels.ndim == 2:
            right = (neighbour_labels & query_labels[query]).any(axis=1)
        names = label_names(neighbour_labels, class_names)
        for index, distance, name, is_right in zip(found.indices, found.distances, names, right, strict=True):
            uri = _data_uri(database_images[index])
            tiles.append(Tile(uri, small, name, int(distance), bool(is_right)))
        rows.append(tiles)
    html = render("gallery.html.j2", rows=rows, columns=columns, code_length=code_length, seed=seed)
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
) -> Neighbours:
    """The `count` database items nearest to one packed code by Hamming distance, ties in random order.

    Args:
        code: uint8 (bytes,).
        database_codes: uint8 (n, bytes).
        count: number of items, at most n.
        generator: source of the order among items at equal distance.

    Example:
        >>> codes = np.array([[0b111], [0b001], [0b011]], dtype=np.uint8)
        >>> found = nearest(np.array([0b001], dtype=np.uint8), codes, 2, np.random.default_rng(0))
        >>> found.indices, found.distances
        (array([1, 2]), array([0, 1]))
    """
    distances = np.bitwise_count(database_codes ^ code).sum(axis=1, dtype=np.int64)
    order = np.lexsort((generator.permutation(len(distances)), distances))[:count]
    return Neighbours(indices=order.astype(np.int64), distances=distances[order])


def _data_uri(pixels: NDArray[np.uint8]) -> str:
    """PNG of an image, (channels, height, width), with its own pixels or, if it is large, scaled down."""
    channels_last = np.ascontiguousarray(pixels.transpose(1, 2, 0))
    picture = Image.fromarray(channels_last[..., 0] if channels_last.shape[2] == 1 else channels_last)
    picture.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _check_side(
    name: str,
    images: NDArray[np.uint8],
    labels: NDArray[Any],
    codes: NDArray[np.uint8],
    classes: int,
    code_length: int,
) -> None:
    if images.ndim != 4 or images.shape[1] not in (1, 3) or images.dtype != np.uint8:
        raise InputError(
            f"{name}_images have shape {images.shape} and type {images.dtype}: "
            "pass uint8 (images, channels, height, width) with 1 or 3 channels"
        )
    if not len(images) == len(labels) == len(codes) or len(images) == 0:
        raise InputError(
            f"{name} has {len(images)} images, {len(labels)} labels and {len(codes)} codes: pass one of each per item"
        )
    if labels.ndim == 2 and labels.shape[1] != classes:
        raise InputError(f"{name}_labels have {labels.shape[1]} columns: name all of them in class_names")
    if labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"{name}_labels reach from {labels.min()} to {labels.max()}: name all classes in class_names")
    code_bytes = -(-code_length // 8)
    if codes.dtype != np.uint8 or codes.shape[1:] != (code_bytes,):
        raise InputError(
            f"{name}_codes have shape {codes.shape} and type {codes.dtype}: "
            f"pass packed uint8 codes of {code_bytes} bytes for {code_length} bits"
        )
