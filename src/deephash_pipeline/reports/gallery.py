"""A picture of retrieval: queries with their nearest database images."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from deephash_pipeline.errors import InputError

Colour: TypeAlias = tuple[int, int, int]

RIGHT_FRAME: Colour = (26, 143, 74)
WRONG_FRAME: Colour = (209, 36, 47)
QUERY_FRAME: Colour = (87, 96, 106)

_BACKGROUND: Colour = (255, 255, 255)
_TEXT: Colour = (36, 41, 47)

# Twelve tiles of this size and their gaps fill the page's width on a screen of high density.
_IMAGE_SIZE = 112
_FRAME = 5
_TILE = _IMAGE_SIZE + 2 * _FRAME
_GAP = 10
_QUERY_GAP = 34
_MARGIN = 16
_LINE = 22
_FONT_SIZE = 17
_BADGE = 20


@dataclass(frozen=True)
class Neighbours:
    """The nearest database items of one query, nearest first: indices int64 (k,) and Hamming distances int64 (k,)."""

    indices: NDArray[np.int64]
    distances: NDArray[np.int64]


def retrieval_gallery(
    query_images: NDArray[np.uint8],
    query_labels: NDArray[np.int64],
    database_images: NDArray[np.uint8],
    database_labels: NDArray[np.int64],
    query_codes: NDArray[np.uint8],
    database_codes: NDArray[np.uint8],
    class_names: list[str],
    code_length: int,
    queries: int = 8,
    neighbours: int = 10,
    seed: int = 0,
) -> Image.Image:
    """Draw queries of different classes, each beside its nearest database images by Hamming distance.

    Images at equal distance are put in a random order drawn from the seed, since any fixed order would favour some
    classes. Only the images that are drawn are read, so both stacks may be memory-mapped.

    Args:
        query_images: uint8 (n_queries, channels, height, width), one or three channels.
        query_labels: int64 (n_queries,), indices into `class_names`.
        database_images: uint8 (n_database, channels, height, width).
        database_labels: int64 (n_database,).
        query_codes: packed codes, uint8 (n_queries, ceil(code_length / 8)), unused bits zero.
        database_codes: packed codes, uint8 (n_database, ceil(code_length / 8)).
        class_names: name of each label.
        code_length: bits.
        queries: rows at most; fewer if there are fewer queries.
        neighbours: database images per row at most.
        seed: of the drawn queries and of the order of ties.

    Returns:
        RGB image on white. Frames are green for the query's class and red, with a cross, for another.

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
    chosen = stratified_queries(query_labels, queries, generator)
    columns = min(neighbours, len(database_labels))
    canvas = _Canvas(
        rows=len(chosen),
        columns=columns,
        caption=f"Left: the query. Right: its {columns} nearest database images by Hamming distance d at {code_length} "
        "bits, nearest first. Green frame: the query's class. Red frame with a cross: another class. "
        f"Images at equal distance stand in random order (seed {seed}).",
    )
    for row, query in enumerate(chosen):
        label = int(query_labels[query])
        canvas.draw_tile(row, 0, query_images[query], QUERY_FRAME, ("query", class_names[label]))
        found = nearest(query_codes[query], database_codes, columns, generator)
        for column, (index, distance) in enumerate(zip(found.indices, found.distances, strict=True), start=1):
            neighbour_label = int(database_labels[index])
            frame = RIGHT_FRAME if neighbour_label == label else WRONG_FRAME
            text = (f"d = {distance}", class_names[neighbour_label])
            canvas.draw_tile(row, column, database_images[index], frame, text)
    return canvas.image


