"""A release as the recipient holds it: cells, manifest, and the questions that can be asked of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noren.analysis.axes import Axis
from noren.analysis.estimate import Count, Estimate
from noren.analysis.query import Grouping, allowed_values, find, grouping, parse_by
from noren.cells import CellBatch, Cells, OpenCells, SetCells, ValueCells, concat
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError, ReleaseError
from noren.release.convert import to_arrow
from noren.release.manifest import ColumnEntry, Manifest, VerdictEntry
from noren.release.package import FileFormat, aside, read_package, store_for, write_cells, write_descriptor
from noren.release.store import Store
from noren.schema.domain import Domain, infer_kind, sort_labels
from noren.schema.meaning import Meaning

if TYPE_CHECKING:
    import polars as pl

CELL_LIMIT = 20_000_000
"""Largest cross tabulation that is worked out at once."""
EXPAND_LIMIT = 1_000_000
ANSWER = ("count", "std_error", "low", "high")
"""Columns that an estimate adds to those asked for."""


class Release:
    """What is published: the cells and the manifest, and nothing that came before them."""

    def __init__(self, manifest: Manifest, store: Store, path: Path | None = None) -> None:
        self.manifest = manifest
        self.path = path
        self._store = store

    def __repr__(self) -> str:
        sets = [c.name for c in self.manifest.columns if c.form == "set"]
        return f"<Release of {self.records:,} records: {', '.join(self.columns)}; sets: {', '.join(sets) or 'none'}>"

    # ------------------------------------------------------------------ what is there

    @property
    def records(self) -> int:
        return self.manifest.records

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.manifest.columns)

    @property
    def verdicts(self) -> tuple[VerdictEntry, ...]:
        """Every requirement on every column: asked, achieved, holds, and on which ground."""
        return self.manifest.verdicts

    @property
    def designs(self) -> dict[str, DecoyDesign]:
        """The decoy design of every column that is published as sets."""
        return {entry.name: entry.design for entry in self.manifest.columns if entry.design is not None}

    def meanings(self) -> dict[str, Meaning]:
        return {entry.name: entry.meaning for entry in self.manifest.columns}

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[CellBatch]:
        """The cells of some columns, batch by batch."""
        names = self.columns if columns is None else columns
        return self._store.batches([self.manifest.column(name) for name in names])

    def cells(self, columns: Sequence[str]) -> dict[str, Cells]:
        """The cells of some columns, all records at once."""
        return concat(list(self.batches(columns)))

    def frame(self) -> pl.DataFrame:
        """The published table; a decoy cell is a list in domain order."""
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
            if rows != self.records:
                raise ReleaseError(f"{rows} records were written instead of {self.records}.")
            write_descriptor(work, data, self.manifest)
        return target

    # ------------------------------------------------------------------ asking

    def estimate(
        self,
        by: str | Sequence[str],
        where: Mapping[str, Any] | None = None,
        estimator: str = "likelihood",
        *,
        level: float = 0.95,
        population: bool = False,
        progress: Callable[[int, float], None] | None = None,
    ) -> Estimate:
        """Counts of a cross tabulation with standard errors and intervals.

        `by` names columns, hierarchy levels ("zip@2") or intervals ("age/10"); `where` restricts other columns or the
        same ones to some values. The intervals speak of the original table's counts, or with `population=True` of
        the population it was sampled from. A column that is itself called count, std_error, low or high gets a
        trailing underscore in the answer.
        """
        import polars as pl

        from noren.analysis.estimators import tabulate

        names = (by,) if isinstance(by, str) else tuple(by)
        if not names:
            raise QueryError("estimate needs at least one column.", hint='For example estimate(["job", "disease"]).')
        if not 0 < level < 1:
            raise QueryError(f"level={level} is not a probability.", hint="For example 0.95.")
        axes, shown, records = self._axes(names, where or {})
        result = tabulate(axes, estimator, level=level, population=population, progress=progress)
        titles = tuple(_free(name + "_", {*ANSWER, *names}) if name in ANSWER else name for name in names)
        grid = np.indices(result.counts.shape[: len(shown)]).reshape(len(shown), -1)
        frame = pl.DataFrame(
            {
                title: pl.Series(np.array(group.labels, object)[codes], dtype=pl.String)
                for title, group, codes in zip(titles, shown, grid, strict=True)
            }
            | {
                "count": result.counts.ravel(),
                "std_error": result.std_error.ravel(),
                "low": result.low.ravel(),
                "high": result.high.ravel(),
            }
        )
        return Estimate(
            by=titles,
            frame=frame,
            estimator=estimator,
            level=level,
            population=population,
            records=records,
            where=dict(where or {}),
            order={title: group.labels for title, group in zip(titles, shown, strict=True)},
            diagnostics=result.diagnostics | {"iterations": result.iterations},
        )

    def count(
        self,
        where: Mapping[str, Any],
        estimator: str = "likelihood",
        *,
        level: float = 0.95,
        population: bool = False,
    ) -> Count:
        """How many records meet all conditions, with an interval."""
        from noren.analysis.estimators import tabulate

        if not where:
            raise QueryError("count needs a condition.", hint='For example count({"job": ["Lawyer"]}).')
        axes, _, records = self._axes((), where)
        if not axes:
            exact = float(records)
            return Count(exact, 0.0, exact, exact, level, "exact", records, assumes="no decoys are involved")
        result = tabulate(axes, estimator, level=level, population=population)
        return Count(
            count=float(result.counts.ravel()[0]),
            std_error=float(result.std_error.ravel()[0]),
            low=float(result.low.ravel()[0]),
            high=float(result.high.ravel()[0]),
            level=level,
            estimator=estimator,
            records=records,
        )

    def _axes(self, by: Sequence[str], where: Mapping[str, Any]) -> tuple[list[Axis], list[Grouping], int]:
        """Axes for the columns asked for, then for conditions on decoy columns. Exact columns are filtered here."""
        meanings = self.meanings()
        parsed = [(text, *parse_by(text, meanings)) for text in by]
        if len({meaning.name for _, meaning, _, _ in parsed}) != len(parsed):
            raise QueryError("a column is asked for twice.", hint="Name every column once, at one level.")
        needed = list(dict.fromkeys([m.name for _, m, _, _ in parsed] + [find(n, meanings).name for n in where]))
        cells = self.cells(needed)
        domains: dict[str, Domain] = {}
        for name in needed:
            cells[name], domains[name] = _closed(self.manifest.column(name), cells[name])
        keep = np.ones(self.records, bool)
        hidden: dict[str, np.ndarray] = {}
        for name, wanted in where.items():
            allowed = allowed_values(meanings[name], wanted, domains[name])
            column = cells[name]
            if isinstance(column, ValueCells):
                keep &= allowed[column.data]
            else:
                hidden[name] = allowed
        if not keep.all():
            rows = np.flatnonzero(keep)
            cells = {name: column.take(rows) for name, column in cells.items()}
        axes: list[Axis] = []
        shown: list[Grouping] = []
        for text, meaning, mark, argument in parsed:
            group = grouping(text, meaning, mark, argument, domains[meaning.name])
            axes.append(self._axis(group, cells[meaning.name], hidden.pop(meaning.name, None)))
            shown.append(group)
        for name, allowed in hidden.items():
            groups = np.where(allowed, 0, -1).astype(np.int64)
            column = cells[name]
            assert isinstance(column, SetCells)
            axes.append(Axis(name, column, self.designs[name], groups, 1))
        size = int(np.prod([float(axis.cells.d) for axis in axes])) if axes else 1
        if size > CELL_LIMIT:
            raise QueryError(
                f"the cross tabulation would have {size:,} cells, more than {CELL_LIMIT:,}.",
                hint="Ask for fewer columns, a hierarchy level (zip@1) or intervals (age/10).",
            )
        return axes, shown, int(keep.sum())

    def _axis(self, group: Grouping, column: Cells, allowed: np.ndarray | None) -> Axis:
        if isinstance(column, ValueCells):
            codes = group.groups[column.data]
            return Axis(group.title, ValueCells(len(group.labels), codes), DecoyDesign.exact(len(group.labels)))
        assert isinstance(column, SetCells)
        design = self.designs[group.column]
        groups = group.groups if allowed is None else np.where(allowed, group.groups, -1)
        if allowed is None and group.is_identity:
            return Axis(group.title, column, design)
        return Axis(group.title, column, design, groups.astype(np.int64), len(group.labels))


def _free(name: str, taken: Container[str]) -> str:
    """The name, with underscores until it is not taken."""
    while name in taken:
        name += "_"
    return name


def _closed(entry: ColumnEntry, cells: Cells) -> tuple[Cells, Domain]:
    """Cells with a domain; an open column gets one from what it holds."""
    if not isinstance(cells, OpenCells):
        return cells, entry.domain
    from noren.engines.encode import encode_labels, label_counts

    labels, _, missing = label_counts(cells.data, entry.name)
    from noren.schema.domain import MISSING

    labels = [*labels, MISSING] if missing else labels
    kind = infer_kind(labels)
    domain = Domain(tuple(sort_labels(labels, kind)), kind)
    codes, _ = encode_labels(cells.data, entry.name, domain)
    return ValueCells(len(domain), codes), domain


def open_release(path: str | Path) -> Release:
    """Open a release directory: checksums are compared, and a damaged or incomplete one is refused."""
    manifest, data = read_package(Path(path))
    return Release(manifest, store_for(data), Path(path))
