"""The world of published experts: near-peers, each better in its own region; scored in one pass at three rates."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence as Many
from pathlib import Path

import torch
from jaxtyping import Bool
from torch import Tensor

from factordiff.composition.routing import Routing
from factordiff.errors import DataError, Unavailable
from factordiff.streams import Purpose, uniform
from factordiff.worlds.antibody.fetching import CONFIGS, WHEELS, model_folder
from factordiff.worlds.antibody.models import load_model
from factordiff.worlds.antibody.sequences import REGIONS, RESIDUES, Sequence, read_sequences
from factordiff.worlds.methods import FACTOR, MethodRow
from factordiff.worlds.metric import Filled, Measure, Metric, Ratio, cells, nats
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Answering, PreparedMethod, Setting
from factordiff.worlds.world import Experts, World, checked_limit

RATES = (0.15, 0.50, 0.85)
ALAKAZAM = Path("/usr/lib/R/site-library/alakazam/extdata/example_airr.tsv.gz")
LONGEST = min(int(config["longest"]) for config in CONFIGS.values())
BY_REGION = "routing-by-region"
# The heavy chain's variable domain of a medicine, as it is published.
TRASTUZUMAB = (
    "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSRWGGDGFYAMDYW"
    "GQGTLVTVSS"
)
WHERE = ("cdr3", "elsewhere")  # what figures are told apart by


def rate_name(rate: float) -> str:
    """A rate for people: `15 %`."""
    return f"{100 * rate:.0f} %"


def measures() -> tuple[Measure, ...]:
    """Nats over all rates alike, nats and accuracy of each rate, and in and outside CDR3; aside, these at each rate."""
    parts = [*map(rate_name, RATES), *WHERE]
    crossed = [f"{where} {rate_name(rate)}" for where in WHERE for rate in RATES]

    def each(kind: str, unit: str, names: Many[str], aside: bool = False) -> list[Measure]:
        return [Measure(f"{kind} {name}", unit, kind == "nats", aside) for name in names]

    return (
        Measure("nats", "nats", lower_is_better=True),
        *each("nats", "nats", parts),
        *each("right", "%", parts),
        *each("nats", "nats", crossed, aside=True),
        *each("right", "%", crossed, aside=True),
    )


def score(filled: Filled) -> dict[str, Ratio]:
    """Each query's mean counts once in `nats`; in the others each residue does."""
    lost, hidden = nats(filled)
    found: dict[str, Ratio] = {"nats": (lost / hidden.clamp(min=1), (hidden > 0).double())}
    parts = filled.queries.parts
    among = {rate_name(rate): parts[rate_name(rate)] for rate in RATES}
    among |= {"cdr3": parts["cdr3"], "elsewhere": ~parts["cdr3"]}
    among |= {
        f"{where} {name}": among[where] & among[name] for where in WHERE for name in map(rate_name, RATES)
    }
    for name, cells_of in among.items():
        found[f"nats {name}"] = nats(filled, cells_of)
        found[f"right {name}"] = cells(filled, cells_of)
    return found


def hidden_cells(sequence: str, rate: float, seed: int = 0) -> Bool[Tensor, " cell"]:
    """Which residues are hidden at a rate: so many, chosen by numbers that belong to the sequence."""
    key = int.from_bytes(hashlib.sha256(sequence.encode()).digest()[:7], "big")
    numbers = uniform(seed, Purpose.CORRUPT, key, int(100 * rate), torch.arange(len(sequence)))
    count = max(1, round(rate * len(sequence)))
    return numbers.argsort().argsort() < count


def in_split(clone: str, split: str) -> bool:
    """Whether a clone belongs to a split: half of the clones each, by a hash of the clone's name."""
    even = hashlib.sha256(clone.encode()).digest()[0] % 2 == 0
    return even == (split == "validation")


