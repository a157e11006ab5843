"""A summary of what a recipient can ask of a release, and how precise the answers will be.

Widths follow from the designs and the number of records alone, for columns whose values are equally frequent: they can
be told before anybody has asked, and say nothing about the table. A function f of a hidden value is estimated by
unbiased scores s with E[s | v] = f(v); E[s^2] is known for every design, and scores of several columns multiply.
"""

from __future__ import annotations

from itertools import combinations
from math import inf, prod, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import MatrixInversion
from noren.estimates.statistics.corrected import SIGNAL
from noren.estimates.statistics.moments import FEW

if TYPE_CHECKING:
    from noren.release.release import Release
    from noren.statements import Design

Z = NormalDist().inv_cdf(0.975)
MOST_NAMED = 6
"""Columns that a line names."""


def describe(release: Release) -> str:
    """Return the summary in about ten lines."""
    manifest = release.manifest
    drawn = {s.name: s.design for s in release.statements if s.design is not None and not s.is_exact}
    coarse = [s for s in release.statements if s.hides and s.design is None]
    rows = "people" if manifest.rows_are_people else "rows, of which a person may have several"
    out = [f"{release.records:,} {rows}; {len(release.columns)} columns."]
    if exact := [s.name for s in release.statements if s.is_exact]:
        out.append(f"Published exactly: {_list_some(exact)}.")
    if drawn:
        out.append(
            f"Sets or changed values: {_list_some([f'{n} ({d.eta} of {d.d} values)' for n, d in drawn.items()])}."
        )
    for words in dict.fromkeys(s.words.removeprefix("published as ") for s in coarse):
        own = [s.name for s in coarse if s.words.removeprefix("published as ") == words]
        out.append(f"{words[0].upper() + words[1:]}: {_list_some(own)}.")
    if manifest.margins:
        out.append(f"Noised margins: {_list_some([' x '.join(margin.of) for margin in manifest.margins])}.")
    if release.rows_per_record > 1:
        out.append("Available: estimate and count. Refused: everything else, because rows of one person are shuffled.")
        return "\n".join(out)
    standardized = "" if coarse else "standardize, "
    asks = "estimate, count, mean, variance, quantile, correlation, difference, ratio"
    out.append(f"Ask: {asks}, {standardized}regress, test, impute.")
    if drawn and not coarse:
        out += _widths(drawn, release.records)
    if coarse:
        out.append("For these columns, low and high are hard bounds, and the count needs an assumption.")
    out += _describe_refusals(release, drawn)
    return "\n".join(out)


def _widths(drawn: dict[str, Design], n: int) -> list[str]:
    """Return the expected widths of 95% intervals, for the original table; a slope for the population."""
    out = [f"Approximate half-width of 95% intervals from {n:,} records, for equally frequent values (none: too wide):"]
    shares = {name: _reach(n, [design]) for name, design in drawn.items()}
    out.append(
        f"  share of one value: {_list_some([f'{name} {_write_half_width(reach)}' for name, reach in shares.items()])};"
    )
    pairs = list(combinations(sorted(drawn, key=lambda name: shares[name]), 2))
    if pairs:
        best, worst = pairs[0], pairs[-1]
        told = [
            f"{' x '.join(pair)} {_write_half_width(_reach(n, [drawn[name] for name in pair]))}"
            for pair in {best: 0, worst: 0}
        ]
        out.append(f"  share of one cell of two hidden columns: {', '.join(told)};")
    slopes = {name: sqrt(noise(design, standard(design.d)) / max(n, 1)) * Z for name, design in drawn.items()}
    with_exact = _list_some([f"{name} {_write_half_width(reach)}" for name, reach in slopes.items()])
    out.append(f"  slope per standard deviation: {with_exact} with an exact column")
    if pairs:
        worst = pairs[-1]
        both = prod(sqrt(noise(drawn[name], standard(drawn[name].d))) for name in worst) / sqrt(max(n, 1)) * Z
        out[-1] += f", {' with '.join(worst)} {_write_half_width(both)}"
    out[-1] += "."
    least = [f"{name} {FEW * reach / Z * n:,.0f}" for name, reach in shares.items() if reach < inf]
    if least:
        out.append(
            f"mean, difference and ratio by a hidden column give no number below about (records): {_list_some(least)}."
        )
    return out


def _write_half_width(reach: float) -> str:
    """Return the half-width of an interval; none if it is as wide as what is possible."""
    return f"+-{reach:.3f}" if reach < 1 else "none"


def _describe_refusals(release: Release, drawn: dict[str, Design]) -> list[str]:
    out = []
    if (any(s.hides for s in release.statements) and not drawn) or release.suppressed:
        out.append("population=True, because cells were not suppressed at random by a design")
    if terms := [s.name for s in release.statements if s.terms is not None]:
        out.append(f"everything but estimate and count for the terms of {_list_some(terms)}")
    if closed := [s.name for s in release.statements if s.column.is_open and not s.is_exact]:
        out.append(f"counts of {_list_some(closed)}")
    lines = [f"Refused: {'; '.join(out)}."] if out else []
    weak = {name: records_needed(design) for name, design in drawn.items()}
    if weak := {name: records for name, records in weak.items() if records > release.records}:
        told = [f"{name} (about {records:,.0f})" if records < inf else name for name, records in weak.items()]
        lines.append(
            f"regress on these levels will mostly be refused, because it needs more records: {_list_some(told)}."
        )
    return lines


def records_needed(design: Design) -> float:
    """Return the number of records that a regression on the levels of a hidden column needs."""
    one = np.zeros(design.d)
    one[0] = 1.0
    variance = noise(design, one) - 1 / design.d**2
    return float((SIGNAL * design.d) ** 2 * variance)


def _reach(n: int, designs: list[Design]) -> float:
    """Return half the width of the interval of a share of one combination of values."""
    ones = [np.eye(1, design.d)[0] for design in designs]
    square = prod(noise(design, one) for design, one in zip(designs, ones, strict=True))
    return Z * sqrt(max(square - prod(1 / design.d for design in designs), 0.0) / max(n, 1))


def noise(design: Design, f: NDArray[np.float64]) -> float:
    """Return E[s^2] of the unbiased score of f for equally frequent values; infinite if there is none."""
    inversion = design.inversion if not design.is_blind else None
    if inversion is None or inversion.undetermined:
        return inf
    if isinstance(inversion, MatrixInversion):
        return float(inversion.design.second_moment((f @ inversion.inverse)[None, :]).mean())
    spread = design.eta * (design.d - 1) / (design.p**2 * (design.d - design.eta))
    return float(f.mean() ** 2 + f.var() * spread)


def standard(d: int) -> NDArray[np.float64]:
    """Return ranks with mean 0 and variance 1."""
    ranks = np.arange(d) - (d - 1) / 2
    return np.asarray(ranks / max(ranks.std(), 1e-300))


def _list_some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
