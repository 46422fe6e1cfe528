"""What surrounds every response: who may ask, and the headers that keep the page to itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from factordiff.web.limits import API_VERSION
from factordiff.web.stopping import STOPPING, unless_stopping

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-cache"),
)
CLOSE = ((b"connection", b"close"), (b"retry-after", b"10"))
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def refusal(status: int, reason: str) -> bytes:
    """The body of every response that is not what was asked for."""
    return json.dumps({"version": API_VERSION, "status": status, "reason": reason}).encode()


class Protected:
    """The application behind its door: foreign hosts are turned away, headers are added, faults become sentences.

    Once it is told to `stop`, every request that has no answer yet, and every new one, gets a sentence about it.

    A page on another site can make a browser ask for a name of its own that points to this machine; such a request
    carries that name in `Host`, so with `hosts` given only these names are answered.
    """

    def __init__(
        self,
        application: Application,
        hosts: tuple[str, ...] | None,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        self.application, self.hosts, self.on_stop = application, hosts, on_stop
        self.stopping = asyncio.Event()

    def stop(self) -> None:
        """Tell everybody who waits that no answer will come; to be called from the server's loop."""
        self.stopping.set()
        if self.on_stop is not None:
            self.on_stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        if not self._knows(scope):
            await respond(
                send_with_headers, 400, "Host: this server answers on this machine only; use 127.0.0.1"
            )
            return
        if self.stopping.is_set():
            await respond(send_with_headers, 503, STOPPING, CLOSE)
            return
        try:
            await self.application(scope, self._until_stopped(receive), send_with_headers)
            if not begun and self.stopping.is_set():
                await respond(send_with_headers, 503, STOPPING, CLOSE)
        except asyncio.CancelledError:  # uvicorn's patience with those who do not go is over
            if not begun:
                await respond(send_with_headers, 503, STOPPING, CLOSE)
            raise
        except Exception:
            if not begun:
                await respond(send_with_headers, 500, "something went wrong inside the server")
            raise  # for the server's own log; the client has its sentence

    def _until_stopped(self, receive: Receive) -> Receive:
        """The body's pieces, as long as the server runs; when it stops, whoever is still sending counts as gone."""
        whole = False

        async def receive_until_stopped() -> Message:
            nonlocal whole
            if whole:  # what follows is the client's leaving
                return await receive()
            message = await unless_stopping(receive(), self.stopping) or {"type": "http.disconnect"}
            whole = not message.get("more_body", False)
            return message

        return receive_until_stopped

    def _knows(self, scope: Scope) -> bool:
        if self.hosts is None:
            return True
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
        name = host[: host.rindex("]") + 1] if host.startswith("[") and "]" in host else host.split(":")[0]
        return name.lower() in self.hosts


async def respond(send: Send, status: int, reason: str, extra: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    """Send a refusal."""
    body = refusal(status, reason)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
