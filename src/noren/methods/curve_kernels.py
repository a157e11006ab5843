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


@kernel
def _set(tree, leaf, value):
    """A tournament of minima: tree[1] is the least leaf."""
    i = len(tree) // 2 + leaf
    tree[i] = value
    i //= 2
    while i:
        tree[i] = min(tree[2 * i], tree[2 * i + 1])
        i //= 2


class Buckets(NamedTuple):
    """The records of every value, in curve order, and which values are commonest."""

    rows: Any
    head: Any
    left: Any
    """The records of value v that are in no group yet are rows[head[v] : head[v] + left[v]]."""
    ranked: Any
    place: Any
    """Values by how many records they have left, most first, and the place of every value among them."""
    at_least: Any
    """How many values have so many records left."""
    heads: Any
    """The tournament of the first records of all values."""


@kernel
def fill_groups(values, buckets, members, groups, l):
    """1-D l-diversity (Ghinita et al. 2007) from the buckets: fills `groups`; how many there are.

    members: room for a group.
    """
    rows, head, left, ranked, place, at_least, heads = buckets
    m, rest = len(left), len(values)
    for v in range(m):
        if left[v]:
            _set(heads, v, rows[head[v]])
    group = 0
    while rest >= 2 * l:
        taken = 0
        while taken < m and left[ranked[taken]] * l > rest - l:
            members[taken] = ranked[taken]
            _set(heads, ranked[taken], NONE)
            taken += 1
        while taken < l:
            v = values[heads[1]]
            members[taken] = v
            _set(heads, v, NONE)
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
                _set(heads, v, rows[head[v]])
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
def judged(rows, bounds, values, column, rules, alone):
    """Whether each class fails (`alone`), or consecutive ones put together until they meet the requirements.

    Class g is the records rows[bounds[g]:bounds[g + 1]]. One kernel for both, since requirements are most of it: with
    `alone` 1 for a class that fails; else the class that each becomes part of, and how many there are then.
    """
    count = len(bounds) - 1
    hists = np.zeros(rules.reference.shape, np.float64)
    out = np.zeros(count, np.int64)
    begins = np.zeros(count + 1, np.int64)
    found = 0
    for g in range(count):
        first = bounds[g] if alone else bounds[begins[found]]
        size = bounds[g + 1] - first
        for i in range(bounds[g], bounds[g + 1]):
            hists[column, values[rows[i]]] += 1
        holds = class_holds(rules, hists, size)
        if alone or holds:
            for i in range(first, bounds[g + 1]):
                hists[column, values[rows[i]]] = 0
        if alone:
            out[g] = size > 0 and not holds
            continue
        out[g] = found
        if holds:
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
    """Cut the curve into runs of at least k records with the least total loss: the run of every record, and how many.

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


WORD = 64


def hilbert_bits(sizes):
    """Bits per axis: enough for the largest domain, as far as all axes together fit into one word."""
    wanted = max(1, int(max(sizes) - 1).bit_length())
    return max(1, min(wanted, WORD // len(sizes)))


def stretched(ranks, size, bits):
    """Ranks 0..size-1 spread evenly over 0..2^bits - 1. Needs size * 2^bits below 2^63."""
    return ((ranks.astype(np.int64) << bits) // size).astype(np.uint64)


@kernel
def hilbert_index(axes, bits):
    """The index of every row of axes (n, dims), each coordinate below 2^bits.

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
