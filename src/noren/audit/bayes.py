"""The Bayesian attack on decoy sets: how likely is each value, given a record's set and what is known besides.

First stands the adversary who combines all published columns of the record, exact ones, general ones and sets, with how
they go together learned from the other people of the release (`noren.estimates.belief`, as `belief` asks). Below,
to see where it comes from: how common the values are; how they go together with columns that are published exactly or
as general values; and the record's other sets. All of it can be estimated from the release by anybody, and that is what
an outsider's figures rest on. The holder's rest on the exact distributions, which no adversary knows better.
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
from noren.audit.knows import Attacked, knowledge_of, remembered
from noren.audit.people import People, known_people
from noren.audit.place import Place, key_statements, place_people
from noren.audit.sample import Sample
from noren.audit.sets import (
    CERTAIN,
    SURE,
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
from noren.audit.told import likelihood
from noren.errors import QueryError
from noren.estimates import believed
from noren.release.release import Release
from noren.statements import Cells, CodeCells, Design, Statement

NEAR = 16
"""Groups of general values that are told apart when columns are chosen."""
SHARES = ("sure", "above_half", "above_1_l", "mean_belief")
TITLES = {
    "mean_belief": "mean belief",
    "max_belief": "largest belief",
    "certain": "certain",
    "sure": "above 0.9",
    "above_half": "above 1/2",
    "mean_before": "without the sets",
}
TRUTH_TITLES = {"right": "right guess", "right_before": "right without the sets"}


class Bayes(Attack):
    """Bayes' rule with the published design as likelihood."""

    adversary: ClassVar[str] = (
        "knows which row is a person's and reads all its published columns, knows the published design, and has "
        "learned from the other people how columns go together; has no secret"
    )
    success: ClassVar[str] = (
        "the largest belief in one value of a record; with the original also how often the likeliest value is true"
    )
    needs_rows: ClassVar[str | None] = (
        "it reads all columns of a row together, and of these nearly every row has others"
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
        some = case.measured_rows
        targets = list(rows.sets) if self.column is None else [self.column]
        self._check(rows, targets)
        shown = rows.some(some)
        correlates = _correlates(release, shown)
        people = None if case.original is None else known_people(case)
        found = None if people is None else self._people(release, rows, people, case.measured(people.n))
        out = []
        statements, cells = _readable(release, found, some)
        with case.stage("Attacking sets", len(targets)) as progress:
            for name in targets:
                given = correlates.given(name) if self.given is None else self.given
                beside = correlates.beside(name) if self.beside is None else self.beside
                everything = _everything(name, statements, cells, found)
                out.append(self._result(name, shown, found, given, beside, everything, some))
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
        keys, covers = {}, {}
        for one in statements:
            if one.is_exact:
                keys[one.name] = one.key(cells[one.name])
            else:
                distinct, keys[one.name] = cells[one.name].distinct()
                covers[one.name] = likelihood(one, distinct).dense(one.d)
        joint = remembered(lambda names: estimated(release, names))
        return Attacked(published_sets(release), keys, joint, self.shrink, covers)

    def _people(self, release: Release, rows: Attacked, people: People, who: Sample) -> Subjects:
        """Everybody with the sets that are recognisably theirs, or with sets drawn anew."""
        place = place_people(release, people, who)
        truth = {name: people.truth(one.statement, place.who) for name, one in rows.sets.items()}
        drawn = drawn_anew(rows.sets, truth)
        mine = np.flatnonzero(place.recognised)
        sets = {name: one.replaced(mine, rows.sets[name], place.row[mine]) for name, one in drawn.items()}
        keys = {
            one.name: people.truth(one, place.who) if one.is_exact else rows.keys[one.name][place.row]
            for one in key_statements(release)
        }

        def joint(names: Sequence[str]) -> NDArray[np.float64]:
            whose = place.who if who.whole else slice(None)
            codes = [people.published(release.column(name))[whose] for name in names]
            return tabulated(codes, [release.column(name).d for name in names])

        table = Attacked(sets, keys, remembered(joint), self.shrink, rows.covers, who.of)
        return Subjects(table, truth, place, who)

    def _result(
        self,
        name: str,
        rows: Attacked,
        people: Subjects | None,
        given: tuple[str, ...],
        beside: str | None,
        everything: tuple[Believed, Mapping[str, float]],
        some: Sample,
    ) -> AttackResult:
        own = rows.sets[name]
        truth = None if people is None else people.truth[name]
        facts: dict[str, Any] = {"values": own.design.d, "l": own.design.eta, "uniform_belief": 1 / own.design.eta}
        facts |= {"epsilon": own.design.epsilon, "given": list(given), "beside": beside, "shrink": self.shrink}
        limits = {}
        table = rows if people is None else people.table
        place = None if people is None else people.place
        measured = some if people is None else people.who
        whole, used = everything
        others = [one for one in (*rows.keys, *rows.sets) if one != name]
        scenarios = [_scenario("all", "all published columns", whole, own, place, measured)]
        for one in knowledge_of(table, name, given, beside):
            found = believe(len(table.sets[name]), own.design.d, one.prior, one.evidence, truth)
            scenarios.append(_scenario(one.name, one.title, found, own, place, measured))
            limits[one.name] = tanh(one.epsilon / 4)
        if place is not None:
            public = next(knowledge_of(rows, name, (), None))
            found = believe(len(own), own.design.d, public.prior, public.evidence)
            scenarios.append(_scenario(public.name, public.title, found, own, None, some))
            facts["recognised"] = float(place.recognised.mean())
        lead = scenarios[0].summary
        facts["all_columns"] = {
            "columns": list(others),
            "used": dict(used),
            "mean_belief": lead["mean_belief"],
            "sure": lead["sure"],
        }
        facts["all_columns"] |= {key: lead[key] for key in ("right", "right_before") if truth is not None}
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
            notes=tuple(_notes(own.design, scenarios, facts, place, measured)),
        )


