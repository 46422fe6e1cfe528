"""Trans-IR's configuration, and the weights that it takes. Paper: appendix "Transformer Backbone Architecture"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from factordiff.errors import InvalidInput
from factordiff.networks import conditioning as cond
from factordiff.networks.config import CHANNELS, LAYERS, RefinementConfig
from factordiff.networks.item_encoding import modulation_slots
from factordiff.networks.latents import latent_slots
from factordiff.networks.parameters import Slot, linear
from factordiff.schema.objects import Maybe
from factordiff.schema.values import Choice, Flag, Whole

LONGEST_SIDE = 32  # rows and columns of the learned positions: a shape that no data set decides


@dataclass(frozen=True)
class TransIRConfig(RefinementConfig):
    """Trans-IR: d=144, two blocks, four heads of 36, FFN 4x, context dimension 144.

    `rotary`: None means yes, but for the literal network, since the paper has no rotary positions.
    """

    blocks: Annotated[int, LAYERS] = 2
    expansion: Annotated[int, Whole(1, 64)] = 4
    encoder: Annotated[int, CHANNELS] = 64
    positions: Annotated[str, Choice(("sinusoidal", "learned"))] = "sinusoidal"
    rotary: Annotated[bool | None, Maybe(Flag())] = None
    pair_patch: Annotated[int, Whole(1, 64)] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positions == "learned" and max(self.padded_layout) > LONGEST_SIDE:
            raise InvalidInput(
                f"layout: learned positions reach {LONGEST_SIDE} rows and columns (in whole patches), got {self.layout}"
            )
        if self.rotary is None:
            object.__setattr__(self, "rotary", not self.literal)  # what is saved says which
        if self.literal and self.rotary:
            raise InvalidInput("rotary: the paper has no rotary positions; leave it out, or literal")
        if self.rotary and self.head_size % 4:
            raise InvalidInput(
                f"rotary: expected heads of a multiple of 4 channels, got {self.head_size} (width / heads)"
            )

    @property
    def padded_layout(self) -> tuple[int, int]:
        """The canvas, enlarged to whole patches."""
        height, width = (-(-side // self.pair_patch) * self.pair_patch for side in self.layout)
        return height, width

    @property
    def pair_layout(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        height, width = (side // self.pair_patch for side in self.padded_layout)
        return height, width

    def weight_slots(self) -> dict[str, Slot]:
        """Every weight of Trans-IR by name."""
        d, heads, size = self.width, self.heads, self.head_size
        slots = {
            "z_high": Slot((d,), std=0.02),
            "z_low": Slot((d,), std=0.02),
            **(_literal_embedding(self) if self.literal else _embedding(self)),
            "head.weight": Slot((self.values, d), 0.0 if self.head == "zero" else d**-0.5),
            "head.bias": Slot((self.values,)),
        }
        for block in range(self.blocks):
            slots |= {
                f"blocks.{block}.qkv": Slot((3, heads, size, d), d**-0.5, matrices=(3, d, d)),
                f"blocks.{block}.out": Slot((d, heads, size), d**-0.5, matrices=(1, d, d)),
                f"blocks.{block}.up": linear(self.expansion * d, d),
                f"blocks.{block}.down": linear(d, self.expansion * d),
                f"blocks.{block}.modulation": Slot((6, d, self.context), matrices=(6, d, self.context)),
                f"blocks.{block}.modulation_bias": Slot((6, d)),
            }
        if self.positions == "learned":
            slots["positions.row"] = Slot((LONGEST_SIDE, d), std=0.5)
            slots["positions.column"] = Slot((LONGEST_SIDE, d), std=0.5)
        if self.literal:
            slots |= _literal_rest(self)
        if self.conditioning == "paper":
            if not self.literal:
                slots["embed.demonstrations"] = Slot((self.slots * 2 * self.values, d), std=0.5)
            slots |= cond.paper_slots(self.values, self.encoder, self.context, bias=self.literal)
        else:
            slots |= cond.grid_encoder_slots("query", self.values, self.encoder, self.context)
            slots |= latent_slots(self.latents, d, heads, self.context)
            if self.field:
                slots["latents.field"] = linear(d, d)
            slots["embed.pair"] = Slot((self.pair_patch**2 * 2 * self.values, d), std=0.5)
            # The pairs run through the same blocks with a modulation of their own, whose gates start open.
            slots["pair_modulation.scale_shift"] = Slot((self.blocks, 2, 2, d))
            slots["pair_modulation.gate"] = Slot((self.blocks, 2, 1, d), mean=1.0)
        return slots


def _embedding(config: TransIRConfig) -> dict[str, Slot]:
    d = config.width
    return {
        "embed.x_t": Slot((config.values + 1, d), std=1.0),
        "embed.query": Slot((config.values, d), std=1.0),
        "embed.join": Slot((2, d, d), (2 * d) ** -0.5, matrices=(2, d, d)),
    }


def _literal_embedding(config: TransIRConfig) -> dict[str, Slot]:
    """The paper's E and W_in: one table, and one matrix as wide as the canvases that lie side by side.

    The appendix has two of them, x_t and the query; the main text puts the demonstrations beside the query.
    """
    d, canvases = config.width, 2 + 2 * config.slots
    return {
        "embed.table": Slot((config.values + 1, d), std=1.0),
        "embed.join": Slot((d, canvases, d), (canvases * d) ** -0.5, matrices=(1, d, canvases * d)),
    }


def _literal_rest(config: TransIRConfig) -> dict[str, Slot]:
    """What the paper's layers have and ours do without: biases, an MLP's first layer, the last norm's gain and shift.

    The paper names its layers without saying whether they have biases: they are the usual ones, which do. Only the
    gates are said to start at zero. With gamma at zero too a block would start dead, so its bias starts at one, as the
    gain of a norm does.
    """
    d = config.width
    slots = {"head.gain": Slot((d,), mean=1.0), "head.shift": Slot((d,))}
    for block in range(config.blocks):
        slots |= {
            **modulation_slots(f"blocks.{block}", config.context),
            f"blocks.{block}.modulation_bias": Slot((6, d), mean=(1.0, 0.0, 0.0, 1.0, 0.0, 0.0)),
            f"blocks.{block}.qkv_bias": Slot((3, config.heads, config.head_size)),
            f"blocks.{block}.out_bias": Slot((d,)),
            f"blocks.{block}.up_bias": Slot((config.expansion * d,)),
            f"blocks.{block}.down_bias": Slot((d,)),
        }
    return slots
