"""The values that a column may take: as declared, or from the texts of its table.

Texts that write the same value are one value. A value that is found may be named in a message only if at least five
records share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, inf

import numpy as np
from numpy.typing import NDArray

from noren.engines.engine import OPEN_LIMIT, ValueCounts
from noren.errors import NAMED_FROM, Problem
from noren.schema.column import Column
from noren.schema.domain import (
    MISSING,
    OTHER,
    Domain,
    DomainSource,
    bin_labels,
    end_labels,
    is_number,
    sort_labels,
    with_ends,
)
from noren.schema.hierarchy import Hierarchy, quantile_cuts
from noren.schema.kinds import CALENDAR, NUMERIC, Format, Kind, Sniffed, as_number, reader, sniff
from noren.schema.tuples import Member, TupleDomain, canonical_tuples, tuple_parts

MOST_OTHER = 0.1
"""Share of the people from which the holder is told how many merging of rare values puts into "(other)"."""
MOST_BINS = 10_000
"""Intervals that a rule makes at most."""
Counted = tuple[Domain, NDArray[np.int64], list[Problem]]


def domain_of(
    where: str, attribute: Column, profile: ValueCounts, decimal: str | None, hierarchy: Hierarchy | None
) -> Counted:
    """Return the domain of a column, the counts of its values, and problems."""
    problems: list[Problem] = []
    missing = profile.missing if attribute.missing == "category" else 0
    written = _written(attribute, profile, decimal, hierarchy)
    known, merged, edges = dict(profile.counts), 0, attribute.edges
    top: float | None = None
    bottom: float | None = None
    source: DomainSource = "data"
    if edges is not None:
        values, source = list(bin_labels(edges)), "bins"
    elif attribute.values is not None and attribute.kind is None:
        values, source, written = list(attribute.values), "policy", Sniffed("string", Format(), "declared")
        known, found = _only(where, known, values)
        problems += found
    else:
        known, found = _read(where, attribute, known, written)
        problems += found
        if isinstance(attribute.bins, str):
            edges, found = _ruled(where, attribute, known, written.kind)
            problems += found
            if edges is None:
                return Domain((MISSING,)), np.zeros(1, np.int64), problems
            known = _binned(known, edges, written.kind)
            values, source = list(bin_labels(edges)), "bins"
        elif attribute.values is not None:
            values, source = list(attribute.values), "policy"
            known, found = _only(where, known, values)
            problems += found
        else:
            top, bottom = attribute.top, attribute.bottom
            if top is not None or bottom is not None:
                known, found = _ended(where, attribute, known, written.kind)
                problems += found
            known, merged, found = _merged(where, attribute, known)
            problems += found
            kind = written.kind if OTHER not in known else "string"
            values = (
                sort_labels(list(known), kind) if top is None and bottom is None else sort_ranked(known, top, bottom)
            )
    if missing and MISSING not in values:
        values.append(MISSING)
    if missing:
        known[MISSING] = known.get(MISSING, 0) + missing
    values = values or [MISSING]
    kind = _published_kind(values, written.kind if source in ("data", "policy") else "string", attribute, source)
    domain = Domain(tuple(values), kind, source, merged, edges, written.format, written.kind, top, bottom)
    return domain, np.array([known.get(value, 0) for value in values], np.int64), problems


def _written(attribute: Column, profile: ValueCounts, decimal: str | None, hierarchy: Hierarchy | None) -> Sniffed:
    """Return the kind of a column and how it is written: as declared, otherwise detected."""
    if attribute.kind is not None:
        kind: Kind = "string" if attribute.kind == "text" else attribute.kind
        seen = sniff(profile.counts, decimal)
        marks = seen.format if kind in NUMERIC and seen.kind in NUMERIC else Format(decimal or ".")
        return Sniffed(kind, Format(pattern=attribute.format or "") if kind in CALENDAR else marks, "declared")
    if decimal is not None and attribute.edges is not None:
        return Sniffed("number", Format(decimal), "bins")
    found = sniff(profile.counts, decimal)
    if hierarchy is not None:  # its leaves say how values are written
        read = reader(found.kind, found.format)
        leaves = set(hierarchy.leaves)
        if not all(label in leaves or (read(label) or label) in leaves for label in profile.counts):
            return Sniffed("string", Format(), "as the hierarchy writes them")
        if any(label in leaves and read(label) not in leaves for label in profile.counts):
            return Sniffed("string", Format(), "as the hierarchy writes them")
    return found


def _read(
    where: str, attribute: Column, known: Mapping[str, int], written: Sniffed
) -> tuple[dict[str, int], list[Problem]]:
    """Return the counts of values instead of texts; texts of another kind are a problem."""
    read = reader(written.kind, written.format)
    out: dict[str, int] = {}
    strange: dict[str, int] = {}
    for label, count in known.items():
        value = label if written.kind in ("string", "boolean") else read(label)
        if value is None or (written.kind == "boolean" and value not in ("true", "false")):
            strange[label] = count
        else:
            out[value] = out.get(value, 0) + count
    if not strange:
        return out, []
    hint = "List markers of missing values under missing_values, or declare format or decimal."
    return out, [Problem(f"{where}.kind", f"{written.kind} cannot be {named(strange)}.", hint)]


def _only(where: str, known: Mapping[str, int], values: Sequence[str]) -> tuple[dict[str, int], list[Problem]]:
    """Return the counts of declared values; others are a problem."""
    strange = {label: count for label, count in known.items() if label not in set(values)}
    left = {label: count for label, count in known.items() if label not in strange}
    if not strange:
        return left, []
    hint = "Add them to values, or list markers under [data] missing_values."
    return left, [Problem(f"{where}.values", f"misses {named(strange)}.", hint)]


def _merged(where: str, attribute: Column, known: dict[str, int]) -> tuple[dict[str, int], int, list[Problem]]:
    """Merge or refuse rare values as the policy says; refuse also if no value would remain."""
    few = {label for label, count in known.items() if count < attribute.min_count and label != OTHER}
    if not few:
        return known, 0, []
    if attribute.rare == "refuse":
        message = f"{len(few)} values occur in fewer than {attribute.min_count} records."
        hint = 'Set rare = "merge" to publish them as "(other)", or lower min_count.'
        return known, 0, [Problem(f"{where}.min_count", message, hint)]
    left = {label: count for label, count in known.items() if label not in few}
    left[OTHER] = left.get(OTHER, 0) + sum(known[label] for label in few)
    if len(left) == 1 and len(known) > 1:
        message = (
            f"every value occurs in fewer than {attribute.min_count} records, so merging would leave only {OTHER!r}."
        )
        hint = 'Give bins ("quantiles:8" or edges) or a hierarchy, or lower min_count.'
        return known, 0, [Problem(f"{where}.min_count", message, hint)]
    return left, len(few), []


def _published_kind(values: Sequence[str], kind: Kind, attribute: Column, source: DomainSource) -> Kind:
    ended = not isinstance(attribute.bins, str) and (attribute.top is not None or attribute.bottom is not None)
    if ended or OTHER in values or (MISSING in values and attribute.role.needs_requirement):
        return "string"
    if source == "policy" and attribute.kind is None:
        from noren.schema.domain import infer_kind

        return infer_kind(values)
    return kind if any(value != MISSING for value in values) else "string"


# ---------------------------------------------------------------------- top and bottom coding


def _ended(where: str, attribute: Column, known: Mapping[str, int], kind: Kind) -> tuple[dict[str, int], list[Problem]]:
    """Return the counts with the numbers beyond an end as one value."""
    if kind not in NUMERIC:
        message = "top and bottom need numbers, but the column holds other values."
        return dict(known), [Problem(where, message, "List markers under missing_values, or remove top and bottom.")]
    out: dict[str, int] = {}
    for label, count in known.items():
        coded = with_ends(label, attribute.top, attribute.bottom)
        out[coded] = out.get(coded, 0) + count
    return out, []


def sort_ranked(known: Iterable[str], top: float | None, bottom: float | None) -> list[str]:
    """Return the values by size: the open ends first and last, whether or not they occur."""
    low = [label for _, label in end_labels(None, bottom)]
    high = [label for _, label in end_labels(top, None)]
    inner = [label for label in known if label not in (*low, *high)]
    special = [label for label in (OTHER, MISSING) if label in inner]
    numbers = [label for label in inner if label not in special]
    kind: Kind = "number" if all(map(is_number, numbers)) else "string"
    return [*low, *sort_labels(numbers, kind), *high, *special]


# ---------------------------------------------------------------------- bins by rule


def _ruled(
    where: str, attribute: Column, known: Mapping[str, int], kind: Kind
) -> tuple[tuple[float, ...] | None, list[Problem]]:
    """Return round edges from the data, none of which is a single record's value."""
    rule, _, argument = str(attribute.bins).partition(":")
    if kind not in NUMERIC:
        message = f"bins = {attribute.bins!r} needs numbers, but the column holds other values."
        return None, [Problem(f"{where}.bins", message, "List markers under missing_values, or give a hierarchy.")]
    numbers = np.array([as_number(label, kind) for label in known])
    counts = np.array(list(known.values()))
    if not len(numbers):
        return None, [
            Problem(f"{where}.bins", "the column has no numbers from which bins could be made.", "Give edges.")
        ]
    low, high = float(numbers.min()), float(numbers.max())
    bottom = attribute.bottom if attribute.bottom is not None else None
    top = attribute.top if attribute.top is not None else None
    first, last = (low if bottom is None else bottom), (high if top is None else top)
    if rule == "width":
        step = float(argument)
        if step <= 0:
            return None, [Problem(f"{where}.bins", "a width is above 0.", "For example 'width:10'.")]
        if (last - first) / step >= MOST_BINS:
            message = f"a width of {argument} makes {ceil((last - first) / step) + 1:,} intervals."
            return None, [Problem(f"{where}.bins", message, "Choose a larger width, or 'quantiles:8'.")]
        start = floor(first / step) * step
        edges = [start + i * step for i in range(max(1, ceil((last - start) / step + 1e-9)) + 1)]
    else:
        if float(argument) < 2 or float(argument) % 1:
            message = "the number of quantiles must be a whole number of at least 2."
            return None, [Problem(f"{where}.bins", message, "For example 'quantiles:8'.")]
        edges = [-inf, *quantile_cuts(numbers, counts, int(float(argument))), inf]
    if bottom is not None:
        edges = [-inf, bottom, *(edge for edge in edges if edge > bottom)]
    if top is not None:
        edges = [*(edge for edge in edges if edge < top), top, inf]
    return tuple(float(f"{edge:.12g}") for edge in edges), []


