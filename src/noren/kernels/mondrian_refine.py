"""After the cuts: records move to neighbouring classes where that lowers what all classes lose together.

Neighbours are found in as many sorted orders as there are columns, each with another column last: beside a record
stand those that differ from it in that column alone. A record moves if the class it leaves and the class it joins
meet every requirement afterwards. A class whose records all find a better place is dissolved. Rules about terms find
the terms of a record by its row.

The members of class c are a list: head[c] is the first, links[r, 0] and links[r, 1] the records after and before r.
low, high and word summarise a class as in `mondrian_slots`; loss[c] is what one of its records loses.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from noren.kernels.mondrian import hold
from noren.kernels.mondrian_costs import NOTHING, SET, bit_of, cell_cost
from noren.kernels.term_rules import terms_hold

REACH = 4
"""How far from a record its neighbours are looked for, in every order and direction."""
LARGEST = 1024
"""Records of the largest class that takes part, where requirements look at sensitive values."""
DISSOLVED = 32
"""Records of the largest class that may be dissolved."""
LEAST_GAIN = 1e-9


@njit(cache=True, nogil=True)
def refine(rows, secrets, of, awake, kinds, at, prices, rules, widths, least, guarded):
    """One round over the classes that are awake; `of`, the class of every row, is changed.

    Returns, for every class, whether it or a neighbour has changed: those are worth another round.
    """
    n, q = rows.shape
    count = len(awake)
    sorted_rows, place = _orders(rows, widths)
    head, links, size = _lists(of, count)
    low, high, word, loss = _covers(rows, head, links, size, kinds, at, prices)
    edges, once = np.empty((4, q), np.int32), np.empty((2, q), np.uint64)
    seen, touched = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    hists = np.zeros((secrets.shape[1], rules[5].shape[1]))
    limit = LARGEST if guarded or len(rules[8].of) else n + 1
    members = np.empty(DISSOLVED, np.int64)
    asked = 0
    for c in range(count):
        if not awake[c] or loss[c] <= 0 or size[c] >= limit:
            continue
        stale = True
        r = head[c]
        while r >= 0 and size[c] > least:
            following = links[r, 0]
            if stale:
                _find_edges(rows, c, head, links, kinds, low, high, edges, once)
                stale = False
            saving = _saving(rows, c, r, size[c], loss[c], kinds, at, prices, low, high, word, edges, once)
            if saving > LEAST_GAIN and _spares(secrets, c, r, head, links, size[c], rules, guarded, hists):
                asked += 1
                d, _ = _target(
                    rows, secrets, c, r, saving - LEAST_GAIN, sorted_rows, place, of, head, links, size, kinds, at,
                    prices, low, high, word, loss, seen, asked, limit, rules, guarded, hists,
                )  # fmt: skip
                if d >= 0:
                    _move(r, d, of, head, links, size)
                    _cover(rows, c, head, links, size, kinds, at, prices, low, high, word, loss)
                    _widen(rows, r, d, kinds, at, prices, low, high, word, loss)
                    _touch(r, sorted_rows, place, of, touched)
                    touched[c] = True
                    stale = True
            r = following
        if not 0 < size[c] <= DISSOLVED or loss[c] <= 0:
            continue
        m = size[c]
        r = head[c]
        for i in range(m):
            members[i] = r
            r = links[r, 0]
        left = m * loss[c] - LEAST_GAIN
        gone = 0
        while gone < m:
            asked += 1
            d, harm = _target(
                rows, secrets, c, members[gone], left, sorted_rows, place, of, head, links, size, kinds, at, prices,
                low, high, word, loss, seen, asked, limit, rules, guarded, hists,
            )  # fmt: skip
            if d < 0:
                break
            _move(members[gone], d, of, head, links, size)
            _widen(rows, members[gone], d, kinds, at, prices, low, high, word, loss)
            left -= harm
            gone += 1
        for i in range(gone):
            if gone == m:
                _touch(members[i], sorted_rows, place, of, touched)
            else:
                d = of[members[i]]
                _move(members[i], c, of, head, links, size)
                _cover(rows, d, head, links, size, kinds, at, prices, low, high, word, loss)
    return touched


@njit(cache=True, nogil=True)
def drop(rows, secrets, of, count, kinds, at, prices, rules, least, guarded, price, budget):
    """Drop at most `budget` records, so that their class is -1: each only if the others of its class gain more than
    `price`, those first that help most. Returns how many."""
    n, q = rows.shape
    head, links, size = _lists(of, count)
    low, high, word, loss = _covers(rows, head, links, size, kinds, at, prices)
    edges, once = np.empty((4, q), np.int32), np.empty((2, q), np.uint64)
    hists = np.zeros((secrets.shape[1], rules[5].shape[1]))
    gains = np.zeros(n)
    dropped = 0
    made = 1
    while made and dropped < budget:
        made = 0
        gains[:] = 0
        for c in range(count):
            if size[c] > least and loss[c] > 0:
                _find_edges(rows, c, head, links, kinds, low, high, edges, once)
                r = head[c]
                while r >= 0:
                    gains[r] = _saving(rows, c, r, size[c], loss[c], kinds, at, prices, low, high, word, edges, once)
                    r = links[r, 0]
        for r in np.argsort(-gains, kind="mergesort"):
            if gains[r] <= price + LEAST_GAIN or dropped == budget:
                break
            c = of[r]
            if size[c] <= least:
                continue
            _find_edges(rows, c, head, links, kinds, low, high, edges, once)
            gain = _saving(rows, c, r, size[c], loss[c], kinds, at, prices, low, high, word, edges, once)
            if gain <= price + LEAST_GAIN:
                continue
            if not _spares(secrets, c, r, head, links, size[c], rules, guarded, hists):
                continue
            _unlink(r, c, head, links, size)
            _cover(rows, c, head, links, size, kinds, at, prices, low, high, word, loss)
            of[r] = -1
            dropped += 1
            made += 1
    return dropped


@njit(cache=True, nogil=True)
def _orders(rows, widths):
    """Rows in q orders, the b-th with column b counting least, and the place of every row in each."""
    n, q = rows.shape
    sorted_rows, place = np.empty((q, n), np.int32), np.empty((q, n), np.int32)
    current, following = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    begin = np.zeros(widths.max() + 1, np.int64)
    for turn in range(2 * q - 1, -1, -1):
        b = turn % q
        if turn < q:
            for i in range(n):
                sorted_rows[b, i] = current[i]
                place[b, current[i]] = i
        begin[: widths[b] + 1] = 0
        for i in range(n):
            begin[rows[i, b] + 1] += 1
        for code in range(widths[b]):
            begin[code + 1] += begin[code]
        for i in range(n):
            code = rows[current[i], b]
            following[begin[code]] = current[i]
            begin[code] += 1
        current, following = following, current
    return sorted_rows, place


@njit(cache=True, nogil=True)
def _lists(of, count):
    n = len(of)
    head, links, size = np.full(count, -1), np.full((n, 2), -1), np.zeros(count, np.int64)
    for r in range(n - 1, -1, -1):
        if of[r] >= 0:
            _link(r, of[r], head, links, size)
    return head, links, size


@njit(cache=True, nogil=True)
def _link(r, c, head, links, size):
    links[r, 0], links[r, 1] = head[c], -1
    if head[c] >= 0:
        links[head[c], 1] = r
    head[c] = r
    size[c] += 1


@njit(cache=True, nogil=True)
def _unlink(r, c, head, links, size):
    after, before = links[r, 0], links[r, 1]
    if before >= 0:
        links[before, 0] = after
    else:
        head[c] = after
    if after >= 0:
        links[after, 1] = before
    size[c] -= 1


@njit(cache=True, nogil=True)
def _move(r, d, of, head, links, size):
    _unlink(r, of[r], head, links, size)
    _link(r, d, head, links, size)
    of[r] = d


@njit(cache=True, nogil=True)
def _covers(rows, head, links, size, kinds, at, prices):
    count, q = len(head), rows.shape[1]
    low, high = np.empty((count, q), np.int32), np.empty((count, q), np.int32)
    word, loss = np.zeros((count, q), np.uint64), np.zeros(count)
    for c in range(count):
        _cover(rows, c, head, links, size, kinds, at, prices, low, high, word, loss)
    return low, high, word, loss


@njit(cache=True, nogil=True)
def _cover(rows, c, head, links, size, kinds, at, prices, low, high, word, loss):
    """Summary and loss of a class, from its members."""
    loss[c] = 0.0
    low[c], high[c], word[c] = NOTHING, -1, 0
    r = head[c]
    while r >= 0:
        for b in range(rows.shape[1]):
            if kinds[b] == SET:
                word[c, b] |= bit_of(rows[r, b])
            else:
                low[c, b] = min(low[c, b], rows[r, b])
                high[c, b] = max(high[c, b], rows[r, b])
        r = links[r, 0]
    if size[c]:
        for b in range(rows.shape[1]):
            loss[c] += cell_cost(kinds, at, prices, b, low[c, b], high[c, b], word[c, b])


@njit(cache=True, nogil=True)
def _widen(rows, r, c, kinds, at, prices, low, high, word, loss):
    """Summary and loss of a class that r has joined."""
    loss[c] = 0.0
    for b in range(rows.shape[1]):
        if kinds[b] == SET:
            word[c, b] |= bit_of(rows[r, b])
        else:
            low[c, b] = min(low[c, b], rows[r, b])
            high[c, b] = max(high[c, b], rows[r, b])
        loss[c] += cell_cost(kinds, at, prices, b, low[c, b], high[c, b], word[c, b])


@njit(cache=True, nogil=True)
def _find_edges(rows, c, head, links, kinds, low, high, edges, once):
    """What a class would cover without its lowest or highest record; the bits that one record alone sets.

    edges[0] and edges[1]: the codes after the lowest and before the highest; the lowest and the highest themselves if
    several records hold them. once[0]: bits that one record sets.
    """
    edges[0], edges[1], edges[2], edges[3] = NOTHING, -1, 0, 0
    once[:] = 0
    r = head[c]
    while r >= 0:
        for b in range(rows.shape[1]):
            code = rows[r, b]
            if kinds[b] == SET:
                bit = bit_of(code)
                once[1, b] |= once[0, b] & bit
                once[0, b] |= bit
                continue
            if code > low[c, b] or edges[2, b]:
                edges[0, b] = min(edges[0, b], code)
            else:
                edges[2, b] = 1
            if code < high[c, b] or edges[3, b]:
                edges[1, b] = max(edges[1, b], code)
            else:
                edges[3, b] = 1
        r = links[r, 0]
    for b in range(rows.shape[1]):
        once[0, b] &= ~once[1, b]


@njit(cache=True, nogil=True)
def _saving(rows, c, r, m, loss, kinds, at, prices, low, high, word, edges, once):
    """What all records of a class lose less if r leaves it, r's own loss included."""
    total = 0.0
    for b in range(rows.shape[1]):
        code = rows[r, b]
        if kinds[b] == SET:
            total += cell_cost(kinds, at, prices, b, code, code, word[c, b] & ~(bit_of(code) & once[0, b]))
        else:
            lowest = edges[0, b] if code == low[c, b] else low[c, b]
            highest = edges[1, b] if code == high[c, b] else high[c, b]
            total += cell_cost(kinds, at, prices, b, lowest, highest, word[c, b])
    return m * loss - (m - 1) * total


