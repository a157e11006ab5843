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
    "advise": "noren.pipeline.advice",
    "find_levels": "noren.pipeline.levels",
    "read_policy": "noren.pipeline.prepare",
    "run": "noren.pipeline.anonymize",
    "verify_table": "noren.pipeline.foreign",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
