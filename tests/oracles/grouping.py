"""1-D l-diversity, TP, Anatomy and cuts of a curve, the slow and obvious way: one record at a time, from the text.

Sets of records are lists; a record is its position. Where the text leaves a choice, the order that the caller gives
decides, as it does for the kernels.
"""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from noren.engines import Records
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role


def table_of(
    quasi: dict[str, Sequence[int]],
    sensitive: dict[str, Sequence[int]],
    trees: dict[str, Hierarchy] | None = None,
    labels: dict[str, Sequence[str]] | None = None,
    role: Role = Role.SENSITIVE,
) -> Records:
    """A table from codes. Domains reach to the largest code, or are the leaves of the column's tree."""
    columns, codes = {}, {}
    for name, given in {**quasi, **sensitive}.items():
        tree = (trees or {}).get(name)
        column = np.array(given, np.int64)
        d = int(column.max(initial=0)) + 1
        values = (labels or {}).get(name) or (tree.leaves if tree else [str(v) for v in range(d)])
        domain = Domain(tuple(values), "integer" if values[0].isdigit() else "string", "data")
        mine = role if name in sensitive else Role.QUASI_IDENTIFIER
        columns[name] = Column(role=mine).over(name, domain, hierarchy=tree)
        codes[name] = column
    return Records(len(next(iter(codes.values()))), columns, codes)


def height(values: Sequence[int]) -> int:
    """How often the commonest value occurs."""
    return max(Counter(values).values(), default=0)


def eligible(values: Sequence[int], l: int) -> bool:
    return l * height(values) <= len(values)


def pillars(values: Sequence[int]) -> set[int]:
    counts = Counter(values)
    return {v for v, count in counts.items() if count == height(values)}


def tau_l(values: Sequence[int], tau: float, l: int) -> bool:
    """The k commonest values together make up at most psi(k), for all k."""
    ranked = sorted(Counter(values).values(), reverse=True)
    for k in range(1, len(ranked) + 1):
        psi = tau + (1 - tau) * (k - 1) / (l - 1) if k <= l else 1.0
        if sum(ranked[:k]) / len(values) > psi + 1e-9:
            return False
    return len(ranked) >= l


def one_dimensional(values: Sequence[int], l: int) -> list[list[int]]:
    """Groups of positions along the curve, in the order in which they are made."""
    buckets: dict[int, list[int]] = {}
    for position, v in enumerate(values):
        buckets.setdefault(v, []).append(position)
    groups = []
    while (left := sum(map(len, buckets.values()))) >= 2 * l:
        must = [v for v, bucket in buckets.items() if len(bucket) * l > left - l]
        others = sorted((v for v, bucket in buckets.items() if bucket and v not in must), key=lambda v: buckets[v][0])
        chosen = must if len(must) > l else must + others[: l - len(must)]
        groups.append(sorted(buckets[v].pop(0) for v in chosen))
    rest = sorted(position for bucket in buckets.values() for position in bucket)
    return [*groups, rest] if rest else groups


def three_phase(
    groups: Sequence[Sequence[int]], l: int, walks: dict[int, list[int]], group_walk: Sequence[int]
) -> tuple[list[list[int]], list[int], int, int]:
    """The values that stay in every group, the residue's, its size after phase 1 and its height before phase 3.

    walks[v]: the groups that hold v, in the order in which they are tried; of values equally rare in the residue the
    lowest is taken.
    """
    stay = [list(group) for group in groups]
    residue: list[int] = []

    def move(group: int, value: int) -> None:
        stay[group].remove(value)
        residue.append(value)

    for g, group in enumerate(stay):
        while not eligible(group, l):
            move(g, min(pillars(group)))
    after_first, first_height = len(residue), -1
    while not eligible(residue, l):
        counts = Counter(residue)
        before = height(residue)

        def alive(g: int) -> bool:
            fat = len(stay[g]) > l * height(stay[g])
            return bool(stay[g]) and (fat or not pillars(stay[g]) & pillars(residue))

        living = [g for g in range(len(stay)) if alive(g)]
        if living:
            v = min({v for g in living for v in stay[g]}, key=lambda v: (counts[v], v))
            g = next(g for g in walks[v] if g in living and v in stay[g])
            for value in [v] if len(stay[g]) > l * height(stay[g]) else pillars(stay[g]):
                move(g, value)
            assert height(residue) == before, "phase 2 never raises the residue's height"
            continue
        first_height = before if first_height < 0 else first_height
        common, chosen = pillars(residue), []
        while common:
            g = min((g for g in group_walk if stay[g]), key=lambda g: len(pillars(stay[g]) & common))
            assert len(pillars(stay[g]) & common) < len(common)
            common &= pillars(stay[g])
            chosen.append(g)
        for g in chosen:
            for value in pillars(stay[g]):
                move(g, value)
        assert height(residue) < before + len(chosen)
    return stay, residue, after_first, first_height


def anatomy(buckets: Sequence[int], l: int, walk: Sequence[int]) -> list[int]:
    """The group of every record; records come in random order, and the first of a bucket is taken first."""
    waiting: dict[int, list[int]] = {}
    for row, b in enumerate(buckets):
        waiting.setdefault(b, []).append(row)
    groups: list[list[int]] = []
    while sum(1 for rows in waiting.values() if rows) >= l:
        largest = sorted((b for b in waiting if waiting[b]), key=lambda b: (-len(waiting[b]), waiting[b][0]))
        groups.append([waiting[b].pop(0) for b in largest[:l]])
    order = [g for g in walk if g < len(groups)]
    cursor = 0
    for b in sorted(waiting):
        for row in waiting[b]:
            for _ in range(len(order)):
                group = groups[order[cursor % len(order)]]
                if all(buckets[other] != b for other in group):
                    group.append(row)
                    cursor += 1
                    break
                cursor += 1
    out = [-1] * len(buckets)
    for g, rows in enumerate(groups):
        for row in rows:
            out[row] = g
    return out


def cuts(n: int, k: int) -> list[list[range]]:
    """All ways to cut n records into runs of k to 2k - 1."""
    if n == 0:
        return [[]]
    out = []
    for size in range(k, min(n, 2 * k - 1) + 1):
        out += [[*rest, range(n - size, n)] for rest in cuts(n - size, k)]
    return out
