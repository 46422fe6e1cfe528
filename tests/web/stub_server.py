"""A server of its own process, as `factordiff play` starts one, with experts of known cost.

python -m tests.web.stub_server COST QUEUE PER_CLIENT [FILES [SILENCE]]: prints its port, then one line per fault; ends
with its input, or on a signal. FILES is how many files it may have open, SILENCE how long a connection may say nothing.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import threading

import torch

from factordiff.web.limits import Limits
from factordiff.web.listening import listen
from factordiff.web.middleware import LOOPBACK
from factordiff.web.running import make_server
from factordiff.web.server import build_server
from tests.web.stubs import copying


def main(cost: float, queue: int, per_client: int, files: int = 0, silence: float = 10.0) -> None:
    torch.set_num_threads(1)
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    limits = Limits(queue=queue, per_client=per_client, silence=silence)
    application = build_server(
        copying(cost), limits, hosts=LOOPBACK, on_fault=lambda fault: print(repr(fault), flush=True)
    )
    listening = listen("127.0.0.1", 0)
    server = make_server(application, limits)

    def end_with_the_input() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_the_input, daemon=True).start()
    print(listening.getsockname()[1], flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


if __name__ == "__main__":
    given = sys.argv[1:]
    main(float(given[0]), int(given[1]), int(given[2]), *map(int, given[3:4]), *map(float, given[4:5]))
