import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline import ImageHasher


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="session")
def pictures():
    """Contents of forty PNG files by name, two of them broken."""
    draws = np.random.default_rng(20261122)
    names = [f"{number % 3}/{number:02d}.png" for number in range(40)]
    found = {name: png(draws.integers(0, 256, (8, 8), dtype=np.uint8)) for name in names}
    found["1/13.png"] = b"no image"
    found["2/20.png"] = found["2/20.png"][:60]
    return found


BROKEN = {"1/13.png", "2/20.png"}


@pytest.fixture(scope="session")
def folder(pictures, tmp_path_factory):
    """The pictures as files; not to be changed."""
    root = tmp_path_factory.mktemp("pictures")
    for name, content in pictures.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(content)
    return root


@pytest.fixture(scope="session")
def hasher():
    return ImageHasher.pretrained("digits-48", "cpu")


@pytest.fixture(scope="session")
def code_of(hasher, pictures):
    """The code of every whole picture, from the library, by name."""
    whole = {name: content for name, content in sorted(pictures.items()) if name not in BROKEN}
    return dict(zip(whole, hasher.encode(list(whole.values())).tolist(), strict=True))


def write_tar(path, members):
    with tarfile.open(path, "w") as shard:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            shard.addfile(about, io.BytesIO(content))
