"""The published values under generalised values: only those that cells show or the policy declares.

Numbers and dates become what lies between the edges that published cells show. Of texts those values stay that a cell
shows by name; whatever else lies under a published generalised value is one stand-in for it, whether or not somebody
has such a value. Leaves that the policy declares (a hierarchy file, values, bins) are listed as they were declared.
That a value is missing or was merged is said where a published record has it: it is nobody's word about those left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from noren.engines import Group, Recode
from noren.engines.table import subdomain
from noren.errors import PolicyError, Problem
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, OTHERS, Domain, bin_labels, whole_domain
from noren.schema.extents import Ends, bounds_on, ends_of, measure_for
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import CALENDAR, NUMERIC, Kind, is_code
from noren.schema.nodes import Nodes, Tight, Tree, tree_of
from noren.statements import GroupTable
from noren.statements.set_cells import code_dtype

LONGEST_RANGE = 10_000
"""Whole numbers that a reader lists at most between the edges of a column."""
OR_MISSING = f" or {MISSING}"


@dataclass(frozen=True)
class Shown:
    """A column of generalised values before publication: its meaning, the nodes that occur, and every record's node."""

    column: Column
    nodes: Nodes
    data: NDArray[np.int64]
    place: NDArray[np.int64]
    """The published base value of every value that the method saw; -1 for those that nothing published covers."""
    tight: Tight | None = None
    """What certainly occurs in every class, as far as the published values can say it."""


def declares_leaves(column: Column) -> bool:
    """Return whether the policy names the values under the generalised ones."""
    return column.domain.source != "data" or (column.tree is not None and not column.tree.grown)


def show_nodes(column: Column, change: Recode, codes: NDArray, keep: NDArray[np.bool_]) -> Shown:
    """Return the column as its cells show it, given all true codes and the published records."""
    used = np.unique(change.data[keep])
    held = np.bincount(codes[keep], minlength=column.d) > 0
    number = np.zeros(len(change.nodes), np.int64)
    number[used] = np.arange(len(used))
    line = _on_a_line(column, change.nodes, used, held)
    found = line or _name_values(column, change.nodes, used, held)
    data = number[change.data]
    runs = found[1].runs
    order = np.array(sorted(range(len(runs)), key=lambda node: runs[node]), np.int64)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    nodes = Nodes.from_runs(found[1].d, [found[1].labels[i] for i in order], [runs[i] for i in order])
    lost = change.tight == "ends" and line is None  # values of an order are known by name alone, not by their place
    return Shown(found[0], nodes, rank[data], found[2], None if lost else change.tight)


Found = tuple[Column, Nodes, NDArray[np.int64]]


# ---------------------------------------------------------------------- numbers and dates


def line_kind(domain: Domain) -> tuple[Kind, int] | None:
    """Return what is on the line of an ordered domain, and the digits of codes; None if labels have no position."""
    if not domain.is_ranked or domain.edges is not None:
        return None
    if domain.kind in (*NUMERIC, *CALENDAR):
        return domain.kind, 0
    if domain.has_ends:
        inner = [value for value in domain.plain if not value.startswith("below ") and not value.endswith(" above")]
        return ("integer" if all(value.lstrip("-").isdecimal() for value in inner) else "number"), 0
    width = len(domain.plain[0]) if domain.plain else 0
    return ("string", width) if is_code(domain.plain) and width <= 15 else None


def _on_a_line(column: Column, nodes: Nodes, used: NDArray[np.int64], held: NDArray[np.bool_]) -> Found | None:
    """Return the column over the ranges between published edges; None if a label does not show its edges."""
    domain = column.domain
    line = line_kind(domain)
    if line is None:
        return None
    gone = domain.missing_code
    lacks = np.zeros(len(used), bool)
    if gone is not None and held[gone]:
        lacks = nodes.covers(used, np.full(len(used), gone))
    labels = [nodes.labels[node] for node in used.tolist()]
    cut = cut_line(labels, line, domain, lacks)
    if cut is None:
        return None
    made, runs = cut
    place = np.array(made.find(domain.values), np.int64)
    return column.over(column.name, made, hierarchy=None), Nodes.from_runs(len(made), labels, runs), place


