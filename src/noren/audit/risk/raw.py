"""The table as an adversary with the exact data would see it: raw values as numbers, nothing binned, nothing merged.

Texts that write the same value are one value (160.0 and 160); missing cells equal each other, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError, suggest_columns
from noren.schema.column import Column
from noren.schema.kinds import CALENDAR, NUMERIC, Kind, as_number, reader, sniff
from noren.sources.source import Source
from noren.statements.encode import as_dictionary


@dataclass(frozen=True)
class RawColumn:
    """One column of all rows."""

    name: str
    codes: NDArray[np.int64]
    """(n,) which value; a missing cell has a code of its own."""
    d: int
    """Different values, a missing one among them."""
    missing: int
    kind: Kind
    numbers: NDArray[np.float64] | None = None
    """(n,) where the values stand on a line, not a number where they are missing; None for texts."""


@dataclass(frozen=True)
class RawTable:
    """All rows, and whose they are."""

    name: str
    n: int
    columns: tuple[RawColumn, ...]
    people: NDArray[np.int64] | None = None
    """(n,) the number of every row's person; None where every row is a person of its own."""
    households: NDArray[np.int64] | None = None

    @property
    def persons(self) -> int:
        """How many people there are."""
        return self.n if self.people is None else int(self.people.max()) + 1

    def person_of(self, rows: NDArray[np.bool_]) -> int:
        """How many people have one of these rows."""
        return int(rows.sum()) if self.people is None else len(np.unique(self.people[rows]))


def read_raw(
    source: Source,
    names: Sequence[str],
    declared: Mapping[str, Column],
    people_key: Sequence[str] = (),
    household: str | None = None,
    decimal: str | None = None,
) -> RawTable:
    """Read some columns, the key of people and the household. All other columns stay unread."""
    wanted = list(dict.fromkeys([*names, *people_key, *([household] if household else [])]))
    absent = [name for name in wanted if name not in source.columns]
    if absent:
        raise DataError(
            f"{source.name}: there is no column {', '.join(map(repr, absent))}.",
            hint=suggest_columns(wanted, source.columns),
        )
    parts: dict[str, list[tuple[Any, NDArray]]] = {name: [] for name in wanted}
    for batch in source.batches(wanted):
        for name in wanted:
            parts[name].append(as_dictionary(batch.column(name), name))
    n = sum(len(places) for _, places in parts[wanted[0]]) if wanted else 0
    if not n:
        raise DataError(f"{source.name}: it has a header but no rows.", hint="Give a table with at least one record.")
    columns = tuple(_column(name, parts[name], declared.get(name), decimal) for name in names)
    return RawTable(
        source.name,
        n,
        columns,
        _numbered([parts[name] for name in people_key], "person") if people_key else None,
        _numbered([parts[household]], "household") if household else None,
    )


def _texts(parts: Sequence[tuple[Any, NDArray]]) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct texts of a whole column, and every row's; -1 where it is missing."""
    known: dict[str, int] = {}
    found = []
    for texts, places in parts:
        table = np.array([*(known.setdefault(text, len(known)) for text in texts.to_pylist()), -1], np.int64)
        found.append(table[places])
    return list(known), np.concatenate(found)


def _column(name: str, parts: Sequence[tuple[Any, NDArray]], declared: Column | None, decimal: str | None) -> RawColumn:
    texts, places = _texts(parts)
    mark = (declared.decimal if declared is not None else None) or decimal
    present = np.bincount(places[places >= 0], minlength=len(texts)) > 0
    seen = [text for text, there in zip(texts, present.tolist(), strict=True) if there]
    sniffed = sniff(seen, mark)
    kind = "string" if declared is not None and declared.kind == "text" else sniffed.kind
    read = reader(kind, sniffed.format)
    values: dict[str, int] = {}
    table = np.full(len(texts) + 1, -1, np.int64)
    for at, text in enumerate(texts):
        if present[at]:
            table[at] = values.setdefault(read(text) or text, len(values))
    codes = table[places]
    gone = codes < 0
    d = len(values) + bool(gone.any())
    codes[gone] = d - 1
    numbers = None
    if kind in (*NUMERIC, *CALENDAR):
        line = np.array([*(as_number(value, kind) for value in values), np.nan])
        numbers = line[np.where(gone, len(values), codes)]
    return RawColumn(name, codes, d, int(gone.sum()), kind, numbers)


def _numbered(columns: Sequence[Sequence[tuple[Any, NDArray]]], what: str) -> NDArray[np.int64]:
    """The number of every row's person or household, from 0 on."""
    key: NDArray[np.int64] | None = None
    for parts in columns:
        texts, places = _texts(parts)
        if (places < 0).any():
            raise DataError(f"the key of a {what} is missing in some records.", hint=f"Every {what} needs one.")
        key = places if key is None else key * len(texts) + places
        key = np.unique(key, return_inverse=True)[1].reshape(-1)
    assert key is not None
    return key.astype(np.int64)
