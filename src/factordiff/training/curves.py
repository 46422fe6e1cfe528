"""A picture of a run's curves, from its log."""

from __future__ import annotations

from pathlib import Path

from factordiff.files import write_whole
from factordiff.pictures import png
from factordiff.training.log import read_log


def draw_curves(log: Path, picture: Path) -> None:
    """Loss over the steps (training and validation) and accuracies, as a PNG."""
    from matplotlib.figure import Figure

    events = read_log(log)
    steps = [event for event in events if event["event"] == "log"]
    checks = [event for event in events if event["event"] == "check"]
    figure = Figure(figsize=(10, 4), layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    loss.plot([e["step"] for e in steps], [e["loss"] for e in steps], lw=0.8, label="training")
    loss.plot([e["step"] for e in checks], [e["loss"] for e in checks], marker=".", label="validation")
    if any(event["loss"] > 0 for event in [*steps, *checks]):
        loss.set_yscale("log")
    loss.set(xlabel="step", ylabel="loss")
    for name in ("pixel", "exact", "occupancy", "given_foreground", "right_at_15", "right_at_50"):
        shown = [e for e in checks if name in e]
        if shown:
            accuracy.plot([e["step"] for e in shown], [100 * e[name] for e in shown], marker=".", label=name)
    accuracy.set(xlabel="step", ylabel="%", ylim=(0, 101))
    for axes in (loss, accuracy):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    write_whole(picture, png(figure, tight=False))
