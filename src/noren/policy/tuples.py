"""A composite column meets its table: members get domains of their own, and the tuples that occur become values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from noren.engines.profile import ValueCounts
from noren.errors import Problem
from noren.policy.values import _merged, _only
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain, DomainSource, bin_labels
from noren.schema.hierarchy import Hierarchy
from noren.schema.tuples import Member, TupleDomain, canonical_tuples, tuple_parts

Resolve = Callable[[str, ValueCounts], tuple[Column, list[Problem]]]
"""What a member becomes, given how often its texts occur."""


def tuple_domain(
    where: str, attribute: Column, profile: ValueCounts, resolve: Resolve
) -> tuple[TupleDomain, NDArray[np.int64], list[Problem]]:
    """The tuples that may occur, how often they do, and what stands in the way."""
    names = tuple(attribute.members)
    raw = dict(profile.counts)
    if profile.missing:
        raw[MISSING] = raw.get(MISSING, 0) + profile.missing
    seen = dict.fromkeys(attribute.values or (), 1) | raw
    problems: list[Problem] = []
    members = []
    for number, name in enumerate(names):
        column, found = resolve(name, _counted(attribute.members[name], name, number, len(names), seen))
        problems += found
        tree = column.hierarchy if isinstance(column.hierarchy, Hierarchy) else None
        members.append(Member(name, column.domain, tree))
    known: dict[str, int] = {}
    for label, count in zip(canonical_tuples(list(raw), members), raw.values(), strict=True):
        known[label] = known.get(label, 0) + count
    gathered = 0
    if attribute.values is not None:
        values = list(canonical_tuples(list(attribute.values), members))
        known, found = _only(where, known, values)
        problems += found + _strange(where, values, members)
    else:
        known, gathered, found = _merged(where, attribute, known)
        problems += found
        values = sorted(known, key=lambda label: _place(label, members))
    if problems:  # members may lack values, so that no tuple could be coded
        values, members = [MISSING], [Member(name, Domain((MISSING,))) for name in names]
    source: DomainSource = "data" if attribute.values is None else "policy"
    values = list(dict.fromkeys(values)) or [MISSING]
    whole = tuple(_with_special(member, number, len(names), values) for number, member in enumerate(members))
    domain = TupleDomain(tuple(values), "string", source, gathered, members=whole, differ=attribute.differ)
    return domain, np.array([known.get(value, 0) for value in values], np.int64), problems


def _counted(attribute: Column, name: str, number: int, size: int, seen: Mapping[str, int]) -> ValueCounts:
    """How often each text of one member occurs."""
    counts: dict[str, int] = {}
    for label, count in seen.items():
        part = tuple_parts(label, size)[number]
        counts[part] = counts.get(part, 0) + count
    missing = counts.pop(MISSING, 0)
    if attribute.edges is None:
        return ValueCounts(name, counts, missing)
    bins = bin_labels(attribute.edges)  # the source has put numbers into their bins; what is left is outside, or none
    outside = sum(count for label, count in counts.items() if label not in bins)
    return ValueCounts(name, {label: counts.get(label, 0) for label in bins}, missing, outside)


def _place(label: str, members: list[Member]) -> tuple[int, ...]:
    """Tuples in the order of their members' values, the special ones last."""
    special = {OTHER: 1, MISSING: 2}.get(label, 0)
    parts = tuple_parts(label, len(members))
    return (special, *(member.domain.index.get(part, 0) for member, part in zip(members, parts, strict=True)))


def _strange(where: str, values: list[str], members: list[Member]) -> list[Problem]:
    """Declared tuples with parts that a member cannot have."""
    rows = [tuple_parts(value, len(members)) for value in values]
    out = []
    for number, member in enumerate(members):
        lost = {row[number] for row in rows} - set(member.domain.values) - {MISSING, OTHER}
        if lost:
            message = f"{len(lost)} values of {member.name!r} in the tuples are none that it declares."
            out.append(Problem(f"{where}.values", message, f"Add them to attributes.{member.name}.values."))
    return out


def _with_special(member: Member, number: int, size: int, values: Sequence[str]) -> Member:
    """The member with a place for "(other)" and for a missing part, where a tuple has one."""
    domain = member.domain
    parts = {tuple_parts(value, size)[number] for value in values}
    more = tuple(one for one in (OTHER, MISSING) if one in parts and one not in domain.index)
    if not more:
        return member
    wide = replace(domain, values=(*domain.values, *more), kind="string" if OTHER in more else domain.kind)
    return Member(member.name, wide, None if member.tree is None else member.tree.restricted(wide.values))
