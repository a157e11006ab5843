"""What is published, piece by piece: manifest, entries, rows of single members, and the check of what was drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noren import __version__
from noren.cells import CellBatch, Cells, SetCells, ValueCells, take
from noren.designs.any import Design
from noren.designs.decoys import DecoyDesign
from noren.errors import RequirementNotMet
from noren.models.base import Form, Verdict
from noren.policy.policy import Policy
from noren.policy.resolve import ResolvedColumn
from noren.release.manifest import ColumnEntry, Manifest, VerdictEntry
from noren.secret import LedgerEntry


def make_manifest(
    policy: Policy,
    entries: Sequence[ColumnEntry],
    verdicts: Sequence[Verdict],
    records: int,
    memoised: bool,
    suppressed: int = 0,
) -> Manifest:
    """The manifest from its allow-list. A verdict that rests on the original publishes no figure."""
    return Manifest(
        noren=__version__,
        title=policy.title,
        records=records,
        suppressed=suppressed,
        layout=policy.method.layout,
        columns=tuple(entries),
        requirements=tuple(model.model_dump(mode="json") for model in policy.require),
        method={"name": policy.method.name},
        randomness="memoised" if memoised else "fresh",
        verdicts=tuple(
            VerdictEntry(
                model=v.model,
                column=v.column,
                required=v.required,
                achieved=None if v.basis == "the original" else v.achieved,
                holds=v.holds is True,
                basis=v.basis,
            )
            for v in verdicts
        ),
    )


def published_entry(column: ResolvedColumn, design: Design | None, members: bool = False) -> ColumnEntry:
    """What the manifest says about a column that is published as it is or in sets."""
    domain = column.domain
    role = column.attribute.role
    if domain is None:
        return ColumnEntry(name=column.name, role=role, form="open", kind="string")
    form: Form = "value" if design is None else "member" if members else "set"
    declared = column.attribute.distance
    distance: Any = None
    if column.distances is not None and design is not None:
        distance = declared if isinstance(declared, str) else tuple(map(tuple, column.distances.tolist()))
    return ColumnEntry(
        name=column.name,
        role=role,
        form=form,
        kind=domain.kind,
        values=domain.values,
        domain_source=domain.source,
        edges=domain.edges,
        hierarchy=None if column.hierarchy is None else column.hierarchy.levels,
        design=design,
        distance=distance,
    )


def general_entry(column: ResolvedColumn, form: Form, *, nodes: Any = None, groups: int | None = None) -> ColumnEntry:
    """What the manifest says about a column of general values, of groups, or of values beside them."""
    plain = published_entry(column, None)
    if form == "value":
        return plain
    hierarchy = None if nodes is not None else plain.hierarchy
    fields = plain.model_dump() | {"form": form, "nodes": nodes, "groups": groups, "hierarchy": hierarchy}
    return ColumnEntry.model_validate(fields)


def exploded(batch: CellBatch, designs: Mapping[str, Design]) -> dict[str, Cells]:
    """One row per member of each record's set, without any number that would tie the rows together."""
    ((name, design),) = designs.items()
    sets = batch[name]
    assert isinstance(sets, SetCells)
    rows = np.repeat(np.arange(len(sets)), design.eta)
    out = take({other: cells for other, cells in batch.items() if other != name}, rows)
    members = ValueCells(sets.d, sets.codes(design.eta).ravel())
    return {column: members if column == name else out[column] for column in batch}


def ledger_entries(columns: Mapping[str, ResolvedColumn], designs: Mapping[str, Design]) -> dict[str, LedgerEntry]:
    """What the ledger remembers of every protected column."""
    entries = {}
    for name, design in designs.items():
        domain = columns[name].domain
        assert domain is not None
        entries[name] = LedgerEntry(domain.values, ledger_name(design), design.eta, design.p)
    return entries


def ledger_name(design: Design) -> str:
    """The design as the ledger knows it: everything that decides what is drawn."""
    if isinstance(design, DecoyDesign):
        return design.name
    digest = hashlib.sha256(design.model_dump_json().encode()).hexdigest()[:12]
    return f"{design.name}, distance {design.threshold:g} ({digest})"


def check_heads(designs: Mapping[str, Design], heads: Mapping[str, int], records: int) -> None:
    """The truth is in its set as often as the design says: always for p = 1, else within eight standard deviations."""
    for name, design in designs.items():
        if not isinstance(design, DecoyDesign) or design.p_true == 1.0 or design.eta == design.d:
            broken = heads[name] != records
        else:
            slack = 8 * np.sqrt(records * design.p_true * (1 - design.p_true)) + 1e-6 * records + 1
            broken = abs(heads[name] - design.p_true * records) > slack
        if broken:
            raise RequirementNotMet(
                f"the sets of {name!r} do not follow their design, so nothing is published.",
                hint="This is a defect of the software, not of the table: please report it.",
            )


def truth_holds(batch: CellBatch, codes: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, int]:
    """How many records have their true value in their set, per column."""
    out = {}
    for name in names:
        cells = batch[name]
        assert isinstance(cells, SetCells)
        out[name] = int(cells.contains(codes[name]).sum())
    return out
