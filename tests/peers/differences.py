"""What pyCANON says, derived from the definitions: where it follows them, and exactly how it departs where it does not.

Every departure is a function here and a paragraph in docs/peers.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import floor, inf, isclose, isnan, log, nan
from typing import Any

from noren.workflow.measure import Measures

Row = Mapping[str, str | None]
NEAR = 1e-9
"""Within so much of a whole number, pyCANON's entropy l depends on the last bit of its sum."""


def counted(rows: Iterable[Row], quasi: Sequence[str], column: str) -> list[Counter[str | None]]:
    """How often each value occurs in every class of the peer.

    Missing cells equal each other where there are several quasi-identifiers. Where there is one, pandas leaves the rows
    that miss it out of all classes.
    """
    classes: dict[Hashable, Counter[str | None]] = {}
    for row in rows:
        key = tuple(row[name] for name in quasi)
        if key != (None,):
            classes.setdefault(key, Counter())[row[column]] += 1
    return list(classes.values())


def basic_beta(classes: Sequence[Counter[str | None]], shares: Mapping[str | None, Fraction]) -> float:
    """Largest relative gain, the shares of the whole table counting rows that are in no class."""
    gains = [Fraction(one[value], sum(one.values())) / share - 1 for one in classes for value, share in shares.items()]
    return float(max(gains))


def recursive_c(classes: Sequence[Counter[str | None]], least: int) -> float:
    """1 or 2 whatever the data: the counts are sorted upwards, so c is 1 + (smallest count) / (a sum that holds it).

    That sum is the smallest count only where the class has exactly l values, all equally frequent. There is no figure
    for l = 1.
    """
    if least == 1:
        return nan
    even = [c for c in classes if len(c) == least and len(set(c.values())) == 1]
    return 2.0 if even else 1.0


def delta(classes: Sequence[Counter[str | None]], shares: Mapping[str | None, Fraction]) -> float:
    """Largest |ln(share in class / share overall)| over values that the class has; absent ones are not looked at."""
    return max(
        abs(log(Fraction(times, sum(one.values())) / shares[value])) for one in classes for value, times in one.items()
    )


def enhanced_beta(basic: float, shares: Mapping[str | None, Fraction]) -> float:
    """The basic figure, cut off at -ln of the rarest value's share; not a beta that the table satisfies."""
    return min(basic, -log(min(shares.values())))


def entropy_l(ours: float) -> set[int]:
    """The whole number below; where ours is whole, that number or one less, as rounding falls."""
    near = round(ours)
    return {near, near - 1} if abs(ours - near) < NEAR and near > 1 else {floor(ours + NEAR)}


def overall(rows: Sequence[Row], column: str) -> dict[str | None, Fraction]:
    return {value: Fraction(times, len(rows)) for value, times in Counter(row[column] for row in rows).items()}


def expected(
    measures: Measures, rows: Sequence[Row], quasi: Sequence[str], sensitive: Sequence[str], numeric: Sequence[str]
) -> dict[str, object]:
    """pyCANON's report of a table without missing cells: the worst figure over the sensitive columns.

    Everything but recursive c and the delta of a class that lacks a value is derived from our own figures.
    """
    ours = {
        name: {
            "alpha": measures.value("alpha-k-anonymity", name),
            "l": measures.value("distinct-l-diversity", name),
            "entropy": measures.value("entropy-l-diversity", name),
            "beta": measures.value("beta-likeness", name, form="basic"),
            "delta": measures.value("delta-disclosure", name),
            "t": measures.value("t-closeness", name, distance="ordered" if name in numeric else "equal"),
        }
        for name in sensitive
    }
    shares = {name: overall(rows, name) for name in sensitive}
    classes = {name: counted(rows, quasi, name) for name in sensitive}
    k = measures.value("k-anonymity")
    least = int(min(one["l"] for one in ours.values()))
    changes = [
        delta(classes[name], shares[name]) if one["delta"] == inf else one["delta"] for name, one in ours.items()
    ]
    return {
        "k_anonymity": k,
        "alpha_k_anonymity": [max(one["alpha"] for one in ours.values()), k],
        "l_diversity": least,
        "entropy_l_diversity": entropy_l(min(one["entropy"] for one in ours.values())),
        "recursive_c_l_diversity": [max(recursive_c(classes[name], least) for name in sensitive), least],
        "basic_beta_likeness": max(one["beta"] for one in ours.values()),
        "enhanced_beta_likeness": max(enhanced_beta(one["beta"], shares[name]) for name, one in ours.items()),
        "delta_disclosure": max(changes),
        "t_closeness": max(one["t"] for one in ours.values()),
    }


def agree(theirs: Any, wanted: Any) -> bool:
    """Whether a figure of the peer is the one expected; a set holds several that would do."""
    if isinstance(wanted, set):
        return theirs in wanted
    if isinstance(wanted, list):
        return len(theirs) == len(wanted) and all(agree(a, b) for a, b in zip(theirs, wanted, strict=True))
    if isinstance(theirs, str):
        return theirs == "nan" and isnan(wanted)
    return isclose(theirs, wanted, rel_tol=1e-9, abs_tol=1e-9)