Runs = list[list[tuple[int, int]]]


def cut_line(
    labels: Sequence[str], line: tuple[Kind, int], domain: Domain, lacks: NDArray[np.bool_]
) -> tuple[Domain, Runs] | None:
    """Return the ranges between the edges in labels, and the runs that each label covers; None if a label has no edges.
    `lacks` marks labels that also cover a missing value."""
    bare = [label.removesuffix(OR_MISSING) for label in labels]
    ends: list[Ends | None] = [None if label == MISSING else ends_of(label, line[0]) for label in bare]
    if any(one is None and label != MISSING for one, label in zip(ends, bare, strict=True)):
        return None
    measure = measure_for(line[0], [one for one in ends if one is not None], line[1])
    bounds = [None if one is None else bounds_on(one, measure) for one in ends]
    made, edges = _between(domain, measure, [one for one in bounds if one is not None], bool(lacks.any()))
    runs: Runs = []
    for bound, without in zip(bounds, lacks.tolist(), strict=True):
        pieces = (
            [] if bound is None else [(int(np.searchsorted(edges, bound[0])), int(np.searchsorted(edges, bound[1])))]
        )
        if without:
            last = len(made) - 1
            whole = bool(pieces) and pieces[0][1] == last
            pieces = [(pieces[0][0], last + 1)] if whole else [*pieces, (last, last + 1)]
        runs.append(pieces)
    return made, runs


def _between(
    domain: Domain, measure: str, bounds: Sequence[tuple[float, float]], missing: bool
) -> tuple[Domain, NDArray[np.float64]]:
    """Return the base values between the ends of intervals, and the edges at which they are divided."""
    declared = [end for end in (domain.bottom, domain.top) if end is not None]
    finite = sorted({end for bound in bounds for end in bound if isfinite(end)} | set(declared))
    low = domain.bottom is not None or any(bound[0] == -inf for bound in bounds)
    high = domain.top is not None or any(bound[1] == inf for bound in bounds)
    outer = ([-inf] if low or not finite else [], [inf] if high or not finite else [])
    if measure == "integer" and finite and finite[-1] - finite[0] <= LONGEST_RANGE:
        made = whole_domain(int(finite[0]), int(finite[-1]), low, high, missing, domain.format)
        inner = np.arange(finite[0], finite[-1] + 1)
        return made, np.concatenate([outer[0], inner, outer[1]])
    edges = (*outer[0], *finite, *outer[1])
    values = (*bin_labels(edges, measure), *([MISSING] if missing else []))
    return Domain(values, "string", edges=edges, measure=measure, format=domain.format), np.array(edges)


# ---------------------------------------------------------------------- texts


