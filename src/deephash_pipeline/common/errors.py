"""The one error a user is meant to read, and what an error came from."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class InputError(ValueError):
    """Bad input: the message is one line that names the input and the remedy, and is shown without a traceback."""


@contextmanager
def blamed_on(path: str | Path, remedy: str = "mend it") -> Iterator[None]:
    """Turn whatever a library raises at a user's file into one line that names the file.

    Raises:
        InputError: something was raised, but for a package that is not installed.

    Example:
        >>> with blamed_on("a.txt"):
        ...     int("x")
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: a.txt cannot be used (ValueError: invalid ...: 'x'): mend it
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        raise InputError(f"{path} cannot be used ({type(error).__name__}: {said}): {remedy}") from error


def chain_of(error: BaseException) -> list[BaseException]:
    """Walk from an error to its first cause; libraries that raise an error a second time make rings, which end it."""
    chain = [error]
    while (following := chain[-1].__cause__ or chain[-1].__context__) is not None and following not in chain:
        chain.append(following)
    return chain
