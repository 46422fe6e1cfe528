"""How many cells are filled, told while a request is decoded in one part or in several."""

from __future__ import annotations

import threading
from collections.abc import Callable


class FilledCells:
    """Adds up what the parts of a request have filled, and tells whoever asked."""

    def __init__(self, on_step: Callable[[int, int], None] | None, total: int) -> None:
        self.on_step, self.total = on_step, total
        self._filled: dict[int, int] = {}
        self._telling = threading.Lock()

    def tell(self, part: int, filled: int) -> None:
        """So many cells of this part are filled by now."""
        if self.on_step is None:
            return
        with self._telling:
            self._filled[part] = filled
            self.on_step(sum(self._filled.values()), self.total)
