"""One evaluator for what papers claim: a claim becomes comparisons, comparisons become a verdict.

A comparison is true, false, a tie (both sides equal, which says nothing for "lower" or "grows") or unclear (the two
sides are closer than two standard errors of what was measured). The verdict looks at the share of true ones among those
that were decided:

| share | verdict |
| --- | --- |
| all | holds |
| three quarters and more | mostly |
| more than a quarter | in part |
| some | hardly |
| none | does not hold |

Where more than half of the comparisons are ties or unclear the verdict is *undecided*, and where nothing could be
compared *cannot be measured here*. Words have one meaning everywhere, see `WORDS`.

Two equal things differ by two standard errors either way in one comparison of 44 each. Of many measured comparisons as
many on the smaller side as that decide nothing: or else one of hundreds, another one in every run, would undo "all".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from inspect import signature
from itertools import combinations
from math import exp, hypot, inf, isfinite, isnan, log, log1p, nan, sqrt
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    import polars as pl

    from noren_papers.relations import Relation

Judge = TypeVar("Judge", bound="Callable[..., Answer]")

Verdict = Literal["holds", "mostly", "in part", "hardly", "does not hold", "undecided", "cannot be measured here"]
HOLDS: Verdict = "holds"
MOSTLY: Verdict = "mostly"
IN_PART: Verdict = "in part"
HARDLY: Verdict = "hardly"
FAILS: Verdict = "does not hold"
UNDECIDED: Verdict = "undecided"
CANNOT: Verdict = "cannot be measured here"
VERDICTS: tuple[Verdict, ...] = (HOLDS, MOSTLY, IN_PART, HARDLY, FAILS, UNDECIDED, CANNOT)

MUCH = 0.5
"""Much, far, greatly less: at most half. Much more: at least twice."""
SIMILAR = 0.25
"""Similar, alike, about, close, no worse: within a quarter, the larger at most 1.25 times the smaller."""
NO_WORSE = 1 + SIMILAR
ALMOST = 0.05
"""Almost all, nearly certain, practically nothing: all but a twentieth."""
WORDS = {
    "much, far, greatly": "at most half, or at least twice",
    "similar, alike, about, close, no worse": "within 25%",
    "almost, nearly": "all but 5%",
}
ERRORS = 2.0
"""Standard errors within which two measurements are not told apart."""
BY_CHANCE = 44
"""Of so many comparisons of equal things one is beyond two standard errors on a given side: 1 / 0.0228."""
EQUAL = 1e-9
"""Relative difference up to which two numbers are the same."""


@dataclass(frozen=True)
class Answer:
    """What was measured about one claim, in a sentence with its numbers, and what follows."""

    verdict: Verdict
    measured: str
    count: str = ""
    """How many comparisons were true, of how many."""


@dataclass(frozen=True)
class Mean:
    """A measured number with its standard error; 0 where it is exact, or where there was one run only."""

    value: float
    error: float = 0.0

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        """The mean of repetitions."""
        found = list(values)
        mean = sum(found) / len(found)
        if len(found) < 2:
            return cls(mean)
        return cls(mean, sqrt(sum((v - mean) ** 2 for v in found) / (len(found) - 1) / len(found)))

    @classmethod
    def ratio(cls, ones: Iterable[float], others: Iterable[float]) -> Mean:
        """Mean over mean of repetitions that belong together in pairs; the error is that of their differences."""
        a, b = list(ones), list(others)
        top, below = sum(a), sum(b)
        if below <= 0:
            return cls(inf if top > 0 else 1.0)
        ratio = top / below
        if len(a) < 2:
            return cls(ratio)
        rest = sum((x - ratio * y) ** 2 for x, y in zip(a, b, strict=True)) / (len(a) - 1)
        return cls(ratio, sqrt(rest * len(a)) / below)


def error_of(values: Iterable[float]) -> float | None:
    """The standard error of the mean of some repetitions, or nothing where there was one only."""
    found = [float(value) for value in values]
    return Mean.of(found).error if len(found) > 1 else None


def means(frame: pl.DataFrame, keys: Sequence[str], value: str, *more: pl.Expr) -> pl.DataFrame:
    """A column's mean over repetitions with its standard error, by keys in order of appearance."""
    import polars as pl

    error = (pl.col(value).std() / pl.len().sqrt()).alias("standard error")
    return frame.group_by(*keys, maintain_order=True).agg(pl.col(value).mean(), error, *more)


def typical(ratios: Iterable[float]) -> float:
    """Geometric mean of ratios, without those of exact tables."""
    logs = [log(ratio) for ratio in ratios if 0 < ratio < inf]
    return exp(sum(logs) / len(logs)) if logs else nan


Number = float | Mean
Pair = tuple[Number, Number]


def paired(ones: Iterable[float], others: Iterable[float]) -> Pair:
    """Two lines of repetitions that belong together, as one comparison of their ratio with 1."""
    return Mean.ratio(ones, others), 1.0


@dataclass(frozen=True)
class Tally:
    """How many comparisons came out how."""

    true: int = 0
    false: int = 0
    ties: int = 0
    unclear: int = 0
    noisy_true: int = field(default=0, compare=False)
    noisy_false: int = field(default=0, compare=False)
    """How many of the true and of the false ones have standard errors."""

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def total(self) -> int:
        return self.true + self.false + self.ties + self.unclear

    @property
    def verdict(self) -> Verdict:
        if not self.total:
            return CANNOT
        chance = (self.noisy_true + self.noisy_false + self.unclear) // BY_CHANCE
        true = self.true - (self.noisy_true if self.noisy_true <= chance else 0)
        false = self.false - (self.noisy_false if self.noisy_false <= chance else 0)
        decided = true + false
        if not decided or 2 * decided < self.total:
            return UNDECIDED
        share = true / decided
        if share in (0, 1):
            return HOLDS if share else FAILS
        return MOSTLY if share >= 0.75 else IN_PART if share > 0.25 else HARDLY

    def told(self) -> str:
        """The count that every answer shows."""
        if not self.total:
            return "nothing could be compared"
        rest = [f"{number} {word}" for number, word in ((self.ties, "tied"), (self.unclear, "undecided")) if number]
        return f"true in {self.true} of {self.total} comparisons{''.join(', ' + part for part in rest)}"