class Antibody(World):
    """Human heavy chains hidden at 15, 50 and 85 %; clusters are clones. `sequences` is a file of one's own."""

    name = "antibody"
    tests = "two published models of nearly equal strength: how much is there to gain by a choice per residue"
    metric = Metric(measures(), score, "one-pass")
    methods = (
        "alone", "mixture", "product", "geometric-mean", "routing", BY_REGION, "soft-routing",
        "fitted:mixture", "fitted:product", "fitted:routing", "fitted:evidence", "fitted:learned",
        "fitted:learned[kind=neighbourhood]", "answer-fitted", "union", "oracle",
    )  # fmt: skip
    factors = ("pixel", "whole", "regions")
    batch = 32
    needs = (
        "`factordiff data fetch antibody` (the models, 100 MB), factordiff[hf], and sequences: Debian's "
        "r-cran-alakazam, or --sequences with FASTA or AIRR TSV of your own"
    )
    recipe = "pip install 'factordiff[hf]'\nfactordiff data fetch antibody\napt-get install r-cran-alakazam"

    def __init__(self, sequences: Path | None = None) -> None:
        self.file = sequences or ALAKAZAM
        self._read: list[Sequence] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """How many queries each split has, three for each sequence; 0 while there are no sequences."""
        if not self.file.exists():
            return {"validation": 0, "test": 0}
        return {split: len(RATES) * len(self._of(split)) for split in ("validation", "test")}

    def sequences(self) -> Many[Sequence]:
        """Those that both models can read, each different one once."""
        if self._read is None:
            if not self.file.exists():
                raise Unavailable(
                    f"sequences: {self.file} is not there; install Debian's r-cran-alakazam, or give a FASTA or AIRR "
                    "file of your own with --sequences"
                )
            self._read = [one for one in read_sequences(self.file) if len(one.residues) <= LONGEST]
        return self._read

    def _of(self, split: str) -> list[Sequence]:
        return [one for one in self.sequences() if in_split(one.clone, split)]

    def experts(self, device: torch.device | str = "cpu") -> Experts:
        """Sapiens and AntiBERTy."""
        each = {name: load_model(model_folder(name), device) for name in WHEELS}
        return Experts(each, ["full"] * len(each), {name: wheel.sha256 for name, wheel in WHEELS.items()})

    def queries(self, split: str, limit: int | None = None) -> Queries:
        """The first queries of a split: each sequence at every rate, in the order of the file."""
        count = checked_limit(split, limit, self.sizes)
        asked = [(one, rate) for one in self._of(split) for rate in RATES][:count]
        if not asked:
            raise DataError(
                f"{self.file}: no sequence of it is in the {split} split; give a file with more clones"
            )
        return queries_of(asked)

    def example(self) -> Queries:
        """The first sequence where there are sequences, else a well-known one: the models are enough to look on."""
        if self.file.exists():
            return super().example()
        return queries_of([(Sequence("trastuzumab", TRASTUZUMAB, (), "trastuzumab"), RATES[0])])

    def data(self) -> str:
        """The file's hash."""
        return hashlib.sha256(self.file.read_bytes()).hexdigest() if self.file.exists() else "none"

    def entries(self) -> dict[str, MethodRow]:
        """Routing with framework and CDR regions as factors, where the file says them."""
        return {BY_REGION: MethodRow(BY_REGION, FACTOR, by_region)}


def queries_of(asked: Many[tuple[Sequence, float]]) -> Queries:
    """Sequences with residues hidden, side by side; what lies behind a sequence's end is nothing."""
    longest = max(len(one.residues) for one, _ in asked)
    mask = len(RESIDUES)
    x_0 = torch.zeros(len(asked), longest, dtype=torch.int64)
    x_t = torch.zeros_like(x_0)
    parts = {name: torch.zeros(x_0.shape, dtype=torch.bool) for name in (*map(rate_name, RATES), *REGIONS)}
    for row, (one, rate) in enumerate(asked):
        values = torch.tensor([RESIDUES.index(letter) for letter in one.residues])
        end = len(values)
        x_0[row, :end] = values
        x_t[row, :end] = torch.where(hidden_cells(one.residues, rate), mask, values)
        parts[rate_name(rate)][row, :end] = True
        for place, region in enumerate(one.regions):
            parts[region][row, place] = True
    return Queries(
        x_t,
        x_0,
        tuple(one.clone for one, _ in asked),
        parts=parts,
        lengths=torch.tensor([len(one.residues) for one, _ in asked]),
    )


def by_region(setting: Setting) -> Answering:
    """Each region to the model that is surer of it on the whole."""

    def prepared(queries: Queries) -> PreparedMethod:
        labels = torch.zeros_like(queries.x_t)
        for number, region in enumerate(REGIONS):
            labels = torch.where(queries.parts[region], number, labels)
        return PreparedMethod((setting.team(Routing(labels)),))

    return prepared
