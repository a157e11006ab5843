"""A release as the recipient holds it: cells, manifest, and the questions that can be asked of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noren.analysis.axes import Axis
from noren.analysis.estimate import Count, Estimate
from noren.analysis.query import Grouping, allowed_values, find, grouping, parse_by
from noren.cells import CellBatch, Cells, OpenCells, SetCells, ValueCells, batch_length, concat
from noren.designs.any import Design
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

    from noren.analysis.estimators import Tabulation

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
    def rows(self) -> int:
        """Rows of the published table: one per person, or one per member of each person's set."""
        if self.manifest.layout == "sets":
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
        cells = concat(list(self.batches(columns)))
        if batch_length(cells) != self.rows:
            raise ReleaseError(
                f"the data hold {batch_length(cells)} rows, the manifest says {self.rows}.",
                hint="Do not use it; ask the holder for it again.",
            )
        return cells

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
        if self.manifest.layout == "records":
            raise QueryError("this release has one row per possible value already.", hint="Use frame().")
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
        """
        import polars as pl

        estimator = estimator or self._default_estimator
        names = (by,) if isinstance(by, str) else tuple(by)
        if not names:
            raise QueryError("estimate needs at least one column.", hint='For example estimate(["job", "disease"]).')
        if not 0 < level < 1:
            raise QueryError(f"level={level} is not a probability.", hint="For example 0.95.")
        asked = self._ask(names, where or {})
        shown, records = asked.shown, asked.records
        result = self._tabulate(asked, estimator, level, population, progress)
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
        estimator: str | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
    ) -> Count:
        """How many records meet all conditions, with an interval."""
        estimator = estimator or self._default_estimator
        if not where:
            raise QueryError("count needs a condition.", hint='For example count({"job": ["Lawyer"]}).')
        asked = self._ask((), where)
        records = asked.records
        if not asked.axes:
            exact = float(records)
            return Count(exact, 0.0, exact, exact, level, "exact", records, assumes="no decoys are involved")
        result = self._tabulate(asked, estimator, level, population, None)
        return Count(
            count=float(result.counts.ravel()[0]),
            std_error=float(result.std_error.ravel()[0]),
            low=float(result.low.ravel()[0]),
            high=float(result.high.ravel()[0]),
            level=level,
            estimator=estimator,
            records=records,
        )

    @property
    def _default_estimator(self) -> str:
        return "likelihood" if self.manifest.layout == "sets" else "linear"

    def _tabulate(
        self,
        asked: _Asked,
        estimator: str,
        level: float,
        population: bool,
        progress: Callable[[int, float], None] | None,
    ) -> Tabulation:
        """The table that was asked for, whatever the layout of the rows."""
        from noren.analysis.estimators import tabulate

        options: dict[str, Any] = {"level": level, "population": population, "progress": progress}
        if self.manifest.layout == "sets":
            return tabulate(asked.axes, estimator, **options)
        if asked.members is None:
            return _scaled(tabulate(asked.axes, **options), self.records / self.rows)
        from noren.analysis.semantic import tabulate_records

        place = next(i for i, axis in enumerate(asked.axes) if not isinstance(axis.design, DecoyDesign))
        axis, others = asked.axes[place], [other for i, other in enumerate(asked.axes) if i != place]
        assert not isinstance(axis.design, DecoyDesign)
        table = tabulate_records(
            others,
            asked.members,
            axis.design,
            name=axis.name,
            axis_groups=axis.groups,
            n_groups=axis.n_groups,
            estimator=estimator,
            **options,
        )
        return _moved(table, place)

    def _ask(self, by: Sequence[str], where: Mapping[str, Any]) -> _Asked:
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
        keep = np.ones(self.rows, bool)
        hidden: dict[str, np.ndarray] = {}
        for name, wanted in where.items():
            allowed = allowed_values(meanings[name], wanted, domains[name])
            column = cells[name]
            if isinstance(column, ValueCells) and name not in self.designs:
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
            axes.append(Axis(name, self._sets(name, cells[name]), self.designs[name], groups, 1))
        size = int(np.prod([float(axis.cells.d) for axis in axes])) if axes else 1
        if size > CELL_LIMIT:
            raise QueryError(
                f"the cross tabulation would have {size:,} cells, more than {CELL_LIMIT:,}.",
                hint="Ask for fewer columns, a hierarchy level (zip@1) or intervals (age/10).",
            )
        members = [cells[name] for name in needed if self.manifest.column(name).form == "member"]
        records = int(keep.sum()) * self.records // max(1, self.rows)
        return _Asked(axes, shown, records, members[0] if members else None)  # type: ignore[arg-type]

    def _axis(self, group: Grouping, column: Cells, allowed: np.ndarray | None) -> Axis:
        if isinstance(column, ValueCells) and group.column not in self.designs:
            codes = group.groups[column.data]
            return Axis(group.title, ValueCells(len(group.labels), codes), DecoyDesign.exact(len(group.labels)))
        design = self.designs[group.column]
        sets = self._sets(group.column, column)
        groups = group.groups if allowed is None else np.where(allowed, group.groups, -1)
        if allowed is None and group.is_identity:
            return Axis(group.title, sets, design)
        return Axis(group.title, sets, design, groups.astype(np.int64), len(group.labels))

    def _sets(self, name: str, column: Cells) -> SetCells:
        """The sets of a decoy column; none where its members are shuffled, because nobody knows them."""
        if isinstance(column, SetCells):
            return column
        design = self.designs[name]
        return SetCells.from_codes(design.d, np.zeros((0, design.eta), np.int64))


@dataclass(frozen=True)
class _Asked:
    """A question in terms of axes; `members` are the shuffled values of the decoy column, if that is asked for."""

    axes: Sequence[Axis]
    shown: Sequence[Grouping]
    records: int
    members: ValueCells | None


def _moved(table: Tabulation, place: int) -> Tabulation:
    """The same table with its last dimension at another place."""
    arrays = ("counts", "std_error", "low", "high", "interval")
    return replace(table, **{name: np.moveaxis(getattr(table, name), -1, place) for name in arrays})


def _scaled(table: Tabulation, factor: float) -> Tabulation:
    """Counts of people from counts of rows."""
    return replace(table, **{name: getattr(table, name) * factor for name in ("counts", "std_error", "low", "high")})


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
