"""The attack on predictable randomness: guess the seed, draw the same decoys, strip them; undo the shuffle.

It works on a release whose decoys came from an ordinary generator with a small seed, a well-liked one or the time of
day, and must fail on one that came from a keyed cipher. The decision is a test with a stated false alarm rate: under a
wrong seed a published set fits the regenerated decoys rarely, under the right one always. Tests of the order and of
the decoys that need no seed are made besides.

Decoys and orders as a careless program draws them: the obvious code over a generator with a guessable seed.

Every recipe is run again from a supposed seed. It does not know the true values, and does not need to: which of the
*other* values are drawn, counted around the truth, depends on the generator alone. What is here is for finding such
releases, never for making one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.patterns import Pattern, design_pattern, order_patterns, ranked_columns
from noren.audit.sample import Sample
from noren.audit.sets import CERTAIN, Sets
from noren.designs import DecoyDesign
from noren.errors import QueryError
from noren.release.release import Release

KNOWN = (0, 1, 42, 123, 1234, 12345, 2, 7, 10, 13, 21, 100, 1337, 2023, 2024, 2025, 2026, 31337, 999, 5)
"""Seeds that people like."""
LONG = 200_000
"""Rows from which on Python's shuffle is not left to Python."""


@dataclass(frozen=True)
class Family:
    """A generator and the obvious ways to use it."""

    name: str
    start: Callable[[int], Any]
    pick: Callable[[Any, int, int], Sequence[int]]
    """(generator, among how many, how many): distinct numbers."""
    order: Callable[[Any, int], NDArray[np.int64]]
    """(generator, rows): which row stands at each place."""
    slow: bool = False


def _python_order(generator: random.Random, n: int) -> NDArray[np.int64]:
    if n >= LONG:
        return _long_python_order(generator, n)
    rows = list(range(n))
    generator.shuffle(rows)
    return np.array(rows, np.int64)


def _long_python_order(generator: random.Random, n: int) -> NDArray[np.int64]:
    """The same, and the generator left in the same state, from the words of NumPy's generator of the same kind."""
    from noren.audit import kernels as python_shuffle

    shuffle: Callable[..., int] = python_shuffle.shuffle
    version, words, gauss = generator.getstate()
    given, rows, used = n, np.arange(n), -1
    while used < 0:
        given, rows = 2 * given, np.arange(n)
        used = shuffle(_twister(words).random_raw(given), rows)
    after = _twister(words)
    after.random_raw(used, output=False)
    inside: Any = after.state["state"]
    generator.setstate((version, (*map(int, inside["key"]), int(inside["pos"])), gauss))
    return rows


def _twister(words: tuple[int, ...]) -> np.random.MT19937:
    """NumPy's Mersenne twister in the state of Python's."""
    twister = np.random.MT19937(0)
    twister.state = {"bit_generator": "MT19937", "state": {"key": np.array(words[:-1], np.uint32), "pos": words[-1]}}
    return twister


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
        slow=True,
    ),
)


def draw(family: Family, generator: Any, sizes: Sequence[tuple[int, int]], records: int) -> list[NDArray[np.int64]]:
    """Decoys record by record, within a record column by column. sizes: (values, l) of every column."""
    out = [np.empty((records, l - 1), np.int64) for _, l in sizes]  # noqa: E741
    for record in range(records):
        for (d, l), part in zip(sizes, out, strict=True):  # noqa: E741
            part[record] = family.pick(generator, d - 1, l - 1)
    for part in out:
        part.sort(axis=1)
    return out


def truths(picked: NDArray[np.int64], sets: NDArray) -> NDArray[np.bool_]:
    """(records, members): which members of a set can be the truth if these were the decoys.

    With truth t the decoys are the picked numbers, those from t on moved up by one; the set is t and they.
    """
    members = sets.astype(np.int64)
    size = members.shape[1]
    rest = np.array([[other for other in range(size) if other != place] for place in range(size)])
    moved = picked[:, None, :] + (picked[:, None, :] >= members[:, :, None])
    return np.asarray((moved == members[:, rest]).all(axis=2))


def chance(picked_among: int, picked: int) -> float:
    """At most this often a set fits decoys that have nothing to do with it: one way for each member."""
    from math import comb

    return min(1.0, (picked + 1) / comb(picked_among, picked))


def seeds(count: int, times: tuple[int, int] | None) -> Iterator[int]:
    """Seeds to try: the liked ones, then small ones, then a window of Unix times."""
    liked = [seed for seed in KNOWN if seed]
    yield from ([0] if count else [])
    yield from liked
    yield from (seed for seed in range(1, count) if seed not in set(liked))
    if times is not None:
        yield from range(times[0], times[1] + 1)


