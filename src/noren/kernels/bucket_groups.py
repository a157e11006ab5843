"""Groups of records along a curve: with diverse sensitive values, or of at least k records.

A record is its position on the curve here; sensitive values come in that order. A set of records is l-eligible if no
value makes up more than 1/l of it.
"""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

import numpy as np

from noren.kernels.compiled import kernel
from noren.kernels.requirements import class_holds

NONE = np.iinfo(np.int64).max
TREE = 0
INTERVAL = 1
VALUES = 2
FINE = 32
"""Below twice this k every cut is tried; beyond, cuts about k / FINE records apart."""


@kernel()
def eligible_cap(counts, l):
    """The largest c for which the counts, none above c any more, are l-eligible: l * c <= sum of min(count, c)."""
    low = 0
    high = 0
    for count in counts:
        high = max(high, count)
    while low < high:
        middle = (low + high + 1) // 2
        kept = 0
        for count in counts:
            kept += min(count, middle)
        if l * middle <= kept:
            low = middle
        else:
            high = middle - 1
    return low


@kernel()
def first_of_value(values, m, cap):
    """Marks the first `cap` records of every value."""
    seen = np.zeros(m, np.int64)
    out = np.empty(len(values), np.bool_)
    for i in range(len(values)):
        out[i] = seen[values[i]] < cap
        seen[values[i]] += 1
    return out


@kernel()
def _set(tree, leaf, value):
    """A tournament of minima: tree[1] is the least leaf."""
    i = len(tree) // 2 + leaf
    tree[i] = value
    i //= 2
    while i:
        tree[i] = min(tree[2 * i], tree[2 * i + 1])
        i //= 2


@kernel()
def diverse_groups(values, m, l):
    """1-D l-diversity (Ghinita et al. 2007): the group of every record, and how many there are.

    Every value has a bucket of its records in curve order. With N records left a bucket of n gives its head if
    n * l > N - l; the heads that come first on the curve fill the group up to l. Fewer than 2l records are the last
    group. The records must be l-eligible, and every group is.
    """
    n = len(values)
    left = np.zeros(m, np.int64)
    for v in values:
        left[v] += 1
    head = np.zeros(m, np.int64)
    head[1:] = np.cumsum(left)[:-1]
    rows = np.empty(n, np.int64)
    place = head.copy()
    for i in range(n):
        rows[place[values[i]]] = i
        place[values[i]] += 1
    ranked = np.argsort(-left, kind="mergesort")
    for i in range(m):
        place[ranked[i]] = i
    at_least = np.zeros(left.max() + 2 if m else 1, np.int64)  # how many buckets hold that many records
    for count in left:
        at_least[count] += 1
    for count in range(len(at_least) - 2, -1, -1):
        at_least[count] += at_least[count + 1]
    leaves = 1
    while leaves < m:
        leaves *= 2
    heads = np.full(2 * leaves, NONE, np.int64)
    for v in range(m):
        if left[v]:
            _set(heads, v, rows[head[v]])
    groups = np.empty(n, np.int64)
    members = np.empty(max(m, l), np.int64)
    rest = n
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
        for v in members[:taken]:
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
    return groups, group


@kernel()
def sorted_by_class(classes, count):
    """Records class by class, and where each class begins; classes below 0 are left out."""
    bounds = np.zeros(count + 1, np.int64)
    for c in classes:
        if c >= 0:
            bounds[c + 1] += 1
    bounds = np.cumsum(bounds)
    rows = np.empty(bounds[-1], np.int64)
    place = bounds.copy()
    for i in range(len(classes)):
        if classes[i] >= 0:
            rows[place[classes[i]]] = i
            place[classes[i]] += 1
    return rows, bounds


@kernel()
def failing_classes(classes, count, values, column, rules):
    """Which classes do not meet the requirements on one sensitive column."""
    rows, bounds = sorted_by_class(classes, count)
    hists = np.zeros(rules.reference.shape, np.float64)
    out = np.zeros(count, np.bool_)
    for c in range(count):
        mine = rows[bounds[c] : bounds[c + 1]]
        if not len(mine):
            continue
        for row in mine:
            hists[column, values[row]] += 1
        out[c] = not class_holds(rules, hists, len(mine))
        for row in mine:
            hists[column, values[row]] = 0
    return out


@kernel()
def joined_groups(groups, count, values, column, rules):
    """Consecutive groups put together until they meet the requirements: the class of every group, and how many.

    What is left over at the end joins as many of the last classes as it takes. No class at all: not even all records
    together are enough.
    """
    rows, bounds = sorted_by_class(groups, count)
    hists = np.zeros(rules.reference.shape, np.float64)
    out = np.zeros(count, np.int64)
    begins = np.zeros(count + 1, np.int64)
    found = 0
    for g in range(count):
        for row in rows[bounds[g] : bounds[g + 1]]:
            hists[column, values[row]] += 1
        out[g] = found
        size = bounds[g + 1] - bounds[begins[found]]
        if class_holds(rules, hists, size):
            found += 1
            begins[found] = g + 1
            hists[column] = 0
    last = begins[found]
    while found and last < count:
        found -= 1
        for row in rows[bounds[begins[found]] : bounds[begins[found + 1]]]:
            hists[column, values[row]] += 1
        out[begins[found] :] = found
        size = bounds[count] - bounds[begins[found]]
        if class_holds(rules, hists, size):
            found += 1
            break
    return out, found


@kernel()
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
