"""Engines, which do the work, and what methods and engines share: the original as an engine holds it, and the plan.

The registry is explicit: one line per engine, and nobody else makes one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noren.engines.engine import CodeBatch, Engine, Profile, Reading, ValueCounts
from noren.engines.plan import Average, Change, Draw, Drop, Group, Omit, Pass, Plan, Recode, TermSearch, Treatment
from noren.engines.records import RandomOrder, Records, TermRecords
from noren.engines.table import Table
from noren.errors import QueryError


def _local() -> Engine:
    from noren.engines.local import LocalEngine

    return LocalEngine()


def _spark() -> Engine:
    from noren.engines.spark import SparkEngine

    return SparkEngine()


ENGINES: dict[str, Callable[[], Engine]] = {"local": _local, "spark": _spark}


def engine_for(data: Any = None, engine: str | Engine | None = None) -> Engine:
    """Return the given or named engine, or the one that the table needs."""
    if engine is not None and not isinstance(engine, str):
        return engine
    name = engine or ("spark" if type(data).__module__.startswith("pyspark.") else "local")
    if name not in ENGINES:
        raise QueryError(f"no engine {name!r}.", hint=f"Known: {', '.join(ENGINES)}.")
    return ENGINES[name]()


__all__ = [
    "ENGINES",
    "Average",
    "Change",
    "CodeBatch",
    "Draw",
    "Drop",
    "Engine",
    "Group",
    "Omit",
    "Pass",
    "Plan",
    "Profile",
    "RandomOrder",
    "Reading",
    "Recode",
    "Records",
    "Table",
    "TermRecords",
    "TermSearch",
    "Treatment",
    "ValueCounts",
    "engine_for",
]
