"""From a table and a policy to a verified release: profile, decide, draw, shuffle, write, verify, publish.

Two passes over the source. Nothing is published unless the independent verification of what was written holds; the
directory appears under its name complete or not at all.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from unicodedata import normalize

import numpy as np

from noren.cells import CellBatch, Cells, ValueCells, batch_length, concat
from noren.designs.any import Design, draw_columns
from noren.engines.local import LocalEngine, TableProfile
from noren.engines.shuffle import Shuffler
from noren.errors import NorenError, PolicyError, Problem, SecretError
from noren.io.source import Source, open_source
from noren.methods.base import ColumnFacts, Decision
from noren.models.base import Overall, Verdict
from noren.pipeline.draft import check_heads, exploded, ledger_entries, make_manifest, published_entry
from noren.pipeline.keys import UniqueKeys
from noren.pipeline.verify import check_store, demand, dropping, truth_holds
from noren.policy.policy import Policy
from noren.policy.resolve import ResolvedColumn, resolve
from noren.release.manifest import ColumnEntry
from noren.release.package import FileFormat, aside, refuse_existing, store_for, write_cells, write_descriptor
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.schema.domain import OTHER
from noren.secret import Keystream, Ledger, LedgerEntry, RecordStream, Secret

Stage = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Announces a stage and its number of records; inside it, the callable counts records done."""


@dataclass(frozen=True)
class HolderFacts:
    """What only the holder may know about a run. Never written into a release."""

    records: int
    dropped: int
    columns: Mapping[str, ResolvedColumn]
    designs: Mapping[str, Design]
    verdicts: Sequence[Verdict]
    memoised: bool
    notes: Sequence[str]
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """A release, and beside it what stays with the holder."""

    release: Release
    facts: HolderFacts


def anonymize(
    data: Any,
    policy: Policy | str | Path,
    *,
    to: str | Path | None = None,
    file_format: FileFormat = "parquet",
    secret: str | Path | None = None,
) -> Release:
    """Make a release that meets the policy, or raise and publish nothing.

    `to` streams to a new directory, for tables larger than memory; without it the release is held in memory until
    `release.save(...)`. `secret` is a file made with `noren secret`: with a record key in the policy, the same person
    then gets the same decoys in every release.
    """
    return run(data, policy, to=to, file_format=file_format, secret=secret).release


def run(
    data: Any,
    policy: Policy | str | Path,
    *,
    to: str | Path | None = None,
    file_format: FileFormat = "parquet",
    secret: str | Path | None = None,
    stage: Stage | None = None,
) -> Outcome:
    """`anonymize`, with the holder's facts and progress."""
    policy = policy if isinstance(policy, Policy) else Policy.load(policy)
    if to is not None:
        refuse_existing(Path(to))
    source = open_source(data, **policy.data.model_dump())
    return _Run(source, policy, stage or _quiet, secret).publish(None if to is None else Path(to), file_format)


def _quiet(name: str, total: int | None) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda done: None)