def count_facts(outcomes: Iterable[bool | None]) -> Tally:
    """Comparisons that are true or false by themselves: counts, sets, equations; None where one cannot tell."""
    found = [None if one is None else bool(one) for one in outcomes]
    return Tally(found.count(True), found.count(False), 0, found.count(None))


def count_below(pairs: Iterable[Pair], factor: float = 1.0) -> Tally:
    """How often the first of a pair is below `factor` times the second: MUCH below it, or `NO_WORSE`."""
    return sum((_less(*pair, factor) for pair in pairs), Tally())


def count_trend(line: Sequence[Number | Sequence[float]], rising: bool = True) -> Tally:
    """Whether values grow, or fall, along a line: every two points are compared, so that small steps need not decide.

    line: numbers, or the repetitions behind each of them where they belong together.
    """
    pairs = [(a, b) if rising else (b, a) for a, b in combinations(line, 2)]
    return count_below(_pair(a, b) for a, b in pairs)


def count_alike(pairs: Iterable[Pair], within: float = SIMILAR) -> Tally:
    """How often the two of a pair are within what counts as similar of each other, as a ratio."""
    return sum((_close(*pair, within) for pair in pairs), Tally())


def any_of(found: Tally) -> Tally:
    """One comparison: whether at least one of these is true ("there are settings at which")."""
    if found.true:
        return Tally(true=1)
    return Tally(unclear=1) if found.unclear else Tally(false=1) if found.total else found


class Claims(dict[str, str]):
    """What a paper says of a figure: every claim with the relation that decides it, or above a function that does.

        said = Claims()
        said("The proposal errs less.", Compare("Proposal", "below", "Rating", "error", keys=("l",)))

        @said("The order is the same at every l.")
        def _order(frame): ...

    Relations read the material `frame`, or that which `of` names; functions whatever their parameters name. Claims are
    known by their own text.
    """

    def __init__(self) -> None:
        super().__init__()
        self._judges: dict[str, tuple[Callable[..., Answer], tuple[str, ...]]] = {}

    def __call__(self, text: str, *relations: Relation, of: str = "frame") -> Callable[[Judge], Judge]:
        from noren_papers.relations import answer_from

        def keep(judge: Judge, *needs: str) -> Judge:
            self[text], self._judges[text] = text, (judge, needs or tuple(signature(judge).parameters))
            return judge

        if relations:
            keep(lambda sheet: answer_from(sheet, *relations), of)
        return keep

    def answered(self, **material: Any) -> dict[str, Answer]:
        """The answers to all claims, in their order, from what was measured."""
        return {text: judge(*(material[name] for name in needs)) for text, (judge, needs) in self._judges.items()}


def answer(measured: str, *tallies: Tally) -> Answer:
    """The verdict over all comparisons, and how many of them were true."""
    found = sum(tallies, Tally())
    return Answer(
        found.verdict, f"{measured} ({found.told()})", f"{found.true} of {found.total}" if found.total else ""
    )


def judged(outcomes: Sequence[bool | None], measured: str) -> Answer:
    """The verdict over comparisons that are true or false by themselves."""
    return answer(measured, count_facts(outcomes))


def cannot(why: str) -> Answer:
    """There is nothing here that would decide the claim."""
    return Answer(CANNOT, why)


def _pair(one: Number | Sequence[float], other: Number | Sequence[float]) -> Pair:
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return paired(one, other)
    assert not isinstance(one, Sequence)
    assert not isinstance(other, Sequence)
    return one, other


def _split(number: Number) -> tuple[float, float]:
    return (number.value, number.error) if isinstance(number, Mean) else (float(number), 0.0)


def _less(one: Number, other: Number, factor: float = 1.0) -> Tally:
    """Whether one is smaller than `factor` times the other; at the factor 1 equal numbers are a tie."""
    (a, da), (b, db) = _split(one), _split(other)
    if isnan(a) or isnan(b):
        return Tally()
    gap = factor * b - a
    noisy = int(bool(da or db))
    if factor == 1.0 and (a == b or (isfinite(gap) and abs(gap) <= EQUAL * max(abs(a), abs(b)))):
        return Tally(ties=1)
    if noisy and isfinite(gap) and abs(gap) <= ERRORS * hypot(da, factor * db):
        return Tally(unclear=1)
    return Tally(true=1, noisy_true=noisy) if gap >= 0 else Tally(false=1, noisy_false=noisy)


def _close(one: Number, other: Number, within: float) -> Tally:
    """Whether the ratio of two numbers is within (1 + within) either way; unclear near that bound."""
    (a, da), (b, db) = _split(one), _split(other)
    if isnan(a) or isnan(b):
        return Tally()
    if a <= 0 or b <= 0 or not isfinite(a) or not isfinite(b):
        return Tally(true=1) if a == b else Tally(false=1)
    gap, noisy = log1p(within) - abs(log(a / b)), int(bool(da or db))
    if noisy and abs(gap) <= ERRORS * hypot(da / a, db / b):
        return Tally(unclear=1)
    return Tally(true=1, noisy_true=noisy) if gap >= -EQUAL else Tally(false=1, noisy_false=noisy)
