"""Cuts that leave records behind: classes under requirements that compare them with the whole table.

An ordinary cut fails where one side has too much of a secret. Here the side becomes a class without the records that
are too much; they stay with the rest, which keeps covering what it covered and can be cut again by something else. A
side is thinned until both hold: of every secret it keeps at most what a class of some size has by the table's shares,
and that size is lowered step by step.

A large part must not use up what a requirement permits, because the small ones that come out of it could not be
balanced any more. So it is cut under a stricter one (`Reserve`).
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import BETA_BASIC, CLOSE_EQUAL, CLOSE_TREE, DELTA, Rules, class_holds
from noren.methods.mondrian.kernels.costs import RANKED, Cover, cell_cost
from noren.methods.mondrian.kernels.cuts import (
    AHEAD,
    BEHIND,
    OWN,
    SLOTS,
    Cuts,
    _candidates,
    fill_slots,
    new_slots,
    summarise,
    survey,
)

STEPS = 14
"""Sizes that are tried for a side, from more than it has downwards."""
LARGEST = 1.3
"""The first of them, as a multiple of the side."""


class Secrets(NamedTuple):
    """The combination of a record's secrets as one number."""

    of: Any
    """Per record: the number."""
    codes: Any
    """(numbers, columns): what it stands for in every sensitive column."""
    share: Any
    """Per number: its share of the table."""


class Reserve(NamedTuple):
    """The share of what requirements permit that a part may use: all up to `size` records, and `least` in much larger
    parts."""

    least: Any
    size: Any


class Room(NamedTuple):
    """Working memory."""

    cover: Any
    columns: Any
    slots: Any
    cuts: Any
    stack: Any
    hists: Any
    ladder: Any
    """(slots + 1, secrets): how many records of every secret the slots before each slot have."""
    counts: Any
    """(3, secrets): of a part, of what a side may keep, and of what the best one keeps."""
    numbers: Any
    """(2, secrets): the secrets of a part, and the place of each among them, -1 for all others."""
    goes: Any
    """Per record: whether it is on the side of the best cut."""


def exchange(records, secrets, begins, costs, required, reserve) -> Any:
    """Cut parts of a table as far as requirements permit, each cut leaving behind as many records as necessary.

    Marks, of n + 1 places, where a class ends. Points and `secrets.of` are permuted so that every class lies in one
    piece, and those that stay behind are the last ones in the order given. begins: where the parts begin, and the end.
    """
    (n, q), many, widths = records.rows.shape, len(secrets.share), costs.widths
    most = int(np.where(costs.kinds == RANKED, np.minimum(widths, SLOTS), widths).max())
    room = max(2, costs.at.shape[1]) * most + 2
    ends = np.zeros(n + 1, np.int64)
    _exchange(
        records,
        secrets,
        begins,
        costs,
        required.rules,
        required.least,
        reserve,
        Room(
            Cover(np.empty(q, np.int32), np.empty(q, np.int32), np.empty(q, np.uint64)),
            np.empty(q, np.int64),
            new_slots(n, most, int(widths.max()), q),
            Cuts(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)),
            np.empty((128, 2), np.int64),
            np.zeros((secrets.codes.shape[1], required.rules.reference.shape[1])),
            np.zeros((most + 1, many), np.int64),
            np.zeros((3, many), np.int64),
            np.full((2, many), -1),
            np.zeros(n, np.bool_),
        ),
        ends,
    )
    return ends


