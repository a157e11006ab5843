"""Attacks on secrets in classes: find the rows that could be a person's, and see what they tell.

An attack says what it concludes from a distribution over base values; this file takes it through the scenarios: the
raw table, the release for the people of the original, and the published rows for an outsider.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import Attack, AttackResult, Case, Scenario, make_lines
from noren.audit.people import known_people
from noren.audit.sample import ROWS, Sample, Times
from noren.audit.targets import (
    Target,
    in_release,
    is_attackable,
    key_names,
    portions,
    published_target,
    secret_statements,
    true_target,
    why_no_secret,
)
from noren.engines.finding import Matches
from noren.models.histograms import Histograms
from noren.release.release import Release
from noren.statements import Statement

CERTAIN = 0.999
TIE = 1e-12

Columns = dict[str, NDArray]
"""Figures by name, one entry per set of rows or per line."""


class ClassAttack(Attack):
    """An attack on the secrets of classes, groups or decoy sets, column by column."""

    titles: ClassVar[Mapping[str, str]]
    truth_titles: ClassVar[Mapping[str, str]] = {}
    measure: ClassVar[str] = "belief"
    shares: ClassVar[tuple[str, ...]]
    truth_shares: ClassVar[tuple[str, ...]] = ()
    needs_rows: ClassVar[str | None] = None

    @classmethod
    def applies(cls, release: Release) -> str | None:
        return why_no_secret(release)

    # ------------------------------------------------------------------ what an attack says

    @abstractmethod
    def concludes(self, told: Histograms, target: Target) -> Columns:
        """Figures for every set of rows."""

    def compares(self, told: Histograms, found: Columns, target: Target, of: NDArray, truth: NDArray) -> Columns:
        """Figures for people whose true value is known: set of[i] and value truth[i]."""
        return {}

    @abstractmethod
    def sums(self, lines: Columns, target: Target, times: Times = None) -> dict[str, float]:
        """Figures over all lines, each of which stands for so many rows."""

    def labels(self, target: Target) -> dict[str, Sequence[str]]:
        """Figures that are codes (-1 for none), and what the codes are called."""
        return {"value": target.labels}

    def facts(self, target: Target) -> dict[str, Any]:
        return {}

    def notes(self, target: Target, rows: Columns) -> list[str]:
        return []

    def suits(self, statement: Statement) -> str | None:
        """Why one column cannot be attacked, or None."""
        return None

    # ------------------------------------------------------------------ scenarios

    def run(self, case: Case) -> list[AttackResult]:
        release = case.release
        self.demand(case.release)
        out, left = [], []
        for statement in secret_statements(release):
            reason = self.suits(statement) if is_attackable(statement) else f"it is {statement.words}"
            if reason is not None:
                left.append(f"column {statement.name!r} is not attacked: {reason}")
            else:
                out.append(self._attack(case, statement))
        if not out:
            raise self.refusal("; ".join(left))
        return out

    def _attack(self, case: Case, statement: Statement) -> AttackResult:
        release = case.release
        names, lost = key_names(release, statement.name)
        notes: list[str] = []
        scenarios: list[Scenario] = []
        people = None if case.original is None else known_people(case)
        raw = None if people is None else replace(true_target(case, statement, people), memory={})
        truth = None
        with case.stage(f"Attacking {statement.name}", None):
            target = replace(published_target(case, statement, None if raw is None else raw.prior), memory={})
            if people is not None and raw is not None:
                who = case.measured(people.n)
                truth = raw.statement.key(raw.cells)[who[raw.kind]]
                lines, _ = self._lines(raw, [who.among(raw.own)], len(truth), truth)
                scenarios.append(self._scenario("raw", "raw table", "person", lines, raw, who[people.rows], who))
                lines, groups = self._lines(target, in_release(case, people, names, who), len(truth), truth)
                title = f"this release, by {', '.join(names) or 'no column'}" if lost else "this release"
                scenarios.append(self._scenario("release", title, "person", lines, target, who[people.rows], who))
                notes += [*who.note(), *_found(groups, who)]
            some = case.measured_lines(target.times)
            rows, _ = self._lines(target, [some.among(target.own)], len(some), None)
            title = "this release, row by row"
            holder_only = truth is not None
            scenarios.append(
                self._scenario(
                    "release-rows", title, "row", rows, target, some.lines + 1, some, holder_only, target.times
                )
            )
            notes += some.note("rows") if truth is None else []
        if lost and truth is not None:
            notes.append(self._lower(lost, scenarios[-1].summary))
        facts = {"prior_from": target.basis, "values": target.d, "classes": len(target.own.bounds) - 1}
        return self.make_result(
            target=(statement.name,),
            baseline=self._baseline(target, truth),
            scenarios=scenarios,
            titles={**self.titles, **(self.truth_titles if truth is not None else {})},
            measure=self.measure,
            shares=(*self.shares, *(self.truth_shares if truth is not None else ())),
            facts=facts | self.facts(target),
            notes=(*notes, *self.notes(target, rows)),
        )

    def _lower(self, lost: Sequence[str], rows: Mapping[str, float]) -> str:
        """People are found by some columns only, which is less than an adversary may know: say how much it could be."""
        most = ", ".join(f"{self.titles[share]} {rows[share]:.1%}" for share in self.shares)
        return (
            f"{_listed(lost)}: published as sets or groups and not used to find people, so the figures of people are "
            f"too low for an adversary who knows them as well; where the very row is known, they are: {most}"
        )

    def _lines(
        self, target: Target, found: Iterable[Matches], lines: int, truth: NDArray | None
    ) -> tuple[Columns, NDArray[np.int64]]:
        """The figures of every line; where no row could be the person's, those of before the release."""
        groups, rows = np.zeros(lines, np.int64), np.zeros(lines, np.int64)
        out = self._unmoved(target, lines, truth)
        for whole in found:
            for part in portions(whole, target.width):
                groups[part.people], rows[part.people] = part.groups[part.of], target.sizes(part)[part.of]
                for name, figures in self.judged(target, part, None if truth is None else truth[part.people]).items():
                    out[name][part.people] = figures
        return {"groups": groups, "candidates": rows} | out, groups

    def judged(self, target: Target, part: Matches, truth: NDArray | None) -> Columns:
        """The figures of some lines."""
        told = target.told(part)
        found = self.concludes(told, target)
        lines = {name: figures[part.of] for name, figures in found.items()}
        return lines if truth is None else lines | self.compares(told, found, target, part.of, truth)

    def _unmoved(self, target: Target, lines: int, truth: NDArray | None) -> Columns:
        told = target.before()
        found = self.concludes(told, target)
        out = {name: np.repeat(figures, lines) for name, figures in found.items()}
        if truth is not None:
            out |= self.compares(told, found, target, np.zeros(lines, np.int64), truth)
        return out

    def _baseline(self, target: Target, truth: NDArray | None) -> dict[str, float]:
        return self.sums(self._unmoved(target, 1 if truth is None else len(truth), truth), target)

    def _scenario(
        self,
        name: str,
        title: str,
        by: Any,
        lines: Columns,
        target: Target,
        numbers: NDArray,
        some: Sample,
        holder_only: bool = True,
        times: Times = None,
    ) -> Scenario:
        summary = self.sums(lines, target, times)
        if by == "person":
            summary["without_group"] = some.scaled(int((lines["groups"] == 0).sum()))
        shares = (*self.shares, *self.truth_shares)
        head = {"record": numbers} | ({} if times is None else {ROWS: times})
        frame = make_lines(head | lines, self.labels(target))
        return Scenario(name, title, by, summary, frame, holder_only, some.bounds(summary, shares), some.of)


