"""Quasi-sensitive columns on their way through the pipeline: gathered, checked against the truth, published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.cells import TermCells
from noren.engines.local import LocalEngine
from noren.errors import DataError
from noren.methods.base import TermColumn
from noren.models.base import Overall, PublishedColumn
from noren.models.term_check import linked_terms
from noren.policy.policy import Policy
from noren.policy.reading import dropping, open_table
from noren.policy.resolve import ResolvedColumn
from noren.release.manifest import ColumnEntry
from noren.release.release import Release
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge


def term_domains(columns: Mapping[str, ResolvedColumn]) -> dict[str, Domain]:
    """The terms of every set-valued column."""
    return {n: c.domain for n, c in columns.items() if c.knowledge is not None and c.domain is not None}


def term_columns(columns: Mapping[str, ResolvedColumn], cells: Mapping[str, TermCells]) -> dict[str, TermColumn]:
    """The set-valued columns as methods see them."""
    out = {}
    for name, domain in term_domains(columns).items():
        knowledge = columns[name].knowledge
        assert knowledge is not None
        out[name] = TermColumn(name, domain, knowledge, cells[name])
    return out


def published_terms(column: TermColumn) -> PublishedColumn:
    """A set-valued column as the checks see it."""
    d = len(column.domain)
    return PublishedColumn(column.name, "terms", d, terms=column.domain.values, knowledge=column.knowledge)


def priors(terms: Mapping[str, TermColumn]) -> dict[str, Overall]:
    """The mean belief in every label over the original, where the knowledge gives no prior.

    By the code of the checks, so that a verdict does not rest on what the method computed.
    """
    from noren.kernels.beliefs import mean_beliefs

    out: dict[str, Overall] = {}
    for names in together(terms):
        knowledge = terms[names[0]].knowledge
        if knowledge.priors is not None:
            continue
        cells = linked_terms([(published_terms(terms[name]), terms[name].cells) for name in names], knowledge)
        shares = mean_beliefs(cells.offsets, cells.data, knowledge.bits, knowledge.label_weights)
        out |= dict.fromkeys(names, Overall(np.asarray(shares), "the original"))
    return out


def together(terms: Mapping[str, TermColumn]) -> list[list[str]]:
    """The columns of every knowledge table."""
    out: dict[int, list[str]] = {}
    for name, column in terms.items():
        out.setdefault(id(column.knowledge), []).append(name)
    return list(out.values())


def only_leaves_out(true: TermCells, published: TermCells, keep: NDArray[np.bool_]) -> bool:
    """Whether every kept record publishes terms that it has, and no others. Shares no code with the methods."""
    if true.d != published.d or len(true) != len(published):
        return False
    width = np.int64(max(1, true.d))
    had = true.owner * width + true.data
    has = (published.owner * width + published.data)[keep[published.owner]]
    place = np.searchsorted(had, has)
    return bool((place < len(had)).all() and (had[np.minimum(place, len(had) - 1)] == has).all()) if len(has) else True


@dataclass(frozen=True)
class PublishedTerms:
    """A set-valued column as it is written: its entry in the manifest, its cells, and its knowledge."""

    entry: ColumnEntry
    cells: TermCells
    knowledge: Knowledge


def publish_terms(
    column: ResolvedColumn, cells: TermCells, keep: NDArray[np.bool_], knowledge: Knowledge, number: int
) -> PublishedTerms:
    """The manifest lists the terms of the knowledge, and of the unknown ones only those that are published."""
    assert column.domain is not None
    known = len(knowledge.terms)
    occurs = np.bincount(cells.data[keep[cells.owner]], minlength=cells.d) > 0
    listed = occurs | (np.arange(cells.d) < known)
    values = tuple(value for value, stays in zip(column.domain.values, listed, strict=True) if stays)
    shown = keep[cells.owner] & listed[cells.data]
    left = cells.keep(shown)
    place = np.cumsum(listed) - 1
    entry = ColumnEntry(
        name=column.name,
        role=column.attribute.role,
        form="terms",
        kind="string",
        values=values,
        domain_source="data" if len(values) > known else "policy",
        knowledge=number,
    )
    return PublishedTerms(entry, TermCells(len(values), left.offsets, place[left.data].astype(np.int32)), knowledge)


def knowledge_numbers(columns: Iterable[ResolvedColumn]) -> dict[str, int]:
    """The number of every set-valued column's knowledge table, from 1 on."""
    numbers: dict[int, int] = {}
    out = {}
    for column in columns:
        if column.knowledge is not None:
            out[column.name] = numbers.setdefault(id(column.knowledge), len(numbers) + 1)
    return out


def true_terms(release: Release, policy: Policy | None, original: Any) -> dict[str, TermColumn]:
    """The terms of the original as they were linked: over the policy's knowledge and the terms the release adds.

    Unknown terms count only where they were to be published, as when the release was made.
    """
    entries = [entry for entry in release.manifest.columns if entry.form == "terms"]
    if not entries:
        return {}
    if policy is None or any(entry.name not in policy.knowledge for entry in entries):
        raise DataError(
            "how the original writes its sets of terms is not known.",
            hint="Give the policy that the release was made with.",
        )
    source = open_table(original, policy)
    absent = [entry.name for entry in entries if entry.name not in source.columns]
    if absent:
        raise DataError(
            f"{source.name}: no column {absent[0]!r}, which the release has.",
            hint="Give the table that the release was made from.",
        )
    drop = dropping(policy, source.columns)
    loose = [name for name in drop if all(name != entry.name for entry in entries)]
    names = [entry.name for entry in entries]
    profile = LocalEngine().profile(source, [*names, *loose], bins={}, terms=names, drop_missing=drop)
    domains = {}
    for entry in entries:
        known = dict.fromkeys([*policy.knowledge[entry.name].terms, *(entry.values or ())])
        keeps = policy.attributes[entry.name].unknown == "keep"
        domains[entry.name] = Domain(tuple(known | dict.fromkeys(profile.columns[entry.name].counts if keeps else ())))
    parts: dict[str, list[TermCells]] = {name: [] for name in domains}
    for batch in LocalEngine().encode(source, {}, open_columns=loose, terms=domains, drop_missing=drop):
        for name, cells in batch.terms.items():
            parts[name].append(cells)
    return {
        name: TermColumn(name, domain, policy.knowledge[name], TermCells.concat(parts[name]))
        for name, domain in domains.items()
    }
