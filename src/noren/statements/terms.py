"""Cells that are sets of terms (symptoms, purchases, tags), all of them true; terms may be suppressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError, ReleaseError
from noren.ragged import chosen, different, offsets_of, owners
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge, knowledge_of_rows, knowledge_rows
from noren.statements.batch import Cells
from noren.statements.statement import Judge, ReadDesign, Statement
from noren.statements.texts import AGAIN, as_dictionary, codes_in, json_lists, lists_of, parse_lists


@dataclass(frozen=True)
class TermCells:
    """n sets of terms over d terms: record i has the codes data[offsets[i]:offsets[i + 1]], ascending, each once."""

    d: int
    offsets: NDArray[np.int64]
    data: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return int(self.offsets.nbytes + self.data.nbytes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return how many terms every record has."""
        return np.diff(self.offsets)

    @property
    def owner(self) -> NDArray[np.int64]:
        """Return the record of every entry."""
        return owners(self.offsets)

    @classmethod
    def from_entries(cls, d: int, n: int, record: NDArray, code: NDArray) -> TermCells:
        """Make sets from (record, code) pairs in any order; a repeated pair counts once."""
        key = different(record.astype(np.int64) * d + code)
        offsets = np.searchsorted(key, np.arange(n + 1) * np.int64(d))
        first = np.repeat(np.arange(n) * np.int64(d), np.diff(offsets))
        return cls(d, offsets.astype(np.int64), (key - first).astype(np.int32))

    @classmethod
    def concat(cls, parts: Sequence[TermCells]) -> TermCells:
        offsets = offsets_of(np.concatenate([part.sizes for part in parts]))
        return cls(parts[0].d, offsets, np.concatenate([part.data for part in parts]))

    def take(self, rows: NDArray | slice) -> TermCells:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            stop = max(start, stop)
            offsets = self.offsets[start : stop + 1]
            return TermCells(self.d, offsets - offsets[0], self.data[offsets[0] : offsets[-1]])
        offsets, entries = chosen(self.offsets, rows)
        return TermCells(self.d, offsets, self.data[entries])

    def pack(self) -> Any:
        import pyarrow as pa

        return pa.LargeListArray.from_arrays(pa.array(self.offsets), pa.array(self.data))

    def unpack(self, column: Any) -> TermCells:
        offsets = column.offsets.to_numpy()
        return TermCells(self.d, offsets - offsets[0], column.flatten().to_numpy(zero_copy_only=False))

    def distinct(self) -> tuple[TermCells, NDArray[np.int64]]:
        """Return the distinct sets of terms in the order of first occurrence, and every row's set."""
        import polars as pl

        rows = pl.from_arrow(self.pack())
        assert isinstance(rows, pl.Series)
        texts = rows.list.eval(pl.element().cast(pl.String)).list.join(",")
        ids = texts.rank("dense").to_numpy().astype(np.int64) - 1
        first = np.zeros(int(ids.max(initial=-1)) + 1, np.int64)
        first[ids[::-1]] = np.arange(len(self))[::-1]
        return self.take(first), ids

    def keep(self, entries: NDArray[np.bool_]) -> TermCells:
        """Return the same records with only the kept entries."""
        return TermCells(self.d, offsets_of(entries)[self.offsets], self.data[entries])

    def counts(self) -> NDArray[np.int64]:
        """Return how many records have each term."""
        return np.bincount(self.data, minlength=self.d).astype(np.int64)

    def has(self, wanted: NDArray[np.bool_], every: bool = False) -> NDArray[np.bool_]:
        """Return which records have one of the wanted terms, or all of them."""
        found = offsets_of(wanted[self.data])[self.offsets]
        return np.asarray(np.diff(found) >= (int(wanted.sum()) if every else 1))


def present(column: Any, name: str) -> NDArray[np.bool_]:
    """Return which cells are not missing."""
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), bool)
    return np.asarray(as_dictionary(column, name)[1] >= 0)


def _entries(column: Any) -> tuple[NDArray[np.int64], Any]:
    """Return the record of every term, and the terms."""
    import pyarrow.compute as pc

    sizes = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return np.repeat(np.arange(len(column)), sizes), column.flatten()


def term_counts(column: Any) -> tuple[list[str], NDArray[np.int64], int]:
    """Return the terms that occur, their numbers of records, and the number of missing cells. A repeated term counts
    once."""
    record, flat = _entries(column)
    encoded = flat.dictionary_encode()
    labels = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    cells = TermCells.from_entries(len(labels), len(column), record, codes)
    return labels, cells.counts(), int(column.null_count)


def encode_terms(column: Any, domain: Domain) -> TermCells:
    """Encode terms into the domain, each once a record. Unknown terms are dropped."""
    import pyarrow as pa
    import pyarrow.compute as pc

    record, flat = _entries(column)
    found = pc.index_in(flat, value_set=pa.array(domain.values, pa.string())).fill_null(-1)
    codes = found.to_numpy(zero_copy_only=False)
    inside = codes >= 0
    return TermCells.from_entries(len(domain), len(column), record[inside], codes[inside])


TERMS = 32
"""Terms of a record that a batch has room for."""


