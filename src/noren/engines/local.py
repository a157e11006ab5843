"""The local engine: one machine, Arrow batches, two passes over the source.

Pass 1 counts (which values occur, how often), pass 2 encodes batch by batch and applies what was decided. Memory does
not grow with the number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.ahead import ahead
from noren.engines.engine import Apply, CodeBatch, Counting, Portable, Profile, Reading, ValueCounts, Written
from noren.engines.shuffle import Shuffler
from noren.errors import DataError
from noren.models.base import Judgement
from noren.models.verdict import Verdict
from noren.progress import Meter, silent
from noren.release.published import Published
from noren.schema.domain import Domain, bin_labels
from noren.schema.kinds import Format
from noren.secret import Keystream
from noren.sources.held import hold_columns
from noren.sources.place import Spot
from noren.sources.source import Source, Writing, open_source
from noren.statements import CellBatch, OpenCells, Statement, batch_length
from noren.statements.terms import encode_terms, present, term_counts
from noren.statements.texts import as_dictionary, encode_bins, encode_labels, label_counts


class LocalEngine:
    """Everything on this machine, batch by batch."""

    def opened(self, data: Any, writing: Writing) -> Source:
        return open_source(
            data, separator=writing.separator, encoding=writing.encoding, missing_values=writing.missing_values
        )

    def held(self, source: Source, data: Any) -> Source:
        return hold_columns(source)

    def demand_room(self, needed: int, what: str) -> None:
        """Accept any size: this machine's memory is for the holder to judge."""

    def written(
        self, source: Source, reading: Reading, making: Portable, rows: int, columns: Sequence[Statement], folder: Spot
    ) -> Written | None:
        return None

    def profile(
        self,
        source: Source,
        counting: Counting,
        *,
        meter: Meter = silent,
    ) -> Profile:
        columns = {name: ValueCounts(name) for name in counting.columns}
        domains = {
            name: Domain(bin_labels(edges), edges=tuple(edges), format=counting.formats.get(name, Format()))
            for name, edges in counting.bins.items()
        }
        bin_counts = {name: np.zeros(len(domain), np.int64) for name, domain in domains.items()}
        records = dropped = 0
        hashes: dict[str, list[NDArray[np.uint64]]] = {name: [] for name in counting.identifiers}
        wanted = dict.fromkeys([*counting.columns, *counting.identifiers] or source.columns[:1])
        for batch, lost in kept_batches(source, list(wanted), counting.drop):
            dropped += lost
            records += batch.num_rows
            for name, found in columns.items():
                if name in counting.terms:
                    _count_terms(batch.column(name), found)
                elif name in domains:
                    _count_bins(batch.column(name), found, domains[name], bin_counts[name])
                else:
                    _count_labels(batch.column(name), found)
            for name, parts in hashes.items():
                parts.append(hashed(batch.column(name), name))
            meter(batch.num_rows + lost)
        for name, domain in domains.items():
            columns[name].counts = {v: int(c) for v, c in zip(domain.values, bin_counts[name], strict=True)}
        return Profile(records, dropped, columns, hashes)

    def encoded(self, source: Source, reading: Reading, *, meter: Meter = silent) -> Iterator[CodeBatch]:
        start = 0
        for batch, lost in kept_batches(source, reading.columns, reading.drop):
            yield code_batch(batch, reading, source.name, start)
            start += batch.num_rows
            meter(batch.num_rows + lost)

    def histogram(
        self, source: Source, reading: Reading, names: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        import polars as pl

        parts: list[Any] = []
        for batch in self.encoded(source, reading):
            rows = pl.DataFrame({name: batch.codes[name].astype(np.int64) for name in names})
            parts.append(rows.group_by(names).agg(pl.len().cast(pl.Int64).alias("\0n")))
        found = pl.concat(parts).group_by(names).agg(pl.col("\0n").sum()).sort(names)
        return found.select(names).to_numpy(), found["\0n"].to_numpy()

    def apply(self, source: Source, reading: Reading, apply: Apply, *, meter: Meter = silent) -> Iterator[CellBatch]:
        for batch in ahead(self.encoded(source, reading, meter=meter)):
            yield apply(batch)

    def scatter(
        self, batches: Iterable[CellBatch], rows: int, stream: Keystream, folder: Path | None
    ) -> Iterator[CellBatch]:
        shuffler = Shuffler(stream, rows, folder)
        for batch in batches:
            shuffler.add(batch)
        return shuffler.finish()

    def judge(self, published: Published, make: Callable[[], Judgement], *, meter: Meter = silent) -> list[Verdict]:
        judgement = make()
        wanted = [name for name in published.columns if name in judgement.needs]
        for batch in ahead(published.batches(wanted)) if wanted else ():
            judgement.observe(batch)
            meter(batch_length(batch))
        return judgement.verdicts()


def kept_batches(source: Source, columns: Sequence[str], drop: Sequence[str]) -> Iterator[tuple[Any, int]]:
    """Yield batches without the records that lack a value in `drop`, and count those."""
    import pyarrow as pa

    for batch in source.batches(list(dict.fromkeys([*columns, *drop]))):
        kept = batch
        for name in drop:
            there = present(kept.column(name), name)
            if not there.all():
                kept = kept.filter(pa.array(there))
        yield kept, batch.num_rows - kept.num_rows


def hashed(column: Any, name: str) -> NDArray[np.uint64]:
    """Hash every text, equal texts equally; missing cells are skipped."""
    import polars as pl

    texts, positions = as_dictionary(column, name)
    found = pl.Series(texts.to_pylist(), dtype=pl.String).hash().to_numpy()
    return np.asarray(found[positions[positions >= 0]])


def code_batch(batch: Any, reading: Reading, source: str, start: int) -> CodeBatch:
    """Encode a batch of texts; refuse cells outside their domain."""
    import pyarrow as pa

    codes: dict[str, NDArray] = {}
    for name, domain in reading.domains.items():
        if domain.edges is not None:
            codes[name], _, bad = encode_bins(batch.column(name), name, domain)
        else:
            codes[name], bad = encode_labels(batch.column(name), name, domain)
        if bad:
            raise DataError(
                f"{source}: column {name!r} holds {bad} cells outside its domain.",
                hint="Run it again while nobody writes to the table; if it repeats, use the domain of this table.",
            )
    loose = {}
    for name in reading.open:
        column = batch.column(name)
        loose[name] = OpenCells(column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column)
    terms = {name: encode_terms(batch.column(name), domain) for name, domain in reading.terms.items()}
    keys = None if reading.key is None else batch.column(reading.key)
    return CodeBatch(codes, loose, terms, keys, batch.num_rows, start)


def _count_bins(column: Any, found: ValueCounts, domain: Domain, counts: NDArray) -> None:
    try:
        codes, missing, outside = encode_bins(column, found.name, domain)
    except DataError:
        found.not_numeric = True
        return
    found.missing += missing
    found.outside += outside
    counts += np.bincount(codes, minlength=len(domain))
    counts[0] -= missing  # encode_bins files them under 0 while the domain has no category for them


def _count_labels(column: Any, found: ValueCounts) -> None:
    if found.is_open:
        found.missing += int((as_dictionary(column, found.name)[1] < 0).sum())
        return
    labels, counts, missing = label_counts(column, found.name)
    found.missing += missing
    found.add(dict(zip(labels, counts.tolist(), strict=True)))


def _count_terms(column: Any, found: ValueCounts) -> None:
    labels, counts, missing = term_counts(column)
    found.missing += missing
    found.add(dict(zip(labels, counts.tolist(), strict=True)))
