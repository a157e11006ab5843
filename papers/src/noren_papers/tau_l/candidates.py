"""All tables that the searches of 1DLD and CLD have seen, beside the one that each takes."""

from __future__ import annotations

from noren.errors import RequirementNotMet
from noren.metrics.general import GeneralTable
from noren.metrics.information import excessive_protection, utility_score
from noren_papers.base import Bench
from noren_papers.tau_l.common import CLD, cld, dataset, one_d


def candidates(bench: Bench, name: str, method: str) -> list[GeneralTable]:
    """Every table that a method's search has seen."""
    if method == CLD:
        return [one.table for one in cld(bench, name).candidates]
    found = (one_d(bench, name, l) for l in range(2, dataset(bench, name).values + 1))
    return [one.table for one in found if one is not None]


def scored(bench: Bench, name: str, method: str, tau: float, l: int) -> list[tuple[float, float]]:
    """Excess and utility of every table of the search that satisfies (tau, l)."""

    def make() -> list[tuple[float, float]]:
        out = []
        for table in candidates(bench, name, method):
            try:
                excess = excessive_protection(table, tau, l, dataset(bench, name).sensitive)
            except RequirementNotMet:
                continue
            out.append((excess, utility_score(table)))
        return out

    return bench.shared(("tau-l", "scored", name, method, tau, l), make)
