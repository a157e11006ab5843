"""The linking attack (paper 001): harmless terms and a public table that says which label has which terms.

The adversary knows a person's quasi-identifiers and that the person is in the table, finds the records that could be
the person's, and links their terms to labels. The belief in label L is the mean of P(L | t) over these records; the
rise is what it gains over the prior (equation 1). The same attack on the raw table, on a merely k-anonymous one and on
one that is l-diverse in whole sets of terms shows what these do not protect from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.inference import Adversary, Inferred
from noren.audit.people import People, known_people
from noren.audit.rivals import rivals
from noren.audit.told import class_keys, find_people, searchable
from noren.engines.priors import priors
from noren.errors import DataError, QueryError
from noren.models.term_check import linked_terms
from noren.ragged import rows_in_order
from noren.release.release import Release
from noren.schema.knowledge import Knowledge
from noren.statements import Statement, TermCells, TermsStatement

SHARES = ("certain", "above_half", "mean_belief")
TITLES = {
    "mean_belief": "mean belief",
    "max_belief": "largest belief",
    "certain": "certain",
    "above_half": "above 1/2",
    "mean_rise": "mean rise",
}
TRUTH_TITLES = {"right": "right guess", "mean_truth_belief": "belief in the truth"}


@dataclass(frozen=True)
class LinkedTerms:
    """Columns of terms that one knowledge table links, and the published sets in them."""

    names: tuple[str, ...]
    knowledge: Knowledge
    cells: TermCells


class Linking(Attack):
    """Find a person by quasi-identifiers, then link the terms found to labels."""

    adversary: ClassVar[str] = (
        "has the knowledge table, knows that a person is in the table, and knows the person's exact quasi-identifiers"
    )
    success: ClassVar[str] = (
        "the largest belief in one label about a person, and its rise over the prior; certain from 0.999 on"
    )
    needs_rows: ClassVar[str | None] = "it links the terms of single rows, of which hardly two have the same"

    name: Literal["linking"] = "linking"
    truth: str | None = Field(default=None, description="Column of the original that holds every person's true label.")
    k: int | None = Field(
        default=None,
        ge=2,
        description="Smallest class of the k-anonymous and l-diverse tables; by default the policy's.",
    )
    l: int | None = Field(  # noqa: E741
        default=None,
        ge=2,
        description="Diversity of whole sets of terms in the l-diverse table; by default the policy's.",
    )
    diversity: Literal["frequency", "distinct"] = Field(
        default="frequency", description="Which l-diversity: no set of terms above a share of 1/l, or l distinct sets."
    )
    unlinked: Literal["ignore", "prior"] = Field(
        default="ignore", description="What a record that is linked to no label tells: nothing, or the prior."
    )

    @classmethod
    def applies(cls, release: Release) -> str | None:
        return None if _term_statements(release) else "the release has no sets of terms"

    def run(self, case: Case) -> list[AttackResult]:
        statements = _term_statements(case.release)
        if not statements:
            raise QueryError(
                "the release has no sets of terms, so there is nothing to link.",
                hint="This attack is about columns of the role 'quasi-sensitive'.",
            )
        searchable(case.release)
        if case.original is None:
            if self.truth is not None:
                raise QueryError("the truth is known from the original alone.", hint="Give the original too.")
            return [self._outside(case, names) for names in _by_knowledge(statements)]
        assert case.policy is not None
        bare = [one.name for one in statements if one.name not in case.policy.knowledge]
        absent = [name for name in case.policy.knowledge if name not in {one.name for one in statements}]
        if bare:
            raise DataError(
                f"the policy has no knowledge table for {bare[0]!r}, which the release publishes as terms.",
                hint=f"Give {bare[0]!r} the role 'quasi-sensitive' with its knowledge, as when the release was made.",
            )
        if absent:
            raise DataError(
                f"the release has no terms {absent[0]!r}, which the policy links to labels.",
                hint="Give the policy that the release was made with.",
            )
        if self.truth is not None and self.truth in case.policy.knowledge:
            raise QueryError(
                f"column {self.truth!r} holds sets of terms, not a true label.",
                hint="Name a column with one label per person.",
            )
        people = known_people(case)
        records = people.records
        targets = [tuple(names) for names in records.together()]
        truths = _truths(self.truth, people, [records.terms[names[0]].knowledge for names in targets])
        pairs = zip(targets, truths, strict=True)
        return [self._inside(case, people, names, truth) for names, truth in pairs]

    # ------------------------------------------------------------------ outsider and holder

    def _outside(self, case: Case, names: Sequence[str]) -> AttackResult:
        """What anybody can compute who has the release."""
        terms = _published(case.release, names, case.release.column(names[0]).column.known)
        alpha, basis = terms.knowledge.priors, "the knowledge table"
        if alpha is None:
            alpha, basis = _mean(terms.cells, terms.knowledge), "an estimate from the release"
        adversary = Adversary(terms.knowledge, alpha, self.unlinked == "prior")
        with case.stage("Linking rows", None):
            row = self._rows(case.release, terms, adversary, holder_only=False)
        return self._result(terms, adversary, basis, (row,), {}, [])

    def _inside(self, case: Case, people: People, names: Sequence[str], truth: NDArray | None) -> AttackResult:
        """What the holder can compute: the same people in every table."""
        records = people.records
        knowledge = records.terms[names[0]].knowledge
        terms = _published(case.release, names, knowledge)
        own = linked_terms(
            [(TermsStatement(records.terms[name].column), records.terms[name].cells) for name in names], knowledge
        )
        alpha, basis = knowledge.priors, "the knowledge table"
        if alpha is None:
            alpha, basis = priors(records)[names[0]].shares, "the original"
        adversary = Adversary(knowledge, alpha, self.unlinked == "prior")
        chosen = rivals(self, case, people, names)
        with case.stage("Linking people", 2 + len(chosen.tables)) as progress:
            order, bounds = rows_in_order(people.keys(records.quasi), people.n)
            raw = adversary.in_groups(own, order, bounds, truth)
            scenarios = [_scenario("raw", "raw table", people, raw, adversary)]
            progress(1)
            for name, title, finder in chosen.tables:
                codes = [records.codes[column] for column in records.quasi]
                found = adversary.in_table(own, finder.candidates(codes, people.n), people.n, truth)
                scenarios.append(_scenario(name, title, people, found, adversary))
                progress(1)
            finder, codes = find_people(case.release, people, searchable(case.release))
            found = adversary.in_table(terms.cells, finder.candidates(codes, people.n), people.n, truth)
            scenarios.append(_scenario("release", "this release", people, found, adversary))
            rows = self._rows(case.release, terms, adversary, holder_only=knowledge.priors is None)
            progress(1)
        notes = [*chosen.notes, *_notes(found, truth)]
        return self._result(terms, adversary, basis, (*scenarios, rows), chosen.facts, notes, truth)

    def _rows(self, release: Release, terms: LinkedTerms, adversary: Adversary, holder_only: bool) -> Scenario:
        """Every published row: the group of records that look like it. The rise shows a prior from the original."""
        order, bounds = rows_in_order(class_keys(release, searchable(release)), release.rows)
        told = adversary.in_groups(terms.cells, order, bounds, None)
        frame = told.frame(np.arange(1, release.records + 1), adversary)
        title = "this release, row by row"
        return Scenario("release-rows", title, "row", told.summary(adversary), frame, holder_only)

    def _result(
        self,
        terms: LinkedTerms,
        adversary: Adversary,
        basis: str,
        scenarios: tuple[Scenario, ...],
        facts: Mapping[str, Any],
        notes: Sequence[str],
        truth: NDArray | None = None,
    ) -> AttackResult:
        titles = TITLES if truth is None else TITLES | TRUTH_TITLES
        knowledge = terms.knowledge
        told: dict[str, Any] = {"labels": len(knowledge.labels), "terms": len(knowledge.terms), "prior": basis}
        return AttackResult(
            attack=self.name,
            target=terms.names,
            adversary=self.adversary,
            success=self.success,
            baseline=adversary.baseline(truth),
            scenarios=scenarios,
            titles=titles,
            measure="belief",
            shares=(*SHARES, *(("right",) if truth is not None else ())),
            facts=told | {"unlinked": self.unlinked} | dict(facts),
            notes=(*notes, *_doubt(scenarios[-1].summary)),
        )


def _scenario(name: str, title: str, people: People, found: Inferred, adversary: Adversary) -> Scenario:
    frame = found.frame(people.rows, adversary)
    return Scenario(name, title, "person", found.summary(adversary), frame, holder_only=True)


def _notes(found: Inferred, truth: NDArray | None) -> list[str]:
    """What a reader must know about the people found in the release."""
    lost, several = int((found.groups == 0).sum()), int((found.groups > 1).sum())
    out = []
    if lost:
        out.append(f"{_people(lost, 'fall')} into no published group, so that only what was known before is believed")
    if several:
        out.append(f"{_people(several, 'fall')} into several published groups, and all their records count")
    if truth is not None and (unknown := int((truth < 0).sum())):
        out.append(f"{_people(unknown, 'lack')} a true label and count neither as right guesses nor as wrong ones")
    return out


def _doubt(rows: Mapping[str, float]) -> list[str]:
    """What records without a link do to the beliefs in the published groups."""
    share = rows["mean_unlinked_records"]
    if not share:
        return []
    alone = rows["max_belief_linked"]
    return [
        f"{share:.1%} of the published records are linked to no label; without them the largest belief is {alone:.3f}"
    ]


def _people(count: int, verb: str) -> str:
    return f"1 person {verb}s" if count == 1 else f"{count:,} people {verb}"


# ---------------------------------------------------------------------- what is published


def _term_statements(release: Release) -> list[Statement]:
    return [one for one in release.statements if one.terms is not None]


def _by_knowledge(statements: Sequence[Statement]) -> list[tuple[str, ...]]:
    """The columns of every knowledge table that the release comes with."""
    out: dict[int, list[str]] = {}
    for one in statements:
        out.setdefault(id(one.column.known), []).append(one.name)
    return [tuple(names) for names in out.values()]


def _published(release: Release, names: Sequence[str], knowledge: Knowledge) -> LinkedTerms:
    """The published sets of terms of all columns that are read together."""
    cells = release.cells(list(names))
    parts = [(release.column(name), cells[name]) for name in names]
    return LinkedTerms(tuple(names), knowledge, linked_terms(parts, knowledge))


def _mean(cells: TermCells, knowledge: Knowledge) -> NDArray[np.float64]:
    from noren.models.kernels import mean_beliefs

    return np.asarray(mean_beliefs(cells.offsets, cells.data, *knowledge.links))


def _truths(column: str | None, people: People, knowledge: Sequence[Knowledge]) -> list[NDArray[np.int64] | None]:
    """Every person's true label as a code of the knowledge table that knows these labels; None for the others."""
    if column is None:
        return [None] * len(knowledge)
    texts, mine = people.texts(column)
    places = []
    for known in knowledge:
        index = {label: code for code, label in enumerate(known.labels)}
        places.append(np.array([*(index.get(text.strip(), -2) for text in texts), -1], np.int64)[mine])
    strangers = [int((place == -2).sum()) for place in places]
    best = int(np.argmin(strangers))
    if (places[best] == -1).all():
        raise DataError(f"column {column!r} holds no true label at all.", hint="Name the column with the labels.")
    if strangers[best]:
        raise DataError(
            f"{strangers[best]} of {len(mine)} cells of {column!r} are no labels of the knowledge table.",
            hint="Write labels as the table spells them, and add those it lacks; leave unknown ones empty.",
        )
    return [places[i] if i == best else None for i in range(len(knowledge))]
