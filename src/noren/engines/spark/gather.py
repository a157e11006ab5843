"""What many tasks say, put together on the cluster before the driver hears it.

Every task counts values, or the values of every part; ten thousand such answers are more than a driver takes in. So
they are put together in lots of neighbours first, as many lots as each has answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from math import isqrt
from typing import Any

from noren.engines.spark.courier import received, sent
from noren.engines.spark.guard import guarded

AT_ONCE = 64
"""Answers that the driver takes in as they are."""


@dataclass(frozen=True)
class Merge:
    """The answers of a lot of tasks, in their order, as one."""

    put: Callable[[Any, Any], Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        lot, whole = None, None
        for batch in batches:
            for row in batch.to_pylist():
                said = received(row["payload"])
                if row["lot"] == lot:
                    whole = self.put(whole, said)
                    continue
                if lot is not None:
                    yield _row(lot, whole)
                lot, whole = row["lot"], said
        if lot is not None:
            yield _row(lot, whole)


def _row(lot: int, whole: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([lot], pa.int64()), pa.array([sent(whole)])], ["lot", "payload"])


def gathered(frame: Any, tasks: int, put: Callable[[Any, Any], Any]) -> Any:
    """What all tasks say that a frame of payloads has, put together in their order; None where nobody says anything."""
    from pyspark.sql import functions as f

    if tasks <= AT_ONCE:
        rows = frame.collect()
    else:
        lots = isqrt(tasks - 1) + 1
        lot = f.expr(f"spark_partition_id() * {lots}L div {tasks}").alias("lot")
        placed = frame.select(lot, f.spark_partition_id().alias("number"), "payload").repartition(lots, "lot")
        ordered = placed.sortWithinPartitions("lot", "number")
        merged = ordered.mapInArrow(guarded(Merge(put)), "lot long, payload binary").collect()
        rows = sorted(merged, key=lambda row: row.lot)
    said = [received(row.payload) for row in rows]
    return reduce(put, said) if said else None
