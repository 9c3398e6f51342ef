"""`deephash-pipeline index` and `search`, from a folder of pictures to answers."""

import contextlib
import json
import os
import re
import shutil
import socket
import time
import webbrowser
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient

from deephash_pipeline import ImageHasher
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.images.decoding import limited
from deephash_pipeline.photographs import ImageIndex, list_images
from tests.images.decoding.bombs import SLOW

PRETRAINED = ("--hasher", "pretrained:digits-48")


def answers(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def one_line(result):
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    return result.output


def test_a_build_goes_on_where_it_was(command, photos, tmp_path):
    first = command("index", "build", tmp_path / "i", *PRETRAINED, photos / "0", photos / "1")
    assert "14 added" in first.output, first.output
    second = command("index", "build", tmp_path / "i", *PRETRAINED, photos)
    assert "46 added, 14 there already, 60 images" in second.output


def test_an_index_that_was_killed_before_its_first_image_is_built(command, index, photos, tmp_path):
    ImageIndex.create(tmp_path / "i", ImageHasher.pretrained("digits-48")).close()
    (tmp_path / "i" / "hasher.safetensors").unlink()
    assert "60 added" in command("index", "build", tmp_path / "i", *PRETRAINED, photos).output
    HammingIndex.create(tmp_path / "other", 64).close()
    for _ in range(2):
        refused = one_line(command("index", "build", tmp_path / "other", *PRETRAINED, photos))
        assert "the hasher makes 48 bits, the index has 64" in refused
    assert not (tmp_path / "other" / "hasher.safetensors").exists()


def test_a_photo_finds_itself_at_distance_0_and_then_its_class(command, built, photos):
    found = answers(command("search", built, photos / "3" / "0003.png", "-k", 4, "--json"))
    assert len(found) == 4
    assert found[0]["distance"] == 0
    assert {row["label"] for row in found} == {"3"}
    assert str(photos / "3" / "0003.png") in {row["id"] for row in found}


def test_an_image_of_the_index_finds_others(command, built, photos):
    name = str(photos / "3" / "0003.png")
    found = answers(command("search", built, "--id", name, "-k", 59, "--json"))
    assert len({row["id"] for row in found}) == 59
    assert name not in {row["id"] for row in found}
    assert [row["distance"] for row in found] == sorted(row["distance"] for row in found)


def test_a_search_keeps_to_a_label_and_a_radius(command, built, photos):
    photo = photos / "3" / "0003.png"
    labelled = answers(command("search", built, photo, "--label", 5, "--label", 7, "--json"))
    assert {row["label"] for row in labelled} == {"5", "7"}
    near = answers(command("search", built, photo, "-k", 60, "--radius", 12, "--json"))
    everything = answers(command("search", built, photo, "-k", 60, "--json"))
    assert near == [row for row in everything if row["distance"] <= 12]
    assert 0 < len(near) < 60
    edge = everything[4]["distance"]
    near = answers(command("search", built, photo, "-k", 60, "--radius", edge, "--json"))
    assert near == [row for row in everything if row["distance"] <= edge] and len(near) > 4


def test_answers_are_a_table_in_the_terminal(command, built, photos):
    output = command("search", built, photos / "3" / "0003.png", "-k", 1).output
    name = str(photos / "3" / "0003.png")
    assert output.split() == ["near", "folder", "path", "100", "%,", "very", "similar", "3", name]


def test_each_picture_of_a_folder_is_searched_by(command, built, photos, tmp_path):
    found = answers(command("search", built, photos / "3", "-k", 2, "--json"))
    files = sorted(path for path in (photos / "3").glob("*.png") if path.name != "broken.png")
    assert [Path(asked["query"]) for asked in found] == files
    for asked in found:
        assert asked["results"] == answers(command("search", built, asked["query"], "-k", 2, "--json"))
        assert asked["results"][0]["near"] == 100
    printed = command("search", built, photos / "3", "-k", 2)
    assert f"{files[0]}\nnear" in printed.output
    assert "no image in" in one_line(command("search", built, tmp_path))


def test_what_is_found_is_a_page_of_small_pictures(command, built, photos, tmp_path, monkeypatch):
    page, shown = tmp_path / "found.html", []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    photo = photos / "3" / "0003.png"
    assert command("search", built, photo, "-k", 3, "--html", page, "--open").exit_code == 0
    text = page.read_text()
    assert shown == [page.as_uri()]
    assert len(re.findall('src="data:image/png;base64,', text)) == 4
    assert text.count("<li>") == 3 and photo.as_uri() in text and "100 %, very similar" in text
    assert not re.search(r"https?:", text)
    assert "--overwrite" in one_line(command("search", built, photo, "--html", page))
    assert command("search", built, photos / "5", "-k", 3, "--html", page, "--overwrite").exit_code == 0
    assert page.read_text().count("<section") == len(list((photos / "5").glob("*.png")))
    assert command("search", built, photo, "--open").exit_code == 0
    assert Path(shown[1].removeprefix("file://")).read_text().count("<li>") == 10
    Path(shown[1].removeprefix("file://")).unlink()


def test_an_index_without_images_says_so(command, index, photos, tmp_path):
    ImageIndex.create(tmp_path / "i", ImageHasher.pretrained("digits-48")).close()
    for _ in range(2):
        for asked in ([photos / "3" / "0003.png"], ["--id", "a"]):
            refused = one_line(command("search", tmp_path / "i", *asked))
            assert f"{tmp_path / 'i'} is empty: `deephash-pipeline index build" in refused
        (tmp_path / "i" / "hasher.safetensors").unlink(missing_ok=True)


def test_images_are_added_and_removed(command, index, photos, tmp_path):
    shutil.copy(photos / "3" / "0003.png", tmp_path / "new.png")
    assert "1 added, 61 images" in command("index", "add", index, tmp_path / "new.png").output
    found = answers(command("search", index, "--id", tmp_path / "new.png", "-k", 1, "--json"))
    assert found[0]["id"] == str(photos / "3" / "0003.png")
    assert "1 removed, 60 images" in command("index", "remove", index, tmp_path / "new.png").output
    assert "0 removed" in command("index", "remove", index, tmp_path / "new.png", "--missing-ok").output
    assert (tmp_path / "new.png").exists()


def test_an_index_is_described(command, built):
    facts = answers(command("index", "info", built, "--json"))
    assert [facts[name] for name in ("images", "code_length", "runtime")] == [60, 48, "torch"]
    assert facts["labels"] == list("0123456789")
    assert "lenet, digits" in command("index", "info", built).output


def test_an_index_of_another_hasher_is_replaced_only_when_asked(command, index, photos):
    mnist = ("--hasher", "pretrained:mnist-48")
    assert "another hasher" in one_line(command("index", "build", index, *mnist, photos / "3"))
    made = command("index", "build", index, *mnist, "--anew", photos / "3")
    assert "lenet, mnist), trained on 50,000 images of mnist in 10 classes" in made.output
    assert answers(command("index", "info", index, "--json"))["labels"] == ["3"]


def test_globs_files_and_csvs_are_listed_once_each(photos, tmp_path):
    files, _ = list_images([f"{photos}/**/00[01]*.png", photos / "0" / "0000.png"])
    assert len(files) == 20
    (tmp_path / "images.csv").write_text(f"path,label\n{photos}/0/0000.png,zero\n{photos}/1/0001.png,\n")
    files, _ = list_images([tmp_path / "images.csv"])
    assert [file.label for file in files] == ["zero", None]


def test_a_name_that_is_no_text_is_left_out(photos, tmp_path):
    (tmp_path / "a.png").touch()
    (tmp_path / "b\udcff.png").touch()
    files, skipped = list_images([tmp_path])
    assert [file.path.name for file in files] == ["a.png"]
    assert "b\\udcff.png" in skipped[0].name


@pytest.fixture
def digits(photos, tmp_path, monkeypatch):
    """Three pictures in the current folder, and the command line of a build."""
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        (tmp_path / "p" / str(number)).mkdir(parents=True)
        shutil.copy(photos / str(number) / f"000{number}.png", tmp_path / "p" / str(number) / "it.png")
    return ["index", "build", "i", *PRETRAINED]


def test_codes_of_changed_pictures_are_made_again(command, digits):
    encode = ["encode", "pretrained:digits-48", "p", "-o", "codes", "--workers", 1]
    command(*encode)
    assert "0 images encoded, files of codes: 1, 1 there already" in command(*encode).output
    command("index", "build", "i", "--codes", "codes")
    shutil.copy("p/1/it.png", "p/0/it.png")
    assert "3 images encoded, files of codes: 1\n" in command(*encode).output
    assert "0 added, 2 there already, 1 changed" in command("index", "build", "i", "--codes", "codes").output
    found = answers(command("search", "i", "p/1/it.png", "-k", 2, "--json"))
    assert [row["distance"] for row in found] == [0, 0]


def test_a_file_is_one_item_however_it_is_spelled(command, digits, tmp_path):
    Path("link").symlink_to("p")
    command(*digits, "p/0")
    for spelled in ("./p/0", tmp_path / "p" / "0" / "it.png", "p/../p/0/it.png", "link/0"):
        assert "0 added, 1 there already, 1 images" in command(*digits, spelled).output
    Path("two.csv").write_text("path,label\np/0/it.png,a\n./p/0/it.png,b\n")
    assert "row 3: ./p/0/it.png is in row 2 already" in one_line(command(*digits, "two.csv"))


def test_an_id_of_another_file_does_not_replace_it(command, digits, tmp_path, monkeypatch):
    command(*digits, "p/0")
    shutil.copytree("p/1", tmp_path / "elsewhere" / "p" / "0")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for paths, code in ((["p/0"], 1), (["p/0", tmp_path / "p" / "0"], 0)):
        result = command("index", "add", tmp_path / "i", *paths)
        assert result.exit_code == code
        assert f"left out: p/0/it.png: its id is that of {tmp_path}/p/0/it.png: give" in result.output


def test_what_is_left_out_is_named_whole_and_nothing_added_is_an_error(command, digits):
    os.mkdir("broken")
    for number in range(30):
        Path("broken", f"{number}.png").write_text("no image")
    os.mkfifo("broken/pipe.png")
    with contextlib.chdir("broken"):
        for _ in range(20):
            os.mkdir("d" * 250)
            os.chdir("d" * 250)
    result = command(*digits, "broken")
    assert result.exit_code == 1
    assert result.output.count("left out: ") == 32
    assert "broken/pipe.png: it is no regular file" in result.output
    assert "File name too long" in result.output
    assert "nothing was added to i" in result.output
    for left_out in (32, 0):
        encoded = command("encode", "pretrained:digits-48", "broken", "-o", "codes", "--workers", 1)
        assert (encoded.exit_code, encoded.output.count("left out: ")) == (1, left_out)


def test_globs_of_folders_and_other_suffixes_are_read_and_no_index_is_indexed(command, digits):
    command(*digits, "p/0")
    Path("p/1/it.png").rename("p/1/it.jfif")
    Path("p/2/it.png").rename("p/2/it")
    shutil.move("i", "p/i")
    for link in ("one", "two"):
        Path("p", link).symlink_to(".")
    for pattern in ("p/*", "p/**", "**/it*"):
        assert [file.id for file in list_images([pattern])[0]] == ["p/0/it.png", "p/1/it.jfif", "p/2/it"]
    assert "is an index or in one" in one_line(command("index", "build", "j", *PRETRAINED, "p/i/segments"))


def test_long_ids_are_whole(command, digits):
    name = "a very long name " * 12 + ".png"
    shutil.copy("p/0/it.png", f"p/0/{name}")
    command(*digits, "p")
    assert f"p/0/{name}\n" in command("search", "i", "p/0/it.png").output


def test_a_folder_that_is_no_text_is_a_line(command, digits, tmp_path, monkeypatch):
    shutil.copytree("p", tmp_path / "b\udcff")
    assert "is no UTF-8: rename" in one_line(command(*digits, "b\udcff"))
    monkeypatch.chdir(tmp_path / "b\udcff")
    assert "is no UTF-8: rename" in one_line(command(*digits, "0"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "build", "NEW", "--hasher", "pretrained:nothing", "PHOTOS"], "unknown hasher `nothing`: choose"),
        (["index", "build", "NEW", "--hasher", "missing.safetensors", "PHOTOS"], "missing.safetensors is not there"),
        (["index", "build", "NEW", "--hasher", "nonsense", "PHOTOS"], "no hasher `nonsense`: give"),
        (["index", "build", "NEW", "--hasher", "digits/deephash.b4", "PHOTOS"], "unknown cell `deephash.b4`"),
        (["index", "build", "NEW", "--hasher", "PHOTOS/3/broken.png", "PHOTOS"], "broken.png cannot be read"),
        (["index", "build", "NEW", *PRETRAINED], "no PATHS are given"),
        (["index", "build", "NEW", "PHOTOS", "--method", "nope"], "hash function 'nope' is unknown: choose one of lsh"),
        (["index", "build", "NEW", *PRETRAINED, "/nothing/at/all"], "/nothing/at/all is not there"),
        (["index", "build", "NEW", *PRETRAINED, "EMPTY"], "there is no image in"),
        (["index", "build", "NEW", "--codes", "PHOTOS", *PRETRAINED], "give either PATHS, with --hasher or without"),
        (["index", "build", "NEW", "--codes", "EMPTY"], "has no codes: make them by `deephash-pipeline encode`"),
        (["index", "add", "NEW", "PHOTOS"], "there is no index"),
        (["index", "add", "PHOTOS", "PHOTOS"], "has no index"),
        (["index", "remove", "INDEX", "nobody"], "'nobody' is not in the index"),
        (["search", "INDEX", "PHOTOS/3/0003.png", "--id", "x"], "give either a photo, or a folder of them, or --id"),
        (["search", "INDEX", "nothing.png"], "nothing.png is not there"),
        (["search", "INDEX", "EMPTY"], "there is no image in"),
        (["search", "INDEX", "PHOTOS/3/broken.png"], "broken.png cannot be decoded"),
        (["search", "INDEX", "PHOTOS/3/0003.png", "-k", "0"], "k is 0; give a whole number"),
        (["search", "INDEX", "PHOTOS/3/0003.png", "--radius", "-1"], "--radius -1"),
        (["search", "INDEX", "--id", "nobody"], "'nobody' is not in the index"),
    ],
)
def test_bad_input_is_reported_in_one_line(command, built, photos, tmp_path, arguments, message):
    (tmp_path / "empty").mkdir()
    places = {"NEW": tmp_path / "new", "PHOTOS": photos, "INDEX": built, "EMPTY": tmp_path / "empty"}
    for name, place in places.items():
        arguments = [argument.replace(name, str(place)) for argument in arguments]
    assert message in one_line(command(*arguments))
    assert not (tmp_path / "new").exists()


