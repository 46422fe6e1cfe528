"""The socket that a server listens on."""

from __future__ import annotations

import socket

from factordiff.errors import Unavailable

BACKLOG = 512  # connections that may knock at once


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free one, and a taken port is a sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise Unavailable(
            f"port: cannot listen on {host} port {port} ({error}); choose another with --host or --port"
        ) from error
    # Accepted sockets inherit this. Without it the second of two small writes, such as a step's line, waits for the
    # client's delayed acknowledgement: 40 milliseconds.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
