"""A report as data: sections of paragraphs, tables, pictures and verdicts; and its Markdown."""

from __future__ import annotations

import re
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
class Opening:
    """The first screen: what was asked, what was found in a few sentences, and one picture."""

    question: str
    findings: tuple[str, ...]
    picture: Picture | None = None


@dataclass(frozen=True)
class Report:
    """The whole report. `warning` says what is missing to a full run; empty if nothing is."""

    title: str
    warning: str
    sections: tuple[Section, ...]
    opening: Opening | None = None

    @property
    def pictures(self) -> list[Picture]:
        """All pictures, the first screen's first."""
        first = [] if self.opening is None or self.opening.picture is None else [self.opening.picture]
        return first + [picture for section in self.sections for picture in section.pictures]


def anchor(title: str) -> str:
    """A section's place on the page, spelled as GitHub does.

    >>> anchor("Compute (Table 7)")
    'compute-table-7'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def markdown(document: Report, pictures: str = "pictures") -> str:
    """The report as Markdown; its pictures lie in a folder beside it."""
    parts = [f"# {document.title}"]
    if document.warning:
        parts.append(f"> **{document.warning}**")
    if document.opening is not None:
        parts.append(f"**What was asked.** {document.opening.question}")
        parts.append("**What was found.**")
        parts.append("\n".join(f"{n}. {text}" for n, text in enumerate(document.opening.findings, 1)))
        if document.opening.picture is not None:
            parts.append(_image(document.opening.picture, pictures))
    if len(document.sections) > 1:
        parts.append("\n".join(f"- [{one.title}](#{anchor(one.title)})" for one in document.sections))
    for section in document.sections:
        parts.append(f"## {section.title}")
        parts += section.paragraphs
        parts += [_image(picture, pictures) for picture in section.pictures]
        if section.verdicts:
            parts.append(markdown_table(verdict_table(section.verdicts)))
        parts += [markdown_table(table) for table in section.tables]
    return "\n\n".join(parts) + "\n"


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Claims and verdicts as a table, each with its protocol and the rule that decided."""
    rows = tuple(
        (v.claim, v.where, v.protocol or NOTHING, f"**{v.judgement}**", v.figures, v.rule) for v in verdicts
    )
    return Table(("claim of the paper", "where", "protocol", "here", "figures", "rule"), rows)


def markdown_table(table: Table) -> str:
    """A table as Markdown; a rule is an empty row."""
    lines = [_row(table.headings), _row(["---"] * len(table.headings))]
    lines += [_row([""] * len(table.headings) if row is None else row) for row in table.rows]
    if table.caption:
        lines = [table.caption, "", *lines]
    return "\n".join(lines)


def _image(picture: Picture, folder: str) -> str:
    return f"![{_one_line(picture.caption)}]({folder}/{picture.name}.png)\n\n*{picture.caption}*"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _one_line(text: str) -> str:
    return " ".join(text.replace("[", "(").replace("]", ")").split())
