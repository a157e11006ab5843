"""The attack by known records: an adversary removes the members of a class whose secrets are known.

Of a class of m records the adversary knows `known`, by default all but one; r are left, the person's among them. The
worst choice leaves the records that agree most. On average over all choices the r records are a random sample of the
class without replacement, so everything is hypergeometric and exact: with c_v records that have value v, the adversary
is certain with probability sum C(c_v, r) / C(m, r), sum (1 - C(m - c_v, r) / C(m, r)) values are left, and the belief
in the truth is sum E[B_v^2], where B_v is the share of v among those left. `needed` is how many records one must know
for the belief in some value to reach `limit`: for certainty m less the records with the class's commonest value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.class_attack import CERTAIN, ClassAttack, Columns, belief_in
from noren.audit.sample import Times, known_mean, mean
from noren.audit.targets import Target, attackable, counted_keys, owners_of
from noren.engines.finding import Matches
from noren.models.histograms import Histograms, sum_entries
from noren.ragged import chosen, distinct_of, owners, runs
from noren.release.release import Release
from noren.statements import Statement

MEMORY = "known-records"
ROUNDING = 1e-9
SETS = "every set depends on its own record only, so knowing other records discloses nothing"


@dataclass(frozen=True)
class Left:
    """The remaining records of every class, and how many of them certainly have each value."""

    figures: Columns
    sizes: NDArray[np.int64]
    sure: Histograms


class KnownRecords(ClassAttack):
    """Find a person's class and remove the records of known people from it."""

    knows: ClassVar[str] = "everybody else"
    adversary: ClassVar[str] = (
        "knows that a person is in the table, the person's class, and the sensitive values of all other members of "
        "the class, or of `known` of them (an assumption: hardly anybody knows so much)"
    )
    success: ClassVar[str] = (
        "the belief in the truth and the chance of certainty, on average over the known members and for the worst "
        "choice; the number of members that must be known to be certain of one"
    )
    titles: ClassVar[Mapping[str, str]] = {
        "certain": "certain",
        "worst_certain": "certain at worst",
        "mean_belief": "belief in the truth",
        "mean_worst_belief": "worst belief",
        "mean_values": "values left",
        "min_needed": "fewest to know",
        "mean_needed": "mean to know",
    }
    truth_titles: ClassVar[Mapping[str, str]] = {"mean_truth_needed": "members to know"}
    truth_shares: ClassVar[tuple[str, ...]] = ()
    shares: ClassVar[tuple[str, ...]] = ("certain", "worst_certain", "mean_belief", "mean_worst_belief")

    name: Literal["known-records"] = "known-records"
    known: int | None = Field(
        default=None, ge=0, description="How many other members of the class are known; by default all."
    )
    limit: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="The belief in one value for which the number of members to know is computed; 1 is certainty.",
    )

    @classmethod
    def applies(cls, release: Release) -> str | None:
        if (reason := super().applies(release)) is not None:
            return reason
        return SETS if all(one.design is not None for one in attackable(release)) else None

    def suits(self, statement: Statement) -> str | None:
        return None if statement.design is None else SETS

    def concludes(self, told: Histograms, target: Target) -> Columns:
        """Return the figures before the release, when the whole table is one class."""
        square = told.total(told.share**2)
        most = told.largest(told.share)
        rows = target.rows
        kept = np.minimum(rows, np.floor(np.round(most * rows) / self.limit + ROUNDING))
        return {
            "left": np.full(len(told), float(rows)),
            "belief": square,
            "worst_belief": most,
            "certain": (most >= CERTAIN).astype(float),
            "values": told.distinct.astype(float),
            "worst_values": told.distinct.astype(float),
            "needed": rows - kept,
        }

    def compares(self, told: Histograms, found: Columns, target: Target, of: NDArray, truth: NDArray) -> Columns:
        rows = target.rows
        return {"truth_needed": rows - np.round(target.prior[truth] * rows)}

    def judged(self, target: Target, part: Matches, truth: NDArray | None) -> Columns:
        """Return the figures of the classes; a person in several classes gets their mean, weighted by records."""
        if MEMORY not in target.memory:
            target.memory[MEMORY] = owners_of(target.own)
        class_of: NDArray[np.int64] = target.memory[MEMORY]
        sets = len(part.bounds) - 1
        classes = np.int64(len(target.own.bounds) - 1)
        key, count = counted_keys(owners(part.bounds) * classes + class_of[part.order], part.order, target.weighed)
        of = key // classes
        needed, _, inside = distinct_of(key % classes)
        left = self._left(_some(target, needed))
        weight = count / target.sizes(part)[of]
        begins = np.searchsorted(of, np.arange(sets))

        def mean(figures: NDArray) -> NDArray:
            return np.asarray(np.add.reduceat(figures[inside] * weight, begins))

        lines = {name: mean(figures)[part.of] for name, figures in left.figures.items()}
        if truth is None:
            return lines
        widths = left.sure.distinct[inside]
        taken = chosen(left.sure.starts, inside)[1]
        mass = left.sure.mass[taken] * np.repeat(weight, widths)
        sure = sum_entries(np.ones(sets, np.int64), np.repeat(of, widths), left.sure.value[taken], mass, target.d)
        held = belief_in(sure, part.of, truth, target.d)
        held = np.where(held > 0, held, np.nan)
        return lines | {"truth_needed": mean(left.sizes.astype(float))[part.of] - held}

    def _left(self, target: Target) -> Left:
        """Remove the known records from every class."""
        owner, value, mass, count = target.pool()
        sizes = target.sizes(target.own)
        left = np.maximum(1, sizes - self.known) if self.known is not None else np.ones(len(sizes), np.int64)
        figures = {"left": left} | struck_out(sizes, left, owner, value, mass, count, target.d)
        exact = mass >= CERTAIN
        sure = sum_entries(sizes, owner[exact], value[exact], count[exact].astype(float), target.d)
        most = most_left(sizes, owner, value, mass, count, target.d, self.limit)
        figures["needed"] = np.where(most > 0, sizes - most, np.nan)
        return Left(figures, sizes, sure)

    def sums(self, lines: Columns, target: Target, times: Times = None) -> dict[str, float]:
        needed = lines["needed"]
        some = bool(np.isfinite(needed).any())
        out = {
            "certain": mean(lines["certain"], times),
            "worst_certain": mean(lines["worst_belief"] >= CERTAIN, times),
            "mean_belief": mean(lines["belief"], times),
            "max_belief": float(lines["belief"].max()),
            "mean_worst_belief": mean(lines["worst_belief"], times),
            "mean_values": mean(lines["values"], times),
            "min_worst_values": float(lines["worst_values"].min()),
            "mean_needed": known_mean(needed, times),
            "min_needed": _whole(float(np.nanmin(needed))) if some else float("nan"),
        }
        if "truth_needed" in lines:
            out["mean_truth_needed"] = known_mean(lines["truth_needed"], times)
        return out

    def facts(self, target: Target) -> dict[str, Any]:
        limit = {} if self.limit == 1 else {"limit": self.limit}
        return {"known": "all but one" if self.known is None else self.known, **limit}

    def notes(self, target: Target, rows: Columns) -> list[str]:
        if self.known is None and bool((rows["certain"] >= CERTAIN).all()):
            return [
                (
                    "secrets in classes are published exactly, so somebody who knows all but one record of a class "
                    "knows the last; no class model protects against that, so the figure is the number of records to "
                    "know"
                )
            ]
        return []


