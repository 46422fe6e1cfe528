"""A server that runs until it is told to stop, and tells everybody who waits when it is."""

from __future__ import annotations

import socket
from typing import Any

from factordiff.errors import MissingDependency
from factordiff.web.connections import Connections, watched
from factordiff.web.limits import Limits
from factordiff.web.listening import BACKLOG
from factordiff.web.middleware import Protected
from factordiff.web.rate import LOG

ACCEPTED_AT_ONCE = 64  # connections that asyncio lets in at one go; it counts them two goes later


def make_server(application: Protected, limits: Limits | None = None) -> Any:
    """A `uvicorn.Server` for the application: `run(sockets=[...])` serves until SIGINT or SIGTERM.

    Silent connections are closed, so that they cannot use up the files that a process may have open.
    """
    try:
        import uvicorn
        from uvicorn.protocols.http.h11_impl import H11Protocol
    except ImportError as error:
        raise MissingDependency("uvicorn: the playground needs it; pip install 'factordiff[web]'") from error
    bounds = limits or Limits()
    files = _files()
    connections = Connections(min(bounds.connections, files // 3), bounds.silence)

    class StoppingServer(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            for one in sockets or ():
                one.listen(BACKLOG)  # asyncio knows one number for those who knock and those who are let in

        async def on_tick(self, counter: int) -> bool:
            connections.sweep()
            return await super().on_tick(counter)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            application.stop()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        application,
        http=watched(H11Protocol, connections),
        ws="none",
        lifespan="on",
        log_config=LOG,
        access_log=False,
        server_header=False,
        backlog=min(ACCEPTED_AT_ONCE, files // 16),
        timeout_graceful_shutdown=2,
    )
    return StoppingServer(config)


def _files() -> int:
    """How many files this process may have open."""
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return 2**16
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**16 if soft == resource.RLIM_INFINITY else soft
