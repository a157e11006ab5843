"""What a reproduction is made of: a paper has figures, a figure makes claims, a run answers every one of them.

A figure's function computes on a `Bench` and returns a `Result`: sheets (what becomes CSV), pictures, and one answer
per claim. The verdict of an answer is computed from the measured numbers, so another table may give another verdict.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from noren_papers.claims import Answer, typical

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from noren_papers.datasets import Used

T = TypeVar("T")
ROUNDING = 1e-9


@dataclass(frozen=True)
class Gain:
    """Ours over the paper's proposal in one respect: below 1 is better, over all points where both have a value.

    reason: why ours loses where it does, and what was tried.
    """

    what: str
    typical: float
    better: int
    points: int
    worst: float
    place: str
    reason: str = ""

    def __str__(self) -> str:
        """The gain as a sentence."""
        return (
            f"{self.what[0].upper()}{self.what[1:]}: ours is {self.typical:.2f} times the other's (geometric mean), "
            f"smaller in {self.better} of {self.points}, at most {self.worst:.2f} times ({self.place})."
        )

    @classmethod
    def of(cls, what: str, ratios: Mapping[str, float], reason: str = "") -> tuple[Gain, ...]:
        """One gain from the ratios by place, or none where nothing can be compared. A reason is kept if ours loses."""
        found = {place: float(ratio) for place, ratio in ratios.items() if 0 < ratio < inf}
        if not found:
            return ()
        place = max(found, key=found.__getitem__)
        middle = typical(found.values())
        lost = any(ratio > 1 + ROUNDING for ratio in found.values())
        better = sum(ratio < 1 - ROUNDING for ratio in found.values())
        return (cls(what, middle, better, len(found), found[place], place, reason if lost else ""),)

    @classmethod
    def over(
        cls, what: str, sheet: pl.DataFrame, keys: Sequence[str], ours: str, theirs: str | Sequence[str], value: str,
        reason: str = "", *, series: str = "series", lost: bool = False,
    ) -> tuple[Gain, ...]:  # fmt: skip
        """One series of a sheet over another, or over the smallest of several, place by place.

        lost: what is missing from 1 is compared.
        """
        return cls.of(what, ratios(sheet, keys, ours, theirs, value, series=series, lost=lost), reason)


def ratios(
    sheet: pl.DataFrame, keys: Sequence[str], one: str, others: str | Sequence[str], value: str, *,
    series: str = "series", lost: bool = False,
) -> dict[str, float]:  # fmt: skip
    """What `Gain.over` compares: by place, where both have a value and the other's is above 0."""
    found: dict[str, float] = {}
    at: dict[tuple[Any, ...], dict[str, float]] = {}
    for *place, name, number in sheet.select(*keys, series, value).drop_nulls(value).iter_rows():
        at.setdefault(tuple(place), {})[name] = 1 - number if lost else number
    rivals = [others] if isinstance(others, str) else others
    for key, values in at.items():
        least = min((values[other] for other in rivals if other in values), default=0.0)
        if one in values and least > 0:
            found[name_place(keys, key)] = values[one] / least
    return found


def name_place(keys: Sequence[str], place: Sequence[Any]) -> str:
    """A place in words: texts as they are, numbers with the name of their key."""
    named = zip(keys, place, strict=True)
    return " ".join(one if isinstance(one, str) else f"{key} = {one}" for key, one in named)


