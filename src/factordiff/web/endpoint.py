"""One run from request to response: read the body within bounds, queue it, pass its events on, notice who leaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from factordiff.errors import FactorDiffError
from factordiff.web.limits import Limits
from factordiff.web.middleware import Message, Receive, Scope, Send, respond
from factordiff.web.run import Work
from factordiff.web.worker import Full, Job, Worker

RETRY = ((b"retry-after", b"2"),)


class Refused(Exception):
    """A request that gets a sentence instead of an answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Gone(Exception):
    """The client left before its request was complete."""


@dataclass(frozen=True)
class Asked:
    """What a body asks for; `prepare` refuses what does not fit together, once there is room for it."""

    prepare: Callable[[], Work]
    deadline: float  # seconds
    stream: bool = True


class RunEndpoint:
    """An ASGI endpoint: the runs of all clients go through here to the one worker."""

    def __init__(
        self, worker: Worker, limits: Limits, read: Callable[[bytes], Asked], under_way: Counter[str]
    ) -> None:
        self.worker, self.limits, self.read = worker, limits, read
        self.open = under_way  # requests by client address, of all endpoints of a server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST."""
        if scope["method"] != "POST":
            await respond(send, 405, "this address does not take this method", ((b"allow", b"POST"),))
            return
        client = (scope.get("client") or ("unknown",))[0]
        if self.open[client] >= self.limits.per_client:
            reason = f"you have {self.open[client]} requests under way; wait for one of them to end"
            await respond(send, 429, reason, RETRY)
            return
        self.open[client] += 1
        try:
            await self._answer(scope, receive, send)
        except Refused as refused:
            await respond(send, refused.status, refused.reason, RETRY if refused.status in (429, 503) else ())
        except Gone:
            pass
        finally:
            self.open[client] -= 1
            if not self.open[client]:
                del self.open[client]

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(scope, receive, self.limits)
        try:
            asked = self.read(body)
            self.worker.check_room()  # to be turned away should not cost as much as to be let in
            work = asked.prepare()
        except FactorDiffError as error:
            raise Refused(422, str(error)) from None
        except Full as full:
            raise Refused(503, str(full)) from None
        events: asyncio.Queue[bytes | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def deliver(line: bytes | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(events.put_nowait, line)

        job = Job(work, asked.deadline, deliver)
        try:
            self.worker.submit(job)
        except Full as full:
            raise Refused(503, str(full)) from None
        answering = asyncio.ensure_future(self._pass_on(asked, job, events, send))
        leaving = asyncio.ensure_future(until_gone(receive))
        try:
            # Whoever does not read what was computed for them does not keep their place for ever.
            patience = asked.deadline + self.limits.download
            await asyncio.wait((answering, leaving), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                await answering
        finally:
            self.worker.cancel(job)
            answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    async def _pass_on(self, asked: Asked, job: Job, events: asyncio.Queue[bytes | None], send: Send) -> None:
        """Send the events as they come, or only the last; the status waits for the first of them."""
        last: bytes | None = None
        while (line := await self._next_event(job, events)) is not None:
            if last is None and line.startswith(b'{"event":"error"'):
                raise _refused(line)
            if asked.stream:
                if last is None:
                    await send(_start(200, b"application/x-ndjson"))
                await send({"type": "http.response.body", "body": line, "more_body": True})
            last = line
        if last is None:
            raise Refused(503, "the server is stopping")
        if asked.stream:
            await send({"type": "http.response.body", "body": b""})
            return
        if last.startswith(b'{"event":"error"'):
            raise _refused(last)
        await send(_start(200, b"application/json", len(last)))
        await send({"type": "http.response.body", "body": last})

    async def _next_event(self, job: Job, events: asyncio.Queue[bytes | None]) -> bytes | None:
        """The next event; a job that is computed says itself when it is late, one that waits hears it here."""
        while not job.taken:
            left = job.deadline - time.monotonic()
            if left <= 0:
                raise Refused(503, f"no turn came within {job.seconds:g} seconds; try again later")
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(events.get(), min(left, 0.2))
        return await events.get()


def _refused(line: bytes) -> Refused:
    error = json.loads(line)
    return Refused(error["status"], error["reason"])


async def read_body(scope: Scope, receive: Receive, limits: Limits) -> bytes:
    """The body, refused as soon as it is known to be too large, of another kind or too slow."""
    headers = {name.lower(): value for name, value in scope["headers"]}
    if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/json":
        raise Refused(415, "Content-Type: expected application/json")
    too_large = Refused(413, f"body: expected at most {limits.body} bytes")
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared) > limits.body:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.upload):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                body += message.get("body", b"")
                if len(body) > limits.body:
                    raise too_large
                if not message.get("more_body", False):
                    break
            # To read them one by one would keep everybody else waiting.
            if body.count(b"{") > limits.objects:
                raise Refused(422, f"body: expected at most {limits.objects} objects, among them the pairs")
            if body.count(b"[") > limits.lists:
                raise Refused(422, f"body: expected at most {limits.lists} lists, among them the rows")
            return bytes(body)
    except TimeoutError:
        raise Refused(
            408, f"body: it did not arrive within {limits.upload:g} seconds; send it again"
        ) from None


async def until_gone(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _start(status: int, kind: bytes, length: int | None = None) -> Message:
    headers = [(b"content-type", kind)]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    return {"type": "http.response.start", "status": status, "headers": headers}
