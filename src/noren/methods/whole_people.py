"""Classes of whole people, for every method that generalises quasi-identifiers.

Whoever knows a person's quasi-identifiers in all of their rows intersects the classes that cover each of them. So a
method decides about people, each once and with what is typical of their rows, and what a class publishes covers every
row of its people: all of them are in one class, and what holds of the class holds of what a person's rows leave
possible together.

How many rows a person has is known, too, and a class shows how many rows have every secret: in a class of one person
with one row and one with two, everybody's secret is plain. So classes are made of people with as many rows each. Only
those of whom there are too few for a class are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from noren.engines import Average, Group, Plan, Recode, Records
from noren.engines.left_out import Members
from noren.engines.plan import Treatment
from noren.engines.records import QUASI
from noren.errors import RequirementNotMet
from noren.methods.cover import common_nodes, cover
from noren.ragged import first_of, in_order, row_numbers
from noren.release.published import Published
from noren.release.store import MemoryStore
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import tree_of
from noren.schema.roles import Role
from noren.statements import CodeCells, ExactStatement, GroupTable
from noren.statements.batch import PERSON

SETS = "\0sets"
"""The column that says in which set of as many rows a person was decided."""
Decide = Callable[[Records, Members], Plan]
T = TypeVar("T")


def plan_for_people(records: Records, members: Members, decide: Decide) -> Plan:
    """Return the plan of all rows, where `decide` chooses for people of one row each. No row is suppressed by
    itself."""
    assert records.people is not None
    people = records.people
    persons, others = one_row_each(records), replace(members, records=one_row_each(members.records), people=None)
    refused: list[RequirementNotMet] = []

    def attempt(some: NDArray[np.int64]) -> Plan | None:
        try:
            return decide(persons.taken(some), others.taken(some))
        except RequirementNotMet as error:
            refused.append(error)
            return None

    relative = any(model.relative for model in members.requirements)  # compared with all people, not with a set of them
    rows = np.ones(persons.n, np.int64) if relative else np.bincount(people)
    decided = by_number_of_rows(rows, attempt)
    if not decided:
        raise refused[-1]
    given = {name for name, column in members.records.columns.items() if column.tree is not None}
    return _Together.of(persons, decided).over(records, given)


def one_row_each(records: Records) -> Records:
    """Return one typical row of each person: the middle of an ordered column, otherwise the most frequent value."""
    assert records.people is not None
    n = int(records.people.max(initial=-1)) + 1
    codes = {name: _typical(column, records.codes[name], records.people) for name, column in records.columns.items()}
    earlier = {name: sets.of(first_of(records.people)) for name, sets in records.earlier.items()}
    return replace(records, n=n, codes=codes, people=None, earlier=earlier)


def _typical(column: Column, codes: NDArray, people: NDArray[np.int64]) -> NDArray:
    order = in_order(people * np.int64(column.d) + codes)
    if column.domain.is_ranked and column.tree is None:
        rows = np.bincount(people)
        return np.asarray(codes[order[np.cumsum(rows) - rows + (rows - 1) // 2]])
    key, first, times = np.unique(people * np.int64(column.d) + codes, return_index=True, return_counts=True)
    person, code = key // column.d, key % column.d
    best = np.lexsort([first, -times, person])  # the order of the rows is secret, and breaks ties
    return np.asarray(code[best[np.searchsorted(person, np.arange(int(person[-1]) + 1))]].astype(codes.dtype))


def by_number_of_rows(
    rows: NDArray[np.int64], attempt: Callable[[NDArray[np.int64]], T | None]
) -> list[tuple[NDArray[np.int64], T]]:
    """Decide for people with equally many rows, set by set. A set that fails is merged with the next; the list is empty
    if that does not help."""
    order = np.argsort(-rows, kind="stable")
    out: list[tuple[NDArray[np.int64], T]] = []
    waiting = order[:0]
    for some in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1):
        waiting = np.concatenate([waiting, some])
        if (made := attempt(waiting)) is not None:
            out.append((waiting, made))
            waiting = order[:0]
    while len(waiting) and out:
        waiting = np.concatenate([out.pop()[0], waiting])
        if (made := attempt(waiting)) is not None:
            return [*out, (waiting, made)]
    return [] if len(waiting) else out


@dataclass(frozen=True)
class _Together:
    """The combined decisions for people."""

    classes: NDArray[np.int64]
    """The class of every person; -1 for the suppressed people."""
    groups: dict[str, NDArray[np.int64]]
    """Per column that is published as means or in groups: the group of every person."""
    averaged: frozenset[str]
    secrets: dict[str, Recode]
    """Per sensitive column with generalised values: the node of every person."""
    notes: tuple[str, ...]
    plan: Plan

    @classmethod
    def of(cls, persons: Records, decided: Sequence[tuple[NDArray[np.int64], Plan]]) -> _Together:
        classes = np.full(persons.n, -1, np.int64)
        groups: dict[str, NDArray[np.int64]] = {}
        secrets: dict[str, Recode] = {}
        for who, plan in decided:
            some = persons.taken(who)
            keep = np.ones(len(who), bool) if plan.keep is None else plan.keep
            number = _classes(some, plan) + int(classes.max(initial=-1)) + 1
            classes[who] = np.where(keep, number, -1)
            for name in some.columns:
                one = plan.of(name)
                if isinstance(one, Group | Average):
                    mine = groups.setdefault(name, np.full(persons.n, -1, np.int64))
                    mine[who] = one.data + int(mine.max(initial=-1)) + 1
                elif name in persons.sensitive and isinstance(one, Recode):
                    nodes = persons.codes[name].astype(np.int64)
                    made = secrets.setdefault(name, Recode(one.nodes, nodes, one.tight))
                    made.data[who] = one.data
        averaged = frozenset(name for _, plan in decided for name in plan.averaged)
        notes = tuple(dict.fromkeys(note for _, plan in decided for note in plan.notes))
        if len(decided) > 1:
            notes = (f"people were grouped in {len(decided)} sets by their number of rows", *notes)
        largest = max(decided, key=lambda one: len(one[0]))[1]
        return cls(classes, groups, averaged, secrets, notes, largest)

    def over(self, records: Records, given: Set[str]) -> Plan:
        """Return the same for every row: by the nodes of given hierarchies, otherwise by what a class covers."""
        people = records.people
        assert people is not None
        rows, count = self.classes[people], int(self.classes.max(initial=-1)) + 1
        columns: dict[str, Treatment] = {}
        for name, column in records.columns.items():
            codes = records.codes[name]
            if name in self.averaged:
                mine = self.groups[name][people]
                columns[name] = Average(mine, cover(column, codes, mine, int(mine.max(initial=-1)) + 1))
            elif name in self.groups:
                mine, kept = self.groups[name][people], rows >= 0
                groups = int(mine.max(initial=-1)) + 1
                columns[name] = Group(GroupTable.from_codes(groups, column.d, mine[kept], codes[kept]), mine)
            elif name in self.secrets:
                columns[name] = _covering(column, self.secrets[name], codes, people)
            elif name in records.quasi and name not in records.sensitive:
                known = column if name in given else column.over(name, column.domain, hierarchy=None)
                columns[name] = cover(known, codes, rows, count)
        keep = rows >= 0
        return replace(self.plan, treatments=columns, keep=None if keep.all() else keep, notes=self.notes)


def _classes(persons: Records, plan: Plan) -> NDArray[np.int64]:
    """Return the class of every person by quasi-identifiers."""
    parts, sizes = [], []
    for name in persons.quasi:
        one = plan.of(name)
        data = one.data if isinstance(one, Recode | Average) else persons.codes[name]
        parts.append(data)
        sizes.append(int(data.max(initial=0)) + 1)
    return row_numbers(parts, sizes, persons.n)


def _covering(column: Column, decided: Recode, codes: NDArray, people: NDArray[np.int64]) -> Recode:
    """Return a secret's generalised value in every row of a person: the decided one, or the smallest that covers
    all."""
    node = decided.data[people]
    inside = decided.nodes.covers(node, codes)
    short = np.zeros(len(decided.data), bool)
    short[people[~inside]] = True
    if not short.any():
        return Recode(decided.nodes, node, decided.tight)
    tree = column.tree or Hierarchy((column.domain.values,), column.name)
    common = common_nodes(tree_of(tree).at, codes, people, len(decided.data))
    return Recode(decided.nodes, np.where(short, common, decided.data)[people], decided.tight)


# ---------------------------------------------------------------- for whoever replays a method


def one_row_published(published: Published, table: Records) -> tuple[Published, Records]:
    """Return a release with one row a person and the people as the method saw them, for a replay. The set of people
    with equally many rows is an additional known column.

    Only where the store says whose row each is; a release in which somebody is in several classes stays as it is.
    """
    assert table.people is not None
    whose = published_people(published)
    cells = published.cells(list(published.columns))
    kinds = [cells[one.name].distinct()[1] for one in published.statements if one.role in QUASI]
    classes = row_numbers(kinds, [int(kind.max(initial=0)) + 1 for kind in kinds], len(whose))
    people, first = np.unique(whose, return_index=True)
    of = np.zeros(int(whose.max(initial=-1)) + 1, np.int64)
    of[people] = classes[first]
    if (of[whose] != classes).any():
        return published, table
    persons = one_row_each(table)
    part = _sets(np.bincount(table.people), people, of[people])
    sets = Column(role=Role.QUASI_IDENTIFIER).over(SETS, Domain(tuple(map(str, range(int(part.max(initial=0)) + 1)))))
    shown = {name: found.take(first) for name, found in cells.items()} | {SETS: CodeCells(sets.d, part[people])}
    alone = Published(
        [*published.statements, ExactStatement(sets)],
        MemoryStore(shown),
        len(first),
        suppressed=persons.n - len(first),
        title=published.title,
    )
    return alone, replace(persons, columns={**persons.columns, SETS: sets}, codes={**persons.codes, SETS: part})


def _sets(rows: NDArray[np.int64], people: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the set in which everybody was decided, from the numbers of rows that share a class."""
    found, number = np.unique(rows, return_inverse=True)
    number = number.ravel()
    low = np.full(int(classes.max(initial=-1)) + 1, len(found))
    high = np.zeros(len(low), np.int64)
    np.minimum.at(low, classes, number[people])
    np.maximum.at(high, classes, number[people])
    across = np.bincount(low, minlength=len(found) + 1) - np.bincount(high, minlength=len(found) + 1)
    apart = np.append(True, np.cumsum(across)[: len(found) - 1] == 0)
    return np.asarray((np.cumsum(apart) - 1)[number])


def published_people(published: Published) -> NDArray[np.int64]:
    """Return the person of every row, in the order of the store."""
    some = published.statements[:1]
    parts = [batch[PERSON].data for batch in published.store.batches(some)]  # type: ignore[attr-defined]
    return np.concatenate([np.zeros(0, np.int64), *(part.astype(np.int64) for part in parts)])
