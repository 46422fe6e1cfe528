"""Where the three experts of code-prose learn from: prose alone, code alone, whole files."""

from __future__ import annotations

from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.streams import Purpose, integers, uniform
from factordiff.text.alphabet import BYTES
from factordiff.text.corpus import CORPUS, load_corpus
from factordiff.text.windows import LENGTH
from factordiff.types import Tokens


class TextSource:
    """Windows of 256 characters from anywhere in the training packages' text of one kind.

    A kind's text is all files one after another without what is the other kind's; a window begins at any character and
    may run over the end of a file. Validation windows are drawn the same way from the validation packages, once.
    """

    kind = "all"
    vocabulary, cells = BYTES, LENGTH

    def __init__(self, device: torch.device | str = "cpu", file: Path = CORPUS) -> None:
        corpus = load_corpus(file)
        self.digest = f"{corpus.sha256} {self.kind}"
        self._train, self._validation = (
            torch.from_numpy(corpus[split].of_kind(self.kind)).to(device) for split in ("train", "validation")
        )
        self._window = torch.arange(self.cells, device=device)

    def draw(self, seed: int, step: Int[Tensor, ""], items: Int[Tensor, " item"]) -> tuple[None, Tokens]:
        """The windows of these items of a step."""
        first = integers(len(self._train) - self.cells + 1, seed, Purpose.QUERY, step, items)
        return None, self._train[first[:, None] + self._window].long()

    def validation(self, items: int) -> tuple[None, Tokens]:
        """The first of a fixed list of validation windows."""
        places = len(self._validation) - self.cells + 1
        item = torch.arange(items, device=self._validation.device)
        first = (uniform(0, Purpose.EVALUATION, item) * places).long()
        return None, self._validation[first[:, None] + self._window].long()


class Prose(TextSource):
    """Comments and docstrings alone."""

    kind = "prose"


class Code(TextSource):
    """Code without comments and docstrings."""

    kind = "code"


class All(TextSource):
    """Whole files: what the generalist, the reference, learns from."""
