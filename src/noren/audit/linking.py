"""The linking attack (paper 001): harmless terms and a public table that says which label has which terms.

The adversary knows a person's quasi-identifiers and that the person is in the table, finds the records that could be
the person's, and links their terms to labels. The belief in label L is the mean of P(L | t) over these records; the
rise is what it gains over the prior (equation 1). The same attack on the raw table, on a merely k-anonymous one and on
one that is l-diverse in whole sets of terms shows what these do not protect from.

What might have been published instead: a table that is k-anonymous and no more, and one that is l-diverse besides.

Both publish all terms. For l-diversity the whole set of a person's terms is one sensitive value, as one would try it
who does not think of the knowledge table (paper 001, section 1.1). Classes are Mondrian's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Scenario, make_lines
from noren.audit.people import People, known_people
from noren.audit.targets import find_people, searchable, sorted_rows
from noren.engines import Recode, Records
from noren.engines.finding import Finder, Matches, exact_nodes, numbered_sets
from noren.engines.records import priors
from noren.errors import DataError, NorenError, QueryError
from noren.methods.mechanism.refusals import repeatable
from noren.methods.mondrian import Mondrian
from noren.models import DistinctLDiversity, FrequencyLDiversity, KAnonymity
from noren.models.base import Model
from noren.models.term_check import linked_terms
from noren.policy.policy import Policy
from noren.ragged import in_order, offsets_of, owners, rows_in_order
from noren.release.release import Release
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.statements import Statement, TermCells, TermsStatement

if TYPE_CHECKING:
    import polars as pl


CERTAIN = 0.999
TIE = 1e-12


@dataclass(frozen=True)
class Inferred:
    """One entry per person, or per published row."""

    groups: NDArray[np.int64]
    """How many groups could hold the person; 0 leaves the adversary with the prior."""
    candidates: NDArray[np.int64]
    """How many records could be the person's."""
    linked_records: NDArray[np.int64]
    """How many of these are linked to a label at all."""
    labels: NDArray[np.int64]
    """How many labels are believed in."""
    belief: NDArray[np.float64]
    """The largest belief in one label."""
    top: NDArray[np.int64]
    """The first label that is believed so; -1 for none."""
    ties: NDArray[np.int64]
    """How many labels are believed so."""
    belief_linked: NDArray[np.float64]
    """The largest belief where records that are linked to nothing are left out instead of counted as doubt."""
    rise: NDArray[np.float64]
    """The largest difference between a belief and its prior (equation 1)."""
    truth_belief: NDArray[np.float64] | None = None
    truth_prior: NDArray[np.float64] | None = None
    right: NDArray[np.float64] | None = None
    """The chance that the best guess is right: 1 over the ties if the truth is among them."""

    def frame(self, rows: NDArray[np.int64], adversary: Adversary) -> pl.DataFrame:
        """One line per person."""
        columns: dict[str, NDArray] = {"record": rows}
        for one in fields(self):
            found = getattr(self, one.name)
            if one.name == "top":
                columns |= {"linked": self.labels > 0, "label": found}
            elif found is not None:
                columns[one.name] = found
        return make_lines(columns, {"label": adversary.knowledge.labels})

    def summary(self, adversary: Adversary) -> dict[str, float]:
        """Figures over all people."""
        n = max(1, len(self.belief))
        doubt = 1 - self.linked_records / np.maximum(1, self.candidates)
        out = {
            "mean_belief": float(self.belief.sum() / n),
            "max_belief": float(self.belief.max(initial=0.0)),
            "certain": float((self.belief >= CERTAIN).sum() / n),
            "above_half": float((self.belief > 0.5 + TIE).sum() / n),
            "mean_rise": float(self.rise.sum() / n),
            "max_rise": float(self.rise.max(initial=-1.0)),
            "mean_labels": float(self.labels.sum() / n),
            "linked": float((self.labels > 0).sum() / n),
            "mean_unlinked_records": float(doubt[self.groups > 0].mean()) if (self.groups > 0).any() else 0.0,
            "mean_belief_linked": float(self.belief_linked.sum() / n),
            "max_belief_linked": float(self.belief_linked.max(initial=0.0)),
            "without_group": int((self.groups == 0).sum()),
        }
        if self.right is not None and self.truth_belief is not None:
            out |= {"right": float(np.nanmean(self.right)), "mean_truth_belief": float(np.nanmean(self.truth_belief))}
        return out


