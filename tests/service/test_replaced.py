"""A service beside commands that put another index in the place of one it serves."""

import gc
import threading
import time
import weakref
from functools import partial

import numpy as np
import pytest
from starlette.testclient import TestClient

from deephash_pipeline import ImageHasher
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hashing import ITQ
from deephash_pipeline.photographs import ImageIndex, add_files, list_images, rebuilt
from deephash_pipeline.service import ServiceSettings, app, create_app
from deephash_pipeline.service.service import Service
from tests.service.pictures import ADDRESS

ASKED = "3/0003.png"


@pytest.fixture(scope="module")
def hashers(photos):
    """Two that give one picture different codes."""
    first = ImageHasher.pretrained("digits-48", device="cpu")
    other = ITQ(48).fit(first.features([image.path for image in list_images([photos])[0]]))
    return first, ImageHasher(first.trunk, other, first.description.model_copy(update={"encoder": "itq"}), "cpu")


def add_photos(index, photos):
    found, _ = list_images([photos])
    add_files(index, [image._replace(id=str(image.path.relative_to(photos))) for image in found])


@pytest.fixture
def folder(photos, tmp_path, hashers):
    """An index made with the first of them."""
    with ImageIndex.create(tmp_path / "photos.index", hashers[0]) as index:
        add_photos(index, photos)
    return tmp_path / "photos.index"


@pytest.fixture
def opened(folder):
    return partial(ImageIndex.open, folder, read_only=True, device="cpu")


@pytest.fixture
def exchange(photos, folder):
    """Put an index made with another hasher in its place."""

    def exchange(hasher):
        with rebuilt(folder, hasher) as made:
            add_photos(made, photos)

    return exchange


def test_answers_are_of_the_former_index_or_of_the_new_one_and_soon_of_that(
    photos, opened, exchange, hashers, monkeypatch
):
    monkeypatch.setattr(app, "SECONDS_BETWEEN_LOOKS", 0.05)
    content = (photos / ASKED).read_bytes()
    before, after = ("".join(map(str, np.unpackbits(hasher.encode([content])[0]))) for hasher in hashers)
    assert before != after
    codes, faults, done = [], [], threading.Event()
    with opened() as index, TestClient(create_app({"p": index}, None, {"p": opened}), base_url=ADDRESS) as client:

        def ask():
            while not done.is_set() and after not in codes[-1:]:
                answered = client.post("/v1/search", files={"image": content}, data={"k": 1})
                nearest = answered.json().get("results", [{}])[0]
                if (answered.status_code, nearest.get("id"), nearest.get("distance")) != (200, ASKED, 0):
                    faults.append(answered.text)
                codes.append(answered.json().get("query", {}).get("code"))

        asking = threading.Thread(target=ask)
        asking.start()
        while not codes:
            pass
        exchange(hashers[1])
        asking.join(20)
        done.set()
        asking.join()
        assert not faults
        assert codes == sorted(codes, key=[before, after].index)
        assert set(codes) == {before, after}
        assert client.get("/v1/indexes").json()[0]["images"] == 60


def test_one_that_fails_is_tried_again_and_one_that_another_has_followed_is_not_kept(
    opened, exchange, hashers, monkeypatch
):
    with opened() as first:
        service = Service({"p": first}, ServiceSettings(seconds=0.01), {"p": opened})
        exchange(hashers[1])
        with monkeypatch.context() as patched:
            patched.setattr(HammingIndex, "search", None)
            service.follow()
        assert service.indexes == {"p": first} and list(service.encoders) == [first]
        service.follow()
        second = weakref.ref(service.indexes["p"])
        exchange(hashers[0])
        service.follow()
        soon = time.monotonic() + 30
        while second() is not None and time.monotonic() < soon:
            time.sleep(0.05)
            gc.collect()
        assert second() is None
        service.close()


def test_an_index_that_is_exchanged_while_it_is_opened_is_opened_again(photos, opened, exchange, hashers, monkeypatch):
    exchanged = []

    def exchange_once():
        if not exchanged:
            exchanged.append(True)
            exchange(hashers[1])

    load = ImageHasher.load
    monkeypatch.setattr(ImageHasher, "load", lambda path, device="auto": (exchange_once(), load(path, device))[1])
    with opened() as index:
        assert index.search([photos / ASKED], 1)[0] == [(ASKED, 0)]
        assert not index.is_replaced
