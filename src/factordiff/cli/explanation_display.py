"""Why an answer is what it is, as a table: who decided each cell, by which log-doubt, and what the others said."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from factordiff.cli.terminal_grids import EXPERTS
from factordiff.printable import printable
from factordiff.solving.explanation import Decision, Explanation, Opinion

ENDLESS = 10_000  # columns: how wide a table would be if it could


def show_explanation(console: Console, explanation: Explanation) -> None:
    """The experts by their letters, then every decision, as wide as the terminal allows."""
    named = enumerate(zip(explanation.experts, explanation.temperatures, strict=True))
    console.print(
        "; ".join(
            f"{EXPERTS.letter(index)} {printable(name)}, temperature {temperature:g}"
            for index, (name, temperature) in named
        ),
        style="dim",
        markup=False,
    )
    table = explanation_table(explanation)
    wanted = Measurement.get(console, console.options.update_width(ENDLESS), table).maximum
    if wanted > console.width:
        table = explanation_table(explanation, stacked=True)
    console.print(table)
    said = (
        f"{len(explanation)} cells, {len(explanation.disputed())} of them disputed (*): "
        "experts that know the cell have other first choices."
    )
    if any(decision.decided_by is not None for decision in explanation):
        said += (
            " The least log-doubt decides: log(1 - margin), after the temperature, over the cell's factor."
        )
    console.print(said, style="dim", markup=False)


def explanation_table(explanation: Explanation, stacked: bool = False) -> Table:
    """Every decision in order; the experts side by side, or `stacked` one below the other."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    for heading in ("step", "cell", "color"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("by", no_wrap=True)
    letters = [EXPERTS.letter(index) for index in range(len(explanation.experts))]
    for one in ("",) if stacked else letters:
        if stacked:
            table.add_column("", no_wrap=True)
        table.add_column(f"{one} said".strip(), justify="right", no_wrap=True)
        table.add_column("margin", justify="right", no_wrap=True)
        table.add_column("log-doubt", justify="right", no_wrap=True)
    for decision in explanation:
        about = _about(decision, explanation)
        said = [_said(one, decision) for one in decision.opinions]
        if not stacked:
            table.add_row(*about, *(part for one in said for part in one))
            continue
        for place, opinion in enumerate(said):
            table.add_row(*(about if place == 0 else [""] * len(about)), letters[place], *opinion)
    return table


def _about(decision: Decision, explanation: Explanation) -> list[str]:
    who = (
        "all"
        if decision.decided_by is None
        else EXPERTS.letter(explanation.experts.index(decision.decided_by))
    )
    color = f"{decision.color}{'*' if decision.disputed else ' '}"
    return [str(decision.step), f"{decision.row},{decision.column}", color, who]


def _said(opinion: Opinion, decision: Decision) -> list[Text]:
    style = "bold" if opinion.expert == decision.decided_by else ""
    doubt = log_doubt_text(opinion.decisive_log_doubt, [one.decisive_log_doubt for one in decision.opinions])
    return [Text(part, style) for part in (str(opinion.color), opinion.margin_text, doubt)]


def log_doubt_text(value: float, among: list[float]) -> str:
    """A log-doubt with as many decimals as it takes to tell the experts' apart, and no minus before zero.

    >>> log_doubt_text(-13.321, [-13.321, -13.324]), log_doubt_text(-0.0, [-0.0, -1.0])
    ('-13.321', '0.00')
    """
    different = len(set(among))
    for digits in range(2, 9):
        if len({f"{one:.{digits}f}" for one in among}) == different:
            break
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if not float(text) else text
