"""A draft of general values and groups: the whole table's codes in memory, a recoding decided on them, then applied.

The codes of quasi-identifiers and sensitive columns are held at once (a byte or two per cell); all other columns are
read again batch by batch. Before anything is written, every record's published cell is checked against its truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noren.cells import CellBatch, Cells, GroupCells, GroupTable, NodeCells, TermCells, ValueCells
from noren.cells.sets import code_dtype
from noren.designs.any import Design
from noren.engines.local import LocalEngine, Progress
from noren.engines.permute import permutation
from noren.errors import DataError, PolicyError, RequirementNotMet
from noren.io.source import Source
from noren.methods.base import CodedTable, ColumnFacts, GroupColumn, NodeColumn, Recoding, RecodingMethod, Watch
from noren.methods.cover import automatic_hierarchy
from noren.methods.scoring import view_of
from noren.metrics.general import GeneralTable
from noren.models import TCloseness
from noren.models.base import Overall, Verdict
from noren.pipeline.domains import Published, declared, forgotten, listed_nodes, same_nodes, subdomain
from noren.pipeline.draft import general_entry
from noren.pipeline.losses import losses_of, term_losses
from noren.pipeline.terms import (
    knowledge_numbers,
    only_leaves_out,
    priors,
    publish_terms,
    term_columns,
    term_domains,
)
from noren.policy.policy import Policy
from noren.policy.resolve import ResolvedColumn
from noren.release.manifest import ColumnEntry
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import tree_of
from noren.schema.roles import Role
from noren.secret import Keystream

ROWS_AT_ONCE = 1 << 18


def unwatched(done: int, groups: int, cost: float) -> None:
    """Nobody wants to know how far a method is."""


@dataclass(frozen=True)
class Gathered:
    """A table as methods see it, and the columns behind it: sensitive domains hold only what occurs."""

    columns: Mapping[str, ResolvedColumn]
    table: CodedTable


def gather(
    policy: Policy,
    source: Source,
    columns: Mapping[str, ResolvedColumn],
    records: int,
    drop: Sequence[str],
    progress: Progress,
) -> Gathered:
    """Codes of all quasi-identifiers and sensitive columns, in the order of the policy.

    Secrets that nobody has are left out, unless the order of the declared values matters.
    """
    domains: dict[str, Domain] = {}
    for name, attribute in policy.attributes.items():
        deciding = attribute.role is Role.QUASI_IDENTIFIER or attribute.role.needs_requirement
        if deciding and name in columns and attribute.role is not Role.QUASI_SENSITIVE:
            domain = columns[name].domain
            if domain is None:
                raise DataError(f"column {name!r} has too many values for classes.", hint="Give bins, or leave it out.")
            domains[name] = domain
    codes = {name: np.empty(records, code_dtype(len(domain))) for name, domain in domains.items()}
    sets = term_domains(columns)
    parts: dict[str, list[TermCells]] = {name: [] for name in sets}
    start = 0
    loose = [name for name in drop if name not in domains and name not in sets]
    engine = LocalEngine()
    for batch in engine.encode(source, domains, open_columns=loose, terms=sets, drop_missing=drop, progress=progress):
        for name in domains:
            codes[name][start : start + batch.records] = batch.codes[name]
        for name, cells in batch.terms.items():
            parts[name].append(cells)
        start += batch.records
    if start != records:
        raise DataError(f"{source.name}: it changed while it was read.", hint="Give a table that stands still.")
    out = dict(columns)
    ranked = {
        name
        for model in policy.require
        if isinstance(model, TCloseness) and model.distance == "ordered"
        for name in model.on
    }
    for name in domains:
        if out[name].attribute.role.needs_requirement and name not in ranked:
            out[name], place = subdomain(out[name], out[name].counts > 0)
            codes[name] = place[codes[name]]
    terms = term_columns(columns, {name: TermCells.concat(found) for name, found in parts.items()})
    return Gathered(out, CodedTable(records, {name: _facts(out[name]) for name in domains}, codes, terms))


class RecodedDraft:
    """What a method of general values or groups would publish."""

    stage = "Writing records"

    def __init__(
        self,
        policy: Policy,
        source: Source,
        read: Mapping[str, ResolvedColumn],
        drop: Sequence[str],
        gathered: Gathered,
        watch: Watch = unwatched,
    ) -> None:
        self.policy = policy
        self.source = source
        self.drop = drop
        self.watch = watch
        self.designs: dict[str, Design] = {}
        self.read = read
        self.columns, self.table = self._with_hierarchies(gathered)
        self.priors: dict[str, Overall] = priors(self.table.terms)
        self.recoding = self._recode()
        self.notes = list(self.recoding.notes)
        self.keep = np.ones(self.table.n, bool) if self.recoding.keep is None else self.recoding.keep
        self.records = self.rows = int(self.keep.sum())
        self.suppressed = self.table.n - self.records
        self._check(self.recoding)
        self.places = self._passing() if self.suppressed else {}
        self.recoded: dict[str, Cells] = {}
        self.tables: dict[str, GroupTable] = {}
        self.knowledge: dict[str, Knowledge] = {}
        self._numbers = knowledge_numbers(read.values())
        self.entries: tuple[ColumnEntry, ...] = tuple(map(self._entry, read))

    # ------------------------------------------------------------------ deciding

    @property
    def _method(self) -> RecodingMethod:
        assert isinstance(self.policy.method, RecodingMethod)
        return self.policy.method

    def _with_hierarchies(self, gathered: Gathered) -> tuple[dict[str, ResolvedColumn], CodedTable]:
        """The columns, with an automatic hierarchy where the method needs one and the policy gives none."""
        columns, facts = dict(gathered.columns), dict(gathered.table.columns)
        for name, fact in facts.items():
            if self._method.wants_hierarchies and fact.hierarchy is None and fact.role is Role.QUASI_IDENTIFIER:
                columns[name] = replace(columns[name], hierarchy=automatic_hierarchy(fact))
                facts[name] = _facts(columns[name])
        return columns, replace(gathered.table, columns=facts)

    def _recode(self) -> Recoding:
        try:
            found = self._decided(self._method)
            if self._loses_a_secret(found):
                found = self._decided(self._method.model_copy(update={"suppression": 0.0}))
                why = "nothing was suppressed: it would have taken the last record of a value that stays possible"
                found = replace(found, notes=(*found.notes, why))
            return found
        except PolicyError as error:
            raise PolicyError(error.problems, source=self.policy.source) from None

    def _decided(self, method: RecodingMethod) -> Recoding:
        order = lambda n: permutation(n, Keystream())  # noqa: E731
        return method.recode_watched(self.table, self.policy.require, order, self.watch)

    def _loses_a_secret(self, recoding: Recoding) -> bool:
        """Whether a general value would stand for a secret that no published record has."""
        if recoding.keep is None:
            return False
        for name in self.table.sensitive:
            d = len(self.table.columns[name].domain)
            left = np.bincount(self.table.codes[name][recoding.keep], minlength=d)
            if isinstance(recoding.columns.get(name), NodeColumn) and not left.all():
                return True
        return False

    def _passing(self) -> dict[str, NDArray]:
        """New codes of columns that pass as they are, where suppression took the last records of a value."""
        decided = {*self.table.codes, *self.table.terms}
        names = [name for name, column in self.read.items() if name not in decided and _from_data(column)]
        if not names:
            return {}
        domains = {name: _domain(self.read[name]) for name in names}
        seen = {name: np.zeros(len(domain), bool) for name, domain in domains.items()}
        start = 0
        loose = [name for name in self.drop if name not in names]
        for batch in LocalEngine().encode(self.source, domains, open_columns=loose, drop_missing=self.drop):
            rows = self.keep[start : start + batch.records]
            for name in names:
                seen[name][batch.codes[name][rows]] = True
            start += batch.records
        out = {}
        for name in names:
            self.columns[name], out[name] = subdomain(self.columns[name], seen[name])
        return out

    def _check(self, recoding: Recoding) -> None:
        """Every published cell covers its record's truth. Shares no code with the methods."""
        if not self.records:
            raise RequirementNotMet(
                "every record would have to be dropped, so nothing is published.",
                hint="Lower the requirement, or the permitted suppression.",
            )
        allowed = int(self._method.suppression * self.table.n + 1e-9)
        wrong = [name for name, column in recoding.columns.items() if not self._true(name, column)]
        for name, cells in recoding.terms.items():
            if not only_leaves_out(self.table.terms[name].cells, cells, self.keep):
                wrong.append(name)
        if wrong or self.suppressed > allowed:
            what = (
                f"the cells of {wrong[0]!r} do not cover the truth"
                if wrong
                else "more records were dropped than may be"
            )
            raise RequirementNotMet(
                f"{what}, so nothing is published.",
                hint="This is a defect of the software, not of the table: please report it.",
            )

    def _true(self, name: str, column: NodeColumn | GroupColumn) -> bool:
        codes, data = self.table.codes[name][self.keep], column.data[self.keep]
        if isinstance(column, NodeColumn):
            return bool(column.nodes.covers(data, codes).all())
        counted = GroupTable.from_codes(column.table.groups, column.table.d, data, codes)
        parts = ("group", "value", "count")
        return all(np.array_equal(getattr(counted, part), getattr(column.table, part)) for part in parts)

    # ------------------------------------------------------------------ publishing

    def _entry(self, name: str) -> ColumnEntry:
        if name in self.table.terms:
            return self._term_entry(name)
        if name not in self.table.codes:
            return general_entry(self.columns[name], "value")
        column, codes = self.columns[name], self.table.codes[name]
        part = Published(column, codes, self.recoding.columns.get(name))
        secret = column.attribute.role.needs_requirement
        if secret:
            part = declared(self.read[name], part)
        if not (secret and isinstance(part.change, NodeColumn)):
            part = forgotten(part, self.keep)
        column, change = part.column, part.change
        if isinstance(change, NodeColumn):
            if column.hierarchy is not None and same_nodes(change.nodes, tree_of(column.hierarchy).nodes):
                nodes, data, listed = change.nodes, change.data, None
            else:
                nodes, data = listed_nodes(change, self.keep)
                listed = tuple(zip(nodes.labels, map(tuple, nodes.runs), strict=True))
            self.recoded[name] = NodeCells(len(nodes), data.astype(code_dtype(len(nodes))))
            return general_entry(column, "node", nodes=listed)
        if isinstance(change, GroupColumn):
            groups = change.table.groups
            self.tables[name] = change.table
            self.recoded[name] = GroupCells(groups, change.data.astype(code_dtype(groups)))
            return general_entry(column, "group", groups=groups)
        assert column.domain is not None
        self.recoded[name] = ValueCells(len(column.domain), part.codes)
        return general_entry(column, "value")

    def _term_entry(self, name: str) -> ColumnEntry:
        column = self.table.terms[name]
        cells = self.recoding.terms.get(name, column.cells)
        part = publish_terms(self.columns[name], cells, self.keep, column.knowledge, self._numbers[name])
        self.recoded[name], self.knowledge[name] = part.cells, part.knowledge
        return part.entry

    def batches(self, progress: Progress, seconds: dict[str, float]) -> Iterator[CellBatch]:
        """The published records in the source's order."""
        others = {name: column for name, column in self.read.items() if name not in self.recoded}
        if not others:
            for start in range(0, self.table.n, ROWS_AT_ONCE):
                rows = np.flatnonzero(self.keep[start : start + ROWS_AT_ONCE]) + start
                yield {name: self.recoded[name].take(rows) for name in self.read}
                progress(min(ROWS_AT_ONCE, self.table.n - start))
            return
        domains = {name: column.domain for name, column in others.items() if column.domain is not None}
        loose = [name for name, column in others.items() if column.domain is None]
        start = 0
        extra = [name for name in self.drop if name not in others]
        for batch in LocalEngine().encode(
            self.source, domains, open_columns=[*loose, *extra], drop_missing=self.drop, progress=progress
        ):
            rows = np.flatnonzero(self.keep[start : start + batch.records])
            out: dict[str, Cells] = {}
            for name in self.read:
                if name in self.recoded:
                    out[name] = self.recoded[name].take(rows + start)
                elif name in loose:
                    out[name] = batch.open[name].take(rows)
                else:
                    codes = batch.codes[name][rows]
                    place = self.places.get(name)
                    out[name] = ValueCells(len(_domain(self.columns[name])), codes if place is None else place[codes])
            start += batch.records
            yield out
        if start != self.table.n:
            raise DataError(
                f"{self.source.name}: it changed while it was read.", hint="Give a table that stands still."
            )

    def view(self) -> GeneralTable:
        """Truth beside publication, for the metrics. It never leaves the holder."""
        return view_of(self.table, self.recoding)

    def losses(self) -> dict[str, float]:
        """What generalisation and left-out terms cost."""
        view = self.view()
        more = term_losses(self.table.terms, self.recoding, self.priors, view, self.policy.require)
        return losses_of(view) | more

    def settle(self, verdicts: Sequence[Verdict]) -> None:
        """Nothing to remember: no secret is involved."""


def _domain(column: ResolvedColumn) -> Domain:
    assert column.domain is not None
    return column.domain


def _from_data(column: ResolvedColumn) -> bool:
    return column.domain is not None and column.domain.source == "data"


def _facts(column: ResolvedColumn) -> ColumnFacts:
    assert column.domain is not None
    role = column.attribute.role
    return ColumnFacts(column.name, role, column.domain, column.counts, column.distances, column.hierarchy)
