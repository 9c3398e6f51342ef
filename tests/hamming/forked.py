"""Programs that open an index for writing and then fork; each ends with an assertion, or says what a child was told."""

import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex
from tests.hamming.writer import CODE_LENGTH, code_of, codes_of

OF_PARENT = 20_000


def in_child(work):
    """Do something in a forked process; return its exit status."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused(change):
    """Make a change; return what is said of it."""
    try:
        change()
    except InputError as error:
        return str(error)
    raise AssertionError("it was not refused")


def says_whose_it_is(said):
    assert "was opened by process" in said and "\n" not in said, said


def changes(folder):
    """Parent and child add, few and many; the child reads what the parent adds, also after the parent has merged."""
    with HammingIndex.create(folder / "index", CODE_LENGTH) as index:
        index.add(range(100), codes_of(range(100)), {"label": [str(item) for item in range(100)]})
        go_on, ready = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            for ids in (range(1000, 1005), range(1000, 6000)):
                says_whose_it_is(refused(lambda ids=ids: index.add(ids, np.zeros((len(ids), 6), dtype=np.uint8))))
            says_whose_it_is(refused(lambda: index.remove([1])))
            says_whose_it_is(refused(index.compact))
            assert "is being written by process" in refused(lambda: HammingIndex.open(folder / "index"))
            os.write(ready[1], b"1")
            os.read(go_on[0], 1)
            assert len(index) == 5107 and index.search(code_of(OF_PARENT + 3), 1)[0] == [(OF_PARENT + 3, 0)]
            assert index.get(7).metadata == {"label": "7"}
            index.close()
            sys.exit(0)
        os.read(ready[0], 1)
        index.add(range(OF_PARENT, OF_PARENT + 7), codes_of(range(OF_PARENT, OF_PARENT + 7)))
        index.add(range(30_000, 35_000), np.zeros((5000, 6), dtype=np.uint8))
        os.write(go_on[1], b"1")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert index.remove([OF_PARENT]) == 1
    with HammingIndex.open(folder / "index") as index:
        assert set(index) == {*range(100), *range(OF_PARENT + 1, OF_PARENT + 7), *range(30_000, 35_000)}


def lock(folder):
    """A child that lives longer than the parent's index does not keep it locked, and may then write itself."""
    index = HammingIndex.create(folder / "index", CODE_LENGTH)
    closed = os.pipe()
    child = os.fork()
    if not child:
        os.read(closed[0], 1)
        with HammingIndex.open(folder / "index") as own:
            own.add([1], code_of(1))
        says_whose_it_is(refused(lambda: index.add([2], code_of(2))))
        os._exit(0)
    index.close()
    HammingIndex.open(folder / "index").close()
    os.write(closed[1], b"1")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with HammingIndex.open(folder / "index", read_only=True) as index:
        assert list(index) == [1]


def replaced(folder):
    """A child does not read the new index as if it were the one that it has."""
    index = HammingIndex.create(folder / "index", CODE_LENGTH)
    index.add([1], code_of(1))
    (folder / "index").rename(folder / "former")
    HammingIndex.create(folder / "index", CODE_LENGTH).close()
    assert in_child(lambda: refused(lambda: len(index)).index("has been replaced")) == 0


def in_memory(folder):
    """A child has a copy of its own."""
    index = HammingIndex(CODE_LENGTH)
    index.add([1], code_of(1))

    def add():
        index.add([2], code_of(2))
        assert list(index) == [1, 2]

    assert in_child(add) == 0
    assert list(index) == [1]


def _told(index, said):
    says_whose_it_is(refused(lambda: index.add([2], code_of(2))))
    said.put((os.getpid(), list(index)))


def processes(folder):
    """Arguments of a forked process are inherited, not pickled."""
    with HammingIndex.create(folder / "index", CODE_LENGTH) as index:
        index.add([1], code_of(1))
        context = multiprocessing.get_context("fork")
        said = context.Queue()
        started = [context.Process(target=_told, args=(index, said)) for _ in range(2)]
        for process in started:
            process.start()
        answers = [said.get(timeout=60) for _ in started]
        assert len({pid for pid, _ in answers}) == 2 and all(ids == [1] for _, ids in answers)
        for process in started:
            process.join()
            assert process.exitcode == 0


def data_loader(folder):
    """Workers of a DataLoader search the index of their data set, and cannot change it."""
    import torch  # noqa: PLC0415 - the other programs need none

    class Nearest(torch.utils.data.Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, item):
            says_whose_it_is(refused(lambda: index.add([item + 1000], code_of(item))))
            return index.search(code_of(item), 1).ids[0, 0]

    with HammingIndex.create(folder / "index", CODE_LENGTH) as index:
        index.add(range(40), codes_of(range(40)))
        loader = torch.utils.data.DataLoader(Nearest(), batch_size=4, num_workers=2, multiprocessing_context="fork")
        for batch, found in enumerate(loader):
            assert found.tolist() == list(range(4 * batch, 4 * batch + 4))
            index.add([5000 + batch], code_of(5000 + batch))
        assert len(index) == 50


def service(folder):
    """A service made before the fork, as by ``gunicorn --preload``, answers in a child and adds in the parent."""
    from starlette.testclient import TestClient  # noqa: PLC0415 - the other programs need none

    from deephash_pipeline import ImageHasher  # noqa: PLC0415
    from deephash_pipeline.photographs import ImageIndex  # noqa: PLC0415
    from deephash_pipeline.service import ServiceSettings, create_app  # noqa: PLC0415
    from tests.service.pictures import ADDRESS, TOKEN, WRITER, picture  # noqa: PLC0415

    with ImageIndex.create(folder / "index", ImageHasher.pretrained("digits-48", device="cpu")) as images:
        app = create_app({"index": images}, ServiceSettings(token=TOKEN))

        def add(client, name):
            files = {"image": picture(3)}
            return client.post("/v1/items", files=files, data={"id": name}, headers=WRITER)

        def of_child():
            with TestClient(app, base_url=ADDRESS) as client:
                answer = add(client, "of child")
                assert answer.status_code == 400, answer.text
                says_whose_it_is(answer.json()["error"])
                assert client.post("/v1/search", files={"image": picture(3)}).status_code == 200

        assert in_child(of_child) == 0
        assert not list((folder / "index").glob("pictures/*"))
        with TestClient(app, base_url=ADDRESS) as client:
            assert add(client, "of parent").status_code < 300
        assert list(images) == ["of parent"]


def run_lock(folder):
    """A child neither holds the right to run nor says, by its end, that the run is over."""
    from deephash_pipeline.provenance.lock import RunLock  # noqa: PLC0415

    lock = RunLock(folder)
    lock.take()
    assert in_child(lock.give_back) == 0
    assert lock.is_left
    assert "another run, process" in refused(RunLock(folder).take)
    closed = os.pipe()
    child = os.fork()
    if not child:
        os.read(closed[0], 1)
        os._exit(0)
    lock.give_back()
    RunLock(folder).take()
    os.write(closed[1], b"1")
    os.waitpid(child, 0)


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
