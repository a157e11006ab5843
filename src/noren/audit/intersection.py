"""The intersection attack: what two or more releases about the same people disclose together.

Rows of decoy sets are matched by columns that both releases publish exactly and that make a row unique in either, then
the sets of a person are read together. Sets drawn anew share little but the truth; memoised ones are the same again.
Without another release the attack asks what would happen if this one were made again with new decoys.

Generalised values and groups: a person who is in all tables has one of the values that are possible in every one of
them (the composition attack of Ganta, Kasiviswanathan and Smith, 2008). Records are found by the person's
quasi-identifiers, which needs the original; groups beside exact columns are found by the same exact row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from noren.audit.base import Attack, AttackResult, Case, Lines, Scenario
from noren.audit.people import People, exact_statements, exact_texts, known_people, same_rows, unique_pairs
from noren.audit.sample import LEVEL, sample_of, wilson
from noren.audit.sets import (
    CERTAIN,
    Believed,
    ByRow,
    Sets,
    believe,
    drawn_anew,
    drawn_statements,
    portions,
    published_sets,
    tabulated,
)
from noren.audit.targets import find_people, searchable, secret_statements
from noren.engines.finding import Finder
from noren.errors import DataError, QueryError
from noren.policy.policy import Policy
from noren.policy.resolve import open_table
from noren.ragged import chosen, owners
from noren.release.release import Release, open_release
from noren.secret import KeyRule
from noren.statements import Statement

if TYPE_CHECKING:
    import polars as pl


SIMULATED = 20_000
"""People who are simulated where there is no other release."""


@dataclass(frozen=True)
class OtherSets:
    """The sets of the matched people in another release, and which of them only repeat the first release."""

    sets: Sets
    place: NDArray[np.int64]
    """Its values as codes of the first release's domain; -1 for those that it does not know."""
    repeats: NDArray[np.bool_]

    def likelihood(self, rows: slice, d: int) -> NDArray[np.float64]:
        """Return a (rows, values of the first domain) array; a value that this release cannot contain is impossible."""
        own = self.sets.likelihood(rows)
        out = np.zeros((own.shape[0], d))
        known = self.place >= 0
        out[:, self.place[known]] = own[:, known]
        out[self.repeats[rows]] = 1.0
        return out


