"""The few verbs that tie the rooms together, and what they return; loaded when first used."""

from noren.lazy import lazy

_HOMES = {
    "Candidate": "noren.workflow.compare",
    "Collector": "noren.workflow.collect",
    "Comparison": "noren.workflow.comparison",
    "HolderFacts": "noren.workflow.anonymize",
    "Measure": "noren.workflow.measure",
    "Measures": "noren.workflow.measure",
    "Outcome": "noren.workflow.anonymize",
    "Risk": "noren.audit.risk.result",
    "advise": "noren.workflow.advice",
    "find_levels": "noren.workflow.compare",
    "read_policy": "noren.workflow.prepare",
    "run": "noren.workflow.anonymize",
    "verify_table": "noren.workflow.foreign",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
