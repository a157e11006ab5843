"""The Bayesian attack on decoy sets: how likely is each value, given a record's set and what is known besides.

Three kinds of knowledge, one above the other: how common the values are; how they go together with columns that are
published exactly; and the record's other sets. All of it can be estimated from the release by anybody, and that is
what an outsider's figures rest on. The holder's rest on the exact distributions, which no adversary knows better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, tanh
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.bounds import LEVEL, mean_bounds, wilson
from noren.audit.correlates import Correlates
from noren.audit.original import Original, exact_texts, read_original, unique_pairs
from noren.audit.sets import (
    CERTAIN,
    TIE,
    Beliefs,
    Rows,
    Sets,
    believe,
    constant,
    drawn_anew,
    estimated,
    published_sets,
    tabulated,
)
from noren.cells import ValueCells
from noren.designs.any import Design
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError
from noren.release.release import Release

SHARES = ("above_half", "above_1_l", "mean_belief")
TITLES = {
    "mean_belief": "mean belief",
    "max_belief": "largest belief",
    "certain": "certain",
    "above_half": "above 1/2",
    "mean_before": "without the sets",
}
TRUTH_TITLES = {"right": "right guess", "right_before": "right without the sets"}
Joint = Callable[[Sequence[str]], NDArray[np.float64]]
"""The distribution over some columns together."""


@dataclass(frozen=True)
class Knowledge:
    """What the adversary knows besides the column's own sets."""

    name: str
    title: str
    prior: Rows
    evidence: Rows
    epsilon: float
    """How much the sets together can tell: the sum of their epsilons."""


@dataclass(frozen=True)
class Table:
    """Records that are attacked: their sets, their exact values and where distributions come from."""

    sets: Mapping[str, Sets]
    exact: Mapping[str, NDArray[np.int64]]
    joint: Joint
    shrink: float


