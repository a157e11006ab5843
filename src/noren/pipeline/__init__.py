"""The few verbs that tie the rooms together, and what they return; loaded when first used."""

from noren.lazy import lazy

_HOMES = {
    "Candidate": "noren.pipeline.compare",
    "Collector": "noren.pipeline.collect",
    "Comparison": "noren.pipeline.comparison",
    "HolderFacts": "noren.pipeline.anonymize",
    "Measure": "noren.pipeline.measure",
    "Measures": "noren.pipeline.measure",
    "Outcome": "noren.pipeline.anonymize",
    "Risk": "noren.pipeline.risk.result",
    "run": "noren.pipeline.anonymize",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
