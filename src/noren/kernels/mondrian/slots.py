"""The rows of a part in slots, by the values of one column, and what the slots cover in all columns.

The columns that have several values in a part are its active ones, sets last.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernels.compiled import kernel
from noren.kernels.mondrian.costs import NOTHING, SET, Cover, bit_of
from noren.kernels.sorting import stable_order

SLOTS = 512
"""Most slots of a ranked column, and of records with ties; beyond, neighbours share one."""


class Slots(NamedTuple):
    """The slots of a part, by one column."""

    of: Any
    """Per row: its slot."""
    before: Any
    """Per slot: the rows in the slots before it."""
    present: Any
    """Per slot: a code in it."""
    own: Any
    ahead: Any
    behind: Any
    """What every slot covers, what those before it do, and those from it on: in active columns, one after the other."""
    counts: Any
    slot_of: Any
    """Room to work in, per code: zero between calls, and the slot."""


@kernel()
def new_slots(n, most, widest, q):
    """Room for so many slots of n rows."""
    return Slots(
        np.empty(n, np.int32), np.empty(most + 1, np.int64), np.empty(widest + 1, np.int64),
        _covers(most, q), _covers(most, q), _covers(most, q), np.zeros(widest, np.int64), np.empty(widest, np.int32),
    )  # fmt: skip


@kernel()
def _covers(most, q):
    low, high = np.empty((most + 1, q), np.int32), np.empty((most + 1, q), np.int32)
    return Cover(low, high, np.empty((most + 1, q), np.uint64))


@kernel()
def survey(rows, start, stop, kinds, cover, active):
    """What a part covers. Returns how many of its active columns are no sets, and how many there are."""
    q = rows.shape[1]
    low, high = cover.low, cover.high
    low[:] = NOTHING
    high[:] = -1
    for i in range(start, stop):
        for b in range(q):
            low[b] = min(low[b], rows[i, b])
            high[b] = max(high[b], rows[i, b])
    count = 0
    for b in range(q):
        if kinds[b] != SET and low[b] < high[b]:
            active[count] = b
            count += 1
    spans = count
    for b in range(q):
        if kinds[b] == SET and low[b] < high[b]:
            active[count] = b
            count += 1
            covered = np.uint64(0)
            for i in range(start, stop):
                covered |= bit_of(rows[i, b])
            cover.word[b] = covered
    return spans, count


@kernel()
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


@kernel()
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


@kernel()
def summarise(rows, start, stop, active, spans, slots, s):
    """What every slot covers, what those before it do, and those from it on; the first `spans` columns are no sets."""
    of, count = slots.of, len(active)
    low, high, word = slots.own
    low_ahead, high_ahead, word_ahead = slots.ahead
    low_behind, high_behind, word_behind = slots.behind
    for t in range(s):
        for j in range(spans):
            low[t, j] = NOTHING
            high[t, j] = -1
        for j in range(spans, count):
            word[t, j] = 0
    for i in range(start, stop):
        t = of[i]
        for j in range(spans):
            code = rows[i, active[j]]
            low[t, j] = min(low[t, j], code)
            high[t, j] = max(high[t, j], code)
        for j in range(spans, count):
            word[t, j] |= bit_of(rows[i, active[j]])
    for j in range(spans):
        low_ahead[0, j] = NOTHING
        high_ahead[0, j] = -1
        low_behind[s, j] = NOTHING
        high_behind[s, j] = -1
    for j in range(spans, count):
        word_ahead[0, j] = 0
        word_behind[s, j] = 0
    for t in range(s):
        for j in range(spans):
            low_ahead[t + 1, j] = min(low_ahead[t, j], low[t, j])
            high_ahead[t + 1, j] = max(high_ahead[t, j], high[t, j])
        for j in range(spans, count):
            word_ahead[t + 1, j] = word_ahead[t, j] | word[t, j]
    for t in range(s - 1, -1, -1):
        for j in range(spans):
            low_behind[t, j] = min(low_behind[t + 1, j], low[t, j])
            high_behind[t, j] = max(high_behind[t + 1, j], high[t, j])
        for j in range(spans, count):
            word_behind[t, j] = word_behind[t + 1, j] | word[t, j]
