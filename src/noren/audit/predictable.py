"""The attack on predictable randomness: guess the seed, redraw the decoys, and undo the shuffle.

It finds releases whose decoys or order came from an ordinary generator with a small seed, a well-liked one or the time
of day, and must fail on one that came from a keyed cipher. The obvious code runs again from every supposed seed: which
other values are drawn around a truth depends on the generator alone. The false alarm rate is stated: under a wrong seed
a published set fits the drawn decoys rarely, under the right one always. Other tests need no seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from math import comb
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case
from noren.audit.patterns import Pattern, design_pattern, order_patterns, ranked_columns
from noren.audit.sets import CERTAIN, Sets
from noren.designs import DecoyDesign
from noren.errors import QueryError
from noren.release.release import Release

KNOWN = (0, 1, 42, 123, 1234, 12345, 2, 7, 10, 13, 21, 100, 1337, 2023, 2024, 2025, 2026, 31337, 999, 5)
"""Seeds that people like."""


@dataclass(frozen=True)
class Family:
    """A random number generator and the obvious ways to use it."""

    name: str
    start: Callable[[int], Any]
    pick: Callable[[Any, int, int], Sequence[int]]
    """(generator, among how many, how many): distinct numbers."""
    order: Callable[[Any, int], NDArray[np.int64]]
    """(generator, rows): which row stands at each place."""
    copy: Callable[[Any], Any] = deepcopy
    """A generator that goes on independently from the same place."""
    slow: bool = False


def _python_order(generator: random.Random, n: int) -> NDArray[np.int64]:
    rows = list(range(n))
    generator.shuffle(rows)
    return np.array(rows, np.int64)


FAMILIES = (
    Family(
        "numpy.random.default_rng",
        np.random.default_rng,
        lambda rng, among, many: rng.choice(among, many, replace=False),
        lambda rng, n: np.asarray(rng.permutation(n)),
    ),
    Family(
        "numpy.random.RandomState",
        np.random.RandomState,
        lambda rng, among, many: rng.choice(among, many, replace=False),
        lambda rng, n: np.asarray(rng.permutation(n)),
    ),
    Family(
        "random.Random",
        random.Random,
        lambda rng, among, many: rng.sample(range(among), many),
        _python_order,
        copy,
        slow=True,
    ),
)


def draw(family: Family, generator: Any, sizes: Sequence[tuple[int, int]], records: int) -> list[NDArray[np.int64]]:
    """Draw decoys record by record, within a record column by column. sizes: (values, l) of every column."""
    out = [np.empty((records, l - 1), np.int64) for _, l in sizes]  # noqa: E741
    for record in range(records):
        for (d, l), part in zip(sizes, out, strict=True):  # noqa: E741
            part[record] = family.pick(generator, d - 1, l - 1)
    for part in out:
        part.sort(axis=1)
    return out


def truths(picked: NDArray[np.int64], sets: NDArray) -> NDArray[np.bool_]:
    """Return a (records, members) array: the members of a set that can be true if these were the decoys.

    With truth t the decoys are the picked numbers, those from t on moved up by one; the set is t and they.
    """
    members = sets.astype(np.int64)
    size = members.shape[1]
    rest = np.array([[other for other in range(size) if other != place] for place in range(size)])
    moved = picked[:, None, :] + (picked[:, None, :] >= members[:, :, None])
    return np.asarray((moved == members[:, rest]).all(axis=2))


def chance(picked_among: int, picked: int) -> float:
    """Return a bound on the probability that unrelated decoys fit a set by chance."""
    return min(1.0, (picked + 1) / comb(picked_among, picked))


def seeds(count: int, times: tuple[int, int] | None) -> Iterator[int]:
    """Return the seeds to try: popular ones, then small ones, then a range of Unix times."""
    liked = [seed for seed in KNOWN if seed]
    yield from ([0] if count else [])
    yield from liked
    yield from (seed for seed in range(1, count) if seed not in set(liked))
    if times is not None:
        yield from range(times[0], times[1] + 1)


SORTED = 4096
"""Rows whose order is looked at for every seed."""
SAFETY = 1e-3
"""The sum that an order is judged by is not quite normal; its line is drawn for a level so much smaller."""
SLOW = 1 << 20
"""Rows that the slow generator may order in all; of a longer table it orders none."""
FAST = 1 << 26
"""Rows that each of the other generators may order in all: in very long tables not every seed's order is undone."""
DEEP = 1 << 19
"""Records that may be drawn again in all for orders that come after all decoys."""
SHOWN = 50
"""Seeds after which progress is shown."""
ORDER = "order of rows"


