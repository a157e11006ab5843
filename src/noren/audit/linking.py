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
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Lines, Scenario
from noren.audit.class_attack import Columns, count_people, found_notes
from noren.audit.people import People, known_people, person_lines
from noren.audit.sample import Sample
from noren.audit.targets import in_release, published_classes, raw_classes, searchable
from noren.engines import Recode, Records
from noren.engines.finding import Finder, Matches, exact_nodes
from noren.engines.records import priors
from noren.errors import DataError, NorenError, QueryError
from noren.methods.mechanism.refusals import repeatable
from noren.methods.mondrian import Mondrian
from noren.models import DistinctLDiversity, FrequencyLDiversity, KAnonymity
from noren.models.base import Model
from noren.models.kernels import beliefs_of_groups, label_beliefs, mean_beliefs
from noren.models.term_check import linked_terms
from noren.policy.policy import Policy
from noren.ragged import in_order, numbered_sets, offsets_of
from noren.release.release import Release
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.statements import Statement, TermCells, TermsStatement

CERTAIN = 0.999
TIE = 1e-12


@dataclass(frozen=True)
class Adversary:
    """A knowledge table and the prior beliefs of an adversary."""

    knowledge: Knowledge
    alpha: NDArray[np.float64]
    prior: bool = False
    """Whether a record that is linked to nothing tells the prior; otherwise it discloses nothing."""

    @cached_property
    def _best(self) -> NDArray[np.bool_]:
        """Return the labels with the largest prior belief."""
        return np.asarray((self.alpha >= self.alpha.max() - TIE) & (self.alpha > 0))

    def _guessed(self, truth: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability of a right guess from the prior; NaN where the true label is unknown."""
        chance = self._best / max(1, int(self._best.sum()))
        return np.where(truth < 0, np.nan, chance[truth])

    def baseline(self, truth: NDArray[np.int64] | None) -> dict[str, float]:
        """The figures of `summed_figures` before anything is published."""
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

    def figures(
        self, cells: TermCells, found: Iterable[Matches], people: int, truth: NDArray[np.int64] | None
    ) -> Columns:
        """Return the belief about each person from the matching records, or the prior if no record matches.

        `groups` could hold the person, with so many `candidates`, of which `linked_records` are linked to a label at
        all; `label` is the first of the `ties` believed most. `belief_linked` leaves out the records that are linked to
        nothing instead of counting them as doubt; `rise` is the largest gain over the prior (equation 1).
        """
        nothing = np.zeros(people, np.int64)
        peak, ties = float(self.alpha.max()), int(self._best.sum())
        out: Columns = {
            "groups": nothing,
            "candidates": nothing.copy(),
            "linked_records": nothing.copy(),
            "labels": np.full(people, int((self.alpha > 0).sum())),
            "belief": np.full(people, peak),
            "linked": nothing,
            "label": np.full(people, int(np.argmax(self._best)) if ties else -1),
            "ties": np.full(people, ties),
            "belief_linked": np.full(people, peak),
            "rise": np.zeros(people),
        }
        if truth is not None:
            before = np.where(truth < 0, np.nan, self.alpha[truth])
            out |= {"truth_belief": before, "truth_prior": before.copy(), "right": self._guessed(truth)}
        told = label_beliefs(cells.offsets, cells.data, *self.knowledge.links)
        for part in found:
            self._ask(told, part, truth, out)
        return out | {"linked": out["labels"] > 0}

    def _ask(
        self, found: tuple[Any, NDArray[np.int64]], part: Matches, truth: NDArray[np.int64] | None, out: Columns
    ) -> None:
        by_set = in_order(part.of)
        begins = offsets_of(np.bincount(part.of, minlength=len(part.bounds) - 1))
        doubt = self.alpha if self.prior else None
        for some, linked, alone, belief in beliefs_of_groups(part.order, part.bounds, found, doubt):
            peak = belief.max(axis=1)
            best = (belief >= peak[:, None] - TIE) & (peak > 0)[:, None]
            told = {
                "groups": part.groups[some], "candidates": np.diff(part.bounds)[some], "linked_records": linked,
                "labels": (belief > 0).sum(axis=1), "belief": peak, "belief_linked": alone.max(axis=1),
                "label": np.where(peak > 0, best.argmax(axis=1), -1), "ties": best.sum(axis=1),
                "rise": (belief - self.alpha).max(axis=1),
            }  # fmt: skip
            mine = by_set[begins[some.start] : begins[some.stop]]
            people, of = part.people[mine], part.of[mine] - some.start
            for name, figures in told.items():
                out[name][people] = figures[of]
            if truth is not None:
                asked = truth[people]
                out["truth_belief"][people] = np.where(asked < 0, np.nan, belief[of, asked])
                # where nothing is linked, the best guess is that of before
                right = np.where(best[of, asked], 1 / np.maximum(1, told["ties"][of]), 0.0)
                right = np.where(asked < 0, np.nan, right)
                out["right"][people] = np.where(peak[of] > 0, right, self._guessed(asked))


def summed_figures(figures: Columns) -> dict[str, float]:
    """Return figures over all people, or rows."""
    belief, found = figures["belief"], figures["groups"] > 0
    n = max(1, len(belief))
    doubt = 1 - figures["linked_records"] / np.maximum(1, figures["candidates"])
    out = {
        "mean_belief": float(belief.sum() / n),
        "max_belief": float(belief.max(initial=0.0)),
        "certain": float((belief >= CERTAIN).sum() / n),
        "above_half": float((belief > 0.5 + TIE).sum() / n),
        "mean_rise": float(figures["rise"].sum() / n),
        "max_rise": float(figures["rise"].max(initial=-1.0)),
        "mean_labels": float(figures["labels"].sum() / n),
        "linked": float(figures["linked"].sum() / n),
        "mean_unlinked_records": float(doubt[found].mean()) if found.any() else 0.0,
        "mean_belief_linked": float(figures["belief_linked"].sum() / n),
        "max_belief_linked": float(figures["belief_linked"].max(initial=0.0)),
        "without_group": int((~found).sum()),
    }
    if "right" in figures:
        out |= {"right": float(np.nanmean(figures["right"]))}
        out |= {"mean_truth_belief": float(np.nanmean(figures["truth_belief"]))}
    return out


SHARES = ("certain", "above_half", "mean_belief")


@dataclass(frozen=True)
class LinkedTerms:
    """The columns of terms that share a knowledge table, and their published sets."""

    names: tuple[str, ...]
    knowledge: Knowledge
    cells: TermCells


class Linking(Attack):
    """Find a person by quasi-identifiers, then link the person's terms to labels."""

    knows: ClassVar[str] = "a person"
    adversary: ClassVar[str] = (
        "has the knowledge table, knows that a person is in the table, and knows the person's exact quasi-identifiers"
    )
    success: ClassVar[str] = (
        "the largest belief in one label about a person, and its rise over the prior; certain from 0.999 on"
    )
    needs_rows: ClassVar[str | None] = "it links the terms of single rows, and hardly two rows have the same terms"
    shares: ClassVar[tuple[str, ...]] = SHARES
    titles: ClassVar[Mapping[str, str]] = {
        "mean_belief": "mean belief",
        "max_belief": "largest belief",
        "certain": "certain",
        "above_half": "above 1/2",
        "mean_rise": "mean rise",
    }
    truth_titles: ClassVar[Mapping[str, str]] = {"right": "right guess", "mean_truth_belief": "belief in the truth"}

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
        default="ignore", description="Belief about a record that is linked to no label: none, or the prior."
    )

    @classmethod
    def applies(cls, release: Release) -> str | None:
        return None if _term_statements(release) else "the release has no sets of terms"

    def run(self, case: Case) -> list[AttackResult]:
        statements = _term_statements(case.release)
        if not statements:
            raise QueryError(
                "the release has no sets of terms, so there is nothing to link.",
                hint="Use it for a release with a column of the role 'quasi-sensitive'.",
            )
        searchable(case.release)
        if case.original is None:
            if self.truth is not None:
                raise QueryError(
                    "the true labels are in the original, which was not given.", hint="Give the original too."
                )
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
                f"the policy links the terms {absent[0]!r} to labels, but the release has no such column.",
                hint="Give the policy that the release was made with.",
            )
        if self.truth is not None and self.truth in case.policy.knowledge:
            raise QueryError(
                f"column {self.truth!r} holds sets of terms, not a true label.",
                hint="Give a column with one label per person.",
            )
        people = known_people(case)
        records = people.records
        targets = [tuple(names) for names in records.together()]
        truths = _truths(self.truth, people, [records.terms[names[0]].knowledge for names in targets])
        pairs = zip(targets, truths, strict=True)
        return [self._inside(case, people, names, truth) for names, truth in pairs]

    # ------------------------------------------------------------------ outsider and holder

    def _outside(self, case: Case, names: Sequence[str]) -> AttackResult:
        """Compute what anybody with the release can learn."""
        terms = _published(case.release, names, case.release.column(names[0]).column.known)
        alpha, basis = terms.knowledge.priors, "the knowledge table"
        if alpha is None:
            alpha = mean_beliefs(terms.cells.offsets, terms.cells.data, *terms.knowledge.links)
            basis = "an estimate from the release"
        adversary = Adversary(terms.knowledge, alpha, self.unlinked == "prior")
        with case.stage("Linking rows", None):
            row = self._rows(case, terms, adversary)
        return self._result(terms, adversary, basis, (row,), {}, case.measured_rows.note("rows"))

    def _inside(self, case: Case, people: People, names: Sequence[str], truth: NDArray | None) -> AttackResult:
        """Compute the figures for the same people in every table, as the holder can."""
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
        lines = person_lines(case, people)
        who, scenarios = lines.some, []
        truth = None if truth is None else who[truth]

        def search(name: str, title: str, cells: TermCells, found: Iterable[Matches]) -> Columns:
            figures = adversary.figures(cells, found, len(who), truth)
            scenarios.append(self._scenario(name, title, lines, figures, knowledge))
            return figures

        with case.stage("Linking people", 2 + len(chosen.tables)) as progress:
            search("raw", "raw table", own, [who.among(raw_classes(case, people, records.quasi))])
            progress(1)
            for name, title, finder in chosen.tables:
                codes = [who[records.codes[column]] for column in records.quasi]
                search(name, title, own, finder.candidates(codes, len(who)))
                progress(1)
            found = in_release(case, people, searchable(case.release), who)
            figures = search("release", "this release", terms.cells, found)
            scenarios.append(self._rows(case, terms, adversary, knowledge.priors is None))
            progress(1)
        notes = [*who.note(), *chosen.notes, *_notes(figures, truth, who)]
        return self._result(terms, adversary, basis, scenarios, chosen.facts, notes, truth)

    def _rows(self, case: Case, terms: LinkedTerms, adversary: Adversary, holder_only: bool = False) -> Scenario:
        """Compute the figures of every published row from its group. The figure `rise` may disclose an estimated
        prior."""
        lines = case.row_lines(holder_only=holder_only)
        own = lines.some.among(published_classes(case, searchable(case.release)))
        figures = adversary.figures(terms.cells, [own], len(lines.some), None)
        return self._scenario("release-rows", "this release, row by row", lines, figures, terms.knowledge)

    def _scenario(self, name: str, title: str, lines: Lines, figures: Columns, knowledge: Knowledge) -> Scenario:
        summary = summed_figures(figures)
        if lines.by == "person":
            summary["without_group"] = lines.some.scaled(int(summary["without_group"]))
        return lines.scenario(name, title, summary, figures, (*SHARES, "right"), {"label": knowledge.labels})

    def _result(
        self,
        terms: LinkedTerms,
        adversary: Adversary,
        basis: str,
        scenarios: Sequence[Scenario],
        facts: Mapping[str, Any],
        notes: Sequence[str],
        truth: NDArray | None = None,
    ) -> AttackResult:
        knowledge = terms.knowledge
        told: dict[str, Any] = {"labels": len(knowledge.labels), "terms": len(knowledge.terms), "prior": basis}
        return self.make_result(
            target=terms.names,
            baseline=adversary.baseline(truth),
            scenarios=scenarios,
            facts=told | {"unlinked": self.unlinked} | dict(facts),
            notes=(*notes, *_doubt(scenarios[-1].summary)),
            truth=truth is not None,
        )


