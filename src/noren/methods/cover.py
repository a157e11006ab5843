"""The published values of a class: for every column the smallest generalised value that covers its records.

With a hierarchy that is the lowest common node. Without one it is what the class really covers: an interval of an
ordered column, a set of categories otherwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.engines import Recode
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain, bin_labels
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import CALENDAR, NUMERIC
from noren.schema.nodes import Nodes, Tight, runs_of, tree_of

INTERVALS = 3
"""Levels of an automatic interval hierarchy between the values and the root."""
FIRST_INTERVALS = 16
SPECIAL = (MISSING, OTHER)


def cover(facts: Column, codes: NDArray, classes: NDArray[np.int64], count: int) -> Recode:
    """The node of every record, given the class (0..count-1) of every record; classes below 0 publish nothing."""
    kept = classes >= 0
    tight: Tight = "members"
    if facts.tree is not None:
        tight, tree = "subtrees", tree_of(facts.tree)
        node = common_nodes(tree.at, codes[kept], classes[kept], count)
        nodes = tree.nodes
    elif facts.domain.is_ranked:
        tight = "ends"
        nodes, node = _intervals(facts.domain, codes[kept], classes[kept], count)
    else:
        nodes, node = _value_sets(facts.domain, codes[kept], classes[kept], count)
    data = np.where(kept, node[np.maximum(classes, 0)], 0) if count else np.zeros(len(codes), int)
    return Recode(nodes, data, tight)


def common_nodes(at: NDArray[np.int64], codes: NDArray, classes: NDArray, count: int) -> NDArray[np.int64]:
    """The lowest node of a tree that covers every record of a class, for all classes."""
    found = np.full(count, -1, np.int64)
    for level in at:
        mine = level[codes]
        low = np.full(count, len(at[0]) * len(at) + 1, np.int64)
        high = np.full(count, -1, np.int64)
        np.minimum.at(low, classes, mine)
        np.maximum.at(high, classes, mine)
        new = (found < 0) & (low == high)
        found[new] = low[new]
    return np.maximum(found, 0)


def _intervals(domain: Domain, codes: NDArray, classes: NDArray, count: int) -> tuple[Nodes, NDArray[np.int64]]:
    """Return the range of every class, and whether a value is missing."""
    d, gone = len(domain), domain.missing_code
    there = np.ones(len(codes), bool) if gone is None else codes != gone
    low = np.full(count, d, np.int64)
    high = np.full(count, -1, np.int64)
    np.minimum.at(low, classes[there], codes[there])
    np.maximum.at(high, classes[there], codes[there])
    lacks = np.zeros(count, bool)
    lacks[classes[~there]] = True
    empty = (high < 0) & ~lacks
    low[empty], high[empty] = 0, 0
    keys, node = np.unique(np.stack([low, high, lacks], axis=1), axis=0, return_inverse=True)
    labels, runs = [], []
    for first, last, missing in keys.tolist():
        covered = last >= first
        words = [interval_label(domain, first, last)] if covered else []
        labels.append(" or ".join([*words, *([MISSING] if missing else [])]))
        pieces = [(first, last + 1)] if covered else []
        if missing:
            assert gone is not None
            pieces = [(first, gone + 1)] if covered and last + 1 == gone else [*pieces, (gone, gone + 1)]
        runs.append(pieces)
    return Nodes.from_runs(d, labels, runs), node.ravel()


def interval_label(domain: Domain, low: int, high: int) -> str:
    """Return the label of values from one code to another: "17" for one value, "[17, 23]" for several, joined bins for
    bins."""
    if low == high:
        return domain.values[low]
    if domain.edges is not None:
        first, last = domain.edges[low], domain.edges[high + 1]
        if np.isinf(first) or np.isinf(last):  # an open end stays open
            return bin_labels((first, last))[0] if first > -np.inf or last < np.inf else "any number"
        return domain.values[low].split(",")[0] + "," + domain.values[high].split(",")[1]
    return f"[{domain.values[low]}, {domain.values[high]}]"


def _value_sets(domain: Domain, codes: NDArray, classes: NDArray, count: int) -> tuple[Nodes, NDArray[np.int64]]:
    words = (len(domain) + 63) // 64
    masks = np.zeros((count, words), np.uint64)
    bit = np.left_shift(np.uint64(1), (codes % 64).astype(np.uint64))
    np.bitwise_or.at(masks, (classes, codes.astype(np.int64) // 64), bit)
    masks[~masks.any(axis=1), 0] = 1
    distinct, node = np.unique(masks, axis=0, return_inverse=True)
    bits = np.unpackbits(distinct.astype("<u8").view(np.uint8), axis=1, bitorder="little")[:, : len(domain)]
    members = [np.flatnonzero(row).tolist() for row in bits]
    labels = ["{" + ", ".join(domain.values[c] for c in codes) + "}" if len(codes) > 1 else domain.values[codes[0]]
              for codes in members]  # fmt: skip
    return Nodes.from_runs(len(domain), labels, [runs_of(codes) for codes in members]), node.ravel()


def is_automatic(facts: Column) -> bool:
    """Return whether intervals are made for the column from the numbers that occur."""
    return facts.tree is None and facts.domain.is_ranked and facts.domain.kind in NUMERIC


def automatic_hierarchy(facts: Column, codes: NDArray) -> Hierarchy:
    """Return the column's hierarchy, or an automatic one: round intervals of numbers, otherwise the values under one
    root.

    How wide the intervals are follows from the numbers that these records have, unless the policy lists the values:
    somebody who is not published must not stretch them.
    """
    if facts.tree is not None:
        return facts.tree
    domain = facts.domain
    values = domain.values
    if domain.kind in CALENDAR and domain.is_ranked:
        return Hierarchy.from_calendar(values, ("month", "quarter", "year", "decade"))
    if not is_automatic(facts):
        return Hierarchy((values,), "values")
    occurs = np.bincount(codes, minlength=len(values)) > 0 if domain.source == "data" else np.ones(len(values), bool)
    numbers = np.array([float(v) for v, there in zip(values, occurs, strict=True) if there and v not in SPECIAL])
    if len(numbers) <= FIRST_INTERVALS or not np.isfinite(numbers).all():
        return Hierarchy((values,), "values")
    spread = float(numbers.max() - numbers.min())
    scale = 10.0 ** np.floor(np.log10(spread / FIRST_INTERVALS))
    width = next(scale * step for step in (1, 2, 5, 10) if spread / (scale * step) <= FIRST_INTERVALS)
    widths = [float(f"{width * 2**level:.12g}") for level in range(INTERVALS)]
    return Hierarchy.from_widths(values, widths)