class Intersection(Attack):
    """Several releases of the same people, read together."""

    knows: ClassVar[str] = "more"
    adversary: ClassVar[str] = (
        "has all the releases, knows that a person is in each, and recognises the person's rows by columns that "
        "are published exactly (in generalised releases, by the person's quasi-identifiers)"
    )
    success: ClassVar[str] = (
        "the share of recognised people with a single possible value left, and the number of possible values left"
    )
    needs_rows: ClassVar[str | None] = "it recognises single rows in two releases"
    titles: ClassVar[Mapping[str, str]] = {
        "alone": "one value left",
        "mean_left": "values left",
        "mean_belief": "mean belief",
    }
    shares: ClassVar[tuple[str, ...]] = ("alone", "mean_belief")

    name: Literal["intersection"] = "intersection"
    other: tuple[str, ...] = Field(
        default=(), description="Directories of further releases of the same people, separated by commas."
    )
    later: tuple[str, ...] = Field(
        default=(),
        description=("The originals of the further releases: people in all of them are then matched by key."),
    )
    m: int | None = Field(
        default=None,
        ge=2,
        description=(
            "A person with fewer possible values than this is exposed. Default: the number that the policy requires."
        ),
    )
    again: int = Field(
        default=5,
        ge=2,
        le=50,
        description=("Without another release: how many times this one is made again with new decoys."),
    )

    @field_validator("other", "later", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        if isinstance(value, str | Path):
            return tuple(part.strip() for part in str(value).split(",") if part.strip())
        return tuple(map(str, value)) if isinstance(value, list | tuple) else value

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Return why the attack does not apply; None if it applies."""
        if drawn_statements(release):
            return None
        if release.rows_per_record > 1:
            return "it publishes the members of sets in shuffled rows, so the rows of a person cannot be matched"
        return "generalised values are intersected with those of one second release only, given by the option `other`"

    def run(self, case: Case) -> list[AttackResult]:
        if (reason := self.applies(case.release)) is not None and (case.release.rows_per_record > 1 or not self.other):
            raise self.refusal(reason)
        others = [open_release(path) for path in self.other]
        sets = case.sets
        if not sets:
            return compose(self, case, others)
        if not others:
            return [self._simulated(case, name, one) for name, one in sets.items()]
        return self._matched(case, sets, others)

    # ------------------------------------------------------------------ real releases

    def _matched(self, case: Case, sets: Mapping[str, Sets], others: Sequence[Release]) -> list[AttackResult]:
        rows, found = same_rows(case.release, others)
        if not len(rows):
            raise QueryError(
                "no row can be recognised in all releases.",
                hint="They must share exactly published columns that make some rows unique.",
            )
        people = None if case.original is None else known_people(case)
        truth_rows = np.full(case.release.records, -1, np.int64)
        if people is not None:
            theirs = people.exact_texts(exact_statements(case.release))
            mine, published = unique_pairs(theirs, exact_texts(case.release))
            truth_rows[published] = mine
        out = []
        for name, one in sets.items():
            both = [(release, places) for release, places in zip(others, found, strict=True) if name in release.designs]
            if both:
                out.append(self._one(case, one.take(rows), both, rows, people, truth_rows[rows]))
        if not out:
            raise QueryError(
                "no other release publishes the same decoy columns.", hint=("Give releases of the same table.")
            )
        return out

    def _one(
        self,
        case: Case,
        own: Sets,
        both: Sequence[tuple[Release, NDArray[np.int64]]],
        rows: NDArray[np.int64],
        people: People | None,
        person: NDArray[np.int64],
    ) -> AttackResult:
        prior, d = case.estimate([own.name]), own.design.d
        memoised = case.release.manifest.randomness == "memoised"
        more = [_evidence(own, release, places, memoised) for release, places in both]
        truth = None
        if people is not None:
            known = person >= 0
            own, rows, person = own.take(known), rows[known], person[known]
            more = [OtherSets(one.sets.take(known), one.place, one.repeats[known]) for one in more]
            truth = people.truth(own.statement)[person]
            if not len(rows):
                raise DataError(
                    "nobody of the original is recognised in all releases.",
                    hint=("Run the attack without the original."),
                )
        told: list[ByRow] = [own.likelihood, *(partial(one.likelihood, d=d) for one in more)]
        scenarios = _scenarios("releases", "releases", own, prior, told, rows + 1, truth, truth is not None)
        matched: dict[str, Any] = {"matched": len(own), "records": case.release.records, "releases": len(more) + 1}
        same = [float(one.repeats.mean()) for one in more]
        notes = [f"{len(own):,} of {case.release.records:,} rows are recognised in all releases"]
        if all(share == 1 for share in same):
            notes.append("all sets are memoised and repeat: nothing is gained")
        elif any(same):
            notes.append(f"{max(same):.1%} of the recognised rows repeat a memoised set")
        matched["repeated_sets"] = same
        return self._result(own, prior, scenarios, matched, notes, truth)

    # ------------------------------------------------------------------ the same again

    def _simulated(self, case: Case, name: str, one: Sets) -> AttackResult:
        """Draw sets by the published design repeatedly, for as many people as a tight bound needs."""
        people = None if case.original is None else known_people(case)
        if people is None:
            prior = case.estimate([name])
            pick = np.random.default_rng(0).choice(one.design.d, SIMULATED, p=prior)
        else:
            codes = people.truth(one.statement)
            prior, pick = tabulated([codes], [one.design.d]), codes[:SIMULATED]
        truth = np.asarray(pick, np.int64)
        drawn = [drawn_anew({name: one}, {name: truth}, str(number))[name] for number in range(self.again)]
        told, everybody = [sets.likelihood for sets in drawn], np.arange(1, len(truth) + 1)
        what = "releases with new decoys"
        scenarios = _scenarios("again", what, one, prior, told, everybody, truth, people is not None)
        note = "simulated: the release is made again with fresh decoys"
        if case.release.manifest.randomness == "memoised":
            note += "; the real release is memoised: releases under its secret repeat the sets and disclose nothing new"
        facts = {"simulated": len(truth), "releases": self.again}
        return self._result(one, prior, scenarios, facts, [note], truth)

    def _result(
        self,
        own: Sets,
        prior: NDArray[np.float64],
        scenarios: Sequence[Scenario],
        facts: Mapping[str, Any],
        notes: Sequence[str],
        truth: NDArray | None,
    ) -> AttackResult:
        bounds = f"Wilson intervals ({LEVEL:.0%}) cover the randomness of the decoys"
        return self.make_result(
            target=(own.name,),
            baseline=_figures(believe(1 if truth is None else len(truth), prior, (), truth)),
            scenarios=scenarios,
            facts={"values": own.design.d, "l": own.design.eta} | dict(facts),
            notes=(*notes, bounds),
            truth=truth is not None,
        )


def _figures(found: Believed) -> dict[str, float]:
    """Compute the figures from one interpretation of the sets."""
    out = {
        "alone": float((found.left == 1).mean()),
        "mean_left": float(found.left.mean()),
        "mean_belief": float(found.belief.mean()),
        "certain": float((found.belief >= CERTAIN).mean()),
        "impossible": float((found.left == 0).mean()),
    }
    return out | ({} if found.right is None else {"right": float(found.right.mean())})


def _scenarios(
    name: str,
    what: str,
    own: Sets,
    prior: NDArray[np.float64],
    told: Sequence[ByRow],
    rows: NDArray[np.int64],
    truth: NDArray[np.int64] | None,
    holder_only: bool,
) -> list[Scenario]:
    """Return what one release discloses of these rows, then two together, and so on."""
    lines = Lines("person" if holder_only else "row", rows, sample_of(len(rows), 0), holder_only)
    before = believe(len(rows), prior, told[:1], truth)
    out = []
    for many in range(1, len(told) + 1):
        found = before if many == 1 else believe(len(rows), prior, told[:many], truth)
        columns = {key: part for key, part in found.columns().items() if key not in ("before", "moved")}
        columns |= {"left_before": before.left, "belief_before": before.belief}
        figures = _figures(found)
        bounds = {share: wilson(figures[share], len(rows)) for share in figures if share in ("alone", "right")}
        title = "this release alone" if many == 1 else f"{many} {what}"
        labels = {"value": own.labels}
        out.append(lines.scenario(f"{name}-{many}", title, figures, columns, labels=labels, bounds=bounds))
    return out


def _evidence(own: Sets, release: Release, places: NDArray[np.int64], memoised: bool) -> OtherSets:
    """Collect the sets of the same people in another release. Memoised equal sets count once."""
    theirs = published_sets(release)[own.name].take(places)
    index = {label: code for code, label in enumerate(own.labels)}
    place = np.array([index.get(label, -1) for label in theirs.labels], np.int64)
    repeats = np.zeros(len(places), bool)
    if memoised and release.manifest.randomness == "memoised" and theirs.design.eta == own.design.eta:
        for rows in portions(len(places), own.design.eta):
            repeats[rows] = (np.sort(place[theirs.codes[rows]], axis=1) == own.codes[rows]).all(axis=1)
    return OtherSets(theirs, place, repeats)


def compose(attack: Intersection, case: Case, others: Sequence[Release]) -> list[AttackResult]:
    """Return one result for every sensitive column that all releases have. People are looked up if the original is
    known; otherwise rows are matched by columns that all releases publish exactly."""
    secrets = secret_statements(case.release)
    if large := [one.name for one in secrets if one.column.is_open]:
        raise QueryError(f"column {large[0]!r} has too many values to intersect.", hint="Give it bins.")
    shared = [one for one in secrets if all(one.name in release.columns for release in others)]
    if not shared:
        raise QueryError("the releases have no sensitive column in common.", hint="Give releases of the same table.")
    releases = [case.release, *others]
    if case.original is None:
        return _recognised(attack, releases, shared)
    names = [searchable(release) for release in releases]
    people = known_people(case)
    there = in_all(case, people, attack.later)
    finders = [find_people(release, people, keys) for release, keys in zip(releases, names, strict=True)]
    out = []
    with case.stage("Looking people up", len(shared)) as progress:
        for secret in shared:
            truth = people.published(secret)[there]
            sets = [
                _possible(release, secret, found, people.n)[there]
                for release, found in zip(releases, finders, strict=True)
            ]
            occurring = np.bincount(truth[truth >= 0], minlength=secret.d) > 0
            facts = {"people": len(truth), "in_all_by_key": bool(attack.later)}
            out.append(_result(attack, releases, secret, sets, occurring, people.rows[there], truth, facts))
            progress(1)
    return out


def in_all(case: Case, people: People, later: Sequence[str]) -> NDArray[np.bool_]:
    """Return who of the original is in all later originals, by the key of people; everybody if none is given.

    A person who is gone is covered by other people's rows: intersecting those would be about somebody else.
    """

    out = np.ones(people.n, bool)
    if not later:
        return out
    assert case.policy is not None
    options = case.policy.randomness
    keys = case.policy.people.key if options.record_key is None else (options.record_key,)
    if len(keys) != 1:
        raise QueryError(
            "people in both originals cannot be matched: the policy names no key of people.",
            hint="Name the column under [randomness] record_key or [people] key.",
        )
    rule = KeyRule(keys[0], options.key_unicode, options.key_spaces, options.key_case)
    mine = _keys(case.original, case.policy, rule).gather(people.rows - 1)
    for data in later:
        out &= mine.is_in(_keys(data, case.policy, rule).implode()).to_numpy()
    if not out.any():
        raise QueryError(
            "no person of the original is in all the later originals.",
            hint=("Give the tables from which the releases were made."),
        )
    return np.asarray(out)


def _keys(data: Any, policy: Policy, rule: KeyRule) -> pl.Series:
    """Return the normalised keys of all records of a table."""
    import polars as pl
    import pyarrow as pa

    source = open_table(data, policy)
    parts = [batch.column(rule.column).cast(pa.large_string()) for batch in source.batches([rule.column])]
    return pl.Series(rule.normalise(pa.chunked_array(parts, pa.large_string())))


def _recognised(attack: Intersection, releases: Sequence[Release], secrets: Sequence[Statement]) -> list[AttackResult]:
    """Match rows by the columns that both releases publish exactly, without the groups."""
    grouped = [one for one in secrets if all(release.column(one.name).is_class for release in releases)]
    rows, places = same_rows(releases[0], releases[1:]) if grouped else (np.zeros(0, np.int64), [])
    if not len(rows):
        raise QueryError(
            "rows of generalised values cannot be matched to single people without the original.",
            hint="Give the original, so that its people can be found in every release.",
        )
    out = []
    for secret in grouped:
        at = [rows, *places]
        sets = [_of_rows(release, secret, where) for release, where in zip(releases, at, strict=True)]
        facts = {"matched": len(rows), "records": releases[0].records}
        out.append(_result(attack, releases, secret, sets, np.ones(secret.d, bool), rows + 1, None, facts))
    return out


def _listed(release: Release, first: Statement) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Number every row's cell, and list the values that each cell leaves possible with their bounds. Values are codes
    of the first release; one extra code is for unknown values."""
    here = release.column(first.name)
    place = np.array([first.domain.index.get(label, first.d) for label in here.domain.values], np.int64)
    cells, kind = release.cells([here.name])[here.name].distinct()
    told = here.possible(cells)
    assert told is not None
    return kind, told[0], place[told[1]]


def _of_rows(release: Release, first: Statement, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a (rows, values of the first release) array of the contents of the groups of some rows."""
    kind, bounds, values = _listed(release, first)
    out = np.zeros((len(bounds) - 1, first.d + 1), bool)
    out[owners(bounds), values] = True
    return np.asarray(out[kind[rows], :-1])


def _result(
    attack: Intersection,
    releases: Sequence[Release],
    secret: Statement,
    sets: Sequence[NDArray[np.bool_]],
    occurring: NDArray[np.bool_],
    rows: NDArray[np.int64],
    truth: NDArray[np.int64] | None,
    facts: Mapping[str, Any],
) -> AttackResult:
    """Make the result: the possible values after every release, for the people or rows that were followed."""
    m = attack.m or max(least_of(release, secret.name) for release in releases)
    n = len(rows)
    lines = Lines("row" if truth is None else "person", rows, sample_of(n, 0), truth is not None)
    baseline, _ = _left(np.broadcast_to(occurring, (n, secret.d)), truth, m)
    possible, scenarios, exposed = np.ones((n, secret.d), bool), [], 0
    alone = np.full(n, secret.d)
    for number, here in enumerate(sets, 1):
        possible = possible & here
        alone = np.minimum(alone, here.sum(axis=1))
        left = possible.sum(axis=1)
        exposed = int(((left < m) & (left < alone)).sum())
        figures, columns = _left(possible, truth, m)
        bounds = {name: wilson(figures[name], n) for name in ("alone", "below")}
        name, title = f"releases-{number}", f"{number} releases" if number > 1 else "this release alone"
        scenarios.append(lines.scenario(name, title, figures, columns, bounds=bounds))
    who = "people" if truth is not None else "rows"
    titles = {"alone": "one value left", "below": f"fewer than {m} left", "mean_left": "values left"}
    return attack.make_result(
        target=(secret.name,),
        baseline=baseline,
        scenarios=scenarios,
        titles=titles,
        shares=("alone", "below", "mean_belief"),
        truth=truth is not None,
        facts={"values": secret.d, "releases": len(releases), "m": m, "exposed": exposed} | dict(facts),
        notes=(
            (
                f"{exposed:,} of {n:,} {who} have fewer than {m} possible values in all releases together, but not in "
                "any single release"
            ),
            "a belief is 1 over the number of possible values; frequencies are not used",
            f"Wilson intervals ({LEVEL:.0%}), with these {who} as a sample",
        ),
    )


def least_of(release: Release, column: str) -> int:
    """Return how many values of a column the release guarantees to leave possible; 2 if it states no number."""
    found = [2]
    for asked in release.manifest.requirements:
        if column in asked.get("on", ()):
            numbers = [asked.get(name) for name in ("m", "l")]
            found += [ceil(number) for number in numbers if isinstance(number, int | float)]
    return max(found)


def _possible(
    release: Release, first: Statement, found: tuple[Finder, list[NDArray]], people: int
) -> NDArray[np.bool_]:
    """Return a (people, values of the first release) array: the possible values of people in this release."""
    kind, bounds, values = _listed(release, first)
    d = first.d
    # one column more for values that the first release does not know, and for people whom nobody covers: all of them
    out = np.zeros((people, d + 1), bool)
    seen = np.zeros(people, bool)
    finder, codes = found
    for part in finder.candidates(codes, people):
        inside = np.zeros((len(part.bounds) - 1, d + 1), bool)
        left, entries = chosen(bounds, kind[part.order])
        inside[np.repeat(owners(part.bounds), np.diff(left)), values[entries]] = True
        out[part.people] = inside[part.of]
        seen[part.people] = True
    out[~seen] = True
    return out[:, :-1]


def _left(
    possible: NDArray[np.bool_], truth: NDArray[np.int64] | None, m: int
) -> tuple[dict[str, float], dict[str, NDArray]]:
    left = possible.sum(axis=1)
    belief = 1 / np.maximum(1, left)
    figures = {
        "alone": float((left == 1).mean()),
        "below": float((left < m).mean()),
        "mean_left": float(left.mean()),
        "mean_belief": float(belief.mean()),
    }
    columns = {"left": left, "belief": belief}
    if truth is not None:
        inside = possible[np.arange(len(truth)), np.maximum(truth, 0)] & (truth >= 0)
        right = np.where(inside, belief, 0.0)
        figures |= {"right": float(right.mean()), "truth_lost": float((~inside).mean())}
        columns["right"] = right
    return figures, columns
