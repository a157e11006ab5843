"""The intersection attack: what two or more releases about the same people tell together.

Decoy sets: rows are matched by columns that both releases publish exactly and that make a row unique in either, then
the sets of a person are read together. Sets drawn anew share little but the truth; memoised ones are the same again
and tell nothing new. General values and groups: a person who is in all tables has one of the values that are possible
in every one of them (the composition attack of Ganta, Kasiviswanathan and Smith, 2008); whoever plays it must know the
person's quasi-identifiers, so it needs the original.

Without another release the attack asks what would happen if this one were made again with new decoys.

General values and groups of several releases, intersected person by person.

In every release a person's record is one of those whose published quasi-identifiers cover the person's own. The values
that these records may have are possible; what is possible in all releases is left. Groups beside exact columns need no
original: whoever finds the same exact row in two releases intersects its groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.people import People, exact_statements, exact_texts, known_people, same_rows, unique_pairs
from noren.audit.sample import LEVEL, wilson
from noren.audit.sets import (
    CERTAIN,
    Sets,
    believe,
    constant,
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
TITLES = {"alone": "one value left", "mean_left": "values left", "mean_belief": "mean belief"}
TRUTH_TITLES = {"right": "right guess"}
SHARES = ("alone", "mean_belief")


@dataclass(frozen=True)
class OtherSets:
    """One more release: the sets of the matched people, and which of them merely repeat the first."""

    sets: Sets
    place: NDArray[np.int64]
    """Its values as codes of the first release's domain; -1 for those that it does not know."""
    repeats: NDArray[np.bool_]

    def likelihood(self, rows: slice, d: int) -> NDArray[np.float64]:
        """(rows, values of the first domain). A value that this release cannot hold is impossible."""
        own = self.sets.likelihood(rows)
        out = np.zeros((own.shape[0], d))
        known = self.place >= 0
        out[:, self.place[known]] = own[:, known]
        out[self.repeats[rows]] = 1.0
        return out


