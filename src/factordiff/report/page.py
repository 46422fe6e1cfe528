"""The report as one HTML page: pictures and scripts inside, no request to anywhere, tables that can be sorted."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from factordiff.report.document import NOTHING, Opening, Picture, Report, Section, Table, anchor
from factordiff.report.verdicts import Verdict

NUMBER = ' class="number"'
FEW = 14  # rows of a table that stands open; a longer one is folded
STYLE, SCRIPT = ((Path(__file__).parent / name).read_text() for name in ("page.css", "page.js"))


def page(document: Report) -> str:
    """The whole page as text."""
    warning = f'<p class="warning">{_text(document.warning)}</p>' if document.warning else ""
    parts = [warning, _opening(document.opening), _contents(document.sections)]
    parts += [_section(section) for section in document.sections]
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(document.title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>\n{STYLE}</style></head>\n'
        f"<body><h1>{_text(document.title)}</h1>{body}\n<script>\n{SCRIPT}</script></body></html>\n"
    )


def _opening(opening: Opening | None) -> str:
    if opening is None:
        return ""
    findings = "".join(f"<li>{_text(text)}</li>" for text in opening.findings)
    picture = "" if opening.picture is None else _figure(opening.picture)
    return (
        f'<div class="opening"><div><p><b>What was asked.</b> {_text(opening.question)}</p>'
        f"<p><b>What was found.</b></p><ol>{findings}</ol></div>{picture}</div>"
    )


def _contents(sections: Sequence[Section]) -> str:
    if len(sections) < 2:
        return ""
    links = (f'<li><a href="#{anchor(one.title)}">{_text(one.title)}</a></li>' for one in sections)
    return f"<nav><p><b>Contents</b></p><ul>{''.join(links)}</ul></nav>"


def _section(section: Section) -> str:
    parts = [f'<h2 id="{anchor(section.title)}">{_text(section.title)}</h2>']
    parts += [f"<p>{_text(paragraph)}</p>" for paragraph in section.paragraphs]
    parts += [_figure(picture) for picture in section.pictures]
    parts += [_verdict(verdict) for verdict in section.verdicts]
    parts += [_folded(table) if len(table.rows) > FEW else html_table(table) for table in section.tables]
    parts += [_folded(table) for table in section.long_tables]
    return "\n".join(parts)


def _folded(table: Table) -> str:
    title = table.caption or ", ".join(heading for heading in table.headings if heading)
    return (
        f"<details><summary>{_text(title)} ({len([row for row in table.rows if row])} rows)</summary>"
        f"{html_table(replace(table, caption=''))}</details>"
    )


def _verdict(verdict: Verdict) -> str:
    kind = verdict.judgement.replace(" ", "-")
    about = ", ".join(part for part in (verdict.where, verdict.protocol) if part)
    return (
        f'<div class="verdict"><p><b class="{kind}">{verdict.judgement}</b>: {_text(verdict.claim)} '
        f'<span class="about">({_text(about)})</span></p><p class="figures">{_text(verdict.figures)}</p>'
        f'<p class="rule">{_text(verdict.rule)}</p></div>'
    )


def html_table(table: Table) -> str:
    """A table as HTML; columns of numbers stand to the right."""
    numeric = [_of_numbers(column) for column in zip(*filter(None, table.rows), strict=True)]
    numeric = numeric or [False] * len(table.headings)
    pairs = zip(table.headings, numeric, strict=True)
    head = "".join(f"<th{NUMBER if right else ''}>{_text(heading)}</th>" for heading, right in pairs)
    rows = []
    for row in table.rows:
        if row is None:
            rows.append(f'<tr class="rule"><td colspan="{len(table.headings)}"></td></tr>')
        else:
            cells = map(_cell, row, numeric, table.headings)
            rows.append("<tr>" + "".join(cells) + "</tr>")
    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    kind = ' class="sortable"' if table.sortable else ""
    return f"<table{kind}>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _of_numbers(column: tuple[str, ...]) -> bool:
    """Whether every cell that says something is a number, or a share with its interval."""
    said = [cell for cell in column if cell and not cell.startswith(NOTHING)]
    return bool(said) and all(re.match(r"^\**[-+]?\d[\d.,]*([ x%].*)?\**$", cell) for cell in said)


def _cell(text: str, right: bool, heading: str) -> str:
    """A cell that says its own heading, for screens too narrow for columns."""
    label = html.escape(heading.replace("**", ""))
    return f'<td{NUMBER if right else ""} data-label="{label}">{_text(text)}</td>'


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode()
    caption = _text(picture.caption)
    return (
        f'<figure><img alt="{html.escape(picture.caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _text(markdown: str) -> str:
    """A line of Markdown as HTML: only bold, code and links are used."""
    text = html.escape(markdown)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"(-?[\d.]+ % \[[^\]]*\])", r'<span class="whole">\1</span>', text)
    text = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', text)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)
