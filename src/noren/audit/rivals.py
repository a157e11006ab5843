"""What might have been published instead: a table that is k-anonymous and no more, and one that is l-diverse besides.

Both publish all terms. For l-diversity the whole set of a person's terms is one sensitive value, as one would try it
who does not think of the knowledge table (paper 001, section 1.1). Classes are Mondrian's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import Case
from noren.audit.people import People
from noren.engines import Recode, Records
from noren.engines.finding import Finder, exact_nodes, numbered_sets
from noren.errors import NorenError
from noren.methods.mechanism.refusals import repeatable
from noren.methods.mondrian import Mondrian
from noren.models import DistinctLDiversity, FrequencyLDiversity, KAnonymity
from noren.models.base import Model
from noren.policy.policy import Policy
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import TermCells

if TYPE_CHECKING:
    from noren.audit.linking import Linking

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