def test_a_second_writer_is_refused(command, index, photos):
    with ImageIndex.open(index):
        assert "is being written by process" in one_line(command("index", "add", index, photos))


def test_a_cell_that_has_not_been_run_is_refused_with_its_remedy(command, photos, new_project, monkeypatch):
    monkeypatch.chdir(new_project("nothing has been run"))
    message = one_line(command("index", "build", "i", "--hasher", "digits/itq.b48", photos))
    assert "itq.b48 of digits has not been run" in message
    assert "`kedro run --pipelines=full --to-outputs=class_names,itq.b48.encoder," in message


@pytest.fixture
def token(tmp_path):
    def token(text):
        (tmp_path / "token").write_text(text)
        return tmp_path / "token"

    return token


@pytest.mark.parametrize("text", ["", "short", "a token of several words", "sixteen-bytes-and-\N{SNOWMAN}"])
def test_a_token_that_is_short_or_cannot_be_sent_is_refused(command, built, token, text):
    assert "16 printable characters" in one_line(command("serve", built, "--port", 0, "--token-file", token(text)))


def served(monkeypatch, command, ask, *arguments):
    """What is printed, and what a client of the service that a command starts is answered."""
    answered = []
    monkeypatch.setattr(
        uvicorn.Server, "run", lambda server, sockets: answered.append(ask(TestClient(server.config.app)))
    )
    result = command("serve", *arguments, "--port", 0)
    assert result.exit_code == 0, result.output
    return result, answered[0]