def _binned(known: Mapping[str, int], edges: Sequence[float], kind: Kind) -> dict[str, int]:
    labels = bin_labels(edges)
    out = dict.fromkeys(labels, 0)
    for label, count in known.items():
        number = as_number(label, kind)
        slot = int(np.searchsorted(edges, number, side="right")) - 1
        out[labels[min(slot, len(labels) - 1)]] += count
    return out


def named(counts: Mapping[str, int]) -> str:
    """Name values that several people share, and count the others."""
    common = sorted(label for label, count in counts.items() if count >= NAMED_FROM)
    hidden = len(counts) - len(common)
    parts = [", ".join(map(repr, common[:10]))] if common else []
    if len(common) > 10:
        parts.append(f"{len(common) - 10} more")
    if hidden:
        what = "rare value" if hidden == 1 else "rare values"
        parts.append(f"{hidden} {what} (not shown: fewer than {NAMED_FROM} records each)")
    return " and ".join(parts)


# ---------------------------------------------------------------------- survey weights


ROUND = "Give every record a number above 0 and remove records of weight 0."


def weight_problems(
    where: str, profile: ValueCounts, domain: Domain | None, counts: NDArray[np.int64]
) -> list[Problem]:
    """Return why a column cannot be used as weights, without naming a cell."""
    place = f"{where}.weight"
    if domain is None:
        message = f"{profile.name!r} has more than {OPEN_LIMIT:,} different weights, which identify people."
        return [Problem(place, message, "Round the weights before they are published.")]
    out = []
    if profile.missing:
        out.append(Problem(place, f"{profile.missing:,} records have no weight.", ROUND))
    kind = domain.kind if domain.kind in NUMERIC else domain.text_kind
    if kind not in NUMERIC:
        return [*out, Problem(place, f"{profile.name!r} holds texts that are not numbers.", ROUND)]
    numbers = np.array([as_number(value, "number") for value in domain.plain])
    of = counts[: len(numbers)]
    for wrong, what in ((numbers < 0, "a negative weight"), (numbers == 0, "the weight 0")):
        if wrong.any():
            out.append(Problem(place, f"{int(of[wrong].sum()):,} records have {what}.", ROUND))
    if not np.isfinite(numbers).all():
        out.append(Problem(place, f"{int(of[~np.isfinite(numbers)].sum()):,} records have an infinite weight.", ROUND))
    return out


