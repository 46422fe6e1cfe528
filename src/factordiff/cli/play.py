"""`factordiff play`: the playground in the browser."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from typer import Option

from factordiff.cli.app import app
from factordiff.errors import InvalidInput, MissingDependency, Unavailable

if TYPE_CHECKING:
    from factordiff.web.registry import ExpertRegistry

MAIN = ("trans-full", "conv-full", "trans-color", "trans-occ")
MOST = 10_000  # threads, or requests that wait: more than any machine can hold
LOOPBACK_ADDRESSES = ("127.0.0.1", "::1", "localhost")


@app.command()
def play(
    experts: Annotated[
        str,
        Option(
            help="Names or folders of experts, joined by commas. By default trans-full,conv-full,trans-color,trans-occ."
        ),
    ] = "",
    port: Annotated[int, Option(help="0 takes any free port.")] = 8000,
    host: Annotated[
        str, Option(help="Address to listen on; other machines can reach anything but 127.0.0.1.")
    ] = "127.0.0.1",
    device: Annotated[str, Option(help="auto, cpu, cuda or mps.")] = "auto",
    threads: Annotated[int, Option(help="Processor threads of the one compute worker.")] = 1,
    queue: Annotated[int, Option(help="Requests that may wait.")] = 8,
    deadline: Annotated[float, Option(help="Seconds that a request may take.")] = 60.0,
    export: Annotated[
        str,
        Option(
            metavar="DIR",
            help="Write the stories as a site that needs no server into a new folder, and start none.",
        ),
    ] = "",
    with_experts: Annotated[
        bool,
        Option(
            "--with-experts",
            help="With --export: the site also solves, in the browser; it is larger, and needs a static host.",
        ),
    ] = False,
    curate: Annotated[
        str,
        Option(
            metavar="STORY",
            help="Name the published tasks on which a story comes out as it is meant to, and start no server.",
        ),
    ] = "",
) -> None:
    """Solve tasks in the browser and watch who decides each cell.

    Example: factordiff play --experts trans-color,trans-occ --port 8000
    """
    if not 1 <= threads <= MOST or not 1 <= queue <= MOST or not 0 < deadline < float("inf"):
        raise InvalidInput(
            f"threads, queue, deadline: expected 1 to {MOST:,}, as many and some seconds, got {threads}, {queue}, "
            f"{deadline}"
        )
    if with_experts and not export:
        raise InvalidInput("with-experts: it is for a site that is written; add --export DIR")
    try:
        import pydantic  # noqa: F401 - the requests are its models
    except ImportError as error:
        raise MissingDependency("pydantic: the playground needs it; pip install 'factordiff[web]'") from error
    import torch

    from factordiff.devices import choose_device
    from factordiff.experts.registry import SMALL
    from factordiff.web.limits import Limits
    from factordiff.web.listening import listen
    from factordiff.web.middleware import LOOPBACK
    from factordiff.web.registry import ExpertRegistry
    from factordiff.web.running import make_server
    from factordiff.web.server import build_server

    names = [name.strip() for name in experts.split(",") if name.strip()] or experts_to_meet()
    if not names:
        raise Unavailable(
            f"experts: none are shipped with this version; {SMALL}, then `factordiff play --experts runs/tiny`"
        )
    console = Console()
    torch.set_num_threads(threads)
    with console.status("loading the experts"):
        registry = ExpertRegistry.load(names, choose_device(device))
    if export:
        _export(export, registry, console, with_experts)
        return
    if curate:
        _curate(curate, registry, console)
        return
    private = host in LOOPBACK_ADDRESSES
    limits = Limits(queue=queue, deadline=deadline)
    server = build_server(
        registry,
        limits,
        hosts=LOOPBACK if private else None,
        on_fault=lambda fault: console.print(f"[red]fault:[/] {fault!r}", highlight=False),
    )
    listening = listen(host, port)
    address = f"http://{'[::1]' if host == '::1' else host}:{listening.getsockname()[1]}/"
    console.print(
        f"playground: [bold]{address}[/]  ({', '.join(registry.names())}; Ctrl-C ends it)", soft_wrap=True
    )
    if not private:
        console.print("[yellow]everybody who can reach this machine can use it[/]")
    make_server(server, limits).run(sockets=[listening])


def _export(folder: str, registry: ExpertRegistry, console: Console, with_experts: bool) -> None:
    """Record every story that these experts can tell, and write the page around them; the experts too if asked."""
    from rich.progress import Progress

    from factordiff.web.browser_site import check_runtime, write_solver
    from factordiff.web.library import Library
    from factordiff.web.record import record_all
    from factordiff.web.site import check_folder, write_site
    from factordiff.web.story_list import tellable

    library = Library()
    check_folder(folder)
    if with_experts:
        check_runtime()
    stories = tellable(registry)
    if not stories:
        raise Unavailable("export: these experts tell none of the stories; leave --experts out")
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("recording", total=len(stories))
        recordings = record_all(
            stories,
            registry,
            library,
            lambda done, total, title: progress.update(bar, completed=done, description=title),
        )
    page = write_site(folder, recordings, len(library.listing), solves=with_experts)
    if with_experts:
        logging.disable(logging.WARNING)  # the exporter's remarks about libraries that are not here
        with Progress(console=console, transient=True) as progress:
            bar = progress.add_task("exporting the experts", total=len(registry))
            write_solver(
                page.parent,
                registry,
                library,
                on_progress=lambda done, total, name: progress.update(bar, completed=done, description=name),
            )
        logging.disable(logging.NOTSET)
    size = sum(path.stat().st_size for path in page.parent.rglob("*") if path.is_file()) / 1e6
    told = "1 story" if len(recordings) == 1 else f"{len(recordings)} stories"
    there = (
        f"serve it from any static host: python -m http.server -d {folder}"
        if with_experts
        else f"open [bold]{page}[/] in a browser"
    )
    console.print(f"{told}, {size:.1f} MB: {there}", soft_wrap=True)
    for one in recordings:
        if not one.held:
            console.print(f"[yellow]{one.story.name}: came out as {one.outcome}, not {one.story.holds}[/]")


def _curate(name: str, registry: ExpertRegistry, console: Console) -> None:
    """Try a story on every published task."""
    from rich.progress import Progress

    from factordiff.web.library import Library
    from factordiff.web.record import tasks_that_hold
    from factordiff.web.story_list import tellable

    known = {story.name: story for story in tellable(registry) if story.kind == "grid"}  # of published tasks
    if name not in known:
        raise Unavailable(
            f"curate: these experts tell {', '.join(known) or 'none of the stories'}, got {name!r}"
        )
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("trying", total=None)
        found = tasks_that_hold(
            known[name],
            registry,
            Library(),
            lambda done, total, task: progress.update(bar, completed=done, total=total, description=task),
        )
    for one in found:
        console.print(f"{one.id}, test {one.number}{'' if one.cell is None else f', cell {one.cell}'}")
    console.print(f"{name} holds on {len(found)} published tests")


def experts_to_meet() -> list[str]:
    """The shipped experts of the paper's tables, the headline pair first; all shipped ones if none of them is there."""
    from factordiff.experts.registry import shipped_experts

    shipped = shipped_experts()
    return [name for name in MAIN if name in shipped] or shipped
