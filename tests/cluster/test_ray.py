"""On a Ray cluster: encoding and small pipelines, with workers and nodes that are lost."""

import os
import signal
import threading
import time

import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline
from kedro_datasets.json import JSONDataset

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.encoding import CodeFolder, EncodingWorkers, Source, encode_source
from deephash_pipeline.project.datasets import AtomicDataset
from deephash_pipeline.project.runners import RayRunner
from deephash_pipeline.training import TrainingInterrupted
from tests.cluster import nodes
from tests.cluster.local_cluster import add_node_with_device, is_there, lose_node
from tests.encoding.conftest import BROKEN, code_of, folder, hasher, pictures

__all__ = ["code_of", "folder", "hasher", "pictures"]
pytestmark = pytest.mark.cluster


def catalog(folder, **texts):
    datasets = {name: MemoryDataset(text) for name, text in texts.items()}
    for name in ("first", "second", "sum"):
        datasets[name] = AtomicDataset(str(folder / f"{name}.json"), dataset={"type": JSONDataset})
    return DataCatalog(datasets)


def run(cluster, pipeline, known, **options):
    return RayRunner(address=cluster.address, **options).run(Pipeline(pipeline), known)


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


COUNTS = [
    Node(nodes.count, "text", "first", name="count_first"),
    Node(nodes.count_on_a_worker_that_dies_once, "text", "second", name="count_second"),
    Node(nodes.add, ["first", "second"], "sum", name="add"),
]


def test_nodes_run_in_workers_and_again_where_a_worker_is_lost(cluster, project):
    known = catalog(project, text="hash")
    run(cluster, COUNTS, known)
    assert known["sum"].load() == {"letters": 8}
    assert (project / "died.txt").exists()
    assert os.getpid() not in {known[name].load()["process"] for name in ("first", "second")}


def test_nodes_that_train_see_a_device_in_a_worker_of_their_own_and_others_see_none(cluster, project, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    known = catalog(project, text="hash")
    known["params:experiment"] = MemoryDataset("of a device")
    train, search = (
        Node(nodes.visible_device, ["text", "params:experiment"], output, name=output) for output in ("first", "second")
    )
    encode = Node(nodes.visible_device, "text", "sum", name="encode")
    node = add_node_with_device(cluster)
    try:
        run(cluster, [train, search, encode], known)
    finally:
        lose_node(cluster, node)
    assert [known[name].load()["device"] for name in ("first", "second", "sum")] == ["0", "0", ""]
    assert len({known[name].load()["process"] for name in ("first", "second", "sum")}) == 3


def test_an_error_in_a_worker_comes_back_with_its_cause_and_other_nodes_still_run(cluster, project):
    known = catalog(project, text="hash")
    failing = Node(nodes.refuse, "text", "second", name="refuse")
    with pytest.raises(InputError, match="hash is refused: give another") as refused:
        run(cluster, [COUNTS[0], failing, COUNTS[2]], known)
    assert isinstance(refused.value.__cause__, KeyError)
    assert known["first"].load()["letters"] == 4
    assert not known.exists("sum")


def test_what_would_live_in_memory_is_refused(cluster, project):
    known = catalog(project, text="hash")
    unstored = Node(nodes.count, "text", "nowhere", name="count")
    with pytest.raises(InputError, match="`nowhere` is stored nowhere"):
        run(cluster, [unstored], known)


def test_an_interruption_reaches_the_workers(cluster, project):
    def interrupt():
        while not (project / "began.txt").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(TrainingInterrupted):
        run(cluster, [Node(nodes.wait_for_interruption, "text", "first", name="wait")], catalog(project, text="x"))
    assert (project / "interrupted.txt").exists()


def test_encoding_goes_on_without_a_lost_node_and_every_image_is_there_once(cluster, folder, hasher, code_of, tmp_path):
    codes = CodeFolder(tmp_path / "codes")

    def lose_a_node():
        while len(codes.done()) < 4:
            time.sleep(0.01)
        lose_node(cluster, cluster.machines[0])

    killer = threading.Thread(target=lose_a_node, daemon=True)
    killer.start()
    source = Source(str(folder))
    report = encode_source(
        hasher,
        source,
        codes.address,
        images_per_block=2,
        workers=EncodingWorkers(engine="ray", address=cluster.address, device="cpu"),
    )
    killer.join()
    assert report.blocks == 20
    blocks = list(codes)
    assert [name for block in blocks for name in block.names] == list(code_of)
    assert [code for block in blocks for code in block.codes.tolist()] == list(code_of.values())
    assert {broken.name for block in blocks for broken in block.broken} == BROKEN
    assert len([each for each in cluster.machines if is_there(each)]) == 1


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:port"])
def test_an_address_without_a_cluster_is_refused_before_anything_is_listed_or_written(address, hasher, tmp_path):
    workers = EncodingWorkers(engine="ray", address=address)
    with pytest.raises(InputError, match=f"^there is no Ray cluster at {address} .*: name another --address$"):
        encode_source(hasher, Source("no/such/folder"), tmp_path / "codes", workers)
    assert not (tmp_path / "codes").exists()
