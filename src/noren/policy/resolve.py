"""Combine policy and table: every column gets its domain, and all contradictions are reported at once.

A value may be named in a message only if at least five records share it; rarer ones are counted. A typing slip in a
cell is a person's data too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.engines import Engine, engine_for
from noren.engines.engine import OPEN_LIMIT, Profile, ValueCounts
from noren.errors import MOST_NAMED, NAMED_FROM, NorenError, PolicyError, Problem, looks_like_data
from noren.policy.policy import Policy
from noren.policy.values import domain_of, named, tuple_domain, weight_problems
from noren.schema.column import Column, DistanceTable, HierarchySpec, MatrixSpec, SemilatticeSpec
from noren.schema.confusables import lookalike_problems
from noren.schema.distance import DISTANCES, DistanceError, read_matrix, read_semilattice
from noren.schema.domain import MISSING, OTHER, Domain, bin_labels, end_labels, has_no_order, infer_kind, sort_labels
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import Format
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.schema.tuples import Member
from noren.sources.derived import TermSpec, with_markers, with_terms, with_tuples
from noren.sources.source import Source, Writing

NO_ORDER = (
    "some values are numbers and others are not, so they have no order.",
    "Give values in their order, or list markers such as '?' under [data] missing_values.",
)
LONGEST_RANGE = 10_000
"""Whole numbers that a published range lists at most."""


class Met(NamedTuple):
    """A resolved column: its meaning, and the counts of its values."""

    column: Column
    counts: NDArray[np.int64]


def decimal_of(policy: Policy, name: str) -> str | None:
    """Return the decimal mark that a policy declares for a column."""
    return policy.attributes[name].decimal or policy.data.decimal


def column_problems(policy: Policy, source: str, columns: Sequence[str]) -> list[Problem]:
    """Return problems of columns that are only in the policy or only in the table."""
    unnamed = [name for name in columns if name not in policy.attributes]
    absent = [name for name in policy.attributes if name not in columns]
    near = {name: found for name in absent for found in get_close_matches(name, unnamed, n=1)}
    shown = list(dict.fromkeys(near.values()))
    if len(absent) < len(policy.attributes) and not looks_like_data(columns):
        shown = list(dict.fromkeys([*shown, *unnamed]))
    shown = [name for name in unnamed if name in shown[:MOST_NAMED]]
    problems = [
        Problem(
            f"attributes.{name}",
            f"{source} has the column {name!r}, which is not in the policy.",
            "Give it a role: 'plain' for a harmless column, 'drop' for an unwanted one.",
        )
        for name in shown
    ]
    if more := len(unnamed) - len(shown):
        what = f"{more:,} {'more ' if shown else ''}column{'s' if more > 1 else ''}"
        hint = (
            "Check that its first line is a header; if so, give the columns roles."
            if not shown
            else "Give them roles, too."
        )
        problems.append(Problem("attributes", f"{source} has {what} that are not in the policy.", hint))
    return problems + [
        Problem(
            f"attributes.{name}",
            f"{source} has no column {name!r}.",
            f"Did you mean {near[name]!r}?" if near.get(name) in shown else "",
        )
        for name in absent
    ]


def resolve(policy: Policy, source: str, columns: Sequence[str], profile: Profile) -> dict[str, Met]:
    """Resolve all published columns in the table's order; raise PolicyError with all problems."""
    problems = column_problems(policy, source, columns)
    out: dict[str, Met] = {}
    for name in columns:
        if name not in policy.attributes or policy.attributes[name].role.is_dropped:
            continue
        column, found = resolve_column(policy, name, profile.columns[name])
        problems += found
        if column is not None:
            out[name] = column
    if problems:
        raise PolicyError(problems, source=policy.source)
    return out


