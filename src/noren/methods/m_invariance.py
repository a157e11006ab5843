"""m-invariance (Xiao, Tao 2007): groups of different secrets, in which a person's possible secrets stay the same every
year.

The values that earlier releases leave possible for a person are the person's signature. People with one signature make
a bucket, and every group of a bucket holds one record of each value of the signature. Where the bucket lacks records
of a value, newcomers with that value join it, and where there are none a counterfeit takes the place: an entry in the
group's table that is nobody's. The other newcomers are grouped along a Hilbert curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.engines import Group, Plan, RandomOrder, Records
from noren.errors import Problem, RequirementNotMet
from noren.methods.base import ClassMethod
from noren.methods.cover import cover
from noren.methods.hilbert import along_curve, diverse_groups
from noren.methods.requirements import USE_FOR_TERMS
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.ragged import in_order, offsets_of, owners, ranges, runs
from noren.schema.roles import Role
from noren.secret import ClassSets
from noren.statements import GroupTable

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule

GROUPED = ("frequency", "distinct")
"""Rules that groups of different values meet; their first number is how many."""


class MInvariant(ClassMethod):
    """Publish secrets as groups of m or more different values, which a person keeps over all releases.

    Quasi-identifiers are generalised over a group, or over neighbouring ones where k-anonymity asks for more records.
    Without earlier releases everybody is new. No record is suppressed; the number of counterfeits is published.
    """

    name: Literal["m-invariance"] = "m-invariance"
    sentence: ClassVar[str] = (
        "Secrets are published as groups of different values; people in a later release stay in groups with the "
        "same values."
    )
    counterfeits: float = Field(
        default=0.05,
        ge=0,
        le=10,
        description="Largest number of counterfeits (entries that belong to nobody), as a share of the records.",
    )

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.rule import NotReplayed

        return NotReplayed(
            "groups take the next records with other values along a curve; what skipped records disclose is not "
            "computed"
        )

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        found = []
        for number, model in enumerate(requirements, 1):
            if not (_served(model) or model.about == "classes"):
                message = f"the method {self.name!r} forms groups of different values and cannot meet {model.model}."
                hint = "It meets m-invariance, frequency-l-diversity, distinct-l-diversity and k-anonymity."
                found.append(Problem(f"require[{number}].model", message, hint))
        names = {name for model in requirements if _served(model) for name in model.on}
        if len(names) != 1:
            message = f"the method {self.name!r} protects one sensitive column, but {len(names)} have requirements."
            found.append(Problem("require", message, 'Add [[require]] with model = "m-invariance" on one column.'))
        for column, role in roles.items():
            if role in (Role.SENSITIVE_QUASI_IDENTIFIER, Role.QUASI_SENSITIVE):
                message = f"the method {self.name!r} cannot protect a column of role {role.value!r}."
                hint = USE_FOR_TERMS if role is Role.QUASI_SENSITIVE else "Make it sensitive or a quasi-identifier."
                found.append(Problem(f"attributes.{column}.role", message, hint))
        if self.suppression:
            message = f"the method {self.name!r} suppresses no records."
            found.append(
                Problem("method.suppression", message, "Set suppression = 0, and permit counterfeits instead.")
            )
        return found

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        asked = [model for model in requirements if _served(model)]
        (secret,) = {name for model in asked for name in model.on}
        m = max(ceil(model.required) for model in asked)
        found = _Task(table, secret, m, order).grouped()
        fakes = len(found.fake_values)
        if fakes > self.counterfeits * table.n:
            raise RequirementNotMet(
                f"{fakes:,} counterfeits would be needed for {table.n:,} records; the policy permits "
                f"{int(self.counterfeits * table.n):,}, so nothing is published.",
                hint="Permit more counterfeits, lower m, or remove people with values that nobody else has.",
            )
        least = max([m, *(model.least_class_size for model in requirements)])
        classes, count = found.classes(least)
        columns = {name: cover(table.columns[name], table.codes[name], classes, count) for name in table.quasi}
        notes = [f"{secret}: {found.count:,} groups"]
        if fakes:
            notes.append(
                f"{secret}: {fakes:,} entries of {len(np.unique(found.fake_groups)):,} groups are counterfeits"
            )
        return Plan(columns | {secret: found.treatment(table, secret, order)}, None, tuple(notes))


def _served(model: Model) -> bool:
    rule = model.search_rule
    return model.invariant or (rule is not None and rule.rule in GROUPED)


@dataclass(frozen=True)
class Grouped:
    """The group of every record, and the counterfeit entries."""

    group: NDArray[np.int64]
    count: int
    fake_groups: NDArray[np.int64]
    fake_values: NDArray[np.int64]
    curve: NDArray[np.int64]
    """The records in the order of the curve."""

    def treatment(self, table: Records, secret: str, order: RandomOrder) -> Group:
        number = order(self.count)
        data, fakes = number[self.group], number[self.fake_groups]
        d, codes = table.columns[secret].d, table.codes[secret].astype(np.int64)
        held = GroupTable.from_codes(
            self.count, d, np.concatenate([data, fakes]), np.concatenate([codes, self.fake_values])
        )
        return Group(held, data, np.bincount(fakes, minlength=self.count))

    def classes(self, least: int) -> tuple[NDArray[np.int64], int]:
        """Merge consecutive groups on the curve until every class has enough records."""
        if len(self.group) < least:
            message = f"groups need at least {least} records, and the table has {len(self.group)}."
            raise RequirementNotMet(message, hint="Lower the requirement, or wait for more records.")
        first = np.full(self.count, len(self.group), np.int64)
        np.minimum.at(first, self.group[self.curve], np.arange(len(self.group)))
        walk = np.argsort(first, kind="stable")
        sizes = np.bincount(self.group, minlength=self.count)[walk]
        of, run, room = np.empty(self.count, np.int64), 0, 0
        for place, size in enumerate(sizes.tolist()):
            of[walk[place]] = run
            room += size
            if room >= least:
                run, room = run + 1, 0
        if room:
            of[of == run] = run - 1
        return of[self.group], run


@dataclass(frozen=True)
class _Task:
    table: Records
    secret: str
    m: int
    order: RandomOrder

    @property
    def d(self) -> int:
        return self.table.columns[self.secret].d

    def grouped(self) -> Grouped:
        if self.m > self.d:
            message = f"m = {self.m} cannot be reached for {self.secret!r}, which has {self.d} values."
            raise RequirementNotMet(message, hint=f"Set m to at most {self.d}.")
        known = self._signatures()
        ways = [self._made(known, fill) for fill in ((True, False) if (known.which >= 0).any() else (False,))]
        return min(ways, key=lambda way: len(way.fake_values))

    def _signatures(self) -> ClassSets:
        """Return everybody's possible values after earlier releases, over the column's own values."""
        table, column = self.table, self.table.columns[self.secret]
        known = table.earlier.get(self.secret, ClassSets.none(table.n)).distinct()
        gone = [value for code, value in enumerate(known.values) if value not in column.domain.index
                and (known.codes == code).any()]  # fmt: skip
        if gone:
            raise RequirementNotMet(
                f"{len(gone)} values of {self.secret!r} in earlier releases are not in its domain.",
                hint=f"Declare the whole domain in the policy: values = [...] for {self.secret!r}.",
            )
        if not len(known.values):
            return known
        place = np.array([column.domain.index.get(value, 0) for value in known.values], np.int64)
        codes = place[known.codes]
        codes = codes[np.lexsort([codes, owners(known.bounds)])]
        known = ClassSets(column.domain.values, known.which, known.bounds, codes)
        there = known.which >= 0
        small = int((known.sizes[known.which[there]] < self.m).sum())
        if small:
            raise RequirementNotMet(
                f"earlier releases leave {small:,} people fewer than {self.m} possible values of {self.secret!r}, so "
                "nothing is published.",
                hint="Lower m, or remove these people from the table.",
            )
        wanted = known.which[there] * self.d + table.codes[self.secret].astype(np.int64)[there]
        changed = int((~np.isin(wanted, owners(known.bounds) * self.d + codes)).sum())
        if changed:
            raise RequirementNotMet(
                f"{changed:,} people now have a value of {self.secret!r} that was not among their possible values "
                "before, so nothing is published.",
                hint="Remove these people from the table, or publish them under a new key, as new people.",
            )
        return known

    def _made(self, known: ClassSets, fill: bool) -> Grouped:
        """Form groups of returning people first, then of newcomers. With `fill`, newcomers replace counterfeits."""
        table, d = self.table, self.d
        codes = table.codes[self.secret].astype(np.int64)
        ranks = self.order(table.n)
        curve = along_curve(table, ranks) if table.quasi else np.argsort(ranks)
        of, keys = owners(known.bounds), owners(known.bounds) * d + known.codes
        entry = np.full(table.n, -1, np.int64)
        there = np.flatnonzero(known.which >= 0)
        entry[there] = np.searchsorted(keys, known.which[there] * d + codes[there])
        have = np.bincount(entry[there], minlength=len(keys))
        height = np.zeros(len(known.bounds) - 1, np.int64)
        np.maximum.at(height, of, have)
        if fill:
            self._fill(entry, codes, known.codes, height[of] - have)
            have = np.bincount(entry[entry >= 0], minlength=len(keys))
        group = np.full(table.n, -1, np.int64)
        first = offsets_of(height)
        slot_group, slot_entry = self._slots(first, of, height, have)
        members = curve[entry[curve] >= 0]
        members = members[np.argsort(entry[members], kind="stable")]
        real = self._real(slot_entry, have)
        group[members] = slot_group[real]
        fakes, fake_values = slot_group[~real], known.codes[slot_entry[~real]]
        rest = curve[group[curve] < 0]
        values, real = self._padded(codes[rest])
        groups, count = diverse_groups(values, self.d, self.m)
        at = np.flatnonzero(np.bincount(groups[real], minlength=count)) if count else np.zeros(0, np.int64)
        place = np.full(count, -1, np.int64)  # a group of counterfeits alone is not published
        place[at] = first[-1] + np.arange(len(at))
        group[rest] = place[groups[real]]
        lone = ~real & (place[groups] >= 0) if count else ~real
        fakes, fake_values = np.append(fakes, place[groups[lone]]), np.append(fake_values, values[lone])
        return Grouped(group, int(first[-1]) + len(at), fakes, fake_values, curve)

    def _fill(self, entry: NDArray, codes: NDArray, value: NDArray, lacking: NDArray) -> None:
        """Assign random newcomers to entries that lack records of their value."""
        new = self.order(len(codes))
        new = new[entry[new] < 0]
        places = np.repeat(np.arange(len(lacking)), lacking)
        places = places[self.order(len(places))]
        mine, theirs = _ranked(codes[new]), _ranked(value[places])
        size = max(len(new), len(places), 1)
        one, two = codes[new] * size + mine, value[places] * size + theirs
        _, at, to = np.intersect1d(one, two, assume_unique=True, return_indices=True)
        entry[new[at]] = places[to]

    def _slots(
        self, first: NDArray, of: NDArray, height: NDArray, have: NDArray
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of all entries: one in every group of its bucket."""
        many = height[of]
        entry = np.repeat(np.arange(len(of)), many)
        within = np.arange(len(entry)) - np.repeat(offsets_of(many)[:-1], many)
        return first[of[entry]] + within, entry

    def _real(self, slot_entry: NDArray, have: NDArray) -> NDArray[np.bool_]:
        """Return which positions hold a record, chosen at random."""
        walk = self.order(len(slot_entry))
        rank = np.empty(len(walk), np.int64)
        rank[walk] = _ranked(slot_entry[walk])
        return np.asarray(rank < have[slot_entry])

    def _padded(self, values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return values in curve order, with counterfeits if one value has more than 1/m, and which are real."""
        counts = np.bincount(values, minlength=self.d)
        most = int(counts.max(initial=0))
        lacking = max(0, self.m * most - len(values))
        if not lacking:
            return values, np.ones(len(values), bool)
        room = np.repeat(np.arange(self.d), most - counts)
        fakes = room[self.order(len(room))[:lacking]]
        real = np.zeros(len(values) + lacking, bool)
        real[self.order(len(real))[: len(values)]] = True
        out = np.empty(len(real), np.int64)
        out[real], out[~real] = values, fakes
        return out, real


def _ranked(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many equal keys precede every key."""
    order = in_order(keys)
    counts = np.diff(runs(keys[order]))
    out = np.empty(len(keys), np.int64)
    out[order] = ranges(np.zeros_like(counts), counts)
    return out
