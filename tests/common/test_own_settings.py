"""What a notebook has set for the whole process changes no result, and is as it was afterwards."""

import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits

from deephash_pipeline import DeepHash, ImageHasher
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.embeddings import VectorIndex
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.retrieval import count_distances, pack_bits, real_valued_metrics, retrieval_metrics

DIGITS = load_digits()
IMAGES, LABELS = (DIGITS.images * 15).astype("uint8")[:300], DIGITS.target[:300]
FLAT = IMAGES.reshape(300, -1).astype(np.float32)


@contextmanager
def double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    assert torch.get_default_dtype() == torch.float64
    torch.set_default_dtype(torch.float32)


@contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    assert torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)


@contextmanager
def warnings_as_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextmanager
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)


@contextmanager
def pandas_of_tomorrow():
    with pd.option_context("mode.copy_on_write", True, "future.infer_string", True, "mode.chained_assignment", "raise"):
        yield


SETTINGS = {
    "float64": double_precision,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "seterr": lambda: np.errstate(all="raise"),
    "default device": lambda: torch.device("meta"),
    "deterministic": deterministic,
    "warnings": warnings_as_errors,
    "one thread": one_thread,
    "pandas": pandas_of_tomorrow,
}
setting = pytest.mark.parametrize("setting", SETTINGS)


def encoded():
    return ImageHasher.pretrained("digits-48").encode(IMAGES)


def learned():
    labels = pd.Series(LABELS).astype(str)
    return DeepHash(12, effort=0.02).fit(IMAGES, labels).encode(IMAGES)


def searched():
    hasher = ImageHasher.pretrained("digits-48")
    index = ImageIndex(hasher, HammingIndex(48, features=hasher.z_dimension))
    index.add(pd.Series(range(300)), IMAGES, labels=pd.Series(LABELS).astype(str))
    return index.search(IMAGES[:20], 5, rescore=True).ids


def evaluated():
    codes = pack_bits(FLAT > 100)
    counted = retrieval_metrics(count_distances(codes[:50], LABELS[:50], codes[50:], LABELS[50:], 64))
    real = real_valued_metrics(FLAT[:50], LABELS[:50], FLAT[50:], LABELS[50:])
    return [counted["mean_average_precision"], real["mean_average_precision"]]


@setting
@pytest.mark.parametrize("work", [encoded, searched, evaluated], ids=lambda work: work.__name__)
def test_what_is_set_for_the_process_changes_no_result(work, setting):
    expected = work()
    with SETTINGS[setting]():
        found = work()
    np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def codes_learned():
    return learned()


@setting
def test_a_network_learns_under_any_setting(setting, codes_learned):
    with SETTINGS[setting]():
        found = learned()
    # By one thread and by several sums round otherwise.
    assert (found != codes_learned).mean() < (0.2 if setting == "one thread" else 1e-9)


@pytest.mark.parametrize("name", [*HASH_FUNCTIONS])
def test_hash_functions_learn_where_numpy_raises_and_warnings_are_errors(name):
    def codes():
        return HASH_FUNCTIONS[name](8).fit(FLAT, LABELS).transform(FLAT)

    expected = codes()
    with np.errstate(all="raise"), warnings_as_errors():
        np.testing.assert_array_equal(codes(), expected)


def test_vectors_are_indexed_where_numpy_raises(tmp_path):
    vectors = FLAT * np.float32(1e-30)
    with np.errstate(all="raise"), VectorIndex.build(tmp_path / "x.index", vectors, code_length=32) as index:
        assert index.search(vectors[:5], 1).ids[:, 0].tolist() == list(range(5))


def test_the_last_of_several_threads_gives_the_type_of_tensors_back():
    torch.set_default_dtype(torch.float64)
    try:
        inside, go_on = threading.Event(), threading.Event()

        def hold():
            with own_settings():
                inside.set()
                go_on.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        assert inside.wait(10)
        with own_settings():
            go_on.set()
            thread.join()
            assert torch.get_default_dtype() == torch.float32
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
