"""The service: its routes and errors joined, its start and its end."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.engines import EngineError
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.service.observing import Observed, fault_of_the_machine
from deephash_pipeline.service.pages import add_pages
from deephash_pipeline.service.requests import one_line
from deephash_pipeline.service.routes import add_items, add_search, add_state
from deephash_pipeline.service.service import Service
from deephash_pipeline.service.settings import ServiceSettings

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LOOKS = 1.0


def create_app(
    image_indexes: Mapping[str, CodedItems],
    settings: ServiceSettings | None = None,
    open_again: Mapping[str, Callable[[], CodedItems]] | None = None,
) -> FastAPI:
    """Make the service.

    Args:
        image_indexes: indexes by the names they are asked by; open for writing if the settings have a token. They are
            not closed.
        settings: limits.
        open_again: functions by name, each of which opens the index that has taken the place of one, as `refit` makes
            it.

    Raises:
        InputError: there is no index.

    Example:
        >>> from deephash_pipeline import ImageHasher
        >>> from deephash_pipeline.hamming import HammingIndex
        >>> from deephash_pipeline.photographs import ImageIndex
        >>> app = create_app({"digits": ImageIndex(ImageHasher.pretrained("digits-48"), HammingIndex(48))})
        >>> app.title
        'Search by image'
    """
    service = Service(image_indexes, settings or ServiceSettings(), open_again)

    async def follow() -> None:
        while service.open_again:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            await run_in_threadpool(service.follow)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(service.warm_up)
        following = asyncio.create_task(follow())
        yield
        following.cancel()
        await run_in_threadpool(service.close)

    # The pages that FastAPI would serve at /docs load scripts from elsewhere.
    app = FastAPI(title="Search by image", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    _add_errors(app)
    add_search(app, service)
    add_items(app, service)
    add_state(app, service)
    add_pages(app, service)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(service.settings.hosts))
    app.add_middleware(Observed, metrics=service.metrics, settings=service.settings)
    return app


def _add_errors(app: FastAPI) -> None:
    def error_response(status: int, error: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"error": error}, status, headers=headers)

    @app.exception_handler(StarletteHTTPException)
    async def refused(_: Request, error: StarletteHTTPException) -> Response:
        return error_response(error.status_code, " ".join(str(error.detail).split()), error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return error_response(422, one_line(error.errors()))

    @app.exception_handler(EngineError)
    async def engine_failed(_: Request, error: EngineError) -> Response:
        return error_response(503, " ".join(str(error).split()))

    @app.exception_handler(InputError)
    @app.exception_handler(OSError)
    @app.exception_handler(sqlite3.Error)
    async def bad_input_or_machine(_: Request, error: Exception) -> Response:
        fault = fault_of_the_machine(error)
        if fault is None:
            return error_response(400, " ".join(str(error).split()))
        logger.error(" ".join(str(error).split()))
        return error_response(*fault)

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        return error_response(500, f"the service has failed ({type(error).__name__}); its log has the details")
