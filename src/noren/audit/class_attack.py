"""Attacks on secrets in classes: find the rows that could be a person's, and see what they disclose.

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

from noren.audit.base import Attack, AttackResult, Case, Lines, Scenario
from noren.audit.people import known_people, person_lines
from noren.audit.sample import Sample, Times
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

    needs_rows: ClassVar[str | None] = None

    @classmethod
    def applies(cls, release: Release) -> str | None:
        return why_no_secret(release)

    # ------------------------------------------------------------------ what an attack says

    @abstractmethod
    def concludes(self, told: Histograms, target: Target) -> Columns:
        """Return the figures of every set of rows."""

    def compares(self, told: Histograms, found: Columns, target: Target, of: NDArray, truth: NDArray) -> Columns:
        """Return the figures of people whose true value is known: set of[i] and value truth[i]."""
        return {}

    @abstractmethod
    def sums(self, lines: Columns, target: Target, times: Times = None) -> dict[str, float]:
        """Return the figures over all lines, each of which represents several rows."""

    def labels(self, target: Target) -> dict[str, Sequence[str]]:
        """Return the columns of figures that are codes (-1 for none), with their labels."""
        return {"value": target.labels}

    def facts(self, target: Target) -> dict[str, Any]:
        return {}

    def notes(self, target: Target, rows: Columns) -> list[str]:
        return []

    def suits(self, statement: Statement) -> str | None:
        """Return why one column cannot be attacked, or None."""
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
        raw = truth = None
        if people is not None:
            raw = case.remembered(("raw", statement.name), lambda: true_target(case, statement, people))
            raw = replace(raw, memory={})
        with case.stage(f"Attacking {statement.name}", None):
            prior = None if raw is None else raw.prior
            target = case.remembered(("published", statement.name), lambda: published_target(case, statement, prior))
            target = replace(target, memory={})
            if people is not None and raw is not None:
                lines = person_lines(case, people)
                who = lines.some
                truth = raw.statement.key(raw.cells)[who[raw.kind]]
                found = self._figures(raw, [who.among(raw.own)], len(truth), truth)
                scenarios.append(self._scenario("raw", "raw table", lines, found, raw))
                found = self._figures(target, in_release(case, people, names, who), len(truth), truth)
                title = f"this release, by {', '.join(names) or 'no column'}" if lost else "this release"
                scenarios.append(self._scenario("release", title, lines, found, target))
                notes += [*who.note(), *found_notes(found["groups"], who)]
            lines = case.row_lines(target.times, truth is not None)
            rows = self._figures(target, [lines.some.among(target.own)], len(lines.some), None)
            scenarios.append(self._scenario("release-rows", "this release, row by row", lines, rows, target))
            notes += lines.some.note("rows") if truth is None else []
        if lost and truth is not None:
            notes.append(self._lower(lost, scenarios[-1].summary))
        facts = {"prior_from": target.basis, "values": target.d, "classes": len(target.own.bounds) - 1}
        return self.make_result(
            target=(statement.name,),
            baseline=self._baseline(target, truth),
            scenarios=scenarios,
            facts=facts | self.facts(target),
            notes=(*notes, *self.notes(target, rows)),
            truth=truth is not None,
        )

    def _lower(self, lost: Sequence[str], rows: Mapping[str, float]) -> str:
        """Note that adversaries who know more columns learn more, with an upper bound of how much."""
        most = ", ".join(f"{self.titles[share]} {rows[share]:.1%}" for share in self.shares)
        return (
            f"{_listed(lost)}: published as sets or groups and not used to find people, so figures per person are "
            f"too low for an adversary who knows these columns; for one who knows the exact row, they are: {most}"
        )

    def _figures(self, target: Target, found: Iterable[Matches], lines: int, truth: NDArray | None) -> Columns:
        """Return the figures of every line; a line without a matching row has the figures before the release."""
        groups, rows = np.zeros(lines, np.int64), np.zeros(lines, np.int64)
        out = self._unmoved(target, lines, truth)
        for whole in found:
            for part in portions(whole, target.width):
                groups[part.people], rows[part.people] = part.groups[part.of], target.sizes(part)[part.of]
                for name, figures in self.judged(target, part, None if truth is None else truth[part.people]).items():
                    out[name][part.people] = figures
        return {"groups": groups, "candidates": rows} | out

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

    def _scenario(self, name: str, title: str, lines: Lines, figures: Columns, target: Target) -> Scenario:
        summary = self.sums(figures, target, lines.times)
        if lines.by == "person":
            summary["without_group"] = lines.some.scaled(int((figures["groups"] == 0).sum()))
        return lines.scenario(name, title, summary, figures, (*self.shares, *self.truth_shares), self.labels(target))


# ---------------------------------------------------------------------- figures that several attacks need


def best_guess(told: Histograms) -> Columns:
    """Return the largest belief of every set, the first value with this belief, and the number of ties."""
    belief = told.largest(told.share)
    best = told.share >= belief[told.owner] - TIE
    first = np.minimum.reduceat(np.where(best, told.value, np.iinfo(np.int64).max), told.starts[:-1])
    return {"belief": belief, "value": first, "ties": told.total(best.astype(np.int64))}


def belief_in(told: Histograms, of: NDArray, value: NDArray, d: int) -> NDArray[np.float64]:
    """Return the belief of set of[i] in value[i]."""
    key = told.owner * np.int64(d) + told.value
    wanted = of * np.int64(d) + value
    if not len(key):
        return np.zeros(len(wanted))
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return np.asarray(np.where(key[place] == wanted, told.share[place], 0.0))


def guessed(told: Histograms, found: Columns, of: NDArray, truth: NDArray, d: int) -> Columns:
    """Return the belief in the true value, and the probability that the best guess is right."""
    inside = belief_in(told, of, truth, d)
    right = np.where(inside >= found["belief"][of] - TIE, 1 / found["ties"][of], 0.0)
    return {"truth_belief": inside, "right": right}


def found_notes(groups: NDArray[np.int64], who: Sample, what: str = "class") -> list[str]:
    """Return notes about the people who were looked up in a release."""
    lost, several = int((groups == 0).sum()), int((groups > 1).sum())
    many = f"{what}es" if what.endswith("s") else f"{what}s"
    out = []
    if lost:
        fall = count_people(lost, "fall", who)
        out.append(f"{fall} into no published {what} and are measured with the belief before the release")
    if several:
        out.append(
            f"{count_people(several, 'fall', who)} into several published {many}; the records of all of these are "
            "counted"
        )
    return out


def count_people(count: int, verb: str, who: Sample) -> str:
    """Write a number of people and a verb in words."""
    return f"1 person {verb}s" if count == 1 and who.whole else f"{who.count(count)} people {verb}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
