"""Privacy models. The registry is explicit: one line per model."""

from __future__ import annotations

from noren.models.alpha_k_anonymity import AlphaKAnonymity
from noren.models.base import Evidence, Model, Overall, Promise, SearchRule
from noren.models.belief import Belief
from noren.models.beta_likeness import BetaLikeness
from noren.models.delta_disclosure import DeltaDisclosure
from noren.models.distinct_l_diversity import DistinctLDiversity
from noren.models.entropy_l_diversity import EntropyLDiversity
from noren.models.expanded_k import ExpandedK
from noren.models.frequency_l_diversity import FrequencyLDiversity
from noren.models.informed_belief import InformedBelief
from noren.models.k_anonymity import KAnonymity
from noren.models.le_diversity import LEDiversity
from noren.models.local_privacy import LocalPrivacy
from noren.models.m_invariance import MInvariance
from noren.models.mechanism import Mechanism
from noren.models.p_sensitive_k_anonymity import PSensitiveKAnonymity
from noren.models.qs_closeness import QSCloseness
from noren.models.qs_diversity import QSDiversity
from noren.models.recursive_cl_diversity import RecursiveCLDiversity
from noren.models.semantic_diversity import SemanticDiversity
from noren.models.t_closeness import TCloseness
from noren.models.tau_l_diversity import TauLDiversity
from noren.models.verdict import Shortfall, Verdict, Verdicts

MODELS: dict[str, type[Model]] = {
    "k-anonymity": KAnonymity,
    "distinct-l-diversity": DistinctLDiversity,
    "frequency-l-diversity": FrequencyLDiversity,
    "entropy-l-diversity": EntropyLDiversity,
    "recursive-cl-diversity": RecursiveCLDiversity,
    "alpha-k-anonymity": AlphaKAnonymity,
    "p-sensitive-k-anonymity": PSensitiveKAnonymity,
    "tau-l-diversity": TauLDiversity,
    "t-closeness": TCloseness,
    "beta-likeness": BetaLikeness,
    "delta-disclosure": DeltaDisclosure,
    "belief": Belief,
    "informed-belief": InformedBelief,
    "expanded-k": ExpandedK,
    "local-privacy": LocalPrivacy,
    "semantic-diversity": SemanticDiversity,
    "le-diversity": LEDiversity,
    "qs-diversity": QSDiversity,
    "qs-closeness": QSCloseness,
    "mechanism": Mechanism,
    "m-invariance": MInvariance,
}

__all__ = [
    "MODELS",
    "AlphaKAnonymity",
    "Belief",
    "BetaLikeness",
    "DeltaDisclosure",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "Evidence",
    "ExpandedK",
    "FrequencyLDiversity",
    "InformedBelief",
    "KAnonymity",
    "LEDiversity",
    "LocalPrivacy",
    "MInvariance",
    "Mechanism",
    "Model",
    "Overall",
    "PSensitiveKAnonymity",
    "Promise",
    "QSCloseness",
    "QSDiversity",
    "RecursiveCLDiversity",
    "SearchRule",
    "SemanticDiversity",
    "Shortfall",
    "TCloseness",
    "TauLDiversity",
    "Verdict",
    "Verdicts",
]
