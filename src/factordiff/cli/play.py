"""`factordiff play`: the playground in the browser."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from factordiff.cli.app import app
from factordiff.errors import InvalidInput, MissingDependency, Unavailable

MAIN = ("trans-full", "conv-full", "trans-color", "trans-occ")
MOST = 10_000  # threads, or requests that wait: more than any machine can hold
LOOPBACK_ADDRESSES = ("127.0.0.1", "::1", "localhost")


@app.command()
def play(
    experts: Annotated[
        str,
        typer.Option(
            help="Names or folders of experts, joined by commas; by default the shipped ones of the paper's tables."
        ),
    ] = "",
    port: Annotated[int, typer.Option(help="0 takes any free port.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other machines can reach anything but 127.0.0.1.")
    ] = "127.0.0.1",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[int, typer.Option(help="Processor threads of the one compute worker.")] = 1,
    queue: Annotated[int, typer.Option(help="Requests that may wait.")] = 8,
    deadline: Annotated[float, typer.Option(help="Seconds that a request may take.")] = 60.0,
) -> None:
    """Solve tasks in the browser and watch who decides each cell.

    Example: factordiff play --experts trans-color,trans-occ --port 8000
    """
    if not 1 <= threads <= MOST or not 1 <= queue <= MOST or not 0 < deadline < float("inf"):
        raise InvalidInput(
            f"threads, queue, deadline: expected 1 to {MOST:,}, as many and some seconds, got {threads}, {queue}, "
            f"{deadline}"
        )
    try:
        import uvicorn
    except ImportError as error:
        raise MissingDependency("uvicorn: the playground needs it; pip install 'factordiff[web]'") from error
    import torch

    from factordiff.experts.whereabouts import SMALL
    from factordiff.training.machines import choose_device
    from factordiff.web.limits import Limits
    from factordiff.web.listening import listen
    from factordiff.web.protection import LOOPBACK
    from factordiff.web.roster import Roster
    from factordiff.web.server import build_server

    names = [name.strip() for name in experts.split(",") if name.strip()] or experts_to_meet()
    if not names:
        raise Unavailable(
            f"experts: none are shipped with this version; {SMALL}, then `factordiff play --experts runs/tiny`"
        )
    console = Console()
    torch.set_num_threads(threads)
    with console.status("loading the experts"):
        roster = Roster.load(names, choose_device(device))
    private = host in LOOPBACK_ADDRESSES
    server = build_server(
        roster,
        Limits(queue=queue, deadline=deadline),
        hosts=LOOPBACK if private else None,
        on_fault=lambda fault: console.print(f"[red]fault:[/] {fault!r}", highlight=False),
    )
    listening = listen(host, port)
    address = f"http://{'[::1]' if host == '::1' else host}:{listening.getsockname()[1]}/"
    console.print(
        f"playground: [bold]{address}[/]  ({', '.join(roster.names())}; Ctrl-C ends it)", soft_wrap=True
    )
    if not private:
        console.print("[yellow]everybody who can reach this machine can use it[/]")
    config = uvicorn.Config(
        server, log_level="error", timeout_graceful_shutdown=2, server_header=False, ws="none", lifespan="on"
    )
    uvicorn.Server(config).run(sockets=[listening])


def experts_to_meet() -> list[str]:
    """The shipped experts of the paper's tables, the headline pair first; all shipped ones if none of them is there."""
    from factordiff.experts.whereabouts import shipped_experts

    shipped = shipped_experts()
    return [name for name in MAIN if name in shipped] or shipped
