"""Tables with quasi-sensitive terms, and what a class of records reveals of them: fractions, one label at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from noren.engines import Records, TermRecords
from noren.models.base import Model
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.statements import TermCells
from tests.oracles.mondrian import satisfies, small_table

Terms = Sequence[Sequence[int]]


def cells_of(d: int, records: Terms) -> TermCells:
    owner = np.repeat(np.arange(len(records)), [len(own) for own in records])
    return TermCells.from_entries(d, len(records), owner, np.array([t for own in records for t in own], np.int64))


def with_terms(table: Records, columns: dict[str, tuple[Knowledge, Terms]]) -> Records:
    """The table with set-valued columns. Codes beyond the terms of the knowledge are unknown terms."""
    found = {}
    for name, (knowledge, records) in columns.items():
        d = max([len(knowledge.terms), *(code + 1 for own in records for code in own)])
        values = (*knowledge.terms, *(f"unknown {i}" for i in range(d - len(knowledge.terms))))
        column = Column(role=Role.QUASI_SENSITIVE, knowledge=knowledge).over(name, Domain(values, "string", "policy"))
        found[name] = TermRecords(column, cells_of(d, records))
    return Records(table.n, table.columns, table.codes, found)


def random_table(seed: int, n: int) -> Records:
    """Two set-valued columns read together by one knowledge, and a third with another; now and then no term, an
    unknown term, or terms that no label holds together."""
    rng = np.random.default_rng(seed)
    columns = {}
    shared, other = random_knowledge(rng), random_knowledge(rng)
    for name, knowledge in {"a": shared, "b": shared, "c": other}.items():
        records = []
        for _ in range(n):
            label = rng.integers(len(knowledge.labels))
            held = knowledge.codes[knowledge.bounds[label] : knowledge.bounds[label + 1]]
            own = rng.choice(held, min(len(held), int(rng.integers(0, 3))), replace=False).tolist()
            if rng.random() < 0.1:
                own.append(int(rng.integers(0, len(knowledge.terms) + 1)))
            records.append(sorted(set(own)))
        columns[name] = (knowledge, records)
    return with_terms(small_table(seed, n), columns)


def random_knowledge(rng: np.random.Generator) -> Knowledge:
    terms, labels = int(rng.integers(2, 7)), int(rng.integers(2, 9))
    sets = [rng.choice(terms, int(rng.integers(1, terms + 1)), replace=False).tolist() for _ in range(labels)]
    weights = rng.integers(1, 4, labels).astype(float) if rng.random() < 0.4 else None
    priors = None
    if rng.random() < 0.4:
        priors = rng.integers(0, 5, labels) + (np.arange(labels) == 0)
        priors = priors / priors.sum()
    names = tuple(f"term {i}" for i in range(terms))
    many = sum(map(len, sets))
    paired = rng.choice([0.05, 0.5, 1.0, 4.0], many) if rng.random() < 0.4 else None
    return Knowledge.from_sets(sets, terms=names, weights=weights, priors=priors, pair_weights=paired)


def read_together(table: Records, name: str) -> tuple[list[set[int]], Knowledge]:
    """The terms of every record in all columns that share the knowledge of one."""
    knowledge = table.terms[name].knowledge
    joint: list[set[int]] = [set() for _ in range(table.n)]
    for column in table.terms.values():
        if column.knowledge is knowledge:
            for i in range(table.n):
                joint[i] |= set(column.cells.data[column.cells.offsets[i] : column.cells.offsets[i + 1]].tolist())
    return joint, knowledge


def record_belief(own: set[int], knowledge: Knowledge) -> list[Fraction] | None:
    """P(L | t) for every label; None for a record that links to no label."""
    sets = [set(knowledge.codes[a:b].tolist()) for a, b in zip(knowledge.bounds, knowledge.bounds[1:], strict=False)]
    weights = [Fraction(1)] * len(sets) if knowledge.weights is None else [Fraction(w) for w in knowledge.weights]
    if knowledge.pair_weights is not None:
        for label, first in enumerate(knowledge.bounds[:-1].tolist()):
            for place, term in enumerate(knowledge.codes[first : knowledge.bounds[label + 1]].tolist(), first):
                weights[label] *= Fraction(knowledge.pair_weights[place]) if term in own else 1
    fits = [w if own <= held else Fraction(0) for w, held in zip(weights, sets, strict=True)]
    return [w / sum(fits) for w in fits] if any(fits) else None


def class_belief(
    beliefs: Sequence[list[Fraction] | None], labels: int, alpha: Sequence[Fraction] | None
) -> list[Fraction]:
    """Mean of the records' beliefs; an unlinked record believes alpha, or nothing if that is None."""
    silent = [Fraction(0)] * labels if alpha is None else list(alpha)
    told = [silent if belief is None else belief for belief in beliefs]
    return [sum((belief[label] for belief in told), Fraction(0)) / len(told) for label in range(labels)]


def terms_satisfy(table: Records, members: Sequence[int], model: Model) -> bool:
    """Whether the class of these records meets one requirement on terms, from the formulas."""
    given = model.parameters()
    for name in model.on:
        joint, knowledge = read_together(table, name)
        beliefs = [record_belief(own, knowledge) for own in joint]
        labels = len(knowledge.labels)
        if knowledge.priors is None:
            alpha = class_belief(beliefs, labels, None)
        else:
            alpha = [Fraction(p) for p in knowledge.priors]
        believed = alpha if given["unlinked"] == "prior" else None
        beta = class_belief([beliefs[i] for i in members], labels, believed)
        if model.model == "qs-diversity":
            ranked = sorted(beta, reverse=True)
            if ranked[0] > Fraction(given["c"]) * sum(ranked[given["l"] - 1 :]) + Fraction(1, 10**11):
                return False
            continue
        gaps = [b - a for b, a in zip(beta, alpha, strict=True)]
        if given["distance"] == "l2":
            distance = float(sum(gap**2 for gap in gaps)) ** 0.5
        else:
            distance = float(sum(abs(gap) for gap in [*gaps, sum(beta) - sum(alpha)]) / 2)
        if distance > given["t"] + 1e-11:
            return False
    return True


def all_satisfied(table: Records, members: Sequence[int], requirements: Sequence[Model]) -> bool:
    """Every requirement, on values or on terms."""
    about = [model for model in requirements if model.about == "terms"]
    rest = [model for model in requirements if model.about != "terms"]
    return satisfies(table, members, rest) and all(terms_satisfy(table, members, model) for model in about)