@njit(cache=True, nogil=True)
def _target(rows, secrets, c, r, bound, sorted_rows, place, of, head, links, size, kinds, at, prices, low, high, word,
            loss, seen, asked, limit, rules, guarded, hists):  # fmt: skip
    """The class near r where it does least harm, below `bound`: the class (-1 for none) and the harm."""
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
                if kinds[a] == SET:
                    wider = word[d, a] | bit_of(code)
                    if wider == word[d, a]:
                        continue
                    more = cell_cost(kinds, at, prices, a, code, code, wider)
                    less = cell_cost(kinds, at, prices, a, code, code, word[d, a])
                else:
                    lowest, highest = low[d, a], high[d, a]
                    if lowest <= code <= highest:
                        continue
                    more = cell_cost(kinds, at, prices, a, min(code, lowest), max(code, highest), word[d, a])
                    less = cell_cost(kinds, at, prices, a, lowest, highest, word[d, a])
                harm += (size[d] + 1) * (more - less)
                if harm >= bound:
                    break
            if harm >= bound:
                continue
            if guarded:
                _histogram(secrets, d, head, links, hists)
                _add(secrets, r, 1, hists)
                if not hold(rules, hists, size[d] + 1):
                    continue
            if len(rules[8].of):
                rules[8].members[0] = r
                if not terms_hold(rules[8], _members(rules[8], d, head, links, -1, 1)):
                    continue
            bound, found = harm, d
    return found, bound


