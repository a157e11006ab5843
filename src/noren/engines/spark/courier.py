"""What tasks say to the driver, as bytes. They are pickles, of Spark's own serializer, which runs what it reads.

Spark carries functions, broadcasts and results between its processes the same way, so whoever can forge an answer runs
code on the driver already. Nothing is ever read from a file, or from anybody but a task of this run. The one file of
this engine that unpickles: `tests/contracts/test_pins.py` names it.
"""

from __future__ import annotations

from typing import Any


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
