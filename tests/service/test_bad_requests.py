"""Every bad request is a client's error with one line, and harms nobody."""

import gzip
import struct
import zlib

import pytest
from starlette.testclient import TestClient

from deephash_pipeline.service import ServiceSettings, create_app
from tests.service.pictures import ADDRESS, THREE, WRITER, in_base64, picture, upload


def png_of(width, height):
    """A PNG that says it is of some size, with next to no data."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b""))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def raw(content, kind):
    return {"content": content, "headers": {"content-type": kind}}


GOOD = picture(3)
TEXT = in_base64(GOOD)
MULTIPART = "multipart/form-data; boundary=x"

PICTURES = {
    "empty": (b"", 400),
    "svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 400),
    "postscript": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n", 400),
    "png header alone": (GOOD[:20], 400),
    "png without pixels": (png_of(10, 10), 400),
    "bomb": (png_of(60_000, 60_000), 413),
    "bomb beyond Pillow": (png_of(2**31 - 1, 2**31 - 1), 413),
    "more pixels than allowed": (picture(3, size=600), 413),
    "more bytes than allowed": (b"x" * 200_001, 413),
}
QUESTIONS = {
    "k of zero": {"k": "0"},
    "k too large": {"k": "1001"},
    "negative radius": {"radius": "-1"},
    "radius beyond every code": {"radius": "4097"},
    "unknown field": {"limit": "3"},
    "label too long": {"label": "x" * 201},
}
BODIES = {
    "k true": {"json": {"image": TEXT, "k": True}},
    "radius false": {"json": {"image": TEXT, "radius": False}},
    "half json": raw(b'{"image": ', "application/json"),
    "json list": {"json": [TEXT]},
    "lone surrogate": raw(b'{"image": "\\ud800"}', "application/json"),
    "json of 10,000 levels": raw(b"[" * 10_000, "application/json"),
    "no image": {"json": {"k": 3}},
    "no base64": {"json": {"image": "@@@@"}},
    "base64 not ascii": {"json": {"image": "\u00e4\u00e4\u00e4\u00e4"}},
    "an address": {"json": {"image": "http://127.0.0.1/healthz"}},
    "label a number": {"json": {"image": TEXT, "label": [3]}},
    "too many labels": {"json": {"image": TEXT, "label": ["3"] * 1001}},
    "unknown field of json": {"json": {"image": TEXT, "path": "/etc/passwd"}},
    "url and picture": {"json": {"image": TEXT, "url": "http://example.com/"}},
    "compressed json": raw(gzip.compress(f'{{"image": "{TEXT}"}}'.encode()), "application/json"),
    "bare picture": raw(GOOD, "image/png"),
    "no boundary": raw(b"--x--", "multipart/form-data"),
    "form broken off": raw(b'--x\r\nContent-Disposition: form-data; name="image"; filename="a\r\n', MULTIPART),
    "part without a name": raw(b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--\r\n", MULTIPART),
    "image a text field": raw(b'--x\r\nContent-Disposition: form-data; name="image"\r\n\r\na\r\n--x--\r\n', MULTIPART),
    "two pictures": {"files": [("image", ("a", GOOD)), ("image", ("b", GOOD))]},
    "file of another name": {"files": {"picture": ("p", GOOD)}},
    "file beside": {"files": {"image": ("p", GOOD), "k": ("k", b"3")}},
    "k twice": {"files": {"image": ("p", GOOD)}, "data": {"k": ["1", "2"]}},
    "a hundred fields": upload(GOOD, **{f"field{number}": "1" for number in range(100)}),
    "a field of a hundred kilobytes": upload(GOOD, k="1" * 100_000),
}
ADDRESSES = {
    "unknown item": ("GET", "/v1/items/nobody", 404),
    "unknown item to search by": ("GET", "/v1/search/nobody", 404),
    "thumbnail of a path": ("GET", "/v1/items/%2Fetc%2Fpasswd/thumbnail", 404),
    "id with a NUL": ("GET", "/v1/items/a%00b", 404),
    "id that is no UTF-8": ("GET", "/v1/items/%ff%fe", 404),
    "unknown index": ("GET", f"/v1/items/{THREE}?index=other", 404),
    "unknown index to search": ("GET", f"/v1/search/{THREE}?index=other", 404),
    "thumbnail too large": ("GET", f"/v1/items/{THREE}/thumbnail?size=100000", 422),
    "too many items": ("GET", "/v1/items?count=1001", 422),
    "items of an unknown index": ("GET", "/v1/items?index=other", 404),
    "items with an unknown option": ("GET", "/v1/items?k=3", 422),
    "thumbnail of an unknown item": ("GET", "/v1/items/nobody/thumbnail", 404),
    "search got": ("GET", "/v1/search", 405),
    "unknown item to remove": ("DELETE", "/v1/items/nobody", 404),
    "unknown index to remove from": ("DELETE", f"/v1/items/{THREE}?index=other", 404),
    "removal with an unknown option": ("DELETE", f"/v1/items/{THREE}?all=true", 422),
}
HOSTS = ["", "example.com", "127.0.0.1.example.com", "localhost.example.com:8000", "[::1]", "user@127.0.0.1"]
CODES = {
    "no codes": {},
    "codes no list": {"codes": "01"},
    "a code of another length": {"codes": ["01" * 23]},
    "a code with other digits": {"codes": ["2" * 48]},
    "too many codes": {"codes": ["01" * 24] * 1001},
    "codes of an unknown index": {"codes": ["01" * 24], "index": "other"},
    "codes with a large k": {"codes": ["01" * 24], "k": 1001},
    "codes with k true": {"codes": ["01" * 24], "k": True},
    "codes with an unknown field": {"codes": ["01" * 24], "radius": 3},
    "codes with an unknown label": {"codes": ["01" * 24], "label": ["none"]},
}
HOSTS_OF_NO_PUBLIC_ADDRESS = [
    *("127.0.0.1", "127.1", "0", "0.0.0.0", "2130706433", "localhost", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
    *("100.64.0.1", "169.254.169.254", "224.0.0.1", "255.255.255.255", "[::1]", "[::]", "[::ffff:127.0.0.1]"),
    *("[fe80::1]", "[fc00::1]", "[2002:7f00:1::]", "[2001:0:808:808::8000:1]", "[::127.0.0.1]", "[fec0::1]"),
    *(
        "168.63.129.16",
        "192.0.0.192",
        "[::ffff:168.63.129.16]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[::1",
        "user:word@example.com",
        "example.com:8080",
    ),
    *("example.com:99999", "example.com:x"),
]
URLS = [
    *("", "photo.png", "//host/photo.png", "file:///etc/passwd", "ftp://example.com/p.png", "gopher://example.com/"),
    *("data:image/png;base64,iVBORw0KGgo=", "http://", "http:///photo.png", "https://example.com:80/"),
    *("http://exa mple.com/", "http://example.com/\r\nHost: other", "http://" + "x" * 3000),
    *(f"http://{host}/" for host in HOSTS_OF_NO_PUBLIC_ADDRESS),
]
TOKENS = [
    *("", "Bearer", "Bearer ", "Bearer another-token-of-tests", "Basic a-token-of-the-tests", "a-token-of-the-tests"),
    b"Bearer \xff\xe4",
]
NEW_ITEMS = [
    *({"id": name} for name in ("", "x" * 1025, "a/thumbnail", "..", "a\nb", "a\x7f")),
    *({"label": "x" * 201}, {"replace": "perhaps"}, {"k": "1"}),
]


def refused(response, *codes):
    assert response.status_code in (codes or range(400, 500)), response.text
    assert list(response.json()) == ["error"]
    assert response.json()["error"]
    assert "\n" not in response.json()["error"]
    assert "object at 0x" not in response.json()["error"]
    return response


@pytest.fixture(scope="module")
def client(module_client):
    return module_client


@pytest.fixture(scope="module")
def url_client(client):
    settings = ServiceSettings(allow_urls=True)
    app = create_app(client.app.state.service.indexes, settings)
    return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # Pillow's, of the truncated one
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_that_is_none_or_too_large_is_refused(client, name):
    content, code = PICTURES[name]
    refused(client.post("/v1/search", **upload(content)), code)
    refused(client.post("/v1/items", **upload(content), headers=WRITER), code)
    refused(client.post("/v1/search", json={"image": in_base64(content)}), code)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_out_of_range_is_refused(client, name):
    refused(client.post("/v1/search", **upload(GOOD, **QUESTIONS[name])), 404, 422)
    refused(client.get(f"/v1/search/{THREE}", params=QUESTIONS[name]), 404, 422)


@pytest.mark.parametrize("name", BODIES)
def test_a_body_of_another_form_is_refused(client, name):
    refused(client.post("/v1/search", **BODIES[name]))
    body = dict(BODIES[name])
    refused(client.post("/v1/items", headers=WRITER | body.pop("headers", {}), **body))


@pytest.mark.parametrize("vector", [[True] * 8, ["1"] * 8, [1, 2, None], "1,2", [[1, 2]], {"0": 1}])
def test_a_vector_of_anything_but_numbers_is_refused(client, vector):
    answer = refused(client.post("/v1/search", json={"vector": vector}), 422)
    assert answer.json()["error"].startswith("vector")
    refused(client.post("/v1/items", json={"vector": vector}, headers=WRITER), 422)


@pytest.mark.parametrize("value", [True, None, [1]])
def test_metadata_of_anything_but_texts_and_numbers_is_refused(client, value):
    refused(client.post("/v1/items", json={"vector": [1], "metadata": {"a": value}}, headers=WRITER), 422)


@pytest.mark.parametrize("route", ["/v1/search", "/v1/search/codes", "/v1/items"])
@pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP, identity"])
def test_a_compressed_body_is_said_to_be_one(client, route, encoding):
    body = gzip.compress(b"{}")
    headers = WRITER | {"content-type": "application/json", "content-encoding": encoding}
    assert "compressed" in refused(client.post(route, content=body, headers=headers), 415).json()["error"]


def test_a_compressed_body_that_says_nothing_of_it_is_known_by_its_first_bytes(client):
    assert "compressed" in refused(client.post("/v1/search", **BODIES["compressed json"]), 415).json()["error"]


@pytest.mark.parametrize("broken", ["\n", "\r\n", " "])
def test_base64_may_be_broken_into_lines(client, broken):
    lines = broken.join(TEXT[place : place + 76] for place in range(0, len(TEXT), 76))
    for text in (lines, f"data:image/png;base64,{lines}\n"):
        assert client.post("/v1/search", json={"image": text}).status_code == 200


def test_a_body_that_is_said_to_be_as_it_is_is_taken(client):
    response = client.post("/v1/search", json={"image": TEXT}, headers={"content-encoding": "identity"})
    assert response.status_code == 200


@pytest.mark.parametrize("name", CODES)
def test_codes_that_are_none_are_refused(client, name):
    refused(client.post("/v1/search/codes", json=CODES[name]), 400, 404, 422)


@pytest.mark.parametrize("url", URLS)
def test_a_url_that_leads_to_no_public_address_is_refused(client, url_client, url):
    refused(client.post("/v1/search", json={"url": url}), 403)
    refused(url_client.post("/v1/search", json={"url": url}), 422)


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_that_leads_nowhere_is_refused(client, name):
    method, address, code = ADDRESSES[name]
    refused(client.request(method, address, headers=WRITER), code)


@pytest.mark.parametrize("host", HOSTS)
def test_a_service_that_is_addressed_by_another_name_refuses(client, host):
    assert client.get(f"/v1/search/{THREE}", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("header", TOKENS)
def test_who_has_no_token_may_not_write(client, header):
    headers = {"Authorization": header} if header else {}
    refused(client.post("/v1/items", **upload(GOOD, id="intruder"), headers=headers), 401)
    refused(client.delete(f"/v1/items/{THREE}", headers=headers), 401)
    assert client.get(f"/v1/items/{THREE}").status_code == 200
    assert client.get("/v1/items/intruder").status_code == 404


@pytest.mark.parametrize("fields", NEW_ITEMS)
def test_an_item_of_another_form_is_refused(client, fields):
    refused(client.post("/v1/items", **upload(GOOD, **fields), headers=WRITER), 422)


def test_a_body_that_grows_without_end_is_refused_while_it_arrives(client):
    sent = 0

    def endless():
        nonlocal sent
        while sent < 100 * 2**20:
            sent += 2**16
            yield b"x" * 2**16

    refused(client.post("/v1/search", content=endless(), headers={"content-type": "application/json"}), 413)


def test_nothing_of_all_that_has_changed_the_index(client):
    assert client.get("/healthz").json()["images"] == 60
    assert client.app.state.service.pending == 0
