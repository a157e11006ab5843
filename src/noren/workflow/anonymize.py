"""Makes a verified release from a table and a policy: prepare, plan, draft, apply and shuffle, verify, rename.

The source is read to count, to compare columns on some records, and to publish; once more where generalised values
stand beside columns that pass as they are. Nothing is published unless the independent verification of what was
written holds; the directory appears under its name complete or not at all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren import __version__
from noren.engines import Engine, Plan, Table, TermSearch
from noren.engines.engine import Written
from noren.errors import DataError, NorenError, PolicyError, Problem, ReleaseError
from noren.models.verdict import Verdict
from noren.policy.options import Margin
from noren.policy.policy import Policy
from noren.progress import Meter, Stage, quiet
from noren.release.manifest import MOST_MARGIN_CELLS, Manifest, PublishedMargin, UsedMethod, VerdictEntry
from noren.release.package import (
    FileFormat,
    Recording,
    Staged,
    refuse_existing,
    stage_release,
    write_cells,
    write_descriptor,
)
from noren.release.published import Published
from noren.release.release import Release
from noren.release.set_tally import SetTally
from noren.release.store import MemoryStore, Part, PeopleStore, Store, store_for, with_sides, write_sides
from noren.schema.column import Column
from noren.secret import Keystream, SigningKey
from noren.secret.signing import signing_key
from noren.sources.place import Place, Spot, place_of
from noren.statements import CellBatch, Design, Statement, batch_length, concat
from noren.statements.batch import PERSON
from noren.workflow.dependence import demand_independence
from noren.workflow.draft import Draft
from noren.workflow.losses import losses_of, term_losses
from noren.workflow.mechanism import INSTEAD, Replayed, demand_bounded, demand_uncertain, guarded_rules, replay_methods
from noren.workflow.over_rows import advice
from noren.workflow.prepare import prepare, read_policy, remarks
from noren.workflow.republish import Registers
from noren.workflow.settling import judge_draft, settle_draft
from noren.workflow.verify import demand


@dataclass(frozen=True)
class HolderFacts:
    """Facts about a run that only the holder may know; they are never written into a release."""

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
    """What generalisation and suppressed terms cost, by metric; empty for decoys."""
    replays: Sequence[Replayed] = ()
    """What somebody learns who replays the method, for every secret that classes protect."""

    @property
    def dropped(self) -> int:
        """Return the number of records dropped because of missing values."""
        return self.table.profile.dropped

    @property
    def columns(self) -> Mapping[str, Column]:
        return {**self.table.columns, **self.plan.columns}

    @property
    def designs(self) -> Mapping[str, Design]:
        return self.plan.designs

    @property
    def terms(self) -> Sequence[TermSearch]:
        """Return the quality of the term suppression, per knowledge table."""
        return self.plan.searches


@dataclass(frozen=True)
class Outcome:
    """A release, and the facts that are for the holder only."""

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


def preview(data: Any, policy: Policy | str | Path, *, engine: str | Engine | None = None, stage: Stage = quiet) -> str:
    """Summarise what recipients could ask, and how precisely. Nothing is kept, and no secret is used."""
    given = read_policy(policy)
    fresh = given.model_copy(update={"randomness": type(given.randomness)()})
    return run(data, fresh, engine=engine, stage=stage).release.describe()


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
    """Run `anonymize` and return the release together with the holder's facts."""
    policy, target, key = read_policy(policy), read_target(to, file_format), read_signing_key(sign, to)
    demand_bounded(policy)
    registers, clock = Registers(policy, secret), Clock()
    with clock("read and count"):
        table = registers.recall(prepare(data, policy, engine, stage=stage), policy)
    with clock("decide"):
        draft = settle_draft(table, policy, stage=stage, stream=registers.stream, key=registers.key)
        with stage("Columns that disclose each other", None):
            demand_independence(draft, policy)
        demand_rows(draft, policy)
        demand_margins(draft, policy)
        notes = (*table.source.notes, *remarks(table, policy), *draft.notes, *registers.check(draft, policy))
    losses = measure_losses(draft, policy)
    memoised = registers.stream is not None and bool(draft.designs)
    with make_room(target, registers.recording) as there:
        cells = write_draft(draft, there, file_format, stage, clock)
        with clock("verify"):
            verdicts = demand_verdicts(draft, cells, policy, stage)
            replays = demand_replays(draft, cells, policy, stage)
        with stage("Counting margins", None) if policy.margins else nullcontext():
            margins = noised_margins(draft, policy)
        published, alone = draft.as_published(cells.store, cells.columns), cells.people is None
        manifest = make_manifest(policy, published, verdicts, memoised, alone, draft.plan.facts, margins)
        if there is not None:
            write_descriptor(there.work, there.holds(cells.files, cells.parts), manifest, key, cells.parts)
    data = [] if there is None or target is None else [target / name for name in there.data]
    release = Release(manifest, store_for(data[0], True, *data[1:]) if data else cells.store, target)
    facts = HolderFacts(
        table=table,
        plan=draft.plan,
        records=draft.records,
        suppressed=draft.suppressed,
        verdicts=verdicts,
        memoised=memoised,
        notes=notes,
        seconds=clock.seconds,
        losses=losses,
        replays=replays,
    )
    return Outcome(release, facts)


