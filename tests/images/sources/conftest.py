import functools
import hashlib
import http.server
import pickle
import tarfile
import threading

import numpy as np
import pytest
from torchvision.datasets import CIFAR10

GENERATOR = np.random.default_rng(0)
PIXELS = {
    name: GENERATOR.integers(256, size=(4, 3, 32, 32)).astype(np.uint8) for name in ("data_batch_1", "test_batch")
}
LABELS = {"data_batch_1": [1, 0, 0, 1], "test_batch": [0, 0, 1, 1]}


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        """Say nothing."""


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """A tiny CIFAR-10 at the address and with the checksums that torchvision knows."""
    batches = tmp_path / "origin" / CIFAR10.base_folder
    batches.mkdir(parents=True)
    for name, pixels in PIXELS.items():
        names = [f"{'mule' if label else 'ship'}_s_{row:06d}.png" for row, label in enumerate(LABELS[name])]
        batch = {"data": pixels.reshape(4, -1), "labels": LABELS[name], "filenames": names}
        (batches / name).write_bytes(pickle.dumps(batch))
    (batches / "batches.meta").write_bytes(pickle.dumps({"label_names": ["cat", "dog"]}))
    packed = tmp_path / "origin" / CIFAR10.filename
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(batches, CIFAR10.base_folder)

    def checksum(path):
        return hashlib.md5(path.read_bytes()).hexdigest()

    handler = functools.partial(QuietHandler, directory=packed.parent)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(CIFAR10, "url", f"http://127.0.0.1:{server.server_port}/{packed.name}")
    monkeypatch.setattr(CIFAR10, "tgz_md5", checksum(packed))
    monkeypatch.setattr(CIFAR10, "train_list", [["data_batch_1", checksum(batches / "data_batch_1")]])
    monkeypatch.setattr(CIFAR10, "test_list", [["test_batch", checksum(batches / "test_batch")]])
    monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": checksum(batches / "batches.meta")})
    yield packed
    server.shutdown()
    server.server_close()
