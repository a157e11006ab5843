"""What was written, judged where it lies: every task judges some files, and the judgements merge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.spark.cluster import (
    TUPLE_COPIES,
    by_part,
    demand_room,
    guarded,
    received,
    room,
    sent,
    settings,
    told,
)
from noren.engines.spark.source import payload
from noren.engines.spark.wire import Wire
from noren.models.judgement import Judgement
from noren.models.verdict import Verdict
from noren.progress import Meter, silent
from noren.release.published import Published
from noren.release.store import ParquetStore
from noren.sources.place import Spot
from noren.statements import Cells, Statement, batch_length, take

GROUPS_AT_ONCE = 16
"""Row groups that a task judges at least, where there are as many: a task costs more than reading a few."""
Parts = Sequence[tuple[Spot, tuple[int, ...]]]


def shares(store: ParquetStore, tasks: int) -> list[list[tuple[Spot, tuple[int, ...]]]]:
    """Files and row groups in so many lots of about the same size."""
    every = [(path, group) for path, groups in store.parts() for group in groups]
    lots = max(1, min(tasks, -(-len(every) // GROUPS_AT_ONCE)))
    out = []
    for number in range(lots):
        found: dict[Spot, list[int]] = {}
        for path, group in every[number * len(every) // lots : (number + 1) * len(every) // lots]:
            found.setdefault(path, []).append(group)
        out.append([(path, tuple(groups)) for path, groups in found.items()])
    return out


@dataclass(frozen=True)
class Observe:
    """The judgement of some files."""

    lots: Sequence[Parts]
    columns: Sequence[Statement]
    make: Callable[[], Judgement]

    def __call__(self, numbers: Iterator[int]) -> Iterator[bytes]:
        for number in numbers:
            judgement, rows = observed(self.lots[number], self.columns, self.make)
            yield sent((rows, judgement.parts))


def observed(lot: Parts, columns: Sequence[Statement], make: Callable[[], Judgement]) -> tuple[Judgement, int]:
    """The judgement of a lot of files, and how many rows they have."""
    judgement, rows = make(), 0
    for path, groups in lot:
        for batch in ParquetStore.part(path, groups, columns):
            judgement.observe(batch)
            rows += batch_length(batch)
    return judgement, rows


@dataclass(frozen=True)
class ObserveClasses:
    """The classes of some files, on their way to the judges of each lot of classes; what is no class goes on as is."""

    lots: Sequence[Parts]
    columns: Sequence[Statement]
    make: Callable[[], Judgement]
    judges: int
    told: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for given in batches:
            for number in given.column(0).to_pylist():
                judgement, rows = observed(self.lots[number], self.columns, self.make)
                apart = judgement.apart()
                others = [None if p in apart else part for p, part in enumerate(judgement.parts)]
                self.told.add({number: (rows, others)})
                for p in apart:
                    classes: Any = judgement.parts[p]
                    for judge, found in enumerate(classes.lots(self.judges)):
                        columns = [pa.array([judge], pa.int64()), pa.array([p], pa.int64()), pa.array([sent(found)])]
                        yield pa.RecordBatch.from_arrays(columns, ["judge", "part", "payload"])


@dataclass(frozen=True)
class JudgeClasses:
    """What checks find in a lot of whole classes."""

    make: Callable[[], Judgement]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        judgement: Judgement | None = None
        judge = -1
        for batch in batches:
            for row in batch.to_pylist():
                if judgement is not None and row["judge"] != judge:
                    yield payload(sent([judgement.found(p) for p in judgement.apart()]))
                    judgement = None
                judgement, judge = judgement or self.make(), row["judge"]
                classes: Any = judgement.parts[row["part"]]
                classes.gather(received(row["payload"]))
        if judgement is not None:
            yield payload(sent([judgement.found(p) for p in judgement.apart()]))


@dataclass(frozen=True)
class Tuples:
    """The different rows of some files, and how often each occurs."""

    lots: Sequence[Parts]
    columns: Sequence[Statement]
    wire: Wire

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for given in batches:
            for number in given.column(0).to_pylist():
                for path, groups in self.lots[number]:
                    for batch in ParquetStore.part(path, groups, self.columns):
                        rows = self.wire.packed(batch, np.zeros((batch_length(batch), 2), np.int64))
                        found = pa.Table.from_batches([rows.select(rows.schema.names[2:])])
                        counted = found.group_by(found.column_names).aggregate([([], "count_all")])
                        yield from counted.combine_chunks().to_batches()


class CountedStore(ParquetStore):
    """Cells in files that a cluster reads, counted there."""

    def __init__(self, session: Any, *paths: Spot) -> None:
        super().__init__(*paths)
        self._session = session

    def counted(self, columns: Sequence[Statement]) -> tuple[dict[str, Cells], NDArray[np.int64]]:
        """The different combinations of some columns' cells, and how many rows have each."""
        import pyarrow as pa
        from pyspark.sql import functions

        empty = take(next(self.batches(columns)), slice(0, 0))
        wire = Wire(empty)
        lots = shares(self, 4 * self._session.sparkContext.defaultParallelism)
        titles = ["row", *(f"v{i}" for i in range(len(wire.loose)))]
        schema = ", ".join([*(f"{title} binary" for title in titles), "n long"])
        wide = 8 * (len(columns) + 1)
        with settings(self._session), told():
            rows = self._session.range(0, len(lots), 1, len(lots))
            parts = rows.mapInArrow(guarded(Tuples(lots, columns, wire)), schema)
            most = room(self._session) // (TUPLE_COPIES * wide)
            counted = parts.groupBy(*titles).agg(functions.sum("n").alias("n"))
            found = counted.limit(most + 1).toArrow().combine_chunks()
        if found.num_rows > most:
            what = f"counting more than {most:,} different rows of {', '.join(column.name for column in columns)}"
            demand_room(self._session, found.num_rows * TUPLE_COPIES * wide, what, "ask for fewer columns")
        nothing = [pa.array(np.zeros(found.num_rows, np.int64))] * 2
        arrays = [*nothing, *(_one(found.column(title)) for title in titles)]
        batch = pa.RecordBatch.from_arrays(arrays, ["hi", "lo", *titles])
        return wire.unpacked(batch), found.column("n").to_numpy().astype(np.int64)


