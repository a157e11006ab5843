"""All records as codes, for methods that must see them: the columns that decide, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noren.models.base import Overall
from noren.models.term_check import linked_terms
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.secret import ClassSets
from noren.statements import TermCells, TermsStatement

QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
RandomOrder = Callable[[int], NDArray[np.int64]]
"""A uniformly random order of n things, from a cryptographic stream."""


@dataclass(frozen=True)
class TermRecords:
    """The terms of all records. The domain begins with the terms of the knowledge; what follows are unknown terms."""

    column: Column
    cells: TermCells
    prior: NDArray[np.float64] | None = None
    """What was believed in every label before, where these are only some of the records that it rests on."""

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def domain(self) -> Domain:
        return self.column.domain

    @property
    def knowledge(self) -> Knowledge:
        return self.column.known


@dataclass(frozen=True)
class Records:
    """The columns that decide: quasi-identifiers and sensitive columns of n records, as codes into their domains."""

    n: int
    columns: Mapping[str, Column]
    codes: Mapping[str, NDArray]
    terms: Mapping[str, TermRecords] = field(default_factory=dict)
    """Quasi-sensitive columns. Those with one and the same knowledge are read together by an adversary."""
    people: NDArray[np.int64] | None = None
    """The number of every record's person, from 0 on; None where every record is a person of its own."""
    earlier: Mapping[str, ClassSets] = field(default_factory=dict)
    """The values that earlier releases leave possible for the person of every record."""
    times: NDArray[np.int64] | None = None
    """How many records every line stands for, where lines are the different ones of a table; None for one each."""

    @property
    def records(self) -> int:
        """How many records the lines stand for."""
        return self.n if self.times is None else int(self.times.sum())

    def counts(self, name: str) -> NDArray[np.int64]:
        """How many records have each value of a column."""
        return np.bincount(self.codes[name], self.times, self.columns[name].d).astype(np.int64)

    @property
    def quasi(self) -> tuple[str, ...]:
        """Quasi-identifiers, in the order of the policy."""
        return tuple(name for name, column in self.columns.items() if column.role in QUASI)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Sensitive columns, in the order of the policy."""
        return tuple(name for name, column in self.columns.items() if column.role.needs_requirement)

    @property
    def roles(self) -> dict[str, Role]:
        return {name: column.role for name, column in self.columns.items()}

    def together(self) -> list[list[str]]:
        """The quasi-sensitive columns of every knowledge table."""
        out: dict[int, list[str]] = {}
        for name, column in self.terms.items():
            out.setdefault(id(column.knowledge), []).append(name)
        return list(out.values())

    def taken(self, rows: NDArray[np.int64]) -> Records:
        """Some of the records, in this order."""
        codes = {name: found[rows] for name, found in self.codes.items()}
        terms = {name: replace(found, cells=found.cells.take(rows)) for name, found in self.terms.items()}
        people = None if self.people is None else np.unique(self.people[rows], return_inverse=True)[1].reshape(-1)
        earlier = {name: sets.of(rows) for name, sets in self.earlier.items()}
        times = None if self.times is None else self.times[rows]
        return replace(self, n=len(rows), codes=codes, terms=terms, people=people, earlier=earlier, times=times)

    def over(self, columns: Mapping[str, Column]) -> Records:
        """The same records with other meanings of some columns."""
        return replace(self, columns={name: columns.get(name, column) for name, column in self.columns.items()})


# ---------------------------------------------------------------------- beliefs before a release


def priors(records: Records) -> dict[str, Overall]:
    """The mean belief in every label over the original, where the knowledge gives no prior.

    By the code of the checks, so that a verdict does not rest on what the method computed.
    """
    from noren.models.kernels import mean_beliefs

    out: dict[str, Overall] = {}
    for names in records.together():
        knowledge = records.terms[names[0]].knowledge
        if knowledge.priors is not None:
            continue
        parts = [(TermsStatement(records.terms[name].column), records.terms[name].cells) for name in names]
        cells = linked_terms([*parts], knowledge)
        shares = mean_beliefs(cells.offsets, cells.data, *knowledge.links)
        out |= dict.fromkeys(names, Overall(np.asarray(shares), "the original"))
    return out


def pinned(records: Records) -> Records:
    """The same records; parts of them remember what was believed because of all of them."""
    before = priors(records)
    terms = {
        name: replace(found, prior=before[name].shares) if name in before else found
        for name, found in records.terms.items()
    }
    return replace(records, terms=terms)
