"""What releases are good for: trees, rules and counts (figures 17 to 21)."""

from __future__ import annotations

from noren_papers.base import Figure
from noren_papers.tau_l import dimensions, learning, preserving, queries, secrets

FIGURES: tuple[Figure, ...] = (
    *learning.FIGURES,
    *preserving.FIGURES,
    *queries.FIGURES,
    *dimensions.FIGURES,
    *secrets.FIGURES,
)
