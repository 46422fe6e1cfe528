"""Whole numbers on the command line: one bound for all of them, which every verb is held to."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from factordiff.schema.bound import shown

LARGEST = 2**31 - 1  # two of them multiplied still fit into 64 bits
LARGEST_SEED = 2**63 - 1


class BoundedCommand(TyperCommand):
    """A command that refuses numbers which no count here can be; what it declares itself may be narrower."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options, and look at every whole number among them."""
        rest = super().parse_args(ctx, args)
        parameters: list[Any] = list(self.params)  # typer's own class of them has no public name
        for parameter in parameters:
            most = LARGEST_SEED if parameter.name == "seed" else LARGEST
            value = ctx.params.get(parameter.name)
            for number in value if isinstance(value, list | tuple) else [value]:
                if isinstance(number, int) and abs(number) > most:
                    raise typer.BadParameter(
                        f"expected a whole number from -{most} to {most}, got {shown(number)}",
                        ctx=ctx,
                        param=parameter,
                    )
        return rest