def weight_remark(name: str, counts: NDArray[np.int64]) -> str:
    """Return a remark on weights that few people share; empty if there are none."""
    rare = counts[(counts > 0) & (counts < NAMED_FROM)]
    if not len(rare):
        return ""
    return (
        f"{name}: {int(rare.sum()):,} records have a weight that fewer than five share. Weights are published "
        "exactly, and somebody who can compute a weight from the stratum, age or region finds the record. Round "
        "them, or make them equal within strata"
    )


# ---------------------------------------------------------------------- tuples


Resolve = Callable[[str, ValueCounts], tuple[Column, list[Problem]]]
"""What a member becomes, given how often its texts occur."""


def tuple_domain(
    where: str, attribute: Column, profile: ValueCounts, resolve: Resolve
) -> tuple[TupleDomain, NDArray[np.int64], list[Problem]]:
    """Return the tuples that may occur, their counts, and problems."""
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
    """Count each text of one member."""
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
    """Sort tuples by their members' values, the special ones last."""
    special = {OTHER: 1, MISSING: 2}.get(label, 0)
    parts = tuple_parts(label, len(members))
    return (special, *(member.domain.index.get(part, 0) for member, part in zip(members, parts, strict=True)))


def _strange(where: str, values: list[str], members: list[Member]) -> list[Problem]:
    """Return declared tuples with parts that a member cannot have."""
    rows = [tuple_parts(value, len(members)) for value in values]
    out = []
    for number, member in enumerate(members):
        lost = {row[number] for row in rows} - set(member.domain.values) - {MISSING, OTHER}
        if lost:
            message = f"{len(lost)} values of {member.name!r} in the tuples are not declared for it."
            out.append(Problem(f"{where}.values", message, f"Add them to attributes.{member.name}.values."))
    return out


def _with_special(member: Member, number: int, size: int, values: Sequence[str]) -> Member:
    """Return the member with codes for "(other)" and for a missing part, if a tuple has one."""
    domain = member.domain
    parts = {tuple_parts(value, size)[number] for value in values}
    more = tuple(one for one in (OTHER, MISSING) if one in parts and one not in domain.index)
    if not more:
        return member
    wide = replace(domain, values=(*domain.values, *more), kind="string" if OTHER in more else domain.kind)
    return Member(member.name, wide, None if member.tree is None else member.tree.restrict_to(wide.values))
