"""What an adversary knows besides the sets of one column: distributions before the sets are seen, and other evidence.

From below: how common the values are; how they go with columns that are published exactly or as general values; what
the record's other sets say. What all published columns say at once is worked out in `noren.estimates.belief`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noren.audit.sample import Sample
from noren.audit.sets import ByRow, Sets, constant

Joint = Callable[[Sequence[str]], NDArray[np.float64]]
"""The distribution over some columns together."""


@dataclass(frozen=True)
class Knows:
    """What the adversary knows besides the column's own sets."""

    name: str
    title: str
    prior: ByRow
    evidence: ByRow
    epsilon: float
    """How much the sets together can tell: the sum of their epsilons."""


@dataclass(frozen=True)
class Attacked:
    """Records that are attacked: their sets, the codes of their other columns, and where distributions come from."""

    sets: Mapping[str, Sets]
    keys: Mapping[str, NDArray[np.int64]]
    """What columns say that are published exactly or as general values, by number."""
    joint: Joint
    shrink: float
    covers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """(cells, values) of every column of general values: which values each of its cells covers."""
    of: int | None = None
    """Records that distributions come from, where these are a sample of them."""

    @property
    def records(self) -> int:
        """Records that distributions come from."""
        return len(next(iter(self.sets.values()))) if self.of is None else self.of

    def some(self, sample: Sample) -> Attacked:
        """The same of the records that are measured."""
        if sample.whole:
            return self
        sets = {name: one.take(sample.lines) for name, one in self.sets.items()}
        return replace(self, sets=sets, keys={name: sample[codes] for name, codes in self.keys.items()}, of=sample.n)


def knowledge_of(table: Attacked, name: str, given: Sequence[str], beside: str | None) -> Iterator[Knows]:
    """Everything that the adversary may know, from the overall distribution up."""
    own = table.sets[name]
    overall = table.joint([name])
    shown = f"{'published' if {*given} & {*table.covers} else 'exact'} {' and '.join(given)}"
    start, epsilon = constant(overall), own.design.epsilon
    yield Knows("overall", "overall distribution", start, own.likelihood, epsilon)
    known: ByRow = start
    told: ByRow = own.likelihood
    if given:
        known = conditional(table, name, given, overall)
        yield Knows("given", f"with {shown}", known, own.likelihood, epsilon)
    if beside is not None:
        other = table.sets[beside]
        told = _both(own, other, table.joint([name, beside]))
        epsilon = epsilon + other.design.epsilon
        yield Knows("beside", f"with the sets of {beside}", start, told, epsilon)
    if given and beside is not None:
        yield Knows("together", f"with {shown} and the sets of {beside}", known, told, epsilon)


def conditional(table: Attacked, name: str, given: Sequence[str], overall: NDArray[np.float64]) -> ByRow:
    """The distribution among records with the same given values, with some of the overall one mixed in."""
    joint = table.joint([name, *given])
    for axis, column in enumerate(given, 1):
        if column in table.covers:
            joint = np.moveaxis(np.tensordot(table.covers[column], joint, (1, axis)), 0, axis)
    sizes = joint.shape[1:]
    counts = joint.reshape(len(overall), -1).T * table.records
    held = counts.sum(axis=1, keepdims=True)
    weight = max(table.shrink, 1e-9)
    shares = (counts + weight * overall) / (held + weight)
    slot = np.ravel_multi_index([table.keys[column] for column in given], sizes)
    return lambda rows: np.asarray(shares[slot[rows]])


def _both(own: Sets, other: Sets, joint: NDArray[np.float64]) -> ByRow:
    """The likelihood of both sets of a record: the other's, averaged over what the own value says about it."""
    mass = joint.sum(axis=1, keepdims=True)
    turn = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
    return lambda rows: np.asarray(own.likelihood(rows) * (other.likelihood(rows) @ turn.T))


def remembered(joint: Joint) -> Joint:
    """The same distribution is worked out once."""
    known: dict[tuple[str, ...], NDArray[np.float64]] = {}

    def found(names: Sequence[str]) -> NDArray[np.float64]:
        key = tuple(names)
        if key not in known:
            known[key] = joint(names)
        return known[key]

    return found
