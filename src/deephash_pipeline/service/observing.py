"""Middleware around every request: its connection, its size, its time, its line in the log."""

import asyncio
import errno
import json
import logging
import os
import sqlite3
import time
from collections.abc import Mapping
from functools import partial
from http import HTTPMethod
from typing import Any

from fastapi import HTTPException
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.service.settings import ServiceSettings

logger = logging.getLogger(__name__)

HUNG_UP = 499
"""What nginx counts a client that did not wait as; nobody reads it."""
MOST_HEADER_BYTES = 65_536
COMPRESSED = "the body is compressed, which this service does not take; send it as it is, without Content-Encoding"
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]


class Metrics:
    """Numbers for Prometheus.

    Args:
        indexes: indexes that are served.
    """

    def __init__(self, indexes: Mapping[str, CodedItems]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "deephash_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "deephash_request_seconds", "Seconds from request to answer.", ("route",), registry=self.registry
        )
        self.pending = Gauge("deephash_pending", "Requests being worked on or waiting.", registry=self.registry)
        self.encoded = Counter("deephash_encoded_images", "Pictures encoded.", ("index",), registry=self.registry)
        self.duplicates = Counter("deephash_duplicate_searches", "Searches for copies started.", registry=self.registry)
        images = Gauge("deephash_images", "Images of an index.", ("index",), registry=self.registry)
        for name in indexes:
            # Another may take its place.
            images.labels(name).set_function(partial(lambda name: len(indexes[name]), name))


class Observed:
    """ASGI middleware: refuses a body that is too large or slow while it arrives; counts, times and logs each request.

    Args:
        app: app that answers.
        metrics: metrics to count in.
        settings: settings of how large and how slow.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, settings: ServiceSettings) -> None:
        self.app, self.metrics, self.settings = app, metrics, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        until = asyncio.get_running_loop().time() + self.settings.seconds
        arrived, complete = 0, False
        status = 500
        declared = dict(scope["headers"]).get(b"content-length", b"0")

        async def limited() -> Message:
            nonlocal arrived, complete
            if declared.isdigit() and int(declared) > self.settings.most_bytes:
                raise self._too_large()
            try:
                async with asyncio.timeout_at(None if complete else until):
                    message = await receive()
            except TimeoutError:
                within = f"within {self.settings.seconds:g} seconds"
                raise HTTPException(408, f"the request has not arrived {within}; send it again") from None
            except asyncio.CancelledError:
                if complete:
                    raise
                raise HTTPException(503, "the service ends; send the request again") from None
            if message["type"] == "http.disconnect" and not complete:
                raise HTTPException(HUNG_UP, "the client has hung up")
            arrived += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if arrived > self.settings.most_bytes:
                raise self._too_large()
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            if problem := _of_the_head(scope):
                await JSONResponse({"error": problem[1]}, problem[0])(scope, receive, noted)
            else:
                await self.app(scope, limited, noted)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            seconds = time.perf_counter() - began
            # Clients may invent methods, and each would be a series for good.
            method = scope["method"] if scope["method"] in HTTPMethod.__members__ else "other"
            self.metrics.requests.labels(method, route, status).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            line = {"method": scope["method"], "route": route, "status": status, "seconds": round(seconds, 4)}
            logger.info(json.dumps(line))

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the request has more than {self.settings.most_bytes:,} bytes; send a smaller one")


def _of_the_head(scope: Scope) -> tuple[int, str] | None:
    """Status and line for what is wrong with the first line and the headers of a request."""
    # The parser counts only what it waits for the rest of.
    head = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    if head + sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADER_BYTES:
        return 431, f"the headers have more than {MOST_HEADER_BYTES:,} bytes; send fewer"
    encodings = {value.strip().lower() for name, value in scope["headers"] if name == b"content-encoding"}
    return (415, COMPRESSED) if encodings - {b"", b"identity"} else None


def fault_of_the_machine(error: Exception) -> tuple[int, str] | None:
    """Status and line for an error that is the service's machine's: its disk, most often; None for another.

    Example:
        >>> fault_of_the_machine(OSError(errno.EROFS, "index.sqlite"))
        (503, 'the service cannot read or write its files (Read-only file system); ask its keeper')
        >>> fault_of_the_machine(ValueError("k"))
    """
    cause = error if isinstance(error, OSError | sqlite3.Error) else error.__cause__
    if not isinstance(cause, OSError | sqlite3.Error):
        return None
    full = cause.errno in (errno.ENOSPC, errno.EDQUOT) if isinstance(cause, OSError) else "full" in str(cause)
    if full:
        return 507, "the disk of the service is full; ask its keeper to make room, and send this again"
    # No path of the machine is told.
    reason = os.strerror(cause.errno or 0) if isinstance(cause, OSError) else str(cause)
    return 503, f"the service cannot read or write its files ({reason}); ask its keeper"


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection on which nothing is being answered; uvicorn waits for half a request for ever.

    Args:
        arguments: arguments of uvicorn's protocol.
        seconds: seconds from the connection, or the answer before, until the headers of a request are there.
        named: named arguments of uvicorn's protocol.
    """

    guard: asyncio.TimerHandle

    def __init__(self, *arguments: Any, seconds: float, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.seconds = seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close the connection later unless something has arrived by then."""
        super().connection_made(transport)
        self.guard = self.loop.call_later(self.seconds, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting: the connection has ended."""
        self.guard.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.guard.cancel()
        self.guard = self.loop.call_later(self.seconds, self._close_if_idle)
        super().on_response_complete()

    def _close_if_idle(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            return
        self.transport.close()
