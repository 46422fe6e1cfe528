"""A row run into its records: in memory, or in a file that continues where it was interrupted."""

from __future__ import annotations

import time

from factordiff.devices import choose_device, device_name
from factordiff.report.code_version import commit
from factordiff.report.record import Record
from factordiff.report.records import Batch, append, open_records
from factordiff.worlds.answering import records_of
from factordiff.worlds.methods import MethodRow
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Setting


def run(entry: MethodRow, setting: Setting, queries: Queries) -> list[Record]:
    """The records of every query, those that are missing answered now; what was fitted before is not fitted again."""
    assert entry.prepare is not None
    path = None if setting.folder is None else setting.folder.file(entry.label)
    header = setting.header(entry.label, entry.fitted)
    if entry.method:
        header["row"] = f"{entry.label}: {entry.method}"
    kept = open_records(path, header) if path is not None and path.exists() else None
    found = {record.query: record for record in kept.records} if kept is not None else {}
    wanted = set(range(len(queries)))
    setting.tell(entry.label, len(found.keys() & wanted), len(queries))
    batches = list(queries.batches(setting.batch, set(found)))
    answering = None
    if entry.fitted:
        setting.recall(entry.label)
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
        setting.tell(entry.label, len(found.keys() & wanted), len(queries))
    return [found[query] for query in sorted(found) if query in wanted]
