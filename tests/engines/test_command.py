"""`deephash-pipeline export`, and `search` in what it has written."""

import json
import shutil
import socketserver
import threading

import pytest

from tests.cli.conftest import built, command, photos

__all__ = ["built", "command", "photos"]


def test_an_exported_index_is_searched_where_it_is(command, built, photos, postgres_url):
    first = command("export", built, "--to", "postgres", postgres_url, "--hnsw")
    assert "60 written, 0 deleted, 0 there already; 20 queries answered" in first.output, first.output
    assert "0 written, 0 deleted, 60 there" in command("export", built, "--to", "postgres", postgres_url).output
    photo = photos / "3" / "0003.png"
    for query in ([photo], [photo, "--label", 5, "--radius", 20], ["--id", photo, "-k", 30]):
        here = json.loads(command("search", built, *query, "--json").stdout)
        assert json.loads(command("search", built, *query, "--json", "--engine", postgres_url).stdout) == here
    table = command("search", built, photo, "--engine", postgres_url, "--approximate").output
    assert "approximate: near images may be missing" in table


def test_an_export_of_codes_of_another_hasher_is_not_searched(command, built, photos, postgres_url, tmp_path):
    index, to = shutil.copytree(built, tmp_path / "other.index"), ("--to", "postgres", postgres_url)
    search = ("search", index, photos / "3" / "0003.png", "--engine", postgres_url)
    command("export", index, *to)
    assert command(*search).exit_code == 0
    command("index", "build", index, photos, "--hasher", "pretrained:mnist-48", "--anew")
    refused = command(*search)
    assert "has codes of another hasher than" in refused.output and refused.output.count("\n") == 1
    command("export", index, *to)
    assert command(*search).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("export INDEX --to redis x", "no engine `redis`: choose postgres or milvus"),
        ("export INDEX --to milvus x --hnsw", "--hnsw is for postgres"),
        ("export NOTHING --to postgres x", "has no index"),
        ("export INDEX --to postgres postgresql://127.0.0.1:1/x", "cannot be asked"),
        ("search INDEX --id x --approximate", "--approximate is for --engine"),
        ("export INDEX --to milvus http://127.0.0.1:1", "cannot be asked"),
        ("search INDEX --id x --engine milvus:http://127.0.0.1:1", "cannot be asked"),
        ("search INDEX --id x --engine milvus:OTHER", "cannot be asked"),
        ("encode pretrained:digits-48 PHOTOS -o NOTHING --engine ray --address 127.0.0.1:1", "no Ray cluster at"),
        ("search NOTHING --id x --engine milvus:http://127.0.0.1:1", "there is no index"),
        ("search INDEX --id x --engine redis://somewhere", "no engine at `redis://somewhere`"),
        ("search INDEX --id x --engine postgresql://u:secret@127.0.0.1:1/x#other", "other of 127.0.0.1 cannot be"),
        ("serve INDEX NOTHING --engine milvus:http://127.0.0.1:1", "--engine is for one INDEX"),
    ],
)
def test_bad_input_is_one_line(command, built, photos, tmp_path, arguments, message):
    # Something else that answers on a port.
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        places = {"INDEX": str(built), "PHOTOS": str(photos), "NOTHING": str(tmp_path / "nothing")}
        places["milvus:OTHER"] = f"milvus:http://127.0.0.1:{other.server_address[1]}"
        result = command(*[places.get(argument, argument) for argument in arguments.split()])
        other.shutdown()
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    assert message in result.output


def test_an_export_that_was_not_made_is_named_with_its_remedy(command, built, postgres_url):
    result = command("search", built, "--id", "x", "--engine", f"{postgres_url}#nothing")
    assert result.exit_code == 1
    assert "table nothing of PostgreSQL is not there: make it by `deephash-pipeline export`" in result.output
