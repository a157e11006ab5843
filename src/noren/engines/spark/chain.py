"""A partition read as the whole table is: the same markers, terms, tuples and sample, over the rows of one task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from noren.engines.spark.files import Files, Sent
from noren.sources.arrow import blank
from noren.sources.source import Derived, Place, Source


@dataclass
class PartSource:
    """The rows of one task. They can be read once."""

    name: str
    columns: tuple[str, ...]
    read: tuple[str, ...] = ()
    """The columns that the task gets, in their order."""
    missing_values: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    feed: Iterable[Any] = ()
    asked: list[str] = field(default_factory=list)
    """Which columns were asked for."""

    @property
    def rows(self) -> int | None:
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        self.asked = list(columns)
        for batch in self.feed:
            named = pa.RecordBatch.from_arrays(batch.columns, list(self.read))
            yield blank(named.select(list(columns)), self.missing_values)


def base_of(source: Source) -> Source:
    """The source that others are made of."""
    while hasattr(source, "inner"):
        source = source.inner
    return source


def over(source: Any, part: Source, place: Place) -> Source:
    """The source, made of another part of what it is made of."""
    if not hasattr(source, "inner"):
        return part
    derived: Derived = source
    return derived.over(over(derived.inner, part, place), place)


def carries_keys(source: Any) -> bool:
    """Whether a key is part of how the source is read."""
    return hasattr(source, "inner") and (getattr(source, "carries_keys", False) or carries_keys(source.inner))


@dataclass(frozen=True)
class Chain:
    """How to read a partition; may travel."""

    top: Source
    read: tuple[str, ...]
    """The columns that a task needs."""
    starts: tuple[int, ...] = ()
    """How many records come before every partition, where that is known, and how many there are."""

    files: Files | Sent | None = None
    """Where a task reads its rows itself, from what."""

    @classmethod
    def of(cls, source: Source, columns: Sequence[str], starts: Sequence[int] = ()) -> Chain:
        base: Any = base_of(source)
        empty = PartSource(base.name, base.columns, base.columns, base.missing_values)
        top = over(source, empty, Place())
        list(top.batches(list(columns)))
        bare = over(source, PartSource(base.name, base.columns, (), base.missing_values), Place())
        return cls(bare, tuple(empty.asked), tuple(starts), base.files)

    def place(self, number: int) -> Place:
        return Place(number, self.starts[number], self.starts[number + 1]) if self.starts else Place(number)

    def source(self, number: int, feed: Iterable[Any]) -> Source:
        """The source of one partition, fed with its rows."""
        base: Any = base_of(self.top)
        if self.files is not None:
            feed = self.files.rows(number, feed, self.read)
        part = PartSource(base.name, base.columns, self.read, base.missing_values, feed=feed)
        return over(self.top, part, self.place(number))
