"""The reveal rules by the names that people type."""

from __future__ import annotations

from collections.abc import Callable

from factordiff.errors import InvalidInput
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct, Repaired
from factordiff.sampling.blocks import ByBlock
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule


def _block(setting: str) -> ByBlock:
    """`32x8` is 8 steps for every 32 cells; an order may follow, as `32x8:random`."""
    size, _, order = setting.partition(":")
    length, steps = (int(number) for number in size.split("x"))
    return ByBlock(length, steps, **({"order": order} if order else {}))  # type: ignore[arg-type]


_BUILDERS: dict[str, Callable[[str], RevealRule]] = {
    "confidence": lambda steps: ByConfidence(int(steps)),
    "ancestral": lambda steps: Ancestral(int(steps)),
    "margin": lambda threshold: ByMargin(float(threshold)),
    "entropy": lambda gamma: ByEntropy(float(gamma)),
    "product": lambda threshold: ByProduct(float(threshold), "product"),
    "frechet": lambda threshold: ByProduct(float(threshold), "frechet"),
    "block": _block,
}
RULES = tuple(_BUILDERS)
REPAIR = "+repair:"
# `exact` is the paper's order, one cell per pass. `fast` was chosen on validation: the fewest passes with the quality
# of `exact`, half of the tolerance to spare (docs/log.md).
PRESETS: dict[str, RevealRule] = {"fast": ByProduct(0.99), "exact": ByConfidence(128)}


def reveal_rule(given: str | RevealRule) -> RevealRule:
    """A rule stands for itself; a name is a preset (`fast`, `exact`) or a rule with its number.

    `+repair:0.5` behind it takes back what was committed at that margin or less.

    >>> reveal_rule("exact")
    ByConfidence(steps=128)
    >>> reveal_rule("margin:0.9")
    ByMargin(threshold=0.9)
    >>> reveal_rule("block:32x8:random")
    ByBlock(length=32, steps=8, order='random', end=None, end_last=False)
    >>> reveal_rule("margin:0.9+repair:0.5")
    Repaired(rule=ByMargin(threshold=0.9), threshold=0.5, rounds=1)
    """
    if isinstance(given, RevealRule):
        return given
    if not isinstance(given, str):
        raise InvalidInput(f"reveal: expected a name or a reveal rule, got {given!r}")
    if given in PRESETS:
        return PRESETS[given]
    plain, repaired, threshold = given.partition(REPAIR)
    if not repaired:
        return _plain(given)
    try:
        return Repaired(_plain(plain), float(threshold))
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput(
            f"reveal: expected a margin after 'repair', as {REPAIR}0.5, got {given!r}"
        ) from error


def rule_name(rule: RevealRule) -> str:
    """The name that `reveal_rule` reads as this rule.

    >>> rule_name(Repaired(ByMargin(0.9), 0.5)), rule_name(ByProduct(0.99, "frechet"))
    ('margin:0.9+repair:0.5', 'frechet:0.99')
    """
    if isinstance(rule, Repaired) and rule.rounds == 1:
        return f"{rule_name(rule.rule)}{REPAIR}{rule.threshold}"
    if isinstance(rule, ByBlock) and rule.end is None:
        return f"block:{rule.length}x{rule.steps}:{rule.order}"
    if isinstance(rule, ByProduct):
        return f"{rule.bound}:{rule.threshold}"
    for name in ("confidence", "ancestral", "margin", "entropy"):
        kind = type(_BUILDERS[name]("1"))
        if type(rule) is kind:
            return f"{name}:{next(iter(vars(rule).values()))}"
    raise InvalidInput(f"reveal: {rule!r} has no name; those of {', '.join(RULES)} have")


def _plain(text: str) -> RevealRule:
    name, _, number = text.partition(":")
    if name not in _BUILDERS:
        raise InvalidInput(
            f"reveal: expected {', '.join(PRESETS)}, or one of {', '.join(RULES)} with a number, as margin:0.9, "
            f"got {text!r}"
        )
    try:
        return _BUILDERS[name](number)
    except InvalidInput:
        raise
    except ValueError as error:
        example = "block:32x8 or block:32x8:random" if name == "block" else f"{name}:1"
        raise InvalidInput(f"reveal: expected a number after {name!r}, as {example}, got {text!r}") from error
