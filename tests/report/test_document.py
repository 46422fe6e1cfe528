"""The report's two forms."""

from __future__ import annotations

import re

from factordiff.report.document import Opening, Picture, Report, Section, Table, anchor, markdown
from factordiff.report.page import page
from factordiff.report.verdicts import Verdict

SECTION = Section(
    "A title",
    ("A <paragraph> with `code`.",),
    (Table(("method", "exact %"), (("a|b", "95.2"), None, ("**c**", "1.0")), "A caption"),),
    (Picture("bars", b"\x89PNG", "What it shows"),),
    (Verdict("it works", "abstract", "not confirmed", "-1 point", "Above 0.", "all fitted"),),
    (Table(("task", "exact %"), (("007bbfb7", "10.0"),), sortable=True),),
)
DOCUMENT = Report("Results", "A SUBSET", (SECTION,))


def test_markdown():
    text = markdown(DOCUMENT)
    assert text.startswith("# Results\n\n> **A SUBSET**\n\n## A title\n")
    assert "| a\\|b | 95.2 |\n|  |  |\n| **c** | 1.0 |" in text
    assert "![What it shows](pictures/bars.png)" in text
    assert "| it works | abstract | all fitted | **not confirmed** | -1 point | Above 0. |" in text
    assert "007bbfb7" not in text  # tables with a row per task are on the page only


def test_page_is_self_contained_and_escapes():
    text = page(DOCUMENT)
    assert '<p class="warning">A SUBSET</p>' in text
    assert "A &lt;paragraph&gt; with <code>code</code>." in text
    verdict = '<b class="not-confirmed">not confirmed</b>: it works <span class="about">(abstract, all fitted)</span>'
    assert verdict in text
    assert '<p class="rule">Above 0.</p>' in text
    assert '<table class="sortable">' in text
    assert '<td class="number" data-label="exact %">95.2</td>' in text
    assert '<td data-label="task">007bbfb7</td>' in text
    assert '<th>method</th><th class="number">exact %</th>' in text
    assert not re.search(r'https?:|(src|href)="(?!data:)|@import|url\(', text)


def test_columns_of_numbers_stand_to_the_right_with_their_dashes():
    rows = (("a", "95.2 % [94.0, 96.1], T = 4", "3", "2x"), ("b", "—", "not run", "—"))
    text = page(Report("Results", "", (Section("S", tables=(Table(("m", "x", "y", "z"), rows),)),)))
    bare = re.sub(' data-label="[^"]*"', "", text)
    assert '<td class="number"><span class="whole">95.2 % [94.0, 96.1]</span>, T = 4</td>' in bare
    assert '<td class="number">—</td><td>not run</td><td class="number">—</td>' in bare
    assert "<td>3</td>" in bare, "a column with words in it is a column of words"
    assert page(Report("Results", "", (Section("S", tables=(Table(("m", "x"), ()),)),)))


def test_no_warning_no_box():
    whole = Report("Results", "", (SECTION,))
    assert 'class="warning"' not in page(whole)
    assert "SUBSET" not in markdown(whole)


OPENING = Opening(
    "Which?", ("This one, [says](../worlds.md) a page.", "That one."), Picture("first", b"\x89PNG", "Both")
)
LONG = Table(("task", "exact %"), tuple((f"t{number}", "1.0") for number in range(40)), "Many")
WHOLE = Report("Results", "", (SECTION, Section("Another (Table 2)", tables=(LONG,))), OPENING)


def test_the_first_screen_comes_first_then_the_contents() -> None:
    text = markdown(WHOLE)
    order = [
        "**What was asked.** Which?",
        "1. This one",
        "2. That one.",
        "pictures/first.png",
        "- [A title](#a-title)",
    ]
    places = [text.index(part) for part in (*order, "## A title")]
    assert places == sorted(places)
    html = page(WHOLE)
    parts = [
        "What was asked.",
        "<li>This one",
        "data:image/png",
        "<nav>",
        'href="#another-table-2"',
        "<h2 id=",
    ]
    assert [html.index(part) for part in parts] == sorted(html.index(part) for part in parts)
    assert '<a href="../worlds.md">says</a>' in html
    assert [picture.name for picture in WHOLE.pictures] == ["first", "bars"]
    assert anchor("Another (Table 2)") == "another-table-2"


def test_pictures_and_verdicts_stand_before_the_tables() -> None:
    for text, parts in (
        (markdown(WHOLE), ("A <paragraph>", "pictures/bars.png", "| it works |", "| a\\|b |")),
        (page(WHOLE), ("A &lt;paragraph", "What it shows", "it works", "a|b")),
    ):
        places = [text.index(part) for part in parts]
        assert places == sorted(places)


def test_long_tables_are_folded_and_open_on_paper() -> None:
    html = page(WHOLE)
    assert "<details><summary>Many (40 rows)</summary><table>" in html
    assert html.count("<details>") == 2, "the other has a row per task"
    assert "beforeprint" in html
    assert "@media print" in html
