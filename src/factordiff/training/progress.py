"""What a run knows beside its tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from factordiff.schema.fields import read_fields
from factordiff.schema.values import Real, Whole


@dataclass
class Progress:
    """Time spent, and the account of early stopping: one entry per regular check."""

    seconds: Annotated[float, Real(0.0)] = 0.0
    best_loss: Annotated[float, Real()] = math.inf  # until there was a check
    best_step: Annotated[int, Whole()] = 0
    checks_since_best: Annotated[int, Whole()] = 0
    last_check: Annotated[int, Whole(-1)] = -1

    def count_check(self, step: int, loss: float) -> bool:
        """Enter a check's loss once; true if it is the best so far."""
        if step == self.last_check:
            return False
        self.last_check = step
        if loss < self.best_loss:
            self.best_loss, self.best_step, self.checks_since_best = loss, step, 0
            return True
        self.checks_since_best += 1
        return False

    def as_json(self) -> dict[str, float | int | None]:
        """Plain JSON values (infinity is not one)."""
        return {**vars(self), "best_loss": self.best_loss if math.isfinite(self.best_loss) else None}

    @classmethod
    def from_json(cls, saved: Any) -> Progress:
        """What `as_json` wrote."""
        if isinstance(saved, dict) and saved.get("best_loss") is None:
            saved = {name: value for name, value in saved.items() if name != "best_loss"}
        return read_fields(cls, saved, "progress")
