"""The Bayesian attack on decoy sets: the probability of each value given a record's set and other knowledge.

First stands the adversary who combines all published columns of the record, exact ones, generalised ones and sets, with
how they go together learned from the other people of the release (`noren.estimates.belief`, as `belief` asks). Below,
to see where it comes from: who knows the record's own set and how common the values are. An outsider's figures rest on
an estimate of that from the release; the holder's on the exact distribution, which no adversary knows better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, tanh
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Lines, Scenario
from noren.audit.people import known_people
from noren.audit.sample import LEVEL, Sample, mean_bounds, wilson
from noren.audit.sets import (
    SURE,
    Believed,
    Sets,
    believe,
    drawn_anew,
    drawn_statements,
    tabulated,
)
from noren.audit.targets import Place, key_statements, place_people
from noren.errors import QueryError
from noren.estimates import believed
from noren.release.release import Release
from noren.statements import Cells, CodeCells, Design, Statement

SHARES = ("sure", "above_half", "above_1_l", "mean_belief")


class Bayes(Attack):
    """Bayes' rule with the published design as likelihood."""

    knows: ClassVar[str] = "the row"
    adversary: ClassVar[str] = (
        "knows which row belongs to a person, reads all its published columns, knows the published design, and has "
        "learned from the other people how columns are related; knows no secret beforehand"
    )
    success: ClassVar[str] = (
        "the largest belief in one value of a record; with the original, also how often the likeliest value is true"
    )
    needs_rows: ClassVar[str | None] = (
        "it reads all columns of a row together, and nearly every row has a unique combination"
    )
    shares: ClassVar[tuple[str, ...]] = SHARES
    titles: ClassVar[Mapping[str, str]] = {
        "mean_belief": "mean belief",
        "max_belief": "largest belief",
        "certain": "certain",
        "sure": "above 0.9",
        "above_half": "above 1/2",
        "mean_before": "without the sets",
    }
    truth_titles: ClassVar[Mapping[str, str]] = {"right": "right guess", "right_before": "right without the sets"}

    name: Literal["bayes"] = "bayes"
    column: str | None = Field(default=None, description="The decoy column that is attacked; by default all.")

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Return why the attack does not apply; None if it applies."""
        if release.rows_per_record > 1:
            return "it publishes the members of sets in shuffled rows, so the rows of a person cannot be matched"
        if not drawn_statements(release):
            return "it publishes no decoy sets"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        self.demand(case.release)
        rows = published_records(case)
        people = None if case.original is None else people_records(case)
        targets = list(rows.sets) if self.column is None else [self.column]
        if self.column is not None and self.column not in rows.sets:
            hint = f"It has {', '.join(rows.sets)}."
            raise QueryError(f"the release has no decoy column {self.column!r}.", hint=hint)
        with case.stage("Attacking sets", len(targets)) as progress:
            out = []
            for name in targets:
                out.append(self._result(name, case, rows, people))
                progress(1)
        return out

    def _result(self, name: str, case: Case, rows: Attacked, people: Attacked | None) -> AttackResult:
        shown = rows if people is None else people
        own, truth, place = rows.sets[name], shown.truth.get(name), shown.place
        design, prior = own.design, case.estimate([name]) if people is None else people.shares(name)
        lead, used = _everything(name, shown)
        scenarios = [_scenario("all", "all published columns", lead, shown, own)]
        for some in (shown,) if people is None else (people, rows):
            before = prior if some is shown else case.estimate([name])
            sets, known = some.sets[name], some.truth.get(name)
            found = believe(len(sets), before, [sets.likelihood], known)
            scenarios.append(_scenario("overall", "overall distribution", found, some, own))
        summary = scenarios[0].summary
        told = {
            "columns": [one.name for one in shown.statements if one.name != name],
            "used": dict(used),
            **{key: summary[key] for key in ("mean_belief", "sure", "right", "right_before") if key in summary},
        }
        facts: dict[str, Any] = {"values": design.d, "l": design.eta, "uniform_belief": 1 / design.eta}
        facts |= {"epsilon": design.epsilon, "largest_move_allowed": {"overall": tanh(design.epsilon / 4)}}
        facts |= {"all_columns": told, "prior": "an estimate from the release" if people is None else "the original"}
        facts |= {} if place is None else {"recognised": float(place.recognised.mean())}
        return self.make_result(
            target=(name,),
            baseline=believe(1 if truth is None else len(truth), prior, (), truth).summary(design.eta),
            scenarios=scenarios,
            facts=facts,
            notes=_notes(design, scenarios, facts, place, shown.lines.some),
            truth=truth is not None,
        )


@dataclass(frozen=True)
class Attacked:
    """The attacked records: published rows, or the people of the original with their published sets."""

    statements: Sequence[Statement]
    """The columns that are combined."""
    cells: Mapping[str, Cells]
    sets: Mapping[str, Sets]
    lines: Lines
    truth: Mapping[str, NDArray[np.int64]]
    """The secrets of people."""
    everybody: Mapping[str, NDArray[np.int64]]
    """The secrets of all people from whom distributions come."""
    place: Place | None = None

    def shares(self, name: str) -> NDArray[np.float64]:
        """Return the distribution of a secret among all people of the original."""
        return tabulated([self.everybody[name]], [self.sets[name].design.d])


def published_records(case: Case) -> Attacked:
    """Return the published rows that are measured."""
    lines = case.row_lines()
    statements = [one for one in case.release.statements if one.terms is None and one.rows_per_record == 1]
    cells = case.release.cells([one.name for one in statements])
    sets = case.sets
    if not lines.some.whole:
        cells = {name: part.take(lines.some.lines) for name, part in cells.items()}
        sets = {name: one.take(lines.some.lines) for name, one in sets.items()}
    return Attacked(statements, cells, sets, lines, {}, {})


def people_records(case: Case) -> Attacked:
    """Return all people with the sets that can be matched to them, or with sets drawn anew."""
    release, people = case.release, known_people(case)
    who = case.measured(people.n)
    place = place_people(release, people, who)
    truth = {name: people.truth(one.statement, place.who) for name, one in case.sets.items()}
    mine = np.flatnonzero(place.recognised)
    drawn = drawn_anew(case.sets, truth)
    sets = {name: one.replaced(mine, case.sets[name], place.row[mine]) for name, one in drawn.items()}
    cells: dict[str, Cells] = {name: one.cells for name, one in sets.items()}
    keys = key_statements(release)
    general = [one.name for one in keys if not one.is_exact]
    shown = release.cells(general) if general else {}
    for one in keys:
        exact = one.is_exact
        cells[one.name] = CodeCells(one.d, people.truth(one, place.who)) if exact else shown[one.name].take(place.row)
    whose = place.who if who.whole else slice(None)
    everybody = {name: people.published(release.column(name))[whose] for name in sets}
    lines = Lines("person", place.who + 1, who, holder_only=True)
    return Attacked([s for s in release.statements if s.name in cells], cells, sets, lines, truth, everybody, place)


def _everything(name: str, records: Attacked) -> tuple[Believed, Mapping[str, float]]:
    """Compute the beliefs from all published columns of a record, and the columns that disclose most."""
    statements, cells, truth = records.statements, records.cells, records.truth.get(name)
    found = believed(name, statements, cells, truth=truth, knows_row=True, without=True)
    assert found is not None
    assert found.without is not None
    before = found.without
    left = records.sets[name].statement.count_possible(cells[name])
    now, then = (found.truth_belief, found.right), (before.truth_belief, before.right)
    out = Believed(found.top, found.belief, before.belief, left, found.moved, now[0], then[0], now[1], then[1])
    return out, found.used


def _scenario(name: str, title: str, found: Believed, records: Attacked, own: Sets) -> Scenario:
    summary, columns = found.summary(own.design.eta), found.columns()
    labels, bounds = {"value": own.labels}, {}
    if records.place is None:
        return records.lines.scenario(name + "-rows", title, summary, columns, SHARES, labels)
    assert found.right is not None
    assert found.truth_belief is not None
    n = len(found.right)
    bounds["right"] = wilson(summary["right"], n)
    error = float(found.truth_belief.std() / max(1, n) ** 0.5)
    bounds["mean_truth_belief"] = mean_bounds(summary["mean_truth_belief"], error)
    columns |= {"recognised": records.place.recognised}
    return records.lines.scenario(name, title, summary, columns, SHARES, labels, bounds)


def _notes(
    design: Design, scenarios: Sequence[Scenario], facts: Mapping[str, Any], place: Place | None, measured: Sample
) -> Iterator[str]:
    lead, first = scenarios[0].summary, scenarios[1]
    told = facts["all_columns"]
    text = f"with all published columns of a record, {lead['sure']:.1%} of the secrets are believed above {SURE:g}"
    text += f", with the secret's own set only {first.summary['sure']:.1%}"
    if told["used"]:
        ranked = sorted(told["used"], key=lambda name: -told["used"][name])
        text += f"; the columns that disclose most are {', '.join(ranked[:3])}"
    yield text
    yield from measured.note("rows" if place is None else "people")
    above = first.summary["above_1_l"]
    yield (
        f"a set of {design.eta} equally likely values would leave every belief at 1/{design.eta}; with the overall "
        f"distribution, {above:.1%} of the records have a value that is believed more"
    )
    if facts["epsilon"] < inf:
        moved, limit = first.summary["max_moved"], facts["largest_move_allowed"]["overall"]
        yield (
            f"no set by itself can move anybody's beliefs by more than tanh(epsilon/4) = {limit:.3f}; the largest move "
            f"is {moved:.3f}"
        )
    if place is not None:
        yield (
            f"{facts['recognised']:.1%} of the people are recognised by {place.by} and keep their own sets; sets of "
            f"the others are simulated with the published design; bounds are {LEVEL:.0%}, Wilson intervals for "
            "right guesses"
        )
        if place.lost:
            yield f"{measured.count(place.lost)} of the people match no published record and are not measured here"
    if "right" in told:
        yield (
            f"an adversary who reads all published columns guesses right for {told['right']:.1%} of the people, "
            f"without the record's own sets for {told['right_before']:.1%}"
        )
