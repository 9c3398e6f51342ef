"""The service as a process: what it says, how it ends, and what `kill -9` leaves."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest

from deephash_pipeline import ImageHasher
from deephash_pipeline.photographs import ImageIndex
from tests.service.pictures import TOKEN, WRITER, picture

CLIENTS = 4
ACKNOWLEDGED_BEFORE_THE_KILL = 40


@pytest.fixture
def folder(tmp_path):
    ImageIndex.create(tmp_path / "new.index", ImageHasher.pretrained("digits-48", device="cpu")).close()
    (tmp_path / "token").write_text(TOKEN + "\n")
    return tmp_path


@pytest.fixture
def start(folder):
    processes = []

    def start(*arguments):
        command = [sys.executable, "-m", "deephash_pipeline", "serve", "new.index", "--port=0", "--device=cpu"]
        process = subprocess.Popen(
            [*command, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        processes.append(process)
        line = process.stdout.readline()
        return process, re.match(r"(http://127\.0\.0\.1:\d+)/ ", line).group(1)

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_each_request_is_a_line_of_json(start):
    process, address = start()
    with httpx.Client(base_url=address, timeout=60) as client:
        client.get("/healthz")
        client.post("/v1/search", files={"image": picture(3)})
        client.get("/v1/items/nobody")
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0].splitlines()
    lines = [json.loads(line) for line in said]
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("GET", "/healthz", 200),
        ("POST", "/v1/search", 200),
        ("GET", "/v1/items/{item_id:path}", 404),
    ]
    assert all(0 <= line["seconds"] < 60 for line in lines)


@pytest.mark.complete
def test_no_acknowledged_picture_is_lost_by_kill_9_and_a_signal_ends_the_service_in_order(start, folder):
    process, address = start("--token-file=token")
    acknowledged = []
    enough = threading.Event()

    def add(client_number):
        with httpx.Client(base_url=address, headers=WRITER, timeout=60) as client:
            for row in range(client_number, 1700, CLIENTS):
                try:
                    response = client.post(
                        "/v1/items", files={"image": picture(row % 100)}, data={"id": f"item/{row}", "label": str(row)}
                    )
                except httpx.TransportError:
                    return
                assert response.status_code == 201, response.text
                acknowledged.append(f"item/{row}")
                if len(acknowledged) >= ACKNOWLEDGED_BEFORE_THE_KILL:
                    enough.set()

    clients = [threading.Thread(target=add, args=(number,)) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    assert enough.wait(120)
    os.kill(process.pid, signal.SIGKILL)
    for client in clients:
        client.join()

    with ImageIndex.open(folder / "new.index", read_only=True) as index:
        assert set(acknowledged) <= set(index)
        assert len(acknowledged) <= len(index) <= len(acknowledged) + CLIENTS
        for item in index.index.items(list(index)):
            assert item.metadata["label"] == item.id.removeprefix("item/")
            assert index.path_of(item.metadata).read_bytes().startswith(b"\x89PNG")
    again, address = start("--token-file=token")
    assert httpx.get(f"{address}/v1/search/{acknowledged[0]}", timeout=60).status_code == 200
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as half:
        half.sendall(
            b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
            b"Content-Type: application/json\r\n\r\n{"
        )
        again.send_signal(signal.SIGTERM)
        again.wait(60)
        assert half.recv(12) == b"HTTP/1.1 503"
    assert "Traceback" not in again.stdout.read()
    ImageIndex.open(folder / "new.index").close()