def _name_values(column: Column, nodes: Nodes, used: NDArray[np.int64], held: NDArray[np.bool_]) -> Found:
    """Return the column over the values that cells show, with one placeholder for the others under each generalised
    value."""
    values = column.domain.values
    sizes = nodes.sizes[used]
    under = [nodes.members(node) for node in used.tolist()]
    labelled = [nodes.labels[node] for node in used.tolist()]
    names = np.array([_names_all(*one, values) for one in zip(labelled, under, strict=True)], bool)
    smallest = np.full(len(values), -1, np.int64)
    named = np.zeros(len(values), bool)
    for i in np.argsort(-sizes, kind="stable").tolist():  # the smallest last: it stays
        if names[i]:
            named[under[i]] = True
        else:
            smallest[under[i]] = i
    covered = named | (smallest >= 0)
    named |= covered & held & np.array([value in (MISSING, OTHER) for value in values])
    listed = np.flatnonzero(named)
    general = np.flatnonzero(~names)
    labels = _stand_ins(nodes, used, under, general, named, {values[code] for code in listed.tolist()})
    stands = {int(i): len(listed) + at for at, i in enumerate(general.tolist())}
    place = np.full(len(values), -1, np.int64)
    place[listed] = np.arange(len(listed))
    for code in np.flatnonzero(covered & ~named).tolist():
        place[code] = stands[int(smallest[code])]
    over: list[list[int]] = []
    for i in range(len(used)):
        inside = set(place[under[i]].tolist())
        parts = [j for j in stands if sizes[j] <= sizes[i] and under[j][0] in under[i]]
        over.append(sorted(inside | {stands[j] for j in parts if not names[i]}))
    texts = (*(values[code] for code in listed.tolist()), *labels)
    made = Domain(texts, "string" if labels else column.domain.kind, hidden=tuple(labels), format=column.domain.format)
    tree = _tree(column, nodes, used, listed, general, texts)
    return column.over(column.name, made, hierarchy=tree), Nodes.from_members(len(texts), labelled, over), place


def _names_all(label: str, members: NDArray[np.int64], values: Sequence[str]) -> bool:
    """Return whether the label of a node names every value under it."""
    listed = [values[code] for code in members.tolist()]
    return label == (listed[0] if len(listed) == 1 else "{" + ", ".join(listed) + "}")


def _stand_ins(
    nodes: Nodes,
    used: NDArray[np.int64],
    under: Sequence[NDArray[np.int64]],
    general: NDArray[np.int64],
    named: NDArray[np.bool_],
    taken: set[str],
) -> list[str]:
    """Return the names of placeholders: that of the generalised value, or of the other values under it."""
    out: list[str] = []
    for i in general.tolist():
        inner = any(j != i and len(under[j]) < len(under[i]) and under[j][0] in under[i] for j in general.tolist())
        own = nodes.labels[int(used[i])]
        label = OTHERS + own if inner or named[under[i]].any() else own
        while label in taken:
            label += " "
        taken.add(label)
        out.append(label)
    return out


def _tree(
    column: Column,
    nodes: Nodes,
    used: NDArray[np.int64],
    listed: NDArray[np.int64],
    general: NDArray[np.int64],
    texts: Sequence[str],
) -> Hierarchy | None:
    """Return the levels above the published values, if a rule made them from the values only."""
    tree = column.tree
    if tree is None or tree.grown != "values" or not texts:
        return None
    numbered: Tree = tree_of(tree)
    rows = [[level[code] for level in tree.levels] for code in listed.tolist()]
    for at, i in enumerate(general.tolist()):
        node = int(used[i])
        member = int(nodes.members(node)[0])
        height = int(np.argmax(numbered.at[:, member] == node))
        own = texts[len(listed) + at]
        rows.append([own] * height + [level[member] for level in tree.levels[height:]])
        rows[-1][0] = own
    return replace(Hierarchy(tuple(zip(*rows, strict=True))), grown="values")


@dataclass(frozen=True)
class Outgoing:
    """A column before publication: its domain, the codes of all records, and its placeholders."""

    column: Column
    codes: NDArray
    change: Recode | Group | None


# Methods see only the secrets that occur: a value that nobody has must not make a class look more diverse. The manifest
# lists a declared domain as it was declared, and of a domain taken from the data only what published records have: a
# value that is listed and not published would disclose what the suppressed records held.


def declare_values(whole: Column, counts: NDArray[np.int64], part: Outgoing) -> Outgoing:
    """Return a secret that is published exactly or in groups, over its declared domain."""
    if (counts > 0).all() or part.column.domain == whole.domain:
        return part
    if isinstance(part.change, Recode):
        if whole.domain.edges is None:
            return part
        message = f"{int((counts == 0).sum())} bins contain no record, but generalised values count them."
        hint = "Join empty bins with their neighbours, or choose a method that does not generalise secrets."
        raise PolicyError([Problem(f"attributes.{whole.name}.bins", message, hint)])
    back = np.flatnonzero(counts > 0).astype(code_dtype(whole.d))
    return Outgoing(whole, back[part.codes], _move_groups(part.change, back, whole.d))