GLANCE = 2
"""Records whose decoys are drawn again for every seed; more where these fit."""
SORTED = 4096
"""Rows whose order is looked at for every seed."""
SAFETY = 1e-3
"""The sum that an order is judged by is not quite normal; its line is drawn for a level so much smaller."""
SLOW = 1 << 20
"""Rows that the slow generator may order in all."""
FAST = 1 << 26
"""Rows that each of the other generators may order in all: in very long tables not every seed's order is undone."""
DEEP = 1 << 19
"""Records that may be drawn again in all for orders that come after all decoys."""
SHOWN = 50
"""Seeds after which progress is shown."""
ORDER = "order of rows"
TITLES = {"mean_belief": "mean belief", "certain": "certain", "seed_found": "seed found", "order_found": "order undone"}


@dataclass(frozen=True)
class Hit:
    """A seed that explains a column, or the order."""

    family: str
    seed: int
    order: str
    column: str
    share: float
    """Rows that fit, of those compared."""
    p: float

    def __str__(self) -> str:
        return f"{self.column}: {self.family} with seed {self.seed}, {self.order}"


@dataclass(frozen=True)
class Found:
    """A seed that was found, and what follows for every row."""

    hit: Hit
    truth: NDArray[np.bool_] | None
    order: NDArray[np.int64] | None
    """The place in the original of every published row."""

    def __str__(self) -> str:
        return str(self.hit)


@dataclass(frozen=True)
class Way:
    """How draws and published rows may belong together."""

    name: str
    n: int
    place: NDArray[np.int64] | None
    """The place in the original of every row, where the shuffle is undone."""
    is_by_place: bool = False
    """Whether decoys were drawn in the order of the original, or in that of the rows."""

    def rows(self, many: int) -> NDArray[np.int64]:
        """The row of each of the first draws."""
        if self.place is None or not self.is_by_place:
            return np.arange(many)
        first = np.flatnonzero(self.place < many)
        return np.asarray(first[np.argsort(self.place[first], kind="stable")])


@dataclass(frozen=True)
class Testable:
    """A decoy column that careless code could have drawn, and how the test on it decides."""

    name: str
    codes: NDArray
    """(rows, eta): the published sets."""
    size: tuple[int, int]
    """How many values the column has, and a set."""
    chance: float
    probed: int
    """How many records decide."""


class Predictable(Attack):
    """Suppose a weak generator and look whether its decoys are the published ones."""

    adversary: ClassVar[str] = (
        "supposes that decoys and order came from an ordinary generator with a guessable seed, and tries the seeds; "
        "knows neither the secret nor any person"
    )
    success: ClassVar[str] = (
        "whether a seed explains the published sets or the order far beyond chance, and what is then known of each row"
    )

    stands_apart: ClassVar[bool] = True
    needs_rows: ClassVar[str | None] = "it looks at the order in which rows stand"

    name: Literal["predictable"] = "predictable"
    seeds: int = Field(default=1000, ge=0, le=10_000_000, description="Seeds 0, 1, ... that are tried.")
    time_from: int | None = Field(default=None, ge=0, description="First of a window of Unix times tried as seeds.")
    time_to: int | None = Field(default=None, ge=0, description="Last of the window.")
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
            "found": [str(hit) for hit in hits.values()],
        }
        notes = [*_notes(hits, alarms, facts)]
        targets = [*sets, ORDER]
        some = case.measured_rows
        return [self._result(release, name, sets.get(name), hits, facts, notes, some) for name in targets]

    def _window(self) -> tuple[int, int] | None:
        if (self.time_from is None) != (self.time_to is None):
            raise QueryError("a window of times has two ends.", hint="Give time_from and time_to.")
        if self.time_from is None or self.time_to is None:
            return None
        if not 0 <= self.time_to - self.time_from <= 1_000_000:
            raise QueryError("a window of times has 0 to 1,000,000 seconds.", hint="Split it.")
        return self.time_from, self.time_to

    def _result(
        self,
        release: Release,
        name: str,
        own: Sets | None,
        hits: Mapping[str, Found],
        facts: Mapping[str, Any],
        notes: list[str],
        some: Sample,
    ) -> AttackResult:
        """Figures are of all rows, the lines of those that are measured."""
        import polars as pl

        n = release.rows
        before = 1 / own.design.eta if own is not None else 0.0
        belief, left = np.full(n, before), np.full(n, own.design.eta if own is not None else 0)
        place = np.full(n, -1, np.int64)
        values: pl.Series | None = None
        found = hits.get(name)
        if found is not None:
            if own is not None and found.truth is not None:
                fits = found.truth
                known = fits.any(axis=1)
                left = np.where(known, fits.sum(axis=1), own.design.eta)
                belief = 1 / left
                top = own.codes[np.arange(n), fits.argmax(axis=1)].astype(np.int64)
                names = pl.Series([*own.labels, None], dtype=pl.String)
                values = names.gather(np.where(known & (left == 1), top, len(own.labels)))
            if found.order is not None:
                place = found.order
        if own is None and found is not None:
            belief = np.ones(n)
        frame = pl.DataFrame({"record": some.lines + 1, "belief": some[belief], "left": some[left]})
        if values is not None:
            frame = frame.with_columns(value=values if some.whole else values.gather(some.lines))
        at = pl.Series(some[place])
        frame = frame.with_columns(original_row=pl.when(at >= 0).then(at + 1).otherwise(None))
        summary = {
            "mean_belief": float(belief.mean()),
            "certain": float((belief >= CERTAIN).mean()),
            "seed_found": float(found is not None),
            "order_found": float((place >= 0).mean()),
        }
        baseline = {"mean_belief": before, "certain": float(before >= CERTAIN), "seed_found": 0.0, "order_found": 0.0}
        title = f"{facts['seeds']:,} seeds tried"
        scenario = Scenario("seeds", title, "row", summary, frame, holder_only=False, of=some.of)
        return self.make_result(
            target=(name,),
            baseline=baseline,
            scenarios=(scenario,),
            titles=TITLES,
            shares=("mean_belief", "certain", "seed_found", "order_found"),
            facts=facts,
            notes=notes,
        )