class Intersection(Attack):
    """Several releases of the same people, read together."""

    adversary: ClassVar[str] = (
        "has all the releases, knows that a person is in each, and recognises rows of one person by exactly published "
        "columns (for general values by the person's quasi-identifiers)"
    )
    success: ClassVar[str] = "the share of recognised people with a single value left, and how many values are left"
    needs_rows: ClassVar[str | None] = "it recognises single rows in two releases"

    name: Literal["intersection"] = "intersection"
    other: tuple[str, ...] = Field(
        default=(), description="Directories of further releases of the same people, separated by commas."
    )
    later: tuple[str, ...] = Field(
        default=(), description="The originals of the further releases: who is in all of them is then known by key."
    )
    m: int | None = Field(
        default=None,
        ge=2,
        description="Fewer values left than this expose a person. Default: what is required.",
    )
    again: int = Field(
        default=5, ge=2, le=50, description="Without another release: how often this one is made with new decoys."
    )

    @field_validator("other", "later", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        if isinstance(value, str | Path):
            return tuple(part.strip() for part in str(value).split(",") if part.strip())
        return tuple(map(str, value)) if isinstance(value, list | tuple) else value

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Why there is nothing to attack; None if there is."""
        if drawn_statements(release):
            return None
        if release.rows_per_record > 1:
            return "it publishes the members of sets in shuffled rows, and nobody sees which belong together"
        return "general values are intersected with those of a second release only, which the option other names"

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
            raise QueryError("no other release publishes the same decoy columns.", hint="Name releases of this table.")
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
                raise DataError("nobody of the original is recognised in all releases.", hint="Leave out the original.")
        before = believe(len(own), d, constant(prior), own.likelihood, truth)
        scenarios = [_scenario("releases-1", "this release alone", before, before, rows, own, truth is not None)]
        for many in range(1, len(more) + 1):
            told = [one.likelihood for one in more[:many]]

            def evidence(at: slice, told: Any = told) -> NDArray[np.float64]:
                out = own.likelihood(at)
                for one in told:
                    out = out * one(at, d)
                return np.asarray(out)

            found = believe(len(own), d, constant(prior), evidence, truth)
            title = f"{many + 1} releases"
            scenarios.append(_scenario(f"releases-{many + 1}", title, found, before, rows, own, truth is not None))
        matched: dict[str, Any] = {"matched": len(own), "records": case.release.records, "releases": len(more) + 1}
        same = [float(one.repeats.mean()) for one in more]
        notes = [f"{len(own):,} of {case.release.records:,} rows are recognised in all releases"]
        if all(share == 1 for share in same):
            notes.append("all sets are memoised and the same again: nothing is gained")
        elif any(same):
            notes.append(f"{max(same):.1%} of the recognised rows repeat a memoised set")
        matched["repeated_sets"] = same
        return self._result(own, _unmoved(prior, truth), scenarios, matched, notes, truth is not None)

    # ------------------------------------------------------------------ the same again

    def _simulated(self, case: Case, name: str, one: Sets) -> AttackResult:
        """Sets of as many people as are needed for a tight bound, drawn again and again by the published design."""
        people = None if case.original is None else known_people(case)
        if people is None:
            prior = case.estimate([name])
            pick = np.random.default_rng(0).choice(one.design.d, SIMULATED, p=prior)
        else:
            codes = people.truth(one.statement)
            prior, pick = tabulated([codes], [one.design.d]), codes[:SIMULATED]
        truth = np.asarray(pick, np.int64)
        drawn = [drawn_anew({name: one}, {name: truth}, str(number))[name] for number in range(self.again)]
        before = believe(len(truth), one.design.d, constant(prior), drawn[0].likelihood, truth)
        everybody, holder_only = np.arange(1, len(truth) + 1), people is not None
        scenarios = [_scenario("again-1", "this release alone", before, before, everybody, one, holder_only)]
        for many in range(2, self.again + 1):

            def evidence(at: slice, many: int = many) -> NDArray[np.float64]:
                return np.asarray(np.prod([sets.likelihood(at) for sets in drawn[:many]], axis=0))

            found = believe(len(truth), one.design.d, constant(prior), evidence, truth)
            title = f"{many} releases with new decoys"
            scenarios.append(_scenario(f"again-{many}", title, found, before, everybody, one, holder_only))
        note = "simulated: as if this release were made again without memoised decoys"
        if case.release.manifest.randomness == "memoised":
            note += "; it is memoised, so that under its secret nothing of this happens"
        facts = {"simulated": len(truth), "releases": self.again}
        return self._result(one, _unmoved(prior, truth), scenarios, facts, [note], True)

    def _result(
        self,
        own: Sets,
        baseline: dict[str, float],
        scenarios: Sequence[Scenario],
        facts: Mapping[str, Any],
        notes: Sequence[str],
        truth: bool,
    ) -> AttackResult:
        bounds = f"bounds are Wilson's, {LEVEL:.0%}, over the chance of the decoys"
        return self.make_result(
            target=(own.name,),
            baseline=baseline,
            scenarios=scenarios,
            titles=TITLES | (TRUTH_TITLES if truth else {}),
            shares=(*SHARES, *(("right",) if truth else ())),
            facts={"values": own.design.d, "l": own.design.eta} | dict(facts),
            notes=(*notes, bounds),
        )


def _unmoved(prior: NDArray[np.float64], truth: NDArray | None) -> dict[str, float]:
    """The same figures for one who knows how common the values are, and no release."""
    peak, left = float(prior.max()), int((prior > 0).sum())
    out = {"alone": float(left == 1), "mean_left": float(left), "mean_belief": peak}
    out |= {"certain": float(peak >= CERTAIN), "impossible": 0.0}
    return out | ({} if truth is None else {"right": float((truth == prior.argmax()).mean())})


def _figures(found: Any) -> dict[str, float]:
    """The figures of one reading of sets."""
    out = {
        "alone": float((found.left == 1).mean()),
        "mean_left": float(found.left.mean()),
        "mean_belief": float(found.belief.mean()),
        "certain": float((found.belief >= CERTAIN).mean()),
        "impossible": float((found.left == 0).mean()),
    }
    return out | ({} if found.right is None else {"right": float(found.right.mean())})


def _scenario(name: str, title: str, found: Any, before: Any, rows: NDArray, own: Sets, holder_only: bool) -> Scenario:
    import polars as pl

    frame = found.frame(rows + (0 if name.startswith("again") else 1), own.labels).drop("before", "moved")
    frame = frame.with_columns(left_before=pl.Series(before.left), belief_before=pl.Series(before.belief))
    figures = _figures(found)
    bounds: dict[str, tuple[float, float]] = {}
    for share in ("alone", "right"):
        if share in figures:
            bounds[share] = wilson(figures[share], len(rows))
    return Scenario(name, title, "person" if holder_only else "row", figures, frame, holder_only, bounds)


def _evidence(own: Sets, release: Release, places: NDArray[np.int64], memoised: bool) -> OtherSets:
    """The sets of the same people in another release. Memoised in both and the same: drawn once, not twice."""
    theirs = published_sets(release)[own.name].take(places)
    index = {label: code for code, label in enumerate(own.labels)}
    place = np.array([index.get(label, -1) for label in theirs.labels], np.int64)
    repeats = np.zeros(len(places), bool)
    if memoised and release.manifest.randomness == "memoised" and theirs.design.eta == own.design.eta:
        for rows in portions(len(places), own.design.eta):
            repeats[rows] = (np.sort(place[theirs.codes[rows]], axis=1) == own.codes[rows]).all(axis=1)
    return OtherSets(theirs, place, repeats)


def compose(attack: Intersection, case: Case, others: Sequence[Release]) -> list[AttackResult]:
    """One result for every sensitive column that all releases have: people are looked up where the original is known,
    else rows are recognised by what both publish exactly."""
    secrets = secret_statements(case.release)
    if large := [one.name for one in secrets if one.column.is_open]:
        raise QueryError(f"column {large[0]!r} has too many values to intersect.", hint="Give it bins.")
    shared = [one for one in secrets if all(one.name in release.columns for release in others)]
    if not shared:
        raise QueryError("no sensitive column is in all releases.", hint="Name releases of this table.")
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
    """Who of the original is in the originals of all later releases, by the key of people; everybody if none is given.

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
            "nobody can say who is in both originals: the policy names no key of people.",
            hint="Name the column under [randomness] record_key or [people] key.",
        )
    rule = KeyRule(keys[0], options.key_unicode, options.key_spaces, options.key_case)
    mine = _keys(case.original, case.policy, rule).gather(people.rows - 1)
    for data in later:
        out &= mine.is_in(_keys(data, case.policy, rule).implode()).to_numpy()
    if not out.any():
        raise QueryError("nobody of the original is in all later ones.", hint="Give the tables that were released.")
    return np.asarray(out)


