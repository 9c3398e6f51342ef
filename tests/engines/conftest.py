import numpy as np
import pytest

from deephash_pipeline.engines.milvus import MilvusIndex
from deephash_pipeline.engines.postgres import PostgresIndex
from deephash_pipeline.hamming import HammingIndex
from tests.engines import servers
from tests.hamming.brute_force import random_codes

ITEMS = 3000


@pytest.fixture(scope="package")
def postgres_url(tmp_path_factory):
    with servers.postgres(tmp_path_factory.mktemp("postgres") / "data") as url:
        yield url


@pytest.fixture(scope="package")
def milvus_uri(tmp_path_factory):
    with servers.milvus(tmp_path_factory.mktemp("milvus")) as uri:
        yield uri


@pytest.fixture(scope="package", params=["postgres", "milvus"])
def connect(request):
    """Open a table or a collection of a server by its name."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        return lambda name, **options: PostgresIndex(url, name, **options)
    uri = request.getfixturevalue("milvus_uri")
    return lambda name: MilvusIndex(uri, name)


def small_index(code_length=48, items=ITEMS, different=300, seed=0):
    """Few different codes, so that there are many ties; some items are removed, some replaced."""
    rng = np.random.default_rng(seed)
    index = HammingIndex(code_length)
    names = [f"photos/{item:04d}.png" for item in range(items)]
    labels = [None if item % 50 == 0 else str(item % 10) for item in range(items)]
    years = [2000 + item % 30 for item in range(items)]
    index.add(names, random_codes(rng, items, code_length, different), {"label": labels, "year": years})
    index.remove(names[5:200:7])
    index.add(names[10:40:7], random_codes(rng, 5, code_length), {"label": ["x"] * 5, "year": [1] * 5}, replace=True)
    return index
