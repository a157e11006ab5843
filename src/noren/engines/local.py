"""The local engine: one machine, Arrow batches, two passes over the source.

Pass 1 profiles (which values occur, how often), pass 2 encodes batch by batch for whoever applies a decision. Memory
does not grow with the number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.cells import OpenCells, TermCells
from noren.engines.encode import as_dictionary, encode_bins, encode_labels, label_counts
from noren.engines.terms import encode_terms, present, term_counts
from noren.errors import DataError
from noren.io.source import Source
from noren.schema.domain import Domain, bin_labels

OPEN_LIMIT = 100_000
"""A column with more distinct values than this has an open domain: its values are never listed."""

Progress = Callable[[int], None]


@dataclass
class ColumnProfile:
    """What pass 1 learned about a column."""

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    missing: int = 0
    outside: int = 0
    is_open: bool = False
    not_numeric: bool = False


@dataclass
class TableProfile:
    """What pass 1 learned about a table."""

    records: int
    dropped: int
    columns: dict[str, ColumnProfile]


@dataclass(frozen=True)
class CodeBatch:
    """A run of records as codes. `keys` are the record keys, where asked for."""

    codes: Mapping[str, NDArray]
    open: Mapping[str, OpenCells]
    keys: Any
    records: int
    terms: Mapping[str, TermCells] = field(default_factory=dict)


class LocalEngine:
    """Verbs over a source: profile, encode."""

    def profile(
        self,
        source: Source,
        columns: Sequence[str],
        *,
        bins: Mapping[str, Sequence[float]],
        terms: Sequence[str] = (),
        drop_missing: Sequence[str] = (),
        key: str | None = None,
        on_batch: Callable[[Any], None] | None = None,
        progress: Progress | None = None,
    ) -> TableProfile:
        """Count the values of every column. `on_batch` sees each batch's record keys."""
        profiles = {name: ColumnProfile(name) for name in columns}
        domains = {name: Domain(bin_labels(edges), edges=tuple(edges)) for name, edges in bins.items()}
        bin_counts = {name: np.zeros(len(domain), np.int64) for name, domain in domains.items()}
        records = dropped = 0
        for batch, lost in _batches(source, _with_key(columns, key), drop_missing):
            dropped += lost
            records += batch.num_rows
            if key is not None and on_batch is not None:
                on_batch(batch.column(key))
            for name in columns:
                column = batch.column(name)
                profile = profiles[name]
                if name in terms:
                    _profile_terms(column, profile)
                elif name in domains:
                    self._profile_bins(column, profile, domains[name], bin_counts[name])
                elif not profile.is_open:
                    _profile_labels(column, profile)
                else:
                    profile.missing += int((as_dictionary(column, name)[1] < 0).sum())
            if progress is not None:
                progress(batch.num_rows + lost)
        for name, domain in domains.items():
            profiles[name].counts = {v: int(c) for v, c in zip(domain.values, bin_counts[name], strict=True)}
        if records == 0:
            why = "every record was dropped for a missing value" if dropped else "it has a header but no rows"
            raise DataError(f"{source.name}: no records: {why}.", hint="Give a table with at least one record.")
        return TableProfile(records, dropped, profiles)

    def encode(
        self,
        source: Source,
        domains: Mapping[str, Domain],
        *,
        open_columns: Sequence[str] = (),
        terms: Mapping[str, Domain] | None = None,
        drop_missing: Sequence[str] = (),
        key: str | None = None,
        progress: Progress | None = None,
    ) -> Iterator[CodeBatch]:
        """The records as codes into their domains, in batches. Terms without a place in their domain are left out."""
        import pyarrow as pa

        sets = terms or {}
        columns = list(dict.fromkeys([*domains, *open_columns, *sets]))
        for batch, lost in _batches(source, _with_key(columns, key), drop_missing):
            codes: dict[str, NDArray] = {}
            for name, domain in domains.items():
                if domain.edges is not None:
                    codes[name], _, bad = encode_bins(batch.column(name), name, domain)
                else:
                    codes[name], bad = encode_labels(batch.column(name), name, domain)
                if bad:
                    raise DataError(
                        f"{source.name}: column {name!r} holds {bad} cells outside its domain.",
                        hint="The table changed while it was read, or the domain is not that of this table.",
                    )
            loose = {}
            for name in open_columns:
                column = batch.column(name)
                if isinstance(column, pa.DictionaryArray):
                    column = column.dictionary_decode()
                loose[name] = OpenCells(column)
            found = {name: encode_terms(batch.column(name), domain) for name, domain in sets.items()}
            yield CodeBatch(codes, loose, batch.column(key) if key is not None else None, batch.num_rows, found)
            if progress is not None:
                progress(batch.num_rows + lost)

    @staticmethod
    def _profile_bins(column: Any, profile: ColumnProfile, domain: Domain, counts: NDArray) -> None:
        try:
            codes, missing, outside = encode_bins(column, profile.name, domain)
        except DataError:
            profile.not_numeric = True
            return
        profile.missing += missing
        profile.outside += outside
        counts += np.bincount(codes, minlength=len(domain))
        counts[0] -= missing  # encode_bins files them under 0 while the domain has no category for them


def _profile_labels(column: Any, profile: ColumnProfile) -> None:
    labels, counts, missing = label_counts(column, profile.name)
    profile.missing += missing
    known = profile.counts
    for label, count in zip(labels, counts.tolist(), strict=True):
        known[label] = known.get(label, 0) + count
    if len(known) > OPEN_LIMIT:
        profile.is_open = True
        known.clear()


def _profile_terms(column: Any, profile: ColumnProfile) -> None:
    labels, counts, missing = term_counts(column)
    profile.missing += missing
    for label, count in zip(labels, counts.tolist(), strict=True):
        profile.counts[label] = profile.counts.get(label, 0) + count
    if len(profile.counts) > OPEN_LIMIT:
        raise DataError(
            f"column {profile.name!r} has more than {OPEN_LIMIT:,} different terms.",
            hint="Is it free text? Give the separator of its terms, or leave it out.",
        )


def _with_key(columns: Sequence[str], key: str | None) -> list[str]:
    return list(columns) if key is None or key in columns else [*columns, key]


def _batches(source: Source, columns: Sequence[str], drop_missing: Sequence[str]) -> Iterator[tuple[Any, int]]:
    """Batches without the records that lack a value in `drop_missing`, and how many those were."""
    import pyarrow as pa

    for batch in source.batches(columns):
        kept = batch
        for name in drop_missing:
            there = present(kept.column(name), name)
            if not there.all():
                kept = kept.filter(pa.array(there))
        yield kept, batch.num_rows - kept.num_rows