@dataclass(frozen=True)
class Found:
    """A seed that explains a column or the order, and what it discloses about every row."""

    family: str
    seed: int
    way: str
    """How the order and the decoys were drawn."""
    column: str
    share: float
    """Rows that fit, of those compared."""
    truth: NDArray[np.bool_] | None
    order: NDArray[np.int64] | None
    """The place in the original of every published row."""

    def __str__(self) -> str:
        return f"{self.column}: {self.family} with seed {self.seed}, {self.way}"


@dataclass(frozen=True)
class Way:
    """A way in which draws may correspond to published rows."""

    name: str
    rows: NDArray[np.int64]
    """The row of every draw."""
    place: NDArray[np.int64] | None = None
    """The place in the original of every row, where the shuffle is undone."""


@dataclass(frozen=True)
class Testable:
    """A decoy column that can be tested, and the criterion of the test."""

    name: str
    codes: NDArray
    """(rows, eta): the published sets."""
    size: tuple[int, int]
    """How many values the column has, and a set."""
    probed: int
    """How many records decide."""


class Predictable(Attack):
    """Try seeds of weak generators and compare their decoys with the published ones."""

    knows: ClassVar[str] = "more"
    adversary: ClassVar[str] = (
        "tries the seeds of ordinary random number generators, in case the decoys or the row order came from one; "
        "knows neither the secret nor any person"
    )
    success: ClassVar[str] = (
        "whether a seed explains the published sets or the row order far beyond chance, and what it then discloses "
        "of each row"
    )

    needs_rows: ClassVar[str | None] = "it needs the order of the rows"
    shares: ClassVar[tuple[str, ...]] = ("mean_belief", "certain", "seed_found", "order_found")
    titles: ClassVar[Mapping[str, str]] = {
        "mean_belief": "mean belief",
        "certain": "certain",
        "seed_found": "seed found",
        "order_found": "order undone",
    }

    name: Literal["predictable"] = "predictable"
    seeds: int = Field(default=1000, ge=0, le=10_000_000, description="Seeds 0, 1, ... that are tried.")
    time_from: int | None = Field(default=None, ge=0, description="First Unix time that is tried as a seed.")
    time_to: int | None = Field(default=None, ge=0, description="Last Unix time that is tried as a seed.")
    alarm: float = Field(default=1e-6, gt=0, lt=0.5, description="False alarm rate of all tests together.")

    def run(self, case: Case) -> list[AttackResult]:
        tried = list(seeds(self.seeds, self._window()))
        release = case.release
        sets = case.sets
        level = self.alarm / 2
        with case.stage("Guessing seeds", len(tried)) as progress:
            hits, facts = _guess(release, sets, tried, level, progress)
        with case.stage("Testing order", len(release.columns)) as progress:
            patterns = list(_patterns(case, sets, progress))
        limit = level / max(1, len(patterns))
        alarms = [pattern for pattern in patterns if pattern.p < limit]
        facts |= {
            "seeds": len(tried),
            "generators": [family.name for family in FAMILIES],
            "false_alarm_rate": self.alarm,
            "patterns": [pattern.to_dict(limit) for pattern in patterns],
            "alarms": len(alarms),
            "found": [str(one) for one in hits.values()],
        }
        notes = [*_notes(hits, alarms, facts)]
        targets = [*sets, ORDER]
        return [self._result(case, name, sets.get(name), hits, facts, notes) for name in targets]

    def _window(self) -> tuple[int, int] | None:
        if (self.time_from is None) != (self.time_to is None):
            raise QueryError("time_from and time_to belong together.", hint="Give time_from and time_to.")
        if self.time_from is None or self.time_to is None:
            return None
        if not 0 <= self.time_to - self.time_from <= 1_000_000:
            raise QueryError("time_from to time_to must span 0 to 1,000,000 seconds.", hint="Split it.")
        return self.time_from, self.time_to

    def _result(
        self,
        case: Case,
        name: str,
        own: Sets | None,
        hits: Mapping[str, Found],
        facts: Mapping[str, Any],
        notes: list[str],
    ) -> AttackResult:
        """Make the result; figures are of all rows, lines of those that are measured."""
        import polars as pl

        n, lines = case.release.rows, case.row_lines()
        before = 1 / own.design.eta if own is not None else 0.0
        belief, left = np.full(n, before), np.full(n, own.design.eta if own is not None else 0)
        place = np.full(n, -1, np.int64)
        columns: dict[str, NDArray] = {}
        found = hits.get(name)
        if found is not None:
            if own is None:
                belief = np.ones(n)
            elif found.truth is not None:
                fits = found.truth
                known = fits.any(axis=1)
                left = np.where(known, fits.sum(axis=1), own.design.eta)
                belief = 1 / left
                top = own.codes[np.arange(n), fits.argmax(axis=1)].astype(np.int64)
                columns["value"] = lines.some[np.where(known & (left == 1), top, -1)]
            if found.order is not None:
                place = found.order
        row = np.where(place >= 0, place + 1.0, np.nan)
        columns = {"belief": lines.some[belief], "left": lines.some[left]} | columns | {"original_row": lines.some[row]}
        summary = {
            "mean_belief": float(belief.mean()),
            "certain": float((belief >= CERTAIN).mean()),
            "seed_found": float(found is not None),
            "order_found": float((place >= 0).mean()),
        }
        baseline = {"mean_belief": before, "certain": float(before >= CERTAIN), "seed_found": 0.0, "order_found": 0.0}
        title = f"{facts['seeds']:,} seeds tried"
        labels = {} if own is None else {"value": own.labels}
        scenario = lines.scenario("seeds", title, summary, columns, labels=labels)
        scenario = replace(scenario, frame=scenario.frame.cast({"original_row": pl.Int64}))
        return self.make_result(
            target=(name,),
            baseline=baseline,
            scenarios=(scenario,),
            facts=facts,
            notes=notes,
        )


