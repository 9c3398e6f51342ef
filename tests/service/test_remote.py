"""Pictures by their URLs, from a web server that is taken for a public one."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from fastapi import HTTPException

from deephash_pipeline.service import remote
from tests.service.pictures import picture


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


INSIDE = [
    *("0.1.2.3", "10.255.255.255", "100.64.0.0", "100.100.100.200", "127.0.0.53", "168.63.129.16", "169.254.170.2"),
    *("172.31.0.1", "192.0.0.1", "192.0.0.8", "192.0.0.170", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.251", "239.1.1.1", "240.0.0.1"),
    *("::", "::1", "::168.63.129.16", "::ffff:168.63.129.16", "::ffff:192.0.0.192", "64:ff9b::168.63.129.16"),
    *("64:ff9b::10.0.0.1", "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1", "2001:20::1", "2001:db8::1"),
    *("2002:a83f:8110::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1%eth0", "fec0::1", "ff02::1"),
]
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "168.63.129.15", "168.63.129.17", "172.32.0.1"),
    *("192.0.1.1", "198.20.0.1", "223.255.255.1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2001:4860:4860::8888"),
    *("2606:4700::1111", "2a00:1450::1"),
]


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_of_special_purposes_are_not_public_on_any_version_of_python(address):
    assert not remote.is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_their_neighbours_are_public(address):
    assert remote.is_public(address)
