"""What is said about an answer in words: which attempt is right, what attempt 2 is, what it cost."""

from __future__ import annotations

from collections.abc import Iterable

from factordiff.arc.grid import Grid
from factordiff.solving.answer import Answer
from factordiff.solving.second_attempt import SecondAttempt


def sentences(answer: Answer) -> list[str]:
    """All that is said below an answer."""
    said = [] if answer.truth is None else [verdict_sentence(answer, answer.truth)]
    if answer.second is not None:
        said.append(alternative_sentence(answer, answer.second))
    said.append(f"{answer.executed_passes} passes")
    return said


def tally(answers: Iterable[Answer]) -> str:
    """How many of the answers whose truth is known are right, in one attempt and in two; nothing if there is none."""
    judged = [answer for answer in answers if answer.truth is not None]
    if not judged:
        return ""
    first = sum(bool(answer.first_right) for answer in judged)
    said = f"{first} of {len(judged)} known answers right"
    if all(answer.second is None for answer in judged):
        return said
    return f"{said} at once, {sum(bool(answer.right) for answer in judged)} in two attempts"


def verdict_sentence(answer: Answer, truth: Grid) -> str:
    """Which attempt is right, and if attempt 1 is not, how far it is from the truth."""
    if answer.first_right:
        return "attempt 1 is right"
    second = "" if answer.second is None else f"; attempt 2 is {'right' if answer.right else 'wrong too'}"
    return f"attempt 1 is wrong: {difference(answer.grid, truth)}{second}"


def alternative_sentence(answer: Answer, second: SecondAttempt) -> str:
    """What attempt 2 is, and how far from attempt 1."""
    return f"attempt 2 is what the team answers {second.reason}: {difference(second.grid, answer.grid)}"


def difference(one: Grid, other: Grid) -> str:
    """How far one grid is from another."""
    if one.shape != other.shape:
        (height, width), (wanted, across) = one.shape, other.shape
        return f"it is {height}x{width}, not {wanted}x{across}"
    return f"{int((one != other).sum())} of {one.size} cells differ"