def test_indexes_of_one_name_are_served_under_their_paths(command, built, tmp_path, monkeypatch):
    def names(client):
        return {index["name"] for index in client.get("/v1/indexes", headers={"host": "localhost"}).json()}

    for parent in ("", "a", "b"):
        shutil.copytree(built, tmp_path / parent / "photos.index")
    monkeypatch.chdir(tmp_path)
    _, found = served(monkeypatch, command, names, "a/photos.index", "photos.index", "b/photos.index")
    assert found == {"photos.index", str(tmp_path / "photos.index"), "b/photos.index"}


def test_a_service_on_an_address_of_ipv6_answers_there(command, built, monkeypatch):
    def statuses(client):
        hosts = ("[::1]:8000", "[fe80::1]:8000", "[fe80::3]", "localhost", "[fe80::2]")
        return [client.get("/v1/indexes", headers={"host": host}).status_code for host in hosts]

    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    allowed = ("--allowed-host", "fe80::1", "--allowed-host", "[fe80::3]")
    printed, found = served(monkeypatch, command, statuses, built, "--host", "::1", *allowed)
    assert printed.stdout.startswith("http://[::1]:")
    assert found == [200, 200, 200, 200, 400]


def test_a_service_that_watches_a_folder_finds_what_is_new_and_not_what_is_gone_and_says_once_what_it_leaves_out(
    command, index, photos, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("deephash_pipeline.cli.serve.SECONDS_BETWEEN_UPDATES", 0.05)
    folder = tmp_path / "watched"
    shutil.copytree(photos / "3", folder)
    (folder / "notes.txt").touch()
    seven = next((photos / "7").glob("*.png"))

    def ids(client, expected):
        for _ in range(600):
            items = client.get("/v1/items?count=1000", headers={"host": "localhost"}).json()
            if (found := {item["id"] for item in items if item["id"].startswith(str(folder))}) == expected:
                break
            time.sleep(0.05)
        return found

    def watched(client):
        pictures = {str(path) for path in folder.glob("*.png")} - {str(folder / "broken.png")}
        gone = min(pictures)
        seen = [ids(client, pictures) == pictures]
        os.remove(gone)
        shutil.copy(seven, folder / "new.png")
        now = pictures - {gone} | {str(folder / "new.png")}
        return [*seen, ids(client, now) == now]

    printed, found = served(monkeypatch, command, watched, index, "--watch", folder)
    assert found == [True, True]
    assert printed.output.count(f"left out: {folder}/broken.png: ") == 1
    assert caplog.text.count("passed over") == 1
    with ImageIndex.open(index) as images:
        assert [name for name in images if str(photos) in name]
    assert "is for one INDEX" in one_line(command("serve", index, photos, "--port", 0, "--watch", folder))


def test_a_service_that_cannot_start_says_why(command, built, tmp_path):
    assert "is named twice" in one_line(command("serve", built, built, "--port", 0))
    assert "there is no index" in one_line(command("serve", tmp_path / "none", "--port", 0))
    assert "cannot be read" in one_line(command("serve", built, "--token-file", tmp_path / "none"))
    for name in ("photos.example:8000", "http://photos.example", "photos*"):
        assert "give a name without scheme" in one_line(command("serve", built, "--port", 0, "--allowed-host", name))
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert "choose another --port" in one_line(command("serve", built, "--port", other.getsockname()[1]))
    assert "choose another --port or --host" in one_line(command("serve", built, "--host", "nowhere.invalid"))


def test_a_file_that_takes_too_long_is_passed_over_and_named(command, photos, built, tmp_path, monkeypatch):
    monkeypatch.setattr(limited.DECODERS, "seconds", 1)
    folder = shutil.copytree(photos / "0", tmp_path / "zeros")
    (folder / "slow.pgm").write_bytes(SLOW)
    said = f"{folder / 'slow.pgm'}: not decoded within 1 seconds"
    added = command("index", "build", tmp_path / "i", *PRETRAINED, folder)
    assert f"left out: {said}" in added.output, added.output
    (folder / "broken.png").write_bytes(b"no image")
    assert "left out in all: 2\n" in command("index", "build", tmp_path / "i", *PRETRAINED, folder).output
    assert "not decoded within 1 seconds" in one_line(command("search", built, folder / "slow.pgm"))