def _keys(data: Any, policy: Policy, rule: KeyRule) -> pl.Series:
    """The keys of all records of a table, evened out."""
    import polars as pl
    import pyarrow as pa

    source = open_table(data, policy)
    parts = [batch.column(rule.column).cast(pa.large_string()) for batch in source.batches([rule.column])]
    return pl.Series(rule.evened(pa.chunked_array(parts, pa.large_string())))


def _recognised(attack: Intersection, releases: Sequence[Release], secrets: Sequence[Statement]) -> list[AttackResult]:
    """Rows that both releases publish exactly but for their groups: whoever recognises one intersects its groups."""
    grouped = [one for one in secrets if all(release.column(one.name).is_class for release in releases)]
    rows, places = same_rows(releases[0], releases[1:]) if grouped else (np.zeros(0, np.int64), [])
    if not len(rows):
        raise QueryError(
            "rows of general values belong to nobody in particular, so an outsider has nobody to look up.",
            hint="Give the original: its people are looked up in every release.",
        )
    out = []
    for secret in grouped:
        at = [rows, *places]
        sets = [_of_rows(release, secret, where) for release, where in zip(releases, at, strict=True)]
        facts = {"matched": len(rows), "records": releases[0].records}
        out.append(_result(attack, releases, secret, sets, np.ones(secret.d, bool), rows + 1, None, facts))
    return out