@dataclass(frozen=True, eq=False)
class TermsStatement(Statement):
    """Each cell is a set of terms that the record has; others may be suppressed. The knowledge table is read from a
    separate file."""

    number: int = field(default=1)

    form: ClassVar[str] = "terms"
    words: ClassVar[str] = "published as sets of terms"

    @property
    def description(self) -> str:
        return "as a set of terms; some may have been left out"

    @property
    def kinds(self) -> None:
        return None

    @property
    def values_per_record(self) -> int:
        return TERMS

    @property
    def terms(self) -> tuple[str, ...]:
        return self.domain.values

    @property
    def knowledge(self) -> Knowledge | None:
        """Return the knowledge table of the terms. Columns with the same knowledge are treated as one."""
        return self.column.knowledge if isinstance(self.column.knowledge, Knowledge) else None

    def likelihood(self, cells: Cells) -> None:
        return None

    def position(self, cells: Cells) -> NDArray[np.float64]:
        return self.check_cells(cells).sizes.astype(np.float64)

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        """Return whether each record publishes only terms that it has."""
        shown = self.check_cells(cells)
        width = np.int64(max(1, self.d))
        had, has = truth.owner * width + truth.data, shown.owner * width + shown.data
        place = np.minimum(np.searchsorted(had, has), max(0, len(had) - 1))
        true = had[place] == has if len(had) else np.zeros(len(has), bool)
        return np.asarray(np.bincount(shown.owner, ~true, minlength=len(shown)) == 0)

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        """Return the number of records that publish every term."""
        return self.check_cells(cells).counts()

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_terms(self, evidence)

    def check_cells(self, cells: Any) -> TermCells:
        if not isinstance(cells, TermCells) or cells.d != self.d:
            raise self.disagrees(f"does not hold sets over its {self.d} terms.")
        ends = cells.offsets[[0, -1]].tolist() if len(cells.offsets) else []
        if (np.diff(cells.offsets) < 0).any() or ends != [0, len(cells.data)]:
            raise self.disagrees("does not hold whole sets of terms.")
        if len(cells.data) and not (cells.data.min() >= 0 and cells.data.max() < cells.d):
            raise self.disagrees(f"holds a term outside its {self.d} terms.")
        return cells

    def to_arrow(self, cells: Any) -> Any:
        return lists_of(self.domain, cells.data, cells.offsets)

    def to_csv(self, cells: Any) -> Any:
        return json_lists(self.domain, cells.data, cells.offsets)

    def from_csv(self, column: Any) -> Cells:
        return self.from_arrow(parse_lists(self.name, self.domain.kind, column))

    def from_arrow(self, column: Any) -> Cells:
        import pyarrow as pa

        message = f"column {self.name!r} has a cell that is not a set of terms in domain order."
        damaged = ReleaseError(message, hint=AGAIN)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)) or column.null_count:
            raise damaged
        offsets = column.offsets.to_numpy().astype(np.int64)
        flat = column.flatten()
        if flat.null_count:
            raise damaged
        codes = codes_in(self.name, self.domain, flat).astype(np.int32) if len(flat) else np.zeros(0, np.int32)
        cells = TermCells(self.d, offsets - offsets[0], codes)
        first = np.zeros(len(codes) + 1, bool)
        first[cells.offsets] = True
        if not (first[1:-1] | (np.diff(codes) > 0)).all():
            raise damaged
        return cells

    @property
    def texts_path(self) -> str | None:
        return f"{self.name}.list.element"

    def field(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": "array",
            "description": "A set of terms; terms may have been left out to protect people.",
            "arrayItem": {"type": "string"},
        }

    def manifest_fields(self) -> dict[str, Any]:
        return {"knowledge": self.number}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        cls.demand(fields, "knowledge")
        number = fields["knowledge"]
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 1000:
            raise ValueError("knowledge tables have numbers from 1 on")
        if column.is_open or column.domain.kind != "string":
            raise ValueError("terms are texts")
        return cls(column, number)

    # ------------------------------------------------------------------ the knowledge table

    @property
    def side(self) -> str:
        return f"knowledge-{self.number}"

    def side_title(self, names: Sequence[str]) -> str:
        return f"What links the terms of {', '.join(names)} to labels"

    def side_fields(self) -> list[dict[str, Any]]:
        texts = ("label", "term")
        return [{"name": n, "type": "string" if n in texts else "number"} for n in self.side_columns()]

    def side_columns(self) -> dict[str, Any]:
        import pyarrow as pa

        assert self.knowledge is not None
        return {name: pa.array(cells) for name, cells in knowledge_rows(self.knowledge).items()}

    def read_side(self, columns: Mapping[str, Any]) -> Knowledge:
        import pyarrow as pa

        texts = {name: columns[name].cast(pa.string()).to_pylist() for name in ("label", "term") if name in columns}
        numbers = {name: columns[name].cast(pa.float64()).to_pylist() for name in columns if name not in texts}
        try:
            return knowledge_of_rows(texts | numbers)
        except NorenError:
            raise ValueError("not a knowledge table") from None

    def with_side(self, found: Any) -> TermsStatement:
        return self.over(self.column.over(self.name, self.domain, knowledge=found))