def may_be_listed(domain: Domain, occurs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which values of a domain may be listed, given those of published records."""
    return occurs if domain.source == "data" else occurs | unspecial(domain)


def unspecial(domain: Domain) -> NDArray[np.bool_]:
    """Return which values are ordinary, not the word for a missing or merged one."""
    return np.array([value not in (MISSING, OTHER) for value in domain.values], bool)


def forget_unseen(part: Outgoing, keep: NDArray[np.bool_], values_stay: bool = False) -> Outgoing:
    """Return the column without values that the policy does not declare and no published record has."""
    domain = part.column.domain
    occurs = may_be_listed(domain, np.bincount(part.codes[keep], minlength=len(domain)) > 0)
    if values_stay:
        occurs = occurs | unspecial(domain)
    if occurs.all():
        return part
    column, place = subdomain(part.column, occurs)
    if isinstance(part.change, Recode):
        return Outgoing(column, place[part.codes], _without(part.change, column, occurs, keep))
    return Outgoing(column, place[part.codes], _move_groups(part.change, place, int(occurs.sum())))


def _move_groups(change: Recode | Group | None, place: NDArray, d: int) -> Group | None:
    """Return the same groups over other codes, in the same order."""
    assert not isinstance(change, Recode)
    if change is None:
        return None
    table = change.table
    value = place[table.value].astype(np.int64)
    return replace(change, table=GroupTable(table.groups, d, table.group, value, table.count))


def _without(change: Recode, column: Column, occurs: NDArray[np.bool_], keep: NDArray[np.bool_]) -> Recode:
    """Return the published nodes over the remaining values; nodes of a hierarchy stay its nodes."""
    place = np.cumsum(occurs) - 1
    used = np.unique(change.data[keep]).tolist()
    members = {node: place[inside[occurs[inside]]] for node in used if len(inside := change.nodes.members(node))}
    number = np.zeros(len(change.nodes), np.int64)
    if column.tree is not None:
        tree = tree_of(column.tree).nodes
        known = {tuple(tree.members(node).tolist()): node for node in range(len(tree))}
        found = [known.get(tuple(codes.tolist()), -1) for codes in members.values()]
        if -1 not in found:
            number[used] = found
            return Recode(tree, number[change.data], change.tight)
    number[used] = np.arange(len(used))
    labels = [change.nodes.labels[node] for node in used]
    nodes = Nodes.from_members(int(occurs.sum()), labels, [codes.tolist() for codes in members.values()])
    return Recode(nodes, number[change.data], change.tight)


def same_nodes(one: Nodes, other: Nodes) -> bool:
    parts = ("bounds", "starts", "stops")
    return one.labels == other.labels and all(np.array_equal(getattr(one, p), getattr(other, p)) for p in parts)


def listed_nodes(column: Recode, keep: NDArray[np.bool_]) -> tuple[Nodes, NDArray]:
    """Return the published nodes in the order of their values, and every record's position among them."""
    runs = column.nodes.runs
    used = np.array(sorted(np.unique(column.data[keep]).tolist(), key=lambda node: runs[node]), np.int64)
    labels = _distinct([column.nodes.labels[node] for node in used.tolist()])
    place = np.zeros(len(column.nodes), np.int64)
    place[used] = np.arange(len(used))
    return Nodes.from_runs(column.nodes.d, labels, [runs[node] for node in used.tolist()]), place[column.data]


def _distinct(labels: Sequence[str]) -> list[str]:
    """Return the labels, numbered if two nodes have the same one."""
    taken = set[str]()
    out = []
    for label in labels:
        free = label
        number = 2
        while free in taken:
            free, number = f"{label} ({number})", number + 1
        taken.add(free)
        out.append(free)
    return out
