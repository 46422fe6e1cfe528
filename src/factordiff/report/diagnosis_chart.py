"""A diagnosis as a picture: bars of what each way gets right, curves by mask rate, maps of wrong sureness."""

from __future__ import annotations

from matplotlib.figure import Figure

from factordiff.fitting.diagnosis import BOUNDS, Diagnosis
from factordiff.pictures import png

PLAIN, LEARNED, BOUND = "#0b6e8f", "#d9822b", "#b8b8b8"


def picture(diagnosis: Diagnosis) -> bytes:
    """The picture as PNG bytes."""
    experts = len(diagnosis.names)
    figure = Figure(figsize=(9.0 + 2.4 * experts, 3.6))
    panels = figure.subplots(1, 2 + experts, gridspec_kw={"width_ratios": [2.2, 1.8, *[1.0] * experts]})
    bars, curves, maps = panels[0], panels[1], panels[2:]
    findings = diagnosis.findings[::-1]
    colors = [
        BOUND if one.name in BOUNDS else LEARNED if one.name == "learned" else PLAIN for one in findings
    ]
    bars.barh([one.name for one in findings], [100 * one.cells for one in findings], color=colors)
    least = min(100 * one.cells for one in findings)
    bars.set_xlim(max(0.0, least - 5), 100.5)
    bars.set_xlabel("hidden cells right, %")
    bars.tick_params(labelsize=8)
    shown = {diagnosis.best_without.name: PLAIN, "learned": LEARNED, "oracle": BOUND}
    for name, color in shown.items():
        heights = [100 * share for share in diagnosis[name].by_rate]
        curves.plot([100 * rate for rate in diagnosis.rates], heights, "o-", color=color, label=name)
    curves.set_xlabel("cells hidden, %")
    curves.set_ylabel("right, %")
    curves.legend(fontsize=8, frameon=False)
    most = max(float(diagnosis.wrongly_sure.max()), 1e-9)
    for name, axes, cells in zip(diagnosis.names, maps, diagnosis.wrongly_sure.cpu(), strict=True):
        shape = diagnosis.layout or (1, len(cells))
        aspect = "equal" if shape[0] > 1 else "auto"
        axes.imshow(cells.numpy().reshape(shape), cmap="magma", vmin=0.0, vmax=most, aspect=aspect)
        axes.set_title(f"{name}\nwrongly sure, at most {100 * float(cells.max()):.0f} %", fontsize=8)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.tight_layout()
    return png(figure)
