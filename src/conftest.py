"""The examples in docstrings, which say what is printed, not what is logged beside it where Kedro shows it."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def without_information() -> Iterator[None]:
    """Log warnings alone."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)
