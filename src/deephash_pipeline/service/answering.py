"""Questions to an index -> answers as `schemas` has them."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.engines import EngineError
from deephash_pipeline.engines.rows import bits_of, code_of_bits
from deephash_pipeline.hamming import Answers, HammingIndex, Item, ItemId
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hamming.conditions import Where
from deephash_pipeline.hamming.index_folder import PICTURES
from deephash_pipeline.hamming.reranking import SHORTLIST
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.photographs import ImageIndex, nearness
from deephash_pipeline.photographs.distinct import distinct
from deephash_pipeline.photographs.ordering import may_order
from deephash_pipeline.service import schemas
from deephash_pipeline.service.settings import ServiceSettings

ATTEMPTS = 10
Asked: TypeAlias = EncodedPixels | NDArray[Any]
"""A picture that is encoded, or a vector."""


def answer(
    name: str,
    items: CodedItems,
    question: schemas.Question,
    asked: Asked | ItemId,
    within: Where | None = None,
) -> schemas.Results:
    """Search an index, by a picture, by a vector where it has vectors, or by the id of an item; within a condition.

    Raises:
        InputError: there is no such item, or no item has a label.
    """
    began = time.perf_counter()
    item_id = asked if isinstance(asked, str | int) else None
    where = _conditions(items, question.label, getattr(question, "where", None)) | dict(within or {})
    given = {"distinct": question.distinct, "rescore": question.rescore, "radius": question.radius is not None}
    items.require(name, given | {"recall": question.recall is not None})
    if question.rescore and not may_order(items):
        raise InputError(f"rescore: {name} keeps no features, or what orders by them is not installed; leave it out")
    for attempt in range(ATTEMPTS):
        try:
            query, ask = _asking(items, question, asked, where or None)
            # One more tells whether there is more.
            wanted = question.k + 1
            if question.rescore and question.radius is not None:
                # By features, what is near by its code may come late.
                wanted = max(wanted, SHORTLIST)
            found = _within(distinct(items.index, ask, wanted) if question.distinct else ask(wanted), question.radius)
            nearest = found[: question.k]
            known = items.index.items([answered for answered, _, _ in nearest])
            break
        except EngineError:
            raise
        except InputError:
            # An answer may have been removed since; the next search does not find it.
            if attempt == ATTEMPTS - 1 or (item_id is not None and item_id not in items.index):
                raise
    of_query: dict[str, Any] = {"id": None if item_id is None else str(item_id)}
    if question.code or not items.width:
        of_query["code"] = bits_of(query, items.index.code_length)
    return schemas.Results(
        index=name,
        code_length=items.index.code_length,
        query=schemas.Query(**of_query),
        results=[
            schemas.Result(
                distance=distance,
                cosine=cosine,
                **_nearness(items, distance, cosine),
                **_fields(name, items, item, question.code),
            )
            for (_, distance, cosine), item in zip(nearest, known, strict=True)
        ],
        more=len(found) > question.k,
        approximate=items.index.approximate,
        milliseconds=round((time.perf_counter() - began) * 1000, 3),
    )


def _asking(
    items: CodedItems, question: schemas.Question, asked: Asked | ItemId, where: Where | None
) -> tuple[NDArray[np.uint8], Callable[[int], Answers]]:
    """The code of a query, and what gives as many answers to it as are asked for."""
    if question.rescore:
        assert isinstance(items, ImageIndex) and isinstance(items.index, HammingIndex)
        assert isinstance(asked, EncodedPixels | str | int)
        code = asked.codes[0] if isinstance(asked, EncodedPixels) else items.index.get(asked).code
        return code, lambda k: _by_cosine(items.search_rescored(asked, k, where))
    if isinstance(asked, str | int):
        return items.index.get(asked).code, partial(items.search_by_id, asked, where=where, **_recall(question))
    if isinstance(asked, EncodedPixels):
        return asked.codes[0], partial(items.index.search, asked.codes, where=where)
    return items.encode(asked)[0], partial(items.search, asked, where=where, **_recall(question))


def _nearness(items: CodedItems, distance: int, cosine: float | None) -> dict[str, Any]:
    """How near a picture is, as a person says it."""
    if items.width:
        return {}
    share = nearness.of_bits(distance, items.index.code_length) if cosine is None else nearness.of_cosine(cosine)
    return {"percent": nearness.percent(share), "near": nearness.word(share)}


def _conditions(items: CodedItems, labels: Sequence[str] | None, where: Where | None) -> dict[str, Any]:
    if labels and "label" in map(str.lower, where or {}):
        raise InputError("label: give it, or a condition on `label` in where, not both")
    return {**(where or {}), **(items.labelled(labels) if labels else {})}


def _recall(question: schemas.Question | schemas.VectorsQuestion) -> dict[str, Any]:
    return {} if question.recall is None else {"recall": question.recall}


def _by_cosine(found: Answers) -> Answers:
    """Answers with their cosines, as an index of vectors gives them."""
    return Answers(found.ids, found.distances, None if found.scores is None else 1 - found.scores)


def _within(found: Answers, radius: int | None) -> Sequence[tuple[ItemId, int, float | None]]:
    cosines = [None] * found.ids.size if found.scores is None else found.scores[0].tolist()
    answers = zip(*found.ids.tolist(), *found.distances.tolist(), cosines, strict=True)
    return [(name, distance, cosine) for name, distance, cosine in answers if radius is None or distance <= radius]


def answer_codes(items: CodedItems, question: schemas.CodesQuestion) -> schemas.CodesAnswers:
    """Search an index by codes.

    Raises:
        InputError: a code has another length, or no item has a label.
    """
    for bits in question.codes:
        if len(bits) != items.index.code_length:
            raise InputError(f"codes: one has {len(bits)} bits, this index has {items.index.code_length}")
    codes = np.stack([np.frombuffer(code_of_bits(bits), dtype=np.uint8) for bits in question.codes])
    found = items.index.search(codes, question.k, items.labelled(question.label) if question.label else None)
    ids = [list(map(str, of_code)) for of_code in found.ids.tolist()]
    return schemas.CodesAnswers(ids=ids, distances=found.distances.tolist())


def answer_vectors(name: str, items: CodedItems, question: schemas.VectorsQuestion) -> schemas.VectorsAnswers:
    """Search an index of vectors by several of them.

    Raises:
        InputError: it has none, they are of another width, or no item has a label.
    """
    items.require(name, {"where": True})
    widths = {len(vector) for vector in question.vectors}
    if widths != {items.width}:
        raise InputError(f"vectors: one has {max(widths ^ {items.width})} numbers, {name} has vectors of {items.width}")
    where = _conditions(items, question.label, question.where)
    found = items.search(np.array(question.vectors), question.k, where or None, **_recall(question))
    told = [items.index.items(ids) for ids in found.ids.tolist()] if question.metadata else []
    return schemas.VectorsAnswers(
        ids=[list(map(str, ids)) for ids in found.ids.tolist()],
        cosines=None if found.scores is None else found.scores.tolist(),
        metadata=[[items.told(item.metadata) or {} for item in each] for each in told] if question.metadata else None,
    )


def described(name: str, items: CodedItems, item: Item) -> schemas.Item:
    """An item of an index."""
    return schemas.Item(**_fields(name, items, item))


def _fields(name: str, items: CodedItems, item: Item, with_code: bool = False) -> dict[str, Any]:
    """What an answer tells of an item; of a vector its code only if that is asked for."""
    label, told = item.metadata.get("label"), items.told(item.metadata)
    fields = {"id": str(item.id), "label": None if label is None else str(label)}
    if with_code or told is None:
        fields["code"] = bits_of(item.code, items.index.code_length)
    if told is not None:
        return {**fields, "metadata": told}
    path = item.metadata.get("path")
    return {
        **fields,
        # Where a file lies on the machine of the service is nobody's business.
        "path": path if path is not None and path.startswith(f"{PICTURES}/") else None,
        "thumbnail": thumbnail_address(name, str(item.id)),
        "metadata": None,
    }


def thumbnail_address(name: str, item_id: str, size: int | None = None) -> str:
    """Where a small picture of an item is.

    Example:
        >>> thumbnail_address("photos.index", "cat/1.png", 96)
        '/v1/items/cat%2F1.png/thumbnail?index=photos.index&size=96'
    """
    where = {"index": name} if size is None else {"index": name, "size": size}
    return f"/v1/items/{quote(item_id, safe='')}/thumbnail?{urlencode(where)}"


def index_info(name: str, items: CodedItems, settings: ServiceSettings) -> schemas.IndexInfo:
    """What a page must know of an index."""
    return schemas.IndexInfo(
        name=name,
        items=len(items),
        images=len(items),
        code_length=items.index.code_length,
        hasher=items.maker,
        image_shape=items.image_shape,
        width=items.width,
        labels=items.labels(),
        rescores=may_order(items),
        nearness={word: most for most, word in nearness.NEAR},
        writable=settings.token is not None,
        urls=settings.allow_urls,
        approximate=items.index.approximate,
    )
