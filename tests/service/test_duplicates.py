"""The page of duplicates of a served index."""

import html
import json
import os
import re
import subprocess
import threading
import time

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from PIL import ImageOps
from starlette.testclient import TestClient

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.embeddings import VectorIndex
from deephash_pipeline.photographs import ImageIndex, add_files, list_images
from deephash_pipeline.photographs.duplicates.finding import Duplicates
from deephash_pipeline.photographs.duplicates.groups import read_photo
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.service import ServiceSettings, create_app, duplicates
from tests.cli.test_duplicates import build_keeping_features, computed, scene  # noqa: F401
from tests.cli.test_photographs import extractor  # noqa: F401 - a small network in the place of that for photographs
from tests.service.pictures import ADDRESS, TOKEN, WRITER
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
        add_files(index, [image._replace(id=image.path.name) for image in images])
        yield index


def started(client, **request):
    return client.post("/duplicates", headers=WRITER, **request)


def found(client):
    """The page, once there are groups."""
    assert started(client).status_code == 202
    return waited_for(client)


def waited_for(client):
    for _ in range(600):
        page = client.get("/duplicates")
        assert page.status_code == 200, page.text
        if 'id="progress"' not in page.text:
            return page.text
        time.sleep(0.05)
    raise AssertionError("it is still looking")


@pytest.fixture
def held(monkeypatch):
    """Searches for copies that have made a third of their steps, and go on when told."""
    going_on = threading.Event()

    def held(files, *arguments, told, **named):
        for other in files[1:3]:
            told(read_photo(files[0].id, files[0].path), read_photo(other.id, other.path))
        with count_steps("pictures", total=3) as advance:
            advance("1 of 3")
            going_on.wait(60)
        return Duplicates([], [], len(files))

    monkeypatch.setattr(duplicates, "find_duplicates", held)
    yield going_on
    going_on.set()


def test_groups_are_shown_with_thumbnails_and_names_and_without_paths(scenes, serve):
    client = serve({"a&b": scenes})
    page = found(client)
    assert "1 group of one picture among 4 files" in page
    assert re.findall(r'data-path="([^"]+)"', page) == ["1 &lt;b&gt;.png", "mirror.png"]
    [kept, removed] = re.findall(r'<img[^>]+src="(v1/[^"]+)"', page)
    assert client.get("/" + kept.replace("&amp;", "&")).headers["content-type"] == "image/jpeg"
    assert "mirror.png" in removed
    assert str(scenes.folder.parent) not in page


def test_it_looks_only_when_asked(scenes, serve):
    client = serve({"photos": scenes})
    for _ in range(3):
        page = client.get("/duplicates").text
        assert "4 pictures have not been compared yet" in page
        assert re.search(r"about \d+ s\.", page)
        assert '<button class="action strong">Look for copies</button>' in page
    found(client)
    scenes.remove(["mirror.png"])
    assert "1 group " in client.get("/duplicates?index=photos").text
    assert "0 groups" in found(client)
    assert "deephash_duplicate_searches_total 2.0" in client.get("/metrics").text


def test_one_search_at_a_time_tells_how_far_it_is(scenes, serve, held):
    client = serve({"photos": scenes})
    assert started(client).json() == {"started": True}
    while "pictures: 1 of 3" not in (page := client.get("/duplicates").text):
        assert 'id="progress"' in page
        time.sleep(0.05)
    told = client.get("/duplicates/progress").json()
    assert told["working"] and told["said"] == "reading pictures: 1 of 3"
    assert 0 < told["percent"] < 99 and re.fullmatch(r"\d+ s", told["left"])
    # Three that are copies of one another are one group.
    assert [[shown["name"] for shown in group] for group in told["groups"]] == [["1 <b>.png", "2 <b>.png", "3 <b>.png"]]
    assert client.get(f"/{told['groups'][0][0]['thumbnail']}").status_code == 200
    assert "<form" not in page
    assert started(client).json() == {"started": False}
    other = started(client, params={"level": "loose"})
    assert (other.status_code, other.headers["retry-after"]) == (429, "10")
    assert other.json() == {"error": "copies are being looked for in photos (default); ask again when that is done"}
    began = time.monotonic()
    assert client.get("/healthz").status_code == client.get("/metrics").status_code == 200
    assert time.monotonic() - began < 1
    held.set()
    assert client.get("/duplicates/progress?level=loose").json() == {"working": False}
    assert "0 groups" in waited_for(client)
    assert started(client, params={"level": "loose"}).json() == {"started": True}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer another-token-of-tests"}, 401),
        (WRITER | {"Sec-Fetch-Site": "cross-site"}, 403),
        (WRITER | {"Sec-Fetch-Site": "same-site"}, 403),
        (WRITER | {"Origin": "http://example.com"}, 403),
        (WRITER | {"Origin": "null"}, 403),
        (WRITER | {"Origin": ADDRESS}, 202),
        (WRITER | {"Origin": "https://proxy.example", "Sec-Fetch-Site": "same-origin"}, 202),
    ],
)
def test_it_is_started_with_the_token_and_from_the_page_alone(scenes, serve, held, headers, status):
    client = serve({"photos": scenes})
    assert client.post("/duplicates", headers=headers).status_code == status
    assert client.post("/duplicates?again=true", headers=WRITER).status_code == 422
    counted = f"deephash_duplicate_searches_total {float(status == 202)}"
    assert counted in client.get("/metrics").text


