"""How often plain decoys, drawn without regard to meaning, break (l, d)-semantic diversity (paper 003, Theorem 5.2).

The domain is F values in order and the distance their difference in rank. The theorem's bound is exact for a value at
either end of the order and a lower bound for all others; here it stands beside the exact mean over all values and a
simulation that draws as the decoy method does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, expm1, log1p
from pathlib import Path
from typing import Any

import numpy as np

from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError
from noren.secret import Keystream


@dataclass(frozen=True)
class ViolationRate:
    """Probability that a plain decoy set holds two values closer than d, per record and for a whole table."""

    values: int
    l: int
    d: int
    bound: float
    """Theorem 5.2 with its binomial corrected: a lower bound, exact for the end values."""
    exact: float
    """Mean over all true values, each equally frequent."""
    simulated: float
    std_error: float
    draws: int

    def for_records(self, records: int) -> float:
        """Equation 12: probability that at least one of so many records violates, from the bound."""
        return violation_of_table(self.bound, records)


def violation_of_table(rate: float, records: int) -> float:
    """1 - (1 - rate)^records, without losing small rates."""
    return 1.0 if rate >= 1 else -expm1(records * log1p(-rate))


def separated(values: int, size: int, d: int) -> int:
    """Ways to choose `size` of `values` ranks with gaps of at least d."""
    free = values - (size - 1) * (d - 1) if size else 1
    return comb(free, size) if free >= 0 else 0


def theorem_bound(values: int, l: int, d: int) -> float:
    """1 - C(F-1-(l-1)(d-1), l-1) / C(F-1, l-1)."""
    free = values - 1 - (l - 1) * (d - 1)
    return 1 - (comb(free, l - 1) if free >= 0 else 0) / comb(values - 1, l - 1)


def exact_rate(values: int, l: int, d: int) -> float:
    """Mean over the true values of the share of sets that violate."""
    total = comb(values - 1, l - 1)
    fine = 0
    for v in range(values):
        left, right = max(0, v - d + 1), max(0, values - v - d)
        fine += sum(separated(left, k, d) * separated(right, l - 1 - k, d) for k in range(l))
    return 1 - fine / (values * total)


def violation_rate(values: int, l: int, d: int, draws: int = 200_000) -> ViolationRate:
    """Bound, exact mean and simulation."""
    if not 2 <= l <= values:
        raise QueryError(f"l = {l} is not between 2 and the {values} values.", hint="Lower l, or raise --values.")
    if not 1 <= d < values:
        raise QueryError(f"d = {d} is not between 1 and {values - 1}.", hint="Give d as a difference of ranks.")
    codes = np.random.default_rng(0).integers(0, values, draws).astype(np.min_scalar_type(values - 1))
    sets = DecoyDesign(d=values, eta=l).draw(codes, Keystream(), attribute="x").codes(l).astype(np.int64)
    share = float((np.diff(sets, axis=1).min(axis=1) < d).mean())
    error = float(np.sqrt(max(share * (1 - share), 1 / draws) / draws))
    return ViolationRate(values, l, d, theorem_bound(values, l, d), exact_rate(values, l, d), share, error, draws)


def curve(values: int, sizes: Sequence[int], draws: int = 20_000) -> list[ViolationRate]:
    """Rates for every d that some set of l values can meet, for several l."""
    return [
        violation_rate(values, size, d, draws)
        for size in sizes
        for d in range(1, max(2, (values - 1) // (size - 1) + 2))
        if d < values
    ]


def violation_chart(rates: Sequence[ViolationRate]) -> Any:
    """Violation probability per record against d, a panel for every l, as in the paper's figure 6."""
    import polars as pl

    from noren_papers import draw

    rows = [
        {"d": rate.d, "l": f"l = {rate.l}", "probability": value, "from": kind}
        for rate in rates
        for kind, value in (
            ("theorem (lower bound)", rate.bound),
            ("exact mean", rate.exact),
            ("simulated", rate.simulated),
        )
    ]
    return draw.lines(
        pl.DataFrame(rows), x="d", y="probability", series="from", panel="l", columns=2, size=(300, 200),
        x_title="required distance d", y_title="share of records that violate",
        title=f"Violations of semantic diversity by plain decoys, {rates[0].values} values",
        note="Semantic designs never violate.",
    )  # fmt: skip


def save_violation_chart(rates: Sequence[ViolationRate], path: Path) -> None:
    from noren.estimates.counts.plots import save_chart

    save_chart(violation_chart(rates), path)
