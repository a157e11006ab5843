"""Functional (tau,l)-diversity: the evaluation of Tian and Zhang, figure by figure."""

from __future__ import annotations

from noren_papers.base import Figure, Paper
from noren_papers.tau_l import (
    balance,
    complexity,
    eligible,
    execution,
    information,
    learning,
    preserving,
    protection,
    queries,
    secrets,
    skewed,
    violations,
)  # fmt: skip

_MODULES = (
    eligible, protection, violations, skewed, information, learning, preserving, queries, secrets,
    execution, complexity, balance,
)  # fmt: skip


def _place(figure: Figure) -> int:
    return int(figure.key) if figure.key.isdigit() else 0 if figure.key.startswith("table") else 99


PAPER = Paper(
    "tau-l",
    "004",
    "Functional (tau,l)-diversity",
    'H. Tian, W. Zhang, "Extending l-diversity to generalize sensitive data", Data & Knowledge Engineering 70 (2011) '
    "101-126",
    figures=tuple(sorted((figure for module in _MODULES for figure in module.FIGURES), key=_place)),
)