def _some(target: Target, classes: NDArray[np.int64]) -> Target:
    """Select some classes of the secret."""
    bounds, rows = chosen(target.own.bounds, classes)
    order = target.own.order[rows]
    return replace(target, own=Matches(order, owners(bounds), target.own.groups[classes], order, bounds))


def _whole(figure: float) -> float:
    """Round counts to whole numbers; means over several classes stay unchanged."""
    return int(figure) if figure.is_integer() else figure


def _surest_first(
    owner: NDArray, value: NDArray, mass: NDArray, count: NDArray, d: int
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Sort the entries of each class and value by certainty, highest first: keys, classes, masses, counts."""
    key = owner * np.int64(d) + value
    count = count.astype(np.float64)
    if (np.diff(key) <= 0).any():  # else they stand in order, each value once
        order = np.lexsort((-mass, key))
        key, owner, mass, count = key[order], owner[order], mass[order], count[order]
    return key, owner, mass, count


def most_left(
    sizes: NDArray, owner: NDArray, value: NDArray, mass: NDArray, count: NDArray, d: int, limit: float
) -> NDArray[np.float64]:
    """Return for every class the largest number of records among which some belief reaches `limit`; 0 if none does.

    The records that tell a value most surely are left first, so the belief falls with every further one: as many are
    left of each entry as it can bear, then records that do not tell the value at all.
    """
    key, owner, mass, count = _surest_first(owner, value, mass, count, d)
    pieces = runs(key)
    first, lengths = pieces[:-1], np.diff(pieces)

    def before(of: NDArray) -> NDArray[np.float64]:
        summed = np.cumsum(of) - of
        return np.asarray(summed - np.repeat(summed[first], lengths))

    spare = before(count * (mass - limit))  # what further records may lack together
    short = np.maximum(limit - mass, 0.0)
    able = np.divide(spare + ROUNDING, short, out=np.full(len(short), np.inf), where=short > 0)
    borne = np.where(spare >= -ROUNDING, np.minimum(count, np.floor(np.maximum(able, 0.0))), 0.0)
    left = np.maximum.reduceat(before(count) * (spare >= -ROUNDING) + borne, first)
    rest = np.add.reduceat(count * (mass - limit), first)
    others = np.where(rest >= -ROUNDING, np.floor((np.maximum(rest, 0.0) + ROUNDING) / limit), 0.0)
    out = np.zeros(len(sizes))
    np.maximum.at(out, owner[first], left + others)
    return np.asarray(np.minimum(out, sizes), np.float64)


def struck_out(
    sizes: NDArray, left: NDArray, owner: NDArray, value: NDArray, mass: NDArray, count: NDArray, d: int
) -> Columns:
    """Return what r = left[c] of the sizes[c] records of class c disclose, for the worst choice and on average.

    Entries: `count` records of class `owner` tell `value` with belief `mass`.
    """
    key, owner, mass, count = _surest_first(owner, value, mass, count, d)
    pieces = runs(key)
    first, lengths = pieces[:-1], np.diff(pieces)
    group, m, r = owner[first], sizes.astype(float), left.astype(float)
    before = np.cumsum(count) - count
    before -= np.repeat(before[first], lengths)
    taken = np.clip(r[owner] - before, 0, count)
    worst = np.add.reduceat(taken * mass, first) / r[group]
    starts = np.searchsorted(group, np.arange(len(sizes)))
    share = np.add.reduceat(count * mass, first) / m[group]
    spread = np.maximum(0.0, np.add.reduceat(count * mass**2, first) / m[group] - share**2)
    shrunk = np.divide(m - r, m - 1, out=np.zeros(len(m)), where=m > 1) / r
    having = np.add.reduceat(count, first)
    exact = np.add.reduceat(np.where(mass >= CERTAIN, count, 0.0), first)

    def total(of: NDArray) -> NDArray:
        return np.asarray(np.add.reduceat(of, starts))

    return {
        "belief": total(share**2 + shrunk[group] * spread),
        "worst_belief": np.minimum(1.0, np.maximum.reduceat(worst, starts)),
        "certain": np.minimum(1.0, total(_all_from(exact, m[group], r[group]))),
        "values": total(1 - _all_from(m[group] - having, m[group], r[group])),
        "worst_values": _fewest(group, having, r, starts),
    }


def _all_from(c: NDArray, m: NDArray, r: NDArray) -> NDArray[np.float64]:
    """C(c, r) / C(m, r): the chance that all r records drawn from m are among c of them."""
    from scipy.special import gammaln

    if (r == 1).all():
        return np.asarray(c / m)
    able = c >= r
    c = np.where(able, c, r)
    logs = gammaln(c + 1) - gammaln(c - r + 1) - gammaln(m + 1) + gammaln(m - r + 1)
    return np.asarray(np.where(able, np.exp(np.minimum(0.0, logs)), 0.0))


def _fewest(group: NDArray, having: NDArray, r: NDArray, starts: NDArray) -> NDArray[np.int64]:
    """Return the smallest number of values that r records can have: the most frequent ones until r is reached."""
    if (r == 1).all():
        return np.ones(len(r), np.int64)
    order = np.lexsort((-having, group))
    ranked = having[order]
    before = np.cumsum(ranked) - ranked
    before -= np.repeat(before[starts], np.diff(np.append(starts, len(group))))
    return np.asarray(np.add.reduceat((before < r[group]).astype(np.int64), starts))
