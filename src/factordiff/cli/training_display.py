"""How a training run looks in a terminal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console

console = Console(highlight=False)


def summary_sentence(summary: dict[str, Any], weights: Path) -> str:
    """The one line that a run ends with."""
    rate = 1000 * summary["seconds_this_time"] / max(summary["steps_this_time"], 1)
    parts = [
        f"{summary['backbone']} {summary['objective']}: step {summary['step']} ({summary['stopped_by']})",
        f"{summary['seconds'] / 60:.1f} min",
        f"{rate:.1f} ms/step with start-up and checks",
        f"loss {summary['loss']:.4f}",
    ]
    if "exact" in summary:
        parts.append(f"pixel {100 * summary['pixel']:.2f} %")
        parts.append(f"exact {100 * summary['exact']:.2f} % in one pass")
        if "decoded_exact" in summary:  # nothing is decoded by weights that diverged
            parts.append(f"{100 * summary['decoded_exact']:.2f} % in twenty")
    else:
        parts.append(_filled_in(summary))
    if summary["objective"] == "occupancy":
        parts.append(f"occupancy {100 * summary['occupancy']:.2f} %")
        parts.append(f"largest color share {summary['largest_share_at_foreground']:.3f}")
    if summary["objective"] == "color":
        parts.append(f"color given foreground {100 * summary['given_foreground']:.2f} %")
    if summary["skipped"]:
        parts.append(f"{summary['skipped']} non-finite steps skipped")
    of_step = (
        f"of step {summary['weights_of_step']} " if summary["weights_of_step"] != summary["step"] else ""
    )
    return ", ".join([*parts, f"weights {of_step}in {weights}"])


def _filled_in(event: dict[str, Any]) -> str:
    """How well hidden cells are filled in where nothing is told."""
    shares = [name.removeprefix("bits_at_") for name in event if name.startswith("bits_at_")]
    return ", ".join(
        f"{event[f'bits_at_{share}']:.3f} bits per cell and {100 * event[f'right_at_{share}']:.1f} % right with "
        f"{share} % hidden"
        for share in shares
    )


def divergence_sentence(summary: dict[str, Any], out: Path) -> str:
    """Why a run stopped on non-finite steps is an error, and what to do about it."""
    return (
        f"[bold red]error:[/] stopped at step {summary['step']} by {summary['stopped_by']}; "
        f"the checkpoint and the weights in {out} are those from before them. "
        "Go on behind these steps with --resume; if it happens again, start in another folder with a lower --lr "
        "or --dtype float32"
    )


class Display:
    """Live progress in a terminal, plain lines elsewhere."""

    def __init__(self, steps: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._live = console.is_terminal
        self._last_line = 0.0
        self._check = ""
        self._progress = Progress(
            BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), console=console
        )
        self._task = self._progress.add_task("starting", total=steps)

    def __call__(self, event: dict[str, Any]) -> None:
        """Show one event of the run."""
        if event["event"] == "start" and self._live:
            self._progress.start()
        elif event["event"] == "note":
            console.print(event["note"], soft_wrap=True)
        elif event["event"] == "check":
            reached = _filled_in(event)
            if "exact" in event:
                reached = f"pixel {100 * event['pixel']:.1f} %, exact {100 * event['exact']:.1f} %"
            self._check = f"validation loss {event['loss']:.4f}, {reached}"
            if not self._live:
                console.print(f"step {event['step']}: {self._check}", soft_wrap=True)
        elif event["event"] == "log":
            self._show_log(event)

    def _show_log(self, event: dict[str, Any]) -> None:
        minutes, seconds = divmod(int(event["seconds_left"]), 60)
        line = (
            f"loss {event['loss']:.4f}, {event['steps_per_second']:.1f} steps/s, {minutes}:{seconds:02d} left"
        )
        if self._live:
            self._progress.update(self._task, completed=event["step"], description=f"{line}; {self._check}")
        elif time.monotonic() - self._last_line > 10.0:
            self._last_line = time.monotonic()
            console.print(f"step {event['step']}: {line}", soft_wrap=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._live:
            self._progress.stop()
