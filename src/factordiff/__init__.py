"""FactorDiff: combine frozen discrete-diffusion experts at inference time, factor by factor.

The public list, by name. Each name is imported when it is first used, so that `import factordiff` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factordiff.composition.composition import Composed as Composed
    from factordiff.composition.composition import Composition as Composition
    from factordiff.composition.confidence import log_doubt as log_doubt
    from factordiff.composition.confidence import margin as margin
    from factordiff.composition.correctors import Corrected as Corrected
    from factordiff.composition.correctors import feynman_kac as feynman_kac
    from factordiff.composition.correctors import rne as rne
    from factordiff.composition.evidence import Evidence as Evidence
    from factordiff.composition.factors import blocks as blocks
    from factordiff.composition.factors import columns as columns
    from factordiff.composition.factors import components as components
    from factordiff.composition.factors import components_of_state as components_of_state
    from factordiff.composition.factors import pixels as pixels
    from factordiff.composition.factors import rows as rows
    from factordiff.composition.factors import whole as whole
    from factordiff.composition.learned import Learned as Learned
    from factordiff.composition.mixture import Mixture as Mixture
    from factordiff.composition.product import GeometricMean as GeometricMean
    from factordiff.composition.product import Product as Product
    from factordiff.composition.router import Router as Router
    from factordiff.composition.router_store import load_router as load_router
    from factordiff.composition.router_store import save_router as save_router
    from factordiff.composition.routing import FactorWeights as FactorWeights
    from factordiff.composition.routing import Routing as Routing
    from factordiff.composition.routing import SoftRouting as SoftRouting
    from factordiff.composition.single import Single as Single
    from factordiff.composition.superdiff import SuperDiff as SuperDiff
    from factordiff.composition.superdiff import SuperDiffAnd as SuperDiffAnd
    from factordiff.composition.views import HardViews as HardViews
    from factordiff.composition.views import Views as Views
    from factordiff.composition.vote import majority_vote as majority_vote
    from factordiff.engine.batch_sizes import BatchSizes as BatchSizes
    from factordiff.engine.engine import Engine as Engine
    from factordiff.engine.fast_network import FastNetwork as FastNetwork
    from factordiff.errors import FactorDiffError as FactorDiffError
    from factordiff.errors import InvalidInput as InvalidInput
    from factordiff.experts.condition import Condition as Condition
    from factordiff.experts.expert import Expert as Expert
    from factordiff.experts.expert import substitute as substitute
    from factordiff.experts.masked_lm import MaskedLanguageModel as MaskedLanguageModel
    from factordiff.experts.masked_lm import of_adapters as of_adapters
    from factordiff.experts.registry import shipped_experts as shipped_experts
    from factordiff.experts.tabular import TabularExpert as TabularExpert
    from factordiff.fitting.data import FittingData as FittingData
    from factordiff.fitting.diagnosis import Diagnosis as Diagnosis
    from factordiff.fitting.report import FitReport as FitReport
    from factordiff.networks.store import load_expert as load_expert
    from factordiff.sampling.adaptive import ByEntropy as ByEntropy
    from factordiff.sampling.adaptive import ByMargin as ByMargin
    from factordiff.sampling.adaptive import ByProduct as ByProduct
    from factordiff.sampling.adaptive import Repaired as Repaired
    from factordiff.sampling.blocks import ByBlock as ByBlock
    from factordiff.sampling.demonstration_evidence import demonstration_evidence as demonstration_evidence
    from factordiff.sampling.given_evidence import chain_rule_evidence as chain_rule_evidence
    from factordiff.sampling.given_evidence import fold_evidence as fold_evidence
    from factordiff.sampling.reveal import Ancestral as Ancestral
    from factordiff.sampling.reveal import ByConfidence as ByConfidence
    from factordiff.sampling.reveal import RevealRule as RevealRule
    from factordiff.sampling.sampler import sample as sample
    from factordiff.sampling.samples import Samples as Samples
    from factordiff.sampling.trace import Trace as Trace
    from factordiff.solving.answer import Answer as Answer
    from factordiff.solving.solver import solve as solve
    from factordiff.state import SamplerState as SamplerState
    from factordiff.team.team import Team as Team
    from factordiff.team.team import compose as compose
    from factordiff.toy.law import Law as Law
    from factordiff.toy.law import exact_law as exact_law
    from factordiff.toy.law import total_variation as total_variation
    from factordiff.vocabulary import Vocabulary as Vocabulary
    from factordiff.worlds.compare import compare as compare
    from factordiff.worlds.comparison import Comparison as Comparison
    from factordiff.worlds.queries import Queries as Queries

_HOMES = {
    "composition.composition": ("Composed", "Composition"),
    "composition.confidence": ("log_doubt", "margin"),
    "composition.correctors": ("Corrected", "feynman_kac", "rne"),
    "composition.evidence": ("Evidence",),
    "composition.factors": (
        "blocks",
        "columns",
        "components",
        "components_of_state",
        "pixels",
        "rows",
        "whole",
    ),
    "composition.learned": ("Learned",),
    "composition.mixture": ("Mixture",),
    "composition.product": ("GeometricMean", "Product"),
    "composition.routing": ("FactorWeights", "Routing", "SoftRouting"),
    "composition.router": ("Router",),
    "composition.router_store": ("load_router", "save_router"),
    "composition.single": ("Single",),
    "composition.superdiff": ("SuperDiff", "SuperDiffAnd"),
    "composition.views": ("HardViews", "Views"),
    "composition.vote": ("majority_vote",),
    "errors": ("FactorDiffError", "InvalidInput"),
    "experts.condition": ("Condition",),
    "experts.expert": ("Expert", "substitute"),
    "experts.masked_lm": ("MaskedLanguageModel", "of_adapters"),
    "networks.store": ("load_expert",),
    "experts.tabular": ("TabularExpert",),
    "experts.registry": ("shipped_experts",),
    "fitting.data": ("FittingData",),
    "fitting.diagnosis": ("Diagnosis",),
    "fitting.report": ("FitReport",),
    "sampling.adaptive": ("ByEntropy", "ByMargin", "ByProduct", "Repaired"),
    "sampling.blocks": ("ByBlock",),
    "engine.batch_sizes": ("BatchSizes",),
    "engine.engine": ("Engine",),
    "engine.fast_network": ("FastNetwork",),
    "sampling.demonstration_evidence": ("demonstration_evidence",),
    "sampling.given_evidence": ("chain_rule_evidence", "fold_evidence"),
    "sampling.reveal": ("Ancestral", "ByConfidence", "RevealRule"),
    "sampling.sampler": ("sample",),
    "sampling.samples": ("Samples",),
    "sampling.trace": ("Trace",),
    "solving.answer": ("Answer",),
    "solving.solver": ("solve",),
    "team.team": ("Team", "compose"),
    "state": ("SamplerState",),
    "toy.law": ("Law", "exact_law", "total_variation"),
    "vocabulary": ("Vocabulary",),
    "worlds.compare": ("compare",),
    "worlds.comparison": ("Comparison",),
    "worlds.queries": ("Queries",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__version__ = "0.1.0"
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'factordiff' has no attribute {name!r}")
    thing = getattr(import_module(f"factordiff.{_HOME_OF[name]}"), name)
    globals()[name] = thing  # looked up only once
    return thing


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