@dataclass(frozen=True)
class Result:
    """Everything one figure gives.

    sheets: name -> frame in long form; "" is the figure's own. pictures: name -> Altair chart; "" is the figure's own.
    answers: one per claim of the figure, by its key. gains: what ours gains over the paper's proposal, as ratios. ours:
    the same in words, which follow from the gains where there are some. ours_series: how those lines are called in the
    sheets.
    """

    sheets: Mapping[str, pl.DataFrame]
    pictures: Mapping[str, Any]
    answers: Mapping[str, Answer]
    ours_series: tuple[str, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    gains: tuple[Gain, ...] = ()
    more: str = ""
    """What ours adds and no ratio tells."""

    @property
    def ours(self) -> str:
        """What this project adds to the figure and what it gains, in words with numbers."""
        return " ".join(text for text in (*map(str, self.gains), self.more) if text)


@dataclass(frozen=True)
class Figure:
    """One figure or table of a paper: what it shows, what the paper says it shows, how to make it.

    claims: key -> the claim in our own words. data: names of the tables it needs (see `datasets`).
    """

    key: str
    title: str
    claims: Mapping[str, str]
    compute: Callable[[Bench], Result]
    data: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.key if self.key.startswith("table") else f"figure-{self.key}"

    @property
    def heading(self) -> str:
        name = self.name if self.key[0].isdigit() else self.key
        return name.replace("-", " ").capitalize()


@dataclass(frozen=True)
class Paper:
    """A paper, how it is called on the command line, and its figures in order."""

    key: str
    number: str
    title: str
    source: str
    figures: tuple[Figure, ...]

    def figure(self, key: str) -> Figure | None:
        wanted = key.lower().removeprefix("figure").removeprefix("fig").strip(" .-_").replace(" ", "-")
        return next((figure for figure in self.figures if figure.key == wanted), None)


def clocked(work: Callable[[], object], rounds: int = 1) -> tuple[float, float]:
    """CPU seconds of all threads and seconds by the clock, the best of some rounds: other work only adds."""
    found = []
    for _ in range(rounds):
        spent, started = time.process_time(), time.perf_counter()
        work()
        found.append((time.process_time() - spent, time.perf_counter() - started))
    return min(found)


class Bench:
    """Where a figure is computed: its tables, its randomness, how thorough to be, how far it is."""

    def __init__(
        self,
        folder: Path | None,
        *,
        quick: bool,
        seed: str,
        advance: Callable[..., None] | None = None,
        shelf: dict[Any, Any] | None = None,
    ) -> None:
        self.folder = folder
        self.quick = quick
        self.used: dict[str, Used] = {}
        self._seed = seed
        self._advance = advance
        self._planned = 0
        self._shelf = {} if shelf is None else shelf

    def pick(self, full: T, quick: T) -> T:
        """The first in a full run, the second in a quick one."""
        return quick if self.quick else full

    def rng(self, name: str = "") -> np.random.Generator:
        """Reproducible randomness for queries, samples and stand-ins. Never for decoys: releases draw their own."""
        import numpy as np

        digest = hashlib.sha256(f"{self._seed}/{name}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def table(self, name: str, *, rows: int | None = None) -> pl.DataFrame:
        """A table by name, all columns as text; a stand-in is generated where its file is missing.

        rows: at most so many, the first of the file. What was read is noted for the summary.
        """
        from noren_papers.datasets import load

        frame, used = self.shared(("table", name, rows), lambda: load(name, self.folder, rows=rows))
        self.used[name if rows is None else f"{name}[:{rows}]"] = used
        return frame

    def hierarchy_rows(self, column: str) -> list[list[str]]:
        """Adult's generalisation hierarchy of a column, leaf first, from the folder or the stand-in."""
        from noren_papers.datasets import adult_hierarchy

        rows, used = self.shared(("hierarchy", column), lambda: adult_hierarchy(column, self.folder))
        self.used[f"adult hierarchy {column}"] = used
        return rows

    def note(self, used: Used) -> None:
        """A table that a figure generated for itself."""
        self.used[used.name] = used

    def shared(self, key: Any, make: Callable[[], T]) -> T:
        """What several figures of one run need is made once. What goes in must not be changed afterwards."""
        if key not in self._shelf:
            self._shelf[key] = make()
        out: T = self._shelf[key]
        return out

    def sweep(
        self, settings: Iterable[Mapping[str, Any]], measure: Callable[..., Iterable[Mapping[str, Any]]], **kinds: Any
    ) -> pl.DataFrame:
        """Measure every setting: the lines that `measure(**setting)` gives, after the setting's own columns.

        kinds: types of columns that may be empty. A setting is one step of the figure.
        """
        import polars as pl

        def named(setting: Mapping[str, Any]) -> str:
            return ", ".join(f"{name} = {value}" for name, value in setting.items())

        rows = [{**one, **line} for one in self.each(settings, named) for line in measure(**one)]
        return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)

    def each(self, items: Iterable[T], name: Callable[[T], str] = str) -> Iterator[T]:
        """The items one after another, each a step of the figure by its name. Loops inside loops add their steps."""
        asked = list(items)
        self._planned += len(asked)
        advance = self._advance or (lambda done, **told: None)
        advance(0, total=self._planned)
        for one in asked:
            yield one
            advance(1, note=name(one))
