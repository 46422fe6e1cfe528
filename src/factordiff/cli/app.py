"""The verbs, and how an error becomes a sentence.

Verb modules import torch and the rest of the library inside their functions, so that `--help` is quick.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from typer import Option

from factordiff.cli.terminal import discard, escape_what_cannot_be_encoded
from factordiff.cli.verbs import NewcomersFirst, Verbs, flowing
from factordiff.errors import FactorDiffError
from factordiff.printable import printable

LONGEST_ERROR = 2_000

app = Verbs(
    name="factordiff",
    help=flowing(
        """Combine frozen discrete-diffusion experts at inference time, factor by factor.

        Exit codes: 0 done, 1 an error in one sentence, 2 a wrong option, 3 a part was not done (a task was refused, a
        training diverged), 130 Ctrl-C."""
    ),
    cls=NewcomersFirst,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)


def _version(asked: bool) -> bool:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"factordiff {version('factordiff')}")
        except PackageNotFoundError:
            typer.echo("factordiff, run from its source tree: not installed, so without a version")
        raise typer.Exit
    return asked


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Combine frozen discrete-diffusion experts at inference time, factor by factor."""


def main() -> None:
    """Run the command line; the library's own errors become one sentence and exit code 1."""
    # Threads that spin while they wait take the cores from those they wait for as soon as anything else runs here:
    # with one of two cores busy, a training step then takes five times as long and an answer twice. Read when torch
    # is imported, hence before any verb.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    escape_what_cannot_be_encoded()
    try:
        app()
        sys.stdout.flush()
    except FactorDiffError as error:
        _say(str(error))
        sys.exit(1)
    except OSError as error:
        # What no verb expects: a full disk behind standard output, a file that just vanished.
        discard(sys.stdout)
        _say(f"{error.filename or 'standard output'}: {error.strerror or error}")
        sys.exit(1)


def _say(sentence: str) -> None:
    shown = "\n".join(printable(line, LONGEST_ERROR) for line in sentence.splitlines())
    Console(stderr=True).print(f"[bold red]error:[/] {escape(shown)}", highlight=False, soft_wrap=True)