@dataclass(frozen=True)
class Adversary:
    """A knowledge table and what is believed about anybody before a release."""

    knowledge: Knowledge
    alpha: NDArray[np.float64]
    prior: bool = False
    """Whether a record that is linked to nothing tells the prior; otherwise it tells nothing."""

    @cached_property
    def _best(self) -> NDArray[np.bool_]:
        """The labels that are most believed in before."""
        return np.asarray((self.alpha >= self.alpha.max() - TIE) & (self.alpha > 0))

    def _guessed(self, truth: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chance of guessing right by the prior alone; not a number where the truth is not known."""
        chance = self._best / max(1, int(self._best.sum()))
        return np.where(truth < 0, np.nan, chance[truth])

    def baseline(self, truth: NDArray[np.int64] | None) -> dict[str, float]:
        """The figures of `Inferred.summary` before anything is published."""
        peak = float(self.alpha.max())
        out = {
            "mean_belief": peak,
            "max_belief": peak,
            "certain": float(peak >= CERTAIN),
            "above_half": float(peak > 0.5 + TIE),
            "mean_rise": 0.0,
            "max_rise": 0.0,
            "mean_labels": float((self.alpha > 0).sum()),
        }
        if truth is not None:
            known = truth[truth >= 0]
            out |= {"right": float(np.nanmean(self._guessed(truth)))}
            out |= {"mean_truth_belief": float(self.alpha[known].mean())}
        return out

    def in_groups(self, cells: TermCells, order: NDArray, bounds: NDArray, truth: NDArray[np.int64] | None) -> Inferred:
        """Everybody's own group: the records of the table are the people."""
        groups = len(bounds) - 1
        found = Matches(order, owners(bounds), np.ones(groups, np.int64), order, bounds)
        return self.in_table(cells, [found], len(cells), truth)

    def in_table(
        self, cells: TermCells, found: Iterable[Matches], people: int, truth: NDArray[np.int64] | None
    ) -> Inferred:
        """What the records that could be each person's tell; where there are none, the prior."""
        out = self._unmoved(people, truth)
        for part in found:
            self._ask(cells, part, truth, out)
        return out

    def _unmoved(self, people: int, truth: NDArray[np.int64] | None) -> Inferred:
        """Everybody as before the release."""
        nothing = np.zeros(people, np.int64)
        peak, ties = float(self.alpha.max()), int(self._best.sum())
        top = int(np.argmax(self._best)) if ties else -1
        out = Inferred(
            groups=nothing,
            candidates=nothing.copy(),
            linked_records=nothing.copy(),
            labels=np.full(people, int((self.alpha > 0).sum())),
            belief=np.full(people, peak),
            top=np.full(people, top),
            ties=np.full(people, ties),
            belief_linked=np.full(people, peak),
            rise=np.zeros(people),
        )
        if truth is None:
            return out
        before = np.where(truth < 0, np.nan, self.alpha[truth])
        known = {"truth_belief": before, "truth_prior": before.copy(), "right": self._guessed(truth)}
        return Inferred(**{one.name: getattr(out, one.name) for one in fields(out)[:9]}, **known)

    def _ask(self, cells: TermCells, part: Matches, truth: NDArray[np.int64] | None, out: Inferred) -> None:
        from noren.audit import kernels as kernel

        sets = len(part.bounds) - 1
        by_set = in_order(part.of)
        people, of = part.people[by_set], part.of[by_set]
        if truth is None:
            asked, asked_bounds = np.empty(0, np.int64), np.zeros(sets + 1, np.int64)
        else:
            asked = truth[people]
            asked_bounds = offsets_of(np.bincount(of, minlength=sets))
        knowledge = self.knowledge
        told, answers = kernel.attack_groups(
            part.order, part.bounds, cells.offsets, cells.data, *knowledge.links,
            np.asarray(self.alpha, np.float64), self.prior, asked_bounds, asked,
        )  # fmt: skip
        out.groups[people] = part.groups[of]
        out.candidates[people] = np.diff(part.bounds)[of]
        places = {
            "linked_records": kernel.LINKED,
            "labels": kernel.LABELS,
            "belief": kernel.PEAK,
            "top": kernel.TOP,
            "ties": kernel.TIES,
            "belief_linked": kernel.PEAK_LINKED,
            "rise": kernel.RISE,
        }
        for name, place in places.items():
            getattr(out, name)[people] = told[of, place]
        if truth is not None and out.truth_belief is not None and out.right is not None:
            out.truth_belief[people] = answers[:, 0]
            # where nothing is linked, the best guess is that of before
            guess = np.where(told[of, kernel.PEAK] > 0, answers[:, 1], self._guessed(asked))
            out.right[people] = guess


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
        order, bounds = sorted_rows(release)
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
        return self.make_result(
            target=terms.names,
            baseline=adversary.baseline(truth),
            scenarios=scenarios,
            titles=titles,
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


MOST_VALUES = 1024
"""Sets of terms that are told apart while classes are formed; Mondrian's work grows with them."""


@dataclass(frozen=True)
class Rivals:
    """Tables to search, each with its name and title; what was asked of them, and what could not be had."""

    tables: Sequence[tuple[str, str, Finder]]
    facts: dict[str, Any]
    notes: Sequence[str]


def rivals(attack: Linking, case: Case, people: People, names: Sequence[str]) -> Rivals:
    """The tables that exist for these people."""
    assert case.policy is not None
    k = attack.k or policy_k(case.policy)
    l = attack.l or policy_l(case.policy)  # noqa: E741
    table = people.records
    facts: dict[str, Any] = {"k": k, "l": l, "diversity": attack.diversity}
    if not table.quasi:
        return Rivals([], facts, ["without quasi-identifiers a k-anonymous table is the raw one"])
    secret = _free("terms", table.quasi)
    diverse = FrequencyLDiversity if attack.diversity == "frequency" else DistinctLDiversity
    asked: list[tuple[str, str, list[Model]]] = [
        ("k-anonymous", f"k-anonymous, k = {k}", [KAnonymity(k=k)]),
        ("l-diverse", f"l-diverse, l = {l}, k = {k}", [KAnonymity(k=k), diverse(on=(secret,), l=l)]),
    ]
    made, notes = [], []
    whole = None
    with case.stage("Forming rival classes", len(asked)) as progress:
        for name, title, require in asked:
            if len(require) > 1:
                whole = fewer_values(one_value(table, names), max(MOST_VALUES, 8 * l))
            try:
                made.append((name, title, _finder(table, require, secret, whole)))
            except NorenError as error:
                notes.append(f"no table that is {title}: {error.message.rstrip('.')}")
            progress(1)
    return Rivals(made, facts, notes)


def policy_k(policy: Policy) -> int:
    """The k that the policy asks for, at least 2."""
    asked = [model.least_class_size for model in policy.require]
    return max([2, *(int(getattr(method, "k", 0)) for method in policy.methods), *asked])


def policy_l(policy: Policy) -> int:
    """The l that the policy asks for, at least 2."""
    return max([2, *(int(model.parameters().get("l", 0)) for model in policy.require)])


def one_value(table: Records, names: Sequence[str]) -> NDArray[np.int64]:
    """Every person's terms as one value: equal numbers for equal sets."""
    records, codes, shift = [], [], 0
    for name in names:
        cells = table.terms[name].cells
        records.append(cells.owner)
        codes.append(cells.data.astype(np.int64) + shift)
        shift += cells.d
    joined = TermCells.from_entries(max(1, shift), table.n, np.concatenate(records), np.concatenate(codes))
    return numbered_sets(joined.offsets, joined.data)


def fewer_values(whole: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many values: the commonest half keep to themselves, rare ones share the others evenly.

    A class that is l-diverse in these is l-diverse in the sets themselves: a shared value is at least as frequent as
    every set under it, and different values are different sets.
    """
    counts = np.bincount(whole)
    if len(counts) <= most:
        return whole
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    apart = most // 2
    return np.where(rank < apart, rank, apart + (rank - apart) % (most - apart))[whole]


def _finder(table: Records, require: Sequence[Model], secret: str, whole: NDArray[np.int64] | None) -> Finder:
    """The quasi-identifiers as Mondrian would publish them."""
    columns = {name: table.columns[name] for name in table.quasi}
    codes = {name: table.codes[name] for name in table.quasi}
    if whole is not None:
        domain = Domain(tuple(map(str, range(int(whole.max()) + 1))))
        columns[secret] = Column(role=Role.SENSITIVE).met(secret, domain)
        codes[secret] = whole
    recoded = Mondrian().recode(Records(table.n, columns, codes), require, repeatable).recoded
    nodes, data = [], []
    for name in table.quasi:
        change = recoded.get(name)
        nodes.append(change.nodes if isinstance(change, Recode) else exact_nodes(table.columns[name].d))
        data.append(table.codes[name] if change is None else change.data)
    return Finder(nodes, data, table.n)


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name
