"""One antibody sequence as cells to be hidden and filled in, and how human it is before and after."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.registry import find_expert
from factordiff.team.members import ExpertLike
from factordiff.vocabulary import Vocabulary
from factordiff.worlds.antibody import sequences
from factordiff.worlds.antibody.fetching import WHEELS, model_folder
from factordiff.worlds.antibody.models import load_model
from factordiff.worlds.antibody.sequences import REGIONS, RESIDUES, read_sequences
from factordiff.worlds.antibody.world import LONGEST, hidden_cells

SPELLED = "a share of the residues such as 0.15"
PEPTIDE = 9  # residues of a stretch that promb looks up


@dataclass(frozen=True, eq=False)
class SequenceDocument:
    """The residues of one sequence; a mask is a share of them or, where a file says them, regions such as cdr3."""

    sequence: sequences.Sequence
    unit = "residues"
    default_experts = ",".join(WHEELS)
    vocabulary = Vocabulary(len(RESIDUES))
    window = LONGEST

    @property
    def title(self) -> str:
        """The sequence's name."""
        return self.sequence.name

    @property
    def cells(self) -> Int[Tensor, " cell"]:
        """The values that experts see."""
        return torch.tensor([RESIDUES.index(letter) for letter in self.sequence.residues])

    def hidden(self, spec: str, seed: int = 0) -> Bool[Tensor, " cell"]:
        """The residues that a share or the names of regions hide."""
        if re.fullmatch(r"0?\.\d+|1\.0*", spec):
            return hidden_cells(self.sequence.residues, float(spec), seed)
        wanted = {part.strip().lower() for part in spec.split(",")}
        if not self.sequence.regions:
            raise InvalidInput(
                f"--mask: expected {SPELLED}, got {spec!r}; regions such as cdr3 need an AIRR file, FASTA has none"
            )
        if not wanted <= set(REGIONS):
            raise InvalidInput(f"--mask: expected {SPELLED}, or some of {', '.join(REGIONS)}, got {spec!r}")
        return torch.tensor([region in wanted for region in self.sequence.regions])

    def shown(self, x_0: Int[Tensor, " cell"], hidden: Bool[Tensor, " cell"]) -> str:
        """The residues as they are now."""
        return "".join(RESIDUES[value] for value in x_0.tolist())

    def written(self, text: str) -> str:
        """An entry of a FASTA file."""
        return f">{self.title}\n{text}\n"

    def remarks(self, text: str) -> list[str]:
        """How human it was and is, where promb is installed."""
        score = humanness()
        if score is None or len(text) < PEPTIDE:
            return []
        before, after = (100 * score(one) for one in (self.sequence.residues, text))
        return [
            f"stretches of {PEPTIDE} residues that human antibodies have (promb): {before:.0f} % before, "
            f"{after:.0f} % now"
        ]

    def folder(self, name: str) -> Path:
        """Where the expert of that name is."""
        return model_folder(name) if name in WHEELS else find_expert(name).folder

    def experts(self, names: Sequence[str], device: torch.device | str) -> dict[str, ExpertLike]:
        """The fetched models by their names; any other name is a folder or a shipped expert."""
        return {
            name: load_model(self.folder(name), device) if name in WHEELS else name
            for name in dict.fromkeys(names)
        }


def read_antibodies(file: Path) -> list[SequenceDocument]:
    """The sequences of a FASTA or AIRR file; one that the models cannot read whole is refused."""
    found = read_sequences(file)
    for one in found:
        if len(one.residues) > LONGEST:
            raise InvalidInput(
                f"{file}: {one.name} has {len(one.residues)} residues, and the models read at most {LONGEST}; leave "
                "it out, or cut it to its variable domain"
            )
    return [SequenceDocument(one) for one in found]


@cache
def humanness() -> Callable[[str], float] | None:
    """The share of stretches of 9 residues that one in ten human donors has, by promb's OASis list; None without it."""
    try:
        from promb import init_db
    except ImportError:
        return None
    score: Callable[[str], float] = init_db("human-oas", verbose=False).compute_peptide_content
    return score
