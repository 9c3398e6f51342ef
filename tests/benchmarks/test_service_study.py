"""The study of the service asks a real one, counts what goes wrong and reads a process's memory."""

import os

import pytest

from benchmarks.studies import service
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.service import ServiceSettings, create_app
from tests.services import running

ITEMS = 300


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service") / "random.index"
    service.write_random_index(folder, ITEMS)
    with (
        ImageIndex.open(folder, read_only=True, device="cpu") as index,
        running(create_app({"random": index}, ServiceSettings())) as address,
    ):
        yield int(address.rpartition(":")[2])


def test_requests_are_answered_and_timed(port):
    requests = {kind: some[:5] for kind, some in service.drawn_requests(ITEMS).items()}
    for kind, some in requests.items():
        measured = service.one_after_the_other(port, some, 5)
        assert (measured["search"], measured["searches"], measured["errors"]) == (kind, "5", 0)
        assert 0 < float(measured["p50, ms"]) <= float(measured["p95, ms"])
    by_id, by_image = service.all_at_once(port, requests, clients=3, seconds=0.2)
    assert (by_id["search"], by_image["search"], by_id["clients"]) == (service.BY_ID, service.BY_IMAGE, 3)
    assert by_id["errors"] == by_image["errors"] == 0


def test_what_is_not_answered_is_counted(port):
    client = service.Client(port)
    client.ask(service.Request(service.BY_ID, "GET", "/v1/search/nobody?k=20"))
    client.ask(service.Request(service.BY_ID, "GET", f"/v1/search/{service.item_id(0)}?k=3"))
    assert client.errors == {"status 404": 1, "answers missing": 1}
    nobody = service.Client(1)
    nobody.ask(service.Request(service.BY_ID, "GET", "/"))
    assert nobody.errors == {"ConnectionRefusedError": 1}


def test_memory_is_read_before_in_the_middle_and_after():
    result, memory = service.memory_during(os.getpid(), lambda: "done", 0.02)
    assert result == "done"
    assert [entry["memory of the server"] for entry in memory] == ["before", "in the middle", "after"]
    for entry in memory:
        assert float(entry["resident, MiB"].replace(",", "")) > float(entry["not of files, MiB"].replace(",", "")) > 1
