"""Conv-IR's configuration, and the weights that it takes. Paper: appendix "Convolutional Backbone Architecture"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from factordiff.errors import InvalidInput
from factordiff.networks.conditioning import grid_encoder_slots, paper_slots
from factordiff.networks.config import CHANNELS, RefinementConfig
from factordiff.networks.item_encoding import modulation_slots
from factordiff.networks.latents import latent_slots
from factordiff.networks.parameters import Slot, convolution, linear
from factordiff.schema.values import Whole

BLOCKS = 2  # one at full resolution, one below it
SUMMARY = 8  # channels of a latent that reach the context vector
EXPANSION = 1  # of the latents' own layer


@dataclass(frozen=True)
class ConvIRConfig(RefinementConfig):
    """Conv-IR: 128 channels, two residual blocks, GroupNorm(8), context dimension 256.

    With the paper's conditioning it is the appendix's convnet, to the letter if `literal`. With latents, cells also
    attend to each other before each block, and the embedding, the second convolution of a block and the readout see
    one cell. Where they saw nine, what neighbours tell seemed to be learned in place of the rule (docs/log.md).
    """

    width: Annotated[int, CHANNELS] = 128
    context: Annotated[int, CHANNELS] = 256
    groups: Annotated[int, Whole(1, 1_024)] = 8
    encoder: Annotated[int, CHANNELS] = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.groups:
            raise InvalidInput(f"width: expected a multiple of groups={self.groups}, got {self.width}")
        if self.head_size % 4:
            raise InvalidInput(
                f"heads: expected heads of a multiple of 4 channels, got {self.head_size} (width / heads)"
            )

    @property
    def pair_layout(self) -> tuple[int, int]:
        """Half the canvas, rounded up."""
        height, width = ((side + 1) // 2 for side in self.layout)
        return height, width

    def weight_slots(self) -> dict[str, Slot]:
        """Every weight of Conv-IR by name."""
        own = _paper_slots if self.conditioning == "paper" else _latent_slots
        return _common_slots(self) | own(self)


def _common_slots(config: ConvIRConfig) -> dict[str, Slot]:
    c, v, paper = config.width, config.values, config.conditioning == "paper"
    side, shown = (3, v * (1 + 2 * config.slots)) if paper else (1, v)
    spread = 0.5 if paper else 1.0
    slots = {
        "z_high": Slot((c, 1, 1), std=0.02),
        "z_low": Slot((c, 1, 1), std=0.02),
        "embed.x_t": Slot((c, v, side, side), spread),
        "embed.query": Slot((c, shown, side, side), spread),
        "embed.bias": Slot((c, 1, 1)),
        "up": linear(c, c, zero=True),
        "head.gain": Slot((c,), mean=1.0),
        "head.shift": Slot((c,)),
        "head.weight": Slot((v, c, side, side), 0.0 if config.head == "zero" else (side**2 * c) ** -0.5),
        "head.bias": Slot((v,)),
    }
    for block in range(BLOCKS):
        slots |= {
            f"blocks.{block}.gain_1": Slot((c,), mean=1.0),
            f"blocks.{block}.shift_1": Slot((c,)),
            f"blocks.{block}.first": convolution(c, c),
            f"blocks.{block}.gain_2": Slot((c,), mean=1.0),
            f"blocks.{block}.shift_2": Slot((c,)),
        }
    if config.literal:
        # The paper has no 1x1 map. Its layers are the usual ones: convolutions have biases, an MLP has two layers.
        del slots["up"]
        for name in (f"blocks.{block}" for block in range(BLOCKS)):
            slots |= {f"{name}.first_bias": Slot((c,)), f"{name}.second_bias": Slot((c,))}
            slots |= modulation_slots(name, config.context)
    return slots


def _paper_slots(config: ConvIRConfig) -> dict[str, Slot]:
    c, context = config.width, config.context
    slots = paper_slots(config.values, config.encoder, context, bias=config.literal)
    for block in range(BLOCKS):
        slots |= {
            f"blocks.{block}.second": convolution(c, c, zero=True),  # the block starts as the identity
            f"blocks.{block}.modulation": Slot((1, c, context), context**-0.5, matrices=(1, c, context)),
            f"blocks.{block}.modulation_bias": Slot((1, c)),
        }
    return slots


def _latent_slots(config: ConvIRConfig) -> dict[str, Slot]:
    c, v, context, heads, size = config.width, config.values, config.context, config.heads, config.head_size
    slots = grid_encoder_slots("query", v, config.encoder, context)
    slots |= latent_slots(config.latents, c, heads, context, SUMMARY, EXPANSION)
    if config.field:
        slots["latents.field"] = linear(c, c)
    # The pairs run through the same blocks with an injection of their own and gates that start open.
    slots["pair.embed"] = Slot((c, 2 * v, 3, 3), std=0.5)
    slots["pair.injection"] = Slot((BLOCKS, c))
    slots["pair.gate"] = Slot((BLOCKS, 2, c), mean=1.0)
    for block in range(BLOCKS):
        slots |= {
            f"blocks.{block}.qkv": Slot((3, heads, size, c), c**-0.5, matrices=(3, c, c)),
            f"blocks.{block}.out": Slot((c, heads, size), c**-0.5, matrices=(1, c, c)),
            f"blocks.{block}.second": Slot((c, c, 1, 1), c**-0.5, matrices=(1, c, c)),
            f"blocks.{block}.modulation": Slot((6, c, context), matrices=(6, c, context)),
            f"blocks.{block}.modulation_bias": Slot((6, c)),
        }
    return slots
