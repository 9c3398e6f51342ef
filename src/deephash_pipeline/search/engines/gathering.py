"""Scatter and gather: several search services, each with a part of the items, asked as one index."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.codes import check_codes
from deephash_pipeline.search import Answers, Item, ItemId, merge_answers
from deephash_pipeline.search.checks import checked_count
from deephash_pipeline.search.engines.base import EngineIndex
from deephash_pipeline.search.engines.clients import EngineError
from deephash_pipeline.search.engines.rows import bits_of, code_of_bits, plain_value
from deephash_pipeline.search.filters import Where, named_conditions

TIMEOUT = httpx.Timeout(60.0, connect=5.0)
LABEL = "label"


class GatheredIndex(EngineIndex):
    """Services of `deephash-pipeline serve`, each of which is asked every question.

    Answers are exact and in the order of (distance, service, insertion): where the services' indexes were filled one
    after the other, that of one index with all of their items.

    Args:
        addresses: of the services, ``http://host:port``, in the order of their items.
        name: of the index that each is asked for; None for its first.

    Raises:
        InputError: a service does not answer, or they have codes of different lengths.
    """

    text_ids = True

    def __init__(self, addresses: Sequence[str], name: str | None = None) -> None:
        self.place = ", ".join(addresses)
        self.name = name
        self._shards = [httpx.Client(base_url=address, timeout=TIMEOUT) for address in addresses]
        self._pool = ThreadPoolExecutor(4 * len(addresses), "gathering")
        lengths: set[int] = {about["code_length"] for about in self._about()}
        if len(lengths) > 1:
            self.close()
            raise InputError(f"{self.place} have codes of {sorted(lengths)} bits; give services of one length.")
        (self._code_length,) = lengths

    def _about(self) -> list[dict[str, Any]]:
        """What each service says of its index."""
        found = []
        for shard, indexes in zip(self._shards, self._scattered("GET", "/v1/indexes"), strict=True):
            there = [about for about in indexes if self.name in (None, about["name"])]
            if not there:
                names = ", ".join(about["name"] for about in indexes)
                raise InputError(f"{shard.base_url} has no index `{self.name}`; it has {names}.")
            found.append(there[0])
        return found

    @property
    def code_length(self) -> int:
        """Bits per code."""
        return self._code_length

    @property
    def columns(self) -> list[str]:
        """Names of the columns of metadata."""
        return [LABEL, "path"]

    def __len__(self) -> int:
        """Number of items."""
        return sum(about["images"] for about in self._about())

    def search(self, codes: NDArray[np.uint8], k: int, where: Where | None = None) -> Answers:
        """Find the k nearest items of every query; see `HammingIndex.search`.

        Args:
            codes: packed codes of the queries, uint8 (queries, ceil(code_length / 8)).
            k: how many; at most as many as every service allows.
            where: ``{"label": ...}``, a label or a list of them.

        Raises:
            InputError: an argument has another form, or a service does not answer.
        """
        queries = [bits_of(code, self.code_length) for code in check_codes(codes, self.code_length)]
        labels = _labels(where)
        if labels == []:
            return Answers(np.empty((len(queries), 0), dtype=object), np.empty((len(queries), 0), dtype=np.int32))
        question = {"codes": queries, "k": checked_count(k, "k"), "index": self.name, LABEL: labels}
        shards = [
            Answers(
                np.array(found["ids"], dtype=object).reshape(len(queries), -1),
                np.array(found["distances"], dtype=np.int32).reshape(len(queries), -1),
            )
            for found in self._scattered("POST", "/v1/search/codes", json=question)
        ]
        return merge_answers(shards, k)

    def found(self, ids: Sequence[ItemId]) -> dict[ItemId, Item]:
        """Those of some items that are there."""
        there: dict[ItemId, Item] = {}
        if ids:
            for found in self._scattered("POST", "/v1/lookup", json={"ids": list(ids), "index": self.name}):
                there = {item["id"]: _item(item) for item in found} | there
        return there

    def sample(self, count: int, seed: int) -> list[ItemId]:
        """Ids of some items drawn at random, or of all; equal seeds draw equal items of equal services."""
        question = {"count": checked_count(count, "count"), "seed": seed} | self._named()
        drawn = [item["id"] for found in self._scattered("GET", "/v1/items", params=question) for item in found]
        return list(map(str, np.random.default_rng(seed).permutation(sorted(drawn))[:count]))

    def values(self, column: str, most: int = 1000) -> list[Any]:
        """The labels there are, ascending.

        Raises:
            InputError: it is another column.
        """
        if column != LABEL:
            raise InputError(f"services say nothing of the values of {column!r}; ask for those of {LABEL!r}.")
        return sorted({label for about in self._about() for label in about["labels"]})[: checked_count(most, "most")]

    def thumbnail(self, item_id: str, size: int) -> tuple[bytes, str] | None:
        """A small picture of an item and its media type, from the service that has it; None if none has."""
        address = f"/v1/items/{quote(item_id, safe='')}/thumbnail"
        for shard in self._shards:
            answer = _answered(shard, lambda shard: shard.get(address, params={**self._named(), "size": size}))
            if answer.status_code == httpx.codes.OK:
                return answer.content, answer.headers["content-type"]
        return None

    def close(self) -> None:
        """Give back the connections."""
        self._pool.shutdown()
        for shard in self._shards:
            shard.close()

    def _named(self) -> dict[str, str]:
        return {} if self.name is None else {"index": self.name}

    def _scattered(self, method: str, address: str, **question: Any) -> list[Any]:
        """Ask all services at the same time; what each answers, in their order."""

        def ask(shard: httpx.Client) -> Any:
            answer = _answered(shard, lambda shard: shard.request(method, address, **question))
            try:
                content = answer.json()
            except ValueError as error:
                raise EngineError(f"{shard.base_url} answers no JSON: give the address of a search service.") from error
            if answer.status_code != httpx.codes.OK:
                raise EngineError(f"{shard.base_url} has refused the question: {content.get('error', content)}")
            return content

        return list(self._pool.map(ask, self._shards))


def _answered(shard: httpx.Client, ask: Callable[[httpx.Client], httpx.Response]) -> httpx.Response:
    try:
        return ask(shard)
    except httpx.HTTPError as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EngineError(
            f"{shard.base_url} does not answer ({reason}): start the service, or leave it out."
        ) from error


def _labels(where: Where | None) -> list[str] | None:
    if not where:
        return None
    wanted = where.get(LABEL) if isinstance(where, Mapping) and list(where) == [LABEL] else None
    if wanted is None or isinstance(wanted, Mapping):
        raise InputError(f"where is {where!r}; services are asked for labels alone, such as {{'label': ['3', '5']}}.")
    [(_, found)] = named_conditions(where, [LABEL], plain_value, lambda column, kind: kind == "text")
    labels = found if isinstance(found, list) else [found]
    if None in labels:
        raise InputError("where asks for no label, which services cannot; leave it out.")
    return labels


def _item(found: Mapping[str, Any]) -> Item:
    metadata = {name: found[name] for name in (LABEL, "path") if found[name] is not None}
    return Item(found["id"], np.frombuffer(code_of_bits(found["code"]), dtype=np.uint8), metadata)
