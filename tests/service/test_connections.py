"""Connections that send too much, too slowly, or not at all."""

import asyncio
import socket
import time
from functools import partial

import httpx
import pytest

from deephash_pipeline.service import ServiceSettings, create_app
from deephash_pipeline.service.observing import MOST_HEADER_BYTES, GuardedProtocol
from tests.service.pictures import ADDRESS
from tests.services import running

SECONDS = 0.5
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"


@pytest.fixture(scope="module")
def port(module_client):
    app = create_app(module_client.app.state.service.indexes, ServiceSettings(seconds=SECONDS))
    protocol = partial(GuardedProtocol, seconds=SECONDS)
    with running(app, http=protocol, h11_max_incomplete_event_size=MOST_HEADER_BYTES) as address:
        yield int(address.rpartition(":")[2])


@pytest.fixture
def connect(port):
    opened = []

    def connect(sent):
        opened.append(socket.create_connection(("127.0.0.1", port), timeout=30))
        opened[-1].sendall(sent)
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def everything(connection):
    received = b""
    while some := connection.recv(65_536):
        received += some
    return received


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        *((b"", b""), (HEAD, b""), (HEAD + b"\r\n" + HEAD, b"200"), (b"nonsense\r\n\r\n", b"400")),
        (HEAD + b"X: " + b"x" * MOST_HEADER_BYTES, b"400"),
        (HEAD + b"X: " + b"x" * MOST_HEADER_BYTES + b"\r\n\r\n", b"431"),
        (HEAD + b"X: " + b"x" * 50_000 + b"\r\nY: " + b"x" * 50_000 + b"\r\n\r\n", b"431"),
        (b"GET /healthz?" + b"x" * MOST_HEADER_BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"431"),
        *((POST % route, b"408") for route in (b"/v1/search", b"/v1/search/codes")),
    ],
    ids=[
        "nothing",
        "half a head",
        "half a second head",
        "nonsense",
        "long headers",
        "long",
        "two",
        "address",
        "search",
        "codes",
    ],
)
def test_a_request_that_does_not_arrive_is_ended_in_one_line(connect, sent, status):
    answer = everything(connect(sent))
    assert answer[9:12] == status
    assert b"\n" not in answer.partition(b"\r\n\r\n")[2].partition(b"HTTP/1.1")[0]


def test_headers_without_end_are_refused_while_they_arrive(connect):
    connection = connect(HEAD)
    with pytest.raises(OSError):
        for _ in range(1000):
            connection.sendall(b"X: " + b"x" * 100_000 + b"\r\n")


def test_a_connection_that_is_used_stays_open(port):
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        began = time.monotonic()
        while time.monotonic() < began + 2 * SECONDS:
            assert client.get("/healthz").status_code == client.head("/healthz").status_code == 200


@pytest.mark.parametrize("route", ["/v1/search", "/v1/search/codes"])
def test_a_client_that_hangs_up_is_no_fault_of_the_service(module_client, route):
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(messages)

    async def send(message):
        assert message.get("status", 499) == 499

    headers = [(b"host", ADDRESS.removeprefix("http://").encode()), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": route, "query_string": b"", "headers": headers}
    asyncio.run(module_client.app(scope, receive, send))
    counted = f'deephash_requests_total{{method="POST",route="{route}",status="499"}} 1.0'
    assert counted in module_client.get("/metrics").text
