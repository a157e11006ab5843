"""The registry of methods: one line per method."""

from __future__ import annotations

from noren.methods.anatomy import Anatomy
from noren.methods.auto import Auto
from noren.methods.base import Method
from noren.methods.decoys import DecoyParameters, Decoys
from noren.methods.hilbert import Hilbert
from noren.methods.incognito import Incognito
from noren.methods.local_suppression import LocalSuppression
from noren.methods.m_invariance import MInvariant
from noren.methods.microaggregation import Microaggregation
from noren.methods.mondrian import Mondrian
from noren.methods.pram import Pram
from noren.methods.rating import Rating
from noren.methods.suppress import Suppress
from noren.methods.sweep import Sweep
from noren.methods.three_phase import ThreePhase

METHODS: dict[str, type[Method]] = {
    "decoys": Decoys,
    "sweep": Sweep,
    "mondrian": Mondrian,
    "incognito": Incognito,
    "hilbert": Hilbert,
    "three-phase": ThreePhase,
    "anatomy": Anatomy,
    "rating": Rating,
    "local-suppression": LocalSuppression,
    "microaggregation": Microaggregation,
    "pram": Pram,
    "suppress": Suppress,
    "m-invariance": MInvariant,
    "auto": Auto,
}

__all__ = [
    "METHODS",
    "Anatomy",
    "Auto",
    "DecoyParameters",
    "Decoys",
    "Hilbert",
    "Incognito",
    "LocalSuppression",
    "MInvariant",
    "Method",
    "Microaggregation",
    "Mondrian",
    "Pram",
    "Rating",
    "Suppress",
    "Sweep",
    "ThreePhase",
]