def test_without_a_token_the_page_may_start_it_and_no_other(scenes, held):
    client = TestClient(create_app({"photos": scenes}), base_url=ADDRESS)
    assert client.post("/duplicates", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post("/duplicates", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 202


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
        failed = found(client)
    assert '<p role="alert">install it</p>' in failed
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
    assert re.search(r'id="count"[^>]*>1 marked to move away, [\d.]+ (bytes|kB)<', page)
    assert 'href="./#index=photos"' in page
    assert 'href="duplicates?index=photos"' in search


def power_shell_texts(line):
    """The texts of a line as PowerShell reads it: any of five quotes ends one, two of them are one within it."""
    quotes = "'\u2018\u2019\u201a\u201b"
    return [
        re.sub(f"([{quotes}])[{quotes}]", r"\1", text)
        for text in re.findall(f"[{quotes}]((?:[^{quotes}]|[{quotes}]{{2}})*)[{quotes}]", line)
    ]


@in_a_browser
def test_a_rule_marks_all_groups_and_a_script_moves_what_is_marked(scenes, tmp_path):
    app = create_app({"photos": scenes}, ServiceSettings(tells_paths=True))
    photos, moved = tmp_path / "photos", tmp_path / "mo'ved $HOME"
    odd = photos / "a 'quoted' \"$HOME\" `name` [1] it\u2019s.png"
    (photos / "mirror.png").rename(odd)
    scenes.remove(["mirror.png"])
    add_files(scenes, [image._replace(id=image.path.name) for image in list_images([odd])[0]])

    @app.get("/chosen")
    def chosen(rule: str):
        page = app.state.service.duplicates.page("photos", scenes, Level.DEFAULT, ServiceSettings(tells_paths=True))
        script = f"""$("rule").value = "{rule}"; choose();
            document.body.dataset.script = shell({json.dumps(str(moved))});
            document.body.dataset.other = powerShell("C:\\\\it's");"""
        return HTMLResponse(page.replace("</body>", f"<script>{script}</script></body>"))

    os.utime(odd, (10**9, 10**9))
    scripts = {}
    with running(app) as service:
        with httpx.Client(base_url=service) as client:
            found(client)
        for rule in ("proposed", "largest", "oldest", "none"):
            page = dumped(f"{service}/chosen?rule={rule}", tmp_path / "profile")
            given = [re.search(rf'data-{name}="([^"]*)"', page).group(1) for name in ("script", "other")]
            scripts[rule] = [html.unescape(text) for text in given]
    marked = {
        rule: [line for line in text.splitlines() if line.startswith("move '")] for rule, (text, _) in scripts.items()
    }
    assert marked["none"] == [] and marked["proposed"] == marked["largest"]
    [largest], [oldest] = marked["largest"], marked["oldest"]
    assert largest.startswith("move '" + str(odd).replace("'", "'\\''")) and oldest.startswith(
        f"move '{photos}/1 <b>.png'"
    )
    power_shell = [power_shell_texts(line) for line in scripts["largest"][1].splitlines()]
    assert ["C:\\it's"] in power_shell
    assert [str(odd), str(odd).lstrip("/"), str(photos / "1 <b>.png")] in power_shell
    for _ in range(2):
        ran = subprocess.run(["sh"], input=scripts["largest"][0], text=True, capture_output=True, check=True)
    assert "gone already" in ran.stdout
    assert not odd.exists() and (moved / str(odd).lstrip("/")).exists() and (photos / "1 <b>.png").exists()
    # The one that was to stay is gone: nothing of the picture would be left.
    (photos / "1 <b>.png").unlink()
    (moved / str(odd).lstrip("/")).rename(odd)
    ran = subprocess.run(["sh"], input=scripts["largest"][0], text=True, capture_output=True, check=True)
    assert "stays, since" in ran.stdout and odd.exists()


@in_a_browser
def test_a_click_with_the_token_starts_it_below_a_path_too(scenes, tmp_path):
    inner, outer = create_app({"photos": scenes}, ServiceSettings(token=TOKEN)), FastAPI()

    @inner.get("/clicked")
    def clicked():
        page = inner.state.service.duplicates.page("photos", scenes, Level.DEFAULT, ServiceSettings(token=TOKEN))
        # Once: the page shows itself anew.
        script = f"""if (document.getElementById("look") && !sessionStorage.getItem("token")) {{
            token.value = "{TOKEN}"; form.requestSubmit(); }}"""
        return HTMLResponse(page.replace("</body>", f"<script>{script}</script></body>"))

    outer.mount("/below", inner)
    with running(outer) as service:
        page = dumped(f"{service}/below/clicked", tmp_path / "profile")
        with httpx.Client(base_url=f"{service}/below") as client:
            assert "1 group " in waited_for(client)
    assert "4 pictures are compared" in page or "1 group " in page
