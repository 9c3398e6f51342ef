"""Several services answer as one index."""

from contextlib import ExitStack

import httpx
import numpy as np
import pytest

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.search import HammingIndex
from deephash_pipeline.search.engines import EngineError, GatheredIndex, export_index, open_engine
from deephash_pipeline.search.engines.milvus import MilvusIndex
from deephash_pipeline.search.engines.postgres import PostgresIndex
from deephash_pipeline.search.images import ImageIndex
from tests.search.brute_force import random_codes
from tests.search.engines.conftest import small_index
from tests.search.engines.servers import service
from tests.search.serving.pictures import picture

SHARDS = 3


@pytest.fixture(scope="module")
def hasher():
    return ImageHasher.pretrained("digits-48", device="cpu")


@pytest.fixture(scope="module")
def whole():
    return small_index()


@pytest.fixture(scope="module")
def addresses(whole, hasher, tmp_path_factory):
    """Services of thirds of the index."""
    folder = tmp_path_factory.mktemp("pictures")
    with ExitStack() as stack:
        started = []
        for ids in np.array_split(np.array(list(whole), dtype=object), SHARDS):
            shard, items = HammingIndex(48), whole.items(ids)
            columns = {name: [item.metadata.get(name) for item in items] for name in ("label", "year")}
            shard.add(ids, np.stack([item.code for item in items]), columns)
            started.append(stack.enter_context(service({"photos": ImageIndex(hasher, shard, folder)})))
        yield started


@pytest.fixture(scope="module")
def gathered(addresses):
    engine = open_engine(",".join(addresses), "photos")
    yield engine
    engine.close()


def alike(ours, theirs):
    assert ours.ids.tolist() == theirs.ids.tolist()
    assert ours.distances.tolist() == theirs.distances.tolist()


def test_the_index_three_services_postgres_and_milvus_agree(whole, gathered, postgres_url, milvus_uri):
    queries = random_codes(np.random.default_rng(6), 60, 48)
    engines = [gathered, PostgresIndex(postgres_url, "agree"), MilvusIndex(milvus_uri, "agree")]
    for engine in engines[1:]:
        export_index(whole, engine)
    for where in (None, {"label": ["3", "5"]}):
        for engine in engines:
            alike(whole.search(queries, 100, where), engine.search(queries, 100, where))


def test_items_are_found_in_whichever_service_has_them(whole, gathered):
    ids = list(whole)[:: len(whole) // 7]
    for ours, theirs in zip(whole.items(ids), gathered.items(ids), strict=True):
        assert (ours.id, ours.code.tolist()) == (theirs.id, theirs.code.tolist())
        assert ours.metadata.get("label") == theirs.metadata.get("label")
        assert ours.id in gathered
    alike(whole.search_by_id(ids[3], 30), gathered.search_by_id(ids[3], 30))
    assert (len(gathered), gathered.code_length) == (len(whole), 48)
    assert gathered.values("label") == whole.values("label")
    assert gathered.sample(9, 1) == gathered.sample(9, 1)
    assert set(gathered.sample(9, 1)) <= set(whole)
    with pytest.raises(InputError, match="'nobody' is not in"):
        gathered.get("nobody")


def test_a_service_of_services_shows_their_pictures(hasher, tmp_path):
    with ImageIndex.create(tmp_path / "one.index", hasher) as one, ImageIndex.create(tmp_path / "two", hasher) as two:
        for index, name, row in ((one, "first", 3), (two, "second", 7)):
            (tmp_path / name).write_bytes(picture(row))
            index.add([name], [tmp_path / name], [str(tmp_path / name)], [name])
        with service({"a": one}) as first, service({"b": two}) as second:
            front = ImageIndex(hasher, GatheredIndex([first, second]))
            with service({"both": front}) as address, httpx.Client(base_url=address) as client:
                found = client.post("/v1/search", files={"image": ("p.png", picture(7))}).json()
                assert [result["id"] for result in found["results"]] == ["second", "first"]
                small = client.get(found["results"][0]["thumbnail"])
                assert small.headers["content-type"] == "image/png"
                assert small.content == httpx.get(f"{second}/v1/items/second/thumbnail").content
                assert client.get("/v1/indexes").json()[0]["labels"] == ["first", "second"]
            with pytest.raises(InputError, match="codes in another engine are read"):
                front.add(["third"], [tmp_path / "first"])
            front.close()


def test_what_is_wrong_with_a_service_is_one_line(addresses, gathered):
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:1 does not answer .* start the service"):
        GatheredIndex([addresses[0], "http://127.0.0.1:1"])
    with pytest.raises(InputError, match="has no index `other`; it has photos"):
        open_engine(f"{addresses[0]}#other", "photos")
    query = np.zeros((1, 6), dtype=np.uint8)
    with pytest.raises(EngineError, match="has refused the question: k: at most 1000"):
        gathered.search(query, 1001)
    with pytest.raises(InputError, match="services are asked for labels alone"):
        gathered.search(query, 3, {"year": 2000})
    with pytest.raises(InputError, match="'label', which has text, with 3"):
        gathered.search(query, 3, {"label": 3})
    assert gathered.search(query, 3, {"label": []}).ids.size == 0
    assert gathered.search(query, 3, {"label": "3"}).ids.shape == (1, 3)


def test_a_service_whose_engine_is_gone_says_so(hasher):
    with service({"part": ImageIndex(hasher, small_index(items=300, different=30))}) as part:
        engine = GatheredIndex([part])
    with service({"front": ImageIndex(hasher, small_index(items=300, different=30))}) as address:
        assert httpx.post(f"{address}/v1/search/codes", json={"codes": ["01"]}).status_code == 400
    with pytest.raises(EngineError, match="does not answer"):
        engine.search(np.zeros((1, 6), dtype=np.uint8), 3)
    engine.close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("redis://somewhere", "no engine at `redis://somewhere`: give postgresql"),
        ("milvus:http://127.0.0.1:1", "collection photos of Milvus cannot be asked"),
        ("postgresql://u:secret@127.0.0.1:1/x#other", r"table other of 127\.0\.0\.1 cannot be asked"),
    ],
)
def test_an_address_where_nobody_answers_is_named(address, message):
    with pytest.raises(InputError, match=message) as error:
        open_engine(address, "photos")
    assert "secret" not in str(error.value)


def test_only_postgres_searches_approximately(addresses):
    for address in (addresses[0], "milvus:http://127.0.0.1:1"):
        with pytest.raises(InputError, match="leave --approximate out"):
            open_engine(address, "photos", approximate=True)
