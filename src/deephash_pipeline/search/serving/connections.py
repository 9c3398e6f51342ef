"""Connections whose requests do not arrive: what uvicorn leaves open."""

import asyncio
import json
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_HEADER_BYTES = 65_536


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection on which nothing is being answered; uvicorn waits for half a request for ever.

    Headers of more than ``h11_max_incomplete_event_size`` bytes are refused while they arrive.

    Args:
        arguments: of uvicorn's protocol.
        seconds: from the connection, or the answer before, until the headers of a request are there.
        named: of uvicorn's protocol.
    """

    guard: asyncio.TimerHandle

    def __init__(self, *arguments: Any, seconds: float, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.seconds = seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self.guard = self.loop.call_later(self.seconds, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
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
        if self.conn.trailing_data[0]:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"no whole request within {self.seconds:g} seconds; send it again")
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what h11 cannot read."""
        if len(self.conn.trailing_data[0]) > MOST_HEADER_BYTES:
            too_large = f"the headers have more than {MOST_HEADER_BYTES:,} bytes; send shorter ones"
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, too_large)
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, f"{msg.rstrip('.')}; send HTTP/1.1")
        self.transport.close()

    def _refuse(self, status: HTTPStatus, error: str) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        headers = [("content-type", "application/json"), ("connection", "close")]
        head = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        for event in (head, h11.Data(data=json.dumps({"error": error}).encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
