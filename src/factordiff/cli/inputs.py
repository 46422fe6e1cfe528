"""The files that a verb reads, which none of its outputs may replace: experts, routers, teams, data, tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from factordiff.arc.artefact import manifest_of
from factordiff.arc.task_files import task_files
from factordiff.errors import InvalidInput
from factordiff.experts.registry import CONFIG, find_expert
from factordiff.networks.store import MODEL
from factordiff.report.card import CARD, FIGURES
from factordiff.solving.sources import would_be_read
from factordiff.team.file import find_team, read_team

PARTS = (CONFIG, MODEL, CARD, FIGURES)  # of an expert's folder; a router's has the first three


def of_folders(folders: Iterable[str | Path]) -> list[Path]:
    """What makes a folder an expert's or a router's."""
    return [Path(folder) / part for folder in folders for part in PARTS]


def of_experts(experts: Iterable[str | Path]) -> list[Path]:
    """The files of experts by name or folder; one that is not there is refused."""
    return of_folders(find_expert(expert).folder for expert in experts)


def named_folders(given: Iterable[str]) -> dict[str, str]:
    """The folders that take an expert's place, from NAME=FOLDER as it was typed."""
    folders = {}
    for pair in given:
        name, equals, folder = pair.partition("=")
        if not equals or not name or not folder:
            raise InvalidInput(f"--expert: expected NAME=FOLDER, got {pair!r}")
        folders[name] = folder
    return folders


def of_options(options: Mapping[str, Any]) -> list[Path]:
    """The files that a method's options name."""
    router = options.get("router")
    return [] if router is None else of_folders([router])


def of_team(team: str) -> list[Path]:
    """The file of a team, and those of its experts and its router."""
    content = read_team(team)
    return [find_team(team), *of_experts(content["experts"].values()), *of_options(content)]


def of_data(*files: Path | None) -> list[Path]:
    """Data sets that were given, each with the manifest that may lie beside it."""
    return [part for file in files if file is not None for part in (file, manifest_of(file))]


def of_tasks(source: Path, outputs: Iterable[Path]) -> list[Path]:
    """Task files; of a folder also the outputs that would be tasks of it the next time."""
    if not os.path.isdir(source):  # not Path.is_dir, to which a name that is too long is an error
        return [source]
    return [*task_files(source)[0], *(file for file in outputs if would_be_read(file, source))]
