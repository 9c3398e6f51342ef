"""The HTTP service at a million images, and a hundred clients at once: `python -m benchmarks.studies.service`.

Starts `deephash-pipeline serve` of an index of random codes (the dearest to search), asks it by id and by picture from
this process, one client and then many, and reads what memory the server has.
"""

import base64
import http.client
import io
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
from PIL import Image

from benchmarks.documents import PROJECT, Benchmark, Results, Settings
from benchmarks.processes import MEBIBYTE, process_bytes
from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.photographs import ImageIndex

SEED = 20261122
ITEMS_AT_ONCE = 100_000
CLASSES = 10
PICTURES = 200
NEIGHBOURS = 20
SECONDS_TO_START = 300
SECONDS_OF_A_REQUEST = 30
PHOTO = (500, 375)
BY_ID, BY_IMAGE, BY_PHOTO = "by id", "by image, PNG of 32 x 32", "by image, JPEG of 500 x 375"


class Request(NamedTuple):
    """What is asked over HTTP."""

    kind: str
    method: str
    path: str
    body: bytes | None = None


class Server(NamedTuple):
    """A service that runs."""

    process: int
    port: int


def write_random_index(folder: Path, items: int) -> None:
    """Make an index of random codes under ids, labels and paths as those of files; there are no files."""
    rng = np.random.default_rng(SEED)
    with ImageIndex.create(folder, ImageHasher.pretrained("cifar10-48", "cpu")) as index:
        for first in range(0, items, ITEMS_AT_ONCE):
            rows = range(first, min(first + ITEMS_AT_ONCE, items))
            labels = [str(row % CLASSES) for row in rows]
            codes = rng.integers(0, 256, (len(rows), index.index.code_length // 8), dtype=np.uint8)
            ids = [item_id(row) for row in rows]
            index.add_codes(ids, codes, ids, labels)
        index.compact()


def item_id(row: int) -> str:
    """The id of an item."""
    return f"photos/{row % CLASSES}/{row:08d}.jpg"


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Start the service of an index as a process."""
    command = [sys.executable, "-m", "deephash_pipeline", "serve", folder, "--port=0", "--device=cpu"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        try:
            found = re.match(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
            if found is None:
                process.wait()
                log.seek(0)
                raise InputError(f"the service has not started: {log.read().decode()[-500:]}")
            # It listens before it has encoded and searched for the first time.
            httpx.get(f"{found.group()}healthz", timeout=SECONDS_TO_START)
            yield Server(process.pid, int(found.group(1)))
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def drawn_requests(items: int) -> dict[str, list[Request]]:
    """Draw requests of each kind."""
    rng = np.random.default_rng(SEED + 1)
    by_id = [
        Request(BY_ID, "GET", f"/v1/search/{item_id(row)}?k={NEIGHBOURS}")
        for row in rng.integers(0, items, 100 * PICTURES).tolist()
    ]

    def search(kind: str, size: tuple[int, int], form: str) -> Request:
        coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        buffer = io.BytesIO()
        coarse.resize(size, Image.Resampling.BICUBIC).save(buffer, form)
        fields = {"image": base64.b64encode(buffer.getvalue()).decode(), "k": NEIGHBOURS}
        return Request(kind, "POST", "/v1/search", json.dumps(fields).encode())

    kinds = {BY_IMAGE: ((32, 32), "PNG"), BY_PHOTO: (PHOTO, "JPEG")}
    return {BY_ID: by_id} | {kind: [search(kind, *form) for _ in range(PICTURES)] for kind, form in kinds.items()}


class Client:
    """One who asks, over a connection that stays open; what is wrong is counted by what it is."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_OF_A_REQUEST)
        self.seconds: dict[str, list[float]] = {}
        self.errors: Counter[str] = Counter()

    def ask(self, request: Request) -> None:
        """Ask, and note how long the answer took."""
        began = time.perf_counter()
        try:
            self.connection.request(
                request.method, request.path, request.body, {"Content-Type": "application/json"} if request.body else {}
            )
            response = self.connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.errors[type(error).__name__] += 1
            self.connection.close()
            return
        self.seconds.setdefault(request.kind, []).append(time.perf_counter() - began)
        if response.status != 200:
            self.errors[f"status {response.status}"] += 1
        elif len(json.loads(content).get("results", ())) != NEIGHBOURS:
            self.errors["answers missing"] += 1


def one_after_the_other(port: int, requests: list[Request], count: int) -> dict[str, Any]:
    """Ask so often, from one client."""
    client = Client(port)
    for request in requests[:PICTURES]:
        client.ask(request)
    client.seconds.clear()
    began = time.perf_counter()
    for number in range(count):
        client.ask(requests[number % len(requests)])
    return summary(requests[0].kind, [client], time.perf_counter() - began)


def all_at_once(port: int, requests: dict[str, list[Request]], clients: int, seconds: float) -> list[dict[str, Any]]:
    """Ask from many clients at a time, each in turn by id and by a picture; what each kind took."""
    asking = [Client(port) for _ in range(clients)]
    until = time.perf_counter() + seconds
    kinds = [requests[BY_ID], requests[BY_IMAGE]]

    def work(number: int) -> None:
        turn = number
        while time.perf_counter() < until:
            of_kind = kinds[turn % 2]
            asking[number].ask(of_kind[(turn * clients + number) % len(of_kind)])
            turn += 1

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    took = time.perf_counter() - began
    return [summary(kind, asking, took) for kind in (BY_ID, BY_IMAGE)]


def summary(kind: str, clients: list[Client], took: float) -> dict[str, Any]:
    """A row of the table, of one kind of request; errors are those of all kinds."""
    seconds = [each for client in clients for each in client.seconds.get(kind, [])]
    if not seconds:
        raise InputError(f"no request {kind} was answered: {sum((client.errors for client in clients), Counter())}")
    p50, p95 = (1000 * np.percentile(seconds, [50, 95])).tolist()
    return {
        "search": kind,
        "clients": len(clients),
        "searches": f"{len(seconds):,}",
        "a second": f"{len(seconds) / took:,.0f}",
        "p50, ms": f"{p50:.1f}",
        "p95, ms": f"{p95:.1f}",
        "errors": sum(client.errors.total() for client in clients),
    }


def memory_during(process: int, work: Callable[[], Any], seconds: float) -> tuple[Any, list[dict[str, str]]]:
    """Do some work of about so many seconds; the memory of another process before, in the middle and after."""
    memory: list[dict[str, str]] = []

    def note(when: str) -> None:
        resident, own = (f"{process_bytes(entry, process) / MEBIBYTE:,.0f}" for entry in ("VmRSS", "RssAnon"))
        memory.append({"memory of the server": when, "resident, MiB": resident, "not of files, MiB": own})

    note("before")
    middle = threading.Timer(seconds / 2, note, ["in the middle"])
    middle.start()
    result = work()
    middle.join()
    note("after")
    return result, memory


def _measure(settings: Settings) -> Results:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "random.index"
        write_random_index(folder, settings["items"])
        requests = drawn_requests(settings["items"])
        with serving(folder) as server:
            single = [one_after_the_other(server.port, each, settings["requests"]) for each in requests.values()]

            def ask_all(seconds: float) -> list[dict[str, Any]]:
                return all_at_once(server.port, requests, settings["clients"], seconds)

            # Threads, their buffers and what libraries keep are made by the first hundred clients.
            ask_all(settings["warm_up_seconds"])
            together, memory = memory_during(server.process, lambda: ask_all(settings["seconds"]), settings["seconds"])
    return {"tables": {"answered": [*single, *together], "memory": memory}}


SERVICE = Benchmark(
    "service",
    _measure,
    settings={"items": 1_000_000, "requests": 1000, "clients": 100, "seconds": 60.0, "warm_up_seconds": 10.0},
    quick={"items": 20_000, "requests": 50, "clients": 20, "seconds": 3.0, "warm_up_seconds": 1.0},
    distributions=("numpy", "torch", "fastapi", "uvicorn"),
    document=PROJECT / "docs" / "search-service.md",
)

if __name__ == "__main__":
    sys.exit(SERVICE.main(__doc__))
