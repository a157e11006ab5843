"""What a try of a draft showed, for the next one: what goes together, what is hidden more firmly, what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Findings:
    """Corrections of a draft."""

    pairs: tuple[tuple[str, str], ...] = ()
    """Secrets that tell each other, the worst first."""
    whole: bool = False
    """Whether requirements ask for different tuples, because sets that differ in every member cannot be made."""
    closer: frozenset[str] = frozenset()
    """Secrets of two values that other columns tell."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns that are not published, with the reason."""
    undecided: str = ""
    """What a person must decide."""


NOTHING = Findings()