def resolve_column(policy: Policy, name: str, profile: ValueCounts) -> tuple[Met | None, list[Problem]]:
    """Resolve one column: domain, hierarchy and distances, and problems."""
    attribute = policy.attributes[name]
    where = f"attributes.{name}"
    problems = _cell_problems(where, name, attribute, profile)
    if attribute.role is Role.QUASI_SENSITIVE:
        return resolve_terms(policy.knowledge[name], attribute, profile, problems)
    if profile.is_open:
        if name in policy.protected:
            message = f"more than {OPEN_LIMIT:,} distinct values: too many to protect."
            problems.append(Problem(where, message, "Give bins, or drop the column."))
        elif policy.forms_classes and attribute.role is Role.QUASI_IDENTIFIER:
            message = f"more than {OPEN_LIMIT:,} distinct values: too many to generalise."
            problems.append(Problem(where, message, "Give bins, or drop the column."))
        if attribute.hierarchy is not None or attribute.values is not None:
            message = f"more than {OPEN_LIMIT:,} distinct values: too many for a hierarchy or declared domain."
            problems.append(Problem(where, message, "Remove hierarchy and values, or give bins."))
        if attribute.bins is None and (attribute.top is not None or attribute.bottom is not None):
            message = f"more than {OPEN_LIMIT:,} distinct values: too many for top and bottom."
            problems.append(Problem(where, message, "Give bins, for example 'width:10', or drop the column."))
        if attribute.min_count > 1:
            message = f"more than {OPEN_LIMIT:,} distinct values: too many to count, so min_count cannot be kept."
            problems.append(Problem(f"{where}.min_count", message, "Give bins, drop the column, or remove min_count."))
        if attribute.weight:
            problems += weight_problems(where, profile, None, np.zeros(0, np.int64))
        return Met(attribute.over(name, None, hierarchy=None), np.zeros(0, np.int64)), problems
    if attribute.members:
        return resolve_composite(policy, name, profile)
    domain, counts, found = domain_of(where, attribute, profile, decimal_of(policy, name), policy.hierarchies.get(name))
    problems += found
    if domain.kind == "string" and not found:
        problems += lookalike_problems(where, name, domain.values)
    if attribute.weight:
        problems += weight_problems(where, profile, domain, counts)
    if policy.forms_classes and attribute.role is Role.QUASI_IDENTIFIER:
        domain, counts = _widen_domain(domain, counts, policy.hierarchies.get(name))
    loose = domain.source == "data" and not domain.has_ends
    if attribute.distance == "ordinal" and loose and has_no_order(domain.values):
        problems.append(Problem(f"{where}.values", *NO_ORDER))
    hierarchy, found = _hierarchy(policy, where, name, attribute, domain, counts, profile)
    problems += found
    distance, found = _distance(policy, attribute, domain, hierarchy, profile)
    problems += found
    if any(name in model.on and "order" in model.needs for model in policy.require):
        if domain.has_missing:
            message = f"{name!r} has missing cells, which have no position in the order that closeness uses."
            hint = 'Set missing = "drop" or "reject", or use distance = "equal" in the requirement.'
            problems.append(Problem(f"{where}.missing", message, hint))
        if _has_rest(domain):
            message = f"{name!r} has merged values, and {OTHER!r} has no position in the order that closeness uses."
            hint = 'Use bins or rare = "refuse", or distance = "equal" in the requirement.'
            problems.append(Problem(f"{where}.rare", message, hint))
    return Met(attribute.over(name, domain, hierarchy=hierarchy, distance=distance), counts), problems


def resolve_composite(policy: Policy, name: str, profile: ValueCounts) -> tuple[Met, list[Problem]]:
    """Resolve columns that are hidden together: each member separately, then the tuples of their values."""
    attribute = policy.attributes[name]

    def member(own: str, counts: ValueCounts) -> tuple[Column, list[Problem]]:
        declared, where = attribute.members[own], f"attributes.{own}"
        declared = declared.model_copy(
            update={"min_count": 1}
        )  # rare tuples are merged whole; others have common parts
        problems = _cell_problems(where, own, declared, counts)
        mark, known = declared.decimal or policy.data.decimal, policy.hierarchies.get(own)
        domain, times, found = domain_of(where, declared, counts, mark, known)
        found = found or lookalike_problems(where, own, domain.values)
        tree, more = _hierarchy(policy, where, own, declared, domain, times, counts)
        return declared.over(own, domain, hierarchy=tree), [*problems, *found, *more]

    domain, counts, problems = tuple_domain(f"together.{name}", attribute, profile, member)
    distance, found = _distance(policy, attribute, domain, None, profile)
    return Met(attribute.over(name, domain, distance=distance), counts), [*problems, *found]