# ---------------------------------------------------------------------- seeds


def _columns(sets: Mapping[str, Sets], tests: int, level: float) -> list[Testable]:
    """Which columns a test can decide on, and how many records it needs for that."""
    out = []
    for one in sets.values():
        design = one.design
        plain = isinstance(design, DecoyDesign) and design.p == 1.0 and 1 < design.eta < design.d
        if not plain:
            continue
        q = chance(design.d - 1, design.eta - 1)
        need = int(np.ceil(np.log(level / max(1, tests)) / np.log(q))) if q < 1 else 0
        if 0 < need <= len(one):
            out.append(Testable(one.name, one.codes, (design.d, design.eta), q, need))
    return out


def _guess(
    release: Release, sets: Mapping[str, Sets], tried: list[int], level: float, progress: Any
) -> tuple[dict[str, Found], dict[str, Any]]:
    """Try every seed with every generator, cheap orders first; stop for a column when it is explained."""
    n = release.rows
    tests = max(1, len(tried) * len(FAMILIES) * 4 * (len(sets) + 1))
    columns = _columns(sets, tests, level)
    ordered = ranked_columns(release)
    line = -NormalDist().inv_cdf(SAFETY * level / tests / max(1, len(ordered)))
    budget = DEEP
    ordering = {True: max(1, SLOW // max(1, n)), False: max(1, FAST // max(1, n))}
    found: dict[str, Found] = {}
    deep = 0
    for number, seed in enumerate(tried):
        for family in FAMILIES:
            used = family.start(seed)
            order = family.order(used, n) if number < ordering[family.slow] else None
            if order is not None and ORDER not in found:
                _try_order(family, seed, order, ordered, line, found)
            if columns:
                for generator, ways in _ways(seed, family, order, used, n):
                    _try_sets(family, seed, generator, ways, columns, found)
            cost = n * max(1, len(columns))
            if columns and budget >= cost and len(found) < len(columns):
                budget -= cost
                deep += 1
                _try_after(family, seed, n, columns, found)
        if (number + 1) % SHOWN == 0:
            progress(SHOWN)
    progress(len(tried) % SHOWN)
    facts = {"tests": tests, "orders_after_all_decoys": deep, "columns_tested": [c.name for c in columns]}
    facts["orders_undone"] = min(len(tried), ordering[False])
    facts["records_compared"] = {column.name: column.probed for column in columns}
    return found, facts


def _ways(
    seed: int, family: Family, order: NDArray[np.int64] | None, used: Any, n: int
) -> Iterator[tuple[Any, list[Way]]]:
    """Where draws may begin in the stream, and how draws and rows may then belong together."""
    plain = [Way("not shuffled", n, None)]
    if order is not None:
        plain.append(Way("shuffled by the same seed", n, order, is_by_place=True))
        yield used, [Way("shuffled first", n, order)]
    yield family.start(seed), plain


def _try_sets(
    family: Family, seed: int, generator: Any, ways: list[Way], columns: list[Testable], found: dict[str, Found]
) -> None:
    """Draw the decoys of the first records again: all columns record by record, then each column on its own."""
    plans: list[list[Testable]] = [columns] if len(columns) > 1 else []
    plans += [[column] for column in columns]
    state = _state(generator)
    for plan in plans:
        if all(column.name in found for column in plan):
            continue
        left, sizes = ways, [column.size for column in plan]
        for many in (GLANCE, max(column.probed for column in plan)):
            picked = draw(family, _restored(generator, state), sizes, many)
            left = [way for way in left if _fits(plan, picked, way.rows(many))]
            if not left:
                break
        for way in left:
            picked = draw(family, _restored(generator, state), sizes, way.n)
            for column, part in zip(plan, picked, strict=True):
                _settle(Hit(family.name, seed, way.name, column.name, 0.0, 0.0), column, part, way, found)


def _state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state() if isinstance(generator, np.random.RandomState) else generator.getstate()


def _restored(generator: Any, state: Any) -> Any:
    """A generator as it was, so that several ways of drawing start from the same place."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.setstate(state)
    return generator


def _fits(plan: list[Testable], picked: list[NDArray[np.int64]], rows: NDArray) -> bool:
    """Whether all of some rows fit the decoys in all columns of a plan."""
    pairs = zip(plan, picked, strict=True)
    return all(truths(part, column.codes[rows]).any(axis=1).all() for column, part in pairs)


def _settle(supposed: Hit, column: Testable, picked: NDArray, way: Way, found: dict[str, Found]) -> None:
    """A column is explained if so many of its first records fit that chance is excluded; then all are looked at."""
    rows, place = way.rows(way.n), way.place
    fits = truths(picked, column.codes[rows])
    if column.name in found or not fits[: column.probed].any(axis=1).all():
        return
    by_row = np.zeros(fits.shape, bool)
    by_row[rows] = fits
    hit = replace(supposed, share=float(fits.any(axis=1).mean()), p=column.chance**column.probed)
    found[column.name] = Found(hit, by_row, place)
    if place is not None and ORDER not in found:
        found[ORDER] = Found(replace(hit, column=ORDER), None, place)


def _try_after(family: Family, seed: int, n: int, columns: list[Testable], found: dict[str, Found]) -> None:
    """All decoys first and then the order, from one generator: it takes all draws to know the order."""
    generator = family.start(seed)
    picked = draw(family, generator, [column.size for column in columns], n)
    way = Way("shuffled after", n, family.order(generator, n), is_by_place=True)
    for column, part in zip(columns, picked, strict=True):
        _settle(Hit(family.name, seed, way.name, column.name, 0.0, 0.0), column, part, way, found)


# ---------------------------------------------------------------------- order


def _try_order(
    family: Family,
    seed: int,
    order: NDArray[np.int64],
    columns: Mapping[str, NDArray[np.float64]],
    line: float,
    found: dict[str, Found],
) -> None:
    """Undo a supposed shuffle and look whether neighbours are alike."""
    head = np.flatnonzero(order < SORTED)
    rows = head[np.argsort(order[head], kind="stable")]
    for name, values in columns.items():
        part = values[rows]
        z = float(part[:-1] @ part[1:]) / max(1, len(part) - 1) ** 0.5
        if z > line:
            p = NormalDist().cdf(-z)
            found[ORDER] = Found(Hit(family.name, seed, f"neighbours alike in {name}", ORDER, 1.0, p), None, order)
            return


def _patterns(case: Case, sets: Mapping[str, Sets], progress: Any) -> Iterator[Pattern]:
    """The tests that need no seed."""
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
            yield f"predictable: {found}; {found.hit.share:.1%} of the rows fit"
    else:
        yield f"no seed explains anything ({rate})"
    for alarm in alarms:
        yield f"{alarm.column}: the test {alarm.test!r} finds a pattern (z = {alarm.z:.1f})"
    if not alarms:
        yield f"{len(facts['patterns'])} tests of order and decoys find no pattern ({rate})"
    if facts["orders_undone"] < facts["seeds"]:
        yield f"the table is long: orders were undone for {facts['orders_undone']:,} of the {facts['seeds']:,} seeds"
    yield "a seed that is not found proves nothing: only simple uses of a few generators are tried"
