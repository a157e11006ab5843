"""After the cuts: records move to neighbouring classes, or are dropped, if that lowers the total loss.

Neighbours are found in as many sorted orders as there are columns, each with another column last: beside a record
stand those that differ from it in that column alone. A record moves if the class it leaves and the class it joins
meet every requirement afterwards. With suppression, a record is dropped where that helps the others of its class more
than it costs. Rules about terms find the terms of a record by its row.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import class_holds, stable_order
from noren.methods.mondrian.kernels.costs import NOTHING, SET, bit_of, cell_cost
from noren.methods.mondrian.kernels.term_rules import terms_hold

REACH = 4
"""How far from a record its neighbours are looked for, in every order and direction."""
LARGEST = 1024
"""Points of the largest class that takes part, where requirements look at sensitive values."""
LEAST_GAIN = 1e-9
JOINS, LEAVES = np.int64(1), np.int64(-1)
"""What a record does to a class. Numba would make a type of its own of each plain number."""


class Members(NamedTuple):
    """The records of every class, as lists."""

    of: Any
    """Per record: its class, -1 for none."""
    head: Any
    """Per class: its first record, -1 for none."""
    links: Any
    """(records, 2): the records after and before every record in its class."""
    size: Any
    """Per class: how many records it has."""


class Losses(NamedTuple):
    """What every class covers, and the loss of one of its records."""

    cover: Any
    loss: Any


class Edges(NamedTuple):
    """What one class would cover without one of its records."""

    codes: Any
    """(4, columns): the lowest code and the one after it, the highest code and the one before it; both are the same
    if several records hold it."""
    once: Any
    """(2, columns): the bits that one record alone sets, and those that several do."""


class Neighbours(NamedTuple):
    """The neighbours of records in as many orders as there are columns."""

    rows: Any
    place: Any
    """(columns, records): the records in every order, and the place of every record in it."""
    seen: Any
    """Per class, room to work in: the question for which it was looked at last."""
    limit: Any
    """Classes of so many records take no part."""


class Desk(NamedTuple):
    """Working memory: the edges of a class, and its histograms."""

    edges: Any
    hists: Any


def new_desk(records, required) -> Any:
    q = records.rows.shape[1]
    return Desk(
        Edges(np.empty((4, q), np.int32), np.empty((2, q), np.uint64)),
        np.zeros((records.secrets.shape[1], required.rules.reference.shape[1])),
    )


def move_records(records, orders, begins, of, losses, awake, costs, required) -> Any:
    """Run one round over the active classes; `of`, the class of every row, is changed.

    orders: the records in as many orders as there are columns, and the place of every record in each. begins: where
    the classes begin, and the end. losses: what they cover and lose, which is changed.

    Returns, for every class, whether it or a neighbour has changed: those are worth another round.
    """
    looked = required.guarded or (required.terms is not None and len(required.terms.of) > 0)
    near = Neighbours(*orders, np.zeros(len(awake), np.int64), LARGEST if looked else len(of) + 1)
    touched = np.zeros(len(awake), np.bool_)
    _move_records(
        records, near, lists(begins, of), losses, awake, costs, required, new_desk(records, required), touched
    )
    return touched


@kernel(work=lambda records, *_: records.rows.size)
def _move_records(records, near, members, losses, awake, costs, required, desk, touched):
    """Run `move_records`, writing into `touched`."""
    rows, secrets, least, limit = records.rows, records.secrets, required.least, near.limit
    of, head, links, size = members
    edges, hists = desk
    loss = losses.loss
    asked = 0
    for c in range(len(awake)):
        if not awake[c] or loss[c] <= 0 or size[c] >= limit:
            continue
        look(rows, c, members, costs, losses, edges)
        r = head[c]
        while r >= 0 and size[c] > least:
            following = links[r, 0]
            saved = saving(rows, r, c, size[c], losses, costs, edges)
            if saved > LEAST_GAIN and _permits(secrets, c, r, LEAVES, members, required, hists):
                asked += 1
                d = _target(records, r, saved - LEAST_GAIN, asked, near, members, losses, costs, required, hists)
                if d >= 0:
                    _move(r, d, members)
                    look(rows, c, members, costs, losses, edges)
                    _widen(rows, r, d, costs, losses)
                    _touch(r, near, of, touched)
                    touched[c] = True
            r = following


def lists(begins, of):
    """Return the records of every contiguous class as lists."""
    n = len(of)
    links = np.empty((n, 2), np.int64)
    links[:, 0], links[:, 1] = np.arange(1, n + 1), np.arange(-1, n - 1)
    links[begins[1:] - 1, 0], links[begins[:-1], 1] = -1, -1
    return Members(of, begins[:-1].copy(), links, np.diff(begins))


@kernel
def _link(r, c, members):
    head, links = members.head, members.links
    links[r, 0], links[r, 1] = head[c], -1
    if head[c] >= 0:
        links[head[c], 1] = r
    head[c] = r
    members.size[c] += 1


@kernel
def unlink(r, c, members):
    head, links = members.head, members.links
    after, before = links[r, 0], links[r, 1]
    if before >= 0:
        links[before, 0] = after
    else:
        head[c] = after
    if after >= 0:
        links[after, 1] = before
    members.size[c] -= 1


@kernel
def _move(r, d, members):
    unlink(r, members.of[r], members)
    _link(r, d, members)
    members.of[r] = d


@kernel
def look(rows, c, members, costs, losses, found):
    """Compute what a class covers and loses, and what it would cover without one of its records."""
    edges, once = found
    kinds, at, prices = costs.kinds, costs.at, costs.prices
    links, loss = members.links, losses.loss
    low, high, word = losses.cover
    for b in range(rows.shape[1]):
        edges[0, b], edges[1, b], edges[2, b], edges[3, b] = NOTHING, NOTHING, -1, -1
        once[0, b], once[1, b] = 0, 0
    r = members.head[c]
    while r >= 0:
        for b in range(rows.shape[1]):
            code = rows[r, b]
            if kinds[b] == SET:
                once[1, b] |= once[0, b] & bit_of(code)
                once[0, b] |= bit_of(code)
                continue
            if code <= edges[0, b]:
                edges[0, b], edges[1, b] = code, edges[0, b]
            elif code < edges[1, b]:
                edges[1, b] = code
            if code >= edges[2, b]:
                edges[2, b], edges[3, b] = code, edges[2, b]
            elif code > edges[3, b]:
                edges[3, b] = code
        r = links[r, 0]
    loss[c] = 0.0
    for b in range(rows.shape[1]):
        low[c, b], high[c, b], word[c, b] = edges[0, b], edges[2, b], once[0, b]
        once[0, b] &= ~once[1, b]
        if members.size[c]:
            loss[c] += cell_cost(kinds, at, prices, b, low[c, b], high[c, b], word[c, b])


@kernel
def _widen(rows, r, c, costs, losses):
    """Update what a class covers and loses after record r has joined it."""
    kinds, at, prices = costs.kinds, costs.at, costs.prices
    loss = losses.loss
    low, high, word = losses.cover
    loss[c] = 0.0
    for b in range(rows.shape[1]):
        code = rows[r, b]
        if kinds[b] == SET:
            word[c, b] |= bit_of(code)
        else:
            low[c, b] = min(low[c, b], code)
            high[c, b] = max(high[c, b], code)
        loss[c] += cell_cost(kinds, at, prices, b, low[c, b], high[c, b], word[c, b])


@kernel
def saving(rows, r, c, m, losses, costs, found):
    """Return the reduction of the total loss of all m records of class c if record r leaves it."""
    edges, once = found
    kinds, at, prices = costs.kinds, costs.at, costs.prices
    low, high, word = losses.cover
    total = 0.0
    for b in range(rows.shape[1]):
        code = rows[r, b]
        lowest = edges[1, b] if code == low[c, b] else low[c, b]
        highest = edges[3, b] if code == high[c, b] else high[c, b]
        bits = word[c, b] & ~(bit_of(code) & once[0, b])  # only in a set does anything look at them
        total += cell_cost(kinds, at, prices, b, lowest, highest, bits)
    return m * losses.loss[c] - (m - 1) * total


@kernel
def _target(records, r, bound, asked, near, members, losses, costs, required, hists):
    """Return the class near r with the smallest increase, below `bound`, -1 for none.

    asked: a number that no other question has.
    """
    rows, secrets = records.rows, records.secrets
    kinds, at, prices = costs.kinds, costs.at, costs.prices
    of, size, loss = members.of, members.size, losses.loss
    low, high, word = losses.cover
    sorted_rows, place, seen, limit = near
    c = of[r]
    q, n = sorted_rows.shape
    found = -1
    for order in range(2 * q):
        b = order // 2
        direction = 1 if order % 2 else -1
        p = place[b, r]
        for _ in range(REACH):
            p += direction
            if p < 0 or p >= n:
                break
            d = of[sorted_rows[b, p]]
            if d == c or seen[d] == asked:
                continue
            seen[d] = asked
            harm = loss[d]
            if harm >= bound or size[d] + 1 >= limit:
                continue
            for a in range(q):
                code = rows[r, a]
                lowest, highest, bits = low[d, a], high[d, a], word[d, a]
                wider = bits | bit_of(code)  # only in a set does anything look at bits, elsewhere at the ends alone
                if wider == bits if kinds[a] == SET else lowest <= code <= highest:
                    continue
                more = cell_cost(kinds, at, prices, a, min(code, lowest), max(code, highest), wider)
                harm += (size[d] + 1) * (more - cell_cost(kinds, at, prices, a, lowest, highest, bits))
                if harm >= bound:
                    break
            if harm >= bound:
                continue
            if not _permits(secrets, d, r, JOINS, members, required, hists):
                continue
            bound, found = harm, d
    return found


@kernel
def _touch(r, near, of, touched):
    """Mark the class of r and those of its neighbours."""
    sorted_rows, place = near.rows, near.place
    q, n = sorted_rows.shape
    for b in range(q):
        for p in range(max(0, place[b, r] - REACH), min(n, place[b, r] + REACH + 1)):
            touched[of[sorted_rows[b, p]]] = True


@kernel
def _permits(secrets, c, r, sign, members, required, hists):
    """Return whether class c meets all requirements when record r joins it (1) or leaves it (-1)."""
    if required.guarded:
        hists[:] = 0
        one = members.head[c]
        while one >= 0:
            for k in range(secrets.shape[1]):
                hists[k, secrets[one, k]] += 1
            one = members.links[one, 0]
        for k in range(secrets.shape[1]):
            hists[k, secrets[r, k]] += sign
        if not class_holds(required.rules, hists, members.size[c] + sign):
            return False
    return _terms_permit(required.terms, c, members, r, sign)


@kernel
def _terms_permit(terms, c, members, r, sign):
    """Return the same for the rules about terms."""
    if terms is None:
        return True
    count = 0
    if sign > 0:
        terms.members[0] = r
        count = 1
    one = members.head[c]
    while one >= 0:
        if one != r:
            terms.members[count] = one
            count += 1
        one = members.links[one, 0]
    return terms_hold(terms, count)


def drop(records, begins, of, losses, costs, required, price, budget) -> Any:
    """Drop at most `budget` records, so that their class is -1: only if the others of the class gain more than `price`,
    the largest gains first. Returns their number. Otherwise as `move_records`."""
    return _drop(records, lists(begins, of), losses, costs, required, new_desk(records, required), price, budget)


@kernel
def _drop(records, members, losses, costs, required, desk, price, budget):
    """Run `drop` in allocated memory."""
    rows, secrets, least = records.rows, records.secrets, required.least
    n, count = len(rows), len(members.head)
    of, head, links, size = members
    edges, hists, loss = desk.edges, desk.hists, losses.loss
    gains = np.zeros(n)
    dropped = 0
    made = 1
    while made and dropped < budget:
        made = 0
        gains[:] = 0
        for c in range(count):
            if size[c] > least and loss[c] > 0:
                look(rows, c, members, costs, losses, edges)
                r = head[c]
                while r >= 0:
                    gains[r] = saving(rows, r, c, size[c], losses, costs, edges)
                    r = links[r, 0]
        for r in stable_order(-gains):
            if gains[r] <= price + LEAST_GAIN or dropped == budget:
                break
            c = of[r]
            if size[c] <= least:
                continue
            look(rows, c, members, costs, losses, edges)
            gain = saving(rows, r, c, size[c], losses, costs, edges)
            if gain <= price + LEAST_GAIN:
                continue
            if not _permits(secrets, c, r, LEAVES, members, required, hists):
                continue
            unlink(r, c, members)
            look(rows, c, members, costs, losses, edges)
            of[r] = -1
            dropped += 1
            made += 1
    return dropped