class Bayes(Attack):
    """Bayes' rule with the published design as likelihood."""

    adversary: ClassVar[str] = (
        "knows which row is a person's, the published design, how common the values are, and how they go together "
        "with other columns; has no secret"
    )
    success: ClassVar[str] = (
        "the largest belief in one value of a record; with the original also how often the likeliest value is true"
    )

    name: Literal["bayes"] = "bayes"
    column: str | None = Field(default=None, description="The decoy column that is attacked; by default all.")
    given: tuple[str, ...] | None = Field(
        default=None, max_length=2, description="Exact columns, at most two; by default those that tell most."
    )
    beside: str | None = Field(default=None, description="Another decoy column; by default the one that tells most.")
    shrink: float = Field(
        default=25.0,
        ge=0,
        description="Records of the overall distribution that are mixed into that of every combination of exact "
        "values, so that a rare one is not believed blindly.",
    )

    @field_validator("given", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Why there is nothing to attack; None if there is."""
        if release.manifest.layout == "records":
            return "it publishes the members of sets in shuffled rows, and nobody sees which belong together"
        if not any(entry.form == "set" for entry in release.manifest.columns):
            return "it publishes no decoy sets"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        if (reason := self.applies(case.release)) is not None:
            raise QueryError(f"the Bayesian attack does not apply to this release: {reason}.")
        sets = published_sets(case.release)
        targets = list(sets) if self.column is None else [self.column]
        exact = _exact(case.release)
        self._check(sets, exact, targets)
        correlates = Correlates(sets, exact, {name: case.release.manifest.column(name).d for name in exact})
        original = None if case.original is None else read_original(case)
        people = None if original is None else self._people(case.release, sets, original)
        rows = Table(sets, exact, _remembered(lambda names: estimated(case.release, names)), self.shrink)
        out = []
        with case.stage("Attacking sets", len(targets)) as progress:
            for name in targets:
                given = correlates.given(name) if self.given is None else self.given
                beside = correlates.beside(name) if self.beside is None else self.beside
                out.append(self._result(name, rows, people, original, given, beside))
                progress(1)
        return out

    def _check(self, sets: Mapping[str, Sets], exact: Mapping[str, NDArray], targets: Sequence[str]) -> None:
        for what, names, known in (
            ("decoy column", targets, sets),
            ("exact column", self.given or (), exact),
            ("decoy column", () if self.beside is None else (self.beside,), sets),
        ):
            strange = [name for name in names if name not in known]
            if strange:
                raise QueryError(f"the release has no {what} {strange[0]!r}.", hint=f"It has {', '.join(known)}.")

    def _people(self, release: Release, sets: Mapping[str, Sets], original: Original) -> tuple[Table, NDArray]:
        """Everybody with the sets that are recognisably theirs, or with sets drawn anew; and whose are recognised."""
        drawn = drawn_anew(sets, original.codes)
        mine, rows = unique_pairs(original.keys, exact_texts(release))
        found = np.zeros(original.records, bool)
        found[mine] = True
        for name, one in drawn.items():
            one.codes[mine] = sets[name].codes[rows]
        exact = {name: original.codes[name] for name in _exact(release)}
        sizes = {entry.name: entry.d for entry in release.manifest.columns}

        def joint(names: Sequence[str]) -> NDArray[np.float64]:
            return tabulated([original.codes[name] for name in names], [sizes[name] for name in names])

        return Table(drawn, exact, _remembered(joint), self.shrink), found

    def _result(
        self,
        name: str,
        rows: Table,
        people: tuple[Table, NDArray] | None,
        original: Original | None,
        given: tuple[str, ...],
        beside: str | None,
    ) -> AttackResult:
        own, scenarios = rows.sets[name], []
        truth = None if original is None else original.codes[name]
        facts: dict[str, Any] = {"values": own.design.d, "l": own.design.eta, "uniform_belief": 1 / own.design.eta}
        facts |= {"epsilon": _epsilon(own.design), "given": list(given), "beside": beside, "shrink": self.shrink}
        limits = {}
        if people is None:
            for one in _knowledge(rows, name, given, beside):
                found = believe(len(own), own.design.d, one.prior, one.evidence)
                scenarios.append(_scenario(one, found, own, "row", None))
                limits[one.name] = tanh(one.epsilon / 4)
            overall = rows.joint([name])
        else:
            table, recognised = people
            for one in _knowledge(table, name, given, beside):
                found = believe(len(recognised), own.design.d, one.prior, one.evidence, truth)
                scenarios.append(_scenario(one, found, own, "person", recognised))
                limits[one.name] = tanh(one.epsilon / 4)
            overall = table.joint([name])
            public = next(_knowledge(rows, name, (), None))
            found = believe(len(own), own.design.d, public.prior, public.evidence)
            scenarios.append(_scenario(public, found, own, "row", None))
            facts["recognised"] = float(recognised.mean())
        facts |= {"prior": "the original" if people is not None else "an estimate from the release"}
        facts["largest_move_allowed"] = limits
        return AttackResult(
            attack=self.name,
            target=(name,),
            adversary=self.adversary,
            success=self.success,
            baseline=_baseline(overall, own.design.eta, truth),
            scenarios=tuple(scenarios),
            titles=TITLES | (TRUTH_TITLES if truth is not None else {}),
            measure="belief",
            shares=(*SHARES, *(("right",) if truth is not None else ())),
            facts=facts,
            notes=tuple(_notes(own.design, scenarios, facts)),
        )


def _knowledge(table: Table, name: str, given: Sequence[str], beside: str | None) -> Iterator[Knowledge]:
    """Everything that the adversary may know, from the overall distribution up."""
    own = table.sets[name]
    overall = table.joint([name])
    start, epsilon = constant(overall), _epsilon(own.design)
    yield Knowledge("overall", "overall distribution", start, own.likelihood, epsilon)
    known: Rows = start
    told: Rows = own.likelihood
    if given:
        known = _conditional(table, name, given, overall)
        yield Knowledge("given", f"with exact {' and '.join(given)}", known, own.likelihood, epsilon)
    if beside is not None:
        other = table.sets[beside]
        told = _both(own, other, table.joint([name, beside]))
        epsilon = epsilon + _epsilon(other.design)
        yield Knowledge("beside", f"with the sets of {beside}", start, told, epsilon)
    if given and beside is not None:
        title = f"with exact {' and '.join(given)} and the sets of {beside}"
        yield Knowledge("together", title, known, told, epsilon)


def _conditional(table: Table, name: str, given: Sequence[str], overall: NDArray[np.float64]) -> Rows:
    """The distribution among records with the same exact values, with some of the overall one mixed in."""
    joint = table.joint([name, *given])
    sizes = joint.shape[1:]
    records = len(table.sets[name])
    counts = joint.reshape(len(overall), -1).T * records
    held = counts.sum(axis=1, keepdims=True)
    weight = max(table.shrink, 1e-9)
    shares = (counts + weight * overall) / (held + weight)
    slot = np.ravel_multi_index([table.exact[column] for column in given], sizes)
    return lambda rows: np.asarray(shares[slot[rows]])


def _both(own: Sets, other: Sets, joint: NDArray[np.float64]) -> Rows:
    """The likelihood of both sets of a record: the other's, averaged over what the own value says about it."""
    mass = joint.sum(axis=1, keepdims=True)
    turn = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
    return lambda rows: np.asarray(own.likelihood(rows) * (other.likelihood(rows) @ turn.T))


def _scenario(one: Knowledge, found: Beliefs, own: Sets, by: Any, recognised: NDArray | None) -> Scenario:
    import polars as pl

    frame = found.frame(np.arange(1, len(found.belief) + 1), own.labels)
    summary, bounds = found.summary(own.design.eta), {}
    if recognised is None:
        return Scenario(one.name + "-rows", one.title, by, summary, frame, holder_only=False)
    frame = frame.with_columns(recognised=pl.Series(recognised))
    assert found.right is not None
    assert found.truth_belief is not None
    n = len(found.right)
    bounds["right"] = wilson(summary["right"], n)
    bounds["mean_truth_belief"] = mean_bounds(
        summary["mean_truth_belief"], float(found.truth_belief.std() / max(1, n) ** 0.5)
    )
    return Scenario(one.name, one.title, by, summary, frame, True, bounds)


def _baseline(overall: NDArray[np.float64], l: int, truth: NDArray | None) -> dict[str, float]:  # noqa: E741
    """The figures of the overall distribution alone."""
    peak = float(overall.max())
    out = {
        "mean_belief": peak,
        "max_belief": peak,
        "mean_before": peak,
        "certain": float(peak >= CERTAIN),
        "above_half": float(peak > 0.5 + TIE),
        "above_1_l": float(peak > 1 / l + TIE),
        "mean_moved": 0.0,
        "max_moved": 0.0,
    }
    if truth is not None:
        best = overall >= peak * (1 - TIE)
        right = float(best[truth].mean() / best.sum())
        belief = float(overall[truth].mean())
        out |= {"right": right, "right_before": right, "mean_truth_belief": belief, "mean_truth_before": belief}
    return out


def _notes(design: Design, scenarios: Sequence[Scenario], facts: Mapping[str, Any]) -> Iterator[str]:
    above = scenarios[0].summary["above_1_l"]
    yield (
        f"a set of {design.eta} equally likely values would leave every belief at 1/{design.eta}; with the overall "
        f"distribution {above:.1%} of records have a value that is believed more"
    )
    if facts["epsilon"] < inf:
        moved, limit = scenarios[0].summary["max_moved"], facts["largest_move_allowed"][scenarios[0].name.split("-")[0]]
        yield (
            f"no set can move anybody's beliefs by more than tanh(epsilon/4) = {limit:.3f}; the largest move is "
            f"{moved:.3f}"
        )
    if scenarios[0].by == "person":
        yield (
            f"the sets of {facts['recognised']:.1%} of the people are their own, recognised by exact columns; those of "
            f"the others are drawn anew by the published design; bounds are {LEVEL:.0%}, of Wilson for right guesses"
        )


def _epsilon(design: Design) -> float:
    return design.epsilon if isinstance(design, DecoyDesign) else inf


def _exact(release: Release) -> dict[str, NDArray[np.int64]]:
    """The codes of the columns that are published exactly, and have a list of values."""
    names = [entry.name for entry in release.manifest.columns if entry.form == "value"]
    found = release.cells(names) if names else {}
    return {name: cells.data.astype(np.int64) for name, cells in found.items() if isinstance(cells, ValueCells)}


def _remembered(joint: Joint) -> Joint:
    """The same distribution is worked out once."""
    known: dict[tuple[str, ...], NDArray[np.float64]] = {}

    def found(names: Sequence[str]) -> NDArray[np.float64]:
        key = tuple(names)
        if key not in known:
            known[key] = joint(names)
        return known[key]

    return found
