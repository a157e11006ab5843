"""How strong a requirement is beside another, and which requirements a table can meet at all (paper 004, section 3).

One requirement is stronger than another if every table that satisfies it satisfies the other. Here the other is
(tau, u)-diversity over m base values: the k commonest values of a class hold at most psi(k) of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, floor, log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noren.errors import QueryError

TOLERANCE = 1e-9


def psi(k: ArrayLike, tau: float, l: int) -> NDArray[np.float64]:
    """Bound on the share of the k commonest values: tau + (1 - tau)(k - 1)/(l - 1) up to l, 1 beyond."""
    return np.minimum(1.0, tau + (1 - tau) * (np.asarray(k, np.float64) - 1) / (l - 1))


def checked_requirement(tau: float, l: int, m: int | None = None) -> None:
    """Raise QueryError unless 1/l <= tau < 1 and 2 <= l <= m."""
    if l < 2:
        raise QueryError(f"l = {l} is below 2.", hint="Use an l of at least 2; one value is no diversity.")
    if m is not None and l > m:
        raise QueryError(f"l = {l} is more than the {m} values.", hint=f"Use an l from 2 to {m}." if m > 1 else None)
    if not 1 / l - TOLERANCE <= tau < 1:
        raise QueryError(
            f"tau = {tau:g} is not in the range from 1/l = {1 / l:.4g} to below 1.",
            hint=f"Use tau = {1 / l:.4f} or more, or a larger l; {l} values cannot all stay below 1/{l}."
            if tau < 1
            else "Give the largest permitted share of one value, below 1.",
        )


def weakest_simple(tau: float, l: int) -> int:
    """The smallest simple l-diversity that implies (tau, l)-diversity for every tau: l itself (Theorem 20)."""
    checked_requirement(tau, l)
    return l


def largest_c(m: int, l: int, tau: float, u: int) -> float:
    """The largest c at which recursive (c, l)-diversity implies (tau, u)-diversity over m values, exactly.

    It is stronger iff c is at most this. The most uneven (c, l)-diverse class for a given k has its k commonest values
    alike and spreads the rest evenly, which gives a bound on c for each k < u. From l >= u on this is the bound that
    replaces the paper's; for l < u it stays below 1, so an integer c needs l >= u. At tau = 1/m the answer is
    1/(m - l + 1), which no class satisfies, because recursive diversity is strict.
    """
    checked_requirement(tau, u, m)
    if not 2 <= l <= m:
        raise QueryError(f"l = {l} is not between 2 and the {m} values.", hint="(c, l)-diversity needs l values.")
    k = np.arange(1, u)
    p = psi(k, tau, u)
    below = p * (m - k) / (k * (1 - p) * (m - l + 1))
    above = p / np.maximum(k - p * (l - 1), TOLERANCE)
    return float(np.where(k < l, below, above).min())


def paper_c(m: int, l: int, u: int) -> float | None:
    """Theorem 23's bound (m - 1)/((u - 1)(m - l + 1)), or None where it is below 1 and the theorem says nothing.

    Enough for every tau, but needed only for tau = 1/u: the theorem's "only if" is wrong.
    """
    bound = (m - 1) / ((u - 1) * (m - l + 1))
    return bound if bound >= 1 - TOLERANCE else None


def envelope(m: int, c: float, l: int) -> NDArray[np.float64]:
    """The largest F(k) that any class of m values under recursive (c, l)-diversity comes near, for k = 1..m.

    Raises QueryError if no class satisfies it: that needs c (m - l + 1) > 1.
    """
    reach = c * (m - l + 1)
    if reach < 1 - TOLERANCE:
        raise QueryError(f"no class satisfies ({c:g}, {l})-diversity over {m} values.", hint="Raise c or lower l.")
    k = np.arange(1, m + 1)
    return np.where(k < l, k * reach / (k * reach + m - k), np.minimum(1.0, k * c / (1 + c * (l - 1))))


@dataclass(frozen=True)
class RecursiveBound:
    """How small c must be at one l: exactly, and by the paper's Theorem 23."""

    l: int
    exact: float
    paper: float | None


def strength_table(m: int, tau: float, u: int) -> list[RecursiveBound]:
    """For every l from 2 to m the largest c at which (c, l)-diversity implies (tau, u)-diversity."""
    checked_requirement(tau, u, m)
    return [RecursiveBound(l, largest_c(m, l, tau, u), paper_c(m, l, u)) for l in range(2, m + 1)]


