"""Privacy models. The registry is explicit: one line per model."""

from __future__ import annotations

from noren.models.base import Evidence, Model, Overall, PublishedColumn, Verdict
from noren.models.entropy_l_diversity import EntropyLDiversity
from noren.models.expanded_k import ExpandedK
from noren.models.frequency_l_diversity import FrequencyLDiversity
from noren.models.le_diversity import LEDiversity
from noren.models.semantic_diversity import SemanticDiversity
from noren.models.t_closeness import TCloseness

MODELS: dict[str, type[Model]] = {
    "frequency-l-diversity": FrequencyLDiversity,
    "entropy-l-diversity": EntropyLDiversity,
    "t-closeness": TCloseness,
    "expanded-k": ExpandedK,
    "semantic-diversity": SemanticDiversity,
    "le-diversity": LEDiversity,
}

__all__ = [
    "MODELS",
    "EntropyLDiversity",
    "Evidence",
    "ExpandedK",
    "FrequencyLDiversity",
    "LEDiversity",
    "Model",
    "Overall",
    "PublishedColumn",
    "SemanticDiversity",
    "TCloseness",
    "Verdict",
]
