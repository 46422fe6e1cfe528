"""The report as one HTML page: pictures and scripts inside, no request to anywhere, tables that can be sorted."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import replace

from factordiff.report.document import NOTHING, Opening, Picture, Report, Section, Table, anchor
from factordiff.report.verdicts import Verdict

NUMBER = ' class="number"'
FEW = 14  # rows of a table that stands open; a longer one is folded
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 1.5rem auto; padding: 0 1rem; color: #222 }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc } h1 { font-size: 1.6rem }
.opening li { margin: .35rem 0 } .opening ol { padding-left: 1.2rem } a { color: #0b5f8a }
nav ul { columns: 18rem; padding-left: 1.2rem }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px } caption { text-align: left; padding: .3rem 0 }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #e2e2e2; text-align: left; vertical-align: top }
th { border-bottom: 2px solid #888 } .whole { white-space: nowrap }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.sortable th { cursor: pointer } .sortable th:after { content: " \\2195"; color: #aaa }
tr.rule td { border-bottom: 2px solid #888; padding: 0 } img { max-width: 100%; height: auto }
figure { margin: 1.5rem 0 } figcaption { color: #555 } code { overflow-wrap: anywhere }
details { margin: .6rem 0 } summary { cursor: pointer; color: #444 }
.verdict { margin: .7rem 0; padding: .1rem 0 .1rem .8rem; border-left: 3px solid #ccc } .verdict p { margin: .15rem 0 }
.verdict .about { color: #666 } .verdict .figures, .verdict .rule { font-size: 13px; color: #555 }
.warning { background: #fff3cd; border: 2px solid #d39e00; padding: .8rem 1rem; font-weight: bold }
.confirmed { color: #17713a } .not-confirmed { color: #a61b1b } .undecided-here { color: #7a5b00 }
@media (min-width: 62rem) {
 .opening { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.5rem } .opening figure { margin: 0 } }
@media (max-width: 60rem) {
 table, caption, thead, tbody, tr, td { display: block } thead { display: none }
 tr { border-bottom: 2px solid #ccc; padding: .4rem 0 } tr.rule { display: none }
 td { border: 0; padding: .1rem 0 } td, td.number { text-align: left; overflow-wrap: anywhere }
 td:before { content: attr(data-label) ": "; color: #777 } td[data-label=""]:before { content: "" } }
@media (prefers-color-scheme: dark) {
 body { background: #16181c; color: #ddd } th, td { border-color: #333 } img { background: #fff }
 .warning { background: #3b3213 } .confirmed { color: #6fd08c } .not-confirmed { color: #ff8f8f } a { color: #7cc4ea }
 .undecided-here { color: #e5c86a } figcaption, summary, .verdict p.about, .verdict p.figures { color: #aaa }
 .verdict p.rule { color: #999 } }
@media print {
 body { max-width: none; margin: 0; font-size: 10pt; background: #fff; color: #000 } nav, script { display: none }
 table { font-size: 8pt; page-break-inside: auto } tr, figure, .verdict { break-inside: avoid }
 h2 { break-after: avoid } a { color: inherit; text-decoration: none } .sortable th:after { content: "" } }
"""
SCRIPT = """
addEventListener("beforeprint", () => {  // on paper nothing can be unfolded
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    addEventListener("afterprint", () => { folded.open = false; }, { once: true });
  }
});
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((heading, column) => {
    let up = true;
    const sort = () => {
      const value = row => {
        const text = row.cells[column].textContent.trim(), number = parseFloat(text.replace(/,/g, ""));
        return /^[-+]?[0-9]/.test(text) && !/[a-f]/i.test(text) ? number : text;
      };
      const rows = [...body.rows].sort((one, other) => {
        const a = value(one), b = value(other);
        const order = typeof a == typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a == "number" ? -1 : 1;
        return up ? order : -order;
      });
      up = !up;
      body.append(...rows);
    };
    heading.tabIndex = 0;
    heading.addEventListener("click", sort);
    heading.addEventListener("keydown", event => { if (event.key == "Enter") sort(); });
  });
}
"""


def page(document: Report) -> str:
    """The whole page as text."""
    warning = f'<p class="warning">{_text(document.warning)}</p>' if document.warning else ""
    parts = [warning, _opening(document.opening), _contents(document.sections)]
    parts += [_section(section) for section in document.sections]
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(document.title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>\n'
        f"<body><h1>{_text(document.title)}</h1>{body}\n<script>{SCRIPT}</script></body></html>\n"
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
