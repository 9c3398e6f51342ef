"""What the service answers."""

import errno
import io
import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.engines import EngineError
from deephash_pipeline.photographs import ImageIndex, add_files, list_images
from deephash_pipeline.photographs.nearness import NEAR
from deephash_pipeline.service import ServiceSettings, create_app
from deephash_pipeline.service.pictures import Thumbnails
from deephash_pipeline.service.service import BatchingEncoder
from tests.service.pictures import ADDRESS, THREE, WRITER, in_base64, picture, upload


def added(client, content, **fields):
    response = client.post("/v1/items", headers=WRITER, **upload(content, **fields))
    assert response.status_code == 201, response.text
    return response.json()


def test_base64_and_upload_are_answered_alike(client):
    sent = client.post("/v1/search", **upload(picture(7), k=9)).json()
    for image in (in_base64(picture(7)), f"data:image/png;base64,{in_base64(picture(7))}"):
        assert client.post("/v1/search", json={"image": image, "k": 9}).json()["results"] == sent["results"]


def test_answers_are_those_of_the_index_and_distances_the_bits_that_differ(client, index):
    answers = index.search(Image.open(io.BytesIO(picture(11))), k=60)[0]
    found = client.post("/v1/search", **upload(picture(11), k=60)).json()
    assert [(result["id"], result["distance"]) for result in found["results"]] == answers
    assert len(found["query"]["code"]) == found["code_length"] == 48
    for result in found["results"]:
        differing = sum(ours != its for ours, its in zip(found["query"]["code"], result["code"], strict=True))
        assert differing == result["distance"]
        assert result["percent"] == max(0, round(100 * (1 - 2 * differing / 48)))
        assert result["near"] == next((word for most, word in NEAR if differing / 48 <= most), "different")


def test_copies_are_hidden_where_that_is_asked(client, index, photos, tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes((photos.parent / THREE).read_bytes())
    add_files(index, list_images([tmp_path / f"{number}.png" for number in range(3)])[0])
    everything, distinct = (
        [row["id"] for row in client.post("/v1/search", **upload(picture(11), k=63, distinct=asked)).json()["results"]]
        for asked in (False, True)
    )
    assert len(everything) == 63
    assert distinct == [name for name in everything if not name.startswith(str(tmp_path))]
    by_id = client.get(f"/v1/search/{quote(THREE, safe='')}?k=63&distinct=true").json()["results"]
    assert len(by_id) == 60  # one of the three copies stands for them


def test_an_item_finds_others(client):
    found = client.get(f"/v1/search/{quote(THREE, safe='')}", params={"k": 59}).json()
    assert found["query"]["id"] == THREE
    assert len({result["id"] for result in found["results"]} - {THREE}) == 59 and not found["more"]
    assert client.get(f"/v1/search/{THREE}", params={"k": 59}).json()["results"] == found["results"]


def test_a_radius_and_labels_narrow_a_search(client):
    everything = client.post("/v1/search", **upload(picture(3), k=60)).json()
    near = client.post("/v1/search", **upload(picture(3), k=60, radius=14)).json()
    assert near["results"] == [result for result in everything["results"] if result["distance"] <= 14]
    assert 0 < len(near["results"]) < 60
    assert not near["more"]
    assert client.post("/v1/search", **upload(picture(3), k=1, radius=14)).json()["more"]
    labelled = client.get(f"/v1/search/{THREE}", params={"label": ["4", "5"], "k": 60}).json()
    assert {result["label"] for result in labelled["results"]} == {"4", "5"}
    for k, more in ((len(labelled["results"]), False), (len(labelled["results"]) - 1, True)):
        assert client.get(f"/v1/search/{THREE}", params={"label": ["4", "5"], "k": k}).json()["more"] == more
    unknown = client.get(f"/v1/search/{THREE}", params={"label": "none"})
    assert unknown.status_code == 400
    assert "no image has the label" in unknown.text


def test_an_item_is_described_and_shown(client):
    item = client.get(f"/v1/items/{quote(THREE, safe='')}").json()
    assert (item["id"], item["label"], len(item["code"])) == (THREE, "3", 48)
    small = client.get(item["thumbnail"])
    assert small.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(small.content)).size == (8, 8)


def test_a_thumbnail_of_a_file_larger_than_uploads_is_small_and_is_sent_again_when_the_file_has_changed(
    client, index, tmp_path
):
    (tmp_path / "large.jpg").write_bytes(picture(2, size=600, form="JPEG"))
    add_files(index, list_images([tmp_path / "large.jpg"])[0])
    address = f"/v1/items/{quote(str(tmp_path / 'large.jpg'), safe='')}/thumbnail?size=64"
    small = client.get(address)
    assert (small.headers["content-type"], Image.open(io.BytesIO(small.content)).size) == ("image/jpeg", (64, 64))
    known = {"If-None-Match": small.headers["ETag"]}
    assert client.get(address, headers=known).status_code == 304
    (tmp_path / "large.jpg").write_bytes(picture(3, size=600, form="JPEG"))
    assert client.get(address, headers=known).content not in (small.content, b"")


