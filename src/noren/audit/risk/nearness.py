"""Linking by distance: who is alone within a small interval around the own numbers.

An adversary who knows an income or a date only roughly still finds a person whom nobody is near. The interval reaches
a share of the column's standard deviation to both sides, in all columns at once (as sdcMicro's `dRisk`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from noren.audit.risk.raw import RawColumn, RawTable
from noren.audit.risk.uniques import class_sizes

WITHIN = 0.05
"""Half the interval, in standard deviations."""
FEW = 20
"""Whole numbers of so few different values have no distance."""
FIRST = 4
"""Neighbours that are looked at first, where a person may have several rows."""


@dataclass(frozen=True)
class Near:
    """Numeric columns, and how many people are alone near their values."""

    columns: tuple[str, ...]
    within: float
    alone: int
    share: float


def near(table: RawTable, within: float = WITHIN) -> list[Near]:
    """Every numeric column by itself, every pair, and all together. A person with a missing number has no distance."""
    numeric = [i for i, column in enumerate(table.columns) if column.numbers is not None and not _is_code(column)]
    asked: list[tuple[int, ...]] = [(i,) for i in numeric]
    if len(numeric) > 2:
        asked += [pair for pair in combinations(numeric, 2) if len(numeric) <= 5]
    if len(numeric) > 1:
        asked.append(tuple(numeric))
    out = []
    for chosen in asked:
        people = table.person_of(lonely(table, chosen, within))
        names = tuple(table.columns[i].name for i in chosen)
        out.append(Near(names, within, people, people / table.persons))
    return out


def _is_code(column: RawColumn) -> bool:
    """Whether whole numbers are so few that they are names of categories rather than amounts."""
    return column.kind == "integer" and column.d <= FEW


def lonely(table: RawTable, chosen: Sequence[int], within: float) -> NDArray[np.bool_]:
    """Which rows have nobody else's row in the interval around them."""
    from scipy.spatial import cKDTree

    out = np.zeros(table.n, np.bool_)
    numbers = [table.columns[i].numbers for i in chosen]
    points = np.stack([part for part in numbers if part is not None], axis=1)
    complete = np.asarray(np.isfinite(points).all(axis=1))
    spread = np.nanstd(points, axis=0)
    sizes, of = class_sizes(table, chosen)
    single = np.flatnonzero((sizes[of] == 1) & complete)
    if not len(single):
        return out
    reach = np.where(spread * within > 0, spread * within, 1.0)
    _, first = np.unique(of, return_index=True)
    first = first[complete[first]]
    places = points[first] / reach
    tree = cKDTree(places)
    whose = np.arange(table.n) if table.people is None else table.people
    asked = first[sizes[of[first]] == 1]
    wanted = 2 if table.people is None else FIRST
    while len(asked):
        wanted = min(wanted, len(first))
        distance, neighbour = tree.query(points[asked] / reach, k=wanted, p=np.inf, distance_upper_bound=1 + 1e-9)
        distance, neighbour = distance.reshape(len(asked), -1), neighbour.reshape(len(asked), -1)
        close = np.isfinite(distance)
        other = close & (whose[first[np.where(close, neighbour, 0)]] != whose[asked][:, None])
        shared = sizes[of[first]][np.where(close, neighbour, 0)] > 1
        met = (other | (close & shared)).any(axis=1)
        full = close.all(axis=1) & ~met & (wanted < len(first))
        settled = asked[~met & ~full]
        out |= np.isin(of, of[settled])
        asked = asked[full]
        wanted *= 4
    return out & complete
