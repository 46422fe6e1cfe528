"""The report's two forms."""

from __future__ import annotations

import re

from factordiff.report.document import Picture, Report, Section, Table, markdown
from factordiff.report.page import page
from factordiff.report.verdicts import Verdict

SECTION = Section(
    "A title",
    ("A <paragraph> with `code`.",),
    (Table(("method", "exact %"), (("a|b", "95.2"), None, ("**c**", "1.0")), "A caption"),),
    (Picture("bars", b"\x89PNG", "What it shows"),),
    (Verdict("it works", "abstract", "not confirmed", "-1 point", "Above 0."),),
    (Table(("task", "exact %"), (("007bbfb7", "10.0"),), sortable=True),),
)
DOCUMENT = Report("Results", "A SUBSET", (SECTION,))


def test_markdown():
    text = markdown(DOCUMENT)
    assert text.startswith("# Results\n\n> **A SUBSET**\n\n## A title\n")
    assert "| a\\|b | 95.2 |\n|  |  |\n| **c** | 1.0 |" in text
    assert "![What it shows](pictures/bars.png)" in text
    assert "| it works | abstract | **not confirmed** | -1 point | Above 0. |" in text
    assert "007bbfb7" not in text  # tables with a row per task are on the page only


def test_page_is_self_contained_and_escapes():
    text = page(DOCUMENT)
    assert '<p class="warning">A SUBSET</p>' in text
    assert "A &lt;paragraph&gt; with <code>code</code>." in text
    assert '<td class="not-confirmed"><b>not confirmed</b></td>' in text
    assert '<table class="sortable">' in text
    assert '<td class="number">95.2</td>' in text
    assert "<td>007bbfb7</td>" in text
    assert '<th>method</th><th class="number">exact %</th>' in text
    assert not re.search(r'https?:|(src|href)="(?!data:)|@import|url\(', text)


def test_columns_of_numbers_stand_to_the_right_with_their_dashes():
    rows = (("a", "95.2 % [94.0, 96.1], T = 4", "3", "2x"), ("b", "—", "not run", "—"))
    text = page(Report("Results", "", (Section("S", tables=(Table(("m", "x", "y", "z"), rows),)),)))
    assert '<td class="number"><span class="whole">95.2 % [94.0, 96.1]</span>, T = 4</td>' in text
    assert '<td class="number">—</td><td>not run</td><td class="number">—</td>' in text
    assert "<td>3</td>" in text, "a column with words in it is a column of words"
    assert page(Report("Results", "", (Section("S", tables=(Table(("m", "x"), ()),)),)))


def test_no_warning_no_box():
    whole = Report("Results", "", (SECTION,))
    assert 'class="warning"' not in page(whole)
    assert "SUBSET" not in markdown(whole)
