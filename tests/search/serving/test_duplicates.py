"""The page of duplicates of a served index."""

import re
import time

import httpx
import numpy as np
import pytest
from PIL import ImageOps

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.search.images import ImageIndex, list_images
from deephash_pipeline.search.serving import create_app
from deephash_pipeline.search.vectors import VectorIndex
from tests.cli.test_duplicates import build_keeping_features, computed, scene  # noqa: F401
from tests.cli.test_photographs import extractor  # noqa: F401 - a small network in the place of that for photographs
from tests.services import dumped, in_a_browser, running


@pytest.fixture
def scenes(tmp_path, monkeypatch, extractor):  # noqa: F811
    """An index of three scenes, of the first of which there is a mirror image."""
    monkeypatch.setattr(FeatureExtractor, "pretrained", lambda **options: extractor)
    folder = tmp_path / "photos"
    folder.mkdir()
    for seed in (1, 2, 3):
        scene(seed, (320, 240)).save(folder / f"{seed} <b>.png")
    ImageOps.mirror(scene(1, (320, 240))).resize((160, 120)).save(folder / "mirror.png")
    images, _ = list_images([folder])
    with ImageIndex.create(tmp_path / "photos.index", ImageHasher.pretrained("digits-48", device="cpu")) as index:
        index.add_files([image._replace(id=image.path.name) for image in images])
        yield index


def found(client):
    """The page, once there are groups."""
    for _ in range(600):
        page = client.get("/duplicates")
        assert page.status_code == 200, page.text
        if 'http-equiv="refresh"' not in page.text:
            return page.text
        time.sleep(0.05)
    raise AssertionError("it is still looking")


def test_groups_are_shown_with_thumbnails_and_names_and_without_paths(scenes, serve):
    client = serve({"a&b": scenes})
    page = found(client)
    assert "1 group of one picture among 4 files" in page
    assert re.findall(r'data-path="([^"]+)"', page) == ["1 &lt;b&gt;.png", "mirror.png"]
    [kept, removed] = re.findall(r'src="(/v1/[^"]+)"', page)
    assert client.get(kept.replace("&amp;", "&")).headers["content-type"] == "image/jpeg"
    assert "mirror.png" in removed
    assert str(scenes.folder.parent) not in page


def test_it_looks_again_only_when_asked(scenes, serve):
    client = serve({"photos": scenes})
    found(client)
    scenes.remove(["mirror.png"])
    assert "1 group " in found(client)
    client.get("/duplicates?again=true")
    assert "0 groups" in found(client)


def test_features_that_the_index_keeps_are_not_computed_again(scenes, computed, serve, tmp_path, extractor):  # noqa: F811
    build_keeping_features(tmp_path / "x.index", tmp_path / "photos", extractor)
    with ImageIndex.open(tmp_path / "x.index", read_only=True, device="cpu") as images:
        client = serve({"photos": images})
        computed.clear()  # the service has warmed up
        assert "1 group of one picture among 4 files" in found(client)
    assert sum(computed) == 0


def test_what_fails_is_said_and_tried_again(scenes, serve, monkeypatch, extractor):  # noqa: F811
    def missing(**options):
        raise InputError("install it")

    client = serve({"photos": scenes})
    with monkeypatch.context() as patched:
        patched.setattr(FeatureExtractor, "pretrained", missing)
        while (failed := client.get("/duplicates")).status_code == 200:
            time.sleep(0.05)
    assert (failed.status_code, failed.json()) == (400, {"error": "install it"})
    assert "1 group " in found(client)


def test_vectors_have_no_duplicates(serve, tmp_path):
    vectors = np.random.default_rng(0).standard_normal((300, 16), dtype=np.float32)
    with VectorIndex.build(tmp_path / "vectors.index", vectors, code_length=16) as index:
        refused = serve({"vectors": index}).get("/duplicates")
    assert refused.status_code == 422
    assert refused.json()["error"] == "index: vectors has vectors; duplicates are of pictures"


@in_a_browser
def test_the_page_counts_what_is_marked_and_leads_back_to_the_search(scenes, serve, tmp_path):
    with running(create_app({"photos": scenes})) as service:
        with httpx.Client(base_url=service) as client:
            found(client)
        page = dumped(f"{service}/duplicates", tmp_path / "profile")
        search = dumped(f"{service}/", tmp_path / "profile")
    assert re.search(r'id="count"[^>]*>1 marked to remove, [\d.]+ (bytes|kB)<', page)
    assert 'href="/#index=photos"' in page
    assert 'href="duplicates?index=photos"' in search