@kernel(work=lambda records, *_: records.rows.size)
def _exchange(records, secrets, begins, costs, given, least, reserve, room, ends):
    """Run `exchange` in allocated memory."""
    rows, of = records.rows, secrets.of
    kinds, at, prices = costs.kinds, costs.at, costs.prices
    cover, columns, slots, cuts, stack, hists, ladder, counts, numbers, goes = room
    whole, keep, kept = counts[0], counts[1], counts[2]
    here, place = numbers[0], numbers[1]
    for part in range(len(begins) - 1):
        ends[begins[part + 1]] = 1
        stack[0, 0], stack[0, 1] = begins[part], begins[part + 1]
        top = 1
        while top > 0:
            top -= 1
            start, stop = stack[top, 0], stack[top, 1]
            m = stop - start
            if m < 2 * least:
                continue
            spans, count = survey(rows, start, stop, costs, cover, columns)
            active = columns[:count]
            now = 0.0
            for j in range(count):
                b = active[j]
                now += cell_cost(kinds, at, prices, b, cover.low[b], cover.high[b], cover.word[b])
            factor = reserve.least + (1 - reserve.least) * min(1.0, reserve.size / m)
            rules = _stricter(given, factor)
            best = m * now * (1 + 1e-12) + 1e-12  # a cut in two may gain nothing, one that leaves records must gain
            middle = np.int64(-1)
            found = _number(of, start, stop, here, place)
            for a in active:
                s = fill_slots(rows, start, stop, a, None, False, cover, costs, slots)
                summarise(rows, start, stop, active, spans, slots, s)
                _climb(of, start, stop, slots.of, s, place, found, ladder)
                for v in range(found):
                    whole[v] = ladder[s, v]
                for c in range(_candidates(a, s, kinds[a], slots.present, at, cuts)):
                    u, v = cuts.first[c], cuts.last[c]
                    inner, outer = _side_costs(u, v, active, costs, slots)
                    inside = slots.before[v] - slots.before[u]
                    for turn in range(-1, 4 * STEPS):
                        other = turn >= 2 * STEPS
                        step = turn % (2 * STEPS)
                        size, loss, rest = (m - inside, outer, now) if other else (inside, inner, now)
                        if turn < 0:
                            rest = outer
                        bound = best if turn < 0 else min(best, m * now * (1 - 1e-9))
                        if size * loss + (m - size) * rest >= bound:
                            continue
                        wanted = np.inf if turn < 0 else size * LARGEST * (1 - step // 2 / STEPS)
                        up = 0.999 if step % 2 == 0 else 0.5
                        taken = _thin(ladder, u, v, whole, other, secrets.share, here[:found], wanted, up, keep)
                        if taken * loss + (m - taken) * rest >= bound:
                            continue
                        if not _both_hold(rules, whole, keep, secrets.codes, here[:found], least, hists):
                            continue
                        best = taken * loss + (m - taken) * rest
                        middle = start + taken
                        for value in range(found):
                            kept[value] = keep[value]
                        for i in range(start, stop):
                            goes[i] = (u <= slots.of[i] < v) != other
                        if turn < 0:
                            break
            if middle >= 0:
                _move_rows(records, of, goes, start, stop, place, kept, middle)
            for v in range(found):
                place[here[v]] = -1
            if middle < 0:
                continue
            ends[middle] = 1
            small = 1 if middle - start > stop - middle else 0
            stack[top + 1 - small, 0], stack[top + 1 - small, 1] = start, middle
            stack[top + small, 0], stack[top + small, 1] = middle, stop
            top += 2


@kernel
def _number(of, start, stop, here, place):
    """Number the secrets of a part; -1 for others; return how many."""
    found = 0
    for i in range(start, stop):
        if place[of[i]] < 0:
            place[of[i]] = found
            here[found] = of[i]
            found += 1
    return found


@kernel
def _climb(of, start, stop, slots, s, place, found, ladder):
    """Count the records of every secret in the slots before each slot."""
    for t in range(s + 1):
        for v in range(found):
            ladder[t, v] = 0
    for i in range(start, stop):
        ladder[slots[i] + 1, place[of[i]]] += 1
    for t in range(s):
        for v in range(found):
            ladder[t + 1, v] += ladder[t, v]


@kernel
def _stricter(rules, factor):
    """Return the rules with a share of what those permit that compare with the whole table."""
    first = rules.first.copy()
    for r in range(len(first)):
        if CLOSE_EQUAL <= rules.kinds[r] <= CLOSE_TREE or BETA_BASIC <= rules.kinds[r] <= DELTA:
            first[r] *= factor
    return Rules(
        rules.kinds, rules.columns, first, rules.second, rules.values, rules.reference, rules.levels, rules.heights,
        rules.rare,
    )  # fmt: skip


@kernel
def _side_costs(u, v, active, costs, slots):
    """Return the loss of a record in the slots u to v, and in the others."""
    kinds, at, prices = costs.kinds, costs.at, costs.prices
    lows, highs, words = slots.low, slots.high, slots.word
    inner, outer = 0.0, 0.0
    for j in range(len(active)):
        b = active[j]
        way = AHEAD if u == 0 else OWN
        first = v if u == 0 else u
        low, high, word = lows[way, first, j], highs[way, first, j], words[way, first, j]
        for t in range(first + 1, v):
            low, high, word = min(low, lows[OWN, t, j]), max(high, highs[OWN, t, j]), word | words[OWN, t, j]
        inner += cell_cost(kinds, at, prices, b, low, high, word)
        low, high = min(lows[AHEAD, u, j], lows[BEHIND, v, j]), max(highs[AHEAD, u, j], highs[BEHIND, v, j])
        outer += cell_cost(kinds, at, prices, b, low, high, words[AHEAD, u, j] | words[BEHIND, v, j])
    return inner, outer


@kernel
def _thin(ladder, u, v, whole, other, share, here, wanted, up, keep):
    """Return how many records of every secret the slots u to v, or the others, keep for a class of the wanted size."""
    total = 0
    for s in range(len(here)):
        have = ladder[v, s] - ladder[u, s]
        if other:
            have = whole[s] - have
        keep[s] = have if wanted == np.inf else min(have, int(wanted * share[here[s]] + up))
        total += keep[s]
    return total


@kernel
def _both_hold(rules, whole, keep, codes, here, least, hists):
    """Return whether the kept records meet all requirements, and also the others."""
    columns, values = hists.shape
    for turn in range(2):
        n = np.int64(0)
        for k in range(columns):
            for v in range(values):
                hists[k, v] = 0
        for s in range(len(here)):
            count = keep[s] if turn == 0 else whole[s] - keep[s]
            n += count
            for k in range(columns):
                hists[k, codes[here[s], k]] += count
        if n < least or not class_holds(rules, hists, n):
            return False
    return True


@kernel
def _move_rows(records, of, goes, start, stop, place, kept, middle):
    """Move so many records of every secret to the front and all others behind them, both in their previous order."""
    rows, secrets, who = records
    old_rows, old_secrets = rows[start:stop].copy(), secrets[start:stop].copy()
    old_who, old_of = who[start:stop].copy(), of[start:stop].copy()
    front, back = start, middle
    for i in range(stop - start):
        if goes[start + i] and kept[place[old_of[i]]] > 0:
            kept[place[old_of[i]]] -= 1
            to = front
            front += 1
        else:
            to = back
            back += 1
        who[to], of[to] = old_who[i], old_of[i]
        for b in range(rows.shape[1]):
            rows[to, b] = old_rows[i, b]
        for k in range(secrets.shape[1]):
            secrets[to, k] = old_secrets[i, k]
