"""Questions to an index -> answers as `schemas` has them."""

import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.search import Answers
from deephash_pipeline.search import Item as IndexedItem
from deephash_pipeline.search.engines import EngineError
from deephash_pipeline.search.engines.rows import bits_of, code_of_bits
from deephash_pipeline.search.images import ImageIndex
from deephash_pipeline.search.images.pictures import PICTURES
from deephash_pipeline.search.serving.schemas import (
    CodesAnswers,
    CodesQuestion,
    IndexInfo,
    Item,
    Query,
    Question,
    Result,
    Results,
)
from deephash_pipeline.search.serving.settings import ServiceSettings

ATTEMPTS = 10


def answer(
    name: str, images: ImageIndex, question: Question, code: NDArray[np.uint8] | None, item_id: str | None = None
) -> Results:
    """Search an index, by a code or by an item of it.

    Raises:
        InputError: there is no such item, or no item has a label.
    """
    began = time.perf_counter()
    where = images.labelled(question.label) if question.label else None
    for attempt in range(ATTEMPTS):
        try:
            if item_id is not None:
                query, found = images.index.get(item_id).code, images.search_by_id(item_id, question.k, where)
            else:
                assert code is not None
                query, found = code, images.index.search(code[np.newaxis], question.k, where)
            nearest = _within(found, question.radius)
            items = images.index.items([answered for answered, _ in nearest])
            break
        except EngineError:
            raise
        except InputError:
            # An answer may have been removed since; the next search does not find it.
            if attempt == ATTEMPTS - 1 or (item_id is not None and item_id not in images.index):
                raise
    return Results(
        index=name,
        code_length=images.index.code_length,
        query=Query(id=item_id, code=bits_of(query, images.index.code_length)),
        results=[
            Result(distance=distance, **_fields(name, images, item))
            for (_, distance), item in zip(nearest, items, strict=True)
        ],
        more=len(nearest) == question.k < len(images),
        approximate=images.index.approximate,
        milliseconds=round((time.perf_counter() - began) * 1000, 3),
    )


def _within(found: Answers, radius: int | None) -> Sequence[tuple[int | str, int]]:
    # Answers are ordered by distance: the k nearest within the radius are the first of the k nearest.
    return [(name, distance) for name, distance in found[0] if radius is None or distance <= radius]


def answer_codes(images: ImageIndex, question: CodesQuestion) -> CodesAnswers:
    """Search an index by codes.

    Raises:
        InputError: a code has another length, or no item has a label.
    """
    for bits in question.codes:
        if len(bits) != images.index.code_length:
            raise InputError(f"codes: one has {len(bits)} bits, this index has {images.index.code_length}")
    codes = np.stack([np.frombuffer(code_of_bits(bits), dtype=np.uint8) for bits in question.codes])
    found = images.index.search(codes, question.k, {"label": list(question.label)} if question.label else None)
    return CodesAnswers(ids=[list(map(str, ids)) for ids in found.ids.tolist()], distances=found.distances.tolist())


def described(name: str, images: ImageIndex, item: IndexedItem) -> Item:
    """An item of an index."""
    return Item(**_fields(name, images, item))


def _fields(name: str, images: ImageIndex, item: IndexedItem) -> dict[str, Any]:
    label, path = item.metadata.get("label"), item.metadata.get("path")
    return {
        "id": str(item.id),
        "label": None if label is None else str(label),
        # Where a file lies on the machine of the service is nobody's business.
        "path": path if path is not None and path.startswith(f"{PICTURES}/") else None,
        "code": bits_of(item.code, images.index.code_length),
        "thumbnail": f"/v1/items/{quote(str(item.id), safe='')}/thumbnail?{urlencode({'index': name})}",
    }


def index_info(name: str, images: ImageIndex, settings: ServiceSettings) -> IndexInfo:
    """What a page must know of an index."""
    return IndexInfo(
        name=name,
        images=len(images),
        code_length=images.index.code_length,
        hasher=f"{images.hasher.description.method} {images.hasher.description.benchmark}",
        image_shape=images.hasher.description.image_shape,
        labels=images.labels(),
        writable=settings.token is not None,
        urls=settings.allow_urls,
        approximate=images.index.approximate,
    )
