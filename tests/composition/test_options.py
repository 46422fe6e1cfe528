"""Options are declared once: checked, read from text, and found wherever a person may set them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from factordiff import Composed, Composition, TabularExpert, compose
from factordiff.cli.app import app
from factordiff.composition import method
from factordiff.composition.method import declare, spec, specs
from factordiff.composition.options import Option
from factordiff.errors import InvalidInput

NAMES = ["a", "b"]
EACH = Option("beta", "Exponents.", per_expert=True)
SHARE = Option("share", "A share.", default=0.5, most=1.0)
COUNT = Option("count", "How many.", kind="whole", default=3, least=1.0)
FORM = Option("form", "Which.", kind="choice", default="x", choices=("x", "y"))


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (EACH, "1,0.25", (1.0, 0.25)),
        (EACH, "b=0.25", (1.0, 0.25)),
        (EACH, " a = 2 , b=3", (2.0, 3.0)),
        (SHARE, "1", 1.0),
        (COUNT, "7", 7),
        (FORM, "y", "y"),
    ],
)
def test_what_is_typed_becomes_a_value(option: Option, text: str, value: Any) -> None:
    assert option.check(option.read(text), NAMES) == value


def test_what_nobody_sets_is_the_default() -> None:
    assert [option.check(None, NAMES) for option in (EACH, SHARE, COUNT, FORM)] == [None, 0.5, 3, "x"]


@pytest.mark.parametrize(
    ("option", "given", "sentence"),
    [
        (EACH, [1.0], "beta: expected 2 numbers, one per expert, got 1"),
        (EACH, {"c": 1.0}, "beta: no expert is called 'c'; expected a, b"),
        (EACH, [1.0, -1.0], "beta: expected a finite number of at least 0 for b, got -1.0"),
        (EACH, [math.nan, 1.0], "beta: expected a finite number of at least 0 for a, got nan"),
        (EACH, [1.0, 1e308], "beta: expected 0 or a size between 1e-30 and 1e+30 for b, got 1e+308"),
        (EACH, [1.0, 1e-46], "beta: expected 0 or a size between 1e-30 and 1e+30 for b, got 1e-46"),
        (EACH, "1,2", "beta: expected a number for each expert, or numbers by name, got '1,2'"),
        (EACH, 3.0, "beta: expected a number for each expert"),
        (SHARE, 1.5, "share: expected a finite number from 0 to 1, got 1.5"),
        (SHARE, True, "share: expected a finite number from 0 to 1, got True"),
        (COUNT, 0, "count: expected a whole number of at least 1, got 0"),
        (COUNT, 2.5, "count: expected a whole number of at least 1, got 2.5"),
        (FORM, "z", "form: expected one of x, y, got 'z'"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(option: Option, given: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        option.check(given, NAMES)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(("option", "text"), [(EACH, "hot"), (EACH, "a=1,2"), (SHARE, ""), (COUNT, "2.5")])
def test_what_cannot_be_read_is_a_sentence(option: Option, text: str) -> None:
    with pytest.raises(InvalidInput, match=f"{option.name}: expected a .*number.*, got '{text}'"):
        option.read(text)


@pytest.fixture
def trimmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of somebody's own, declared in a file of theirs: here, and gone after the test."""
    specs()
    monkeypatch.setattr(method, "_SPECS", dict(method._SPECS))

    @declare("trimmed", Option("trim", "How much is cut off.", default=0.1, most=0.5))
    class Trimmed(Composition):
        """A mean without what is far out."""

        def __init__(self, trim: float) -> None:
            self.trim = trim

        def __call__(self, log_probs: torch.Tensor, state: Any) -> Composed:
            return Composed(torch.log_softmax(log_probs.mean(0) * (1 - self.trim), -1))


@pytest.mark.usefixtures("trimmed")
def test_a_new_method_and_its_option_are_found_everywhere() -> None:
    expert = TabularExpert(torch.full((2, 2), 0.25))
    team = compose([expert, expert], "trimmed", trim=0.2)
    assert team.method_for(2).composition.trim == 0.2  # type: ignore[attr-defined]
    assert "trimmed; trim 0.2" in repr(team)
    assert team.sample(torch.full((3, 2), 2)).x_0.shape == (3, 2)
    assert spec("trimmed").summary == "A mean without what is far out."
    for verb in ("solve", "eval"):
        shown = CliRunner().invoke(app, [verb, "--help"], terminal_width=120).output
        assert "--trim" in shown
    with pytest.raises(InvalidInput, match="trim: the method 'mixture' does not take it"):
        compose([expert, expert], "mixture", trim=0.2)
