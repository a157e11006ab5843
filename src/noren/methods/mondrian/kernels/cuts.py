"""Recursive cuts of a table into classes: an explicit stack over rows that lie side by side, permuted in place.

The rows of a part fall into slots: one per value of the column at hand. A cut sends the slots first <= slot < last to
one side and the rest to the other. Summaries that run from both ends price every cut in time proportional to the
number of columns: what both sides lose together. The cheapest cut whose sides meet every requirement is made.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import class_holds
from noren.methods.mondrian.kernels.costs import RANKED, SET, TREE, Cover, cell_cost
from noren.methods.mondrian.kernels.slots import (
    AHEAD,
    BEHIND,
    OWN,
    SLOTS,
    new_slots,
    summarise,
    survey,
    tied_slots,
    value_slots,
)
from noren.methods.mondrian.kernels.term_rules import terms_hold

SHORT = 256
"""Up to so many rows, histograms are counted afresh for every cut that is tried."""
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
    """What every class must meet."""

    rules: Any
    """Requirements on sensitive values: `Rules`."""
    terms: Any
    """Requirements on terms: `TermRules`, or None, so that nothing about terms is compiled where there are none."""
    least: Any
    """The smallest class that any of them permits."""
    guarded: Any
    """True if the rules ask for more than that size, else None, so that nothing about secrets is compiled then."""


class Cuts(NamedTuple):
    """Cuts that are tried: slots first <= slot < last go to one side, and both sides together lose `loss`."""

    first: Any
    last: Any
    loss: Any


class Tallies(NamedTuple):
    """Room for histograms of sensitive values: of a part, of one side of a cut, and those that run over the slots."""

    whole: Any
    side: Any
    ladder: Any


class Desk(NamedTuple):
    """Room to work in: what a part covers, its active columns, its slots, the cuts of a column, the parts to come."""

    cover: Any
    columns: Any
    slots: Any
    cuts: Any
    tallies: Any
    stack: Any


def cut(records, begins, costs, required, relaxed):
    """Cut parts of a table as far as requirements permit. Marks, of n + 1 places, where a class ends, with a number
    that grows with every cut: a part is always cut before what comes out of it. Ends of given parts have 1.

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
    _cut(records, begins, costs, required, relaxed, desk, ends)
    return ends


@kernel(work=lambda records, *_: records.rows.size)
def _cut(records, begins, costs, required, relaxed, desk, ends):
    """`cut` in room that was made for it."""
    rows, least = records.rows, required.least
    kinds, at, prices = costs.kinds, costs.at, costs.prices
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
            chosen, first, last, tied = -1, 0, 0, False
            if m >= 2 * least:
                spans, count = survey(rows, start, stop, costs, cover, columns)
                active = columns[:count]
                now = 0.0
                for j in range(count):
                    b = active[j]
                    now += cell_cost(kinds, at, prices, b, cover.low[b], cover.high[b], cover.word[b])
                if count:
                    _tally(required.guarded, records.secrets, start, stop, slots, tallies)
                best = m * now * (1 + 1e-12) + 1e-12
                for turn in range(2 * count if relaxed else count):
                    if turn == count:
                        if chosen >= 0:
                            break
                        best = m * now * (1 - 1e-9)
                        tied = True
                    a = active[turn % count]
                    s = _slotted(rows, start, stop, a, tied, cover, costs, slots)
                    summarise(rows, start, stop, active, spans, slots, s)
                    found = _candidates(a, s, kinds[a] if not tied else RANKED, slots.present, at, cuts)
                    found = _price(cuts, found, best, m, least, costs, active, slots)
                    c = _first_permitted(cuts, found, records, start, stop, slots, s, required, tallies)
                    if c >= 0:
                        best, chosen, first, last = cuts.loss[c], a, cuts.first[c], cuts.last[c]
            if chosen < 0:
                continue
            _slotted(rows, start, stop, chosen, tied, cover, costs, slots)
            middle = _part(records, slots.of, start, stop, first, last)
            made += 1
            ends[middle] = made
            small = 1 if middle - start > stop - middle else 0
            stack[top + 1 - small, 0], stack[top + 1 - small, 1] = start, middle
            stack[top + small, 0], stack[top + small, 1] = middle, stop
            top += 2
    return ends


@kernel
def _slotted(rows, start, stop, a, tied, cover, costs, slots):
    """The rows in slots by column a, with ties broken or one slot per value; the number of slots."""
    if tied:
        return tied_slots(rows, start, stop, a, cover, costs.widths, slots)
    return value_slots(rows, start, stop, a, cover, costs.kinds[a] == RANKED, slots)


@kernel
def _candidates(a, s, kind, present, at, cuts):
    """All cuts of a column: between two values if it is ranked, likewise or one value against the rest in a set, and
    one node below the common one against the rest in a tree. Returns how many."""
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
    """What both sides of every cut of m rows lose; only cuts below `best` with large enough sides stay. How many."""
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
    """The cheapest cut whose sides meet all requirements, -1 for none."""
    firsts, lasts, losses = cuts
    who, of = records.who, slots.of
    climbed = False
    while found:
        c = 0
        for i in range(1, found):
            if losses[i] < losses[c]:
                c = i
        u, v = firsts[c], lasts[c]
        rules, secrets = required.rules, records.secrets
        permitted = _values_permit(required.guarded, rules, secrets, start, stop, slots, s, u, v, climbed, tallies)
        if permitted and _terms_permit(required.terms, who, start, stop, of, u, v):
            return c
        climbed = True
        found -= 1
        losses[c], firsts[c], lasts[c] = losses[found], firsts[found], lasts[found]
    return -1


@kernel
def _values_permit(guarded, rules, secrets, start, stop, slots, s, u, v, climbed, tallies):
    """Whether both sides of a cut meet the rules about sensitive values. climbed: whether a cut of these slots was
    tried before."""
    if guarded is None:
        return True
    return _values_hold(rules, secrets, start, stop, slots, s, u, v, climbed, tallies)


@kernel
def _values_hold(rules, secrets, start, stop, slots, s, u, v, climbed, tallies):
    """The same where there are such rules."""
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
def _tally(guarded, secrets, start, stop, slots, tallies):
    """Count the sensitive values of a part, where rules ask about them."""
    if guarded is None:
        return
    _histogram(secrets, start, stop, slots.of, -1, 0, tallies.whole)


@kernel
def _terms_permit(terms, who, start, stop, of, u, v):
    """Whether both sides of a cut meet the rules about terms: the smaller one first, which fails more often."""
    if terms is None:
        return True
    return _sides_hold(terms, who, start, stop, of, u, v)


@kernel
def _sides_hold(terms, who, start, stop, slots, u, v):
    """The same where there are such rules."""
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
    """Count the sensitive values of the slots u to v, or of all rows if u < 0."""
    hists[:] = 0
    for i in range(start, stop):
        if u < 0 or u <= slots[i] < v:
            for k in range(secrets.shape[1]):
                hists[k, secrets[i, k]] += 1


@kernel
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


@kernel
def _part(records, slots, start, stop, first, last):
    """Bring the rows of the chosen slots to the front; where the others begin."""
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
