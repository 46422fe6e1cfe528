"""Command lines drawn at random: every verb, options of all kinds, hostile values and hostile files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import typer
from typer.testing import CliRunner  # noqa: F401  (its import makes click's commands complete)

from factordiff.arc.task import spell_task
from factordiff.cli.app import app
from factordiff.team.team import compose
from tests.cli.verbs import options_of_kind
from tests.solving_experts import task, tiny_experts

NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "nan",
    "inf",
    "1e308",
    str(2**31 - 1),
    str(2**31),
    str(2**63 - 1),
    str(2**63),
    str(-(2**63)),
    str(2**64),
    str(10**400),
    "9" * 5_000,
    "²",
    "",
)
WORDS = (
    "", ",", "a,b", "x=1", "²/2", "1/2", "nan,1", "1,2", "-1,2", "0x10", "10x10", "lone \ud800", "\x1b[31mred",
    "n" * 300, "../x", "no/such/place", "true", "auto", "cpu", "cuda", "full", "exact", "margin:0.9", "margin:nan",
    "confidence:0", "blocks:2", "routing", "product", "fkc", "learned", "vote", "test", "validation", "toy-halves",
    "sudoku", "0.5", "1-1", "9" * 5_000, "trans-full=0.5", "67a3c6ac", "code-prose", "rearc", "antibody", "pack",
    f"{2**64},1", f"1,{10**400}", f"{2**31}x{2**31}", f"{2**64}x1", f"1/{2**64}", f"{2**64}/1", f"1-{2**64}",
    f"67a3c6ac={2**64}", f"67a3c6ac={10**400}", f"width={2**64}", f"blocks={2**31}", f"confidence:{2**31}",
    f"confidence:{2**64}", f"margin:{10**400}", f"block:{2**64}x{2**64}", f"trans-full={10**400}",
)  # fmt: skip
NUMERIC = {option for _, option in options_of_kind(int, float)}
# What an option says is to be written.
WRITTEN = ("--out", "--trace", "--picture", "--animate", "--html", "--curve", "--export")


class Desk:
    """A folder with good files and hostile ones, and good commands to begin with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        first, second = tiny_experts(folder / "experts")
        (folder / "tasks").mkdir()
        good = spell_task(task("good"))
        self._write("task.json", json.dumps(good))
        self._write("tasks/good.json", json.dumps(good))
        self._write(
            "many.json", json.dumps({"a": good, "lone \ud800": good, "\x1b]0;x\x07": good, "i" * 9_999: 1})
        )
        self._write("deep.json", "[" * 100_000)
        self._write("digits.json", '{"train": ' + "9" * 5_000 + "}")
        self._write("text.py", "def f(x):\n    return x  # one\n")
        self._write("empty", "")
        self._write("latin", b"\xff\xfe\x00\x00")
        self._write("some.jsonl.gz", b"\x1f\x8b\x08\x00half")
        self._write("some.npz", b"PK\x03\x04half")
        compose([first, second], "product").save(folder / "team.json")
        os.link(folder / "experts/conv-full/model.safetensors", folder / "hard.json")
        (folder / "soft.png").symlink_to("experts/trans-full/config.json")
        os.mkfifo(folder / "pipe.json")
        (folder / "zero.json").symlink_to("/dev/zero")
        (folder / "loop").symlink_to("loop")
        self.experts = f"{first},{second}"
        self.inputs = sorted(path for path in folder.rglob("*"))

    def _write(self, name: str, content: str | bytes) -> None:
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        (self.folder / name).write_bytes(data)

    @property
    def places(self) -> list[str]:
        """What a person may name as a file or folder, to read or to write."""
        names = [
            "task.json", "tasks", "many.json", "deep.json", "digits.json", "text.py", "empty", "latin", "pipe.json",
            "some.jsonl.gz", "some.npz", "team.json", "zero.json", "loop", ".", "experts", "experts/trans-full",
            "experts/trans-full/config.json", "experts/conv-full/model.safetensors", "hard.json", "soft.png",
            "new.json", "new.png", "new.gif", "new.npz", "new.jsonl.gz", "new/deep/file.json", "task.json/x",
            "n" * 300, "tasks/../task.json", "/dev/null", "/dev/full", "/dev/zero", "/proc/self/mem", "lone \udcff",
        ]  # fmt: skip
        return names

    def commands(self) -> list[list[str]]:
        """One good command of every verb."""
        pair = ["--experts", self.experts]
        named = ["--expert", "trans-full=experts/trans-full", "--expert", "conv-full=experts/conv-full"]
        return [
            ["solve", "task.json", *pair, "--out", "s.json"],
            ["solve", "tasks", *pair, "--trace", "t.json"],
            ["solve", "many.json", *pair, "--out", "s.json", "--picture", "p.png", "--explain"],
            ["eval", *pair, "--method", "product", "--limit", "1", "--out", "r.jsonl.gz"],
            ["eval", *pair, "--limit", "1", "--reveal", "confidence:2"],
            ["fit", self.experts, "--items", "4", "--held", "2", "--steps", "2", "--out", "fit"],
            ["diagnose", self.experts, "--items", "4", "--out", "d.json"],
            ["infill", "text.py", "--mask", "2", "--out", "filled.py"],
            ["solve", "task.json", "--team", "team.json", "--out", "s.json", "--trace", "t.json"],
            ["train", "tiny", "--max-steps", "1", "--batch", "2", "--validation-items", "2", "--out", "run"],
            ["train", "sequence", "--source", "some.npz", "--out", "run"],
            ["reproduce", "voting", "--limit", "1", "--steps", "2", "--out", "reproduced", *named],
            ["reproduce", "report", "--out", "reproduced"],
            ["reproduce", "pack", "--out", "reproduced"],
            ["compare", "toy-halves", "--limit", "2", "--methods", "mixture", "--out", "compared"],
            ["worlds"],
            ["worlds", "sudoku"],
            ["worlds", "--shares", "compared"],
            ["data", "build", "--task", "67a3c6ac", "--out", "one.npz"],
            ["data", "verify", "some.npz"],
            ["data", "show", "67a3c6ac", "--out", "pictures"],
            ["data", "measure", "--out", "measured.json"],
            ["data", "more", "--task", "67a3c6ac", "--out", "more.npz"],
            ["data", "fetch", "antibody"],
            ["bench", "--quick", *pair, "--out", "bench.json"],
            ["play", *pair, "--port", "0"],
            ["demo", "--toy", "--draws", "320"],
            ["demo", *pair, "--out", "shown"],
            ["demo", "--world", "toy-halves", "--out", "shown"],
            ["experts"],
            ["experts", "trans-full"],
            ["card", "experts/trans-full", "some.jsonl.gz"],
            ["store", "experts/trans-full", "half"],
            ["--version"],
        ]


