"""A row run into its records: in memory, or in a file that continues where it was interrupted."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factordiff.errors import DataError
from factordiff.evaluation.benchmark import Record
from factordiff.evaluation.provenance import commit
from factordiff.evaluation.records import SUFFIX, Batch, append, open_records
from factordiff.files import write_whole
from factordiff.training.machines import choose_device, device_name
from factordiff.worlds.answering import records_of
from factordiff.worlds.methods import Entry
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Setting, Watch


@dataclass(frozen=True)
class Folder:
    """Where records go, and what they are records of: another world's are not taken for this one's."""

    path: Path
    about: dict[str, Any]

    def file(self, label: str) -> Path:
        """The file of a row."""
        return self.path / f"{re.sub(r'[^A-Za-z0-9.+=-]+', '-', label).strip('-')}{SUFFIX}"


def run(
    entry: Entry, setting: Setting, queries: Queries, folder: Folder | None = None, watch: Watch | None = None
) -> list[Record]:
    """The records of every query, those that are missing answered now."""
    assert entry.prepare is not None
    path = None if folder is None else folder.file(entry.label)
    header = {} if folder is None else {**folder.about, "row": entry.label}
    if entry.fitted:
        header |= {"validation": 0 if setting.validation is None else len(setting.validation)}
    kept = open_records(path, header) if path is not None and path.exists() else None
    found = {record.query: record for record in kept.records} if kept is not None else {}
    wanted = set(range(len(queries)))
    if watch is not None:
        watch(entry.label, len(found.keys() & wanted), len(queries))
    batches = list(queries.batches(setting.batch, set(found)))
    answering = None
    if entry.fitted and folder is not None:
        _recall_fit(entry.label, setting, folder)
    for index in batches:
        if answering is None:  # what has to be fitted is fitted only if something is left to answer
            answering = entry.prepare(setting)
            if path is not None:
                open_records(path, header)
        begun = time.perf_counter()
        records = records_of(answering(queries[index].cut()), queries, index, setting)
        if path is not None:
            where = device_name(choose_device(str(setting.device).partition(":")[0]))
            append(path, Batch(tuple(records), time.perf_counter() - begun, where, commit()))
        found |= {record.query: record for record in records}
        if watch is not None:
            watch(entry.label, len(found.keys() & wanted), len(queries))
    if entry.fitted and folder is not None and answering is not None:
        _note_fit(entry.label, setting, folder)
    return [found[query] for query in sorted(found) if query in wanted]


def _fit_file(label: str, folder: Folder) -> Path:
    return folder.file(label).with_name(folder.file(label).name.removesuffix(SUFFIX) + ".fit.json")


def _note_fit(label: str, setting: Setting, folder: Folder) -> None:
    if label in setting.notes:
        write_whole(_fit_file(label, folder), (json.dumps(setting.notes[label]) + "\n").encode())


def _recall_fit(label: str, setting: Setting, folder: Folder) -> None:
    """What was fitted for records that are there already, for the table to say."""
    path = _fit_file(label, folder)
    if path.exists():
        try:
            setting.notes[label] = dict(json.loads(path.read_text()))
        except ValueError as error:
            raise DataError(f"{path}: damaged ({error}); remove it and the records beside it") from None
