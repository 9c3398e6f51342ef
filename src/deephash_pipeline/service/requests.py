"""Bodies of requests, JSON or multipart, -> a picture and checked fields; who may write."""

import hmac
from typing import Any, TypeVar
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials
from pydantic import BaseModel, ValidationError
from python_multipart.exceptions import FormParserError
from starlette.datastructures import UploadFile

from deephash_pipeline.service.observing import COMPRESSED
from deephash_pipeline.service.pictures import from_base64
from deephash_pipeline.service.pools import Pool
from deephash_pipeline.service.remote import fetched
from deephash_pipeline.service.schemas import Question
from deephash_pipeline.service.settings import ServiceSettings

MOST_FIELDS = 50
MOST_FIELD_BYTES = 65_536
LONGEST_FETCH = 10.0
GZIP = b"\x1f\x8b"

Fields = TypeVar("Fields", bound=BaseModel)


async def read_fields(
    request: Request, model: type[Fields], settings: ServiceSettings, fetching: Pool
) -> tuple[bytes, Fields]:
    """Read a picture and what comes with it.

    Args:
        request: request whose body is JSON with the picture in base64, or multipart with the picture as the file
            ``image``.
        model: model of the JSON.
        settings: settings: whether the picture may be named by a URL, and how long that may take.
        fetching: threads that wait for other servers.

    Raises:
        HTTPException: 400, 408, 413, 415, 422 or 429, after what is wrong.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "multipart/form-data":
            return await _read_form(request, model)
        if kind != "application/json":
            raise HTTPException(415, "send multipart/form-data with a file `image`, or application/json")
        body = await request.body()
        if body.startswith(GZIP):
            raise HTTPException(415, COMPRESSED)
        fields = model.model_validate_json(body)
    except ValidationError as error:
        raise HTTPException(422, one_line(error.errors())) from error
    if getattr(fields, "vector", None) is not None:
        return b"", fields
    url = getattr(fields, "url", None)
    if url is None:
        return from_base64(fields.image), fields  # type: ignore[attr-defined]
    if fields.image:  # type: ignore[attr-defined]
        raise HTTPException(422, "url: give it or an image, not both")
    if not settings.allow_urls:
        raise HTTPException(403, "url: this service takes none; start it with --allow-urls, or send the picture")
    return await fetching.run(fetched, url, settings.most_bytes, min(settings.seconds, LONGEST_FETCH)), fields


async def _read_form(request: Request, model: type[Fields]) -> tuple[bytes, Fields]:
    try:
        form = await request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=MOST_FIELD_BYTES)
    except (FormParserError, UnicodeError) as error:
        raise HTTPException(400, "the multipart form cannot be read") from error
    async with request.form():
        picture = form.get("image")
        if not isinstance(picture, UploadFile):
            raise HTTPException(422, "image: missing; send a file of this name")
        given: dict[str, Any] = {}
        for name in set(form.keys()) - {"image"}:
            values = form.getlist(name)
            if not all(isinstance(value, str) for value in values) or (len(values) > 1 and name != "label"):
                raise HTTPException(422, f"{name[:100]}: give one text")
            given[name] = values if name == "label" and issubclass(model, Question) else values[0]
        return await picture.read(), model.model_validate({**given, "image": ""})


def one_line(problems: Any) -> str:
    """The first problem that pydantic has found, and where."""
    problem = problems[0]
    place = ".".join(str(part) for part in problem["loc"] if part not in ("query", "path", "body"))
    return " ".join(f"{place[:200]}: {problem['msg']}".removeprefix(": ").split())


def require_same_site(request: Request) -> None:
    """Let pass what a page of this service, or a program, sends: no page of the web may start costly work.

    Raises:
        HTTPException: 403, another page sends it.
    """
    headers = request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    # Browsers name the site on HTTPS and on this machine, and the origin everywhere.
    is_other = site not in ("same-origin", "none") if site else origin and urlsplit(origin).netloc != headers["host"]
    if is_other:
        raise HTTPException(403, "this is for the pages of the service itself")


def require_token(sent: HTTPAuthorizationCredentials | None, settings: ServiceSettings) -> None:
    """Let pass who sends the token, compared in constant time.

    Raises:
        HTTPException: 403, nobody may write; 401, it is missing or another.
    """
    if settings.token is None:
        raise HTTPException(403, "this service is read-only; start it with --token-file to add and remove")
    if sent is None or not hmac.compare_digest(sent.credentials.encode(), settings.token.encode()):
        raise HTTPException(401, "send the token as `Authorization: Bearer ...`", {"WWW-Authenticate": "Bearer"})
