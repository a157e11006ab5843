"""Recursive cuts of a table into classes: an explicit stack over contiguous rows, permuted in place.

The rows of a part fall into slots: one per value of the column at hand. A cut sends the slots first <= slot < last to
one side and the rest to the other. Summaries that run from both ends price every cut in time proportional to the
number of columns: what both sides lose together. The cheapest cut whose sides meet every requirement is made.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import class_holds, stable_order
from noren.methods.mondrian.kernels.costs import NOTHING, RANKED, SET, TREE, Cover, bit_of, cell_cost
from noren.methods.mondrian.kernels.term_rules import terms_hold

SLOTS = 512
"""Most slots of a ranked column, and of records with ties; beyond, neighbours share one."""


OWN, AHEAD, BEHIND = 0, 1, 2
"""What a slot covers, what those before it do, and those from it on."""
SHORT = 256
"""Up to so many rows, histograms are counted afresh for every cut that is tried."""
NONE = np.int64(-1)
"""No cut. Numba would make a type of its own of a plain number."""
LADDER = 1 << 20
"""Room for histograms that run over the slots."""


class Points(NamedTuple):
    """The table, one line per record."""

    rows: Any
    """Codes of the quasi-identifiers."""
    secrets: Any
    """Codes of the sensitive columns."""
    who: Any
    """Which record it is."""


class Required(NamedTuple):
    """The requirements on every class."""

    rules: Any
    """Requirements on sensitive values: `Rules`."""
    terms: Any
    """Requirements on terms: `TermRules`, or None, so that nothing about terms is compiled where there are none."""
    least: Any
    """The smallest class that any of them permits."""
    guarded: Any
    """Whether the rules ask for more than that size."""


class Cuts(NamedTuple):
    """The candidate cuts: slots first <= slot < last go to one side, and both sides together lose `loss`."""

    first: Any
    last: Any
    loss: Any


class Tallies(NamedTuple):
    """Memory for histograms of sensitive values: of a part, of one side of a cut, and running ones over the slots."""

    whole: Any
    side: Any
    ladder: Any


class Desk(NamedTuple):
    """Working memory: what a part covers, its active columns, its slots, the cuts of a column, the parts to come."""

    cover: Any
    columns: Any
    slots: Any
    cuts: Any
    tallies: Any
    stack: Any


def cut(records, begins, costs, required, relaxed) -> Any:
    """Cut parts of a table as far as requirements permit. Marks, of n + 1 entries, give the ends of classes with
    increasing numbers: a part is always cut before its own parts. Ends of given parts have 1.

    Points are permuted so that every class lies in one piece. begins: where the parts begin, and the end. relaxed:
    whether records with equal values may part where nothing else helps. Rules about terms find the terms of a record
    by records.who.
    """
    (n, q), widths = records.rows.shape, costs.widths
    most = int(np.where(costs.kinds == RANKED, np.minimum(widths, SLOTS), widths).max(initial=1))
    most = max(most, SLOTS) if relaxed else most
    room = max(2, costs.at.shape[1]) * most + 2
    shape = (records.secrets.shape[1], required.rules.reference.shape[1])
    desk = Desk(
        Cover(np.empty(q, np.int32), np.empty(q, np.int32), np.empty(q, np.uint64)),
        np.empty(q, np.int64),
        new_slots(n, most, int(widths.max(initial=1)), q),
        Cuts(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)),
        Tallies(np.zeros(shape), np.zeros(shape), np.empty(LADDER if required.guarded else 1)),
        np.empty((128, 2), np.int64),
    )
    ends = np.zeros(n + 1, np.int64)
    _cut(records, begins, costs, required, True if relaxed else None, desk, ends)
    return ends


@kernel(work=lambda records, *_: records.rows.size)
def _cut(records, begins, costs, required, relaxed, desk, ends):
    """Run `cut` in allocated memory. relaxed: True, or None, so that nothing about ties is compiled."""
    rows, secrets, kinds, at, prices = records.rows, records.secrets, costs.kinds, costs.at, costs.prices
    cover, columns, slots, cuts, tallies, stack = desk
    made = 1
    for part in range(len(begins) - 1):
        ends[begins[part + 1]] = 1
        stack[0, 0], stack[0, 1] = begins[part], begins[part + 1]
        top = 1
        while top > 0:
            top -= 1
            start, stop = stack[top, 0], stack[top, 1]
            m = stop - start
            if m < 2 * required.least:
                continue
            spans, count = survey(rows, start, stop, costs, cover, columns)
            active = columns[:count]
            now = 0.0
            for j in range(count):
                b = active[j]
                now += cell_cost(kinds, at, prices, b, cover.low[b], cover.high[b], cover.word[b])
            if required.guarded:
                tallies.whole[:] = 0
                for i in range(start, stop):
                    for k in range(secrets.shape[1]):
                        tallies.whole[k, secrets[i, k]] += 1
            best = m * now * (1 + 1e-12) + 1e-12
            chosen, first, last = NONE, NONE, NONE
            for turn in range(count if relaxed is None else 2 * count):
                if turn == count:
                    if chosen >= 0:
                        break
                    best = m * now * (1 - 1e-9)
                a, tied = active[turn % count], turn >= count
                s = fill_slots(rows, start, stop, a, relaxed, tied, cover, costs, slots)
                summarise(rows, start, stop, active, spans, slots, s)
                found = _candidates(a, s, RANKED if tied else kinds[a], slots.present, at, cuts)
                found = _price(cuts, found, best, m, required.least, costs, active, slots)
                c = _first_permitted(cuts, found, records, start, stop, slots, s, required, tallies)
                if c >= 0:
                    best, chosen, first, last = cuts.loss[c], turn, cuts.first[c], cuts.last[c]
            if chosen < 0:
                continue
            fill_slots(rows, start, stop, active[chosen % count], relaxed, chosen >= count, cover, costs, slots)
            middle = _move_rows(records, slots.of, start, stop, first, last)
            made += 1
            ends[middle] = made
            small = 1 if middle - start > stop - middle else 0
            stack[top + 1 - small, 0], stack[top + 1 - small, 1] = start, middle
            stack[top + small, 0], stack[top + small, 1] = middle, stop
            top += 2


@kernel
def _candidates(a, s, kind, present, at, cuts):
    """List all cuts of a column: between two values if it is ranked, also one value against the rest in a set, and one
    node below the common one against the rest in a tree. Returns their number."""
    firsts, lasts = cuts.first, cuts.last
    found = 0
    if kind != TREE:
        for v in range(1, s):
            firsts[found], lasts[found] = 0, v
            found += 1
        if kind == SET:
            for u in range(1, s - 1):
                firsts[found], lasts[found] = u, u + 1
                found += 1
        return found
    h = 0
    while at[a, h, present[0]] != at[a, h, present[s - 1]]:
        u = 0
        while u < s:
            v = u + 1
            while v < s and at[a, h, present[v]] == at[a, h, present[u]]:
                v += 1
            if h == 0 or at[a, h, present[u]] != at[a, h - 1, present[u]]:
                firsts[found], lasts[found] = u, v
                found += 1
            u = v
        h += 1
    return found


@kernel
def _price(cuts, found, best, m, least, costs, active, slots):
    """Compute the loss of both sides of every cut of m rows; keep cuts below `best` with large enough sides. Returns
    their number."""
    firsts, lasts, losses = cuts
    kinds, at, prices = costs.kinds, costs.at, costs.prices
    before, lows, highs, words = slots.before, slots.low, slots.high, slots.word
    stay = 0
    for c in range(found):
        u, v = firsts[c], lasts[c]
        size = before[v] - before[u]
        if size < least or m - size < least:
            continue
        total = 0.0
        for j in range(len(active)):
            way = AHEAD if u == 0 else OWN
            first = v if u == 0 else u
            low, high, word = lows[way, first, j], highs[way, first, j], words[way, first, j]
            for t in range(first + 1, v):
                low, high, word = min(low, lows[OWN, t, j]), max(high, highs[OWN, t, j]), word | words[OWN, t, j]
            share = size
            for _ in range(2):  # one side, then the other: what a cell costs is a good part of the code
                total += share * cell_cost(kinds, at, prices, active[j], low, high, word)
                share = m - size
                low, high = min(lows[AHEAD, u, j], lows[BEHIND, v, j]), max(highs[AHEAD, u, j], highs[BEHIND, v, j])
                word = words[AHEAD, u, j] | words[BEHIND, v, j]
            if total >= best:
                break
        if total < best:
            losses[stay], firsts[stay], lasts[stay] = total, u, v
            stay += 1
    return stay


@kernel
def _first_permitted(cuts, found, records, start, stop, slots, s, required, tallies):
    """Return the cheapest cut whose sides meet all requirements, -1 for none."""
    firsts, lasts, losses = cuts
    climbed = found < 0
    while found:
        c = 0
        for i in range(1, found):
            if losses[i] < losses[c]:
                c = i
        u, v = firsts[c], lasts[c]
        permitted = True
        if required.guarded:
            permitted = _values_permit(required.rules, records.secrets, start, stop, slots, s, u, v, climbed, tallies)
        if permitted and _terms_permit(required.terms, records.who, start, stop, slots.of, u, v):
            return c
        climbed = True
        found -= 1
        losses[c], firsts[c], lasts[c] = losses[found], firsts[found], lasts[found]
    return -1


@kernel
def _values_permit(rules, secrets, start, stop, slots, s, u, v, climbed, tallies):
    """Return whether both sides of a cut meet the rules about sensitive values. climbed: whether a cut of these slots
    was tried before."""
    whole, side, ladder = tallies
    columns, values = side.shape
    step = columns * values
    if stop - start > SHORT and (s + 1) * step <= len(ladder):
        if not climbed:
            _climb(secrets, start, stop, slots.of, s, values, ladder)
        for k in range(columns):
            for value in range(values):
                place = k * values + value
                side[k, value] = ladder[v * step + place] - ladder[u * step + place]
    else:
        _histogram(secrets, start, stop, slots.of, u, v, side)
    size = slots.before[v] - slots.before[u]
    for _ in range(2):  # one side, then the other
        if not class_holds(rules, side, size):
            return False
        size = stop - start - size
        for k in range(columns):
            for value in range(values):
                side[k, value] = whole[k, value] - side[k, value]
    return True


@kernel
def _terms_permit(terms, who, start, stop, slots, u, v):
    """Return whether both sides of a cut meet the rules about terms; the smaller side, which fails more often, is
    first."""
    if terms is None:
        return True
    inside = 0
    for i in range(start, stop):
        inside += u <= slots[i] < v
    first = 2 * inside <= stop - start
    for turn in range(2):
        chosen = first if turn == 0 else not first
        m = 0
        for i in range(start, stop):
            if (u <= slots[i] < v) == chosen:
                terms.members[m] = who[i]
                m += 1
        if not terms_hold(terms, m):
            return False
    return True


@kernel
def _histogram(secrets, start, stop, slots, u, v, hists):
    """Count the sensitive values of the slots u to v."""
    hists[:] = 0
    for i in range(start, stop):
        if u <= slots[i] < v:
            for k in range(secrets.shape[1]):
                hists[k, secrets[i, k]] += 1


@kernel
def _climb(secrets, start, stop, slots, s, values, ladder):
    """Compute the histograms of all slots before each slot."""
    columns = secrets.shape[1]
    step = columns * values
    ladder[: (s + 1) * step] = 0
    for i in range(start, stop):
        for k in range(columns):
            ladder[(slots[i] + 1) * step + k * values + secrets[i, k]] += 1
    for place in range(step, (s + 1) * step):
        ladder[place] += ladder[place - step]


@kernel
def _move_rows(records, slots, start, stop, first, last):
    """Move the rows of the chosen slots to the front; return the position of the others."""
    rows, secrets, who = records
    i, j = start, stop - 1
    while True:
        while i <= j and first <= slots[i] < last:
            i += 1
        while i <= j and not first <= slots[j] < last:
            j -= 1
        if i >= j:
            return i
        for b in range(rows.shape[1]):
            rows[i, b], rows[j, b] = rows[j, b], rows[i, b]
        for k in range(secrets.shape[1]):
            secrets[i, k], secrets[j, k] = secrets[j, k], secrets[i, k]
        who[i], who[j] = who[j], who[i]
        slots[i], slots[j] = slots[j], slots[i]


# ---------------------------------------------------------------- slots


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
    """Allocate memory for so many slots of n rows."""
    shape = (3, most + 1, q)
    return Slots(
        np.empty(n, np.int32), np.empty(most + 1, np.int64), np.empty(widest + 1, np.int64),
        np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.uint64),
        np.zeros(widest, np.int64), np.empty(widest, np.int32),
    )  # fmt: skip


@kernel
def survey(rows, start, stop, costs, cover, active):
    """Summarise what a part covers; return how many of its active columns are no sets, and how many there are."""
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
def fill_slots(rows, start, stop, a, relaxed, tied, cover, costs, slots):
    """Fill one slot per value of column a, in the order of codes, or with ties broken; return their number. Many ranked
    values share slots."""
    if relaxed is not None and tied:
        return _fill_tied(rows, start, stop, a, cover, costs.widths, slots)
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
    share = m / SLOTS if costs.kinds[a] == RANKED and values > SLOTS else 0.0
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
def _fill_tied(rows, start, stop, a, cover, widths, slots):
    """Fill slots of equal size in the order of column a, ties by the other active columns; return their number."""
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
    """Summarise what every slot covers, those before it, and those from it on; the first `spans` columns are no
    sets."""
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