# ---------------------------------------------------------------------- figures that several attacks need


def best_guess(told: Histograms) -> Columns:
    """The largest belief of every set, the first value that is believed so, and how many are."""
    belief = told.largest(told.share)
    best = told.share >= belief[told.owner] - TIE
    first = np.minimum.reduceat(np.where(best, told.value, np.iinfo(np.int64).max), told.starts[:-1])
    return {"belief": belief, "value": first, "ties": told.total(best.astype(np.int64))}


def belief_in(told: Histograms, of: NDArray, value: NDArray, d: int) -> NDArray[np.float64]:
    """What set of[i] makes one believe in value[i]."""
    key = told.owner * np.int64(d) + told.value
    wanted = of * np.int64(d) + value
    if not len(key):
        return np.zeros(len(wanted))
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return np.asarray(np.where(key[place] == wanted, told.share[place], 0.0))


def guessed(told: Histograms, found: Columns, of: NDArray, truth: NDArray, d: int) -> Columns:
    """The belief in the truth, and the chance that the best guess is right: 1 over the ties if it is among them."""
    inside = belief_in(told, of, truth, d)
    right = np.where(inside >= found["belief"][of] - TIE, 1 / found["ties"][of], 0.0)
    return {"truth_belief": inside, "right": right}


def _found(groups: NDArray[np.int64], who: Sample) -> list[str]:
    lost, several = int((groups == 0).sum()), int((groups > 1).sum())
    out = []
    if lost:
        out.append(
            f"{_people(lost, 'fall', who)} into no published class, so that only what was known before is believed"
        )
    if several:
        out.append(f"{_people(several, 'fall', who)} into several published classes, and all their records count")
    return out


def _people(count: int, verb: str, who: Sample) -> str:
    return f"1 person {verb}s" if count == 1 and who.whole else f"{who.count(count)} people {verb}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
