"""A table for a terminal: where its columns do not fit side by side they are printed in bands, each with the names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from factordiff.report.document import Table as Made

RULE = 3  # what stands between two columns
FOLDED = 24  # names are folded to this width before figures go into another band
NAMES = 40  # the most that names take in bands


@dataclass(frozen=True)
class Banded:
    """A table whose first columns are names, families and then members; the others, of figures, are never cut."""

    made: Made
    names: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        rows = [row for row in self.made.rows if row is not None]
        widths = [max(map(len, column)) for column in zip(self.made.headings, *rows, strict=True)]
        name, figures = self.names - 1, range(self.names, len(widths))
        whole = sum(widths[place] + RULE for place in (*range(name), *figures)) + min(widths[name], FOLDED)
        if whole <= options.max_width:
            yield self._band((*range(name), name, *figures), self.made.caption)
            return
        room, caption = options.max_width - min(widths[name], NAMES), self.made.caption
        band: list[int] = []
        for place in figures:
            if band and sum(widths[one] + RULE for one in (*band, place)) > room:
                yield self._band((name, *band), caption)
                yield Text()
                band, caption = [], ""
            band.append(place)
        yield self._band((name, *band), caption)

    def _band(self, places: Sequence[int], caption: str) -> Table:
        """Some of the columns."""
        title = caption.replace("`", "") or None
        table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
        for place in places:
            heading, figure = self.made.headings[place].replace("[", "\\["), place >= self.names
            table.add_column(heading, justify="right" if figure else "left", no_wrap=figure, overflow="fold")
        for row in self.made.rows:
            if row is None:
                table.add_section()
            else:
                table.add_row(*(row[place].replace("[", "\\[") for place in places))
        return table