def _notes(figures: Columns, truth: NDArray | None, who: Sample) -> list[str]:
    """Return notes about the people found in the release."""
    out = found_notes(figures["groups"], who, "group")
    if truth is not None and (unknown := int((truth < 0).sum())):
        lack = count_people(unknown, "lack", who)
        out.append(f"{lack} a true label and are not counted as right or wrong guesses")
    return out


def _doubt(rows: Mapping[str, float]) -> list[str]:
    """Return how records without a possible label change the beliefs in the published groups."""
    share = rows["mean_unlinked_records"]
    if not share:
        return []
    alone = rows["max_belief_linked"]
    return [
        (
            f"{share:.1%} of the published records are linked to no label; among the others the largest belief is "
            f"{alone:.3f}"
        )
    ]


# ---------------------------------------------------------------------- what is published


def _term_statements(release: Release) -> list[Statement]:
    return [one for one in release.statements if one.terms is not None]


def _by_knowledge(statements: Sequence[Statement]) -> list[tuple[str, ...]]:
    """Return the columns of every knowledge table in the release."""
    out: dict[int, list[str]] = {}
    for one in statements:
        out.setdefault(id(one.column.known), []).append(one.name)
    return [tuple(names) for names in out.values()]


def _published(release: Release, names: Sequence[str], knowledge: Knowledge) -> LinkedTerms:
    """Return the published sets of terms of all columns with a common knowledge table."""
    cells = release.cells(list(names))
    parts = [(release.column(name), cells[name]) for name in names]
    return LinkedTerms(tuple(names), knowledge, linked_terms(parts, knowledge))