def test_thumbnails_are_kept_as_far_as_they_are_few_bytes(photos):
    kept, paths = Thumbnails(most_bytes=1000), sorted(photos.rglob("*.png"))
    made = [kept.of(path, 64, str(path)) for path in paths]
    again = [kept.of(path, 64, str(path)) for path in reversed(paths)]
    assert again == made[::-1] and again[0] is made[-1] and again[-1] is not made[0]
    assert 0 < kept.bytes <= 1000


def test_an_added_picture_is_found_at_once_and_a_removed_one_no_more(client, index):
    item = added(client, picture(100), id="new/one", label="mine")
    found = client.post("/v1/search", **upload(picture(100), label="mine")).json()["results"]
    assert [(result["id"], result["distance"]) for result in found] == [("new/one", 0)]
    assert Image.open(index.folder / item["path"]).size == (8, 8)
    assert client.delete("/v1/items/new%2Fone", headers=WRITER).json() == {"id": "new/one"}
    assert client.get("/v1/items/new%2Fone").status_code == 404
    assert client.post("/v1/search", **upload(picture(100), label="mine")).json()["results"] == []
    assert list((index.folder / "pictures").iterdir()) == []


def test_no_path_of_the_machine_is_told(client, index, photos):
    added(client, picture(100), id="new")
    answers = [client.get(address) for address in ("/v1/items?count=1000", "/v1/search/new?k=60", "/v1/indexes")]
    for told in (answer.text for answer in answers):
        assert str(photos) not in told
        assert str(index.folder) not in told


@pytest.mark.parametrize(
    ("place", "fault", "status"),
    [
        ("deephash_pipeline.photographs.stored.open", OSError(errno.ENOSPC, "full", "/a/place"), 507),
        ("deephash_pipeline.photographs.stored.open", OSError(errno.EROFS, "read-only", "/a/place"), 503),
        ("deephash_pipeline.hamming.store.Store.add", sqlite3.OperationalError("database or disk is full"), 507),
        ("deephash_pipeline.hamming.store.Store.add", sqlite3.OperationalError("a readonly database"), 503),
        ("deephash_pipeline.hamming.store.Store.add", EngineError("the engine does not answer"), 503),
    ],
)
def test_a_disk_that_takes_nothing_is_no_fault_of_the_client(client, index, monkeypatch, place, fault, status):
    def fail(*_arguments, **_named):
        raise fault

    monkeypatch.setattr(place, fail, raising=False)
    answer = client.post("/v1/items", headers=WRITER, **upload(picture(1), id="one"))
    assert answer.status_code == status
    assert not {"/a/place", str(index.folder)} & set(answer.json()["error"].split())
    assert "\n" not in answer.json()["error"]
    assert client.get("/v1/items/one").status_code == 404
    assert client.post("/v1/search", **upload(picture(1))).status_code == 200


def test_a_picture_is_replaced_only_when_asked(client, index):
    added(client, picture(100), id="one")
    again = client.post("/v1/items", headers=WRITER, **upload(picture(101), id="one"))
    assert again.status_code == 409
    added(client, picture(101), id="one", label="other", replace="true")
    found = client.post("/v1/search", **upload(picture(101), label="other")).json()["results"]
    assert [(result["id"], result["distance"]) for result in found] == [("one", 0)]
    with ThreadPoolExecutor(2) as clients:
        list(clients.map(lambda row: added(client, picture(row), id="one", replace="true"), range(20)))
    assert len(list((index.folder / "pictures").iterdir())) == 1


def test_a_service_without_a_token_sees_what_another_process_adds(index):
    with ImageIndex.open(index.folder, read_only=True) as reading:
        client = TestClient(create_app({"photos": reading}), base_url=ADDRESS)
        index.add(["new"], Image.open(io.BytesIO(picture(100))), labels=["mine"])
        assert client.get("/v1/items/new").json()["label"] == "mine"
        assert client.post("/v1/items", headers=WRITER, **upload(picture(1))).status_code == 403


def test_several_indexes_are_served(build, serve):
    with build("a") as first, build("b") as second:
        second.remove([THREE])
        client = serve({"a": first, "b": second})
        about = client.get("/v1/indexes").json()
        told = [(index["name"], index["images"], index["writable"]) for index in about]
        assert told == [("a", 60, True), ("b", 59, True)]
        assert about[0]["labels"] == list("0123456789")
        assert client.get(f"/v1/items/{THREE}").status_code == 200
        assert client.get(f"/v1/items/{THREE}", params={"index": "b"}).status_code == 404
        assert client.post("/v1/search", **upload(picture(3), index="b")).json()["index"] == "b"


