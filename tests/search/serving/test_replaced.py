"""A service beside commands that put another index in the place of one it serves."""

import threading

import numpy as np
import pytest
from starlette.testclient import TestClient

from deephash_pipeline import ImageHasher
from deephash_pipeline.hashing import ITQ
from deephash_pipeline.search.images import ImageIndex, list_images, rebuilt
from deephash_pipeline.search.serving import app, create_app
from tests.search.serving.pictures import ADDRESS

ASKED = "3/0003.png"


@pytest.fixture(scope="module")
def hashers(photos):
    """Two that give one picture different codes."""
    first = ImageHasher.pretrained("digits-48", device="cpu")
    other = ITQ(48).fit(first.features([image.path for image in list_images([photos])[0]]))
    return first, ImageHasher(first.trunk, other, first.description.model_copy(update={"encoder": "itq"}), "cpu")


def add_photos(index, photos):
    found, _ = list_images([photos])
    index.add_files([image._replace(id=str(image.path.relative_to(photos))) for image in found])


def test_answers_are_of_the_former_index_or_of_the_new_one_and_soon_of_that(photos, tmp_path, hashers, monkeypatch):
    monkeypatch.setattr(app, "SECONDS_BETWEEN_LOOKS", 0.05)
    folder = tmp_path / "photos.index"
    with ImageIndex.create(folder, hashers[0]) as index:
        add_photos(index, photos)
    content = (photos / ASKED).read_bytes()
    before, after = ("".join(map(str, np.unpackbits(hasher.encode([content])[0]))) for hasher in hashers)
    assert before != after

    def opened():
        return ImageIndex.open(folder, read_only=True, device="cpu")

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
        with rebuilt(folder, hashers[1]) as made:
            add_photos(made, photos)
        asking.join(20)
        done.set()
        asking.join()
        assert not faults
        assert codes == sorted(codes, key=[before, after].index)
        assert set(codes) == {before, after}
        assert client.get("/v1/indexes").json()[0]["images"] == 60


def test_an_index_that_is_exchanged_while_it_is_opened_is_opened_again(photos, tmp_path, hashers, monkeypatch):
    folder = tmp_path / "photos.index"
    with ImageIndex.create(folder, hashers[0]) as index:
        add_photos(index, photos)
    exchanged = []

    def exchange(device):
        if not exchanged:
            exchanged.append(True)
            with rebuilt(folder, hashers[1]) as index:
                add_photos(index, photos)

    load = ImageHasher.load
    monkeypatch.setattr(ImageHasher, "load", lambda path, device="auto": (exchange(device), load(path, device))[1])
    with ImageIndex.open(folder, read_only=True, device="cpu") as index:
        assert index.search([photos / ASKED], 1)[0] == [(ASKED, 0)]
        assert not index.is_replaced
