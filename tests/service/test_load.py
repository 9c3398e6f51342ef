"""Whatever strangers send, searches, health and metrics are answered."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from PIL import Image

from deephash_pipeline.images.decoding.apart import Decoders
from deephash_pipeline.service import ServiceSettings, create_app, requests
from tests.images.decoding.bombs import SLOW, jpeg_of_scans
from tests.service.pictures import THREE, WRITER, picture, upload
from tests.services import running

OTHERS = ["/healthz", "/metrics", f"/v1/search/{THREE}?k=3", f"/v1/items/{THREE}", f"/v1/items/{THREE}/thumbnail"]
SECONDS = 1.0


@pytest.fixture
def app(index):
    app = create_app({"photos": index}, ServiceSettings(allow_urls=True))
    yield app
    app.state.service.close()


@contextmanager
def while_asked(address, count, **request):
    """Send requests in as many threads; give a list that has their answers after the block."""
    answers = []
    with httpx.Client(base_url=address, timeout=60, limits=httpx.Limits(max_connections=count)) as client:
        client.get("/healthz")
        with ThreadPoolExecutor(count) as pool:
            sent = [pool.submit(client.post, "/v1/search", **request) for _ in range(count)]
            time.sleep(0.3)
            yield answers
            answers += [answer.result() for answer in sent]


def all_answer(address):
    """Ask for everything that needs no picture, three times at least and for a second; return the longest time.

    Of each route the quickest answer counts: beside other tests one may wait for the processor, but what blocks the
    service makes all of them wait.
    """
    seconds = {route: [] for route in OTHERS}
    with httpx.Client(base_url=address, timeout=60) as client:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or len(seconds[OTHERS[0]]) < 3:
            for route in OTHERS:
                began = time.monotonic()
                assert client.get(route).status_code == 200
                seconds[route].append(time.monotonic() - began)
    return max(map(min, seconds.values()))


def test_pictures_that_take_long_are_given_up_and_stop_no_search(app):
    app.state.service.decoders = Decoders(seconds=2)
    with running(app) as address, while_asked(address, 3, **upload(SLOW)) as answers:
        assert all_answer(address) < SECONDS
        # By a picture, too.
        assert httpx.post(f"{address}/v1/search", **upload(picture(3)), timeout=60).status_code == 200
        assert not answers
    assert [answer.status_code for answer in answers] == [400] * 3
    assert answers[0].json() == {"error": "image: not decoded within 2 seconds; save it anew"}


def test_pictures_of_many_scans_are_refused_at_once(app):
    bomb = jpeg_of_scans(4000, 8000)
    with running(app) as address, while_asked(address, 8, **upload(bomb)) as answers:
        assert all_answer(address) < SECONDS
    assert {answer.status_code for answer in answers} == {400}
    assert "8,001 scans" in answers[0].json()["error"]


def test_servers_that_say_nothing_hold_no_other_request(app, monkeypatch):
    ended = threading.Event()

    def silent(url, most_bytes, seconds):
        assert seconds <= 10
        ended.wait(60)
        return picture(3)

    monkeypatch.setattr(requests, "fetched", silent)
    with running(app) as address, while_asked(address, 45, json={"url": "http://example.com/a.png"}) as answers:
        assert all_answer(address) < SECONDS
        assert httpx.post(f"{address}/v1/search", **upload(picture(3)), timeout=60).status_code == 200
        ended.set()
    assert sorted(answer.status_code for answer in answers) == [200] * 16 + [429] * 29
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["retry-after"] == "1"
    assert refused.json() == {"error": "too many requests at once; ask again in a second"}


def test_a_full_queue_of_pictures_leaves_searches_without_one(client):
    service = client.app.state.service
    service.settings = service.settings.model_copy(update={"most_pending": 1})
    with service.admitted():
        assert client.post("/v1/search", **upload(picture(3))).status_code == 429
        assert client.get(f"/v1/search/{THREE}").status_code == 200


def test_a_decoder_that_is_ended_is_replaced(client):
    assert client.post("/v1/search", **upload(picture(3))).status_code == 200
    [idle] = client.app.state.service.decoders._idle
    idle.process.kill()
    idle.process.wait()
    assert client.post("/v1/search", **upload(picture(3))).status_code == 200


def test_a_picture_that_ends_its_decoder_is_refused(index, serve):
    client = serve({"photos": index})
    assert client.post("/v1/search", **upload(picture(3))).status_code == 200
    [working] = client.app.state.service.decoders._idle
    ending = threading.Timer(0.5, working.process.kill)
    ending.start()
    broken = client.post("/v1/search", **upload(SLOW))
    assert (broken.status_code, broken.json()) == (400, {"error": "image: decoding it has broken off; save it anew"})
    assert client.post("/v1/search", **upload(picture(3))).status_code == 200


def test_decoders_end_with_the_service(client):
    assert client.post("/v1/search", **upload(picture(3))).status_code == 200
    [idle] = client.app.state.service.decoders._idle
    client.app.state.service.close()
    assert idle.process.poll() is not None


def test_large_pictures_are_decoded_one_at_a_time_and_kept_small(index, serve):
    client = serve({"photos": index})
    large = picture(3, size=4200)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: client.post("/v1/search", **upload(large)).status_code, range(2)))
    # The other waits for two seconds, and is asked to come back.
    assert 200 in answers
    assert set(answers) <= {200, 503}
    assert client.post("/v1/items", **upload(large, id="large"), headers=WRITER).status_code == 201
    kept = index.path_of(index.index.get("large").metadata)
    with Image.open(kept) as small:
        assert small.size == (1024, 1024)