def test_one_request_too_many_is_asked_to_wait(index, serve):
    client = serve({"photos": index}, most_pending=1)
    with client.app.state.service.admitted():
        refused = client.post("/v1/search", **upload(picture(3)))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert client.post("/v1/search", **upload(picture(3))).status_code == 200


def test_twenty_clients_at_once_get_what_one_gets(index, serve):
    with serve({"photos": index}) as client:
        alone = [client.post("/v1/search", **upload(picture(row), k=9)).json()["results"] for row in range(20)]

        def one(row):
            results = [client.post("/v1/search", **upload(picture(row), k=9)).json()["results"] for _ in range(3)]
            return results == [alone[row]] * 3

        with ThreadPoolExecutor(20) as clients:
            assert all(clients.map(one, range(20)))
        assert client.app.state.service.pending == 0


def test_pictures_that_arrive_together_are_encoded_together(index):
    encoder = BatchingEncoder(index.hasher, batch_size=8)
    pixels = index.hasher.description.image_shape
    first_under_way = threading.Event()
    encode_batches = index.hasher.encode_batches

    def slow(images):
        first_under_way.wait(10)
        return encode_batches(images)

    index.hasher.encode_batches = slow
    futures = [encoder.submit(np.full(pixels, shade, dtype=np.uint8)) for shade in range(17)]
    first_under_way.set()
    codes = np.concatenate([future.result(30).codes for future in futures])
    encoder.close()
    assert encoder.encoded == 17
    assert encoder.batches <= 4
    index.hasher.encode_batches = encode_batches
    expected = index.hasher.encode(np.stack([np.full(pixels, shade, dtype=np.uint8) for shade in range(17)]))
    assert np.array_equal(codes, expected)


def test_a_failed_encoding_fails_its_requests_and_no_others(index):
    encoder = BatchingEncoder(index.hasher, batch_size=8)
    with pytest.raises(InputError, match="give uint8"):
        encoder.submit(np.zeros((1, 28, 28), dtype=np.float32)).result(30)
    assert encoder.submit(np.zeros((1, 28, 28), dtype=np.uint8)).result(30).codes.shape == (1, 6)
    encoder.close()


def test_requests_are_counted_timed_and_logged(client, caplog):
    with caplog.at_level("INFO", logger="deephash_pipeline.service"):
        client.post("/v1/search", **upload(picture(3)))
        client.get("/v1/items/nobody")
    numbers = client.get("/metrics").text
    assert 'deephash_requests_total{method="POST",route="/v1/search",status="200"} 1.0' in numbers
    client.request("INVENTED", "/")
    assert "INVENTED" not in client.get("/metrics").text
    assert 'route="/v1/items/{item_id:path}",status="404"} 1.0' in numbers
    assert 'deephash_images{index="photos"} 60.0' in numbers
    assert 'deephash_encoded_images_total{index="photos"} 1.0' in numbers
    lines = [json.loads(record.message) for record in caplog.records][:2]
    told = [(line["route"], line["status"]) for line in lines]
    assert told == [("/v1/search", 200), ("/v1/items/{item_id:path}", 404)]


def test_the_interface_describes_itself(client):
    description = client.get("/openapi.json").json()
    assert {"/v1/search", "/v1/search/{item_id}", "/v1/items", "/v1/items/{item_id}"} <= set(description["paths"])
    body = description["paths"]["/v1/search"]["post"]["requestBody"]["content"]
    assert body["application/json"]["schema"]["properties"]["image"]["examples"]
    assert description["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_another_name_of_the_host_is_refused(index):
    client = TestClient(create_app({"photos": index}), base_url="http://evil.example")
    assert client.get("/v1/indexes").status_code == 400
    anywhere = TestClient(create_app({"photos": index}, ServiceSettings(hosts=["*"])), base_url="http://evil.example")
    assert anywhere.get("/v1/indexes").status_code == 200


def test_pictures_are_drawn_at_random_and_again_by_the_same_seed(client):
    drawn = [
        [item["id"] for item in client.get("/v1/items", params={"count": 9, "seed": seed}).json()] for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 9
    assert len(client.get("/v1/items", params={"count": 1000}).json()) == 60


def test_a_photograph_has_the_code_it_has_as_a_file(client, index, tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    noise = np.random.default_rng(0).integers(0, 256, (300, 420), dtype=np.uint8)
    Image.fromarray(noise).resize((420, 300)).save(tmp_path / "photo.jpg", exif=turned)
    content = (tmp_path / "photo.jpg").read_bytes()
    item = added(client, content, id="photo")
    assert index.index.get("photo").code.tolist() == index.hasher.encode(tmp_path / "photo.jpg")[0].tolist()
    assert Image.open(index.folder / item["path"]).size == (300, 420)
    assert Image.open(io.BytesIO(client.get(item["thumbnail"]).content)).size == (137, 192)
