"""The absence attack: who is missing from a release, and what that tells.

With a list of the members everybody sees who was left out. Whoever also knows how common the secrets are among all
members subtracts what is published, and the rest are the secrets of the missing: a class like any other, only that
nobody meant to publish it. An outsider without these counts still knows the rule: some methods leave out only people
of secrets that are too common, unless the release states that the missing were judged as a class of their own.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.people import People, known_people
from noren.engines.left_out import LEFT_OUT
from noren.release.release import Release
from noren.statements import Statement
from noren.workflow.truth import is_countable, published_counts

TOO_COMMON = ("anatomy", "rating", "hilbert")
"""Methods whose rule leaves out nobody but people of secrets that are too common."""
TITLES = {"certain": "certain", "mean_belief": "mean belief", "max_belief": "largest belief"}
TRUTH_TITLES = {"right": "right guess"}
CERTAIN = 1 - 1e-9


class Absence(Attack):
    """See who is missing, and guess the commonest secret of the missing."""

    adversary: ClassVar[str] = (
        "has a list of everybody in the table and sees who is missing from the release; with the original also knows "
        "how often every sensitive value occurs among all of them"
    )
    success: ClassVar[str] = (
        "the share of missing people whose sensitive value is certain, the largest belief in one value, and how often "
        "the best guess is right"
    )
    needs_rows: ClassVar[str | None] = None

    name: Literal["absence"] = "absence"

    @classmethod
    def applies(cls, release: Release) -> str | None:
        if not release.suppressed:
            return "nobody was left out"
        if not _countable(release):
            return "how often its secrets occur cannot be counted: they are published as sets or general values"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        release = case.release
        self.demand(case.release)
        people = None if case.original is None else known_people(case)
        with case.stage("Looking who is missing", None):
            return [self._attack(case, statement, people) for statement in _countable(release)]

    def _attack(self, case: Case, statement: Statement, people: People | None) -> AttackResult:
        release, seen = case.release, _seen(case, statement)
        prior, missing = seen, _by_rule(release, seen)
        labels, scenarios = statement.domain.values, []
        outside = "given the rule of the method"
        notes = []
        if people is not None:
            prior, missing, labels = _subtracted(statement, people, seen)
            outside = "given how common the values are in all"
            if int(missing.sum()) != release.suppressed:
                notes.append("the original has not as many records more than the release as were left out")
        believed = missing / max(1, int(missing.sum()))
        shares = prior / max(1, int(prior.sum()))
        truth = np.repeat(np.arange(len(missing)), missing) if people is not None else None
        lines = release.suppressed if truth is None else len(truth)
        for name, title, belief in (("before", "before the release", shares), ("missing", outside, believed)):
            scenarios.append(_scenario(name, title, belief, labels, lines, truth))
        sure = int(scenarios[1].summary["certain"] * lines)
        if sure:
            notes.append(f"{sure:,} missing people are certain: all who were left out have one and the same value")
        return self.make_result(
            target=(statement.name,),
            baseline=dict(scenarios[0].summary),
            scenarios=(scenarios[1],),
            titles={**TITLES, **(TRUTH_TITLES if truth is not None else {})},
            shares=("certain", "mean_belief", *(("right",) if truth is not None else ())),
            facts={"missing": release.suppressed, "values": len(labels), "judged": _is_judged(release)},
            notes=notes,
        )


def _countable(release: Release) -> list[Statement]:
    """Sensitive columns of which the release itself tells how often every value occurs."""
    return [one for one in release.statements if one.role.needs_requirement and is_countable(one)]


def _seen(case: Case, statement: Statement) -> NDArray[np.int64]:
    """How often every value of such a column is published."""
    view = case.view([statement.name])
    if view.times is None or statement.table is not None:
        return published_counts(case.release, statement)
    codes = statement.key(view.release.cells([statement.name])[statement.name])
    return np.bincount(codes, view.times, minlength=statement.d).astype(np.int64)


def _is_judged(release: Release) -> bool:
    """Whether the release states that those who were left out meet every requirement as one class."""
    return any(one.model == LEFT_OUT and one.holds for one in release.verdicts)


def _by_rule(release: Release, seen: NDArray[np.int64]) -> NDArray[np.int64]:
    """What an outsider takes the missing for: like the published, or of the secrets that were cut down to the most
    that may be, as far as the rule of the method says so."""
    if _is_judged(release) or not any(one.name in TOO_COMMON for one in release.manifest.methods):
        return seen
    return np.where(seen == seen.max(), seen, 0)


def _subtracted(
    statement: Statement, people: People, seen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """How often every value occurs in the original, how much of that is not published, and what they are called."""
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
    import polars as pl

    best = int(belief.argmax())
    most = float(belief[best])
    summary = {"certain": float(most >= CERTAIN), "mean_belief": most, "max_belief": most}
    frame = {"record": np.arange(1, lines + 1), "value": [labels[best]] * lines, "belief": np.full(lines, most)}
    if truth is not None:
        frame |= {"right": (truth == best).astype(float), "truth_belief": belief[truth]}
        summary["right"] = float((truth == best).mean()) if lines else 0.0
    return Scenario(name, title, "person", summary, pl.DataFrame(frame), truth is not None)
