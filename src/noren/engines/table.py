"""The original as an engine holds it, checked against the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.engines.engine import Engine, Profile, Reading
from noren.engines.records import Records, TermRecords
from noren.engines.shuffle import permutation
from noren.errors import DataError
from noren.models.base import Model
from noren.progress import Stage, quiet
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, fits_kind, infer_kind
from noren.schema.kinds import Kind
from noren.schema.roles import Role
from noren.secret import ClassSets, Keystream
from noren.sources.source import Source
from noren.statements import TermCells
from noren.statements.set_cells import code_dtype

RECORD_BYTES = 64
CODE_COPIES = 6
"""Memory that a method of classes takes for every record: so many bytes, and so many times what its codes take."""


@dataclass(frozen=True)
class Table:
    """The original records, which only the holder may see, with the meaning of their columns."""

    engine: Engine
    source: Source
    columns: Mapping[str, Column]
    """All columns that are published, in the table's order, over their whole domains."""
    counts: Mapping[str, NDArray[np.int64]]
    """How often each value of every listed column occurs; for terms, in how many records."""
    profile: Profile
    requirements: tuple[Model, ...]
    deciding: tuple[str, ...]
    """Quasi-identifiers and sensitive columns, in the order of the policy: those a method sees."""
    drop: Sequence[str] = ()
    people_key: tuple[str, ...] = ()
    """The columns that together name a person; none if every record is a different person."""
    earlier: Mapping[str, ClassSets] = field(default_factory=dict)
    """The values that earlier releases leave possible for the person of every record, where a requirement asks."""
    stage: Stage = quiet
    whole: Table | None = None
    """All columns and requirements, where this is the part of one of several methods."""

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def n(self) -> int:
        """Return the number of records."""
        return self.profile.records

    def shares(self, name: str) -> NDArray[np.float64]:
        """Return the distribution of a column."""
        counts = self.counts[name]
        return np.asarray(counts / max(1, int(counts.sum())))

    def part(self, names: Sequence[str], requirements: Sequence[Model]) -> Table:
        """Return the table for a method that treats these columns for these requirements."""
        kept = tuple(name for name in self.deciding if name in names)
        return replace(self, deciding=kept, requirements=tuple(requirements), whole=self.whole or self)

    def asking(self, requirements: Sequence[Model]) -> Table:
        """Return the table with other requirements that need the same codes."""
        if tuple(requirements) == self.requirements:
            return self
        other = replace(self, requirements=tuple(requirements))
        vars(other).update({name: vars(self)[name] for name in ("records", "people") if name in vars(self)})
        return other

    def reading(self, names: Sequence[str] | None = None, key: str | None = None) -> Reading:
        """Return how to read some columns (all published ones by default): codes, terms, or texts of open columns."""
        wanted = [self.columns[name] for name in (self.columns if names is None else names)]
        sets = {column.name: column.domain for column in wanted if column.role is Role.QUASI_SENSITIVE}
        return Reading(
            domains={c.name: c.domain for c in wanted if not c.is_open and c.name not in sets},
            terms=sets,
            open=[column.name for column in wanted if column.is_open],
            drop=self.drop,
            key=key,
        )

    def histogram(self, names: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the distinct combinations of some columns' codes, in ascending order."""
        return self.engine.histogram(self.source, self.reading(names), names)

    @cached_property
    def people(self) -> NDArray[np.int64] | None:
        """Number every record's person from 0; None if every record is a different person."""
        if not self.people_key:
            return None
        import polars as pl

        parts = []
        for batch in self.engine.encoded(self.source, Reading(open=self.people_key, drop=self.drop)):
            texts = [pl.Series(batch.open[name].data.cast("string")) for name in self.people_key]
            parts.append(pl.DataFrame({f"k{i}": column for i, column in enumerate(texts)}))
        keys = pl.concat(parts)
        if keys.null_count().sum_horizontal()[0]:
            raise DataError("the key of a person is missing in some records.", hint="Give every record a key.")
        found = keys.select(pl.struct(pl.all()).rank("dense"))[:, 0].to_numpy().astype(np.int64) - 1
        people = int(found.max(initial=-1)) + 1
        return None if len(found) == people else permutation(people, Keystream())[found]

    @property
    def room(self) -> int:
        """Return the bytes that a method of classes needs if it sees all records in one place."""
        for name in self.deciding:
            if self.columns[name].is_open:
                raise DataError(f"column {name!r} has too many values for classes.", hint="Give it bins, or drop it.")
        widths = sum(code_dtype(self.columns[name].d).itemsize for name in self.deciding)
        return self.n * (RECORD_BYTES + CODE_COPIES * widths)

    @cached_property
    def seen(self) -> tuple[dict[str, Column], dict[str, NDArray]]:
        """Return the coded columns that a method sees, and the new codes of those that are renumbered.

        Secrets that nobody has are left out of their domains, unless a requirement needs the declared order or must
        keep people among values of earlier releases: a value that nobody has must not make a class look more diverse.
        """
        columns = {n: self.columns[n] for n in self.deciding if self.columns[n].role is not Role.QUASI_SENSITIVE}
        whole = [model for model in self.requirements if "order" in model.needs or model.invariant]
        ordered = {name for model in whole for name in model.on}
        places: dict[str, NDArray] = {}
        for name, column in columns.items():
            if column.role.needs_requirement and name not in ordered:
                columns[name], places[name] = subdomain(column, self.counts[name] > 0)
        return columns, places

    @cached_property
    def records(self) -> Records:
        """Return the codes of all columns that decide about classes."""
        self.engine.demand_room(self.room, f"forming classes of {self.n:,} records with {len(self.deciding)} columns")
        domains = {name: self.columns[name].domain for name in self.deciding}
        sets = {name for name in self.deciding if self.columns[name].role is Role.QUASI_SENSITIVE}
        codes = {n: np.empty(self.n, code_dtype(len(domain))) for n, domain in domains.items() if n not in sets}
        parts: dict[str, list[TermCells]] = {name: [] for name in self.deciding if name in sets}
        start = 0
        with self.stage("Reading codes", self.n) as meter:
            for batch in self.engine.encoded(self.source, self.reading(self.deciding), meter=meter):
                for name, array in codes.items():
                    array[start : start + batch.records] = batch.codes[name]
                for name, cells in batch.terms.items():
                    parts[name].append(cells)
                start += batch.records
        if start != self.n:
            raise DataError(
                f"{self.name}: it changed while it was read.", hint="Run it again while nobody writes to the table."
            )
        columns, places = self.seen
        codes |= {name: place[codes[name]] for name, place in places.items()}
        terms = {name: TermRecords(self.columns[name], TermCells.concat(found)) for name, found in parts.items()}
        return Records(self.n, columns, codes, terms, self.people, self.earlier)


def subdomain(column: Column, kept: NDArray[np.bool_]) -> tuple[Column, NDArray]:
    """Restrict a column to some of its values, with the new code of every old one (0 for removed values)."""
    domain = column.domain
    place = np.where(kept, np.cumsum(kept) - 1, 0).astype(code_dtype(int(kept.sum())))
    if kept.all():
        return column, place
    values = tuple(value for value, stays in zip(domain.values, kept, strict=True) if stays)
    resolved: dict[str, object] = {}
    if column.tree is not None:
        resolved["hierarchy"] = column.tree.restrict_to(values)
    if isinstance(column.distance, tuple):
        some = np.flatnonzero(kept)
        resolved["distance"] = tuple(tuple(column.distance[i][j] for j in some.tolist()) for i in some.tolist())
    edges = domain.edges if set(domain.plain) <= set(values) else None  # bins that all stay are still bins
    less = replace(domain, values=values, edges=edges, kind=_kind(column, values))
    return column.over(column.name, less, **resolved), place


def _kind(column: Column, values: Sequence[str]) -> Kind:
    """Return the kind of a column; numbers with a missing or merged value become texts, so that the value's absence
    discloses nothing."""
    domain, special = column.domain, {MISSING, OTHER}
    was = bool(special & set(domain.values)) and not special & set(values)
    if not was or domain.kind != "string" or domain.has_ends or domain.source not in ("data", "policy"):
        return domain.kind
    kind = infer_kind(values) if domain.source == "policy" and column.kind is None else domain.text_kind
    return kind if fits_kind(values, kind) else domain.kind
