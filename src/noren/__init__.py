"""Noren: publish tables about people, and analyse them.

The holder's verbs: `Policy.load`, `anonymize`, `verify`. The recipient's: `open_release`, then `release.estimate` and
`release.count`. Names are loaded when first used, so that `import noren` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noren.analysis.estimate import Count, Estimate
    from noren.audit import attack
    from noren.designs.decoys import DecoyDesign
    from noren.designs.semantic.design import SemanticDesign
    from noren.errors import (
        DataError,
        NorenError,
        PolicyError,
        QueryError,
        ReleaseError,
        RequirementNotMet,
        SecretError,
    )
    from noren.methods.anatomy import Anatomy
    from noren.methods.auto import Auto
    from noren.methods.decoys import DecoyParameters, Decoys
    from noren.methods.hilbert import Hilbert
    from noren.methods.incognito import Incognito
    from noren.methods.mondrian import Mondrian
    from noren.methods.rating import Rating
    from noren.methods.suppress import Suppress
    from noren.methods.sweep import Sweep
    from noren.methods.three_phase import ThreePhase
    from noren.models import (
        AlphaKAnonymity,
        BetaLikeness,
        DeltaDisclosure,
        DistinctLDiversity,
        EntropyLDiversity,
        ExpandedK,
        FrequencyLDiversity,
        KAnonymity,
        LEDiversity,
        PSensitiveKAnonymity,
        QSCloseness,
        QSDiversity,
        RecursiveCLDiversity,
        SemanticDiversity,
        TauLDiversity,
        TCloseness,
        Verdict,
    )
    from noren.pipeline.anonymize import anonymize
    from noren.pipeline.collect import Collector
    from noren.pipeline.compare import compare
    from noren.pipeline.foreign import check
    from noren.pipeline.measure import Measures, measure
    from noren.pipeline.verify import verify
    from noren.policy.policy import Policy
    from noren.release.release import Release, open_release
    from noren.report.page import make_report
    from noren.schema.attribute import (
        Attribute,
        identifier,
        plain,
        quasi_identifier,
        quasi_sensitive,
        sensitive,
        sensitive_quasi_identifier,
    )
    from noren.schema.hierarchy import Hierarchy
    from noren.schema.knowledge import Knowledge
    from noren.secret import Secret

__version__ = "0.1.0"

_HOMES = {
    "AlphaKAnonymity": "noren.models",
    "Anatomy": "noren.methods.anatomy",
    "Attribute": "noren.schema.attribute",
    "Auto": "noren.methods.auto",
    "BetaLikeness": "noren.models",
    "Collector": "noren.pipeline.collect",
    "Count": "noren.analysis.estimate",
    "DataError": "noren.errors",
    "DecoyDesign": "noren.designs.decoys",
    "DecoyParameters": "noren.methods.decoys",
    "Decoys": "noren.methods.decoys",
    "DeltaDisclosure": "noren.models",
    "DistinctLDiversity": "noren.models",
    "EntropyLDiversity": "noren.models",
    "Estimate": "noren.analysis.estimate",
    "ExpandedK": "noren.models",
    "FrequencyLDiversity": "noren.models",
    "Hierarchy": "noren.schema.hierarchy",
    "Hilbert": "noren.methods.hilbert",
    "Incognito": "noren.methods.incognito",
    "KAnonymity": "noren.models",
    "Knowledge": "noren.schema.knowledge",
    "LEDiversity": "noren.models",
    "Measures": "noren.pipeline.measure",
    "Mondrian": "noren.methods.mondrian",
    "NorenError": "noren.errors",
    "PSensitiveKAnonymity": "noren.models",
    "Policy": "noren.policy.policy",
    "PolicyError": "noren.errors",
    "QSCloseness": "noren.models",
    "QSDiversity": "noren.models",
    "QueryError": "noren.errors",
    "Rating": "noren.methods.rating",
    "RecursiveCLDiversity": "noren.models",
    "Release": "noren.release.release",
    "ReleaseError": "noren.errors",
    "RequirementNotMet": "noren.errors",
    "Secret": "noren.secret",
    "SecretError": "noren.errors",
    "SemanticDesign": "noren.designs.semantic.design",
    "SemanticDiversity": "noren.models",
    "Suppress": "noren.methods.suppress",
    "Sweep": "noren.methods.sweep",
    "TCloseness": "noren.models",
    "TauLDiversity": "noren.models",
    "ThreePhase": "noren.methods.three_phase",
    "Verdict": "noren.models",
    "anonymize": "noren.pipeline.anonymize",
    "attack": "noren.audit",
    "check": "noren.pipeline.foreign",
    "compare": "noren.pipeline.compare",
    "identifier": "noren.schema.attribute",
    "make_report": "noren.report.page",
    "measure": "noren.pipeline.measure",
    "open_release": "noren.release.release",
    "plain": "noren.schema.attribute",
    "quasi_identifier": "noren.schema.attribute",
    "quasi_sensitive": "noren.schema.attribute",
    "sensitive": "noren.schema.attribute",
    "sensitive_quasi_identifier": "noren.schema.attribute",
    "verify": "noren.pipeline.verify",
}

__all__ = [
    "AlphaKAnonymity",
    "Anatomy",
    "Attribute",
    "Auto",
    "BetaLikeness",
    "Collector",
    "Count",
    "DataError",
    "DecoyDesign",
    "DecoyParameters",
    "Decoys",
    "DeltaDisclosure",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "Estimate",
    "ExpandedK",
    "FrequencyLDiversity",
    "Hierarchy",
    "Hilbert",
    "Incognito",
    "KAnonymity",
    "Knowledge",
    "LEDiversity",
    "Measures",
    "Mondrian",
    "NorenError",
    "PSensitiveKAnonymity",
    "Policy",
    "PolicyError",
    "QSCloseness",
    "QSDiversity",
    "QueryError",
    "Rating",
    "RecursiveCLDiversity",
    "Release",
    "ReleaseError",
    "RequirementNotMet",
    "Secret",
    "SecretError",
    "SemanticDesign",
    "SemanticDiversity",
    "Suppress",
    "Sweep",
    "TCloseness",
    "TauLDiversity",
    "ThreePhase",
    "Verdict",
    "anonymize",
    "attack",
    "check",
    "compare",
    "identifier",
    "make_report",
    "measure",
    "open_release",
    "plain",
    "quasi_identifier",
    "quasi_sensitive",
    "sensitive",
    "sensitive_quasi_identifier",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'noren' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
