"""The rows of a part in slots, by the values of one column, and what the slots cover in all columns.

The columns that have several values in a part are its active ones, sets last.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import stable_order
from noren.methods.mondrian.kernels.costs import NOTHING, SET, bit_of

SLOTS = 512
"""Most slots of a ranked column, and of records with ties; beyond, neighbours share one."""


OWN, AHEAD, BEHIND = 0, 1, 2
"""What a slot covers, what those before it do, and those from it on."""


class Slots(NamedTuple):
    """The slots of a part, by one column."""

    of: Any
    """Per row: its slot."""
    before: Any
    """Per slot: the rows in the slots before it."""
    present: Any
    """Per slot: a code in it."""
    low: Any
    high: Any
    word: Any
    """(OWN, AHEAD or BEHIND, slots, columns): the cover, in active columns, one after the other."""
    counts: Any
    slot_of: Any
    """Room to work in, per code: zero between calls, and the slot."""


def new_slots(n, most, widest, q):
    """Room for so many slots of n rows."""
    shape = (3, most + 1, q)
    return Slots(
        np.empty(n, np.int32), np.empty(most + 1, np.int64), np.empty(widest + 1, np.int64),
        np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.uint64),
        np.zeros(widest, np.int64), np.empty(widest, np.int32),
    )  # fmt: skip


@kernel
def survey(rows, start, stop, costs, cover, active):
    """What a part covers. Returns how many of its active columns are no sets, and how many there are."""
    spans = count = 0
    for j in range(rows.shape[1]):
        b = costs.order[j]
        low, high, word = NOTHING, np.int32(-1), np.uint64(0)
        for i in range(start, stop):
            low, high, word = min(low, rows[i, b]), max(high, rows[i, b]), word | bit_of(rows[i, b])
        cover.low[b], cover.high[b], cover.word[b] = low, high, word
        if low < high:
            active[count] = b
            count += 1
            spans += costs.kinds[b] != SET
    return spans, count


@kernel
def value_slots(rows, start, stop, a, cover, ranked, slots):
    """One slot per value of column a, in the order of codes; the number of slots. Many ranked values share slots."""
    counts, slot_of, present, before, of = slots.counts, slots.slot_of, slots.present, slots.before, slots.of
    lowest, highest = cover.low[a], cover.high[a]
    m = stop - start
    values = 0
    if highest - lowest < 8 * m:
        for i in range(start, stop):
            counts[rows[i, a]] += 1
        for code in range(lowest, highest + 1):
            if counts[code]:
                present[values] = code
                values += 1
    else:
        for i in range(start, stop):
            if counts[rows[i, a]] == 0:
                present[values] = rows[i, a]
                values += 1
            counts[rows[i, a]] += 1
        codes = present[:values].copy()
        rank = stable_order(codes)
        for j in range(values):
            present[j] = codes[rank[j]]
    share = m / SLOTS if ranked and values > SLOTS else 0.0
    s = 0
    passed = 0
    before[0] = 0
    for j in range(values):
        code = present[j]
        slot_of[code] = s
        present[s] = code
        passed += counts[code]
        counts[code] = 0
        if passed >= (s + 1) * share or j == values - 1:
            s += 1
            before[s] = passed
    for i in range(start, stop):
        of[i] = slot_of[rows[i, a]]
    return s


@kernel
def tied_slots(rows, start, stop, a, cover, widths, slots):
    """Slots of equal size in the order of column a, ties by the other active columns; the number of slots."""
    low, high, before, of = cover.low, cover.high, slots.before, slots.of
    m = stop - start
    keys = np.empty(m, np.int64)
    for i in range(m):
        keys[i] = rows[start + i, a]
    room = np.int64(2**62) // widths[a]
    for b in range(rows.shape[1]):
        if b == a or low[b] >= high[b]:
            continue
        room //= widths[b]
        if room == 0:
            break
        for i in range(m):
            keys[i] = keys[i] * widths[b] + rows[start + i, b]
    rank = stable_order(keys)
    s = min(m, SLOTS)
    before[0] = 0
    for i in range(m):
        slot = i * s // m
        of[start + rank[i]] = slot
        before[slot + 1] = i + 1
    return s


@kernel
def summarise(rows, start, stop, active, spans, slots, s):
    """What every slot covers, what those before it do, and those from it on; the first `spans` columns are no sets."""
    of, count, low, high, word = slots.of, len(active), slots.low, slots.high, slots.word
    for t in range(s):
        for j in range(count):
            low[OWN, t, j], high[OWN, t, j], word[OWN, t, j] = NOTHING, -1, 0
    for i in range(start, stop):
        t = of[i]
        for j in range(spans):
            code = rows[i, active[j]]
            low[OWN, t, j] = min(low[OWN, t, j], code)
            high[OWN, t, j] = max(high[OWN, t, j], code)
        for j in range(spans, count):
            word[OWN, t, j] |= bit_of(rows[i, active[j]])
    for j in range(count):
        for way in range(AHEAD, BEHIND + 1):
            t = 0 if way == AHEAD else s
            lowest, highest, bits = NOTHING, np.int32(-1), np.uint64(0)
            for _ in range(s):
                low[way, t, j], high[way, t, j], word[way, t, j] = lowest, highest, bits
                u = t if way == AHEAD else t - 1
                lowest, highest = min(lowest, low[OWN, u, j]), max(highest, high[OWN, u, j])
                bits |= word[OWN, u, j]
                t += 1 if way == AHEAD else -1
            low[way, t, j], high[way, t, j], word[way, t, j] = lowest, highest, bits
