"""Small releases made by hand, for attacks whose answers can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noren.cells import Cells, GroupCells, GroupTable, NodeCells, SetCells, ValueCells
from noren.designs.decoys import DecoyDesign
from noren.release.manifest import ColumnEntry, Manifest
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.schema.roles import Role

LETTERS = "abcdefgh"


def assembled(
    entries: Sequence[ColumnEntry],
    cells: Mapping[str, Cells],
    tables: Mapping[str, GroupTable] | None = None,
    layout: str = "general",
) -> Release:
    """A release of these columns."""
    records = len(next(iter(cells.values())))
    manifest = Manifest.model_validate(
        {
            "noren": "0",
            "records": records,
            "layout": layout,
            "columns": tuple(entries),
            "requirements": (),
            "method": {},
            "randomness": "fresh",
            "verdicts": (),
        }
    )
    return Release(manifest, MemoryStore(cells), tables=tables)


def keys(where: Sequence[int], role: Role = Role.QUASI_IDENTIFIER) -> tuple[ColumnEntry, ValueCells]:
    """A quasi-identifier that is published exactly."""
    d = max(where) + 1
    entry = ColumnEntry(name="where", role=role, form="value", kind="integer", values=tuple(map(str, range(d))))
    return entry, ValueCells(d, np.array(where, np.int64))


def secret(form: str, d: int, **more: Any) -> ColumnEntry:
    """A sensitive column over the first d letters."""
    return ColumnEntry(name="x", role=Role.SENSITIVE, form=form, kind="string", values=tuple(LETTERS[:d]), **more)  # type: ignore[arg-type]


def of_values(*classes: str, d: int = 4, **more: Any) -> Release:
    """One class per word, one record per letter."""
    entry, where = keys([i for i, word in enumerate(classes) for _ in word])
    codes = np.array([LETTERS.index(letter) for word in classes for letter in word])
    return assembled([entry, secret("value", d, **more)], {"where": where, "x": ValueCells(d, codes)})


def of_nodes(members: Sequence[Sequence[int]], where: Sequence[int], nodes: Sequence[int], d: int = 4) -> Release:
    """General values: members[g] are the codes under node g, nodes[i] is the node of record i."""
    from noren.schema.nodes import runs_of

    entry, published = keys(where)
    listed = tuple((f"n{g}", tuple(runs_of(codes))) for g, codes in enumerate(members))
    column = secret("node", d, nodes=listed)
    return assembled([entry, column], {"where": published, "x": NodeCells(len(members), np.array(nodes, np.int64))})


def of_groups(*groups: str, where: Sequence[int] | None = None, d: int = 4) -> Release:
    """Anatomy: one group per word, its letters in the table beside; the records follow each other."""
    number = np.array([g for g, word in enumerate(groups) for _ in word])
    codes = np.array([LETTERS.index(letter) for word in groups for letter in word])
    entry, published = keys(list(range(len(number))) if where is None else where)
    table = GroupTable.from_codes(len(groups), d, number, codes)
    column = secret("group", d, groups=len(groups))
    return assembled([entry, column], {"where": published, "x": GroupCells(len(groups), number)}, {"x": table})


def of_sets(sets: Sequence[str], where: Sequence[int] | None = None, d: int = 4, p: float = 1.0) -> Release:
    """Decoys: one set per word."""
    entry, published = keys(list(range(len(sets))) if where is None else where)
    codes = np.array([sorted(LETTERS.index(letter) for letter in word) for word in sets])
    column = secret("set", d, design=DecoyDesign(d=d, eta=codes.shape[1], p=p))
    return assembled([entry, column], {"where": published, "x": SetCells.from_codes(d, codes)}, layout="sets")
