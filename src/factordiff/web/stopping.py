"""What a server says when it stops, and how what waits for a client hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

STOPPING = "the server is stopping"

Value = TypeVar("Value")


class ServerStopping(Exception):
    """The server stops before what was waited for is there."""


async def unless_stopping(coming: Awaitable[Value], stopping: asyncio.Event) -> Value:
    """What is waited for, or `ServerStopping` if the server stops first."""
    value = asyncio.ensure_future(coming)
    stopped = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((value, stopped), return_when=asyncio.FIRST_COMPLETED)
        if value.done():
            return value.result()
        raise ServerStopping(STOPPING)
    finally:
        value.cancel()
        stopped.cancel()
