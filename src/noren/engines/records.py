"""All records as codes, in the columns of classes, for methods that need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.models.base import Overall
from noren.models.kernels import mean_beliefs
from noren.models.term_check import linked_terms
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.secret import ClassSets
from noren.statements import Statement, TermCells, TermsStatement

QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
RandomOrder = Callable[[int], NDArray[np.int64]]
"""A uniformly random order of n things, from a cryptographic stream."""


@dataclass(frozen=True)
class TermRecords:
    """The terms of all records. The domain begins with the terms of the knowledge table, followed by unknown terms."""

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


class WithRoles:
    """Columns by their role for somebody who looks for a person."""

    columns: Mapping[str, Any]

    @cached_property
    def quasi(self) -> tuple[str, ...]:
        """Quasi-identifiers, in the order of the policy."""
        return tuple(name for name, column in self.columns.items() if column.role in QUASI)

    @cached_property
    def sensitive(self) -> tuple[str, ...]:
        """Sensitive columns, in the order of the policy."""
        return tuple(name for name, column in self.columns.items() if column.role.needs_requirement)


@dataclass(frozen=True)
class Records(WithRoles):
    """The columns that decide: quasi-identifiers and sensitive columns of n records, as codes into their domains."""

    n: int
    columns: Mapping[str, Column]
    codes: Mapping[str, NDArray]
    terms: Mapping[str, TermRecords] = field(default_factory=dict)
    """Quasi-sensitive columns. Those with one and the same knowledge are read together by an adversary."""
    people: NDArray[np.int64] | None = None
    """The number of every record's person, from 0 on; None where every record is a different person."""
    earlier: Mapping[str, ClassSets] = field(default_factory=dict)
    """The values that earlier releases leave possible for the person of every record."""

    def counts(self, name: str) -> NDArray[np.int64]:
        """Return how many records have each value of a column."""
        return np.bincount(self.codes[name], minlength=self.columns[name].d)

    @property
    def roles(self) -> dict[str, Role]:
        return {name: column.role for name, column in self.columns.items()}

    def together(self) -> list[list[str]]:
        """Return the quasi-sensitive columns of every knowledge table."""
        out: dict[int, list[str]] = {}
        for name, column in self.terms.items():
            out.setdefault(id(column.knowledge), []).append(name)
        return list(out.values())

    def taken(self, rows: NDArray[np.int64]) -> Records:
        """Return some of the records, in this order."""
        codes = {name: found[rows] for name, found in self.codes.items()}
        terms = {name: replace(found, cells=found.cells.take(rows)) for name, found in self.terms.items()}
        people = None if self.people is None else np.unique(self.people[rows], return_inverse=True)[1].reshape(-1)
        earlier = {name: sets.of(rows) for name, sets in self.earlier.items()}
        return replace(self, n=len(rows), codes=codes, terms=terms, people=people, earlier=earlier)

    def published(self, statement: Statement, rows: NDArray | None = None) -> NDArray[np.int64]:
        """What some records, or all, have of a column, as codes of the published domain; -1 for what it lacks."""
        codes = self.codes[statement.name]
        return translate_codes(statement, self.columns[statement.name], codes if rows is None else codes[rows])

    def over(self, columns: Mapping[str, Column]) -> Records:
        """Return the same records with other meanings of some columns."""
        return replace(self, columns={name: columns.get(name, column) for name, column in self.columns.items()})


def translate_codes(statement: Statement, column: Column, codes: NDArray) -> NDArray[np.int64]:
    """Codes of the original as codes of a published domain, which may not name them; -1 for what it lacks."""
    found = statement.domain.find(column.domain.values, column.tree)
    return np.asarray((np.zeros(column.d, np.int64) if statement.d == 1 else np.array(found, np.int64))[codes])


# ---------------------------------------------------------------------- beliefs before a release


def priors(records: Records) -> dict[str, Overall]:
    """Return the mean belief in every label over the original, if the knowledge table gives no prior.

    By the code of the checks, so that a verdict does not rest on what the method computed.
    """
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
    """Return the same records with fixed priors, which parts of them keep."""
    before = priors(records)
    terms = {
        name: replace(found, prior=before[name].shares) if name in before else found
        for name, found in records.terms.items()
    }
    return replace(records, terms=terms)
