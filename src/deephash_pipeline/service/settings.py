"""Limits of the service."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from deephash_pipeline.common.errors import InputError

SHORTEST_TOKEN = 16


class ServiceSettings(BaseModel):
    """What a service allows.

    Attributes:
        token: text; who sends it may add and remove. None, and nobody may.
        most_bytes: greatest number of bytes of a request.
        most_pixels: greatest number of pixels of a picture, known before it is decoded.
        most_pending: requests that send something, and other searches, that are worked on or wait; one more of either
            is answered 429.
        most_results: largest k.
        batch_size: pictures encoded at a time.
        allow_urls: True if a search may name its picture by a URL, of a public address alone.
        seconds: a request may take, to arrive and to be answered.
        hosts: names under which the service may be addressed; ``*`` for any. Others are refused, so that a page on the
            web cannot ask a service on its reader's machine by giving that a name of its own.
        tells_paths: True if answers on one picture say where its file lies, which is for people at the same machine.

    Example:
        >>> ServiceSettings(most_pixels=1_000_000).most_results
        1000
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: str | None = Field(default=None, min_length=SHORTEST_TOKEN, repr=False)
    most_bytes: int = Field(default=10 * 2**20, ge=1024)
    most_pixels: int = Field(default=40_000_000, ge=1)
    most_pending: int = Field(default=128, ge=1)
    most_results: int = Field(default=1000, ge=1)
    batch_size: int = Field(default=32, ge=1)
    allow_urls: bool = False
    seconds: float = Field(default=30.0, gt=0)
    hosts: Sequence[str] = ("127.0.0.1", "localhost")
    tells_paths: bool = False


def read_token(path: Path) -> str:
    """Read the token of a file.

    Raises:
        InputError: it cannot be read, or its token is too short.
    """
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the token file {path} cannot be read ({error}): write a token into it") from error
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            f"the token in {path} is not {SHORTEST_TOKEN} printable characters or more: openssl rand -hex 24 > {path}"
        )
    return token
