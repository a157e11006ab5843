"""Which values a release of classes names: what methods see, and what the manifest may list.

Methods see only the secrets that occur: a value that nobody has must not make a class look more diverse. The manifest
lists a declared domain as it was declared, and of a domain taken from the data only what published records have: a
value that is listed and not published would tell what the records that were left out held. Nobody declares that cells
are missing or were merged: where no published record has that, a declared domain does not list it either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noren.engines import Group, Recode
from noren.engines.table import subdomain
from noren.errors import PolicyError, Problem
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.nodes import Nodes, tree_of
from noren.statements import GroupTable
from noren.statements.set_cells import code_dtype


@dataclass(frozen=True)
class Outgoing:
    """A column on its way out: its domain, the codes of all records, and what stands instead of them."""

    column: Column
    codes: NDArray
    change: Recode | Group | None


def declared(whole: Column, counts: NDArray[np.int64], part: Outgoing) -> Outgoing:
    """A secret that is published exactly or in groups, over the domain it was declared with."""
    if (counts > 0).all() or part.column.domain == whole.domain:
        return part
    if isinstance(part.change, Recode):
        if whole.domain.edges is None:
            return part
        message = f"{int((counts == 0).sum())} bins hold no record, and general values must not count them."
        hint = "Join empty bins with their neighbours, or choose a method that leaves secrets as they are."
        raise PolicyError([Problem(f"attributes.{whole.name}.bins", message, hint)])
    back = np.flatnonzero(counts > 0).astype(code_dtype(whole.d))
    return Outgoing(whole, back[part.codes], _moved(part.change, back, whole.d))


def untold(domain: Domain, occurs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which values of a domain may be listed, given those that published records have."""
    return occurs if domain.source == "data" else occurs | unspecial(domain)


def unspecial(domain: Domain) -> NDArray[np.bool_]:
    """Which values are values, and not the word for a missing or a merged one."""
    return np.array([value not in (MISSING, OTHER) for value in domain.values], bool)


def forgotten(part: Outgoing, keep: NDArray[np.bool_], values_stay: bool = False) -> Outgoing:
    """The column without what the policy does not declare and no published record has."""
    domain = part.column.domain
    occurs = untold(domain, np.bincount(part.codes[keep], minlength=len(domain)) > 0)
    if values_stay:
        occurs = occurs | unspecial(domain)
    if occurs.all():
        return part
    column, place = subdomain(part.column, occurs)
    if isinstance(part.change, Recode):
        return Outgoing(column, place[part.codes], _without(part.change, column, occurs, keep))
    return Outgoing(column, place[part.codes], _moved(part.change, place, int(occurs.sum())))


def _moved(change: Recode | Group | None, place: NDArray, d: int) -> Group | None:
    """The same groups over other codes, in the same order."""
    assert not isinstance(change, Recode)
    if change is None:
        return None
    table = change.table
    value = place[table.value].astype(np.int64)
    return replace(change, table=GroupTable(table.groups, d, table.group, value, table.count))


def _without(change: Recode, column: Column, occurs: NDArray[np.bool_], keep: NDArray[np.bool_]) -> Recode:
    """The published nodes over the values that are left; nodes of a hierarchy stay its nodes."""
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
    """The nodes that are published, in the order of the values they cover, and every record's place among them."""
    runs = column.nodes.runs
    used = np.array(sorted(np.unique(column.data[keep]).tolist(), key=lambda node: runs[node]), np.int64)
    labels = _distinct([column.nodes.labels[node] for node in used.tolist()])
    place = np.zeros(len(column.nodes), np.int64)
    place[used] = np.arange(len(used))
    return Nodes.from_runs(column.nodes.d, labels, [runs[node] for node in used.tolist()]), place[column.data]


def _distinct(labels: Sequence[str]) -> list[str]:
    """The labels, numbered where two nodes would read alike."""
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