@dataclass(frozen=True)
class EligibleRanges:
    """Which requirements a sensitive column allows. Every model here survives the union of classes, so a requirement
    is possible only if the whole table, taken as one class, meets it."""

    records: int
    values: int
    """Base values that occur; the largest l of distinct and, with generalised sensitive values, (tau, l)-diversity."""
    simple: int
    """Largest l of simple (frequency) l-diversity; 1: none."""
    entropy: float
    """Largest l of entropy l-diversity, exp(H)."""
    recursive: tuple[float, ...]
    """For l = 2, 3, ..., values: the c that must be exceeded."""
    cumulative: tuple[float, ...]
    """F(1), F(2), ...: shares of the commonest values."""

    def smallest_c(self, l: int) -> float:
        """(c, l)-diversity is eligible for every c above this."""
        if not 2 <= l <= self.values:
            raise QueryError(f"l = {l} is not between 2 and the {self.values} values.", hint="Lower l.")
        return self.recursive[l - 2]

    def largest_l(self, c: float) -> int:
        """The largest l for which (c, l)-diversity is eligible; 1: none."""
        return 1 + sum(c > bound for bound in self.recursive)

    def base_values_suffice(self, tau: float, l: int) -> bool:
        """Whether (tau, l) can be met without generalising a sensitive value."""
        return bool((np.asarray(self.cumulative) <= psi(np.arange(1, self.values + 1), tau, l) + TOLERANCE).all())

    def recursive_for(self, tau: float, l: int) -> tuple[int, ...]:
        """The l' at which some eligible (c, l')-diversity implies (tau, l)."""
        if l > self.values:
            return ()
        return tuple(row.l for row in strength_table(self.values, tau, l) if self.smallest_c(row.l) < row.exact)


def eligible_ranges(counts: Sequence[int] | NDArray[np.int64]) -> EligibleRanges:
    """From how often each sensitive value occurs, in any order; values that do not occur do not count."""
    given = np.asarray(counts, np.int64)
    if given.ndim != 1 or (given < 0).any() or not given.any():
        raise QueryError("counts must be at least 0, and one of them above 0.", hint="Count the values of the column.")
    ranked = np.sort(given[given > 0])[::-1]
    n, tail = int(ranked.sum()), ranked[::-1].cumsum()[::-1]
    share = ranked / n
    return EligibleRanges(
        records=n,
        values=len(ranked),
        simple=n // int(ranked[0]),
        entropy=exp(-float(sum(f * log(f) for f in share.tolist()))),
        recursive=tuple((ranked[0] / tail[1:]).tolist()),
        cumulative=tuple(np.cumsum(share).tolist()),
    )


@dataclass(frozen=True)
class Eligibility:
    """Whether a column allows one model at the requested strength."""

    model: str
    allows: str
    """What the column allows at most, in words."""
    asked: str
    eligible: bool
    guarantees: bool
    """Whether a table that meets what is asked satisfies (tau, l)-diversity."""


def eligibility(ranges: EligibleRanges, tau: float, l: int) -> list[Eligibility]:
    """Every model at the strength that (tau, l) asks of it."""
    checked_requirement(tau, l)
    m, simple = ranges.values, ranges.simple
    recursive = ranges.recursive_for(tau, l)
    ends = [f"l = {size} with c > {ranges.smallest_c(size):.4g}" for size in sorted({2, m}) if 2 <= size <= m]
    bounded = f"l = {', '.join(map(str, recursive))}, c as bounded" if recursive else "no l and c fit"
    entropy = floor(ranges.entropy + TOLERANCE)
    return [
        Eligibility("tau-l-diversity", f"l to {m}, any tau from 1/l", f"tau = {tau:g}, l = {l}", l <= m, True),
        Eligibility("frequency-l-diversity", f"l to {simple}", f"l = {l}", l <= simple, True),
        Eligibility("recursive-cl-diversity", " to ".join(ends) or "none", bounded, bool(recursive), True),
        Eligibility("entropy-l-diversity", f"l to {ranges.entropy:.4g}", f"l = {l}", l <= entropy, False),
        Eligibility("distinct-l-diversity", f"l to {m}", f"l = {l}", l <= m, False),
        Eligibility("k-anonymity", f"k to {ranges.records}", f"k = {l}", l <= ranges.records, False),
        Eligibility("t-closeness", "any t", "any t", True, False),
    ]


def curves(m: int, tau: float, l: int) -> dict[str, list[float]]:
    """Bound on F(k), k = 1..m: (tau, l), the weakest simple and recursive ones that imply it, the strongest of all."""
    checked_requirement(tau, l, m)
    k = np.arange(1, m + 1)
    out = {f"({tau:g}, {l})-diversity": psi(k, tau, l).tolist()}
    out[f"simple {l}-diversity"] = np.minimum(1.0, k / l).tolist()
    for size in dict.fromkeys((l, m)):
        c = largest_c(m, size, tau, l)
        if c * (m - size + 1) > 1 + TOLERANCE:
            out[f"recursive ({c:.3g}, {size})-diversity"] = envelope(m, c, size).tolist()
    out[f"strongest: (1/{m}, {m})-diversity"] = (k / m).tolist()
    return out


def strength_chart(m: int, tau: float, l: int) -> Any:
    """Largest share of the k commonest values against k; a line below another is the stronger requirement."""
    import polars as pl

    from noren_papers import draw

    rows = [
        {"k": k, "bound": bound, "requirement": name}
        for name, bounds in curves(m, tau, l).items()
        for k, bound in enumerate(bounds, start=1)
    ]
    return draw.lines(
        pl.DataFrame(rows), x="k", y="bound", series="requirement", size=(460, 320),
        x_title="k, number of commonest sensitive values", y_title="largest share of a class they may hold",
        title=f"Requirements that imply ({tau:g}, {l})-diversity, {m} values",
        note="Lower is stronger; recursive diversity is drawn at the largest sufficient c.",
    )  # fmt: skip


def save_strength_chart(m: int, tau: float, l: int, path: Path) -> None:
    from noren.estimates.counts.plots import save_chart

    save_chart(strength_chart(m, tau, l), path)
