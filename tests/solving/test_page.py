"""The page of all answers: whole in itself, every grid in it, wrong cells crossed out, names as text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from factordiff import ByConfidence, compose
from factordiff.arc.svg import COLORS
from factordiff.solving.page import page
from factordiff.solving.solver import solve
from tests.solving_experts import Rule, halves, task


class Parsed(HTMLParser):
    """Tags, addresses that a browser would fetch, and what is left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "data", "action")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else() -> None:
    solved = [solve(task(name), compose(halves(), reveal=ByConfidence(4))) for name in ("one", "two")]
    text = page(solved, explained=True)
    parsed = Parsed(text)
    assert not parsed.open  # every tag is closed
    assert not parsed.addresses
    assert "script" not in parsed.tags
    assert 'name="viewport"' in text  # a phone shows it at its own width
    assert "2 tasks, 2 of 2 known answers right at once, 2 in two attempts" in text
    assert text.count("<h2 ") == 2
    # Two demonstrations and, of the first test, input, attempts, routing and truth; the second has no truth.
    assert parsed.tags.count("svg") == 2 * (4 + 5 + 4)
    assert parsed.tags.count("table") == 4


def test_wrong_cells_are_crossed_out_and_right_ones_are_not() -> None:
    copy = Rule(lambda query: query, lambda place: place[0] >= 0)
    wrong = page([solve(task(), compose([copy]), attempts=1)])
    assert len(re.findall(r"M\d+ \d+l", wrong)) == 2 * 6  # six of eight cells, each stroke twice
    assert '<span class="wrong">wrong</span>' in wrong
    right = page([solve(task(), compose(halves()), attempts=1)])
    assert not re.findall(r"M\d+ \d+l", right)
    for color in (2, 3, 4, 5, 6, 7):  # the answer's
        assert COLORS[color] in right


def test_names_are_text() -> None:
    text = page([solve(task("<script>"), compose({"<b>": halves()["left"]}), attempts=1)])
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "<b> " not in text


def test_a_vote_says_that_it_cannot_be_explained() -> None:
    team = compose(halves(), "vote", runs=1, reveal=ByConfidence(2))
    assert "pooled from several runs" in page([solve(task(), team, attempts=1)], explained=True)
