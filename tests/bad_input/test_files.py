"""Files that are not what a dataset wrote end in an error of one line, whatever is in them; none is ever unpickled."""

import io
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from kedro.io import DatasetError

from deephash_pipeline.cli.refusals import explained
from deephash_pipeline.common.errors import chain_of
from deephash_pipeline.project import datasets
from tests.project.datasets.kinds import KINDS

DATASETS = {
    "array.npy": datasets.NumpyDataset,
    "mapped.npy": lambda path: datasets.NumpyDataset(path, mmap_mode="r"),
    "codes.npz": datasets.CodesDataset,
    "encoder.safetensors": datasets.EncoderDataset,
    "tensors.safetensors": datasets.TensorsDataset,
    "hasher.safetensors": datasets.HasherDataset,
    "metrics.json": lambda path: datasets.AtomicDataset(path, KINDS["_json"]),
    "figure.json": lambda path: datasets.AtomicDataset(path, KINDS["_plotly"]),
}


def header(shape, descr="<f4"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def archive(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return file.getvalue()


class Trap:
    """Leaves a file in the working directory if it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("sprung"),)


def pickled():
    file = io.BytesIO()
    np.save(file, np.array([Trap()], dtype=object), allow_pickle=True)
    return file.getvalue()


def safetensors(text, data=b""):
    return struct.pack("<Q", len(text)) + text + data


CONTENTS = {
    "nothing": b"",
    "text": b"no such thing\n",
    "an array of 10^12 rows": header((10**12, 500)),
    "an array of -1 rows": header((-1, 4)),
    "a pickle": pickle.dumps(Trap()),
    "an array of objects": pickled(),
    "an array of an unknown type": header((4,), "<q9"),
    "half an array": header((1000, 4)) + bytes(100),
    "an archive of other arrays": archive(foo=header((1,)) + bytes(4)),
    "an archive of 10^12 rows": archive(
        **{name: header((10**12, 4), "|u1") for name in ("database", "all", "relevant", "code_length")}
    ),
    "half an archive": archive(database=bytes(1000))[:500],
    "a header of 2^60 bytes": struct.pack("<Q", 2**60) + b"{}",
    "a header of no JSON": safetensors(b"{{{{"),
    "tensors beyond the end": safetensors(b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'),
    "tensors of an unknown type": safetensors(b'{"a":{"dtype":"X9","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
    "half a JSON": b'{"a": [1, 2',
    "JSON of 10^5 brackets": b"[" * 10**5,
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", DATASETS)
def test_a_file_that_is_another_thing_is_an_error_of_one_line(tmp_path, monkeypatch, name, content):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.write_bytes(CONTENTS[content])
    with pytest.raises(Exception) as caught:
        DATASETS[name](path.as_posix()).load()
    links = chain_of(caught.value)
    assert any(isinstance(link, DatasetError) for link in links) or explained(links) is not None
    assert sorted(tmp_path.iterdir()) == [path]
