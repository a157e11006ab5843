"""Noren: publish tables about people, and analyse them.

The holder's verbs: `Policy.load`, `anonymize`, `verify`. The recipient's: `open_release`, then `release.estimate`,
`release.count`, `release.mean`, `release.regress`, `release.test`. The rest lives in named rooms:
`noren.models.KAnonymity`, `noren.methods.Mondrian`, `noren.metrics.ncp_loss`. Names are loaded when first used, so that
`import noren` costs next to nothing.
"""

from noren.lazy import lazy

__version__ = "0.2.0"

_HOMES = {
    # the holder
    "Policy": "noren.policy.policy",
    "anonymize": "noren.workflow.anonymize",
    "compare": "noren.workflow.compare",
    "Comparison": "noren.workflow.comparison",
    "Collector": "noren.workflow.collect",
    "Secret": "noren.secret",
    "SigningKey": "noren.secret",
    "risk": "noren.audit.risk",
    # the auditor
    "verify": "noren.workflow.verify",
    "PublicKey": "noren.secret",
    "Verdicts": "noren.models.verdict",
    "check": "noren.workflow.foreign",
    "measure": "noren.workflow.measure",
    "Measures": "noren.workflow.measure",
    "attack": "noren.audit",
    "Attacks": "noren.audit",
    "make_report": "noren.report.page",
    # the recipient
    "open_release": "noren.release.release",
    "Release": "noren.release.release",
    "Estimate": "noren.estimates.counts.estimate",
    "Count": "noren.estimates.counts.estimate",
    # what columns mean
    "Column": "noren.schema.column",
    "drop": "noren.schema.column",
    "identifier": "noren.schema.column",
    "quasi_identifier": "noren.schema.column",
    "sensitive": "noren.schema.column",
    "sensitive_quasi_identifier": "noren.schema.column",
    "quasi_sensitive": "noren.schema.column",
    "plain": "noren.schema.column",
    "Hierarchy": "noren.schema.hierarchy",
    "Knowledge": "noren.schema.knowledge",
    # what goes wrong
    "NorenError": "noren.errors",
}
"""The public names on top, and where each lives. `__init__.pyi` says the same to type checkers; a test compares."""

_ROOMS = (
    "audit", "designs", "errors", "estimates", "methods", "metrics", "models", "report", "workflow",
)  # fmt: skip
"""Where the other public names are: an attack and its results in `audit`, a model in `models`, and so on."""

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES, _ROOMS)