def _one(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) if column.num_chunks else pa.array([])


def judged(
    session: Any, published: Published, store: ParquetStore, make: Callable[[], Judgement], meter: Meter = silent
) -> list[Verdict]:
    """The verdicts on a table in files."""
    whole = make()
    wanted = [published.by_name[name] for name in published.columns if name in whole.needs]
    if not wanted:
        return whole.verdicts()
    context = session.sparkContext
    lots = shares(store, 4 * context.defaultParallelism)
    if whole.apart():
        return _judged_in_lots(session, whole, lots, wanted, make, meter)
    work = guarded(Observe(lots, wanted, make))
    with told():
        found = context.parallelize(range(len(lots)), len(lots)).mapPartitions(work).collect()
    for content in found:
        rows, parts = received(content)
        for own, other in zip(whole.parts, parts, strict=True):
            own.merge(other)
        meter(rows)
    return whole.verdicts()


def _judged_in_lots(
    session: Any,
    whole: Judgement,
    lots: Sequence[Parts],
    wanted: Sequence[Statement],
    make: Callable[[], Judgement],
    meter: Meter,
) -> list[Verdict]:
    """The verdicts where classes may be more than one machine holds: each is judged by one task, as a whole."""
    seen = session.sparkContext.accumulator({}, by_part())
    judges = len(lots)
    with settings(session), told():
        given = session.range(0, len(lots), 1, len(lots))
        classes = given.mapInArrow(
            guarded(ObserveClasses(lots, wanted, make, judges, seen)), "judge long, part long, payload binary"
        )
        placed = classes.repartition(judges, "judge").sortWithinPartitions("judge", "part")
        rows = placed.mapInArrow(guarded(JudgeClasses(make)), "payload binary").collect()
    for count, others in seen.value.values():
        for own, other in zip(whole.parts, others, strict=True):
            if other is not None:
                own.merge(other)
        meter(count)
    found: dict[int, list[Any]] = {}
    for row in rows:
        for one in received(row.payload):
            for number, findings in one.items():
                found.setdefault(number, []).append(findings)
    return whole.verdicts(found)
