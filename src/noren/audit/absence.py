"""The absence attack: who is missing from a release, and what this discloses.

With a list of the members everybody sees who was left out. Whoever also knows how common the secrets are among all
members subtracts what is published, and the rest are the secrets of the missing: a class like any other, only that
nobody meant to publish it. An outsider without these counts still knows the rule: some methods leave out only people
of secrets that are too common, unless the release states that the missing were judged as a class of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import Attack, AttackResult, Case, Lines, Scenario
from noren.audit.people import People, known_people
from noren.audit.sample import sample_of
from noren.audit.targets import tally
from noren.engines.left_out import LEFT_OUT
from noren.release.release import Release
from noren.statements import Statement
from noren.workflow.truth import is_countable, published_counts

TOO_COMMON = ("anatomy", "rating", "hilbert")
"""Methods whose rule leaves out nobody but people of secrets that are too common."""
CERTAIN = 1 - 1e-9


class Absence(Attack):
    """Find out who is missing, and guess the most frequent secret among the missing people."""

    knows: ClassVar[str] = "more"
    adversary: ClassVar[str] = (
        "has a list of all members of the table and sees who is missing from the release; with the original, also "
        "knows how often every sensitive value occurs in the whole table"
    )
    success: ClassVar[str] = (
        "the share of suppressed people whose sensitive value is certain, the largest belief in one value, and how "
        "often the best guess is right"
    )
    needs_rows: ClassVar[str | None] = None
    shares: ClassVar[tuple[str, ...]] = ("certain", "mean_belief")
    titles: ClassVar[Mapping[str, str]] = {
        "certain": "certain",
        "mean_belief": "mean belief",
        "max_belief": "largest belief",
    }

    name: Literal["absence"] = "absence"

    @classmethod
    def applies(cls, release: Release) -> str | None:
        if not release.suppressed:
            return "nobody was suppressed"
        if not _countable(release):
            return "its secrets are published as sets or generalised values, so their frequencies cannot be counted"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        release = case.release
        self.demand(case.release)
        people = None if case.original is None else known_people(case)
        with case.stage("Checking who is missing", None):
            return [self._attack(case, statement, people) for statement in _countable(release)]

    def _attack(self, case: Case, statement: Statement, people: People | None) -> AttackResult:
        release, seen = case.release, _seen(case, statement)
        prior, missing = seen, _by_rule(release, seen)
        labels, scenarios = statement.domain.values, []
        outside = "given the method's rule"
        notes = []
        if people is not None:
            prior, missing, labels = _subtracted(statement, people, seen)
            outside = "given the overall frequencies"
            if int(missing.sum()) != release.suppressed:
                notes.append(
                    "the numbers of records in the original, in the release and of suppressed records do not agree"
                )
        believed = missing / max(1, int(missing.sum()))
        shares = prior / max(1, int(prior.sum()))
        truth = np.repeat(np.arange(len(missing)), missing) if people is not None else None
        lines = release.suppressed if truth is None else len(truth)
        for name, title, belief in (("before", "before the release", shares), ("missing", outside, believed)):
            scenarios.append(_scenario(name, title, belief, labels, lines, truth))
        sure = int(scenarios[1].summary["certain"] * lines)
        if sure:
            notes.append(f"{sure:,} suppressed people are certain: all suppressed people have the same value")
        return self.make_result(
            target=(statement.name,),
            baseline=dict(scenarios[0].summary),
            scenarios=(scenarios[1],),
            facts={"missing": release.suppressed, "values": len(labels), "judged": _is_judged(release)},
            notes=notes,
            truth=truth is not None,
        )


def _countable(release: Release) -> list[Statement]:
    """The sensitive columns for which the release shows how often every value occurs."""
    return [one for one in release.statements if one.role.needs_requirement and is_countable(one)]


def _seen(case: Case, statement: Statement) -> NDArray[np.int64]:
    """Count how often every value of such a column is published."""
    view = case.view([statement.name])
    if view.times is None or statement.table is not None:
        return published_counts(case.release, statement)
    return tally(statement, view.release.cells([statement.name])[statement.name], view.times)


def _is_judged(release: Release) -> bool:
    """Whether the release states that the suppressed people meet every requirement as one class."""
    return any(one.model == LEFT_OUT and one.holds for one in release.verdicts)


def _by_rule(release: Release, seen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Estimate the secrets of the suppressed people as an outsider: distributed like the published ones, unless the
    rule of the method says that frequent secrets were cut down."""
    if _is_judged(release) or not any(one.name in TOO_COMMON for one in release.manifest.methods):
        return seen
    return np.where(seen == seen.max(), seen, 0)


def _subtracted(
    statement: Statement, people: People, seen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Subtract the published counts from the original's: counts in the original, suppressed counts, and labels."""
    column = people.table.columns[statement.name]
    counts = np.bincount(people.codes[statement.name], minlength=column.d)
    there = np.zeros(column.d, np.int64)
    for value, count in zip(statement.domain.values, seen.tolist(), strict=True):
        if value in column.domain.index:
            there[column.domain.index[value]] += count
    return counts, np.maximum(counts - there, 0), column.domain.values


def _scenario(
    name: str,
    title: str,
    belief: NDArray[np.float64],
    labels: tuple[str, ...],
    lines: int,
    truth: NDArray[np.int64] | None,
) -> Scenario:
    best = int(belief.argmax())
    most = float(belief[best])
    summary = {"certain": float(most >= CERTAIN), "mean_belief": most, "max_belief": most}
    columns = {"value": np.full(lines, best), "belief": np.full(lines, most)}
    if truth is not None:
        columns |= {"right": (truth == best).astype(float), "truth_belief": belief[truth]}
        summary["right"] = float((truth == best).mean()) if lines else 0.0
    missing = Lines("person", np.arange(1, lines + 1), sample_of(lines, 0), truth is not None)
    return missing.scenario(name, title, summary, columns, labels={"value": labels})
