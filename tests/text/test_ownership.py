"""Prose told from code, and each alone, against a reading line by line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factordiff.errors import DataError, InvalidInput
from factordiff.text.alphabet import BYTES, LETTERS, letters, one_for_one, values
from factordiff.text.ownership import alone, cleaned, prose_of

TEXT = '''"""Module.

Said over lines."""
import os  # why

# A comment of its own.
class A:
    """Of a class."""
    text = """not a docstring"""

    def f(self):
        r\'\'\'Of a function.\'\'\'
        "no docstring: it comes second"
        return "# no comment"


async def g(): "on one line"
'''
PROSE = '''"""Module.

Said over lines."""
# why
# A comment of its own.
    """Of a class."""
        r\'\'\'Of a function.\'\'\'
"on one line"
'''
CODE = '''import os

class A:
    text = """not a docstring"""

    def f(self):
        "no docstring: it comes second"
        return "# no comment"


async def g():
'''


def by_lines(text: str, prose: np.ndarray, kind: str) -> str:
    """The rule as one would say it."""
    kept, place = [], 0
    for line in text.split("\n")[:-1] if text.endswith("\n") else text.split("\n"):
        whole = text[place : place + len(line) + 1]
        marks = prose[place : place + len(whole)]
        body = len(line)
        if kind == "prose":
            if marks.any():
                indent = len(line) - len(line.lstrip(" ")) if line.strip(" ") else 0
                if not line.strip(" "):
                    indent = body
                kept.append("".join(c for i, c in enumerate(whole) if i < indent or marks[i] or c == "\n"))
        else:
            code = "".join(c for i, c in enumerate(line) if not marks[i])
            if code.strip(" ") or (not line.strip(" ") and not marks.any()):
                kept.append(code.rstrip(" ") + whole[body:])
        place += len(whole)
    return "".join(kept)


def test_a_file_by_hand() -> None:
    prose = prose_of(TEXT)
    assert letters(alone(values(TEXT), prose, "prose")) == PROSE
    assert letters(alone(values(TEXT), prose, "code")) == CODE


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="a \n#", max_size=40), st.data())
def test_alone_is_the_rule_line_by_line(text: str, data: st.DataObject) -> None:
    text = text + "\n"
    prose = np.array(data.draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text))), dtype=bool)
    prose[[letter == "\n" for letter in text]] &= np.roll(prose, 1)[[letter == "\n" for letter in text]]
    for kind in ("prose", "code"):
        assert letters(alone(values(text), prose, kind)) == by_lines(text, prose, kind), kind


def test_legal_notices_and_foreign_characters_go() -> None:
    assert cleaned("# Copyright me\n# All rights\n\nimport os\n") == "import os\n"
    assert cleaned("# What it does\nimport os") == "# What it does\nimport os\n"
    assert cleaned("\ufeffx\t= 'é'\r\n\f\n") == "x    = '?'\n"
    assert cleaned("import os\n# Copyright me\n") == "import os\n# Copyright me\n"


def test_what_is_no_python_is_refused() -> None:
    with pytest.raises(DataError, match=r"not a Python file of version 3\.11"):
        prose_of("def f(:\n")


def test_the_alphabet_there_and_back() -> None:
    assert BYTES.size == 96
    assert letters(values(LETTERS)) == LETTERS
    assert letters([BYTES.mask, 34]) == "_A"
    assert len(one_for_one("é\t\r\n€")) == 5
    with pytest.raises(InvalidInput, match="character 1 is 'é'"):
        values("né")
    with pytest.raises(InvalidInput, match=r"character 2 is '\\t'"):
        values("no\t")
