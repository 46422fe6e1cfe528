"""Who is let go, and when: silence is counted from the last answer, whatever trickles in."""

from __future__ import annotations

import logging

from factordiff.web.connections import Connections
from factordiff.web.rate import FewRecords, Rate


class Line:
    def __init__(self) -> None:
        self.open = True

    def hang_up(self) -> None:
        self.open = False


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines(connections: Connections, count: int) -> list[Line]:
    made = [Line() for _ in range(count)]
    for line in made:
        connections.admit(line)
    return made


def test_the_longest_silent_goes_when_there_are_too_many() -> None:
    connections = Connections(3, patience=10.0)
    first, second, third = lines(connections, 3)
    connections.note(first, asks=True)  # it is being answered, and stays
    (fourth,) = lines(connections, 1)
    assert [line.open for line in (first, second, third, fourth)] == [True, False, True, True]
    connections.note(first, asks=False)  # now it is the last who spoke
    (fifth,) = lines(connections, 1)
    assert [line.open for line in (first, third, fourth, fifth)] == [True, False, True, True]
    assert len(connections) == 3


def test_a_full_house_turns_newcomers_away() -> None:
    connections = Connections(2, patience=10.0)
    for line in lines(connections, 2):
        connections.note(line, asks=True)
    (late,) = lines(connections, 1)
    assert not late.open
    assert len(connections) == 2


def test_silence_ends_after_a_while_and_bytes_do_not_break_it() -> None:
    clock = Clock()
    connections = Connections(100, patience=10.0, clock=clock)
    silent, slow, asking, gone = lines(connections, 4)
    connections.note(asking, asks=True)
    connections.forget(gone)
    for clock.now in (4.0, 8.0, 10.0):
        connections.note(slow, asks=False)  # another byte of its headers
        connections.sweep()
        assert silent.open
        assert slow.open
    clock.now = 10.1
    connections.sweep()
    assert [line.open for line in (silent, slow, asking, gone)] == [False, False, True, True]
    connections.note(asking, asks=False)
    clock.now = 20.0
    connections.sweep()
    assert asking.open
    clock.now = 20.2
    connections.sweep()
    assert not asking.open
    assert len(connections) == 0


def test_a_rate_counts_what_it_leaves_out() -> None:
    clock = Clock()
    rate = Rate(most=2, seconds=60.0, clock=clock)
    assert [rate.take() for _ in range(5)] == [0, 0, None, None, None]
    clock.now = 59.9
    assert rate.take() is None
    clock.now = 60.0
    assert [rate.take() for _ in range(3)] == [4, 0, None]


def test_a_log_says_how_much_it_left_out() -> None:
    few = FewRecords()
    clock = Clock()
    few.rate = Rate(most=1, seconds=1.0, clock=clock)

    def record() -> logging.LogRecord:
        return logging.LogRecord("a", logging.ERROR, "", 0, "it broke %d times", (3,), None)

    written, one = few.filter(record()), record()
    assert written
    assert not few.filter(one)
    assert not few.filter(one)
    clock.now = 1.0
    assert few.filter(one)
    assert one.getMessage() == "it broke 3 times (2 more before it were not written)"