# ---------------------------------------------------------------------- before any work


def read_target(to: str | Path | Place | None, file_format: FileFormat) -> Spot | None:
    """Return where a release is written, which must not exist; None for memory."""
    target = None if to is None else place_of(to)
    if target is not None:
        refuse_existing(target)
    if isinstance(target, Place) and file_format != "parquet":
        raise ReleaseError(
            f"{target}: releases in a store are written as Parquet.", hint="Give a directory, or do not set the format."
        )
    return target


def read_signing_key(sign: SigningKey | str | Path | None, to: str | Path | Place | None) -> SigningKey | None:
    """Return the signing key of a release that is written."""
    if sign is not None and to is None:
        message = "a release in memory cannot be signed, because it has no descriptor."
        raise ReleaseError(
            message, hint="Give to=..., or sign the release when you save it: release.save(..., sign=...)."
        )
    return None if sign is None else signing_key(sign)


class Clock:
    """Measures the time of every step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started = perf_counter()
        yield
        self.seconds[step] = perf_counter() - started


# ---------------------------------------------------------------------- apply, scatter, write


@dataclass(frozen=True)
class WrittenCells:
    """The cells of a draft in random order, and their location."""

    store: Store
    columns: tuple[Statement, ...]
    """The columns as they were written."""
    read: tuple[Statement, ...]
    """The columns as a reader meets them."""
    people: NDArray[np.int64] | None = None
    """Whose row each is, where people have several."""
    files: tuple[Spot, ...] = ()
    parts: tuple[Part, ...] = ()

    def for_checks(self, draft: Draft) -> Published:
        """Return the published table for the checks, with the person of each row."""
        return draft.as_published(
            self.store if self.people is None else PeopleStore(self.store, self.people), self.read
        )


@contextmanager
def make_room(target: Spot | None, recording: Recording) -> Iterator[Staged | None]:
    """Yield a place beside the target that becomes it at the end, inside `recording`; None for memory."""
    if target is not None:
        with stage_release(target, recording) as there:
            yield there
        return
    yield None
    with recording(lambda: False):
        pass


def write_draft(
    draft: Draft, there: Staged | None, file_format: FileFormat, stage: Stage, clock: Clock
) -> WrittenCells:
    """Make the cells of a draft, shuffle them and write them, in memory or to files."""
    people: list[NDArray[np.int64]] = []
    if there is None:
        cells = concat(list(shuffle_cells(draft, None, None, people, stage, clock)))
        return WrittenCells(MemoryStore(cells), draft.statements, draft.statements, _join_people(people))
    made = write_elsewhere(draft, there.cells, stage, clock) if file_format == "parquet" else None
    if made is None:
        tally = SetTally(draft.statements) if file_format == "parquet" else None
        with tempfile.TemporaryDirectory(prefix="buckets-", dir=there.work) as buckets:
            shuffled = shuffle_cells(draft, tally, Path(buckets), people, stage, clock)
            with clock("shuffle and write"):
                path, rows, columns = write_cells(there.work, draft.statements, shuffled, file_format, tally)
        made = Written((path,), (), rows, columns)
    if made.rows != draft.rows:
        raise NorenError(f"{made.rows} rows were written instead of {draft.rows}; nothing is published.")
    data, *more = made.files
    write_sides(there.work, made.columns, data.suffix)
    read = tuple(with_sides(there.work, made.columns, data.suffix))
    return WrittenCells(store_for(data, True, *more), made.columns, read, _join_people(people), made.files, made.parts)


def shuffle_cells(
    draft: Draft,
    tally: SetTally | None,
    folder: Path | None,
    people: list[NDArray[np.int64]],
    stage: Stage,
    clock: Clock,
) -> Iterator[CellBatch]:
    """Make all cells, pass them to a tally, and return them in a uniformly random order. The person of each row is
    passed to `people`."""
    table, reading = draft.table, draft.reading
    with clock("read and encode"), stage("Drawing decoys" if draft.designs else "Writing records", table.n) as meter:
        whole = bool(reading.columns)
        made = table.engine.apply(table.source, reading, draft, meter=meter) if whole else draft.make_cells(meter)
        cells = made if tally is None else map(tally.number_sets, made)
        shuffled = table.engine.scatter(cells, draft.rows, Keystream(), folder)
    draft.demand_heads()
    if draft.designs:
        clock.seconds["draw decoys"] = draft.seconds
        clock.seconds["read and encode"] -= draft.seconds
    return separate_people(
        shuffled, people, stage("Shuffling" if folder is None else "Shuffling and writing", draft.rows)
    )


def separate_people(
    batches: Iterable[CellBatch], people: list[NDArray[np.int64]], metered: AbstractContextManager[Meter]
) -> Iterator[CellBatch]:
    """Yield the cells, and pass the person of each row to `people`."""
    with metered as meter:
        for batch in batches:
            if PERSON in batch:
                people.append(batch[PERSON].data)  # type: ignore[attr-defined]
            yield {name: cells for name, cells in batch.items() if name != PERSON}
            meter(batch_length(batch))


def _join_people(people: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    return np.concatenate(people) if people else None


def write_elsewhere(draft: Draft, folder: Spot, stage: Stage, clock: Clock) -> Written | None:
    """Write the data files on the cluster, if the engine is distributed."""
    table, started = draft.table, perf_counter()
    with stage("Drawing decoys" if draft.designs else "Writing records", None):
        made = table.engine.written(table.source, draft.reading, draft, draft.rows, draft.statements, folder)
    if made is not None:
        draft.demand_heads()
        clock.seconds["draw, shuffle and write"] = perf_counter() - started
    return made


# ---------------------------------------------------------------------- judge


def demand_verdicts(draft: Draft, cells: WrittenCells, policy: Policy, stage: Stage) -> list[Verdict]:
    """Return the verdicts on the written release; raise if a requirement does not hold."""
    with stage("Verifying", draft.rows) as meter:
        verdicts = judge_draft(draft, cells.for_checks(draft), policy, meter)
    hint = advice(verdicts)
    if hint is None and any(model.of_mechanism for model in policy.require):
        hint = INSTEAD if all(v.holds or v.basis == "the original" for v in verdicts) else None
    demand(verdicts, hint)
    return verdicts


def demand_replays(draft: Draft, cells: WrittenCells, policy: Policy, stage: Stage) -> list[Replayed]:
    """Return what replaying the method discloses; raise if a secret would be certain."""
    if not guarded_rules(policy, draft.plan.facts):
        return []
    with stage("Replaying the method", None):
        replays = replay_methods(cells.for_checks(draft), draft.table.records, policy, draft.plan.facts)
    demand_uncertain(replays, policy)
    return replays


def measure_losses(draft: Draft, policy: Policy) -> dict[str, float]:
    """Return the losses by generalisation and suppressed terms; none for decoys, whose loss is in the estimates."""
    if draft.plan.records is None:
        return {}
    from noren.metrics.general import view_of

    view = view_of(draft.plan.records, draft.plan)
    more = term_losses(draft.plan.records, draft.plan, draft.overall(), view, policy.require)
    return losses_of(view) | more


def make_manifest(
    policy: Policy,
    published: Published,
    verdicts: list[Verdict],
    memoised: bool,
    rows_are_people: bool = True,
    facts: Mapping[str, int | str] | None = None,
    margins: tuple[PublishedMargin, ...] = (),
) -> Manifest:
    """Make the manifest from its allow-list. A verdict based on the original publishes no figure."""
    mixed = len(policy.methods) > 1
    return Manifest(
        noren=__version__,
        title=policy.title,
        records=published.records,
        suppressed=published.suppressed,
        rows_are_people=rows_are_people,
        most_rows=None if rows_are_people else policy.people.most_rows,
        sample=policy.sample.share,
        weight=policy.weight,
        margins=margins,
        columns=published.statements,
        requirements=tuple(model.model_dump(mode="json") for model in policy.require),
        methods=tuple(
            UsedMethod(
                name=part.method.name,
                on=part.columns if mixed else (),
                **(facts or {} if part.method.forms_classes else {}),
            )
            for part in policy.parts
        ),
        randomness="memoised" if memoised else "fresh",
        mechanism="ignored" if policy.mechanism == "ignored" else None,
        verdicts=tuple(
            VerdictEntry(
                model=v.model,
                column=v.column,
                required=v.required,
                achieved=None if v.basis == "the original" else v.achieved,
                holds=v.holds is True,
                basis=v.basis,
            )
            for v in verdicts
        ),
    )


# ---------------------------------------------------------------------- noised margins


def with_more(people: NDArray[np.int64] | None, most: int) -> int:
    """Return how many people have more rows than this; 0 if every row is a different person."""
    return 0 if people is None else int((np.bincount(people) > most).sum())


def demand_rows(draft: Draft, policy: Policy) -> None:
    """Refuse a release in which somebody has more rows than the policy declares, because every error would be too
    small."""
    most, people = policy.people.most_rows, draft.table.people
    if most is None or people is None:
        return
    if many := with_more(people[draft.keep], most):
        whose = "1 person has" if many == 1 else f"{many:,} people have"
        raise DataError(
            f"{draft.table.name}: {whose} more rows than [people] most_rows = {most} permits.",
            hint="Raise most_rows to a number known without this table, or remove rows of people who have more.",
        )


def noised_margins(draft: Draft, policy: Policy) -> tuple[PublishedMargin, ...]:
    """Return the margins of a release, each with noise for its own epsilon."""
    if not policy.margins:
        return ()
    from noren.designs.central import noised

    demand_margins(draft, policy)
    return tuple(
        PublishedMargin(
            of=margin.of,
            epsilon=margin.epsilon,
            sensitivity=margin.sensitivity,
            counts=tuple(noised(counts, margin.sensitivity, margin.epsilon).ravel().tolist()),
        )
        for margin, counts in zip(policy.margins, _count_margins(draft, policy.margins), strict=True)
    )


def demand_margins(draft: Draft, policy: Policy) -> None:
    """Refuse margins that the noise would not protect, or that no estimate could use."""
    problems = []
    for number, margin in enumerate(policy.margins, 1):
        where = f"margins[{number}]"
        for name in margin.of:
            statement = draft.by_name[name]
            if statement.column.is_open or not (statement.is_exact or statement.design is not None):
                message = f"{name!r} is {statement.words}, so its values are not listed in the release."
                hint = "Choose columns that are drawn or published exactly."
                problems.append(Problem(f"{where}.of", message, hint))
        if problems:
            continue
        cells = prod(draft.by_name[name].d for name in margin.of)
        if cells > MOST_MARGIN_CELLS:
            message = f"{' x '.join(margin.of)} has {cells:,} cells, more than {MOST_MARGIN_CELLS:,}."
            problems.append(Problem(f"{where}.of", message, "Name fewer columns."))
        if many := with_more(draft.table.people, margin.rows):
            message = f"{many:,} people have more than rows = {margin.rows} rows."
            problems.append(Problem(f"{where}.rows", message, "Raise rows, or remove rows of these people."))
    if policy.margins and draft.suppressed:
        message = (
            "people were suppressed to protect the others, so noise cannot hide one person's contribution to the "
            "margins."
        )
        problems.append(Problem("margins", message, "Set suppression = 0, or publish no margins."))
    if problems:
        raise PolicyError(problems, source=policy.source)


def _count_margins(draft: Draft, margins: tuple[Margin, ...]) -> list[NDArray[np.int64]]:
    """Return the exact counts, which leave this module only with noise."""
    out = []
    for margin in margins:
        shape = tuple(draft.by_name[name].d for name in margin.of)
        rows, times = draft.table.histogram(margin.of)
        values = {name: draft.table.columns[name].domain.values for name in margin.of}
        places = [draft.published_codes(name, values[name])[rows[:, j]] for j, name in enumerate(margin.of)]
        counts = np.bincount(np.ravel_multi_index(tuple(places), shape), times, prod(shape))
        out.append(counts.astype(np.int64).reshape(shape))
    return out
