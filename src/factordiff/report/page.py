"""The report as one HTML page: pictures and scripts inside, no request to anywhere, tables that can be sorted."""

from __future__ import annotations

import base64
import html
import re

from factordiff.report.document import NOTHING, Picture, Report, Section, Table, verdict_table

NUMBER = ' class="number"'
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px } caption { text-align: left; padding: .3rem 0 }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #e2e2e2; text-align: left; vertical-align: top }
th { border-bottom: 2px solid #888 } .whole { white-space: nowrap }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.sortable th { cursor: pointer } .sortable th:after { content: " \\2195"; color: #aaa }
tr.rule td { border-bottom: 2px solid #888; padding: 0 } img { max-width: 100% }
figure { margin: 1.5rem 0 } figcaption { color: #555 }
.warning { background: #fff3cd; border: 2px solid #d39e00; padding: .8rem 1rem; font-weight: bold }
.confirmed { color: #17713a } .not-confirmed { color: #a61b1b } .undecided-here { color: #7a5b00 }
@media (prefers-color-scheme: dark) {
 body { background: #16181c; color: #ddd } th, td { border-color: #333 } img { background: #fff }
 .warning { background: #3b3213 } .confirmed { color: #6fd08c } .not-confirmed { color: #ff8f8f }
 .undecided-here { color: #e5c86a } figcaption { color: #aaa } }
"""
SCRIPT = """
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
    body = "\n".join(_section(section) for section in document.sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(document.title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{_text(document.title)}</h1>{warning}\n{body}\n<script>{SCRIPT}</script></body></html>\n"
    )


def _section(section: Section) -> str:
    parts = [f"<h2>{_text(section.title)}</h2>"]
    parts += [f"<p>{_text(paragraph)}</p>" for paragraph in section.paragraphs]
    parts += [html_table(table) for table in section.tables]
    parts += [_figure(picture) for picture in section.pictures]
    if section.verdicts:
        parts.append(html_table(verdict_table(section.verdicts)))
    parts += [html_table(table) for table in section.long_tables]
    return "\n".join(parts)


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
            cells = (_cell(cell, right) for cell, right in zip(row, numeric, strict=True))
            rows.append("<tr>" + "".join(cells) + "</tr>")
    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    kind = ' class="sortable"' if table.sortable else ""
    return f"<table{kind}>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _of_numbers(column: tuple[str, ...]) -> bool:
    """Whether every cell that says something is a number, or a share with its interval."""
    said = [cell for cell in column if cell and not cell.startswith(NOTHING)]
    return bool(said) and all(re.match(r"^\**[-+]?\d[\d.,]*([ x%].*)?\**$", cell) for cell in said)


def _cell(text: str, right: bool) -> str:
    bare = text.strip("*")
    if bare in ("confirmed", "not confirmed", "undecided here"):
        return f'<td class="{bare.replace(" ", "-")}">{_text(text)}</td>'
    return f"<td{NUMBER if right else ''}>{_text(text)}</td>"


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode()
    caption = _text(picture.caption)
    return (
        f'<figure><img alt="{html.escape(picture.caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _text(markdown: str) -> str:
    """A line of Markdown as HTML: only bold and code are used."""
    text = html.escape(markdown)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"(-?[\d.]+ % \[[^\]]*\])", r'<span class="whole">\1</span>', text)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)
