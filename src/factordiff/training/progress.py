"""What a run knows beside its tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Progress:
    """Time spent, and the account of early stopping: one entry per regular check."""

    seconds: float = 0.0
    best_loss: float = math.inf
    best_step: int = 0
    checks_since_best: int = 0
    last_check: int = -1

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
    def from_json(cls, saved: dict[str, float | int | None]) -> Progress:
        """What `as_json` wrote."""
        fields = {**saved, "best_loss": math.inf if saved["best_loss"] is None else saved["best_loss"]}
        return cls(**fields)  # type: ignore[arg-type]