def _truths(column: str | None, people: People, knowledge: Sequence[Knowledge]) -> list[NDArray[np.int64] | None]:
    """Return every person's true label as a code of the knowledge table that contains it; None for the others."""
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
        raise DataError(
            f"column {column!r} holds no true label at all.", hint=("Give the column that holds the labels.")
        )
    if strangers[best]:
        raise DataError(
            f"{strangers[best]} of {len(mine)} cells of {column!r} are not labels of the knowledge table.",
            hint="Spell labels as in the knowledge table, add missing labels to it, and leave unknown cells empty.",
        )
    return [places[i] if i == best else None for i in range(len(knowledge))]


MOST_VALUES = 1024
"""Sets of terms that are distinguished while classes are formed; Mondrian's work grows with them."""


@dataclass(frozen=True)
class Rivals:
    """The tables to attack, each with name and title, their settings, and tables that could not be made."""

    tables: Sequence[tuple[str, str, Finder]]
    facts: dict[str, Any]
    notes: Sequence[str]


def rivals(attack: Linking, case: Case, people: People, names: Sequence[str]) -> Rivals:
    """Make the comparison tables for these people."""
    assert case.policy is not None
    k = attack.k or policy_k(case.policy)
    l = attack.l or policy_l(case.policy)  # noqa: E741
    table = people.records
    facts: dict[str, Any] = {"k": k, "l": l, "diversity": attack.diversity}
    if not table.quasi:
        return Rivals([], facts, ["without quasi-identifiers the k-anonymous table equals the raw table"])
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
    """Return the k that the policy requires, at least 2."""
    asked = [model.least_class_size for model in policy.require]
    return max([2, *(int(getattr(method, "k", 0)) for method in policy.methods), *asked])


