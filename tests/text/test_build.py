"""The corpus from wheels: what is taken, what is held out, and what happens when a package is not as it should be."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from factordiff.arc.artefact import save_artefact
from factordiff.errors import DataError
from factordiff.text import build as building
from factordiff.text import packages as fetching
from factordiff.text.alphabet import letters
from factordiff.text.build import build
from factordiff.text.corpus import load_corpus
from factordiff.text.packages import fetch, pinned, split_of
from factordiff.text.sources import All, Code, Prose
from factordiff.training.source import Source
from tests.text.wheels import packages, source, wheel

PERMISSIVE = {"MIT", "BSD", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC"}


def test_the_pins_are_permissive_wheels_for_every_machine() -> None:
    found = pinned()
    assert len(found) == len({package.name.lower() for package in found}) == 178
    for package in found:
        assert set(package.license.split(" OR ")) & PERMISSIVE, package.name
        assert package.file.endswith("none-any.whl")
        assert len(package.sha256) == 64
    split = split_of(found)
    assert sorted(split.values()).count("test") == sorted(split.values()).count("validation") == 16
    assert split_of(reversed(found)) == split


def test_files_are_chosen_by_the_rule(tmp_path: Path) -> None:
    text = source("thing", 1)
    one = wheel(
        tmp_path,
        "one",
        {
            "one/good.py": text,
            "one/again.py": text,
            "one/_vendor/other.py": source("vendored", 2),
            "one/tests/test_it.py": source("tested", 3),
            "one/table.py": f"x = 1\n{'y' * 500} = 2\n# {'words ' * 20}\n",
            "one/code_only.py": "x = 1\n" * 50,
            "one/broken.py": "def f(:\n",
            "one/latin.py": b"# caf\xe9\nx = 1\n",
            "one/readme.txt": "no code",
        },
    )
    seen: set[bytes] = set()
    taken = list(building._files(tmp_path / one.file, 10_000, seen))
    assert [one for one, _ in taken] == [text]
    assert not list(building._files(tmp_path / one.file, 10_000, seen))  # nothing twice, in any package


def test_a_package_has_its_share_and_no_more(tmp_path: Path) -> None:
    one = wheel(tmp_path, "one", {f"one/{number}.py": source("thing", number) for number in range(50)})
    few = list(building._files(tmp_path / one.file, 1_000, set()))
    assert 1_000 <= sum(len(text) for text, _ in few) < 1_000 + len(source("thing", 10))
    again = list(building._files(tmp_path / one.file, 1_000, set()))
    assert [text for text, _ in again] == [text for text, _ in few]


def built(folder: Path) -> Path:
    artefact = build(folder / "wheels", packages(folder / "wheels"))
    save_artefact(artefact, folder / "corpus.npz")
    return folder / "corpus.npz"


def test_the_corpus_comes_back(tmp_path: Path) -> None:
    corpus = load_corpus(built(tmp_path))
    names = {package.name: number for number, package in enumerate(packages(tmp_path / "wheels"))}
    split = split_of(packages(tmp_path / "wheels"))
    for name in ("train", "validation", "test"):
        text = corpus[name]
        assert set(text.packages.tolist()) == {names[one] for one in split if split[one] == name}
        assert text.starts[-1] == len(text.cells) == len(text.prose)
        first = letters(text.cells[: text.starts[1]])
        assert "def thing" in first
        assert first.endswith("# as its name says\n")
        assert "def" not in letters(text.of_kind("prose"))
        assert "Add" not in letters(text.of_kind("code"))
    assert build(tmp_path / "wheels", packages(tmp_path / "wheels")).sha256 == corpus.sha256


def test_the_three_sources(tmp_path: Path) -> None:
    file = built(tmp_path)
    for kind, has, has_not in ((Prose, "Add", "def "), (Code, "def ", "Add"), (All, "# as its", "\t")):
        made = kind("cpu", file)
        assert isinstance(made, Source)
        condition, rows = made.draw(0, torch.tensor(1), torch.arange(8))
        assert condition is None
        assert rows.shape == (8, 256)
        assert torch.equal(made.draw(0, torch.tensor(1), torch.tensor([5]))[1][0], rows[5])
        shown = [letters(row.tolist()) for row in rows]
        stream = letters(load_corpus(file)["train"].of_kind(made.kind))
        assert all(one in stream for one in shown)
        assert any(has in one for one in shown)
        assert not any(has_not in one for one in shown)
        held_out = letters(load_corpus(file)["validation"].of_kind(made.kind))
        assert all(letters(row.tolist()) in held_out for row in made.validation(4)[1])
        assert kind.__name__.lower() in made.digest


def test_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"there is no corpus here; build it with `factordiff data build code-prose`"
    ):
        load_corpus(tmp_path / "none.npz")
    save_artefact(building.make_artefact({"x": np.zeros(1)}, {}), tmp_path / "other.npz")
    with pytest.raises(DataError, match="it is not the code-prose corpus"):
        load_corpus(tmp_path / "other.npz")


class Pip:
    """Stands for pip: fails with what it would say."""

    def __init__(self, said: str) -> None:
        self.said, self.calls = said, 0

    def __call__(self, words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.calls += 1
        return subprocess.CompletedProcess(words, 1 if self.said else 0, "", self.said)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "ERROR: No matching distribution found for package0==1.0",
            "package0 1.0: the package index has no such",
        ),
        (
            "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<pip._v\n"
            "ERROR: No matching distribution found for package0==1.0",
            r"index could not be reached \(NewConnectionError\), so package0 .* is there a network",
        ),
        ("/usr/bin/python: No module named pip", "pip: it is not installed here"),
        ("ERROR: connection refused", r"could not be fetched \(ERROR: connection refused\)"),
        ("", "package0 1.0: the package index gave no file package0-1.0-py3-none-any.whl"),
    ],
)
def test_a_package_that_cannot_be_fetched(
    said: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = packages(tmp_path / "elsewhere", count=1)
    monkeypatch.setattr(fetching.subprocess, "run", Pip(said))
    with pytest.raises(DataError, match=sentence):
        fetch(wanted, tmp_path / "wheels")


def test_another_file_than_the_pinned_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (wanted,) = packages(tmp_path, count=1)
    pip = Pip("")
    monkeypatch.setattr(fetching.subprocess, "run", pip)
    fetch([wanted], tmp_path)
    assert pip.calls == 0  # it is there already
    (tmp_path / wanted.file).write_bytes(b"another")
    with pytest.raises(DataError, match=f"has sha256 .*, expected {wanted.sha256}; it is removed"):
        fetch([wanted], tmp_path)
    assert not (tmp_path / wanted.file).exists()
