import numba
import pytest


@pytest.fixture
def restored_threads():
    threads = numba.get_num_threads()
    yield
    numba.set_num_threads(threads)