def policy_l(policy: Policy) -> int:
    """Return the l that the policy requires, at least 2."""
    return max([2, *(int(model.parameters().get("l", 0)) for model in policy.require)])


def one_value(table: Records, names: Sequence[str]) -> NDArray[np.int64]:
    """Number every person's set of terms; equal sets have equal numbers."""
    records, codes, shift = [], [], 0
    for name in names:
        cells = table.terms[name].cells
        records.append(cells.owner)
        codes.append(cells.data.astype(np.int64) + shift)
        shift += cells.d
    joined = TermCells.from_entries(max(1, shift), table.n, np.concatenate(records), np.concatenate(codes))
    return numbered_sets(joined.offsets, joined.data)


def fewer_values(whole: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Merge values until at most this many remain: the more frequent half stays, rare ones share the other half evenly.

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
    """Generalise the quasi-identifiers with Mondrian."""
    columns = {name: table.columns[name] for name in table.quasi}
    codes = {name: table.codes[name] for name in table.quasi}
    if whole is not None:
        domain = Domain(tuple(map(str, range(int(whole.max()) + 1))))
        columns[secret] = Column(role=Role.SENSITIVE).over(secret, domain)
        codes[secret] = whole
    recoded = Mondrian(blind=False).recode(Records(table.n, columns, codes), require, repeatable).recoded
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