def _of_rows(release: Release, first: Statement, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(rows, values of the first release): what the groups of some rows hold."""
    here = release.column(first.name)
    place = np.array([first.domain.index.get(label, first.d) for label in here.domain.values], np.int64)
    cells, kind = release.cells([here.name])[here.name].take(rows).distinct()
    told = here.possible(cells)
    assert told is not None
    out = np.zeros((len(cells), first.d + 1), bool)
    out[owners(told[0]), place[told[1]]] = True
    return np.asarray(out[kind, :-1])


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
    """What is left after every release, for the people or rows that were followed."""
    m = attack.m or max(least_of(release, secret.name) for release in releases)
    n, by = len(rows), "row" if truth is None else "person"
    baseline, _ = _left(np.broadcast_to(occurring, (n, secret.d)), truth, rows, m)
    possible, scenarios, exposed = np.ones((n, secret.d), bool), [], 0
    alone = np.full(n, secret.d)
    for number, here in enumerate(sets, 1):
        possible = possible & here
        alone = np.minimum(alone, here.sum(axis=1))
        left = possible.sum(axis=1)
        exposed = int(((left < m) & (left < alone)).sum())
        figures, frame = _left(possible, truth, rows, m)
        bounds = {name: wilson(figures[name], n) for name in ("alone", "below")}
        name, title = f"releases-{number}", f"{number} releases" if number > 1 else "this release alone"
        scenarios.append(Scenario(name, title, by, figures, frame, truth is not None, bounds))  # type: ignore[arg-type]
    who = "people" if truth is not None else "rows"
    titles = {"alone": "one value left", "below": f"fewer than {m} left", "mean_left": "values left"}
    return attack.make_result(
        target=(secret.name,),
        baseline=baseline,
        scenarios=scenarios,
        titles=titles | ({"right": "right guess"} if truth is not None else {}),
        shares=("alone", "below", "mean_belief", *(("right",) if truth is not None else ())),
        facts={"values": secret.d, "releases": len(releases), "m": m, "exposed": exposed} | dict(facts),
        notes=(
            f"{exposed:,} of {n:,} {who} are left fewer than {m} values by all releases together and by none alone",
            "a belief is 1 over the values that are left: how often each occurs is not used",
            f"bounds are Wilson's, {LEVEL:.0%}, as if these {who} were a sample",
        ),
    )


def least_of(release: Release, column: str) -> int:
    """How many values a release promises to leave possible of a column; 2 where it promises no number."""
    found = [2]
    for asked in release.manifest.requirements:
        if column in asked.get("on", ()):
            numbers = [asked.get(name) for name in ("m", "l")]
            found += [ceil(number) for number in numbers if isinstance(number, int | float)]
    return max(found)


def _possible(
    release: Release, first: Statement, found: tuple[Finder, list[NDArray]], people: int
) -> NDArray[np.bool_]:
    """(people, values of the first release): what somebody who is in this release may have."""
    here, d = release.column(first.name), first.d
    place = np.array([first.domain.index.get(label, d) for label in here.domain.values], np.int64)
    cells, kind = release.cells([here.name])[here.name].distinct()
    told = here.possible(cells)
    assert told is not None
    bounds, values = told
    # one column more for values that the first release does not know, and for people whom nobody covers: all of them
    out = np.zeros((people, d + 1), bool)
    seen = np.zeros(people, bool)
    finder, codes = found
    for part in finder.candidates(codes, people):
        inside = np.zeros((len(part.bounds) - 1, d + 1), bool)
        left, entries = chosen(bounds, kind[part.order])
        inside[np.repeat(owners(part.bounds), np.diff(left)), place[values[entries]]] = True
        out[part.people] = inside[part.of]
        seen[part.people] = True
    out[~seen] = True
    return out[:, :-1]


def _left(
    possible: NDArray[np.bool_], truth: NDArray[np.int64] | None, rows: NDArray[np.int64], m: int
) -> tuple[dict[str, float], Any]:
    import polars as pl

    left = possible.sum(axis=1)
    belief = 1 / np.maximum(1, left)
    figures = {
        "alone": float((left == 1).mean()),
        "below": float((left < m).mean()),
        "mean_left": float(left.mean()),
        "mean_belief": float(belief.mean()),
    }
    frame = {"record": rows, "left": left, "belief": belief}
    if truth is not None:
        inside = possible[np.arange(len(truth)), np.maximum(truth, 0)] & (truth >= 0)
        right = np.where(inside, belief, 0.0)
        figures |= {"right": float(right.mean()), "truth_lost": float((~inside).mean())}
        frame["right"] = right
    return figures, pl.DataFrame({name: pl.Series(part) for name, part in frame.items()})
