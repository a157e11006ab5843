"""Anatomy and Rating if people have several records: all records of a person are in one group of every column.

So nobody is told more by finding several records of one person than by finding one. A group holds at least l people
no two of whom share a value, or as many more as it takes that no value is had by more than 1/l of them, or stands in
more than 1/l of their rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.engines import Group, Plan, RandomOrder, Records
from noren.errors import RequirementNotMet
from noren.methods.anatomy import BucketRule
from noren.methods.anatomy_kernels import disjoint_groups, place_strictly
from noren.methods.whole_people import by_number_of_rows
from noren.statements import GroupTable


@dataclass(frozen=True)
class Holders:
    """The pairs of person and bucket of a column, each once, ascending by person."""

    person: NDArray[np.int64]
    bucket: NDArray[np.int64]
    rows: NDArray[np.int64]
    """How many rows of the person have the bucket."""

    @classmethod
    def of(cls, table: Records, rule: BucketRule) -> Holders:
        assert table.people is not None
        pairs = table.people * np.int64(rule.m) + rule.buckets[table.codes[rule.column]]
        key, rows = np.unique(pairs, return_counts=True)
        return cls(key // rule.m, key % rule.m, rows)

    def counts(self, there: NDArray[np.bool_], m: int) -> NDArray[np.int64]:
        """Return how many people have every bucket."""
        return np.bincount(self.bucket[there[self.person]], minlength=m)

    def sets(self, people: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the buckets of these people one after the other, and the offsets."""
        first = np.searchsorted(self.person, people)
        lengths = np.searchsorted(self.person, people, side="right") - first
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return starts, self.bucket[np.arange(starts[-1]) + np.repeat(first - starts[:-1], lengths)]


def people_apart(table: Records, rules: Sequence[BucketRule], suppression: float, order: RandomOrder) -> Plan:
    """Return every column with a requirement as groups of whole people."""
    assert table.people is not None
    holders = {rule.column: Holders.of(table, rule) for rule in rules}
    there = _eligible(table, rules, holders, int(suppression * table.n + 1e-9), order)
    keep = there[table.people]
    columns = {rule.column: _grouped(table, rule, holders[rule.column], there, order) for rule in rules}
    notes = [f"{name}: {column.table.groups} groups of whole people" for name, column in columns.items()]
    return Plan(columns, None if keep.all() else keep, tuple(notes))


