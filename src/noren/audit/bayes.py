"""The Bayesian attack on decoy sets: how likely is each value, given a record's set and what is known besides.

Three kinds of knowledge, one above the other: how common the values are; how they go together with columns that are
published exactly or as general values; and the record's other sets. All of it can be estimated from the release by
anybody, and that is what an outsider's figures rest on. The holder's rest on the exact distributions, which no
adversary knows better. Beside general values the adversary also reads everything that is published at once: what each
column says, as if they had nothing to do with each other but for the secret, and what the sets of the records that
look alike in all columns say about their class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, tanh
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.bounds import LEVEL, mean_bounds, wilson
from noren.audit.correlates import Correlates
from noren.audit.knows import Attacked, Knows, knowledge_of, remembered
from noren.audit.people import People, known_people
from noren.audit.place import Place, key_statements, place_people
from noren.audit.sets import (
    CERTAIN,
    TIE,
    Believed,
    Sets,
    believe,
    drawn_anew,
    drawn_statements,
    estimated,
    published_sets,
    tabulated,
)
from noren.audit.told import class_keys, likelihood
from noren.cells import Design
from noren.errors import QueryError
from noren.release.release import Release

NEAR = 16
"""Groups of general values that are told apart when columns are chosen."""
SHARES = ("above_half", "above_1_l", "mean_belief")
TITLES = {
    "mean_belief": "mean belief",
    "max_belief": "largest belief",
    "certain": "certain",
    "above_half": "above 1/2",
    "mean_before": "without the sets",
}
TRUTH_TITLES = {"right": "right guess", "right_before": "right without the sets"}


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
        default=None,
        max_length=2,
        description="Columns published exactly or as general values, at most two; by default those that tell most.",
    )
    beside: str | None = Field(default=None, description="Another decoy column; by default the one that tells most.")
    shrink: float = Field(
        default=25.0,
        ge=0,
        description="Records of the overall distribution that are mixed into that of every combination of given "
        "values, so that a rare one is not believed blindly.",
    )

    @field_validator("given", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Why there is nothing to attack; None if there is."""
        if release.rows_per_record > 1:
            return "it publishes the members of sets in shuffled rows, and nobody sees which belong together"
        if not drawn_statements(release):
            return "it publishes no decoy sets"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        release = case.release
        if (reason := self.applies(release)) is not None:
            raise QueryError(f"the Bayesian attack does not apply to this release: {reason}.")
        rows = self._rows(release)
        targets = list(rows.sets) if self.column is None else [self.column]
        self._check(rows, targets)
        correlates = _correlates(release, rows)
        people = None if case.original is None else known_people(case)
        found = None if people is None else self._people(release, rows, people)
        out = []
        with case.stage("Attacking sets", len(targets)) as progress:
            for name in targets:
                given = correlates.given(name) if self.given is None else self.given
                beside = correlates.beside(name) if self.beside is None else self.beside
                out.append(self._result(name, rows, found, given, beside))
                progress(1)
        return out

    def _check(self, rows: Attacked, targets: Sequence[str]) -> None:
        for what, names, known in (
            ("decoy column", targets, rows.sets),
            ("exact or general column", self.given or (), rows.keys),
            ("decoy column", () if self.beside is None else (self.beside,), rows.sets),
        ):
            strange = [name for name in names if name not in known]
            if strange:
                raise QueryError(f"the release has no {what} {strange[0]!r}.", hint=f"It has {', '.join(known)}.")

    def _rows(self, release: Release) -> Attacked:
        """The published rows, and what anybody can estimate."""
        statements = key_statements(release)
        cells = release.cells([one.name for one in statements]) if statements else {}
        keys, covers, alike = {}, {}, None
        for one in statements:
            if one.is_exact:
                keys[one.name] = one.key(cells[one.name])
            else:
                distinct, keys[one.name] = cells[one.name].distinct()
                covers[one.name] = likelihood(one, distinct).dense(one.d)
        if covers:
            numbers = class_keys(release, list(keys))
            alike = np.unique(numbers, axis=0, return_inverse=True)[1].reshape(-1)
        joint = remembered(lambda names: estimated(release, names))
        return Attacked(published_sets(release), keys, joint, self.shrink, covers, alike)

    def _people(self, release: Release, rows: Attacked, people: People) -> Subjects:
        """Everybody with the sets that are recognisably theirs, or with sets drawn anew."""
        place = place_people(release, people)
        truth = {name: people.truth(one.statement, place.who) for name, one in rows.sets.items()}
        drawn = drawn_anew(rows.sets, truth)
        mine = np.flatnonzero(place.recognised)
        sets = {name: one.replaced(mine, rows.sets[name], place.row[mine]) for name, one in drawn.items()}
        keys = {
            one.name: people.truth(one, place.who) if one.is_exact else rows.keys[one.name][place.row]
            for one in key_statements(release)
        }

        def joint(names: Sequence[str]) -> NDArray[np.float64]:
            codes = [people.published(release.column(name))[place.who] for name in names]
            return tabulated(codes, [release.column(name).d for name in names])

        alike = None if rows.alike is None else rows.alike[place.row]
        table = Attacked(sets, keys, remembered(joint), self.shrink, rows.covers, alike)
        return Subjects(table, truth, place)

    def _result(
        self, name: str, rows: Attacked, people: Subjects | None, given: tuple[str, ...], beside: str | None
    ) -> AttackResult:
        own, scenarios = rows.sets[name], []
        truth = None if people is None else people.truth[name]
        facts: dict[str, Any] = {"values": own.design.d, "l": own.design.eta, "uniform_belief": 1 / own.design.eta}
        facts |= {"epsilon": own.design.epsilon, "given": list(given), "beside": beside, "shrink": self.shrink}
        limits = {}
        table = rows if people is None else people.table
        place = None if people is None else people.place
        for one in knowledge_of(table, name, given, beside):
            found = believe(len(table.sets[name]), own.design.d, one.prior, one.evidence, truth)
            scenarios.append(_scenario(one, found, own, place))
            limits[one.name] = tanh(one.epsilon / 4)
        if place is not None:
            public = next(knowledge_of(rows, name, (), None))
            found = believe(len(own), own.design.d, public.prior, public.evidence)
            scenarios.append(_scenario(public, found, own, None))
            facts["recognised"] = float(place.recognised.mean())
        if rows.alike is not None:
            everything = next(one for one in scenarios if one.name.split("-")[0] == "all")
            facts["all_columns"] = {"columns": list(rows.keys), "classes": int(rows.alike.max(initial=-1)) + 1}
            told = {key: everything.summary[key] for key in ("right", "right_before") if truth is not None}
            facts["all_columns"] |= told | {"mean_belief": everything.summary["mean_belief"]}
        facts |= {"prior": "the original" if people is not None else "an estimate from the release"}
        facts["largest_move_allowed"] = limits
        return AttackResult(
            attack=self.name,
            target=(name,),
            adversary=self.adversary,
            success=self.success,
            baseline=_baseline(table.joint([name]), own.design.eta, truth),
            scenarios=tuple(scenarios),
            titles=TITLES | (TRUTH_TITLES if truth is not None else {}),
            measure="belief",
            shares=(*SHARES, *(("right",) if truth is not None else ())),
            facts=facts,
            notes=tuple(_notes(own.design, scenarios, facts, place)),
        )


