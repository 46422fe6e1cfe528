"""A report as data: sections of paragraphs, tables, pictures and verdicts; and its Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from factordiff.report.verdicts import Verdict

NOTHING = "—"  # what a table says where there is no figure


@dataclass(frozen=True)
class Table:
    """Headings and rows of text; a row that is None is a rule. `sortable` tables may be long: one row per task."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...] | None, ...]
    caption: str = ""
    sortable: bool = False


@dataclass(frozen=True)
class Picture:
    """A PNG image and what it shows."""

    name: str
    png: bytes = field(repr=False)
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """One experiment's part of the report."""

    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    long_tables: tuple[Table, ...] = ()  # per task: only on the page, where they can be sorted


@dataclass(frozen=True)
class Report:
    """The whole report. `warning` says what is missing to a full run; empty if nothing is."""

    title: str
    warning: str
    sections: tuple[Section, ...]


def markdown(document: Report, pictures: str = "pictures") -> str:
    """The report as Markdown; its pictures lie in a folder beside it."""
    parts = [f"# {document.title}"]
    if document.warning:
        parts.append(f"> **{document.warning}**")
    for section in document.sections:
        parts.append(f"## {section.title}")
        parts += section.paragraphs
        parts += [markdown_table(table) for table in section.tables]
        parts += [
            f"![{_one_line(p.caption)}]({pictures}/{p.name}.png)\n\n*{p.caption}*" for p in section.pictures
        ]
        if section.verdicts:
            parts.append(markdown_table(verdict_table(section.verdicts)))
    return "\n\n".join(parts) + "\n"


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Claims and verdicts as a table, each with the rule that decided."""
    rows = tuple((v.claim, v.where, f"**{v.judgement}**", v.figures, v.rule) for v in verdicts)
    return Table(("claim of the paper", "where", "here", "figures", "rule"), rows)


def markdown_table(table: Table) -> str:
    """A table as Markdown; a rule is an empty row."""
    lines = [_row(table.headings), _row(["---"] * len(table.headings))]
    lines += [_row([""] * len(table.headings) if row is None else row) for row in table.rows]
    if table.caption:
        lines = [table.caption, "", *lines]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _one_line(text: str) -> str:
    return " ".join(text.replace("[", "(").replace("]", ")").split())
