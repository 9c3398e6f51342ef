"""Folders of an index, listed, shown and searched in; and what is told of one file."""

import os

import pytest
from PIL import ExifTags, Image

from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hamming.ledger import Ledger
from deephash_pipeline.photographs import ImageIndex, add_files, list_images
from deephash_pipeline.photographs.ordering import may_order
from deephash_pipeline.service.answering import answer
from deephash_pipeline.service.folders import FiledPictures
from deephash_pipeline.service.schemas import ImageQuestion
from tests.service.pictures import THREE, WRITER, picture, upload


def test_folders_are_counted_from_the_one_that_all_are_in(client):
    told = client.get("/v1/folders").json()
    assert (told["name"], told["prefix"]) == ("photos", "photos")
    assert [entry["folder"] for entry in told["folders"]] == [str(digit) for digit in range(10)]
    assert sum(entry["pictures"] for entry in told["folders"]) == 60


def test_the_pictures_of_a_folder_come_by_path_in_turns(client):
    def listed(**asked):
        return [item["id"] for item in client.get("/v1/items", params={"folder": "3", **asked}).json()]

    everything = listed(count=100)
    assert everything == sorted(everything) and all(name.startswith("photos/3/") for name in everything)
    assert listed(count=2) + listed(count=2, start=2) == everything[:4]
    assert len(client.get("/v1/items", params={"folder": "", "count": 100}).json()) == 60


def test_answers_lie_in_the_folder_that_is_asked_for(client):
    found = client.get(f"/v1/search/{THREE}", params={"folder": "3", "k": 100}).json()["results"]
    sent = client.post("/v1/search", **upload(picture(3), folder="3", k=100)).json()["results"]
    assert {row["id"] for row in found} | {THREE} == {row["id"] for row in sent}
    assert all(row["id"].startswith("photos/3/") for row in sent)


@pytest.mark.parametrize("folder", ["nowhere", "../..", "/etc", "3/0003.png"])
def test_a_folder_without_pictures_is_named(client, folder):
    for response in (
        client.get("/v1/items", params={"folder": folder}),
        client.get(f"/v1/search/{THREE}", params={"folder": folder}),
        client.post("/v1/search", **upload(picture(3), folder=folder)),
    ):
        assert response.status_code == 400
        assert response.json()["error"].startswith("folder: ")


def test_names_that_begin_alike_are_other_folders():
    files = FiledPictures(
        {"a": "/p/trip/1.png", "b": "/p/trip 2/1.png", "c": "/p/trip/deep/1.png", "d": "/p/trip0.png"}
    )
    assert files.ids_in("trip") == ["a", "c"]
    assert [(entry.folder, entry.pictures) for entry in files.folders()] == [
        ("", 1),
        ("trip", 1),
        ("trip 2", 1),
        ("trip/deep", 1),
    ]


def test_folders_follow_the_index(client, index, tmp_path):
    assert len(client.get("/v1/folders").json()["folders"]) == 10
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "1.png").write_bytes(picture(1))
    add_files(index, list_images([tmp_path / "new"])[0])
    assert any(entry["folder"].endswith("new") for entry in client.get("/v1/folders").json()["folders"])


def test_of_a_picture_its_file_is_told_and_the_path_where_asked_at_the_same_machine(index, serve, tmp_path):
    exif = Image.Exif()
    exif[ExifTags.Base.Make], exif[ExifTags.Base.Model] = "Canon", "Canon EOS R5"
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = "2019:05:04 12:00:00"
    place = tmp_path / "shot.jpg"
    Image.new("RGB", (64, 48)).save(place, exif=exif)
    os.utime(place, (10**9, 10**9))
    add_files(index, [image._replace(id="shots/shot.jpg") for image in list_images([place])[0]])
    client, here = serve({"photos": index}), serve({"photos": index}, tells_paths=True)
    told = client.get("/v1/items/shots/shot.jpg").json()["file"]
    assert told.pop("changed").startswith("2001-09-09")
    assert told == {
        "name": "shot.jpg",
        "path": None,
        "width": 64,
        "height": 48,
        "bytes": place.stat().st_size,
        "taken": "2019-05-04 12:00:00",
        "camera": "Canon EOS R5",
    }
    assert here.get("/v1/items/shots/shot.jpg").json()["file"]["path"] == str(place)
    place.unlink()
    assert client.get("/v1/items/shots/shot.jpg").json()["file"] is None


def test_a_picture_of_the_index_itself_lies_in_no_folder(client, index):
    client.post("/v1/items", headers=WRITER, **upload(picture(5), id="mine"))
    assert "mine" not in {item["id"] for item in client.get("/v1/items", params={"folder": "", "count": 100}).json()}


def test_answers_are_in_the_order_of_kept_features_where_that_is_asked(index, photos, serve, tmp_path):
    client = serve({"photos": index})
    assert client.get("/v1/indexes").json()[0]["rescores"] is False
    assert (
        client.get(f"/v1/search/{THREE}?rescore=true").json()["error"].startswith("rescore: photos keeps no features")
    )
    with ImageIndex.create(tmp_path / "kept.index", index.hasher, features=True) as kept:
        add_files(kept, list_images([photos])[0])
        client = serve({"kept": kept})
        assert may_order(kept) and client.get("/v1/indexes").json()[0]["rescores"] is True
        name = next(name for name in kept if name.endswith("0003.png"))
        plain, rescored = (
            client.get("/v1/search/" + name, params={"k": 59, "rescore": asked}).json() for asked in (False, True)
        )
        cosines = [row["cosine"] for row in rescored["results"]]
        assert cosines == sorted(cosines, reverse=True) and max(cosines) <= 1.0001
        assert {row["id"] for row in plain["results"]} == {row["id"] for row in rescored["results"]}
        assert name not in {row["id"] for row in rescored["results"]}
        sent = answer("kept", kept, ImageQuestion(k=59, rescore=True), kept.hasher.encode_with_features(picture(3)))
        assert [row.id for row in sent.results if row.id != name] == [row["id"] for row in rescored["results"]][:58]
        near = client.get("/v1/search/" + name, params={"k": 5, "rescore": True, "radius": 9}).json()["results"]
        wanted = [row["id"] for row in rescored["results"] if row["distance"] <= 9][:5]
        assert [row["id"] for row in near] == wanted


def test_vectors_lie_in_no_folder(serve, tmp_path):
    from deephash_pipeline.embeddings import VectorIndex  # noqa: PLC0415 - its packages are no service's

    index = VectorIndex.build(tmp_path / "v.index", [[1.0, 0.0], [0.0, 1.0]], code_length=2)
    assert isinstance(index.index, HammingIndex)
    client = serve({"v": index})
    assert client.get("/v1/folders").json() == {"name": "", "prefix": "", "folders": []}
    assert client.get("/v1/search/0?folder=a").status_code == 422
    index.close()


def test_after_a_change_only_what_is_new_is_read(client, index, tmp_path, monkeypatch):
    assert len(client.get("/v1/folders").json()["folders"]) == 10
    read = []
    column = Ledger.column
    monkeypatch.setattr(
        Ledger,
        "column",
        lambda ledger, name, start, stop: read.append((start, stop)) or column(ledger, name, start, stop),
    )
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "1.png").write_bytes(picture(1))
    add_files(index, list_images([tmp_path / "new"])[0])
    index.remove([THREE])
    index.compact()
    told = client.get("/v1/folders").json()["folders"]
    assert sum(entry["pictures"] for entry in told) == 60
    assert read == [(60, 61)]
