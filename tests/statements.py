"""Published columns made by hand: one maker for each form of cell, over a domain of d values."""

from __future__ import annotations

from typing import Any

import numpy as np

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts.bayes import delta
from noren.schema.column import Column
from noren.schema.domain import Domain, Kind
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import (
    Design,
    ExactStatement,
    GroupStatement,
    GroupTable,
    MemberStatement,
    NodeStatement,
    OpenStatement,
    SetStatement,
    TermsStatement,
)
from noren.statements.design import Inversion


def meaning(
    name: str,
    d: int,
    role: Role = Role.PLAIN,
    *,
    hierarchy: Hierarchy | None = None,
    distances: Any = None,
    values: tuple[str, ...] | None = None,
    kind: Kind = "string",
) -> Column:
    """A column over d values, named 0, 1, ... or after the leaves of a hierarchy."""
    if values is None:
        values = tuple(map(str, range(d))) if hierarchy is None else hierarchy.leaves
    far = "equal" if distances is None else tuple(map(tuple, np.asarray(distances).tolist()))
    return Column(role=Role.PLAIN).over(name, Domain(values, kind), role=role, hierarchy=hierarchy, distance=far)


def exact_column(name: str, d: int, **options: Any) -> ExactStatement:
    return ExactStatement(meaning(name, d, **options))


def open_column(name: str, d: int = 0, *, role: Role = Role.PLAIN, **options: Any) -> OpenStatement:
    """It lists no values, so whatever is said about them does not matter."""
    return OpenStatement(Column(role=Role.PLAIN).over(name, None, role=role))


def set_column(name: str, d: int, design: Design | None = None, **options: Any) -> SetStatement:
    return SetStatement(meaning(name, d, **options), design or DecoyDesign(d=d, eta=2))


def member_column(name: str, d: int, design: Design | None = None, **options: Any) -> MemberStatement:
    return MemberStatement(meaning(name, d, **options), design or DecoyDesign(d=d, eta=2))


def node_column(name: str, d: int, *, nodes: Nodes | None = None, **options: Any) -> NodeStatement:
    """General values from a list, or those of the hierarchy, or the values themselves and all together."""
    column = meaning(name, d, **options)
    if nodes is None and column.tree is None:
        nodes = Nodes.from_members(d, [*map(str, range(d)), "any"], [*((v,) for v in range(d)), tuple(range(d))])
    return NodeStatement(column, nodes)


def group_column(name: str, d: int, *, groups: GroupTable | None = None, **options: Any) -> GroupStatement:
    """Groups of a table; without one, a group of every value."""
    table = groups or GroupTable.from_codes(d, d, np.arange(d), np.arange(d))
    return GroupStatement(meaning(name, d, **options), table.groups, held=table)


def term_column(
    name: str, terms: tuple[str, ...], knowledge: Knowledge | None, role: Role = Role.QUASI_SENSITIVE
) -> TermsStatement:
    column = Column(role=Role.PLAIN).over(name, Domain(terms), role=role, knowledge=knowledge)
    return TermsStatement(column)


def expected_counts(inversion: Inversion, x: np.ndarray, axis: int, *, back: bool = False) -> np.ndarray:
    """Expected inclusion counts along one dimension of a table of true counts, or `back` the transpose of that."""
    moved = np.moveaxis(x, axis, 0)[None]
    return np.moveaxis(delta([inversion.inclusion], moved, back=back)[0], 0, axis)
