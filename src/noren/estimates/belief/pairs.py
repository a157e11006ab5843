"""How a secret goes together with another column, learned from the cells of other people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.estimates.belief.evidence import Evidence

STEPS = 60
"""Steps of expectation maximisation at most."""
START = 12
"""Steps towards the other column's own distribution, from which a pair starts."""
STRIDE = 1.7
"""How much further than expectation maximisation a step goes: it arrives sooner, and held-out records are asked."""
LOOK = 3
"""Steps after which held-out records are asked whether it still helps."""
ENOUGH = 1e-6
"""Gain of held-out likelihood a record below which learning stops."""
MIXED = (2.0, 8.0, 32.0, 128.0)
"""People of the other column's overall distribution that are mixed into that of every value; the best is chosen."""


SHARPER = (2.0, 4.0)
"""Powers of the distance from independence that are tried besides: a rule without exception is learned too soft."""


@dataclass(frozen=True)
class Pair:
    """The distribution of another column for every value of the secret, one for each fold of people."""

    evidence: Evidence
    given: NDArray[np.float64]
    """(folds, values, values of the other column), learned without the people of the fold."""
    usual: NDArray[np.float64]
    """(folds, values of the other column): the same for anybody."""

    def told(self, fold: int, records: NDArray[np.int64], bounds: NDArray, value: NDArray) -> NDArray[np.float64]:
        """For every entry how much likelier the record's cell is under its value than for anybody, as a logarithm."""
        from noren.estimates.belief.kernels import add_told

        out = np.zeros(len(value))
        rows = self.evidence.rows
        add_told(out, bounds, value, records, self.given[fold], rows, 1.0)
        base = np.zeros(len(records))
        each, none = np.arange(len(records) + 1), np.zeros(len(records), np.int64)
        add_told(base, each, none, records, self.usual[fold][None, :], rows, 1.0)
        return np.asarray(out - np.repeat(base, np.diff(bounds)))


def learned(
    own: Evidence, other: Evidence, folds: Sequence[tuple[NDArray, NDArray]], priors: NDArray[np.float64]
) -> Pair:
    """The pair, for every fold from the records to learn from and those to be foreseen. priors: the secret's own."""
    given, usual = [], []
    for (known, held), prior in zip(folds, priors, strict=True):
        joint = _joint(own, other, np.outer(prior, marginal(other, known, START)), known, held)
        shares = joint.sum(axis=0)
        tried = [_given(joint, shares, mixed, len(known)) for mixed in MIXED]
        tried += [_given(_sharpened(joint, power), shares, MIXED[0], len(known)) for power in SHARPER]
        given.append(max(tried, key=lambda one: _foreseen(own, other, one, joint, held)))
        usual.append(shares)
    return Pair(other, np.stack(given), np.stack(usual))


def marginal(own: Evidence, known: NDArray[np.int64], steps: int = 2 * STEPS) -> NDArray[np.float64]:
    """How common the values of a column are among some records."""
    from noren.estimates.belief.kernels import joint_step

    anything = _anything(len(own.of))
    joint = np.full((own.d, 1), 1 / own.d)
    for _ in range(steps):
        after, _ = joint_step(joint, own.rows, anything, known)
        still = np.abs(after - joint).sum() * max(1, len(known)) < 0.1
        joint = after
        if still:
            break
    return np.asarray(joint[:, 0])


def glanced(own: Evidence, other: Evidence, prior: NDArray[np.float64], some: NDArray[np.int64]) -> NDArray[np.float64]:
    """A first idea of a joint distribution, to see which columns are worth learning."""
    from noren.estimates.belief.kernels import joint_step

    joint = np.outer(prior, marginal(other, some, START))
    for _ in range(START // 2):
        joint, _ = joint_step(joint, own.rows, other.rows, some)
    return np.asarray(joint)


def information(joint: NDArray[np.float64]) -> float:
    """Mutual information of a joint distribution."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / np.maximum(apart[there], 1e-300))).sum())


def _anything(records: int):  # type: ignore[no-untyped-def]
    """A column that says nothing."""
    from noren.estimates.belief.kernels import Rows

    return Rows(np.array([0, 1]), np.zeros(1, np.int64), np.ones(1), 0.0, np.zeros(records, np.int64))


def _joint(
    own: Evidence, other: Evidence, joint: NDArray[np.float64], known: NDArray[np.int64], held: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The likeliest joint distribution, from independence on, as long as held-out records are foreseen better."""
    from noren.estimates.belief.kernels import joint_step

    best, before = joint, -np.inf
    for step in range(STEPS):
        if step % LOOK == 0:
            _, fit = joint_step(joint, own.rows, other.rows, held)
            if fit <= before + ENOUGH * max(1, len(held)):
                break
            best, before = joint, fit
        after, _ = joint_step(joint, own.rows, other.rows, known)
        further = joint * np.divide(after, joint, out=np.ones_like(joint), where=joint > 0) ** STRIDE
        joint = further / further.sum()
    return best


def _sharpened(joint: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """The same further from independence."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    out = apart * np.divide(joint, apart, out=np.zeros_like(joint), where=apart > 0) ** power
    return np.asarray(out * (joint.sum(axis=1, keepdims=True) / np.maximum(out.sum(axis=1, keepdims=True), 1e-300)))


def _given(joint: NDArray, shares: NDArray, mixed: float, people: int) -> NDArray[np.float64]:
    """The other column's distribution for every value, with some people of the overall one mixed in."""
    counts = joint * people + mixed * shares[None, :]
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _foreseen(own: Evidence, other: Evidence, given: NDArray, joint: NDArray, held: NDArray[np.int64]) -> float:
    """The log-likelihood of held-out records under such a distribution."""
    from noren.estimates.belief.kernels import joint_step

    return float(joint_step(given * joint.sum(axis=1, keepdims=True), own.rows, other.rows, held)[1])
