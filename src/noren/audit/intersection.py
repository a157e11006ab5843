"""The intersection attack: what two or more releases about the same people tell together.

Decoy sets: rows are matched by columns that both releases publish exactly and that make a row unique in either, then
the sets of a person are read together. Sets drawn anew share little but the truth; memoised ones are the same again
and tell nothing new. General values and groups: a person who is in all tables has one of the values that are possible
in every one of them (the composition attack of Ganta, Kasiviswanathan and Smith, 2008); whoever plays it must know the
person's quasi-identifiers, so it needs the original.

Without another release the attack asks what would happen if this one were made again with new decoys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.bounds import LEVEL, wilson
from noren.audit.composition import compose
from noren.audit.people import People, exact_statements, exact_texts, known_people, same_rows, unique_pairs
from noren.audit.sets import (
    CERTAIN,
    Sets,
    believe,
    constant,
    drawn_anew,
    drawn_statements,
    estimated,
    portions,
    published_sets,
    tabulated,
)
from noren.errors import DataError, QueryError
from noren.release.release import Release, open_release

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
            raise QueryError(f"the intersection attack does not apply to this release: {reason}.")
        others = [open_release(path) for path in self.other]
        sets = published_sets(case.release)
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
        prior, d = estimated(case.release, [own.name]), own.design.d
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
            prior = estimated(case.release, [name])
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
        return AttackResult(
            attack=self.name,
            target=(own.name,),
            adversary=self.adversary,
            success=self.success,
            baseline=baseline,
            scenarios=tuple(scenarios),
            titles=TITLES | (TRUTH_TITLES if truth else {}),
            measure="belief",
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
