"""Recursive cuts of a table into classes: an explicit stack over rows that lie side by side, permuted in place.

The rows of a part fall into slots: one per value of the column at hand. A cut sends the slots first <= slot < last to
one side and the rest to the other. Summaries that run from both ends price every cut in time proportional to the
number of columns: what both sides lose together. The cheapest cut whose sides meet every requirement is made.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from noren.kernels.mondrian_costs import RANKED, SET, TREE, cell_cost
from noren.kernels.mondrian_slots import SLOTS, summarise, survey, tied_slots, value_slots
from noren.kernels.requirements import class_holds
from noren.kernels.term_rules import terms_hold

SHORT = 256
"""Up to so many rows, histograms are counted afresh for every cut that is tried."""
LADDER = 1 << 20
"""Room for histograms that run over the slots."""


@njit(cache=True, nogil=True)
def cut(rows, secrets, order, begins, kinds, at, prices, rules, widths, least, guarded, relaxed):
    """Cut parts of a table as far as requirements permit. Marks, of n + 1 places, where a class ends, with a number
    that grows with every cut: a part is always cut before what comes out of it. Ends of given parts have 1.

    rows, secrets: codes of the quasi-identifiers and of the sensitive columns, one line per record; both and `order`
    are permuted so that every class lies in one piece. begins: where the parts begin, and the end. widths: domain
    sizes of the quasi-identifiers. least: smallest class that any requirement permits. guarded: whether a requirement
    asks for more than that size. relaxed: whether records with equal values may part where nothing else helps. Rules
    about terms stand at the end of `rules`; they find the terms of a record by its number in `order`.
    """
    n, q = rows.shape
    parts = len(begins) - 1
    most = SLOTS if relaxed else 1
    for b in range(q):
        most = max(most, min(widths[b], SLOTS) if kinds[b] == RANKED else widths[b])
    low, high, word, active = (
        np.empty(q, np.int32),
        np.empty(q, np.int32),
        np.empty(q, np.uint64),
        np.empty(q, np.int64),
    )
    counts, slot_of = np.zeros(widths.max(), np.int64), np.empty(widths.max(), np.int32)
    present, before = np.empty(widths.max() + 1, np.int64), np.empty(most + 1, np.int64)
    slots = np.empty(n, np.int32)
    lows, highs, words = _summaries(most, q)
    low_ahead, high_ahead, word_ahead = _summaries(most, q)
    low_behind, high_behind, word_behind = _summaries(most, q)
    room = max(2, at.shape[1]) * most + 2
    costs, firsts, lasts = np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64)
    whole, side = np.zeros((secrets.shape[1], rules[5].shape[1])), np.zeros((secrets.shape[1], rules[5].shape[1]))
    ladder = np.empty(LADDER if guarded else 1)
    ends = np.zeros(n + 1, np.int64)
    made = 1
    stack = np.empty((128, 2), np.int64)
    for part in range(parts):
        ends[begins[part + 1]] = 1
        stack[0, 0], stack[0, 1] = begins[part], begins[part + 1]
        top = 1
        while top > 0:
            top -= 1
            start, stop = stack[top, 0], stack[top, 1]
            m = stop - start
            chosen, first, last, tied = -1, 0, 0, False
            if m >= 2 * least:
                spans, count = survey(rows, start, stop, kinds, low, high, word, active)
                now = 0.0
                for j in range(count):
                    b = active[j]
                    now += cell_cost(kinds, at, prices, b, low[b], high[b], word[b])
                if guarded and count:
                    _histogram(secrets, start, stop, slots, -1, 0, whole)
                best = m * now * (1 + 1e-12) + 1e-12
                for turn in range(2 * count if relaxed else count):
                    if turn == count:
                        if chosen >= 0:
                            break
                        best = m * now * (1 - 1e-9)
                        tied = True
                    a = active[turn % count]
                    if tied:
                        s = tied_slots(rows, start, stop, a, widths, low, high, slots, before)
                    else:
                        s = value_slots(
                            rows, start, stop, a, low[a], high[a], kinds[a] == RANKED, counts, slot_of, present, slots,
                            before,
                        )  # fmt: skip
                    summarise(
                        rows, start, stop, active, spans, count, slots, s, lows, highs, words, low_ahead, high_ahead,
                        word_ahead, low_behind, high_behind, word_behind,
                    )  # fmt: skip
                    found = _candidates(a, s, kinds[a] if not tied else RANKED, present, at, firsts, lasts)
                    found = _price(
                        found, firsts, lasts, costs, best, s, m, least, before, kinds, at, prices, active, count, lows,
                        highs, words, low_ahead, high_ahead, word_ahead, low_behind, high_behind, word_behind,
                    )  # fmt: skip
                    c = _first_permitted(
                        found, costs, firsts, lasts, before, guarded, secrets, order, start, stop, slots, s, rules,
                        whole, side, ladder,
                    )  # fmt: skip
                    if c >= 0:
                        best, chosen, first, last = costs[c], a, firsts[c], lasts[c]
            if chosen < 0:
                continue
            if tied:
                tied_slots(rows, start, stop, chosen, widths, low, high, slots, before)
            else:
                value_slots(
                    rows, start, stop, chosen, low[chosen], high[chosen], kinds[chosen] == RANKED, counts, slot_of,
                    present, slots, before,
                )  # fmt: skip
            middle = _part(rows, secrets, order, slots, start, stop, first, last)
            made += 1
            ends[middle] = made
            small = 1 if middle - start > stop - middle else 0
            stack[top + 1 - small, 0], stack[top + 1 - small, 1] = start, middle
            stack[top + small, 0], stack[top + small, 1] = middle, stop
            top += 2
    return ends


@njit(cache=True, nogil=True)
def hold(rules, hists, n):
    """All requirements on one class, except those about terms."""
    return class_holds(rules[0], rules[1], rules[2], rules[3], rules[4], rules[5], rules[6], rules[7], hists, n)


@njit(cache=True, nogil=True)
def _summaries(most, q):
    return np.empty((most + 1, q), np.int32), np.empty((most + 1, q), np.int32), np.empty((most + 1, q), np.uint64)


@njit(cache=True, nogil=True)
def _candidates(a, s, kind, present, at, firsts, lasts):
    """All cuts of a column: between two values if it is ranked, likewise or one value against the rest in a set, and
    one node below the common one against the rest in a tree. Returns how many; slots firsts[c] to lasts[c] part."""
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


@njit(cache=True, nogil=True)
def _price(found, firsts, lasts, costs, best, s, m, least, before, kinds, at, prices, active, count, lows, highs, words,
           low_ahead, high_ahead, word_ahead, low_behind, high_behind, word_behind):  # fmt: skip
    """What both sides of every cut lose; only cuts below `best` with large enough sides stay. How many."""
    stay = 0
    for c in range(found):
        u, v = firsts[c], lasts[c]
        size = before[v] - before[u]
        if size < least or m - size < least:
            continue
        total = 0.0
        for j in range(count):
            b = active[j]
            if u == 0:
                low, high, word = low_ahead[v, j], high_ahead[v, j], word_ahead[v, j]
            else:
                low, high, word = lows[u, j], highs[u, j], words[u, j]
                for t in range(u + 1, v):
                    low, high, word = min(low, lows[t, j]), max(high, highs[t, j]), word | words[t, j]
            total += size * cell_cost(kinds, at, prices, b, low, high, word)
            low, high = min(low_ahead[u, j], low_behind[v, j]), max(high_ahead[u, j], high_behind[v, j])
            total += (m - size) * cell_cost(kinds, at, prices, b, low, high, word_ahead[u, j] | word_behind[v, j])
            if total >= best:
                break
        if total < best:
            costs[stay], firsts[stay], lasts[stay] = total, u, v
            stay += 1
    return stay


@njit(cache=True, nogil=True)
def _first_permitted(found, costs, firsts, lasts, before, guarded, secrets, order, start, stop, slots, s, rules, whole,
                     side, ladder):  # fmt: skip
    """The cheapest cut whose sides meet all requirements, -1 for none."""
    columns, values = side.shape
    running = stop - start > SHORT and (s + 1) * columns * values <= len(ladder)
    climbed = False
    linked = len(rules[8].of) > 0
    while found:
        c = 0
        for i in range(1, found):
            if costs[i] < costs[c]:
                c = i
        if not guarded and not linked:
            return c
        u, v = firsts[c], lasts[c]
        if not guarded:
            if _terms_permit(rules[8], order, start, stop, slots, u, v):
                return c
            found -= 1
            costs[c], firsts[c], lasts[c] = costs[found], firsts[found], lasts[found]
            continue
        if running:
            if not climbed:
                _climb(secrets, start, stop, slots, s, values, ladder)
                climbed = True
            for k in range(columns):
                for value in range(values):
                    place = k * values + value
                    side[k, value] = ladder[v * columns * values + place] - ladder[u * columns * values + place]
        else:
            _histogram(secrets, start, stop, slots, u, v, side)
        size = before[v] - before[u]
        if hold(rules, side, size):
            for k in range(columns):
                for value in range(values):
                    side[k, value] = whole[k, value] - side[k, value]
            if hold(rules, side, stop - start - size) and (
                not linked or _terms_permit(rules[8], order, start, stop, slots, u, v)
            ):
                return c
        found -= 1
        costs[c], firsts[c], lasts[c] = costs[found], firsts[found], lasts[found]
    return -1


@njit(cache=True, nogil=True)
def _terms_permit(terms, order, start, stop, slots, u, v):
    """Whether both sides of a cut meet the rules about terms: the smaller one first, which fails more often."""
    inside = 0
    for i in range(start, stop):
        inside += u <= slots[i] < v
    first = 2 * inside <= stop - start
    for turn in range(2):
        chosen = first if turn == 0 else not first
        m = 0
        for i in range(start, stop):
            if (u <= slots[i] < v) == chosen:
                terms.members[m] = order[i]
                m += 1
        if not terms_hold(terms, m):
            return False
    return True


@njit(cache=True, nogil=True)
def _histogram(secrets, start, stop, slots, u, v, hists):
    """Count the sensitive values of the slots u to v, or of all rows if u < 0."""
    hists[:] = 0
    for i in range(start, stop):
        if u < 0 or u <= slots[i] < v:
            for k in range(secrets.shape[1]):
                hists[k, secrets[i, k]] += 1


@njit(cache=True, nogil=True)
def _climb(secrets, start, stop, slots, s, values, ladder):
    """Histograms of all slots before each slot, one after the other."""
    columns = secrets.shape[1]
    step = columns * values
    ladder[: (s + 1) * step] = 0
    for i in range(start, stop):
        for k in range(columns):
            ladder[(slots[i] + 1) * step + k * values + secrets[i, k]] += 1
    for place in range(step, (s + 1) * step):
        ladder[place] += ladder[place - step]


@njit(cache=True, nogil=True)
def _part(rows, secrets, order, slots, start, stop, first, last):
    """Bring the rows of the chosen slots to the front; where the others begin."""
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
        order[i], order[j] = order[j], order[i]
        slots[i], slots[j] = slots[j], slots[i]