def drawn(desk: Desk, number: int) -> list[str]:
    """The command line of that number: a good one, changed in up to three places."""
    random = Random(number)
    words = list(random.choice(desk.commands()))
    for _ in range(random.choice((0, 1, 1, 2, 2, 3))):
        _change(words, desk, random)
    return words


def with_every_number(desk: Desk, value: str) -> Iterator[list[str]]:
    """Every good command with every option of it that takes a number, which is that one."""
    for words in desk.commands():
        for verb, option in options_of_kind(int, float):
            if tuple(words[: len(verb)]) == verb:
                yield [*words, option, value]


def _change(words: list[str], desk: Desk, random: Random) -> None:
    places = desk.places
    kind = random.random()
    if kind < 0.55:
        options = list(_options(words))
        if options:
            option = random.choice(options)
            words += [option] if option.startswith("--no-") else [option, _value(option, places, random)]
    elif kind < 0.9 and len(words) > 1:
        place = random.randrange(1, len(words))
        if not words[place].startswith("--"):
            before = words[place - 1]
            words[place] = _value(before if before.startswith("--") else "", places, random)
    elif kind < 0.95 and len(words) > 1:
        del words[random.randrange(1, len(words))]
    else:
        words.insert(random.randrange(len(words) + 1), random.choice((*WORDS, "--help", "--", "-")))


def _value(option: str, places: list[str], random: Random) -> str:
    if option in NUMERIC and random.random() < 0.6:
        return random.choice(NUMBERS)
    return random.choice(random.choice((NUMBERS, WORDS, tuple(places), tuple(places))))


@cache
def _root() -> Any:
    return typer.main.get_command(app)


def _options(words: list[str]) -> Iterator[str]:
    """The options of a command's verb, as the command line itself declares them."""
    command = _root()
    for word in words:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
    for parameter in command.params:
        yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))
    if words[0] in ("solve", "eval", "infill"):
        from factordiff.cli.method_options import flags

        yield from flags()
