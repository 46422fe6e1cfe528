"""Antibody sequences from FASTA or AIRR TSV files: residues, regions and clones.

AIRR rearrangements are read by their columns: `productive`, `sequence_alignment` (IMGT-gapped nucleotides, from which
residues and regions follow), `junction` and, if there is one, `clone_id`; without it rows of one junction are a clone.
FASTA holds residues alone: no regions, and each sequence is its own clone.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from factordiff.errors import DataError
from factordiff.files import MOST_UNPACKED, read_regular, unpacked

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
REGIONS = ("fwr1", "cdr1", "fwr2", "cdr2", "fwr3", "cdr3", "fwr4")
# The last IMGT codon of each region before the junction, which begins with codon 104 (the second cysteine).
ENDS = {"fwr1": 26, "cdr1": 38, "fwr2": 55, "cdr2": 65, "fwr3": 104}
COLUMNS = ("sequence_id", "productive", "sequence_alignment", "junction")
TRUE = {"t", "true", "1"}
_CODE = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
CODONS = {"".join(codon): residue for codon, residue in zip(product("TCAG", repeat=3), _CODE, strict=True)}


@dataclass(frozen=True)
class Sequence:
    """Residues, the region of each (none from FASTA), and the clone they belong to."""

    name: str
    residues: str
    regions: tuple[str, ...]
    clone: str


def read_sequences(path: Path) -> list[Sequence]:
    """The sequences of a file, each different one once; its ending says what it is, .gz is unpacked."""
    name = path.name.lower().removesuffix(".gz")
    try:
        data = read_regular(path, MOST_UNPACKED)
        lines = (unpacked(data, path) if path.name.lower().endswith(".gz") else data).decode().splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
    if name.endswith((".tsv", ".airr", ".tab")):
        found = list(_airr(lines, path))
    elif name.endswith((".fasta", ".fa", ".faa")):
        found = list(_fasta(lines, path))
    else:
        raise DataError(
            f"{path}: expected a name that ends in .fasta, .fa, .tsv or .airr, or one of these and .gz"
        )
    unique: dict[str, Sequence] = {}
    for one in found:
        unique.setdefault(one.residues, one)
    if not unique:
        raise DataError(f"{path}: no sequence in it is productive and whole, or it is empty")
    return list(unique.values())


def _fasta(lines: Iterable[str], path: Path) -> Iterable[Sequence]:
    name, residues, began = "", "", 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith(">"):
            if residues:
                yield Sequence(name, residues, (), name)
            elif name:
                raise DataError(f"{path}, line {began}: {name} has no residues")
            name, residues, began = text[1:].split()[0] if text[1:].split() else f"line {number}", "", number
            continue
        if text and not name:
            raise DataError(
                f"{path}, line {number}: expected a line with > and a name before the first residues"
            )
        for column, letter in enumerate(line.upper(), 1):
            if letter.isspace():
                continue
            if letter not in RESIDUES:
                raise DataError(
                    f"{path}, line {number}, column {column}: {letter!r} is none of the 20 amino acids ({RESIDUES})"
                )
            residues += letter
    if residues:
        yield Sequence(name, residues, (), name)


def _airr(lines: Iterable[str], path: Path) -> Iterable[Sequence]:
    rows = csv.DictReader(lines, delimiter="\t")
    missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
    if missing:
        raise DataError(
            f"{path}: not an AIRR rearrangement file: the column {missing[0]} is missing; expected columns with tabs "
            f"between them: {', '.join(COLUMNS)}"
        )
    for row in rows:
        if (row["productive"] or "").lower() in TRUE and (row.get("locus") or "IGH") == "IGH":
            made = _rearranged(row)
            if made is not None:
                yield made


def _rearranged(row: Mapping[str, str]) -> Sequence | None:
    """The heavy chain of an AIRR row; None where it is not whole codons of known residues."""
    aligned, junction = row["sequence_alignment"].upper().replace("-", "."), row["junction"].upper()
    if len(junction) < 9 or len(junction) % 3:
        return None
    residues: list[str] = []
    regions: list[str] = []
    after = ENDS["fwr3"] + len(junction) // 3 - 2  # the last codon of CDR3: the junction less its two anchors
    for number in range(len(aligned) // 3):
        codon = aligned[3 * number : 3 * number + 3]
        if codon == "...":
            continue
        residue = CODONS.get(codon, "")
        if not residue or residue == "*":
            if not residues:  # a codon that is cut where the read begins
                continue
            return None
        residues.append(residue)
        place = number + 1
        before = next((name for name, last in ENDS.items() if place <= last), None)
        regions.append(before or ("cdr3" if place <= after else "fwr4"))
    clone = row.get("clone_id") or junction
    return Sequence(row["sequence_id"], "".join(residues), tuple(regions), clone)