class _Run:
    """One anonymisation, stage by stage."""

    def __init__(self, source: Source, policy: Policy, stage: Stage, secret: str | Path | None) -> None:
        self.source = source
        self.policy = policy
        self.stage = stage
        self.engine = LocalEngine()
        self.seconds: dict[str, float] = {}
        self.notes: list[str] = list(source.notes)
        self.key = policy.randomness.record_key
        self.secret_path = self._secret_path(secret)
        self.records_stream = self._memoised_stream()
        self.drop = dropping(policy, source.columns)
        self.members = False

    # ------------------------------------------------------------------ secret

    def _secret_path(self, given: str | Path | None) -> Path | None:
        if given is not None:
            if self.key is None:
                where, hint = "randomness.record_key", "Name the column that identifies a person, unique in the table."
                raise PolicyError([Problem(where, "a secret needs a record key.", hint)], source=self.policy.source)
            return Path(given)
        written = self.policy.randomness.secret
        if written is None and (self.key is not None or self.policy.randomness.fingerprint is not None):
            raise SecretError(
                "the policy asks for memoised decoys, and no secret is given.",
                hint="Make one with `noren secret FILE` and give it with --secret FILE or randomness.secret.",
            )
        return None if written is None else self.policy.base / written

    def _memoised_stream(self) -> RecordStream | None:
        if self.secret_path is None:
            return None
        secret = Secret.load(self.secret_path)
        wanted = self.policy.randomness.fingerprint
        if wanted is not None and wanted != secret.fingerprint:
            raise SecretError(
                f"{self.secret_path} has the fingerprint {secret.fingerprint}, the policy demands {wanted}.",
                hint="Use the secret of the earlier releases: under another one, releases can be intersected.",
            )
        return RecordStream(secret)

    # ------------------------------------------------------------------ stages

    def publish(self, target: Path | None, file_format: FileFormat) -> Outcome:
        profile = self._profile()
        columns = resolve(self.policy, self.source.name, self.source.columns, profile)
        decision = self._decide(columns)
        self._check_rare(columns)
        ledger = self._ledger(columns, decision)
        self.members = self.policy.method.layout == "records"
        memoised = self.records_stream is not None
        entries = tuple(published_entry(column, decision, self.members) for column in columns.values())
        rows_each = next(iter(decision.designs.values())).eta if self.members else 1
        overall = {
            name: Overall(column.counts / column.counts.sum(), "the original")
            for name, column in columns.items()
            if column.domain is not None
        }
        if target is None:
            cells = concat(list(self._shuffled(columns, decision, profile, None)))
            store = MemoryStore(cells)
            verdicts = self._verify(store, entries, overall, profile)
            release = Release(make_manifest(self.policy, entries, verdicts, profile.records, memoised), store)
            self._record(ledger)
        else:
            with aside(target) as work:
                buckets = Path(tempfile.mkdtemp(prefix="buckets-", dir=work))
                batches = self._shuffled(columns, decision, profile, buckets)
                started = perf_counter()
                before = sum(self.seconds.values())
                data, rows = write_cells(work, entries, batches, file_format)
                inside = sum(self.seconds.values()) - before
                self.seconds["write"] = perf_counter() - started - inside
                shutil.rmtree(buckets)
                if rows != profile.records * rows_each:
                    wanted = profile.records * rows_each
                    raise NorenError(f"{rows} rows were written instead of {wanted}; nothing is published.")
                verdicts = self._verify(store_for(data), entries, overall, profile)
                manifest = make_manifest(self.policy, entries, verdicts, profile.records, memoised)
                write_descriptor(work, data, manifest)
                self._record(ledger)
            release = Release(manifest, store_for(target / data.name), target)
        facts = HolderFacts(
            records=profile.records,
            dropped=profile.dropped,
            columns=columns,
            designs=decision.designs,
            verdicts=verdicts,
            memoised=memoised,
            notes=(*self.notes, *decision.notes),
            seconds=self.seconds,
        )
        return Outcome(release, facts)

    def _profile(self) -> TableProfile:
        published = [n for n in self.source.columns if n in self.policy.attributes and n in self.policy.published]
        bins = {n: a.bins for n in published if (a := self.policy.attributes[n]).bins is not None}
        key = self.key if self.key in self.source.columns else None
        if not published:
            from noren.policy.resolve import column_problems

            problems = column_problems(self.policy, self.source.name, self.source.columns)
            raise PolicyError(problems, source=self.policy.source)
        keys = UniqueKeys(self.records_stream) if self.records_stream is not None and key is not None else None
        started = perf_counter()
        with closing(keys) if keys is not None else nullcontext(), self.stage("Reading", self.source.rows) as progress:
            profile = self.engine.profile(
                self.source,
                published,
                bins=bins,
                drop_missing=self.drop,
                key=key,
                on_batch=keys.add if keys is not None else None,
                progress=progress,
            )
            if keys is not None:
                keys.demand_unique(str(key))
        self.seconds["read and count"] = perf_counter() - started
        return profile

    def _decide(self, columns: Mapping[str, ResolvedColumn]) -> Decision:
        started = perf_counter()
        facts = {
            name: ColumnFacts(
                name, column.attribute.role, column.domain, column.counts, column.distances, column.hierarchy
            )
            for name, column in columns.items()
            if column.domain is not None
        }
        try:
            decision = self.policy.method.decide(facts, self.policy.require)
        except PolicyError as error:
            raise PolicyError(error.problems, source=self.policy.source) from None
        self.seconds["decide"] = perf_counter() - started
        return decision

    def _check_rare(self, columns: Mapping[str, ResolvedColumn]) -> None:
        for name, column in columns.items():
            if column.domain is None:
                continue
            alike = len(column.domain) - len({normalize("NFC", value).strip() for value in column.domain.values})
            if name in self.policy.protected and alike:
                self.notes.append(
                    f"{name}: {alike} values differ from others only in spaces around them or in how their letters are "
                    "encoded; as decoys of each other they hide nothing"
                )
            if column.domain.source != "data":
                continue
            rest = column.domain.index.get(OTHER)
            if column.domain.merged and rest is not None and column.counts[rest] < column.attribute.min_count:
                self.notes.append(f"{name}: {OTHER} itself stands for fewer than min_count records")
            if name in self.policy.protected and column.rare:
                self.notes.append(
                    f"{name}: the published domain names {column.rare} values that fewer than five records share "
                    "(min_count and rare can merge or refuse them)"
                )

    def _ledger(
        self, columns: Mapping[str, ResolvedColumn], decision: Decision
    ) -> tuple[Ledger, dict[str, LedgerEntry]] | None:
        if self.secret_path is None:
            return None
        entries = ledger_entries(columns, decision.designs)
        ledger = Ledger.open(self.secret_path)
        ledger.check(entries)
        return ledger, entries

    @staticmethod
    def _record(ledger: tuple[Ledger, dict[str, LedgerEntry]] | None) -> None:
        if ledger is not None:
            ledger[0].record(ledger[1])

    def _shuffled(
        self,
        columns: Mapping[str, ResolvedColumn],
        decision: Decision,
        profile: TableProfile,
        folder: Path | None,
    ) -> Iterator[CellBatch]:
        """Anonymised records in a uniformly random order."""
        rows = profile.records * (next(iter(decision.designs.values())).eta if self.members else 1)
        shuffler = Shuffler(Keystream(), rows, folder)
        started = perf_counter()
        drawing = 0.0
        scattering = 0.0
        heads = dict.fromkeys(decision.designs, 0)
        with self.stage("Drawing decoys", profile.records) as progress:
            for batch, codes, seconds in self._drawn(columns, decision, progress):
                for name, inside in truth_holds(batch, codes, list(decision.designs)).items():
                    heads[name] += inside
                drawing += seconds
                now = perf_counter()
                shuffler.add(exploded(batch, decision.designs) if self.members else batch)
                scattering += perf_counter() - now
        check_heads(decision.designs, heads, profile.records)
        self.seconds["read and encode"] = perf_counter() - started - drawing - scattering
        self.seconds["draw decoys"] = drawing
        with self.stage("Shuffling and writing" if folder is not None else "Shuffling", profile.records) as progress:
            self.seconds["shuffle"] = scattering
            for shuffled in _timed(shuffler.finish(), self.seconds, "shuffle"):
                yield shuffled
                progress(batch_length(shuffled))

    def _drawn(
        self, columns: Mapping[str, ResolvedColumn], decision: Decision, progress: Callable[[int], None]
    ) -> Iterator[tuple[dict[str, Cells], Mapping[str, np.ndarray], float]]:
        domains = {name: column.domain for name, column in columns.items() if column.domain is not None}
        loose = [name for name, column in columns.items() if column.domain is None]
        randomness = self.records_stream if self.records_stream is not None else Keystream()
        memoised = self.records_stream is not None
        for batch in self.engine.encode(
            self.source,
            domains,
            open_columns=loose,
            drop_missing=self.drop,
            key=self.key if memoised else None,
            progress=progress,
        ):
            now = perf_counter()
            digests = self.records_stream.digests(batch.keys) if self.records_stream is not None else None
            secret_codes = {name: batch.codes[name] for name in decision.designs}
            sets = draw_columns(decision.designs, secret_codes, randomness, digests=digests)
            seconds = perf_counter() - now
            cells: dict[str, Cells] = {}
            for name in columns:
                if name in sets:
                    cells[name] = sets[name]
                elif name in batch.open:
                    cells[name] = batch.open[name]
                else:
                    cells[name] = ValueCells(len(domains[name]), batch.codes[name])
            yield cells, batch.codes, seconds

    def _verify(
        self, store: Any, entries: Sequence[ColumnEntry], overall: Mapping[str, Overall], profile: TableProfile
    ) -> list[Verdict]:
        started = perf_counter()
        with self.stage("Verifying", profile.records) as progress:
            verdicts = check_store(store, entries, self.policy.require, overall, progress)
        demand(verdicts)
        self.seconds["verify"] = perf_counter() - started
        return verdicts


def _timed(items: Iterator[CellBatch], seconds: dict[str, float], stage: str) -> Iterator[CellBatch]:
    """The items, while the time it takes to make them is added to a stage."""
    now = perf_counter()
    for item in items:
        seconds[stage] += perf_counter() - now
        yield item
        now = perf_counter()