@dataclass(frozen=True)
class Subjects:
    """The people of the original as records that are attacked, with their secrets."""

    table: Attacked
    truth: Mapping[str, NDArray[np.int64]]
    place: Place


def _scenario(one: Knows, found: Believed, own: Sets, place: Place | None) -> Scenario:
    import polars as pl

    summary, bounds = found.summary(own.design.eta), {}
    if place is None:
        frame = found.frame(np.arange(1, len(found.belief) + 1), own.labels)
        return Scenario(one.name + "-rows", one.title, "row", summary, frame, holder_only=False)
    frame = found.frame(place.who + 1, own.labels).with_columns(recognised=pl.Series(place.recognised))
    assert found.right is not None
    assert found.truth_belief is not None
    n = len(found.right)
    bounds["right"] = wilson(summary["right"], n)
    bounds["mean_truth_belief"] = mean_bounds(
        summary["mean_truth_belief"], float(found.truth_belief.std() / max(1, n) ** 0.5)
    )
    return Scenario(one.name, one.title, "person", summary, frame, True, bounds)


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


def _notes(
    design: Design, scenarios: Sequence[Scenario], facts: Mapping[str, Any], place: Place | None
) -> Iterator[str]:
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
    if place is not None:
        yield (
            f"the sets of {facts['recognised']:.1%} of the people are their own, recognised by {place.by}; those of "
            f"the others are drawn anew by the published design; bounds are {LEVEL:.0%}, of Wilson for right guesses"
        )
        if place.lost:
            yield f"{place.lost:,} of the people fit no published record and are left out here"
    if "right" in (told := facts.get("all_columns", {})):
        yield (
            f"who reads all published columns at once guesses {told['right']:.1%} of the people right, and "
            f"{told['right_before']:.1%} without the record's own sets"
        )


def _correlates(release: Release, rows: Attacked) -> Correlates:
    """What the other columns have to do with each other; many general values are taken together where they lie near."""
    codes, sizes, widths = dict(rows.keys), {}, {}
    for one in key_statements(release):
        covers = rows.covers.get(one.name)
        sizes[one.name] = widths[one.name] = one.d
        if covers is None:
            continue
        sizes[one.name], widths[one.name] = len(covers), max(covers.shape)
        if len(covers) > NEAR:
            middle = (covers @ np.arange(one.d) / covers.sum(axis=1))[codes[one.name]]
            codes[one.name] = np.searchsorted(np.quantile(middle, np.arange(1, NEAR) / NEAR), middle)
            sizes[one.name] = NEAR
    return Correlates(rows.sets, codes, sizes, widths)