def stratified_queries(labels: NDArray[np.int64], count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw indices of `count` queries (or all, if fewer) such that no class is drawn twice before all are drawn once.

    Args:
        labels: int64 (n,).
        count: number of queries.
        generator: source of the draw.

    Returns:
        int64 (min(count, n),), sorted by label.
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
    """
    distances = np.bitwise_count(database_codes ^ code).sum(axis=1, dtype=np.int64)
    order = np.lexsort((generator.permutation(len(distances)), distances))[:count]
    return Neighbours(indices=order.astype(np.int64), distances=distances[order])


class _Canvas:
    """A white sheet with a caption on top and a grid of framed tiles, the first column set apart."""

    def __init__(self, rows: int, columns: int, caption: str) -> None:
        width = 2 * _MARGIN + (columns + 1) * _TILE + _QUERY_GAP + (columns - 1) * _GAP
        self._font = ImageFont.load_default(size=_FONT_SIZE)
        lines = self._wrapped(caption, width - 2 * _MARGIN)
        self._top = _MARGIN + len(lines) * _LINE + _GAP
        self._row_height = _TILE + 2 * _LINE + 2 * _GAP
        self.image = Image.new("RGB", (width, self._top + rows * self._row_height + _GAP), _BACKGROUND)
        self._draw = ImageDraw.Draw(self.image)
        for number, line in enumerate(lines):
            self._draw.text((_MARGIN, _MARGIN + number * _LINE), line, fill=_TEXT, font=self._font)

    def draw_tile(self, row: int, column: int, pixels: NDArray[np.uint8], frame: Colour, text: tuple[str, ...]) -> None:
        left = _MARGIN + column * (_TILE + _GAP) + (_QUERY_GAP - _GAP if column else 0)
        top = self._top + row * self._row_height
        self._draw.rectangle((left, top, left + _TILE - 1, top + _TILE - 1), fill=frame)
        inside = (left + _FRAME, top + _FRAME)
        self._draw.rectangle((*inside, inside[0] + _IMAGE_SIZE - 1, inside[1] + _IMAGE_SIZE - 1), fill=_BACKGROUND)
        picture = _enlarged(pixels)
        centring = ((_IMAGE_SIZE - picture.width) // 2, (_IMAGE_SIZE - picture.height) // 2)
        self.image.paste(picture, (inside[0] + centring[0], inside[1] + centring[1]))
        if frame == WRONG_FRAME:
            self._draw_cross(left + _TILE - _BADGE, top)
        colour = WRONG_FRAME if frame == WRONG_FRAME else _TEXT
        for number, line in enumerate(text):
            position = (left + _TILE // 2, top + _TILE + 3 + number * _LINE)
            self._draw.text(position, self._shortened(line, _TILE), fill=colour, font=self._font, anchor="ma")

    def _draw_cross(self, left: int, top: int) -> None:
        self._draw.rectangle((left, top, left + _BADGE - 1, top + _BADGE - 1), fill=WRONG_FRAME)
        near, far = 6, _BADGE - 7
        self._draw.line((left + near, top + near, left + far, top + far), fill=_BACKGROUND, width=3)
        self._draw.line((left + near, top + far, left + far, top + near), fill=_BACKGROUND, width=3)

    def _shortened(self, text: str, width: int) -> str:
        if self._font.getlength(text) <= width:
            return text
        while text and self._font.getlength(f"{text}...") > width:
            text = text[:-1]
        return f"{text}..."

    def _wrapped(self, text: str, width: int) -> list[str]:
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self._font.getlength(longer) > width:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines


def _enlarged(pixels: NDArray[np.uint8]) -> Image.Image:
    """RGB picture that fits a tile: small images keep their pixels as squares, large ones are smoothed down."""
    channels_last = np.ascontiguousarray(pixels.transpose(1, 2, 0))
    picture = Image.fromarray(channels_last[..., 0] if channels_last.shape[2] == 1 else channels_last).convert("RGB")
    scale = _IMAGE_SIZE // max(picture.size)
    if scale >= 1:
        return picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)
    picture.thumbnail((_IMAGE_SIZE, _IMAGE_SIZE), Image.Resampling.LANCZOS)
    return picture


def _check_side(
    name: str,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
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
    if labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"{name}_labels reach from {labels.min()} to {labels.max()}: name all classes in class_names")
    code_bytes = -(-code_length // 8)
    if codes.dtype != np.uint8 or codes.shape[1:] != (code_bytes,):
        raise InputError(
            f"{name}_codes have shape {codes.shape} and type {codes.dtype}: "
            f"pass packed uint8 codes of {code_bytes} bytes for {code_length} bits"
        )
