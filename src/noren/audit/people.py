"""The original as the holder knows it: every person's quasi-identifiers and terms, and the truth if there is a column.

Nothing of it may leave the holder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import Case
from noren.engines.encode import as_dictionary
from noren.engines.terms import present
from noren.errors import DataError, QueryError
from noren.io.source import Source
from noren.methods.base import CodedTable
from noren.pipeline.anonymize import profile_source
from noren.pipeline.recoding import gather
from noren.policy.reading import dropping, open_table
from noren.policy.resolve import resolve


@dataclass(frozen=True)
class People:
    """The people of the original in its order, apart from those that the policy drops for missing values."""

    table: CodedTable
    rows: NDArray[np.int64]
    """The number of every person's record in the original, from 1 on."""
    exact: Mapping[str, NDArray[np.int64]]
    """Every quasi-identifier as it stands in the original, before intervals and "(other)", as arbitrary numbers."""
    truth: tuple[tuple[str, ...], NDArray[np.int64]] | None
    """The texts of the column that holds the truth, and which of them every person has (-1: missing)."""


def read_people(case: Case, truth: str | None) -> People:
    """Read the original of a case under its policy."""
    policy = case.policy
    assert policy is not None
    source = open_table(case.original, policy)
    if truth is not None and truth not in source.columns:
        raise QueryError(
            f"{source.name}: no column {truth!r} to take the truth from.", hint=f"It has {', '.join(source.columns)}."
        )
    if truth is not None and truth in policy.knowledge:
        raise QueryError(
            f"column {truth!r} holds sets of terms, not a true label.", hint="Name a column with one label per person."
        )
    drop = dropping(policy, source.columns)
    profile = profile_source(policy, source, drop, case.stage)
    columns = resolve(policy, source.name, source.columns, profile)
    with case.stage("Reading codes", profile.records) as progress:
        table = gather(policy, source, columns, profile.records, drop, progress).table
    release, left_out = case.release.records, case.release.manifest.suppressed
    if table.n != release + left_out:
        raise DataError(
            f"the original has {table.n} records, the release {release} and {left_out} left out.",
            hint="Give the table and the policy that the release was made from.",
        )
    coarse = [name for name in table.quasi if table.columns[name].domain.edges or table.columns[name].domain.merged]
    wanted = [*coarse, *([truth] if truth is not None else [])]
    rows, texts = _texts(source, list(dict.fromkeys(wanted)), drop)
    if len(rows) != table.n:
        raise DataError(f"{source.name}: it changed while it was read.", hint="Give a table that stands still.")
    exact = {name: texts[name][1] if name in coarse else table.codes[name].astype(np.int64) for name in table.quasi}
    return People(table, rows, exact, None if truth is None else texts[truth])


def _texts(
    source: Source, names: Sequence[str], drop: Sequence[str]
) -> tuple[NDArray[np.int64], dict[str, tuple[tuple[str, ...], NDArray[np.int64]]]]:
    """The record numbers that are not dropped, and some columns as they stand: distinct texts, and whose is which."""
    known: dict[str, dict[str, int]] = {name: {} for name in names}
    parts: dict[str, list[NDArray[np.int64]]] = {name: [] for name in names}
    rows: list[NDArray[np.int64]] = []
    start = 0
    read = list(dict.fromkeys([*names, *drop])) or list(source.columns[:1])
    for batch in source.batches(read):
        stays = np.ones(batch.num_rows, bool)
        for name in drop:
            stays &= present(batch.column(name), name)
        rows.append(np.flatnonzero(stays) + start + 1)
        start += batch.num_rows
        for name in names:
            texts, positions = as_dictionary(batch.column(name), name)
            place = _places(known[name], texts.to_pylist())
            parts[name].append(np.append(place, -1)[positions][stays])
    return np.concatenate(rows), {name: (tuple(known[name]), np.concatenate(parts[name])) for name in names}


def _places(known: dict[str, int], texts: list[Any]) -> NDArray[np.int64]:
    """The number of every text of a batch, new ones behind those that were seen."""
    return np.array([known.setdefault(str(text), len(known)) for text in texts], np.int64)
