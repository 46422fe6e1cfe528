"""Where a server listens: small writes leave at once, and a taken port is a sentence."""

from __future__ import annotations

import socket

import pytest

from factordiff.errors import Unavailable
from factordiff.web.listening import listen


def test_what_is_accepted_does_not_wait_for_acknowledgements() -> None:
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("port", [70_000, -1])
def test_a_port_that_is_none_is_a_sentence(port: int) -> None:
    with pytest.raises(Unavailable, match=f"cannot listen on 127.0.0.1 port {port}"):
        listen("127.0.0.1", port)


def test_a_taken_port_is_a_sentence() -> None:
    with (
        listen("127.0.0.1", 0) as taken,
        pytest.raises(Unavailable, match="choose another with --host or --port"),
    ):
        listen("127.0.0.1", taken.getsockname()[1])