def resolve_terms(
    knowledge: Knowledge, attribute: Column, profile: ValueCounts, problems: list[Problem]
) -> tuple[Met, list[Problem]]:
    """Resolve a column of terms: the terms of the knowledge table, followed by the unknown ones to publish."""
    known = set(knowledge.terms)
    unknown = {term: count for term, count in profile.counts.items() if term not in known}
    if unknown and attribute.unknown == "reject":
        message = f"the knowledge table lacks {named(unknown)}."
        hint = (
            'Add them to the table, or set unknown = "drop" (never published) or "keep" (published, linked to no '
            "label)."
        )
        problems.append(Problem(f"attributes.{profile.name}.knowledge", message, hint))
    kept = sorted(unknown) if attribute.unknown == "keep" else []
    values = (*knowledge.terms, *kept)
    problems = [*problems, *lookalike_problems(f"attributes.{profile.name}", profile.name, values)]
    domain = Domain(values, "string", "data" if kept else "policy")
    counts = np.array([profile.counts.get(term, 0) for term in values], np.int64)
    return Met(attribute.over(profile.name, domain, knowledge=knowledge), counts), problems


def _cell_problems(where: str, name: str, attribute: Column, profile: ValueCounts) -> list[Problem]:
    out = []
    if profile.missing and attribute.missing == "reject":
        message = f"{profile.missing} cells are missing, and the policy rejects them."
        out.append(Problem(f"{where}.missing", message, 'Complete the table, or set missing = "drop" or "category".'))
    if profile.not_numeric:
        message = f"{name!r} has bins but holds values that are not numbers."
        hint = "List markers such as '?' under [data] missing_values, or remove the bins."
        out.append(Problem(f"{where}.bins", message, hint))
    if profile.outside and attribute.edges is not None:
        message = f"{profile.outside} cells lie outside {attribute.edges[0]:g}..{attribute.edges[-1]:g}."
        out.append(Problem(f"{where}.bins", message, "Widen the first or last bin."))
    return out


def _widen_domain(
    domain: Domain, counts: NDArray[np.int64], hierarchy: Hierarchy | None
) -> tuple[Domain, NDArray[np.int64]]:
    """Extend the domain to all leaves of a hierarchy or all whole numbers of a range, because the occurring values
    would disclose who is there."""
    if domain.source != "data" or domain.merged:
        return domain, counts
    if hierarchy is None:
        return _whole_range(domain, counts)
    if hierarchy.missing(domain.values):
        return domain, counts
    special = [value for value in domain.values if value not in hierarchy.leaves]
    labels = [*hierarchy.leaves, *special]
    kind = infer_kind(labels)
    values = tuple(sort_labels(labels, kind) if kind in ("integer", "number") else labels)
    known = dict(zip(domain.values, counts.tolist(), strict=True))
    wide = Domain(values, kind, "hierarchy", format=domain.format, reads=domain.reads)
    return wide, np.array([known.get(value, 0) for value in values], np.int64)


def _whole_range(domain: Domain, counts: NDArray[np.int64]) -> tuple[Domain, NDArray[np.int64]]:
    """Return every whole number from the smallest to the largest, unless they are too many or other values occur."""
    ends = {label for _, label in end_labels(domain.top, domain.bottom)}
    plain = tuple(value for value in domain.plain if value not in ends)
    if not plain or not all(_is_whole(value) for value in plain) or (domain.kind != "integer" and not ends):
        return domain, counts
    low = int(plain[0]) if domain.bottom is None else ceil(domain.bottom)
    high = int(plain[-1]) if domain.top is None else ceil(domain.top) - 1
    if high - low >= min(LONGEST_RANGE, 50 * len(domain)):
        return domain, counts
    known = dict(zip(domain.values, counts.tolist(), strict=True))
    first, last = domain.index[plain[0]], domain.index[plain[-1]]
    values = (*domain.values[:first], *map(str, range(low, high + 1)), *domain.values[last + 1 :])
    wide = replace(domain, values=values)
    return wide, np.array([known.get(value, 0) for value in values], np.int64)


def _is_whole(label: str) -> bool:
    return label.removeprefix("-").isdecimal()