@dataclass(frozen=True)
class Subjects:
    """The people of the original as records that are attacked, with their secrets."""

    table: Attacked
    truth: Mapping[str, NDArray[np.int64]]
    place: Place
    who: Sample


def _readable(release: Release, people: Subjects | None, some: Sample) -> tuple[list[Statement], dict[str, Cells]]:
    """The columns that are combined: of the published rows, or of the people as they stand in the release."""
    if people is None:
        statements = [s for s in release.statements if s.terms is None and s.rows_per_record == 1]
        cells = release.cells([s.name for s in statements])
        return statements, cells if some.whole else {name: part.take(some.lines) for name, part in cells.items()}
    keys, table = key_statements(release), people.table
    cells = {name: one.cells for name, one in table.sets.items()}
    general = [s.name for s in keys if not s.is_exact]
    shown = release.cells(general) if general else {}
    for one in keys:
        row = people.place.row
        cells[one.name] = CodeCells(one.d, table.keys[one.name]) if one.is_exact else shown[one.name].take(row)
    return [s for s in release.statements if s.name in cells], cells


def _everything(
    name: str, statements: Sequence[Statement], cells: Mapping[str, Cells], people: Subjects | None
) -> tuple[Believed, Mapping[str, float]]:
    """What all published columns of a record say together, and the columns that tell it."""
    truth = None if people is None else people.truth[name]
    found = believed(name, statements, cells, truth=truth, knows_row=True, without=True)
    assert found is not None
    assert found.without is not None
    statement = next(one for one in statements if one.name == name)
    left = statement.spread(cells[name])
    before = found.without
    return Believed(
        found.top,
        found.belief,
        before.belief,
        left,
        found.moved,
        found.truth_belief,
        before.truth_belief,
        found.right,
        before.right,
    ), found.used


def _scenario(name: str, title: str, found: Believed, own: Sets, place: Place | None, measured: Sample) -> Scenario:
    import polars as pl

    summary = found.summary(own.design.eta)
    bounds = measured.bounds(summary, SHARES)
    if place is None:
        frame = found.frame(measured.lines + 1, own.labels)
        return Scenario(name + "-rows", title, "row", summary, frame, False, bounds, measured.of)
    frame = found.frame(place.who + 1, own.labels).with_columns(recognised=pl.Series(place.recognised))
    assert found.right is not None
    assert found.truth_belief is not None
    n = len(found.right)
    bounds["right"] = wilson(summary["right"], n)
    bounds["mean_truth_belief"] = mean_bounds(
        summary["mean_truth_belief"], float(found.truth_belief.std() / max(1, n) ** 0.5)
    )
    return Scenario(name, title, "person", summary, frame, True, bounds, measured.of)


def _baseline(overall: NDArray[np.float64], l: int, truth: NDArray | None) -> dict[str, float]:  # noqa: E741
    """The figures of the overall distribution alone."""
    peak = float(overall.max())
    out = {
        "mean_belief": peak,
        "max_belief": peak,
        "mean_before": peak,
        "certain": float(peak >= CERTAIN),
        "sure": float(peak > SURE + TIE),
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
    design: Design, scenarios: Sequence[Scenario], facts: Mapping[str, Any], place: Place | None, measured: Sample
) -> Iterator[str]:
    lead, first = scenarios[0].summary, scenarios[1]
    told = facts["all_columns"]
    text = f"from all published columns of a record {lead['sure']:.1%} of the secrets are believed above {SURE:g}"
    text += f", from the own set alone {first.summary['sure']:.1%}"
    if told["used"]:
        ranked = sorted(told["used"], key=lambda name: -told["used"][name])
        text += f"; most is told by {', '.join(ranked[:3])}"
    yield text
    yield from measured.note("rows" if place is None else "people")
    above = first.summary["above_1_l"]
    yield (
        f"a set of {design.eta} equally likely values would leave every belief at 1/{design.eta}; with the overall "
        f"distribution {above:.1%} of records have a value that is believed more"
    )
    if facts["epsilon"] < inf:
        moved, limit = first.summary["max_moved"], facts["largest_move_allowed"][first.name.split("-")[0]]
        yield (
            f"no set by itself can move anybody's beliefs by more than tanh(epsilon/4) = {limit:.3f}; the largest move "
            f"is {moved:.3f}"
        )
    if place is not None:
        yield (
            f"the sets of {facts['recognised']:.1%} of the people are their own, recognised by {place.by}; those of "
            f"the others are drawn anew by the published design; bounds are {LEVEL:.0%}, of Wilson for right guesses"
        )
        if place.lost:
            yield f"{measured.count(place.lost)} of the people fit no published record and are left out here"
    if "right" in told:
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
