"""From a table and a policy to a verified release: prepare, plan, draft, scatter, write, verify, publish.

Two passes over the source, three where general values stand beside columns that pass as they are. Nothing is
published unless the independent verification of what was written holds; the directory appears under its name complete
or not at all.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines import Engine, Plan, Table, TermSearch
from noren.engines.engine import Written
from noren.errors import NorenError, ReleaseError
from noren.models.judgement import Judgement
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.progress import Stage, quiet
from noren.release.manifest import Manifest
from noren.release.package import (
    FileFormat,
    write_cells,
    write_descriptor,
)
from noren.release.published import Published
from noren.release.release import Release
from noren.release.set_tally import SetTally
from noren.release.sides import with_sides, write_sides
from noren.release.staged import refuse_existing, staged
from noren.release.store import MemoryStore, PeopleStore, Store, store_for
from noren.schema.column import Column
from noren.secret import Keystream, SigningKey
from noren.secret.signing import signing_key
from noren.sources.place import Place, Spot, place_of
from noren.statements import CellBatch, Design, Statement, batch_length, concat
from noren.statements.batch import PERSON
from noren.workflow.apart import PartedDraft
from noren.workflow.declaration import make_manifest
from noren.workflow.dependence import KNOWN, demand_independence
from noren.workflow.draft import Draft
from noren.workflow.losses import losses_of, term_losses
from noren.workflow.margins import demand_margins, noised_margins
from noren.workflow.mechanism import (
    INSTEAD,
    Replayed,
    demand_bounded,
    demand_uncertain,
    replay_methods,
    used_methods,
    with_mechanism,
)
from noren.workflow.over_rows import advice
from noren.workflow.prepare import prepare, read_policy, remarks
from noren.workflow.republish import UniqueKeys, memoised_stream, registrations, secret_file
from noren.workflow.settling import left_out, of_people, settled
from noren.workflow.several import demand_rows
from noren.workflow.verify import demand

UNREGISTERED = (
    "no register: what people are among is not kept, so a later release cannot keep it (name a secret and a record key "
    "under [randomness])"
)
UNCOUNTED = (
    "noised margins spend epsilon = {:g} of everybody's budget; without a register (a secret and a record key under "
    "[randomness]) nobody adds up what several releases spend"
)


@dataclass(frozen=True)
class HolderFacts:
    """What only the holder may know about a run. Never written into a release."""

    table: Table
    plan: Plan
    records: int
    verdicts: Sequence[Verdict]
    memoised: bool
    notes: Sequence[str]
    seconds: Mapping[str, float] = field(default_factory=dict)
    suppressed: int = 0
    """Records that the method left out to protect the others."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """What generalisation and left-out terms cost, by metric; empty for decoys."""
    replays: Sequence[Replayed] = ()
    """What somebody learns who replays the method, for every secret that classes protect."""

    @property
    def dropped(self) -> int:
        """Records left out for missing values."""
        return self.table.profile.dropped

    @property
    def columns(self) -> Mapping[str, Column]:
        return {**self.table.columns, **self.plan.columns}

    @property
    def designs(self) -> Mapping[str, Design]:
        return self.plan.designs

    @property
    def terms(self) -> Sequence[TermSearch]:
        """How good the suppression of terms is known to be, per knowledge table."""
        return self.plan.searches


@dataclass(frozen=True)
class Outcome:
    """A release, and beside it what stays with the holder."""

    release: Release
    facts: HolderFacts


def anonymize(
    data: Any,
    policy: Policy | str | Path,
    *,
    to: str | Path | Place | None = None,
    file_format: FileFormat = "parquet",
    secret: str | Path | None = None,
    engine: str | Engine | None = None,
    sign: SigningKey | str | Path | None = None,
) -> Release:
    """Make a release that meets the policy, or raise and publish nothing.

    `to` streams to a new directory, for tables larger than memory; without it the release is held in memory until
    `release.save(...)`. `secret` is a file made with `noren secret`: with a record key in the policy, the same person
    then gets the same decoys in every release, and what could be intersected with an earlier one is refused. `engine`
    says where the work runs; by default on this machine. `sign` is a key made with `noren key new`, or its file, with
    which a release that is written is signed.

    >>> import noren as nr
    >>> import polars as pl
    >>> people = pl.DataFrame({"town": ["Ulm"] * 20 + ["Bonn"] * 20, "job": ["cook", "clerk", "miner", "nurse"] * 10})
    >>> policy = nr.Policy(
    ...     attributes={"town": nr.quasi_identifier(), "job": nr.sensitive()},
    ...     require=[nr.models.FrequencyLDiversity(on="job", l=2)],
    ... )
    >>> release = nr.anonymize(people, policy)
    >>> release
    <Release of 40 records: town, job; sets: job>
    >>> release.verdicts
    <Verdicts: 1 of 1 holds>
    >>> nr.anonymize(people, policy.with_method(nr.methods.Anatomy()))
    <Release of 40 records: town, job; groups of values: job>
    """
    return run(data, policy, to=to, file_format=file_format, secret=secret, engine=engine, sign=sign).release


def run(
    data: Any,
    policy: Policy | str | Path,
    *,
    to: str | Path | Place | None = None,
    file_format: FileFormat = "parquet",
    secret: str | Path | None = None,
    engine: str | Engine | None = None,
    sign: SigningKey | str | Path | None = None,
    stage: Stage = quiet,
) -> Outcome:
    """`anonymize`, with the holder's facts and progress."""
    policy = read_policy(policy)
    target = None if to is None else place_of(to)
    if target is not None:
        refuse_existing(target)
    if isinstance(target, Place) and file_format != "parquet":
        raise ReleaseError(f"{target}: a store gets Parquet files.", hint="Name a directory, or leave the format out.")
    return _Run(policy, secret, stage, _signing(sign, to)).publish(data, engine, target, file_format)


