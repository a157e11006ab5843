"""What two columns of cells say together: one step towards their joint distribution, and what it makes of a record.

A column is given as sparse rows: entries bounds[c] <= e < bounds[c + 1] are the values that cell c lists, each with
what its probability exceeds `floor` by; all other values have the probability `floor`. `of` is the cell of a record.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.kernel import kernel


class Rows(NamedTuple):
    """The likelihood of a column's cells, and the cell of every record."""

    bounds: NDArray[np.int64]
    value: NDArray[np.int64]
    excess: NDArray[np.float64]
    floor: float
    of: NDArray[np.int64]


@kernel
def joint_step(joint, own, other, records):
    """One step of expectation maximisation from these records: the next joint distribution, and the log-likelihood
    of the present one."""
    by_own, by_other = joint.sum(axis=1), joint.sum(axis=0)
    cells = np.zeros_like(joint)
    of_own, of_other, of_all = np.zeros(joint.shape[0]), np.zeros(joint.shape[1]), 0.0
    fit = 0.0
    for i in records:
        a, b = own.of[i], other.of[i]
        total = own.floor * other.floor
        for e in range(own.bounds[a], own.bounds[a + 1]):
            v = own.value[e]
            inside = other.floor * by_own[v]
            for f in range(other.bounds[b], other.bounds[b + 1]):
                inside += other.excess[f] * joint[v, other.value[f]]
            total += own.excess[e] * inside
        if own.floor > 0:
            for f in range(other.bounds[b], other.bounds[b + 1]):
                total += own.floor * other.excess[f] * by_other[other.value[f]]
        if total <= 0:
            fit -= 700.0
            continue
        fit += np.log(total)
        of_all += own.floor * other.floor / total
        for e in range(own.bounds[a], own.bounds[a + 1]):
            weight = own.excess[e] / total
            v = own.value[e]
            of_own[v] += other.floor * weight
            for f in range(other.bounds[b], other.bounds[b + 1]):
                cells[v, other.value[f]] += weight * other.excess[f]
        if own.floor > 0:
            for f in range(other.bounds[b], other.bounds[b + 1]):
                of_other[other.value[f]] += own.floor * other.excess[f] / total
    for v in range(joint.shape[0]):
        for u in range(joint.shape[1]):
            cells[v, u] = joint[v, u] * (cells[v, u] + of_own[v] + of_other[u] + of_all)
    whole = cells.sum()
    return (cells / whole if whole > 0 else joint), fit


@kernel
def add_told(out, bounds, value, records, given, other, weight):
    """Add to every entry (record, value) the weighted logarithm of how likely the record's other cell is then.

    given: (values, values of the other column), its distribution for every value. Entries bounds[k] <= e <
    bounds[k + 1] are those of records[k].
    """
    for k in range(len(records)):
        b = other.of[records[k]]
        for e in range(bounds[k], bounds[k + 1]):
            v = value[e]
            told = other.floor
            for f in range(other.bounds[b], other.bounds[b + 1]):
                told += other.excess[f] * given[v, other.value[f]]
            out[e] += weight * np.log(max(told, 1e-300))
