"""The choice of the nodes of a tree of cuts that become classes: a dynamic programme.

Inner node i of the tree is the i-th place where the table was cut, leaf j the piece between two such places; leaves
are numbered after the inner nodes. A cover is a choice of nodes, one on every way from the root to a leaf. Every node
has two numbers that add up over a cover: what is bounded and what is to become small.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noren.kernel import kernel
from noren.methods.mondrian.kernels.costs import NOTHING, SET, bit_of, cell_cost

WORD = 64


class Shape(NamedTuple):
    """A tree of cuts."""

    children: Any
    """(inner nodes, 2): the nodes below."""
    upwards: Any
    """The inner nodes, children before parents."""


class Prices(NamedTuple):
    """The prices of a node: whether it can be a class, and its contributions to the limited and the minimised sum."""

    possible: Any
    bounded: Any
    wanted: Any


@kernel
def cut_tree(places, numbers, n):
    """Return children and range of every node, given where n rows were cut (ascending) and the number of each cut.

    A part is cut before what comes out of it, so the tree is the one in which numbers grow from the root downwards.
    """
    inner = len(places)
    children = np.full((inner, 2), -1, np.int64)
    extent = np.empty((2 * inner + 1, 2), np.int64)
    for j in range(inner + 1):
        extent[inner + j, 0] = places[j - 1] if j else 0
        extent[inner + j, 1] = places[j] if j < inner else n
    stack = np.empty(inner + 1, np.int64)
    top = 0
    for i in range(inner):
        last = inner + i
        while top and numbers[stack[top - 1]] > numbers[i]:
            top -= 1
            children[stack[top], 1] = last
            last = stack[top]
        children[i, 0] = last
        stack[top] = i
        top += 1
    last = 2 * inner
    while top:
        top -= 1
        children[stack[top], 1] = last
        last = stack[top]
    upwards = np.argsort(-numbers)
    for i in upwards:
        extent[i, 0], extent[i, 1] = extent[children[i, 0], 0], extent[children[i, 1], 1]
    return children, extent, upwards


@kernel
def node_losses(rows, extent, costs):
    """Return the loss of one record of every node, mean over the columns. Sets are counted exactly."""
    kinds, widths, at, prices = costs.kinds, costs.widths, costs.at, costs.prices
    q = rows.shape[1]
    out = np.zeros(len(extent))
    seen = np.full(widths.max(), -1, np.int64)
    stamp = 0
    for node in range(len(extent)):
        start, stop = extent[node]
        for b in range(q):
            low, high, word = NOTHING, np.int32(-1), np.uint64(0)
            distinct = 0
            stamp += 1
            wide = kinds[b] == SET and widths[b] > WORD
            for i in range(start, stop):
                code = rows[i, b]
                low, high = min(low, code), max(high, code)
                if wide and seen[code] != stamp:
                    seen[code] = stamp
                    distinct += 1
                elif kinds[b] == SET:
                    word |= bit_of(code)
            if wide:
                out[node] += (distinct - 1) / (widths[b] - 1)
            else:
                out[node] += cell_cost(kinds, at, prices, b, low, high, word)
        out[node] /= q
    return out


@kernel
def best_cover(tree, prices, share):
    """Return the best cover of the tree for share * bounded + (1 - share) * wanted, and both its sums; infinite if no
    cover is possible. Ties go to the smaller `bounded`."""
    children = tree.children
    possible, bounded, wanted = prices
    nodes = len(possible)
    stops = np.ones(nodes, np.bool_)
    sums = np.empty((nodes, 2))
    for v in range(nodes):
        sums[v, 0] = bounded[v] if possible[v] else np.inf
        sums[v, 1] = wanted[v] if possible[v] else np.inf
    for v in tree.upwards:
        a, b = children[v]
        if sums[a, 0] == np.inf or sums[b, 0] == np.inf:
            continue
        first, second = sums[a, 0] + sums[b, 0], sums[a, 1] + sums[b, 1]
        if sums[v, 0] < np.inf:
            gain = share * (sums[v, 0] - first) + (1 - share) * (sums[v, 1] - second)
            if gain < -1e-15 or (gain <= 1e-15 and sums[v, 0] <= first):
                continue
        stops[v] = False
        sums[v, 0], sums[v, 1] = first, second
    root = tree.upwards[-1] if len(tree.upwards) else 0
    cover = np.zeros(nodes, np.bool_)
    cover[root] = True
    for v in tree.upwards[::-1]:
        if cover[v] and not stops[v]:
            cover[v] = False
            cover[children[v, 0]] = cover[children[v, 1]] = True
    return cover, sums[root, 0], sums[root, 1]