def _hierarchy(
    policy: Policy,
    where: str,
    name: str,
    attribute: Column,
    domain: Domain,
    counts: NDArray[np.int64],
    profile: ValueCounts,
) -> tuple[Hierarchy | None, list[Problem]]:
    spec = attribute.hierarchy
    known = policy.hierarchies.get(name)
    if spec is None:
        return None, []
    try:
        if known is not None:
            absent = known.missing(domain.values)
            if absent:
                missed = {value: profile.counts.get(value, 0) for value in absent}
                if domain.source != "data":
                    missed = dict.fromkeys(absent, NAMED_FROM)
                message = f"misses {named(missed)} of {name!r}."
                return None, [Problem(f"{where}.hierarchy", message, "Add a line for each value.")]
            return known.restrict_to(domain.values), []
        assert isinstance(spec, HierarchySpec)
        return spec.over(domain.values, counts), []
    except NorenError as error:
        return None, [Problem(f"{where}.hierarchy", error.message, error.hint or "")]


def _distance(
    policy: Policy, attribute: Column, domain: Domain, hierarchy: Hierarchy | None, profile: ValueCounts
) -> tuple[Any, list[Problem]]:
    """Return the distance of a column if a requirement needs one: a name, or a table over its values; otherwise
    "equal".

    A declared distance must be defined on the column's values also where no requirement uses it yet.
    """
    where = f"attributes.{profile.name}.distance"
    asked = [model for model in policy.require if profile.name in model.on]
    needed = any("distance" in model.needs for model in asked)
    if needed and domain.has_missing and attribute.distance in ("ordinal", "numeric"):
        return _beside_missing(DISTANCES[attribute.distance](_without_missing(domain), None), domain), []
    if needed and _has_rest(domain) and attribute.distance in ("ordinal", "numeric"):
        message = f"{profile.name!r} has merged values, and this distance does not define {OTHER!r}."
        return "equal", [Problem(where, message, 'Use bins or rare = "refuse", or give a tree or matrix.')]
    branches = any(model.separates and "tree" in model.needs for model in asked)
    if (branches or (needed and attribute.distance == "tree")) and _has_rest(domain):
        known = policy.hierarchies.get(profile.name)
        if known is None or OTHER not in known.leaves:
            message = f"{profile.name!r} has merged values, and the hierarchy does not contain {OTHER!r}."
            hint = f'Use rare = "refuse", or add {OTHER!r} to the hierarchy next to the values that it may replace.'
            return "equal", [Problem(f"attributes.{profile.name}.hierarchy", message, hint)]
    try:
        table = _distance_table(policy, attribute, domain)
        if attribute.distance == "numeric":
            DISTANCES["numeric"](_without_missing(domain), hierarchy)
        if needed and (attribute.distance != "tree" or hierarchy is not None):
            return table or attribute.distance, []
    except DistanceError as error:
        message = error.message
        if error.absent and domain.source == "data":
            missed = {value: profile.counts.get(value, 0) for value in error.absent}
            lattice = isinstance(attribute.distance, SemilatticeSpec)
            what = "semilattice has no line" if lattice else "distance table has no line or column"
            message = f"the {what} for {named(missed)}."
        return "equal", [Problem(where, message, error.hint or "Add an entry for every value of the domain.")]
    return "equal", []


def _beside_missing(inner: NDArray[np.float64], domain: Domain) -> DistanceTable:
    """Return a distance in which a missing cell is as far from every value as the two most distant values are."""
    place = [i for i, value in enumerate(domain.values) if value != MISSING]
    out = np.full((len(domain), len(domain)), float(inner.max(initial=1.0)))
    out[np.ix_(place, place)] = inner
    np.fill_diagonal(out, 0.0)
    return _rows(out)


def declared_distance(policy: Policy, name: str, domain: Domain) -> NDArray[np.float64]:
    """Return the distance that the policy declares for a column, whether a requirement uses it or not."""
    attribute = policy.attributes[name]
    table = _distance_table(policy, attribute, domain)
    if table is None:
        assert isinstance(attribute.distance, str)
        return DISTANCES[attribute.distance](domain, policy.hierarchies.get(name))
    return np.array(table)


def _distance_table(policy: Policy, attribute: Column, domain: Domain) -> DistanceTable | None:
    """Return a distance from a file, over the values of the domain."""
    spec = attribute.distance
    if isinstance(spec, MatrixSpec):
        return _rows(read_matrix(policy.base / spec.matrix, domain))
    if isinstance(spec, SemilatticeSpec):
        return _rows(read_semilattice(policy.base / spec.semilattice, domain))
    return spec if isinstance(spec, tuple) else None


