"""Functional (tau,l)-diversity: the evaluation of Tian and Zhang, figure by figure."""

from __future__ import annotations

from noren_papers.base import Figure, Paper
from noren_papers.tau_l import complexity, eligible, execution, information, protection, skewed, use, violations


def _place(figure: Figure) -> int:
    return int(figure.key) if figure.key.isdigit() else 0 if figure.key.startswith("table") else 99


_ALL = (
    *eligible.FIGURES,
    *protection.FIGURES,
    *violations.FIGURES,
    *skewed.FIGURES,
    *information.FIGURES,
    *use.FIGURES,
    *execution.FIGURES,
    *complexity.FIGURES,
)

PAPER = Paper(
    "tau-l",
    "004",
    "Functional (tau,l)-diversity",
    'H. Tian, W. Zhang, "Extending l-diversity to generalize sensitive data", Data & Knowledge Engineering 70 (2011) '
    "101-126",
    figures=tuple(sorted(_ALL, key=_place)),
)
