"""From a file of vectors to answers, by commands and over HTTP."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
from starlette.testclient import TestClient

from deephash_pipeline.embeddings import VectorIndex
from deephash_pipeline.service import ServiceSettings, create_app

TOKEN = "a token of enough letters"


@pytest.fixture(scope="module")
def place(tmp_path_factory, command):
    """Embeddings, ids and labels as files, and an index of them."""
    place = tmp_path_factory.mktemp("papers")
    vectors = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
    np.save(place / "embeddings.npy", vectors)
    np.save(place / "queries.npy", vectors[5:7])
    np.save(place / "one.npy", vectors[5])
    safetensors.numpy.save_file({"a": vectors[5:7], "b": vectors[:2]}, place / "two.safetensors")
    (place / "ids.txt").write_text("\ufeff" + "".join(f"paper/{row}\n" for row in range(600)))
    (place / "labels.txt").write_text("".join(f"topic {row % 4}\n" for row in range(600)))
    named = ("--vectors", "embeddings.npy", "--ids", "ids.txt", "--labels", "labels.txt")
    said = run(command, place, "index", "build", "papers.index", *named)
    assert "600 vectors of 16 numbers" in said.output and "recall@10: " in said.output
    return place


def run(command, place, *arguments):
    """Run a command whose arguments with a dot are files in a folder."""
    return command(*(place / each if "." in each else each for each in arguments))


def test_a_search_by_vectors_says_what_it_finds_and_which_recall_to_expect(command, place):
    asked = ("--vectors", "two.safetensors", "--column", "a")
    result = run(command, place, "search", "papers.index", *asked, "-k3", "--json")
    rows = json.loads(result.stdout)
    assert [row["query"] for row in rows] == [0, 0, 0, 1, 1, 1]
    assert [(row["id"], row["label"]) for row in rows[::3]] == [("paper/5", "topic 1"), ("paper/6", "topic 2")]
    assert rows[0]["cosine"] == pytest.approx(1, abs=0.001) and rows[0]["distance"] == 0
    assert result.stderr.startswith("recall@3: ") and "vectors held out" in result.stderr
    by_id = run(command, place, "search", "papers.index", "--id", "paper/5", "-k2", "--label", "topic 3")
    assert by_id.stderr.startswith("recall@2: not measured under conditions; ")
    by_id = by_id.stdout
    assert by_id.splitlines()[0].split() == ["query", "id", "distance", "cosine", "label"] and "paper/5" not in by_id


def test_an_index_of_vectors_is_described_added_to_and_removed_from(command, place):
    made = ("build", "more.index", "--vectors", "embeddings.npy")
    added = ("index", "add", "more.index", "--vectors", "queries.npy", "--ids", "new.txt")
    run(command, place, "index", *made, "--method", "sign", "--bits", "16")
    (place / "new.txt").write_text("-7\n-8\n")
    assert "602 vectors" in run(command, place, *added).output
    assert "ids are strings" in run(command, place, "index", "remove", "more.index", "--", "--5").output
    assert "598 vectors" in run(command, place, "index", "remove", "more.index", "--", "5", "6", "-7", "-8").output
    sparing = run(command, place, "search", "more.index", "--id", "7", "-k9", "--recall", "1e-2", "--json").stdout
    with VectorIndex.open(place / "more.index", read_only=True) as index:
        assert {row["id"] for row in json.loads(sparing)} == set(index.search_by_id(7, 9, recall=0.01).ids[0].tolist())
        assert {row["id"] for row in json.loads(sparing)} != set(index.search_by_id(7, 9).ids[0].tolist())
    facts = json.loads(run(command, place, "index", "info", "more.index", "--json").output)
    assert (facts["vectors"], facts["width"], facts["method"], facts["rescore"]) == (598, 16, "sign", "int8")
    run(command, place, "index", *made, "--ids", "ids.txt", "--anew")
    assert "602 vectors" in run(command, place, *added).output


def test_vectors_are_found_under_conditions_numbered_on_and_replaced(command, place, tmp_path):
    vectors = np.load(place / "embeddings.npy")
    years = pa.array([2000 + row % 20 for row in range(600)])
    pq.write_table(pa.table({"z": list(vectors), "year": years}), tmp_path / "z.parquet")
    run(command, tmp_path, "index", "build", "x.index", "--vectors", "z.parquet")
    where = json.dumps({"year": {">=": 2018}})
    found = run(command, tmp_path, "search", "x.index", "--queries", "z.parquet", "-k2", "--json", "--where", where)
    assert {row["year"] for row in json.loads(found.stdout)} == {2018, 2019}
    assert found.stderr.startswith("recall@2: not measured under conditions")
    pq.write_table(pa.table({"z": list(-vectors[:2])}), tmp_path / "new.parquet")
    added = ("index", "add", "x.index", "--vectors", "new.parquet")
    assert "602 vectors" in run(command, tmp_path, *added).output
    (tmp_path / "ids.txt").write_text("600\n7\n")
    np.save(tmp_path / "new.npy", vectors[:2])
    replaced = ("index", "add", "x.index", "--vectors", "new.npy", "--ids", "ids.txt")
    assert "id 600 is in the index already" in run(command, tmp_path, *replaced).output
    assert "602 vectors" in run(command, tmp_path, *replaced, "--replace").output
    with VectorIndex.open(tmp_path / "x.index", read_only=True) as index:
        assert index.search(vectors[1], 2).ids[0].tolist() == [1, 7]
        assert index.search(-vectors[1], 1).ids.tolist() == [[601]]


@pytest.mark.parametrize(("column", "named"), [("label", ()), ("kind", ("--labels", "kind"))])
def test_a_label_that_is_a_number_finds_what_was_built_and_what_was_added(command, place, tmp_path, column, named):
    vectors = np.load(place / "embeddings.npy")
    for done, rows in (("build", range(40)), ("add", range(40, 50))):
        columns = {"id": list(map(str, rows)), "z": list(vectors[rows]), column: [row % 3 for row in rows]}
        pq.write_table(pa.table(columns), tmp_path / "z.parquet")
        run(command, tmp_path, "index", done, "x.index", "--vectors", "z.parquet", *named)
    found = run(command, tmp_path, "search", "x.index", "--id", "0", "-k50", "--label", "1", "--json").stdout
    assert {row["id"] for row in json.loads(found)} == {str(row) for row in range(1, 50, 3)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("index build x.index --rescore none", "--rescore is for vectors: name their file by --vectors"),
        ("index build x.index --vectors embeddings.npy --hasher h", "--vectors are indexed alone"),
        ("index build x.index --vectors embeddings.npy --ids none.txt", "none.txt cannot be read"),
        ("index build x.index --vectors one.npy", "one.npy has one vector: give two at least"),
        ("index refit papers.index", "papers.index has vectors: `index build --vectors ... --anew` fits"),
        ("index add papers.index --vectors queries.npy", "no ids are given, and those of this index are strings"),
        ("index add papers.index --vectors queries.npy --replace", "--replace is for vectors of known ids"),
        ("index add papers.index photos --replace", "papers.index has vectors: name a file of them by --vectors"),
        ("index add x.index photos --replace", "--replace is for vectors: name their file by --vectors"),
        ("index add papers.index photos", "papers.index has vectors: name a file of them by --vectors"),
        ("index add x.index photos --vectors queries.npy", "--vectors are added alone: leave out PATHS"),
        ("serve x.index --vectors two.safetensors --column c", "has no tensor 'c' of F16, F32, F64, BF16, I8, U8"),
        ("serve papers.index --column a", "--column is for vectors: name their file by --vectors"),
        ("serve papers.index x.index --vectors queries.npy", "--vectors make one INDEX"),
        ("search papers.index", "give either --queries, a file of them, or --id"),
        ("search x.index --vectors queries.npy", "x.index is no index of vectors; leave it out, or name another"),
        ("search papers.index --id paper/5 --column a", "--column is for vectors: name their file by --vectors"),
        ("search x.index a.jpg --where {}", "x.index is no index of vectors; leave it out"),
        ("search papers.index --queries queries.npy --where year=3", "--where 'year=3': give conditions in JSON, such"),
        ("search papers.index --queries queries.npy --where [3]", "--where '[3]': give conditions in JSON, such as"),
        ('search papers.index --id paper/5 --where {"year":3}', "a column 'year' that this index lacks"),
        ('search papers.index --id paper/5 --label a --where {"Label":"b"}', "--where has a condition on `label`"),
        ("search papers.index --vectors queries.npy --radius 3", "--html, --open and --engine are for images"),
        ("search papers.index --vectors queries.npy --distinct", "--html, --open and --engine are for images"),
        (
            "search papers.index --vectors queries.npy --label topc",
            "no vector has the label `topc`: do you mean `to",
        ),
    ],
)
def test_what_does_not_go_together_is_said(command, place, arguments, message):
    result = run(command, place, *arguments.split())
    assert result.exit_code == 1 and message in result.output and result.output.count("\n") == 1
    assert not (place / "x.index").exists()


@pytest.fixture
def client(place):
    with (
        VectorIndex.open(place / "papers.index", read_only=True) as index,
        TestClient(create_app({"papers": index}, ServiceSettings(token=TOKEN)), base_url="http://127.0.0.1") as client,
    ):
        yield client


def test_a_service_answers_vectors_with_ids_cosines_and_metadata(client, place):
    vector = np.load(place / "queries.npy")[0].tolist()
    found = client.post("/v1/search", json={"vector": vector, "k": 5}).json()
    first = found["results"][0]
    assert (first["id"], first["metadata"]) == ("paper/5", {"label": "topic 1"})
    assert set(first) == {"id", "label", "metadata", "distance", "cosine"}
    coded = client.post("/v1/search", json={"vector": vector, "k": 5, "code": True, "recall": 0.1}).json()
    assert coded["results"][0]["code"] == coded["query"]["code"] and "code" not in found["query"]
    both = np.load(place / "queries.npy").tolist()
    where = {"label": {"!=": "topic 2"}}
    batch = client.post("/v1/search/vectors", json={"vectors": both, "k": 3, "where": where, "metadata": True}).json()
    alone = [client.post("/v1/search", json={"vector": each, "k": 3, "where": where}).json() for each in both]
    assert batch["ids"] == [[result["id"] for result in each["results"]] for each in alone]
    assert batch["cosines"] == [[result["cosine"] for result in each["results"]] for each in alone]
    assert batch["metadata"] == [[result["metadata"] for result in each["results"]] for each in alone]
    assert client.post("/v1/search/vectors", json={"vectors": both}).json()["metadata"] is None
    cosines = [result["cosine"] for result in found["results"]]
    assert cosines == sorted(cosines, reverse=True) and cosines[0] == pytest.approx(1, abs=1e-3)
    only = client.post("/v1/search", json={"vector": vector, "k": 5, "where": {"label": {"!=": "topic 1"}}}).json()
    assert {result["label"] for result in only["results"]} <= {"topic 0", "topic 2", "topic 3"}
    for field, asked in {
        "radius": {"radius": 0},
        "label": {"label": ["topic 1"], "where": {"LABEL": "topic 2"}},
    }.items():
        refused = client.post("/v1/search", json={"vector": vector, **asked})
        assert refused.status_code == 400 and refused.json()["error"].startswith(f"{field}: ")
    near = client.get("/v1/search/paper%2F5", params={"k": 4}).json()
    assert [result["id"] for result in near["results"]] == [result["id"] for result in found["results"][1:]]
    assert client.get("/v1/items/paper%2F5").json()["label"] == "topic 1"
    [about] = client.get("/v1/indexes").json()
    assert (about["width"], about["image_shape"], about["items"]) == (16, None, 600)
    assert client.get("/healthz").json()["items"] == 600


def test_vectors_are_added_replaced_and_removed_over_http(place, tmp_path):
    vectors = np.load(place / "embeddings.npy")
    writer = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
    years = {"year": [2000 + row % 20 for row in range(600)]}
    with (
        VectorIndex.build(tmp_path / "numbered", vectors, metadata=years) as index,
        TestClient(create_app({"x": index}, ServiceSettings(token=TOKEN)), base_url="http://127.0.0.1") as client,
    ):

        def add(**new):
            return client.post("/v1/items", json={"vector": (-vectors[7]).tolist(), **new}, **writer)

        assert client.post("/v1/items", json={"vector": vectors[7].tolist(), "id": "600"}).status_code == 401
        added = add(id="600", metadata={"year": 2030}, label="new")
        assert (added.status_code, added.json()["metadata"]) == (201, {"year": 2030, "label": "new"})
        question = {"vector": (-2 * vectors[7]).tolist(), "k": 1, "where": {"year": {">": 2020}}, "label": "new"}
        assert client.post("/v1/search", json=question).json()["results"][0]["id"] == "600"
        assert add(id="600").status_code == 409
        kinds = {"tags": ["a", "b"], "done": True, "share": 0.5, "place": "x"}
        assert add(id="700", metadata=kinds).json()["metadata"] == kinds
        asked = {"vector": vectors[7].tolist(), "where": {"$or": [{"tags": "b", "done": True}, {"$id": [3]}]}}
        assert {found["id"] for found in client.post("/v1/search", json=asked).json()["results"]} == {"700", "3"}
        assert client.delete("/v1/items/700", **writer).status_code == 200
        assert add(id=600, replace=True).json()["metadata"] == {}
        made_up = add()
        assert made_up.status_code == 201 and int(made_up.json()["id"]) >= 0
        assert client.delete(f"/v1/items/{made_up.json()['id']}", **writer).status_code == 200
        assert "this index has integers" in add(id="007", replace=True).json()["error"]
        assert client.delete("/v1/items/600", **writer).status_code == 200
        for name in ("600", "--5", "007", "-0", "\N{ARABIC-INDIC DIGIT SEVEN}", "9" * 5000):
            assert client.delete(f"/v1/items/{name}", **writer).status_code == 404
        assert len(index) == 600


@pytest.mark.parametrize(
    ("method", "address", "body", "status", "message"),
    [
        ("POST", "/v1/search", {"vector": [1, 2]}, 422, "vector: it has 2 numbers, papers has vectors of 16 numbers"),
        ("POST", "/v1/search", {"vector": [0] * 16}, 400, "row 0 has zeros alone"),
        ("POST", "/v1/search", {"vector": [1] * 16, "recall": 2}, 422, "recall: Input should be less than or equal"),
        ("POST", "/v1/search/vectors", {"vectors": [[1] * 16, [1]]}, 400, "vectors: one has 1 numbers, papers has"),
        ("POST", "/v1/search/vectors", {"vectors": []}, 422, "vectors: List should have at least 1 item"),
        ("POST", "/v1/search/vectors", {"vectors": [[1] * 16], "k": 10**6}, 422, "k: at most"),
        ("POST", "/v1/search", {"vector": [1] * 16, "image": "aa"}, 422, "give it or a picture, not both"),
        ("POST", "/v1/search", {"image": "aaaa"}, 422, "has vectors of 16 numbers; send a `vector`"),
        ("POST", "/v1/search", {"vector": [1] * 16, "where": {"year": 3}}, 400, "a column 'year' that this index"),
        ("GET", "/v1/items/paper%2F5/thumbnail", None, 404, "no picture"),
        ("POST", "/v1/items", {"vector": [1] * 15, "id": "x"}, 422, "vector: it has 15 numbers, papers has vectors of"),
        ("POST", "/v1/items", {"image": "aaaa", "id": "x"}, 422, "has vectors of 16 numbers; send a `vector`"),
    ],
)
def test_a_request_that_cannot_be_answered_is_told_why(client, method, address, body, status, message):
    answer = client.request(method, address, json=body, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == status and message in answer.json()["error"]


def test_a_low_recall_has_advice_that_helps_and_bytes_are_left_out_of_json(command, tmp_path):
    vectors = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
    vectors[:, 3] += 500
    columns = {"id": [f"{row}" for row in range(600)], "z": list(vectors), "sha": [b"\xff"] * 600, "x": [np.inf] * 600}
    pq.write_table(pa.table(columns), tmp_path / "z.parquet")
    np.save(tmp_path / "one.npy", vectors[5])
    built = run(command, tmp_path, "index", "build", "z.index", "--vectors", "z.parquet")
    assert "less than --recall: give --rescore float16, more --bits, or another --method" in built.output
    found = run(command, tmp_path, "search", "z.index", "--vectors", "one.npy", "-k2", "--json")
    assert [set(row) for row in json.loads(found.stdout)] == [{"query", "id", "distance", "cosine", "x"}] * 2
    assert "Infinity" not in found.stdout
