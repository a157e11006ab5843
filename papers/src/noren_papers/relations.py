"""Claims as declarations: which series of a sheet, in which relation, over which keys.

A relation reads a sheet in long form (a line for every place and series) and gives an answer: the comparisons behind
the verdict, and a sentence made of the same numbers. Places at which one of two series has no value are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Literal, Protocol

import polars as pl

from noren_papers.base import name_place
from noren_papers.claims import (
    MUCH,
    NO_WORSE,
    Answer,
    Mean,
    Number,
    Tally,
    answer,
    any_of,
    count_alike,
    count_below,
    count_facts,
    count_trend,
    paired,
    typical,
)

Kind = Literal["below", "much below", "above", "much above", "no worse", "alike"]
READ = {
    "below": "", "above": "", "much below": "much less is at most half", "much above": "much more is at least twice",
    "no worse": "no worse is at most 25% above", "alike": "alike is within 25%",
}  # fmt: skip
MOST_NAMED = 4


class Relation(Protocol):
    """Something that a sheet answers."""

    def compare(self, sheet: pl.DataFrame) -> tuple[Tally, str]:
        """The comparisons and the sentence that tells their numbers."""


@dataclass(frozen=True)
class Compare:
    """One series against others, or against a number, at every combination of keys.

    value: the column compared. error: the column of its standard errors. each: the column of the repetitions behind it,
    where those of two series belong together. rival: several others are compared as the least or the most of them.
    apart: places of different values of these keys get a sentence each. where: lines that count.
    """

    one: str | Sequence[str]
    kind: Kind
    other: str | Sequence[str] | float
    value: str
    keys: Sequence[str]
    series: str = "series"
    error: str | None = None
    each: str | None = None
    rival: Literal["", "least", "most"] = ""
    factor: float = 1.0
    """The other counts so many times."""
    apart: Sequence[str] = ()
    where: pl.Expr | None = None
    note: str = ""
    some: bool = False
    """One place is enough."""

    def compare(self, sheet: pl.DataFrame) -> tuple[Tally, str]:
        kept = sheet if self.where is None else sheet.filter(self.where)
        parts = kept.partition_by(self.apart, maintain_order=True) if self.apart else [kept]
        tally, words = Tally(), []
        for part in parts:
            title = ", ".join(str(part[name][0]) for name in self.apart)
            for one, other, found in self._pairs(part):
                tally += self._count([pair for _, pair in found])
                words.append(f"{title}{': ' if title else ''}{self.value} of {one} {self._told(other, found)}")
        told = "; ".join(dict.fromkeys(words)) or "0 places have a value to compare"
        notes = [text for text in (READ[self.kind], self.note) if text]
        return any_of(tally) if self.some else tally, "; ".join([told, *notes])

    def _pairs(self, part: pl.DataFrame) -> Iterator[tuple[str, str, list[tuple[str, tuple[Number, Number]]]]]:
        at: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in part.to_dicts():
            if row[self.value] is not None:
                at.setdefault(tuple(row[key] for key in self.keys), {})[row[self.series]] = row
        for one in [self.one] if isinstance(self.one, str) else self.one:
            for name, others in self._rivals():
                found = []
                for place, rows in at.items():
                    known = [rows[other] for other in others if other in rows]
                    if one in rows and (known or not others):
                        found.append((name_place(self.keys, place), self._pair(rows[one], known)))
                if found:
                    yield one, name, found

    def _rivals(self) -> list[tuple[str, Sequence[str]]]:
        if isinstance(self.other, (int, float)):
            return [(f"{self.other:g}", ())]
        others = [self.other] if isinstance(self.other, str) else list(self.other)
        if self.rival:
            return [(f"the {self.rival} of {', '.join(others)}", others)]
        return [(other, (other,)) for other in others]

    def _pair(self, own: dict[str, Any], known: list[dict[str, Any]]) -> tuple[Number, Number]:
        if not known:
            assert isinstance(self.other, (int, float))
            return self._number(own), float(self.other)
        choose = max if self.rival == "most" else min
        against = choose(known, key=lambda row: row[self.value])
        if self.each is not None and own[self.each] is not None and against[self.each] is not None:
            ratio, one = paired(own[self.each], against[self.each])
            return ratio, as_float(one) * self.factor
        other = self._number(against)
        return self._number(own), other if self.factor == 1 else as_float(other) * self.factor

    def _number(self, row: dict[str, Any]) -> Number:
        error = row[self.error] if self.error is not None else None
        return Mean(float(row[self.value]), error) if error else float(row[self.value])

    def _count(self, pairs: list[tuple[Number, Number]]) -> Tally:
        if self.kind == "alike":
            return count_alike(pairs)
        turned = [(b, a) for a, b in pairs] if "above" in self.kind else pairs
        return count_below(turned, MUCH if "much" in self.kind else NO_WORSE if self.kind == "no worse" else 1.0)

    def _told(self, other: str, found: list[tuple[str, tuple[Number, Number]]]) -> str:
        sides = [(place, as_float(a), as_float(b)) for place, (a, b) in found]
        wrong = [place for place, pair in found if self._count([pair]).false]
        scaled = "that of " if self.factor == 1 else f"{self.factor:g} of that of "
        if isinstance(self.other, (int, float)):
            text = f"{span([a for _, a, _ in sides])}, beside {other}"
        else:
            text = f"{span([a / b if b else inf if a else 1.0 for _, a, b in sides])} times {scaled}{other}"
        return f"is {text}, in {counted(len(found), 'place')}" + (f", not at {listed(wrong)}" if wrong else "")


@dataclass(frozen=True)
class Along:
    """Lines that rise or fall along x; every two points of a line are compared. keys: what tells lines apart."""

    x: str
    value: str
    keys: Sequence[str]
    rising: bool = True
    error: str | None = None
    each: str | None = None
    where: pl.Expr | None = None
    note: str = ""
    sort: bool = True
    """Points are taken by x; else in the order of the sheet."""

    def compare(self, sheet: pl.DataFrame) -> tuple[Tally, str]:
        kept = sheet.filter(pl.col(self.value).is_not_null(), *([] if self.where is None else [self.where]))
        tally, words = Tally(), []
        for part in kept.partition_by(self.keys, maintain_order=True) if self.keys else [kept]:
            rows = (part.sort(self.x, maintain_order=True) if self.sort else part).to_dicts()
            line = [self._point(row) for row in rows]
            tally += count_trend(line, self.rising)
            if len(rows) > 1:
                place = name_place(self.keys, [rows[0][key] for key in self.keys])
                words.append(f"{place} {rows[0][self.value]:.3g} to {rows[-1][self.value]:.3g}".strip())
        lines = "; ".join(words) or "0 lines"
        told = f"{self.value} from the first {self.x} to the last, every two points compared: {lines}"
        return tally, "; ".join(text for text in (told, self.note) if text)

    def _point(self, row: dict[str, Any]) -> Number | Sequence[float]:
        if self.each is not None:
            return [float(value) for value in row[self.each]]
        error = row[self.error] if self.error is not None else None
        return Mean(float(row[self.value]), error or 0.0)


@dataclass(frozen=True)
class Check:
    """A condition on every line of a sheet. keys: what names a line; shown: columns whose range is told.

    where: the lines that the condition reads. only: those of them that it is asked of, if not all.
    """

    holds: pl.Expr
    keys: Sequence[str]
    shown: Sequence[str] = ()
    where: pl.Expr | None = None
    only: pl.Expr | None = None
    note: str = ""

    def compare(self, sheet: pl.DataFrame) -> tuple[Tally, str]:
        kept = (sheet if self.where is None else sheet.filter(self.where)).with_columns(self.holds.alias("holds"))
        kept = kept if self.only is None else kept.filter(self.only)
        outcomes = kept["holds"].to_list()
        wrong = [
            name_place(self.keys, place)
            for place, holds in zip(kept.select(self.keys).iter_rows(), outcomes, strict=True)
            if holds is False
        ]
        ranges = [f"{name} {span(kept[name].drop_nulls().to_list())}" for name in self.shown]
        lines = counted(len(outcomes), "place") + (f", not at {listed(wrong)}" if wrong else "")
        return count_facts(outcomes), "; ".join(text for text in (*ranges, lines, self.note) if text)


def answer_from(sheet: pl.DataFrame, *relations: Relation) -> Answer:
    """The answer of a sheet to one or several relations, taken together."""
    parts = [relation.compare(sheet) for relation in relations]
    return answer("; ".join(text for _, text in parts), *(tally for tally, _ in parts))


def as_float(number: Number) -> float:
    return number.value if isinstance(number, Mean) else float(number)


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def span(values: Sequence[float]) -> str:
    """The range of some figures, and their geometric mean where there are several."""
    clean = [value for value in values if isfinite(value)]
    endless = " and, where the other's is 0, without limit" if len(clean) < len(values) else ""
    if not clean:
        return f"nothing{endless}"
    if min(clean) == max(clean):
        return f"{clean[0]:.3g}{endless}"
    middle = typical(clean)
    mean = f" ({middle:.3g} typically)" if len(clean) > 2 and isfinite(middle) else ""
    return f"{min(clean):.3g} to {max(clean):.3g}{mean}{endless}"


def listed(words: Sequence[str], most: int = MOST_NAMED) -> str:
    """Some names, the first few of them; "none" where there is none."""
    if not words:
        return "none"
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
