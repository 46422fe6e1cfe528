"""A table as plain text and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from factordiff.report.document import Table

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "—": "---",
}  # fmt: skip


def text_table(table: Table) -> str:
    """Columns side by side, numbers to the right."""
    bodies = [row for row in table.rows if row is not None]
    widths = [max(map(len, column)) for column in zip(table.headings, *bodies, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    lines = [line(table.headings), rule, *(rule if row is None else line(row) for row in table.rows)]
    caption = [fill(table.caption.replace("`", ""), 100)] if table.caption else []
    return "\n".join([*caption, *lines])


def latex_table(table: Table) -> str:
    """A `tabular` in a `table`, for booktabs."""
    columns = "l" * min(2, len(table.headings)) + "r" * max(0, len(table.headings) - 2)
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [_latex_row(table.headings), r"\midrule"]
    lines += [r"\midrule" if row is None else _latex_row(row) for row in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.caption:
        lines.append(rf"\caption{{{_latex(table.caption.replace('`', ''))}}}")
    return "\n".join([*lines, r"\end{table}"])


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"


def _latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)
