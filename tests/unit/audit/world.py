"""Small releases made by hand, for attacks whose answers can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noren.designs.decoys import DecoyDesign
from noren.release.manifest import Manifest, read_column
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import Cells, CodeCells, Design, GroupTable, SetCells, SetStatement, Statement

LETTERS = "abcdefgh"


def assembled(columns: Sequence[Statement], cells: Mapping[str, Cells], records: int | None = None) -> Release:
    """A release of these columns."""
    manifest = Manifest(
        noren="0",
        records=len(next(iter(cells.values()))) if records is None else records,
        columns=tuple(columns),
        requirements=(),
        methods=(),
        randomness="fresh",
        verdicts=(),
    )
    return Release(manifest, MemoryStore(cells))


def stated(name: str, role: Role, form: str, kind: str = "string", **more: Any) -> Statement:
    """A published column as a manifest describes it."""
    return read_column({"name": name, "role": role, "form": form, "kind": kind, **more})


def keys(where: Sequence[int], role: Role = Role.QUASI_IDENTIFIER) -> tuple[Statement, CodeCells]:
    """A quasi-identifier that is published exactly."""
    d = max(where) + 1
    values = tuple(map(str, range(d)))
    return stated("where", role, "exact", "integer", values=values), CodeCells(d, np.array(where, np.int64))


def secret(form: str, d: int, **more: Any) -> Statement:
    """A sensitive column over the first d letters."""
    return stated("x", Role.SENSITIVE, form, values=tuple(LETTERS[:d]), **more)


def drawn(name: str, design: Design, labels: Sequence[str] | None = None) -> Statement:
    """A column of sets over values that are called by their numbers."""
    domain = Domain(tuple(map(str, range(design.d))) if labels is None else tuple(labels))
    return SetStatement(Column(role=Role.SENSITIVE).over(name, domain), design)


def of_values(*classes: str, d: int = 4, **more: Any) -> Release:
    """One class per word, one record per letter."""
    key, where = keys([i for i, word in enumerate(classes) for _ in word])
    codes = np.array([LETTERS.index(letter) for word in classes for letter in word])
    return assembled([key, secret("exact", d, **more)], {"where": where, "x": CodeCells(d, codes)})


def of_nodes(members: Sequence[Sequence[int]], where: Sequence[int], nodes: Sequence[int], d: int = 4) -> Release:
    """General values: members[g] are the codes under node g, nodes[i] is the node of record i."""
    from noren.schema.nodes import runs_of

    key, published = keys(where)
    listed = tuple((f"n{g}", tuple(runs_of(codes))) for g, codes in enumerate(members))
    column = secret("node", d, nodes=listed)
    return assembled([key, column], {"where": published, "x": CodeCells(len(members), np.array(nodes, np.int64))})


def of_groups(*groups: str, where: Sequence[int] | None = None, d: int = 4) -> Release:
    """Anatomy: one group per word, its letters in the table beside; the records follow each other."""
    number = np.array([g for g, word in enumerate(groups) for _ in word])
    codes = np.array([LETTERS.index(letter) for word in groups for letter in word])
    key, published = keys(list(range(len(number))) if where is None else where)
    table = GroupTable.from_codes(len(groups), d, number, codes)
    column = secret("group", d, groups=len(groups), number=1).with_side(table)
    return assembled([key, column], {"where": published, "x": CodeCells(len(groups), number)})


def of_sets(sets: Sequence[str], where: Sequence[int] | None = None, d: int = 4, p: float = 1.0) -> Release:
    """Decoys: one set per word."""
    key, published = keys(list(range(len(sets))) if where is None else where)
    codes = np.array([sorted(LETTERS.index(letter) for letter in word) for word in sets])
    column = secret("set", d, design=DecoyDesign(d=d, eta=codes.shape[1], p=p).model_dump(mode="json"))
    return assembled([key, column], {"where": published, "x": SetCells.from_codes(d, codes)})
