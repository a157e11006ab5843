"""What tasks are, and what they say to the driver, as bytes: pickles, of Spark's own serializer, which runs what it
reads.

Spark carries functions, broadcasts and results between its processes the same way, so whoever can forge an answer runs
code on the driver already. Nothing is ever read from a file, or from anybody but a task of this run. The one file of
this engine that unpickles: `tests/contracts/test_pins.py` names it.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from noren.secret.streams import CarriedKeys

HEAVY = 1 << 18
"""Bytes from which a task travels apart from its keys. Beyond 2**20 (spark.broadcast.UDFCompressionThreshold) Spark
makes a broadcast of all that a task is, keys and all, and writes that to disks."""


def sent(said: Any) -> bytes:
    """Something as bytes."""
    from pyspark.serializers import CPickleSerializer

    return bytes(CPickleSerializer().dumps(said))


def received(content: bytes) -> Any:
    """The reverse."""
    from pyspark.serializers import CPickleSerializer

    return CPickleSerializer().loads(content)


def by_part() -> Any:
    """An accumulator of what every partition came to. A task that runs again says the same again, and counts once."""
    from pyspark.accumulators import AccumulatorParam

    class ByPart(AccumulatorParam):
        def zero(self, value: Any) -> Any:
            return {}

        def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802  the name that Spark calls
            value1.update(value2)
            return value1

    return ByPart()


@dataclass(frozen=True)
class Parted:
    """A task whose keys are with it, and all the rest in a broadcast."""

    body: Any
    kept: tuple[Any, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        yield from rejoined(self.body.value, self.kept)(batches)


def parted(task: Callable[..., Any]) -> Callable[..., Any]:
    """The task as it may travel, however many files, values and parts it knows of."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return task
    body, kept = without_keys(task)
    return task if len(body) < HEAVY else Parted(context.broadcast(body), kept)


def without_keys(task: Any) -> tuple[bytes, tuple[Any, ...]]:
    """A task as bytes without its keys, and these; what Spark itself keeps track of stays with them."""
    from pyspark import Accumulator, Broadcast
    from pyspark.cloudpickle import CloudPickler

    kept: list[Any] = []

    class Packer(CloudPickler):
        def persistent_id(self, obj: Any) -> int | None:
            if not isinstance(obj, CarriedKeys | Accumulator | Broadcast):
                return None
            kept.append(obj)
            return len(kept) - 1

    sink = io.BytesIO()
    Packer(sink).dump(task)
    return sink.getvalue(), tuple(kept)


def rejoined(body: bytes, kept: Sequence[Any]) -> Any:
    """The reverse."""

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return kept[pid]

    return Unpacker(io.BytesIO(body)).load()
