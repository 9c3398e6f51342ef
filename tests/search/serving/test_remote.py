"""Pictures by their URLs, from a web server that is taken for a public one."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from fastapi import HTTPException

from deephash_pipeline.search.serving import remote
from tests.search.serving.pictures import picture


class Web(BaseHTTPRequestHandler):
    """A few addresses, and where they lead."""

    def do_GET(self):
        if self.path == "/drip":
            self.send_response(200)
            self.flush_headers()
            while True:
                try:
                    self.wfile.write(b"X-More: 1\r\n")
                    time.sleep(0.05)
                except OSError:
                    return
        moved = {"/moved": "/photo.png?size=1", "/inside": "http://inside.example/photo.png"}
        moved |= {"/file": "file:///etc/passwd", "/round": "/round"}
        if self.path in moved:
            self.send_response(302)
            self.send_header("Location", moved[self.path])
            self.end_headers()
            return
        self.send_response(404 if self.path == "/gone" else 200)
        self.end_headers()
        self.wfile.write(picture(3) if self.path.startswith("/photo") else b"x" * 50_000)

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def web(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Web) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(remote, "PORTS", {"http": server.server_port, "https": 443})
        inside = {"outside.example": ["127.0.0.1"], "inside.example": ["127.0.0.2"]}
        monkeypatch.setattr(remote, "addresses_of", lambda host, port: inside[host])
        monkeypatch.setattr(remote, "is_public", lambda address: address == "127.0.0.1")
        yield lambda path, **limits: remote.fetched(
            f"http://outside.example{path}", **({"most_bytes": 10_000, "seconds": 5} | limits)
        )
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["/photo.png", "/moved"])
def test_a_picture_is_read_also_after_a_redirect(web, path):
    assert web(path) == picture(3)


@pytest.mark.parametrize(
    ("path", "status"), [("/inside", 422), ("/file", 422), ("/round", 400), ("/gone", 400), ("/large", 413)]
)
def test_what_leads_inside_nowhere_or_too_far_is_refused(web, path, status):
    with pytest.raises(HTTPException) as refused:
        web(path)
    assert refused.value.status_code == status


def test_a_server_that_never_ends_is_left(web):
    began = time.monotonic()
    with pytest.raises(HTTPException) as refused:
        web("/drip", seconds=0.5)
    assert refused.value.status_code == 408
    assert time.monotonic() - began < 4


def test_a_name_with_one_private_address_among_public_ones_is_refused(monkeypatch):
    monkeypatch.setattr(remote, "addresses_of", lambda host, port: ["8.8.8.8", "10.0.0.1"])
    with pytest.raises(HTTPException, match="no public address"):
        remote.fetched("http://mixed.example/", 1000, 1)