def _eligible(
    table: Records, rules: Sequence[BucketRule], holders: dict[str, Holders], limit: int, order: RandomOrder
) -> NDArray[np.bool_]:
    """Return the published people: all, or without some random ones that have a too frequent bucket."""
    assert table.people is not None
    rows = np.bincount(table.people)
    there = np.ones(len(rows), bool)
    settled = False
    while not settled:
        settled = True
        for rule in rules:
            if not rule.strict:
                continue
            found = holders[rule.column]
            counts = found.counts(there, rule.m)
            worst, people = int(counts.argmax()), int(there.sum())
            excess = int(counts[worst]) * rule.l - people
            if excess <= 0:
                continue
            having = found.person[(found.bucket == worst) & there[found.person]]
            there[having[order(len(having))[: -(-excess // (rule.l - 1))]]] = False
            settled = False
            if rows[~there].sum() > limit or not there.any():
                _refuse(rule, people / max(1, int(counts[worst])), limit)
    return there


def _refuse(rule: BucketRule, reachable: float, limit: int) -> None:
    dropped = f" with at most {limit} records dropped" if limit else ""
    message = f"l = {rule.l} cannot be reached for {rule.column!r}{dropped}: too many people have the same value."
    most = f"The largest l is {int(reachable)}" if reachable >= 2 else "No l of 2 or more can be reached"
    raise RequirementNotMet(message, hint=f"{most} without dropping people.")


def _grouped(table: Records, rule: BucketRule, found: Holders, there: NDArray[np.bool_], order: RandomOrder) -> Group:
    """Return the groups of one column, numbered at random; of people with equally many rows if there are enough,
    because a group shows how many rows have every value."""
    assert table.people is not None
    people = order(len(there))
    people = people[there[people]]

    def attempt(some: NDArray[np.int64]) -> NDArray[np.int64] | None:
        starts, sets = found.sets(people[some])
        if len(some) < len(people) and not _enough(rule, len(some), sets):
            return None
        groups, count = disjoint_groups(starts, sets, rule.m, rule.l)
        if not count and len(some) < len(people):
            return None
        if rule.strict:
            place_strictly(starts, sets, groups, count, rule.m, rule.l, order(count))
        else:  # a group of l values stays one, whoever joins
            alone = np.flatnonzero(groups < 0)
            groups[alone] = order(max(1, count))[np.arange(len(alone)) % max(1, count)]
        groups = np.unique(groups, return_inverse=True)[1].ravel()
        return _join_short(rule, found, people[some], groups, order) if rule.strict else groups

    groups = np.zeros(len(people), np.int64)
    taken = 0
    for some, mine in by_number_of_rows(np.bincount(table.people)[people], attempt):
        groups[some] = mine + taken
        taken += int(mine.max(initial=-1)) + 1
    _demand_counts_hide(table, rule, people, groups)
    number = np.zeros(len(there), np.int64)
    number[people] = order(taken)[groups]
    data, keep = number[table.people], there[table.people]
    codes, d = table.codes[rule.column], len(table.columns[rule.column].domain)
    return Group(GroupTable.from_codes(taken, d, data[keep], codes[keep]), data)


def _join_short(
    rule: BucketRule, found: Holders, people: NDArray[np.int64], groups: NDArray[np.int64], order: RandomOrder
) -> NDArray[np.int64]:
    """Join some groups at random with others, so that no bucket has more than 1/l of a group's rows. Only people with
    different numbers of rows have such groups."""
    count = int(groups.max(initial=-1)) + 1
    of = np.full(int(found.person.max(initial=-1)) + 1, -1, np.int64)
    of[people] = groups
    inside = of[found.person] >= 0
    pairs = of[found.person[inside]] * np.int64(rule.m) + found.bucket[inside]
    key, place = np.unique(pairs, return_inverse=True)
    rows = np.bincount(place.ravel(), found.rows[inside], minlength=len(key)).astype(np.int64)
    bounds = np.searchsorted(key, np.arange(count + 1) * np.int64(rule.m))
    short = np.maximum.reduceat(rows, bounds[:-1]) * rule.l > np.add.reduceat(rows, bounds[:-1])
    fine = [group for group in order(count).tolist() if not short[group]]
    to = np.arange(count)
    for group in np.flatnonzero(short).tolist():
        held: Counter[int] = Counter()
        joined = group
        while True:
            here = slice(bounds[joined], bounds[joined + 1])
            held.update(dict(zip((key[here] % rule.m).tolist(), rows[here].tolist(), strict=True)))
            to[joined] = group
            if max(held.values()) * rule.l <= held.total() or not fine:
                break
            joined = fine.pop()
    return np.asarray(np.unique(to[groups], return_inverse=True)[1].ravel())


def _demand_counts_hide(table: Records, rule: BucketRule, people: NDArray[np.int64], groups: NDArray[np.int64]) -> None:
    """Refuse groups in which a number of rows identifies a value.

    Where people of a group have different numbers of rows, at least l values must be had by people with as many rows
    as each other, all of whose rows have one value: any two of these could have changed places. Nothing follows from
    numbers of rows where most people's values change from row to row.
    """
    assert table.people is not None
    rows = np.bincount(table.people)[people]
    width = int(rows.max(initial=0)) + 1
    stratum = groups * np.int64(width) + rows
    strata, at = np.unique(stratum, return_inverse=True)
    mixed = np.bincount(strata // width)[strata // width] > 1
    place = np.full(int(table.people.max(initial=-1)) + 1, -1, np.int64)
    place[people] = np.arange(len(people))
    kept = place[table.people]
    pairs = np.unique(kept[kept >= 0] * np.int64(rule.m) + rule.buckets[table.codes[rule.column]][kept >= 0])
    steady = np.bincount(pairs // rule.m, minlength=len(people))[pairs // rule.m] == 1
    several = rows > 1
    if 2 * len(np.unique((pairs // rule.m)[steady & several[pairs // rule.m]])) < int(several.sum()):
        return
    held = np.unique(at[pairs[steady] // rule.m] * np.int64(rule.m) + pairs[steady] % rule.m)
    if (mixed & (np.bincount(held // rule.m, minlength=len(strata)) < rule.l)).any():
        message = f"groups of {rule.column!r} need people with equal numbers of rows, and there are too few."
        raise RequirementNotMet(
            message, hint="Publish the same number of rows for everybody, or use decoys or mondrian."
        )


def _enough(rule: BucketRule, people: int, buckets: NDArray[np.int64]) -> bool:
    """Return whether groups can be formed of some people: no bucket is too frequent among them."""
    return people >= rule.l and int(np.bincount(buckets).max(initial=0)) * rule.l <= people
