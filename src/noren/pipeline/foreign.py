"""Tables that were anonymised elsewhere: read as they are, so that the same checks judge them.

Every quasi-identifier is taken as the texts that stand there, whatever notation another tool used: records look alike
if their texts are equal, and missing cells equal each other. A sensitive column is read as values, or as nodes of the
hierarchy that the policy gives it. Rows whose quasi-identifiers all say "suppressed" are not part of any class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noren.cells import Cells, NodeCells, OpenCells, TermCells, ValueCells
from noren.engines.encode import as_dictionary, encode_labels, label_counts
from noren.engines.terms import encode_terms
from noren.errors import DataError, PolicyError, Problem
from noren.io.source import Source
from noren.release.manifest import ColumnEntry
from noren.release.store import MemoryStore
from noren.schema.domain import MISSING, Domain, infer_kind, sort_labels
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import tree_of
from noren.schema.roles import Role

QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
SUPPRESSED = "*"


@dataclass(frozen=True)
class Foreign:
    """A table that Noren did not make, in the form that the checks read."""

    name: str
    entries: tuple[ColumnEntry, ...]
    store: MemoryStore
    records: int
    suppressed: int
    """Rows whose quasi-identifiers are all suppressed; they are left out."""
    knowledge: Mapping[str, Knowledge] = field(default_factory=dict)


def read_foreign(
    source: Source,
    roles: Mapping[str, Role],
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    knowledge: Mapping[str, Knowledge] | None = None,
    suppressed: str | None = SUPPRESSED,
) -> Foreign:
    """The columns that have a role, as far as the table has them. Identifiers and plain columns are not read."""
    names = [n for n in source.columns if n in roles and roles[n] not in (Role.IDENTIFIER, Role.PLAIN)]
    quasi = [name for name in names if roles[name] in QUASI]
    columns = _columns(source, names)
    rows = len(next(iter(columns.values()))) if columns else 0
    if not names or not rows:
        why = "it has a header but no rows" if names else "none of its columns has a role to be checked"
        raise DataError(
            f"{source.name}: nothing to check: {why}.", hint="Name quasi-identifiers and sensitive columns."
        )
    keep = _kept(columns, quasi, suppressed)
    if not keep.all():
        chosen = np.flatnonzero(keep)
        columns = {name: column.take(chosen) for name, column in columns.items()}
    if not keep.any():
        raise DataError(f"{source.name}: every row is suppressed.", hint="Give a table with at least one record.")
    entries: list[ColumnEntry] = []
    cells: dict[str, Cells] = {}
    trees, orders, known = hierarchies or {}, values or {}, knowledge or {}
    for name in names:
        if roles[name] is Role.QUASI_IDENTIFIER:
            entry, found = _open(name, roles[name], columns[name])
        elif roles[name] is Role.QUASI_SENSITIVE:
            entry, found = _terms(name, columns[name], known[name], list(known).index(name) + 1)
        else:
            entry, found = _secret(name, roles[name], columns[name], trees.get(name), orders.get(name))
        entries.append(entry)
        cells[name] = found
    number = int(keep.sum())
    return Foreign(source.name, tuple(entries), MemoryStore(cells), number, rows - number, dict(known))


def _columns(source: Source, names: Sequence[str]) -> dict[str, Any]:
    import pyarrow as pa

    parts: dict[str, list[Any]] = {name: [] for name in names}
    for batch in source.batches(names):
        for name in names:
            column = batch.column(name)
            parts[name].append(column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column)
    return {name: pa.chunked_array(found).combine_chunks() for name, found in parts.items() if found}


def _kept(columns: Mapping[str, Any], quasi: Sequence[str], suppressed: str | None) -> np.ndarray:
    rows = len(next(iter(columns.values())))
    if suppressed is None or not quasi:
        return np.ones(rows, bool)
    gone = np.ones(rows, bool)
    for name in quasi:
        texts, positions = as_dictionary(columns[name], name)
        stars = np.append(np.array([text == suppressed for text in texts.to_pylist()], bool), False)
        gone &= stars[positions]
    return ~gone


def _open(name: str, role: Role, column: Any) -> tuple[ColumnEntry, Cells]:
    """A quasi-identifier as its texts, numbers written as a person would."""
    texts, positions = as_dictionary(column, name)
    import pyarrow as pa

    cells = texts.take(pa.array(positions, mask=positions < 0))
    return ColumnEntry(name=name, role=role, form="open", kind="string"), OpenCells(cells)


def _secret(
    name: str, role: Role, column: Any, hierarchy: Hierarchy | None, order: Sequence[str] | None
) -> tuple[ColumnEntry, Cells]:
    """A sensitive column as values; as nodes where some cells are inner nodes of its hierarchy."""
    labels, _, missing = label_counts(column, name)
    if hierarchy is not None:
        strange = [label for label in labels if label not in hierarchy.leaves]
        if strange:
            return _nodes(name, role, column, hierarchy, strange, missing)
    kind = infer_kind(labels)
    declared = [value for value in order or () if value != MISSING]
    listed = declared + sort_labels([label for label in labels if label not in set(declared)], kind)
    if missing:
        listed.append(MISSING)
    kind = "string" if missing or order is not None else kind
    domain = Domain(tuple(listed), kind, "policy" if order is not None else "data")
    codes, _ = encode_labels(column, name, domain)
    tree = None
    if hierarchy is not None and not missing:
        tree = hierarchy.restricted(domain.values).levels
    entry = ColumnEntry(
        name=name, role=role, form="value", kind=kind, values=domain.values, domain_source=domain.source, hierarchy=tree
    )
    return entry, ValueCells(len(domain), codes)


def _nodes(
    name: str, role: Role, column: Any, hierarchy: Hierarchy, strange: Sequence[str], missing: int
) -> tuple[ColumnEntry, Cells]:
    nodes = tree_of(hierarchy).nodes
    place = {label: node for node, label in reversed(list(enumerate(nodes.labels)))}
    absent = sorted({label for label in strange if label not in place})
    if absent or missing:
        what = ", ".join(map(repr, absent)) or "missing cells"
        message = f"misses {len(absent)} values of {name!r}: {what}." if absent else f"has no place for {what}."
        raise PolicyError([Problem(f"attributes.{name}.hierarchy", message, "Add a line for each value.")])
    texts, positions = as_dictionary(column, name)
    numbers = np.array([place.get(text, 0) for text in texts.to_pylist()], np.int64)
    entry = ColumnEntry(
        name=name,
        role=role,
        form="node",
        kind="string",
        values=hierarchy.leaves,
        domain_source="hierarchy",
        hierarchy=hierarchy.levels,
    )
    return entry, NodeCells(len(nodes), numbers[positions])


def _terms(name: str, column: Any, knowledge: Knowledge, number: int) -> tuple[ColumnEntry, TermCells]:
    from noren.engines.terms import term_counts

    found = [term for term in term_counts(column)[0] if term not in set(knowledge.terms)]
    domain = Domain((*knowledge.terms, *found))
    entry = ColumnEntry(
        name=name, role=Role.QUASI_SENSITIVE, form="terms", kind="string", values=domain.values, knowledge=number
    )
    return entry, encode_terms(column, domain)