@njit(cache=True, nogil=True)
def _touch(r, sorted_rows, place, of, touched):
    """Mark the class of r and those of its neighbours."""
    q, n = sorted_rows.shape
    for b in range(q):
        for p in range(max(0, place[b, r] - REACH), min(n, place[b, r] + REACH + 1)):
            touched[of[sorted_rows[b, p]]] = True


@njit(cache=True, nogil=True)
def _spares(secrets, c, r, head, links, m, rules, guarded, hists):
    """Whether class c of m records meets all requirements without r."""
    if guarded:
        _histogram(secrets, c, head, links, hists)
        _add(secrets, r, -1, hists)
        if not hold(rules, hists, m - 1):
            return False
    return len(rules[8].of) == 0 or terms_hold(rules[8], _members(rules[8], c, head, links, r, 0))


@njit(cache=True, nogil=True)
def _members(terms, c, head, links, without, count):
    """List class c, except one record, after the first `count` members; how many there are then."""
    r = head[c]
    while r >= 0:
        if r != without:
            terms.members[count] = r
            count += 1
        r = links[r, 0]
    return count


@njit(cache=True, nogil=True)
def _histogram(secrets, c, head, links, hists):
    hists[:] = 0
    r = head[c]
    while r >= 0:
        _add(secrets, r, 1, hists)
        r = links[r, 0]


@njit(cache=True, nogil=True)
def _add(secrets, r, sign, hists):
    for k in range(secrets.shape[1]):
        hists[k, secrets[r, k]] += sign
