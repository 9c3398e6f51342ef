"""What surrounds every request: its size, its time, its line in the log."""

import json
import logging
import time
from collections.abc import Mapping
from functools import partial

from fastapi import HTTPException
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deephash_pipeline.image_index import ImageIndex

logger = logging.getLogger(__name__)

HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]


class Metrics:
    """Numbers for Prometheus.

    Args:
        indexes: that are served.
    """

    def __init__(self, indexes: Mapping[str, ImageIndex]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "deephash_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "deephash_request_seconds", "Seconds from request to answer.", ("route",), registry=self.registry
        )
        self.pending = Gauge("deephash_pending", "Requests being worked on or waiting.", registry=self.registry)
        self.encoded = Counter("deephash_encoded_images", "Pictures encoded.", ("index",), registry=self.registry)
        images = Gauge("deephash_images", "Images of an index.", ("index",), registry=self.registry)
        for name, index in indexes.items():
            images.labels(name).set_function(partial(len, index))


class Observed:
    """ASGI middleware: refuses a request that is too large while it arrives; counts, times and logs each.

    Args:
        app: what answers.
        metrics: to count in.
        most_bytes: of a request.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, most_bytes: int) -> None:
        self.app, self.metrics, self.most_bytes = app, metrics, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        arrived = 0
        status = 500
        declared = dict(scope["headers"]).get(b"content-length", b"0")

        async def limited() -> Message:
            nonlocal arrived
            if declared.isdigit() and int(declared) > self.most_bytes:
                raise self._too_large()
            message = await receive()
            arrived += len(message.get("body", b""))
            if arrived > self.most_bytes:
                raise self._too_large()
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            await self.app(scope, limited, noted)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            seconds = time.perf_counter() - began
            self.metrics.requests.labels(scope["method"], route, status).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            line = {"method": scope["method"], "route": route, "status": status, "seconds": round(seconds, 4)}
            logger.info(json.dumps(line))

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the request has more than {self.most_bytes:,} bytes; send a smaller picture")
