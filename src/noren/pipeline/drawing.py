"""A draft of decoys: designs decided from counts, sets drawn batch by batch, the truth checked against the design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter

import numpy as np

from noren.cells import CellBatch, Cells, GroupTable, ValueCells
from noren.designs.any import draw_columns
from noren.engines.local import LocalEngine, Progress
from noren.errors import PolicyError
from noren.io.source import Source
from noren.methods.base import ColumnFacts, Decision, DesignMethod
from noren.models.base import Overall, Verdict
from noren.pipeline.draft import check_heads, exploded, ledger_entries, published_entry, truth_holds
from noren.policy.policy import Policy
from noren.policy.resolve import ResolvedColumn
from noren.release.manifest import ColumnEntry
from noren.schema.knowledge import Knowledge
from noren.secret import Keystream, Ledger, RecordStream


class DecoyDraft:
    """What a method of decoys would publish. Every run over `batches` draws anew (or repeats, when memoised)."""

    stage = "Drawing decoys"
    suppressed = 0

    def __init__(
        self,
        policy: Policy,
        source: Source,
        columns: Mapping[str, ResolvedColumn],
        records: int,
        drop: Sequence[str],
        stream: RecordStream | None,
        ledger: Ledger | None,
    ) -> None:
        self.policy = policy
        self.source = source
        self.columns = columns
        self.records = records
        self.drop = drop
        self.stream = stream
        self.ledger = ledger
        self.tables: dict[str, GroupTable] = {}
        self.knowledge: dict[str, Knowledge] = {}
        self.priors: dict[str, Overall] = {}
        decision = self._decide()
        self.designs = decision.designs
        self.notes = list(decision.notes)
        self.members = policy.method.layout == "records"
        self.rows = records * (next(iter(self.designs.values())).eta if self.members else 1)
        self.entries: tuple[ColumnEntry, ...] = tuple(
            published_entry(column, self.designs.get(name), self.members) for name, column in columns.items()
        )
        self.drawn = ledger_entries(columns, self.designs)
        if ledger is not None:
            ledger.check(self.drawn)

    def _decide(self) -> Decision:
        facts = {
            name: ColumnFacts(
                name, column.attribute.role, column.domain, column.counts, column.distances, column.hierarchy
            )
            for name, column in self.columns.items()
            if column.domain is not None
        }
        assert isinstance(self.policy.method, DesignMethod)
        try:
            return self.policy.method.decide(facts, self.policy.require)
        except PolicyError as error:
            raise PolicyError(error.problems, source=self.policy.source) from None

    def batches(self, progress: Progress, seconds: dict[str, float]) -> Iterator[CellBatch]:
        """The anonymised records in the source's order. Raises where the sets do not follow their design."""
        heads = dict.fromkeys(self.designs, 0)
        for batch, codes in self._drawn(progress, seconds):
            for name, inside in truth_holds(batch, codes, list(self.designs)).items():
                heads[name] += inside
            yield exploded(batch, self.designs) if self.members else batch
        check_heads(self.designs, heads, self.records)

    def _drawn(
        self, progress: Progress, seconds: dict[str, float]
    ) -> Iterator[tuple[dict[str, Cells], Mapping[str, np.ndarray]]]:
        domains = {name: column.domain for name, column in self.columns.items() if column.domain is not None}
        loose = [name for name, column in self.columns.items() if column.domain is None]
        randomness = self.stream if self.stream is not None else Keystream()
        key = self.policy.randomness.record_key if self.stream is not None else None
        seconds["draw decoys"] = 0.0
        for batch in LocalEngine().encode(
            self.source, domains, open_columns=loose, drop_missing=self.drop, key=key, progress=progress
        ):
            now = perf_counter()
            digests = self.stream.digests(batch.keys) if self.stream is not None else None
            secret_codes = {name: batch.codes[name] for name in self.designs}
            sets = draw_columns(self.designs, secret_codes, randomness, digests=digests)
            seconds["draw decoys"] += perf_counter() - now
            cells: dict[str, Cells] = {}
            for name in self.columns:
                if name in sets:
                    cells[name] = sets[name]
                elif name in batch.open:
                    cells[name] = batch.open[name]
                else:
                    cells[name] = ValueCells(len(domains[name]), batch.codes[name])
            yield cells, batch.codes

    def settle(self, verdicts: Sequence[Verdict]) -> None:
        """Remember in the ledger what was published."""
        if self.ledger is not None:
            self.ledger.record(self.drawn)
