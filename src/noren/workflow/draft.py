"""Drafts: the statements of all columns under a plan, and the cells batch by batch.

Before anything is written, every record's published cell is checked against its truth, by what the statement says it
leaves possible: code that no method shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.designs import draw_columns
from noren.engines import Average, Change, CodeBatch, Group, Plan, Reading, Recode, Records, Table
from noren.engines.records import priors
from noren.engines.table import subdomain
from noren.errors import RequirementNotMet
from noren.models.base import Overall
from noren.models.classes import PeopleValues
from noren.progress import Meter, silent
from noren.release.published import Published
from noren.release.store import Store
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import tree_of
from noren.schema.roles import Role
from noren.secret import Keystream, RecordStream, Secret
from noren.secret.streams import CarriedStream, carry_stream, fresh_stream, numbered_digests
from noren.statements import (
    CellBatch,
    Cells,
    ChangedStatement,
    CodeCells,
    Design,
    ExactStatement,
    GroupStatement,
    MeanStatement,
    MemberStatement,
    NodeStatement,
    OpenStatement,
    SetStatement,
    Statement,
    TermCells,
    TermsStatement,
    take,
)
from noren.statements.batch import PERSON
from noren.statements.mean import mean_cells
from noren.statements.set_cells import code_dtype
from noren.workflow.shown import (
    Outgoing,
    declare_values,
    declares_leaves,
    forget_unseen,
    listed_nodes,
    may_be_listed,
    same_nodes,
    show_nodes,
)


@dataclass
class Drawn:
    """How often the true value was in its set, the expected number, and the time of drawing."""

    heads: dict[str, int] = field(default_factory=dict)
    expected: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other: Drawn) -> None:
        """Add the counts of another part."""
        self.seconds += other.seconds
        for name, count in other.heads.items():
            self.heads[name] = self.heads.get(name, 0) + count
            self.expected[name] = self.expected.get(name, 0.0) + other.expected[name]


@dataclass
class Making:
    """Makes the published cells of the records from `start` on."""

    columns: tuple[str, ...]
    sizes: Mapping[str, int]
    """How many values the published domain of every listed column has."""
    designs: Mapping[str, Design]
    cells: Mapping[str, Cells]
    """The cells of all these records, for columns that a method decided record by record."""
    places: Mapping[str, NDArray]
    """Where codes stand in the published domain, for columns that do not publish all their values."""
    keep: NDArray[np.bool_] | None
    """Which of these records are published; None for all."""
    people: NDArray[np.int64] | None
    randomness: Keystream | RecordStream | None
    """None where it comes another way."""
    keyed: bool
    """Whether the record key decides what is drawn."""
    exploded: tuple[str, ...] = ()
    """Columns whose sets are published member by member."""
    start: int = 0
    persons: int = 0
    """How many numbers of people there may be."""
    drawn: Drawn = field(default_factory=Drawn)
    _lock: Any = field(default_factory=Lock, repr=False, compare=False)

    def part(self, start: int, stop: int) -> Making:
        """Return the same for some records, without the keys of draws."""
        rows = slice(start, stop)
        return replace(
            self,
            cells={name: cells.take(rows) for name, cells in self.cells.items()},
            keep=None if self.keep is None else self.keep[rows],
            people=None if self.people is None else self.people[rows],
            randomness=None,
            start=start,
            drawn=Drawn(),
            _lock=Lock(),
        )

    @property
    def is_alike(self) -> bool:
        """Return whether nothing was decided record by record."""
        return not self.cells and self.keep is None and self.people is None

    def under(self, stream: RecordStream) -> Making:
        """Return the same with the draws of a stream."""
        return replace(self, randomness=stream, drawn=Drawn(), _lock=Lock())

    def __call__(self, batch: CodeBatch) -> CellBatch:
        first, rows = batch.start - self.start, np.arange(batch.records)
        rows = rows if self.keep is None else rows[self.keep[first : first + batch.records]]
        out = self.of_records(batch, self.columns, rows, rows + batch.start)
        return explode_sets(out, self.exploded, self.designs) if self.exploded else out

    def of_records(
        self, batch: CodeBatch, names: Sequence[str], rows: NDArray[np.int64], at: NDArray[np.int64]
    ) -> dict[str, Cells]:
        """Return the published cells of some records of a batch; `at` are their numbers in the table."""
        sets = self._draw(batch, rows, at) if any(name in self.designs for name in names) else {}
        out: dict[str, Cells] = {}
        for name in names:
            if name in self.cells:
                out[name] = self.cells[name].take(at - self.start)
            elif name in sets:
                out[name] = sets[name]
            elif name in batch.open:
                out[name] = batch.open[name].take(rows)
            else:
                codes, place = batch.codes[name][rows], self.places.get(name)
                out[name] = CodeCells(self.sizes[name], codes if place is None else place[codes])
        if self.people is not None:
            out[PERSON] = CodeCells(self.persons, self.people[at - self.start])
        return out

    def _draw(self, batch: CodeBatch, rows: NDArray[np.int64], at: NDArray[np.int64]) -> Mapping[str, Cells]:
        if not self.designs:
            return {}
        started = perf_counter()
        assert self.randomness is not None, "drawing needs keys"
        codes = {name: batch.codes[name] for name in self.designs}
        digests = self._digests(batch, rows, at)
        if len(rows) < batch.records:
            codes = {name: array[rows] for name, array in codes.items()}
        sets = draw_columns(self.designs, codes, self.randomness, digests=digests)
        found = Drawn()
        for name, cells in sets.items():
            found.heads[name] = int(cells.contains(codes[name]).sum())
            found.expected[name] = self.designs[name].expected_inside(codes[name])
        found.seconds = perf_counter() - started
        with self._lock:
            self.drawn.add(found)
        return sets

    def _digests(self, batch: CodeBatch, rows: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray | None:
        """Return the keys of draws for every record: its person, so that equal values of a person have one set;
        otherwise its key or number."""
        if not isinstance(self.randomness, RecordStream):
            return None
        if self.keyed:
            return self.randomness.digests(batch.keys)[rows]
        return numbered_digests(at if self.people is None else self.people[at - self.start])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())


def explode_sets(batch: CellBatch, names: Sequence[str], designs: Mapping[str, Design]) -> dict[str, Cells]:
    """Return one row per combination of members of each record's sets, without a number that would link the rows."""
    n, each = len(batch[names[0]]), prod(designs[name].eta for name in names)
    out = take({other: cells for other, cells in batch.items() if other not in names}, np.repeat(np.arange(n), each))
    inner = 1
    for name in reversed(names):
        eta = designs[name].eta
        codes = np.repeat(batch[name].codes(eta), inner, axis=1)  # type: ignore[attr-defined]
        inner *= eta
        out[name] = CodeCells(designs[name].d, np.tile(codes, each // inner).ravel())
    return {column: out[column] for column in batch}


# ---------------------------------------------------------------------- a table under a plan


ROWS_AT_ONCE = 1 << 18
DEFECT = "Please report this defect of the software; the table is not the cause."


class Draft:
    """A plan applied to its table. Each pass over the batches draws anew (or repeats, if memoised)."""

    def __init__(
        self, table: Table, plan: Plan, *, stream: RecordStream | None = None, key: str | None = None, most: float = 0.0
    ) -> None:
        """Make the draft; `most` is the largest share of records that the policy permits to be suppressed."""
        self.table = table
        self.plan = plan
        self.key = key if stream is not None else None
        self.designs: dict[str, Design] = plan.designs
        everybody = np.broadcast_to(np.True_, table.n)  # takes no memory, however many they are
        self.keep: NDArray[np.bool_] = everybody if plan.keep is None else plan.keep
        self.records = table.n if plan.keep is None else int(plan.keep.sum())
        self.suppressed = table.n - self.records
        self.notes = list(plan.notes)
        self._randomness = Keystream() if stream is None else stream
        if stream is None and table.people is not None and self.designs:
            self._randomness = RecordStream(Secret.fresh())
        self._demand_share(most)
        self._cells: dict[str, Cells] = {}
        """The cells of all records, for columns that a method decided record by record."""
        self._places: dict[str, NDArray] = {}
        self._grouped: dict[str, NDArray] = {}
        """The true codes of columns that are published as groups."""
        self._found: dict[str, Mapping[str, int]] = {}
        """Where values stand in the published domain, for columns that do not name them all."""
        self._passed = self._passing() if self.suppressed else {}
        numbers = _knowledge_numbers(table.columns.values())
        self._groups = 0
        self.statements: tuple[Statement, ...] = tuple(self._statement(name, numbers) for name in table.columns)
        self.by_name = {statement.name: statement for statement in self.statements}
        self._demand_truth()
        self._making = Making(
            columns=tuple(table.columns),
            sizes={name: one.d for name, one in self.by_name.items() if name not in self._cells and one.lists_values},
            designs=self.designs,
            cells=self._cells,
            places=self._places,
            keep=self.keep if self.suppressed else None,
            people=table.people,
            randomness=self._randomness,
            keyed=stream is not None,
            exploded=plan.exploded,
            persons=table.n,
        )

    # ------------------------------------------------------------------ what is published

    @cached_property
    def rows(self) -> int:
        return self.records * prod(statement.rows_per_record for statement in self.statements)

    def as_published(self, store: Store, statements: tuple[Statement, ...] | None = None) -> Published:
        """Return the draft as a published table, when its cells have been written."""
        columns = statements or self.statements
        return Published(columns, store, self.records, suppressed=self.suppressed, title=self.table.name)

    def overall(self) -> dict[str, Overall]:
        """Return the references for closeness: the original distribution of drawn columns, and prior beliefs."""
        shares = {name: Overall(self.table.shares(name), "the original") for name in self.designs}
        if self.table.people is not None:
            whose = self.table.people[self.keep]
            for name, truth in self._grouped.items():
                held = PeopleValues.of(whose, truth[self.keep])
                shares[name] = Overall(self.by_name[name].table.totals / self.records, "the original", people=held)  # type: ignore[union-attr]
        return shares | (priors(self.plan.records) if self.plan.records is not None else {})

    @property
    def records_seen(self) -> Records:
        """Return the records that the method of classes used."""
        assert self.plan.records is not None
        return self.plan.records

    def _statement(self, name: str, numbers: Mapping[str, int]) -> Statement:
        decided = self.plan.columns
        column = decided.get(name, self.table.columns[name])
        if column.is_open:
            return OpenStatement(column)
        if name in self.designs:
            if isinstance(self.plan.of(name), Change):
                return ChangedStatement(column, self.designs[name])
            drawn = MemberStatement if name in self.plan.exploded else SetStatement
            return drawn(column, self.designs[name])
        if column.role is Role.QUASI_SENSITIVE:
            return self._terms(column, numbers[name])
        if name not in decided:
            return ExactStatement(_without_distance(self._passed.get(name, column)))
        return self._decide_statement(_without_distance(column))

    def _decide_statement(self, column: Column) -> Statement:
        """Return a column that a method of classes decided: generalised values, groups, or exact values."""
        name, treatment = column.name, self.plan.of(column.name)
        if isinstance(treatment, Average):
            statement, self._cells[name] = mean_cells(column, self._amounts(name), treatment.data, self.keep)
            return statement
        change = treatment if isinstance(treatment, Recode | Group) else None
        part = Outgoing(column, self.records_seen.codes[name], change)
        secret = column.role.needs_requirement
        if secret:
            part = declare_values(_without_distance(self.table.columns[name]), self.table.counts[name], part)
        if isinstance(part.change, Recode) and not declares_leaves(part.column):
            return self._node_statement(part.column, part.change, part.codes)
        part = forget_unseen(part, self.keep, values_stay=secret and isinstance(part.change, Recode))
        column, change = part.column, part.change
        if isinstance(change, Recode):
            if column.tree is not None and same_nodes(change.nodes, tree_of(column.tree).nodes):
                self._cells[name] = _code_cells(len(change.nodes), change.data)
                return NodeStatement(column, tight=change.tight)
            nodes, data = listed_nodes(change, self.keep)
            self._cells[name] = _code_cells(len(nodes), data)
            return NodeStatement(column.over(name, column.domain, hierarchy=None), nodes, change.tight)
        if isinstance(change, Group):
            self._groups += 1
            self._grouped[name] = part.codes
            self._cells[name] = _code_cells(change.table.groups, change.data)
            fakes = {} if change.counterfeits is None else dict(enumerate(change.counterfeits.tolist()))
            fakes = {group: count for group, count in fakes.items() if count}
            return GroupStatement(column, change.table.groups, self._groups, change.table, fakes)
        self._cells[name] = CodeCells(column.d, part.codes)
        return ExactStatement(column)

    def _node_statement(self, column: Column, change: Recode, codes: NDArray) -> Statement:
        """Return generalised values over undeclared values, published as far as cells show them."""
        name, found = column.name, show_nodes(column, change, codes, self.keep)
        self._cells[name] = _code_cells(len(found.nodes), found.data)
        self._found[name] = dict(zip(column.domain.values, found.place.tolist(), strict=True))
        if found.column.tree is not None and not found.column.domain.hidden:  # every cell is one value
            whole = tree_of(found.column.tree).nodes
            self._cells[name] = _code_cells(len(whole), found.nodes.starts[found.data])
            return NodeStatement(found.column, tight=change.tight)
        return NodeStatement(found.column, found.nodes, found.tight)

    def published_codes(self, name: str, values: Sequence[str]) -> NDArray[np.int64]:
        """Return original values as codes of the published domain; -1 for those without a code."""
        known = self._found.get(name, self.by_name[name].domain.index)
        return np.array([known.get(value, -1) for value in values], np.int64)

    def _amounts(self, name: str) -> NDArray[np.float64]:
        """Return every record's number in a column, NaN if it is missing."""
        records = self.records_seen
        amounts = records.columns[name].domain.amounts
        assert amounts is not None, "means are for numbers"
        return np.asarray(amounts[records.codes[name]])

    def _terms(self, column: Column, number: int) -> Statement:
        """Return the terms of the manifest: those of the knowledge table, and published unknown ones."""
        had = self.records_seen.terms[column.name].cells
        cells, known = self.plan.omitted.get(column.name, had), len(column.known.terms)
        occurs = np.bincount(cells.data[self.keep[cells.owner]], minlength=cells.d) > 0
        listed = occurs | (np.arange(cells.d) < known)
        values = tuple(value for value, stays in zip(column.domain.values, listed, strict=True) if stays)
        left = cells.keep(self.keep[cells.owner] & listed[cells.data])
        place = (np.cumsum(listed) - 1).astype(np.int32)
        self._cells[column.name] = TermCells(len(values), left.offsets, place[left.data])
        self._places[column.name] = np.flatnonzero(listed)
        domain = Domain(values, "string", "data" if len(values) > known else "policy")
        return TermsStatement(column.over(column.name, domain), number)

    def _passing(self) -> dict[str, Column]:
        """Return columns that are published exactly, over the values of published records only, because an unpublished
        value in the list would disclose the suppressed records."""
        columns = [c for n, c in self.table.columns.items() if n not in self.plan.columns and not self._is_drawn(c)]
        columns = [c for c in columns if not c.is_open and not may_be_listed(c.domain, np.zeros(c.d, bool)).all()]
        if not columns:
            return {}
        seen = {column.name: np.zeros(column.d, bool) for column in columns}
        reading = self.table.reading([column.name for column in columns])
        for batch in self.table.engine.encoded(self.table.source, reading):
            rows = self.keep[batch.start : batch.start + batch.records]
            for name, found in seen.items():
                found[batch.codes[name][rows]] = True
        out = {}
        for column in columns:
            out[column.name], self._places[column.name] = subdomain(
                column, may_be_listed(column.domain, seen[column.name])
            )
        return out

    def _is_drawn(self, column: Column) -> bool:
        return column.name in self.designs or column.role is Role.QUASI_SENSITIVE

    # ------------------------------------------------------------------ cells

    @property
    def cells(self) -> Mapping[str, Cells]:
        """Return the cells of all records, for columns that were decided record by record."""
        return self._cells

    @property
    def reading(self) -> Reading:
        """Return what must be read again to make the cells."""
        return self.table.reading([name for name in self.table.columns if name not in self._cells], self.key)

    def apply(self, batch: CodeBatch) -> CellBatch:
        """Return the published cells of a run of records."""
        return self._making(batch)

    __call__ = apply

    @cached_property
    def stream(self) -> CarriedStream:
        """Return a stream of keys that can be sent elsewhere and gives the same draws."""
        names, known = list(self.designs), self._randomness
        return carry_stream(known, names) if isinstance(known, RecordStream) else fresh_stream(names)

    @property
    def shared_maker(self) -> Making | None:
        """Return the maker of cells for any records, if nothing was decided record by record."""
        return self._making.part(0, 0) if self._making.is_alike else None

    def part(self, start: int, stop: int) -> Making:
        """Return the maker of cells for some records, without keys."""
        return self._making.part(start, stop)

    def take_in(self, drawn: Drawn) -> None:
        """Add the counts of draws made elsewhere."""
        self._making.drawn.add(drawn)

    def cells_of(
        self, batch: CodeBatch, names: Sequence[str], rows: NDArray[np.int64], at: NDArray[np.int64]
    ) -> dict[str, Cells]:
        """Return the published cells of some records of a batch; `at` are their numbers in the table."""
        return self._making.of_records(batch, names, rows, at)

    @property
    def seconds(self) -> float:
        """Return the time of drawing."""
        return self._making.drawn.seconds

    def make_cells(self, meter: Meter = silent) -> Iterator[CellBatch]:
        """Return the cells of a draft that need no reading, because all columns were decided record by record."""
        for start in range(0, self.table.n, ROWS_AT_ONCE):
            size = min(ROWS_AT_ONCE, self.table.n - start)
            yield self.apply(CodeBatch({}, {}, {}, None, size, start))
            meter(size)

    def forget(self) -> None:
        """Reset the counts of draws, because the cells will be made again."""
        self._making.drawn = Drawn()

    # ------------------------------------------------------------------ the truth

    def _demand_share(self, most: float) -> None:
        if not self.records:
            raise RequirementNotMet(
                "every record would have to be suppressed, so nothing is published.",
                hint="Lower the requirement, or permit more suppression.",
            )
        if self.suppressed > int(most * self.table.n + 1e-9):
            message = "more records were suppressed than the policy permits, so nothing is published."
            raise RequirementNotMet(message, hint=DEFECT)

    def _demand_truth(self) -> None:
        """Raise unless every published cell covers its record's true value."""
        if not self._cells:
            return
        kept = np.flatnonzero(self.keep)
        for name, cells in self._cells.items():
            statement = self.by_name[name]
            if not self._true(statement, cells.take(kept), kept):
                message = f"the cells of {name!r} do not cover the true values, so nothing is published."
                raise RequirementNotMet(message, hint=DEFECT)

    def _true(self, statement: Statement, cells: Cells, kept: NDArray[np.int64]) -> bool:
        name, records = statement.name, self.records_seen
        if name in records.terms:
            had = records.terms[name].cells.take(kept)
            place = np.full(had.d, -1, np.int64)
            place[self._places[name]] = np.arange(len(self._places[name]))
            shown = place[had.data] >= 0
            left = had.keep(shown)
            truth: object = TermCells(statement.d, left.offsets, place[left.data].astype(np.int32))
            return bool(statement.covers(cells, truth).all())
        if isinstance(statement, MeanStatement):
            return statement.holds_truth(cells, self._amounts(name)[kept])
        codes = self.published_codes(name, records.columns[name].domain.values)[records.codes[name][kept]]
        if (codes < 0).any() or not statement.covers(cells, codes).all():
            return False
        return not isinstance(statement, GroupStatement) or statement.holds_truth(cells, codes)

    def demand_heads(self) -> None:
        """Raise unless the true value is in its set as often as the design says: always for p = 1, otherwise within
        eight standard deviations."""
        drawn = self._making.drawn
        for name, design in self.designs.items():
            heads, expected = drawn.heads.get(name, 0), drawn.expected.get(name, 0.0)
            if design.p_true == 1.0 or design.eta == design.d:
                broken = heads != self.records
            else:
                slack = 8 * np.sqrt(expected * (1 - expected / self.records)) + 1e-6 * self.records + 1
                broken = abs(heads - expected) > slack
            if broken:
                message = f"the sets of {name!r} do not follow their design, so nothing is published."
                raise RequirementNotMet(message, hint=DEFECT)


def _code_cells(d: int, data: NDArray) -> CodeCells:
    return CodeCells(d, data.astype(code_dtype(d)))


def _without_distance(column: Column) -> Column:
    """Return the published column without a distance that no requirement on sets needs."""
    return column if column.distance == "equal" else column.over(column.name, column.domain, distance="equal")


def _knowledge_numbers(columns: Iterable[Column]) -> dict[str, int]:
    """Number every set-valued column's knowledge table, from 1 on."""
    numbers: dict[int, int] = {}
    out = {}
    for column in columns:
        if isinstance(column.knowledge, Knowledge):
            out[column.name] = numbers.setdefault(id(column.knowledge), len(numbers) + 1)
    return out
