"""The beliefs of an adversary with a knowledge table, for the independent verification.

Apart from the code of the searches. A code below 0 is an unknown term, and a record with one is linked to no label.
`label_beliefs` is the one place where the belief in a label is worked out from the weights of labels and of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.ragged import distinct_of, numbered_sets, offsets_of, owners
from noren.schema.knowledge import PairLogs

COLUMNS = 9
LINKED, PEAK, TAIL, SQUARE, MOVED, SQUARE_LINKED, MOVED_LINKED, RISE, MASS = range(COLUMNS)
AT_ONCE = 1 << 21
"""Beliefs that are held at once as a dense table."""


def label_beliefs(
    offsets: NDArray, codes: NDArray, bits: NDArray[np.uint64], weights: NDArray[np.float64], pairs: PairLogs | None
) -> tuple[Any, NDArray[np.int64]]:
    """Return the beliefs of every distinct set of terms as a sparse (sets, labels) matrix, and the set of every record.

    P(L | t) = w(L) w(L, t1) w(L, t2) ... over the sum of the same, for the labels that have all terms of a record; a
    set that is linked to nothing has an empty line. Products are taken relative to the largest, so that none vanishes
    for being a product of many small numbers.
    """
    from scipy.sparse import csr_array, vstack

    _, first, kind = distinct_of(numbered_sets(offsets, codes.astype(np.int64) + 1))
    held = np.unpackbits(np.ascontiguousarray(bits).view(np.uint8), axis=1, bitorder="little")[:, : len(weights)]
    term, label = np.nonzero(held)
    shape = (len(bits) + 1, len(weights))  # the first line is that of unknown terms
    has = csr_array((np.ones(len(term)), (term + 1, label)), shape=shape)
    logs = None if pairs is None else csr_array((pairs.logs, (owners(pairs.start) + 1, pairs.of)), shape=shape)
    parts = []
    step = max(1, AT_ONCE // len(weights))
    for begin in range(0, len(first), step):
        some = first[begin : begin + step]
        sizes = offsets[some + 1] - offsets[some]
        own = codes[np.repeat(offsets[some] - offsets_of(sizes)[:-1], sizes) + np.arange(sizes.sum())] + 1
        terms = csr_array((np.ones(len(own)), own, offsets_of(sizes)), shape=(len(some), shape[0]))
        times = (terms @ has).tocoo()
        linked = times.data == sizes[times.row]
        none = np.flatnonzero(sizes == 0)  # without terms every label is possible
        row = np.concatenate([times.row[linked], np.repeat(none, shape[1])])
        of = np.concatenate([times.col[linked], np.tile(np.arange(shape[1]), len(none))])
        weight = weights[of]
        if logs is not None and len(row):
            score = np.asarray((terms @ logs).tocsr()[row, of]).ravel()
            most = np.full(len(some), -np.inf)
            np.maximum.at(most, row, score)
            weight = weight * np.exp(score - most[row])
        weight = weight / np.bincount(row, weight, minlength=len(some))[row]
        parts.append(csr_array((weight, (row, of)), shape=(len(some), shape[1])))
    return (vstack(parts, format="csr") if parts else csr_array((0, shape[1]))), kind


def mean_beliefs(offsets: NDArray, codes: NDArray, *links: Any) -> NDArray[np.float64]:
    """Return the mean belief in every label over all records; a record without a possible label contributes nothing."""
    beliefs, kind = label_beliefs(offsets, codes, *links)
    times = np.bincount(kind, minlength=beliefs.shape[0])
    return np.asarray(beliefs.T @ times / max(1, len(kind)))


def beliefs_of_groups(
    order: NDArray, bounds: NDArray, found: tuple[Any, NDArray[np.int64]], prior: NDArray[np.float64] | None
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]:
    """Yield some groups order[bounds[g]:bounds[g + 1]] at a time: which, their linked records, and the mean beliefs of
    the linked records and of all.

    A record that is linked to nothing believes `prior`, or nothing if there is none.
    """
    from scipy.sparse import csr_array

    beliefs, kind = found
    groups, (kinds, labels) = len(bounds) - 1, beliefs.shape
    linked = (np.diff(beliefs.indptr) > 0).astype(np.float64)
    step = max(1, AT_ONCE // max(1, labels))
    for begin in range(0, groups, step):
        ends = bounds[begin : begin + step + 1]
        sets = kind[order[ends[0] : ends[-1]]]
        held = csr_array((np.ones(len(sets)), sets, ends - ends[0]), shape=(len(ends) - 1, kinds))
        many, sums = held @ linked, (held @ beliefs).toarray()
        size = np.diff(ends)
        alone = sums / np.maximum(1, many)[:, None]
        if prior is not None:
            sums += (size - many)[:, None] * prior
        yield slice(begin, begin + len(size)), many, alone, sums / np.maximum(1, size)[:, None]


def group_beliefs(
    order: NDArray, bounds: NDArray, offsets: NDArray, codes: NDArray, bits: NDArray, weights: NDArray,
    pairs: PairLogs | None, alpha: NDArray[np.float64], prior: bool, l: int,  # noqa: E741
) -> NDArray[np.float64]:  # fmt: skip
    """Return one line per group order[bounds[g]:bounds[g + 1]], with the columns named above.

    The columns "linked" count linked records alone, renormalised. With `prior` an unlinked record believes alpha.
    """
    out = np.zeros((len(bounds) - 1, COLUMNS))
    found = label_beliefs(offsets, codes, bits, weights, pairs)
    for some, linked, alone, belief in beliefs_of_groups(order, bounds, found, alpha if prior else None):
        out[some] = figures_of(belief, alpha, l)
        out[some, LINKED] = linked
        among = figures_of(alone, alpha, 1)
        out[some, SQUARE_LINKED] = np.where(linked, among[:, SQUARE], 0.0)
        out[some, MOVED_LINKED] = np.where(linked, among[:, MOVED], 0.0)
    return out


def figures_of(belief: NDArray[np.float64], alpha: NDArray[np.float64], l: int) -> NDArray[np.float64]:  # noqa: E741
    """Return the figures of beliefs (groups, labels), except those of linked records."""
    out = np.zeros((len(belief), COLUMNS))
    mass, more = belief.sum(axis=1), belief - alpha
    rest = np.maximum(0.0, 1 - mass) - max(0.0, 1.0 - float(alpha.sum()))
    out[:, PEAK], out[:, MASS], out[:, RISE] = belief.max(axis=1), mass, more.max(axis=1)
    out[:, SQUARE], out[:, MOVED] = (more**2).sum(axis=1), (np.abs(more).sum(axis=1) + np.abs(rest)) / 2
    if l > 1:
        belief = belief.copy()
        for _ in range(min(l - 1, len(alpha))):
            belief[np.arange(len(belief)), belief.argmax(axis=1)] = 0.0
        mass = belief.sum(axis=1)
    out[:, TAIL] = mass
    return out