def _rows(matrix: NDArray[np.float64]) -> DistanceTable:
    return tuple(map(tuple, matrix.tolist()))


def _has_rest(domain: Domain) -> bool:
    """Return whether merged values come from anywhere in the order, so that the order has no place for them."""
    return domain.source == "data" and OTHER in domain.index


def _without_missing(domain: Domain) -> Domain:
    return replace(domain, values=tuple(v for v in domain.values if v != MISSING))


def declared_column(policy: Policy, published: Column) -> Column:
    """Return a published column as the policy declares it: role, hierarchy, distance."""
    name = published.name
    attribute = policy.attributes.get(name)
    if attribute is None or published.is_open:
        return published if attribute is None else published.over(name, None, role=attribute.role)
    domain = published.domain
    known = policy.hierarchies.get(name)
    if known is not None and (absent := known.missing(domain.values)):
        message = f"the release lists {len(absent)} values that are not in the policy's hierarchy."
        raise PolicyError([Problem(f"attributes.{name}.hierarchy", message)], source=policy.source)
    tree = known.restrict_to(domain.values) if known is not None else published.tree
    spec = attribute.hierarchy
    if known is None and isinstance(spec, HierarchySpec) and not spec.counts_records:  # nobody recounts a release
        tree = spec.over(domain.values, np.zeros(len(domain), np.int64))
    distance: Any = _distance_table(policy, attribute, domain) or attribute.distance
    declared = attribute.values if attribute.edges is None else bin_labels(attribute.edges)
    if distance in ("ordinal", "numeric") and declared is not None:
        strange = [value for value in domain.values if value != MISSING and value not in declared]
        if strange:
            what = "values" if attribute.bins is None else "bins"
            message = f"the release lists {len(strange)} values that the policy does not declare."
            raise PolicyError([Problem(f"attributes.{name}.{what}", message)], source=policy.source)
    if distance == "ordinal" and declared is not None:
        ranks = np.array([declared.index(value) for value in _without_missing(domain).values], float)
        distance = _beside_missing(np.abs(ranks[:, None] - ranks[None, :]), domain)
    elif distance in ("ordinal", "numeric") and domain.has_missing:
        distance = _beside_missing(DISTANCES[distance](_without_missing(domain), None), domain)
    if distance == "tree" and tree is None:
        distance = "equal"
    return published.over(name, domain, role=attribute.role, hierarchy=tree, distance=distance)


# ---------------------------------------------------------------------- opening a table


def open_table(data: Any, policy: Policy, engine: Engine | None = None) -> Source:
    """Open a table as a policy describes it; columns that form a set are replaced by the set."""
    given = policy.data
    writing = Writing(given.separator, given.encoding, tuple(given.missing_values))
    source = (engine or engine_for(data)).opened(data, writing)
    specs = {
        name: TermSpec(attribute.separator, attribute.columns or (), policy.data.missing_values)
        for name, attribute in policy.attributes.items()
        if attribute.role is Role.QUASI_SENSITIVE
    }
    declared = policy.declared
    marks = {name: column.missing_values for name, column in declared.items() if column.missing_values}
    named = with_terms(with_markers(source, marks), specs)
    return with_tuples(named, policy.composites, _bins(policy))


def _bins(policy: Policy) -> dict[str, Member]:
    """Return members of composites whose bins are known without the data."""
    out = {}
    for name, column in ((n, c) for one in policy.attributes.values() for n, c in one.members.items()):
        if column.edges is not None:
            written = Format(decimal=column.decimal or policy.data.decimal or ".")
            out[name] = Member(name, Domain(bin_labels(column.edges), edges=column.edges, format=written))
    return out


def dropping(policy: Policy, columns: Sequence[str]) -> list[str]:
    """Return published columns whose missing cells cause a record to be dropped."""
    owner = {member: name for name, members in policy.composites.items() for member in members}
    return [
        name
        for name, attribute in policy.declared.items()
        if attribute.missing == "drop" and not attribute.role.is_dropped and owner.get(name, name) in columns
    ]