# ---------------------------------------------------------------------- seeds


def _columns(sets: Mapping[str, Sets], tests: int, level: float) -> list[Testable]:
    """Return the columns that the test can decide on, and the number of records needed."""
    out = []
    for one in sets.values():
        design = one.design
        if not (isinstance(design, DecoyDesign) and design.p == 1.0 and 1 < design.eta < design.d):
            continue
        q = chance(design.d - 1, design.eta - 1)
        need = int(np.ceil(np.log(level / max(1, tests)) / np.log(q))) if q < 1 else 0
        if 0 < need <= len(one):
            out.append(Testable(one.name, one.codes, (design.d, design.eta), need))
    return out


def _guess(
    release: Release, sets: Mapping[str, Sets], tried: list[int], level: float, progress: Any
) -> tuple[dict[str, Found], dict[str, Any]]:
    """Try every seed with every generator, cheap orders first, until a column is explained."""
    n = release.rows
    tests = max(1, len(tried) * len(FAMILIES) * 4 * (len(sets) + 1))
    columns = _columns(sets, tests, level)
    ordered = ranked_columns(release)
    line = -NormalDist().inv_cdf(SAFETY * level / tests / max(1, len(ordered)))
    ordering = {True: SLOW // max(1, n), False: max(1, FAST // max(1, n))}
    deep = DEEP // max(1, n * len(columns)) if columns else 0
    found: dict[str, Found] = {}
    for number, seed in enumerate(tried):
        for at, family in enumerate(FAMILIES):
            guess = _Guess(family, seed, columns, found)
            used = family.start(seed)
            if number < ordering[family.slow]:
                order = family.order(used, n)
                rows = np.empty(n, np.int64)
                rows[order] = np.arange(n)
                guess.try_order(rows[:SORTED], order, ordered, line)
                guess.try_sets(used, [Way("shuffled first", np.arange(n), order)])
                same = [Way("shuffled by the same seed", rows, order)]
            else:
                same = []
            guess.try_sets(family.start(seed), [Way("not shuffled", np.arange(n)), *same])
            if number * len(FAMILIES) + at < deep:
                guess.try_after(n)
        if (number + 1) % SHOWN == 0:
            progress(SHOWN)
    progress(len(tried) % SHOWN)
    facts = {"tests": tests, "orders_after_all_decoys": min(deep, len(tried) * len(FAMILIES))}
    facts |= {"orders_undone": min(len(tried), ordering[False]), "orders_undone_slow": min(len(tried), ordering[True])}
    probed = {column.name: column.probed for column in columns}
    return found, {**facts, "columns_tested": list(probed), "records_compared": probed}


@dataclass(frozen=True)
class _Guess:
    """One generator with one seed, tried on the columns that no seed explains yet."""

    family: Family
    seed: int
    columns: Sequence[Testable]
    found: dict[str, Found]

    def try_sets(self, generator: Any, ways: list[Way]) -> None:
        """Draw the decoys of the first records again: all columns record by record, then each column separately."""
        plans = [self.columns] if len(self.columns) > 1 else []
        for plan in [*plans, *([column] for column in self.columns)]:
            if all(column.name in self.found for column in plan):
                continue
            left, sizes = ways, [column.size for column in plan]
            for many in (1, max(column.probed for column in plan)):
                picked = draw(self.family, self.family.copy(generator), sizes, many)
                left = [way for way in left if self._fits(plan, picked, way.rows[:many])]
                if not left:
                    break
            for way in left:
                self._settle(plan, draw(self.family, self.family.copy(generator), sizes, len(way.rows)), way)

    def try_after(self, n: int) -> None:
        """Draw all decoys first and then the order, from one generator."""
        if all(column.name in self.found for column in self.columns):
            return
        generator = self.family.start(self.seed)
        picked = draw(self.family, generator, [column.size for column in self.columns], n)
        order = self.family.order(generator, n)
        self._settle(self.columns, picked, Way("shuffled after", np.argsort(order), order))

    def try_order(
        self, rows: NDArray[np.int64], order: NDArray[np.int64], columns: Mapping[str, NDArray], line: float
    ) -> None:
        """Undo a supposed shuffle and test whether neighbours in its first rows are similar."""
        for name, values in columns.items() if ORDER not in self.found else ():
            part = values[rows]
            if float(part[:-1] @ part[1:]) / max(1, len(part) - 1) ** 0.5 > line:
                way = f"neighbours alike in {name}"
                self.found[ORDER] = Found(self.family.name, self.seed, way, ORDER, 1.0, None, order)
                return

    def _fits(self, plan: Sequence[Testable], picked: list[NDArray[np.int64]], rows: NDArray) -> bool:
        """Return whether some rows fit the decoys in all columns of a plan."""
        pairs = zip(plan, picked, strict=True)
        return all(truths(part, column.codes[rows]).any(axis=1).all() for column, part in pairs)

    def _settle(self, plan: Sequence[Testable], picked: list[NDArray[np.int64]], way: Way) -> None:
        """Decide that a column is explained if chance is excluded for its first records, and then check all records."""
        for column, part in zip(plan, picked, strict=True):
            fits = truths(part, column.codes[way.rows])
            if column.name in self.found or not fits[: column.probed].any(axis=1).all():
                continue
            by_row = np.zeros(fits.shape, bool)
            by_row[way.rows] = fits
            share = float(fits.any(axis=1).mean())
            one = Found(self.family.name, self.seed, way.name, column.name, share, by_row, way.place)
            self.found[column.name] = one
            if way.place is not None:
                self.found.setdefault(ORDER, replace(one, column=ORDER, truth=None))


# ---------------------------------------------------------------------- order


def _patterns(case: Case, sets: Mapping[str, Sets], progress: Any) -> Iterator[Pattern]:
    """Run the tests that need no seed."""
    release = case.release
    for statement in release.statements:
        name = statement.name
        yield from order_patterns(statement, sets[name] if name in sets else release.cells([name])[name])
        if name in sets:
            found = design_pattern(sets[name], case.estimate([name]))
            if found is not None:
                yield found
        progress(1)


def _notes(hits: Mapping[str, Found], alarms: list[Pattern], facts: Mapping[str, Any]) -> Iterator[str]:
    rate = f"false alarm rate {facts['false_alarm_rate']:g} for all tests together"
    if hits:
        for found in hits.values():
            yield f"predictable: {found}; {found.share:.1%} of the rows fit"
    else:
        yield f"no seed explains anything ({rate})"
    for alarm in alarms:
        yield f"{alarm.column}: the test {alarm.test!r} finds a pattern (z = {alarm.z:.1f})"
    if not alarms:
        yield f"{len(facts['patterns'])} tests of order and decoys find no pattern ({rate})"
    if facts["orders_undone"] < facts["seeds"]:
        yield (
            f"the table is long, so shuffles were reversed for {facts['orders_undone']:,} of the {facts['seeds']:,} "
            f"seeds only (Python's own generator: {facts['orders_undone_slow']:,})"
        )
    yield "finding no seed proves nothing: only simple uses of a few generators are tried"
