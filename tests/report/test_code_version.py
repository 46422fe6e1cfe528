"""Which code computed a number: the project's own commit, an installed package's version, never a stranger's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from factordiff.report import code_version
from factordiff.report.code_version import _of_tree, short


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    ended = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def repository(folder: Path, package: str) -> Path:
    """A repository with a package in it, all of it committed."""
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text("")
    git(folder, "init", "--quiet")
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--message", "first")
    return (folder / package).resolve()


def test_the_projects_own_tree_has_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = repository(tmp_path / "mine", "src/factordiff")
    monkeypatch.setenv("GIT_DIR", str(repository(tmp_path / "hook", "src/factordiff").parents[1] / ".git"))
    head = (tmp_path / "mine" / ".git" / "HEAD").read_text().split()[-1]
    commit = (tmp_path / "mine" / ".git" / head).read_text().strip()
    assert _of_tree(package) == commit
    (package / "__init__.py").write_text("x = 1\n")
    assert _of_tree(package) == f"{commit}-changed"


@pytest.mark.parametrize("place", [".venv/lib/python3.11/site-packages/factordiff", "vendor/factordiff"])
def test_a_repository_around_an_installed_package_is_not_its_own(tmp_path: Path, place: str) -> None:
    assert _of_tree(repository(tmp_path, place)) == ""


def test_files_that_a_repository_does_not_know_have_no_commit(tmp_path: Path) -> None:
    repository(tmp_path, "src/other")
    shutil.copytree(tmp_path / "src" / "other", tmp_path / "src" / "factordiff")
    assert _of_tree((tmp_path / "src" / "factordiff").resolve()) == ""


def test_without_a_tree_the_installed_version_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Installed:
        version = "1.2.3"

        def locate_file(self, name: str) -> Path:
            return tmp_path / name

    monkeypatch.setattr(code_version, "distribution", lambda name: Installed())
    assert code_version._of_installed((tmp_path / "factordiff").resolve()) == "factordiff 1.2.3"
    assert code_version._of_installed((tmp_path / "elsewhere" / "factordiff").resolve()) == ""


def test_versions_are_not_cut_as_commits_are() -> None:
    assert short("factordiff 10.20.300") == "factordiff 10.20.300"
    assert short("0123456789" * 4 + "-changed") == "012345678901-changed"


def test_code_that_travelled_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_version, "_of_tree", lambda package: "an older one-changed")
    monkeypatch.setenv("FACTORDIFF_COMMIT", "abc")
    assert code_version.commit.__wrapped__() == "abc"
    monkeypatch.delenv("FACTORDIFF_COMMIT")
    assert code_version.commit.__wrapped__() == "an older one-changed"
