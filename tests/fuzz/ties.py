"""Equal records: neither how they are treated nor where they stand in the release tells their place in the table.

One case says little. Each gives a number that is uniform between 0 and 1 if places are random, and near 1 if they
decide; a run adds these up by method.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from math import sqrt

from tests.fuzz.reading import Read
from tests.fuzz.texts import is_missing, text
from tests.fuzz.worlds import World

SHUFFLES = 39
SURE = 5.0
"""Standard deviations above chance from which on places decide: by chance in fewer than one of a million runs."""
Alike = list[list[tuple[int, object, int | None]]]
"""By group of equal records: the place in the table, what is published, the place in the release."""


def places(world: World, read: Read, kept: Iterable[int]) -> dict[str, float]:
    """The numbers of a case, where it has equal records that were published differently or stand somewhere."""
    if "row" not in read.entries:
        return {}
    rows: dict[int, list[object]] = {}
    at: dict[int, int] = {}
    for i, row in enumerate(read.rows):
        number = int(row["row"])
        rows.setdefault(number, []).append(
            tuple(sorted((k, str(sorted(v) if isinstance(v, frozenset) else v)) for k, v in row.items() if k != "row"))
        )
        at.setdefault(number, i)
    same: dict[tuple[str, ...], list[tuple[int, object, int | None]]] = {}
    telling = [n for n, a in world.attributes.items() if n != "row" and a["role"] != "identifier"]
    for i in kept:
        cells = (world.columns[name][i] for name in telling)
        key = tuple("\0" if is_missing(c) else str(c) if isinstance(c, list) else text(c) for c in cells)
        same.setdefault(key, []).append((i, frozenset(rows.get(i, ())), at.get(i)))
    alike = [group for group in same.values() if len(group) > 1]
    out = {}
    differ = [g for g in alike if 1 < len({treated for _, treated, _ in g}) < len(g)]
    if differ:
        out["treatment"] = _rank(world.seed, differ, _between)
    stand = [[one for one in group if one[2] is not None] for group in alike]
    stand = [group for group in stand if len(group) > 1]
    if stand and not read.is_shuffled:
        out["order"] = _rank(world.seed, stand, _together)
    return out


def _rank(seed: int, groups: Alike, measure: Callable[[Alike], float]) -> float:
    """Where the measure stands among those of the same groups with places shuffled within each."""
    r = random.Random(seed)
    own, less, equal = measure(groups), 0, 0
    for _ in range(SHUFFLES):
        shuffled = []
        for group in groups:
            order = [place for place, _, _ in group]
            r.shuffle(order)
            shuffled.append([(place, *rest) for place, (_, *rest) in zip(order, group, strict=True)])
        other = measure(shuffled)
        less += other < own - 1e-9
        equal += abs(other - own) <= 1e-9
    return (less + (equal + 1) / 2) / (SHUFFLES + 1)


def _ranked(group: list[tuple[int, object, int | None]]) -> list[float]:
    """Places as ranks around zero."""
    order = sorted(place for place, _, _ in group)
    return [order.index(place) - (len(order) - 1) / 2 for place, _, _ in group]


def _between(groups: Alike) -> float:
    """How far apart the mean ranks of differently treated equals are."""
    total = 0.0
    for group in groups:
        held: dict[object, list[float]] = {}
        for rank, (_, treated, _) in zip(_ranked(group), group, strict=True):
            held.setdefault(treated, []).append(rank)
        total += sum(sum(ranks) ** 2 / len(ranks) for ranks in held.values())
    return total


def _together(groups: Alike) -> float:
    """How much equal records stand in the release as they stood in the table, or the other way round."""
    total = 0.0
    for group in groups:
        later = sorted(at for _, _, at in group if at is not None)
        total += sum(
            rank * later.index(at) for rank, (_, _, at) in zip(_ranked(group), group, strict=True) if at is not None
        )
    return abs(total)


def beyond_chance(found: list[float]) -> float:
    """Standard deviations by which such numbers lie above what random places give."""
    return (sum(found) - len(found) / 2) / sqrt(len(found) / 12) if found else 0.0