def _signing(sign: SigningKey | str | Path | None, to: str | Path | Place | None) -> SigningKey | None:
    """The key of a release that is written; read before any work is done."""
    if sign is not None and to is None:
        message = "a release in memory has no descriptor to sign."
        raise ReleaseError(message, hint="Give to=..., or sign when it is saved: release.save(..., sign=...).")
    return None if sign is None else signing_key(sign)


class _Run:
    """One anonymisation, stage by stage."""

    def __init__(self, policy: Policy, secret: str | Path | None, stage: Stage, sign: SigningKey | None = None) -> None:
        self.policy = policy
        self.sign = sign
        self.stage = stage
        self.seconds: dict[str, float] = {}
        self.people: list[NDArray[np.int64]] = []
        """Whose rows were published, in their order, where people have several."""
        self.replays: list[Replayed] = []
        self.key = policy.randomness.record_key
        secret_path = secret_file(policy, secret)
        self.keyed = memoised_stream(policy, secret_path)
        """What the register of the secret knows people by."""
        self.stream = self.keyed if policy.randomness.mode == "memoised" else None
        self.registers = registrations(policy, secret_path, self.keyed)

    def publish(self, data: Any, engine: str | Engine | None, target: Spot | None, file_format: FileFormat) -> Outcome:
        demand_bounded(self.policy)
        table = self._prepared(data, engine)
        started = perf_counter()
        draft = self._drafted(table)
        with self.stage("Columns that tell each other", None):
            demand_independence(draft, self.policy)
        demand_rows(draft, self.policy)
        demand_margins(draft, self.policy)
        registered = [note for one in self.registers for note in one.check(draft, self.policy)]
        if not self.registers and any(model.invariant for model in self.policy.require):
            registered.append(UNREGISTERED)
        if self.policy.margins and not self.registers:
            registered.append(UNCOUNTED.format(self.policy.spent))
        self.seconds["decide"] = perf_counter() - started
        notes = (*table.source.notes, *remarks(table, self.policy), *draft.notes, *registered)
        lost = losses(draft, self.policy)
        if target is None:
            release, verdicts = self._in_memory(draft)
        else:
            release, verdicts = self._written(draft, target, file_format)
        facts = HolderFacts(
            table=table,
            plan=draft.plan,
            records=draft.records,
            suppressed=draft.suppressed,
            verdicts=verdicts,
            memoised=self._memoised(draft),
            notes=notes,
            seconds=self.seconds,
            losses=lost,
            replays=self.replays,
        )
        return Outcome(release, facts)

    def _drafted(self, table: Table) -> Draft:
        return settled(table, self.policy, stage=self.stage, stream=self.stream, key=self.key)

    def _memoised(self, draft: Draft) -> bool:
        """Whether something is drawn, and by the secret."""
        return self.stream is not None and bool(draft.designs)

    @contextmanager
    def _recording(self, published: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """All registers hold the release while it is published."""
        with ExitStack() as stack:
            for one in self.registers:
                stack.enter_context(one.recording(published))
            yield

    def _prepared(self, data: Any, engine: str | Engine | None) -> Table:
        started = perf_counter()
        alone = self.keyed is not None and self.key is not None and not self.policy.people.key
        keys = UniqueKeys(self.keyed) if self.keyed is not None and alone else None
        known = KNOWN if self.policy.dependence.most < 1 else 0
        with closing(keys) if keys is not None else nullcontext():
            table = prepare(data, self.policy, engine, stage=self.stage, on_keys=keys, known=known)
            if keys is not None:
                keys.demand_unique(str(self.key))
        for one in self.registers:
            one.read(table)
            table = one.recalled(table, self.policy)
        self.seconds["read and count"] = perf_counter() - started
        return table

    def _in_memory(self, draft: Draft) -> tuple[Release, list[Verdict]]:
        store = MemoryStore(concat(list(self._shuffled(draft, None))))
        verdicts = self._verified(draft, store, draft.statements)
        published = draft.published(store)
        manifest = self._manifest(draft, published, verdicts)
        with self._recording():
            return Release(manifest, store), verdicts

    def _written(self, draft: Draft, target: Spot, file_format: FileFormat) -> tuple[Release, list[Verdict]]:
        with staged(target, self._recording) as there:
            work = there.work
            buckets = Path(tempfile.mkdtemp(prefix="buckets-", dir=work))
            made = self._written_there(draft, there.cells) if file_format == "parquet" else None
            made = made or self._written_here(draft, work, buckets, file_format)
            shutil.rmtree(buckets)
            if made.rows != draft.rows:
                raise NorenError(f"{made.rows} rows were written instead of {draft.rows}; nothing is published.")
            data, *more = made.files
            write_sides(work, made.columns, data.suffix)
            statements = tuple(with_sides(work, made.columns, data.suffix))
            store = store_for(data, True, *more)
            verdicts = self._verified(draft, store, statements)
            published = draft.published(store, made.columns)
            manifest = self._manifest(draft, published, verdicts)
            write_descriptor(work, there.holds(made.files, made.parts), manifest, self.sign, made.parts)
        data, *more = (target / name for name in there.data)
        store = store_for(data, True, *more)
        return Release(manifest, store, target), verdicts

    def _written_here(self, draft: Draft, work: Path, buckets: Path, file_format: FileFormat) -> Written:
        """The data file, through this process."""
        started, before = perf_counter(), sum(self.seconds.values())
        tally = SetTally(draft.statements) if file_format == "parquet" else None
        shuffled = self._shuffled(draft, buckets, tally)
        data, rows, columns = write_cells(work, draft.statements, shuffled, file_format, tally)
        inside = sum(self.seconds.values()) - before  # runs beside the writing, in part
        self.seconds["write"] = max(0.0, perf_counter() - started - inside)
        return Written((data,), (), rows, columns)

    def _written_there(self, draft: Draft, work: Spot) -> Written | None:
        """The data files, where the records are, if the engine works elsewhere."""
        table, started = draft.table, perf_counter()
        with self.stage("Drawing decoys" if draft.designs else "Writing records", None):
            made = table.engine.written(table.source, draft.reading, draft, draft.rows, draft.statements, work)
        if made is not None:
            draft.demand_heads()
            self.seconds["draw, shuffle and write"] = perf_counter() - started
        return made

    def _manifest(self, draft: Draft, published: Published, verdicts: list[Verdict]) -> Manifest:
        memoised, people = self._memoised(draft), not self.people
        with self.stage("Counting margins", None) if self.policy.margins else nullcontext():
            margins = noised_margins(draft, self.policy)
        return make_manifest(self.policy, published, verdicts, memoised, people, draft.plan.facts, margins)

    def _shuffled(self, draft: Draft, folder: Path | None, tally: SetTally | None = None) -> Iterator[CellBatch]:
        """Anonymised records in a uniformly random order; a tally has seen all of them when the first come."""
        table, started = draft.table, perf_counter()
        name = "Drawing decoys" if draft.designs else "Writing records"

        def made() -> Iterator[CellBatch]:
            with self.stage(name, table.n) as meter:
                if draft.reading.columns:
                    yield from table.engine.apply(table.source, draft.reading, draft, meter=meter)
                else:
                    yield from draft.held(meter)
            draft.demand_heads()
            self.seconds["read and encode"] = perf_counter() - started - draft.seconds
            if draft.designs:
                self.seconds["draw decoys"] = draft.seconds

        after = perf_counter()
        cells = made() if tally is None else map(tally.numbered, made())
        shuffled = table.engine.scatter(cells, draft.rows, Keystream(), folder)
        with self.stage("Shuffling and writing" if folder is not None else "Shuffling", draft.rows) as meter:
            self.seconds["shuffle"] = 0.0
            inside = sum(self.seconds.get(part, 0.0) for part in ("read and encode", "draw decoys"))
            for batch in shuffled:
                now = perf_counter()
                done = sum(self.seconds.get(part, 0.0) for part in ("read and encode", "draw decoys"))
                self.seconds["shuffle"] += max(0.0, now - after - (done - inside))
                inside = done
                if PERSON in batch:
                    self.people.append(batch[PERSON].data)  # type: ignore[attr-defined]
                yield {name: cells for name, cells in batch.items() if name != PERSON}
                meter(batch_length(batch))
                after = perf_counter()

    def _verified(self, draft: Draft, store: Store, statements: tuple[Statement, ...]) -> list[Verdict]:
        started = perf_counter()
        several = bool(self.people)
        seen: Store = PeopleStore(store, np.concatenate(self.people)) if several else store
        published, overall = draft.published(seen, statements), draft.overall()

        make = partial(Judgement.of, published.by_name, self.policy.require, overall, people=several)
        with self.stage("Verifying", draft.rows) as meter:
            found = draft.table.engine.judge(published, make, meter=meter)
        verdicts = [*of_people(found, published, draft, self.policy.require), *left_out(draft)]
        hint = advice(verdicts)
        if any(model.of_mechanism for model in self.policy.require):
            used = used_methods(self.policy, draft.plan.facts)
            verdicts = with_mechanism(verdicts, published, draft.table.records, self.policy.require, used)
            hint = hint or (INSTEAD if all(v.holds or v.basis == "the original" for v in verdicts) else None)
        demand(verdicts, hint)
        if not isinstance(draft, PartedDraft):
            with self.stage("Replaying the method", None):
                self.replays = replay_methods(published, draft.table.records, self.policy, draft.plan.facts)
            demand_uncertain(self.replays, self.policy)
        self.seconds["verify"] = perf_counter() - started
        return verdicts


def losses(draft: Draft, policy: Policy) -> dict[str, float]:
    """What generalisation and left-out terms cost; nothing for decoys, whose cost is in the estimates."""
    if draft.figures is not None:
        return dict(draft.figures)
    if draft.plan.records is None:
        return {}
    from noren.metrics.general import view_of

    view = view_of(draft.plan.records, draft.plan)
    more = term_losses(draft.plan.records, draft.plan, draft.overall(), view, policy.require)
    return losses_of(view) | more
