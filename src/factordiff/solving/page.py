"""All answers as one page of HTML: everything inside, no script, no request to anywhere, readable on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from factordiff.arc.grid import Grid
from factordiff.arc.svg import COLORS, grid_svg, routing_svg
from factordiff.arc.task import Task
from factordiff.errors import InvalidInput
from factordiff.solving.answer import Answer, TaskAnswers
from factordiff.solving.explanation import Explanation
from factordiff.solving.wording import sentences, tally

CELL = 20
STYLE = (Path(__file__).parent / "page.css").read_text()


def page(solved: Sequence[TaskAnswers], explained: bool = False) -> str:
    """The page as text: for every task what was shown, then each test with both attempts and who decided."""
    count = f"{len(solved)} task{'' if len(solved) == 1 else 's'}"
    summary = ", ".join(filter(None, [count, tally(answer for task in solved for answer in task)]))
    teams = dict.fromkeys(f"{answer.team!r}" for task in solved for answer in task)
    body = "\n".join(_task(task, explained) for task in solved)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>FactorDiff: answers</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>\n{STYLE}</style></head>\n'
        f"<body><h1>Answers</h1><p>{escape(summary)}.</p>"
        f"{''.join(f'<p><small>{escape(team)}</small></p>' for team in teams)}\n{body}\n</body></html>\n"
    )


def _task(answers: TaskAnswers, explained: bool) -> str:
    task: Task = answers[0].question.task
    shown = "".join(
        f'<div class="pair">{_figure(f"shown {number}", pair.input)}{_figure("becomes", pair.output)}</div>'
        for number, pair in enumerate(task.demonstrations)
        if pair.output is not None
    )
    tests = "".join(_answer(answer, explained) for answer in answers)
    return f'<h2 id="{escape(task.id)}">{escape(task.id)}</h2><div class="row">{shown}</div>{tests}'


def _answer(answer: Answer, explained: bool) -> str:
    verdict = {
        None: "",
        True: ' <span class="right">right</span>',
        False: ' <span class="wrong">wrong</span>',
    }
    figures = [_figure("input", answer.query), _figure("attempt 1", answer.grid, answer.truth)]
    if answer.routing is not None:
        drawn = routing_svg(answer.routing.labels, answer.routing.experts, CELL)
        figures.append(f"<figure><figcaption>decided by</figcaption>{drawn}</figure>")
    if answer.second is not None:
        figures.append(_figure("attempt 2", answer.second.grid, answer.truth))
    if answer.truth is not None:
        figures.append(_figure("truth", answer.truth))
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences(answer))
    why = _explained(answer) if explained else ""
    return (
        f"<h3>test {answer.number}{verdict[answer.right]}</h3>"
        f'<div class="row">{"".join(figures)}</div>{said}{why}'
    )


def _figure(title: str, grid: Grid, truth: Grid | None = None) -> str:
    """A grid under its title; the colors are also told to who listens instead of looking."""
    wrong = None if truth is None or truth.shape != grid.shape else np.not_equal(grid, truth)
    drawn = grid_svg(grid, CELL, wrong).replace(
        "<svg ", f'<svg role="img" aria-label="{_spoken(title, grid)}" ', 1
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{drawn}</figure>"


def _spoken(title: str, grid: Grid) -> str:
    rows = "; ".join(" ".join(map(str, row)) for row in grid.tolist())
    return escape(
        f"{title}, {grid.shape[0]} by {grid.shape[1]}, colors 0 to {len(COLORS) - 1} row by row: {rows}"
    )


def _explained(answer: Answer) -> str:
    try:
        explanation = answer.explain()
    except InvalidInput as error:
        return f"<p>{escape(str(error))}</p>"
    return f"<details><summary>Why: {explanation!r}</summary>{explanation_table(explanation)}</details>"


def explanation_table(explanation: Explanation) -> str:
    """Every decision in order: cell, color, who decided, and what each expert said with which log-doubt."""
    named = zip(explanation.experts, explanation.temperatures, strict=True)
    heads = [f"{name}, temperature {temperature:g}" for name, temperature in named]
    top = "".join(f'<th colspan="3">{escape(head)}</th>' for head in heads)
    second = "<th>said</th><th>margin</th><th>log-doubt</th>" * len(heads)
    rows = []
    for one in explanation:
        cells = [
            one.step,
            one.row,
            one.column,
            f"{one.color}{'*' if one.disputed else ''}",
            one.decided_by or "all",
        ]
        for opinion in one.opinions:
            cells += [opinion.color, opinion.margin_text, f"{opinion.decisive_log_doubt + 0.0:.2f}"]
        rows.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>")
    titles = "".join(f"<th>{title}</th>" for title in ("step", "row", "column", "color", "decided by"))
    return (
        f'<div class="table"><table><thead><tr><th colspan="5"></th>{top}</tr><tr>{titles}{second}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
