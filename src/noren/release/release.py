"""A release as the recipient holds it: cells, manifest, and the questions that can be asked of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noren.analysis.estimate import Count, Estimate
from noren.cells import CellBatch, Cells, GroupTable, batch_length, concat
from noren.designs.any import Design
from noren.errors import QueryError, ReleaseError
from noren.release.answers import answer
from noren.release.convert import to_arrow
from noren.release.manifest import Manifest, VerdictEntry
from noren.release.package import (
    FileFormat,
    aside,
    read_package,
    write_cells,
    write_descriptor,
    write_tables,
)
from noren.release.store import Store
from noren.schema.knowledge import Knowledge
from noren.schema.meaning import Meaning

if TYPE_CHECKING:
    import polars as pl

EXPAND_LIMIT = 1_000_000
ANSWER = ("count", "std_error", "low", "high")
"""Columns that an estimate adds to those asked for."""


class Release:
    """What is published: the cells and the manifest, and nothing that came before them."""

    def __init__(
        self,
        manifest: Manifest,
        store: Store,
        path: Path | None = None,
        tables: Mapping[str, GroupTable] | None = None,
        knowledge: Mapping[str, Knowledge] | None = None,
    ) -> None:
        self.manifest = manifest
        self.path = path
        self.tables = dict(tables or {})
        """What the groups of every taken-apart column hold."""
        self.knowledge = dict(knowledge or {})
        """What links the terms of every set-valued column to labels."""
        self._store = store

    def __repr__(self) -> str:
        kinds = {"set": "sets", "node": "general", "group": "groups", "terms": "terms"}
        held = {word: [c.name for c in self.manifest.columns if c.form == form] for form, word in kinds.items()}
        hidden = [f"{word}: {', '.join(names)}" for word, names in held.items() if names] or ["sets: none"]
        return f"<Release of {self.records:,} records: {', '.join(self.columns)}; {'; '.join(hidden)}>"

    # ------------------------------------------------------------------ what is there

    @property
    def records(self) -> int:
        return self.manifest.records

    @property
    def rows(self) -> int:
        """Rows of the published table: one per person, or one per member of each person's set."""
        if self.manifest.layout != "records":
            return self.records
        return self.records * next(iter(self.designs.values())).eta

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.manifest.columns)

    @property
    def verdicts(self) -> tuple[VerdictEntry, ...]:
        """Every requirement on every column: asked, achieved, holds, and on which ground."""
        return self.manifest.verdicts

    @property
    def designs(self) -> dict[str, Design]:
        """The decoy design of every column that is published as sets."""
        return {entry.name: entry.design for entry in self.manifest.columns if entry.design is not None}

    def meanings(self) -> dict[str, Meaning]:
        return {entry.name: entry.meaning for entry in self.manifest.columns}

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[CellBatch]:
        """The cells of some columns, batch by batch."""
        names = self.columns if columns is None else columns
        return self._store.batches([self.manifest.column(name) for name in names])

    def cells(self, columns: Sequence[str]) -> dict[str, Cells]:
        """The cells of some columns, all rows at once."""
        batches = list(self.batches(columns))
        cells = concat(batches) if batches else {}
        found = batch_length(cells) if batches else 0
        if found != self.rows or not batches:
            raise ReleaseError(
                f"the data hold {found} rows, the manifest says {self.rows}.",
                hint="Do not use it; ask the holder for it again.",
            )
        return cells

    def frame(self) -> pl.DataFrame:
        """The published table; a decoy cell and a set of terms are lists in domain order."""
        import polars as pl
        import pyarrow as pa

        cells = self.cells(self.columns)
        arrays = {entry.name: to_arrow(entry, cells[entry.name]) for entry in self.manifest.columns}
        plain = {
            name: array.cast(pa.list_(array.type.value_type.value_type))
            if pa.types.is_list(array.type) and pa.types.is_dictionary(array.type.value_type)
            else array
            for name, array in arrays.items()
        }
        frame = pl.from_arrow(pa.table(plain))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def expand(self, limit: int = EXPAND_LIMIT) -> pl.DataFrame:
        """The un-aggregated form: one row per combination of a record's sets (paper 000, Table III (b)).

        `record` numbers the published records, so that rows of one record can be told apart (`record_` where a
        published column has that name).
        """
        if self.manifest.layout == "records":
            raise QueryError("this release has one row per possible value already.", hint="Use frame().")
        if terms := [entry.name for entry in self.manifest.columns if entry.form == "terms"]:
            raise QueryError(
                "this release has sets of terms, all of which a record has, and no sets of possible values to expand.",
                hint=f"frame().explode({terms[0]!r}) has one row per record and term.",
            )
        if self.manifest.layout == "general":
            raise QueryError("this release has general values and no sets to expand.", hint="Use frame().")
        rows = self.records
        for design in self.designs.values():
            rows *= design.eta
        if rows > limit:
            raise QueryError(
                f"the expanded form would have {rows:,} rows, more than {limit:,}.",
                hint="Raise limit, or analyse the release as it is: estimate() never expands it.",
            )
        frame = self.frame().with_row_index(_free("record", self.columns))
        for name in self.designs:
            frame = frame.explode(name)
        return frame

    # ------------------------------------------------------------------ saving

    def save(self, path: str | Path, file_format: FileFormat = "parquet") -> Path:
        """Write a release directory. It must not exist; nothing half-written is ever left under its name."""
        target = Path(path)
        with aside(target) as work:
            data, rows = write_cells(work, self.manifest.columns, self.batches(), file_format)
            if rows != self.rows:
                raise ReleaseError(f"{rows} rows were written instead of {self.rows}.")
            write_tables(work, self.manifest.columns, self.tables, self.knowledge, file_format)
            write_descriptor(work, data, self.manifest)
        return target

    # ------------------------------------------------------------------ asking

    def estimate(
        self,
        by: str | Sequence[str],
        where: Mapping[str, Any] | None = None,
        estimator: str | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        progress: Callable[[int, float], None] | None = None,
    ) -> Estimate:
        """Counts of a cross tabulation with standard errors and intervals.

        `by` names columns, hierarchy levels ("zip@2") or intervals ("age/10"); `where` restricts other columns or the
        same ones to some values. The intervals speak of the original table's counts, or with `population=True` of
        the population it was sampled from. A column that is itself called count, std_error, low or high gets a
        trailing underscore in the answer. The estimator is `likelihood` unless another is named (`linear` for a
        release of shuffled records, which does not say which rows belong together).

        On a column of terms a condition asks for at least one of them (`{"signs": ["cough", "fever"]}`) or for all
        (`{"signs": {"all": ["cough", "fever"]}}`). Terms may have been left out of any record, so the count is of the
        records that publish what is asked, low bounds those alone, and high counts every record that the other
        conditions leave. `by="signs"` gives one row per term; a record counts in the row of each of its terms.
        """
        import polars as pl

        names = (by,) if isinstance(by, str) else tuple(by)
        if not names:
            raise QueryError("estimate needs at least one column.", hint='For example estimate(["job", "disease"]).')
        if not 0 < level < 1:
            raise QueryError(f"level={level} is not a probability.", hint="For example 0.95.")
        result = answer(self, names, where or {}, estimator, level, population, progress)
        shown = result.shown
        titles = tuple(_free(name + "_", {*ANSWER, *names}) if name in ANSWER else name for name in names)
        grid = np.indices(result.counts.shape[: len(shown)]).reshape(len(shown), -1)
        frame = pl.DataFrame(
            {
                title: pl.Series(np.array(group.labels, object)[codes], dtype=pl.String)
                for title, group, codes in zip(titles, shown, grid, strict=True)
            }
            | {
                "count": result.counts.ravel(),
                "std_error": pl.Series(result.std_error.ravel()).fill_nan(None),
                "low": result.low.ravel(),
                "high": result.high.ravel(),
            }
        )
        return Estimate(
            by=titles,
            frame=frame,
            estimator=result.estimator,
            level=result.level,
            population=population,
            records=result.records,
            where=dict(where or {}),
            order={title: group.labels for title, group in zip(titles, shown, strict=True)},
            diagnostics=dict(result.diagnostics),
            assumes=result.assumes,
        )

    def count(
        self,
        where: Mapping[str, Any],
        estimator: str | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
    ) -> Count:
        """How many records meet all conditions, with an interval.

        Conditions are as in `estimate`: values, hierarchy nodes, terms (`{"signs": {"all": ["cough", "fever"]}}`).
        """
        if not where:
            raise QueryError("count needs a condition.", hint='For example count({"job": ["Lawyer"]}).')
        result = answer(self, (), where, estimator, level, population, None)
        error = float(result.std_error.ravel()[0])
        return Count(
            count=float(result.counts.ravel()[0]),
            std_error=None if np.isnan(error) else error,
            low=float(result.low.ravel()[0]),
            high=float(result.high.ravel()[0]),
            level=result.level,
            estimator=result.estimator,
            records=result.records,
            assumes=result.assumes,
        )


def _free(name: str, taken: Container[str]) -> str:
    """The name, with underscores until it is not taken."""
    while name in taken:
        name += "_"
    return name


def open_release(path: str | Path) -> Release:
    """Open a release directory: checksums are compared, and a damaged or incomplete one is refused."""
    manifest, store, tables, knowledge = read_package(Path(path))
    return Release(manifest, store, Path(path), tables, knowledge)
