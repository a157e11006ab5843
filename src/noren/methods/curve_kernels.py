"""Groups of records along a curve: with diverse sensitive values, or of at least k records.

A record is its position on the curve here; sensitive values come in that order. A set of records is l-eligible if no
value makes up more than 1/l of it.

Positions along a Hilbert curve: points that follow one another on the curve are close in every dimension.

Skilling's transformation turns the coordinates into the bits of the index, which are then interleaved.
"""

# mypy: ignore-errors
# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.kernels import class_holds

NONE = np.int64(np.iinfo(np.int64).max)
TREE = 0
INTERVAL = 1
VALUES = 2
FINE = 32
"""Below twice this k every cut is tried; beyond, cuts about k / FINE records apart."""


class Buckets(NamedTuple):
    """The records of every value, in curve order, and the most frequent values."""

    rows: Any
    head: Any
    left: Any
    """The records of value v that are in no group yet are rows[head[v] : head[v] + left[v]]."""
    ranked: Any
    place: Any
    """Values by how many records they have left, most first, and the place of every value among them."""
    at_least: Any
    """How many values have so many records left."""


@kernel
def fill_groups(values, buckets, members, groups, l):
    """Fill `groups` by 1-D l-diversity (Ghinita et al. 2007) from the buckets; return their number.

    members: room for a group.
    """
    rows, head, left, ranked, place, at_least = buckets
    m, rest = len(left), len(values)
    first = np.full(m, NONE)  # the first record of every value that may be taken next
    for v in range(m):
        if left[v]:
            first[v] = rows[head[v]]
    group = 0
    while rest >= 2 * l:
        taken = 0
        while taken < m and left[ranked[taken]] * l > rest - l:
            members[taken] = ranked[taken]
            first[ranked[taken]] = NONE
            taken += 1
        while taken < l:
            members[taken] = np.argmin(first)
            first[members[taken]] = NONE
            taken += 1
        for i in range(taken):
            v = members[i]
            groups[rows[head[v]]] = group
            head[v] += 1
            last = at_least[left[v]] - 1
            other = ranked[last]
            ranked[place[v]], ranked[last] = other, v
            place[other], place[v] = place[v], last
            at_least[left[v]] -= 1
            left[v] -= 1
            if left[v]:
                first[v] = rows[head[v]]
        rest -= taken
        group += 1
    if rest:
        for v in range(m):
            for _ in range(left[v]):
                groups[rows[head[v]]] = group
                head[v] += 1
        group += 1
    return group


@kernel
def join_groups(rows, bounds, values, column, rules):
    """Join consecutive groups until they meet the requirements: return the class of each, and their number.

    Group g is the records rows[bounds[g]:bounds[g + 1]]. What is left over at the end joins the last classes.
    """
    count = len(bounds) - 1
    hists = np.zeros(rules.reference.shape, np.float64)
    out = np.zeros(count, np.int64)
    begins = np.zeros(count + 1, np.int64)
    found = 0
    for g in range(count):
        for i in range(bounds[g], bounds[g + 1]):
            hists[column, values[rows[i]]] += 1
        out[g] = found
        if class_holds(rules, hists, bounds[g + 1] - bounds[begins[found]]):
            hists[:] = 0
            found += 1
            begins[found] = g + 1
    last = begins[found]
    while found and last < count:
        found -= 1
        for i in range(bounds[begins[found]], bounds[begins[found + 1]]):
            hists[column, values[rows[i]]] += 1
        for g in range(begins[found], count):
            out[g] = found
        if class_holds(rules, hists, bounds[count] - bounds[begins[found]]):
            found += 1
            break
    return out, found


