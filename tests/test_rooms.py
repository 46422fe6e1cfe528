"""The package as a whole keeps its rules, and each of them can be broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import rooms
from tests.rooms import RULES

SOURCE = Path(__file__).parents[1] / "src" / "factordiff"
SOURCES = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.py")}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(rule) -> None:
    broken = list(rule(SOURCES))
    assert not broken, "\n".join(broken)


PARSER = "def f(name):\n    return {'a': ByMargin(1), 'b': ByEntropy(1), 'c': Ancestral(1)}[name]"
BROKEN = [
    ("one_class_of_a_name", {"arc/x.py": "class Pair: ...", "worlds/x.py": "class Pair: ..."}),
    ("no_cycles", {"team/a.py": "import factordiff.team.b", "team/b.py": "from factordiff.team import a"}),
    (
        "no_cycles",
        {
            "team/a.py": "def f():\n    from factordiff.team.b import x",
            "team/b.py": "from factordiff.team.c import y",
            "team/c.py": "from factordiff.team.a import f",
        },
    ),
    ("one_loader", {"cli/x.py": "expert = load_expert(folder)"}),
    (
        "one_table_of_factors",
        {"web/x.py": "X = ('pixel', 'row', 'column', 'block:2x2', 'component', 'whole')"},
    ),
    ("one_table_of_factors", {"web/x.py": "X = r'^(pixel|row|column|component|whole|near:[1-9])$'"}),
    (
        "one_table_of_factors",
        {"composition/x.py": "X = 'pixel, row, column, block:2x2, component, near:2, or labels'"},
    ),
    ("one_parser_of_rules", {"web/x.py": PARSER}),
    ("one_atomic_write", {"report/x.py": "os.replace(temporary, target)"}),
    ("one_atomic_write", {"report/x.py": "path.with_suffix('.part').replace(path)"}),
]
KEPT = [
    ("one_class_of_a_name", {"arc/x.py": "class _Pair: ...", "worlds/x.py": "class _Pair: ..."}),
    (
        "no_cycles",
        {
            "team/a.py": "from factordiff.team.b import x",
            "team/b.py": "if TYPE_CHECKING:\n    from factordiff.team.a import f",
        },
    ),
    ("one_loader", {"networks/named.py": "expert = load_expert(folder)"}),
    ("one_table_of_factors", {"worlds/x.py": "X = ('pixel', 'component', 'whole')"}),
    ("one_parser_of_rules", {"sampling/rules.py": PARSER}),
    ("one_atomic_write", {"files.py": "os.replace(temporary, target)"}),
    ("one_atomic_write", {"web/x.py": "text.replace('a', 'b')\nreplace(state, x_t=x_t)"}),
]


@pytest.mark.parametrize(("rule", "sources"), BROKEN)
def test_the_rule_can_be_broken(rule: str, sources: dict[str, str]) -> None:
    assert list(getattr(rooms, rule)(sources))


@pytest.mark.parametrize(("rule", "sources"), KEPT)
def test_the_rule_allows_what_is_right(rule: str, sources: dict[str, str]) -> None:
    assert not list(getattr(rooms, rule)(sources))


def test_every_rule_is_shown_to_be_breakable() -> None:
    assert {rule.__name__ for rule in RULES} == {rule for rule, _ in BROKEN}


def test_what_is_said_once_is_said() -> None:
    for home in (rooms.LOADER, rooms.FACTOR_TABLE, rooms.RULES_BY_NAME, rooms.WRITER):
        assert home in SOURCES
