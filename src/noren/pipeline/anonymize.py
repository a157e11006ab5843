"""From a table and a policy to a verified release: profile, decide, draft, shuffle, write, verify, publish.

Two passes over the source, three where general values stand beside columns that pass as they are. Nothing is
published unless the independent verification of what was written holds; the
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
from typing import Any, Protocol
from unicodedata import normalize

from noren.cells import CellBatch, GroupTable, batch_length, concat
from noren.designs.any import Design
from noren.engines.local import LocalEngine, TableProfile
from noren.engines.shuffle import Shuffler
from noren.errors import NorenError, PolicyError, Problem, SecretError
from noren.io.source import Source
from noren.methods.base import Suppressed, Watch
from noren.models.base import Overall, Verdict
from noren.pipeline.draft import make_manifest
from noren.pipeline.drawing import DecoyDraft
from noren.pipeline.keys import UniqueKeys
from noren.pipeline.recoding import RecodedDraft, gather
from noren.pipeline.verify import check_store, demand
from noren.policy.policy import Policy
from noren.policy.reading import dropping, open_table
from noren.policy.resolve import ResolvedColumn, resolve
from noren.release.knowledge import read_knowledge
from noren.release.manifest import Manifest
from noren.release.package import (
    FileFormat,
    aside,
    read_tables,
    refuse_existing,
    store_for,
    write_cells,
    write_descriptor,
    write_tables,
)
from noren.release.release import Release
from noren.release.store import MemoryStore, Store
from noren.schema.domain import OTHER
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.secret import Keystream, Ledger, RecordStream, Secret


class Done(Protocol):
    """Counts what is done of a stage; may say more about it, or tell how much there is."""

    def __call__(self, done: int, *, note: str = "", total: int | None = None) -> None: ...


Stage = Callable[[str, int | None], AbstractContextManager[Done]]
"""Announces a stage and its number of records; inside it, the callable counts records done."""
Draft = DecoyDraft | RecodedDraft


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
    suppressed: int = 0
    """Records that the method left out to protect the others."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """What generalisation and left-out terms cost, by metric; empty for decoys."""
    terms: Sequence[Suppressed] = ()
    """How good the suppression of terms is known to be, per knowledge table."""


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
    source = open_table(data, policy)
    return _Run(source, policy, stage or quiet, secret).publish(None if to is None else Path(to), file_format)


def quiet(name: str, total: int | None) -> AbstractContextManager[Done]:
    """A stage that nobody watches."""

    def nothing(done: int, *, note: str = "", total: int | None = None) -> None: ...

    return nullcontext(nothing)


def watched(progress: Done) -> Watch:
    """What a method tells about its groups, as progress of its stage."""
    seen = 0

    def tell(done: int, groups: int, cost: float) -> None:
        nonlocal seen
        progress(max(0, done - seen), note=f"Terms, cost {cost:.4f}", total=groups)
        seen = done

    return tell


def profile_source(
    policy: Policy, source: Source, drop: Sequence[str], stage: Stage, stream: RecordStream | None = None
) -> TableProfile:
    """Count the values of every published column; with a stream of memoised randomness, demand unique record keys."""
    published = [n for n in source.columns if n in policy.attributes and n in policy.published]
    bins = {n: a.bins for n in published if (a := policy.attributes[n]).bins is not None}
    wanted = policy.randomness.record_key
    key = wanted if wanted in source.columns else None
    if not published:
        from noren.policy.resolve import column_problems

        raise PolicyError(column_problems(policy, source.name, source.columns), source=policy.source)
    keys = UniqueKeys(stream) if stream is not None and key is not None else None
    with closing(keys) if keys is not None else nullcontext(), stage("Reading", source.rows) as progress:
        profile = LocalEngine().profile(
            source,
            published,
            bins=bins,
            terms=[n for n in published if policy.attributes[n].role is Role.QUASI_SENSITIVE],
            drop_missing=drop,
            key=key,
            on_batch=keys.add if keys is not None else None,
            progress=progress,
        )
        if keys is not None:
            keys.demand_unique(str(key))
    return profile


class _Run:
    """One anonymisation, stage by stage."""

    def __init__(self, source: Source, policy: Policy, stage: Stage, secret: str | Path | None) -> None:
        self.source = source
        self.policy = policy
        self.stage = stage
        self.seconds: dict[str, float] = {}
        self.notes: list[str] = list(source.notes)
        self.key = policy.randomness.record_key
        self.secret_path = self._secret_path(secret)
        self.records_stream = self._memoised_stream()
        self.drop = dropping(policy, source.columns)

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
        draft = self._draft(columns, profile)
        self._check_rare(columns)
        overall = {
            name: Overall(column.counts / column.counts.sum(), "the original")
            for name, column in columns.items()
            if column.domain is not None and name in draft.designs
        }
        overall |= draft.priors
        if target is None:
            store = MemoryStore(concat(list(self._shuffled(draft, None))))
            verdicts = self._verify(store, draft, overall, draft.tables, draft.knowledge)
            manifest = self._manifest(draft, verdicts)
            release = Release(manifest, store, tables=draft.tables, knowledge=draft.knowledge)
            draft.settle(verdicts)
        else:
            with aside(target) as work:
                buckets = Path(tempfile.mkdtemp(prefix="buckets-", dir=work))
                batches = self._shuffled(draft, buckets)
                started = perf_counter()
                before = sum(self.seconds.values())
                data, rows = write_cells(work, draft.entries, batches, file_format)
                inside = sum(self.seconds.values()) - before
                self.seconds["write"] = perf_counter() - started - inside
                shutil.rmtree(buckets)
                if rows != draft.rows:
                    raise NorenError(f"{rows} rows were written instead of {draft.rows}; nothing is published.")
                write_tables(work, draft.entries, draft.tables, draft.knowledge, file_format)
                tables = read_tables(work, draft.entries, data.suffix)
                knowledge = read_knowledge(work, draft.entries, data.suffix)
                verdicts = self._verify(store_for(data), draft, overall, tables, knowledge)
                manifest = self._manifest(draft, verdicts)
                write_descriptor(work, data, manifest)
                draft.settle(verdicts)
            release = Release(manifest, store_for(target / data.name), target, draft.tables, draft.knowledge)
        facts = HolderFacts(
            records=draft.records,
            dropped=profile.dropped,
            suppressed=draft.suppressed,
            columns=draft.columns,
            designs=draft.designs,
            verdicts=verdicts,
            memoised=self.records_stream is not None,
            notes=(*self.notes, *draft.notes),
            seconds=self.seconds,
            losses=draft.losses() if isinstance(draft, RecodedDraft) else {},
            terms=draft.recoding.suppressed if isinstance(draft, RecodedDraft) else (),
        )
        return Outcome(release, facts)

    def _manifest(self, draft: Draft, verdicts: Sequence[Verdict]) -> Manifest:
        memoised = self.records_stream is not None
        return make_manifest(self.policy, draft.entries, verdicts, draft.records, memoised, draft.suppressed)

    def _profile(self) -> TableProfile:
        started = perf_counter()
        profile = profile_source(self.policy, self.source, self.drop, self.stage, self.records_stream)
        self.seconds["read and count"] = perf_counter() - started
        return profile

    def _draft(self, columns: Mapping[str, ResolvedColumn], profile: TableProfile) -> Draft:
        """Decide what is published instead of the table."""
        started = perf_counter()
        common = (self.policy, self.source, columns, profile.records, self.drop)
        draft: Draft
        if self.policy.method.layout == "general":
            with self.stage("Reading codes", profile.records) as progress:
                gathered = gather(*common, progress)
            with self.stage("Generalising", None) as progress:
                watch = watched(progress)
                draft = RecodedDraft(self.policy, self.source, columns, self.drop, gathered, watch)
        else:
            ledger = None if self.secret_path is None else Ledger.open(self.secret_path)
            draft = DecoyDraft(*common, self.records_stream, ledger)
        self.seconds["decide"] = perf_counter() - started
        return draft

    def _check_rare(self, columns: Mapping[str, ResolvedColumn]) -> None:
        for name, column in columns.items():
            if column.domain is None:
                continue
            if column.left_out:
                self.notes.append(
                    f"{name}: {column.left_out} terms that the knowledge table does not name are not published "
                    "(counted once a record)"
                )
            if column.knowledge is not None and column.rare:
                self.notes.append(
                    f"{name}: {column.rare} unknown terms that fewer than five records share are published as they are"
                )
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
            general = self.policy.method.layout == "general" and column.attribute.role is Role.QUASI_IDENTIFIER
            if (name in self.policy.protected or (general and not column.domain.is_range)) and column.rare:
                self.notes.append(
                    f"{name}: the published domain names {column.rare} values that fewer than five records share "
                    "(min_count and rare can merge or refuse them)"
                )

    def _shuffled(self, draft: Draft, folder: Path | None) -> Iterator[CellBatch]:
        """Anonymised records in a uniformly random order."""
        shuffler = Shuffler(Keystream(), draft.rows, folder)
        started = perf_counter()
        inside = dict[str, float]()
        scattering = 0.0
        with self.stage(draft.stage, draft.records) as progress:
            for batch in draft.batches(progress, inside):
                now = perf_counter()
                shuffler.add(batch)
                scattering += perf_counter() - now
        self.seconds["read and encode"] = perf_counter() - started - sum(inside.values()) - scattering
        self.seconds |= inside
        with self.stage("Shuffling and writing" if folder is not None else "Shuffling", draft.records) as progress:
            self.seconds["shuffle"] = scattering
            for shuffled in _timed(shuffler.finish(), self.seconds, "shuffle"):
                yield shuffled
                progress(batch_length(shuffled))

    def _verify(
        self,
        store: Store,
        draft: Draft,
        overall: Mapping[str, Overall],
        tables: Mapping[str, GroupTable],
        knowledge: Mapping[str, Knowledge],
    ) -> list[Verdict]:
        started = perf_counter()
        with self.stage("Verifying", draft.records) as progress:
            verdicts = check_store(
                store, draft.entries, self.policy.require, overall, progress, tables=tables, knowledge=knowledge
            )
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
