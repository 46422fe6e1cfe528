"""What a server says when it stops, and how what waits for a client's next words hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

STOPPING = "the server is stopping"

Value = TypeVar("Value")


async def unless_stopping(coming: Awaitable[Value], stopping: asyncio.Event) -> Value | None:
    """What is waited for, or None if the server stops first."""
    value = asyncio.ensure_future(coming)
    stopped = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((value, stopped), return_when=asyncio.FIRST_COMPLETED)
        return value.result() if value.done() else None
    finally:
        value.cancel()
        stopped.cancel()