@kernel
def best_cuts(codes, kinds, at, share, k):
    """Cut the curve into runs of at least k records with the smallest total loss: return the run of every record, and
    their number.

    codes (n, columns) in curve order. The loss of a run is its length times the sum over columns of: for TREE,
    share[j, h, v] at the lowest height h at which at[j, h] of all its values agree; for INTERVAL, the distance of the
    outermost positions share[j, 0, v]; for VALUES, share[j, 0, 0] for every further value.
    """
    n, dims = codes.shape
    step = max(1, k // FINE)
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    come = np.zeros(n + 1, np.int64)
    height = np.zeros(dims, np.int64)
    low = np.zeros(dims, np.float64)
    high = np.zeros(dims, np.float64)
    seen = np.full((dims, at.shape[2]), -1, np.int64)
    for end in range(1, n + 1):
        if end % k % step and end != n:
            continue
        height[:] = 0
        low[:] = np.inf
        high[:] = -np.inf
        losses = 0.0
        for size in range(1, min(2 * k - 1, end) + 1):
            row = end - size
            for j in range(dims):
                v = codes[row, j]
                if kinds[j] == TREE:
                    h = height[j]
                    if at[j, h, v] != at[j, h, codes[end - 1, j]]:
                        losses -= share[j, h, codes[end - 1, j]]
                        while at[j, h, v] != at[j, h, codes[end - 1, j]]:
                            h += 1
                        losses += share[j, h, v]
                        height[j] = h
                elif kinds[j] == INTERVAL:
                    if size > 1:
                        losses -= high[j] - low[j]
                    low[j] = min(low[j], share[j, 0, v])
                    high[j] = max(high[j], share[j, 0, v])
                    losses += high[j] - low[j]
                elif seen[j, v] != end:
                    seen[j, v] = end
                    if size > 1:
                        losses += share[j, 0, 0]
            if size >= k and row % k % step == 0 and best[row] + size * losses < best[end]:
                best[end] = best[row] + size * losses
                come[end] = row
    runs = np.empty(n, np.int64)
    count = 0
    end = n
    while end > 0:
        runs[come[end] : end] = count
        count += 1
        end = come[end]
    return count - 1 - runs, count


@kernel
def best_line_groups(numbers, k):
    """Form groups of k to 2k - 1 neighbouring sorted numbers with the smallest sum of squares (Hansen and Mukherjee
    2003)."""
    n = len(numbers)
    if n < 2 * k:
        return np.zeros(n, np.int64), 1
    middle = numbers.mean()
    total = np.zeros(n + 1)
    square = np.zeros(n + 1)
    for i in range(n):
        x = numbers[i] - middle
        total[i + 1] = total[i] + x
        square[i + 1] = square[i] + x * x
    best = np.full(n + 1, np.inf)
    start = np.zeros(n + 1, np.int64)
    best[0] = 0.0
    for i in range(k, n + 1):
        for j in range(max(0, i - 2 * k + 1), i - k + 1):
            if best[j] == np.inf:
                continue
            here = best[j] + square[i] - square[j] - (total[i] - total[j]) ** 2 / (i - j)
            if here < best[i]:
                best[i] = here
                start[i] = j
    groups = np.empty(n, np.int64)
    count = 0
    i = n
    while i > 0:
        groups[start[i] : i] = count
        count += 1
        i = start[i]
    return groups, count


WORD = 64


def hilbert_bits(sizes) -> Any:
    """Return the bits per axis: enough for the largest domain, as far as all axes together fit into one word."""
    wanted = max(1, int(max(sizes) - 1).bit_length())
    return max(1, min(wanted, WORD // len(sizes)))


def stretched(ranks, size, bits) -> Any:
    """Spread ranks 0..size-1 evenly over 0..2^bits - 1. Needs size * 2^bits below 2^63."""
    return ((ranks.astype(np.int64) << bits) // size).astype(np.uint64)


@kernel
def hilbert_index(axes, bits):
    """Return the Hilbert index of every row of axes (n, dims), each coordinate below 2^bits.

    An index has dims * bits bits; axes that do not fit into 64 bits any more are left out.
    """
    n, dims = axes.shape
    dims = min(dims, WORD // bits)
    out = np.zeros(n, np.uint64)
    x = np.empty(dims, np.uint64)
    one = np.uint64(1)
    for i in range(n):
        for j in range(dims):
            x[j] = axes[i, j]
        q = one << np.uint64(bits - 1)
        while q > one:
            low = q - one
            for j in range(dims):
                if x[j] & q:
                    x[0] ^= low
                else:
                    t = (x[0] ^ x[j]) & low
                    x[0] ^= t
                    x[j] ^= t
            q >>= one
        for j in range(1, dims):
            x[j] ^= x[j - 1]
        t = np.uint64(0)
        q = one << np.uint64(bits - 1)
        while q > one:
            if x[dims - 1] & q:
                t ^= q - one
            q >>= one
        index = np.uint64(0)
        for b in range(bits - 1, -1, -1):
            for j in range(dims):
                index = (index << one) | (((x[j] ^ t) >> np.uint64(b)) & one)
        out[i] = index
    return out


# ---------------------------------------------------------------- the three-phase algorithm
#
# A group's pillars are its commonest sensitive values. A group is fat if it holds more than l times its pillars'
# height, thin if exactly l times. The residue is what was moved out.


class Stock(NamedTuple):
    """The remaining records of the groups: entries bounds[g] <= e < bounds[g + 1] of group g say that left[e] records
    have values[e]. size[g] is their number, high[g] the largest count of a value."""

    bounds: Any
    values: Any
    left: Any
    size: Any
    high: Any


class Listed(NamedTuple):
    """The entries of value v in the order in which they are tried: walk[starts[v]:starts[v + 1]]."""

    walk: Any
    starts: Any
    owner: Any
    """Per entry: its group."""


@kernel
def later_phases(stock, listed, residue, sizes, l, group_walk):
    """Run the second and the third phase until the residue is eligible; return the rounds of the third.

    sizes: how many records are in the residue after each phase, of which the first is given.
    """
    groups, m = len(stock.size), len(residue)
    pillars, chosen = np.empty(m, np.bool_), np.empty(m, np.int64)
    total = sizes[0]
    rounds, spent = 0, 0
    stirred = True
    while True:
        if stirred:
            total = _second_phase(stock, listed, residue, total, l)
        if rounds == 0:
            sizes[1] = total
        top = _most(residue)
        if total >= l * top:
            break
        for v in range(m):
            pillars[v] = residue[v] == top
        while spent < groups and stock.size[group_walk[spent]] == 0:
            spent += 1
        taken = _third_phase(stock, pillars, group_walk, spent, chosen)
        if not taken:
            break
        for i in range(taken):
            total += _take_pillars(chosen[i], stock, residue)
        rounds += 1
        raised = _most(residue)
        stirred = False  # untouched groups are still dead unless a pillar of the residue has ceased to be one
        for v in range(m):
            stirred |= pillars[v] and residue[v] < raised
        for i in range(taken):
            stirred |= not _dead(chosen[i], stock, residue, raised, l)
    sizes[2] = total
    return rounds


@kernel
def _most(numbers):
    """Return the largest of some nonnegative numbers."""
    most = 0
    for i in range(len(numbers)):
        most = max(most, numbers[i])
    return most


@kernel
def _take_pillars(g, stock, residue):
    """Move one record of every most frequent value of a group to the residue; return how many."""
    bounds, values, left, size, high = stock
    moved = 0
    for e in range(bounds[g], bounds[g + 1]):
        if left[e] == high[g]:
            left[e] -= 1
            residue[values[e]] += 1
            moved += 1
    size[g] -= moved
    high[g] -= 1
    return moved


@kernel
def _dead(g, stock, residue, top, l):
    """Return whether a group cannot give records without raising the residue's most frequent values."""
    bounds, values, left, size, high = stock
    if size[g] > l * high[g]:
        return False
    for e in range(bounds[g], bounds[g + 1]):
        if left[e] == high[g] and residue[values[e]] == top:
            return True
    return size[g] == 0


@kernel
def _second_phase(stock, listed, residue, total, l):
    """Add records with the residue's rarest values until it is eligible or no group can give any; return its size.

    The height of the residue stays. Its pillars only grow more numerous, so a dead group stays dead and every list of
    entries is walked once.
    """
    bounds, values, left, size, high = stock
    walk, starts, owner = listed
    top = _most(residue)
    at = starts[:-1].copy()
    rank = residue.copy()  # of the values that some group may still give
    for v in range(len(residue)):
        if starts[v + 1] == starts[v]:
            rank[v] = NONE
    while total < l * top:
        v = np.argmin(rank)
        if rank[v] == NONE:
            break
        while at[v] < starts[v + 1]:
            e = walk[at[v]]
            g = owner[e]
            if left[e] > 0 and not _dead(g, stock, residue, top, l):
                break
            at[v] += 1
        if at[v] == starts[v + 1]:
            rank[v] = NONE
            continue
        if size[g] > l * high[g]:
            pillar = left[e] == high[g]
            left[e] -= 1
            size[g] -= 1
            residue[v] += 1
            total += 1
            if pillar:
                high[g] = 0
                for other in range(bounds[g], bounds[g + 1]):
                    high[g] = max(high[g], left[other])
            rank[v] = residue[v]
        else:
            height = high[g]
            total += _take_pillars(g, stock, residue)
            for other in range(bounds[g], bounds[g + 1]):
                u = values[other]
                if left[other] == height - 1 and rank[u] < NONE:
                    rank[u] = residue[u]
    return total


@kernel
def _third_phase(stock, pillars, group_walk, spent, chosen):
    """Choose greedily groups that share no most frequent value with the residue; return how many.

    One record of each of their pillars raises the residue by less than the number of groups. None is found only if
    the whole table is not eligible. Groups before place `spent` of the walk are empty.
    """
    bounds, values, left, size, high = stock
    common = pillars.copy()
    wanted = 0
    for v in range(len(pillars)):
        wanted += pillars[v]
    taken = 0
    while wanted:
        best = -1
        fewest = wanted
        least = 1 if taken == 0 else 0
        for i in range(spent, len(group_walk)):
            g = group_walk[i]
            if size[g] == 0:
                continue
            shared = 0
            for e in range(bounds[g], bounds[g + 1]):
                if left[e] == high[g] and common[values[e]]:
                    shared += 1
            if shared < fewest:
                best = g
                fewest = shared
                if shared <= least:
                    break
        if best < 0:
            return 0
        chosen[taken] = best
        taken += 1
        kept = np.zeros(len(common), np.bool_)
        for e in range(bounds[best], bounds[best + 1]):
            if left[e] == high[best]:
                kept[values[e]] = common[values[e]]
        common = kept
        wanted = fewest
    return taken
