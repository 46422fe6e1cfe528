"""A server of its own process, as `factordiff play` starts one, with experts of known cost.

python -m tests.web.stub_server COST QUEUE PER_CLIENT: prints its port, then one line per fault; ends with its input.
"""

from __future__ import annotations

import sys
import threading

import torch
import uvicorn

from factordiff.web.limits import Limits
from factordiff.web.listening import listen
from factordiff.web.protection import LOOPBACK
from factordiff.web.server import build_server
from tests.web.stubs import copying


def main(cost: float, queue: int, per_client: int) -> None:
    torch.set_num_threads(1)
    limits = Limits(queue=queue, per_client=per_client)
    application = build_server(
        copying(cost), limits, hosts=LOOPBACK, on_fault=lambda fault: print(repr(fault), flush=True)
    )
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(application, log_level="critical", timeout_graceful_shutdown=1))

    def end_with_the_input() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_the_input, daemon=True).start()
    print(listening.getsockname()[1], flush=True)
    server.run(sockets=[listening])


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
