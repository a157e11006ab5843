"""Earth mover's distances over ranks and over a given matrix, and the largest coin that keeps them within t.

With m = A(Z) and rho the likelihood ratio of the design, belief moves by (rho - 1) / (1 + m (rho - 1)) times
A_v (1[v in Z] - m). Its distance is at most t for every set exactly when rho <= 1 + t / W, W the largest of
G(Z) - t m over sets, G the distance of A_v (1[v in Z] - m). Where the sets of a size are too many to look at each, W is
that for equal distances, which no distance of at most 1 exceeds.
"""

from __future__ import annotations

from itertools import combinations
from math import comb, inf, nextafter

import numpy as np
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.designs.closeness import largest_ps

ENUMERATED = 20_000
Floats = NDArray[np.float64]


def by_rank(shift: Floats) -> Floats:
    """The distance of every row, a difference of two distributions, with neighbours 1 / (d - 1) apart."""
    return np.asarray(np.abs(np.cumsum(shift, axis=1)[:, :-1]).mean(axis=1))


def by_matrix(shift: Floats, matrix: Floats) -> Floats:
    """The distance of every row for a matrix of distances that is a tree's: of two ways the longer is never shorter.

    Groups of values within one distance of each other are joined step by step; what a group has too much must travel
    at least to the next step. Raises where the matrix is not of that kind.
    """
    out = np.zeros(len(shift))
    last = 0.0
    for reach, groups in steps(matrix):
        inside = shift @ groups
        out += (reach - last) * np.abs(inside).sum(axis=1) / 2
        last = reach
    return out


def steps(matrix: Floats) -> list[tuple[float, Floats]]:
    """The distances that occur, each with the groups (columns of 0 and 1) of values nearer to each other than it."""
    longest = np.minimum.reduce([np.maximum(matrix[:, [k]], matrix[[k], :]) for k in range(len(matrix))])
    if (matrix > longest + 1e-12).any() or (matrix != matrix.T).any() or matrix.max() > 1:
        raise ValueError("the matrix must be a tree's: symmetric, at most 1, no value further than by way of another.")
    out = []
    for reach in np.unique(matrix[matrix > 0]):
        near = matrix < reach
        _, first = np.unique(near, axis=0, return_index=True)
        out.append((float(reach), near[first].T.astype(float)))
    return out


def shifts(counts: NDArray[np.int64], design: DecoyDesign, members: NDArray[np.int64]) -> Floats:
    """Belief after every set (rows of codes) by Bayes' theorem, less the overall distribution."""
    prior = counts / counts.sum()
    inside = _inside(members, design.d)
    weight = np.where(inside, prior, 0.0 if design.rho == inf else prior / design.rho)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True) - prior)


def search(counts: NDArray[np.int64], t: float, matrix: Floats) -> DecoyDesign:
    """The design of least expected error that keeps every set within t by the matrix."""
    d = counts.size
    options = []
    for known in largest_ps(counts, t, "equal"):
        if comb(d, known.eta) > ENUMERATED:
            options.append(DecoyDesign(d=d, eta=known.eta, p=known.p))
            continue
        worst = _worst(counts, t, known.eta, matrix)
        p = 1.0 if worst <= 0 else nextafter(known.eta * t / (d * worst + known.eta * t), 0.0)
        options.append(DecoyDesign(d=d, eta=known.eta, p=p))
    n = int(counts.sum())
    return min(options, key=lambda design: design.expected_l2(n))


def _worst(counts: NDArray[np.int64], t: float, eta: int, matrix: Floats) -> float:
    prior = counts / counts.sum()
    inside = _inside(np.array(list(combinations(range(counts.size), eta))), counts.size)
    mass = inside @ prior
    return float((by_matrix(prior * (inside - mass[:, None]), matrix) - t * mass).max())


def _inside(members: NDArray[np.int64], d: int) -> NDArray[np.bool_]:
    out = np.zeros((len(members), d), bool)
    np.put_along_axis(out, members, True, axis=1)
    return out
