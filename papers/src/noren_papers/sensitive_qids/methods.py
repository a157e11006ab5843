"""The methods that the paper compares, on codes: designs by its rules, Rating's groups, a random table.

Decoys come from the library's own drawing and estimators; what the library has no name for stands here: the paper's
rule for small domains, ValueAdding's way of counting on Rating's groups, and the table that knows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.engines import Group, Records
from noren.engines.shuffle import permutation
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.frame import prepare
from noren.methods import Rating
from noren.models import FrequencyLDiversity
from noren.schema.column import sensitive_quasi_identifier
from noren.schema.domain import Domain
from noren.secret import Keystream
from noren.statements import SetCells
from noren.statements.set_cells import mask_dtype
from noren_papers.sensitive_qids.search import search
from noren_papers.sensitive_qids.tables import Coded


def diverse_designs(table: Coded, level: int) -> dict[str, DecoyDesign]:
    """p = 1 and sets of l values; d - 1 where a domain has no more than l, which publishes binary columns in clear."""
    return {name: DecoyDesign(d=d, eta=set_size(d, level)) for name, d in table.sizes.items()}


def set_size(d: int, level: int) -> int:
    return level if d > level else max(1, d - 1)


def close_designs(table: Coded, t: float) -> dict[str, DecoyDesign]:
    """The library's search: the largest p that keeps every set within t, the set size of least expected error."""
    return {name: search(table.counts(name), t, "equal").design for name in table.columns}


def published(table: Coded, designs: Mapping[str, DecoyDesign]) -> dict[str, SetCells]:
    """One release: a set for every cell of every column, from the library's cryptographic randomness."""
    stream = Keystream()
    return {name: designs[name].draw(codes, stream, attribute=name) for name, codes in table.columns.items()}


@dataclass(frozen=True)
class Groups:
    """One column as Rating publishes it: the group of every record, and for every group its share of each value."""

    group_of: NDArray[np.int64]
    shares: NDArray[np.float32]


def rated(table: Coded, name: str, level: int) -> Groups:
    """Rating's groups of one column: l different values in each (d - 1 in small domains).

    Where a value has more than every l-th record, as in most columns here, some groups must hold it twice. The
    library's method groups as many records of it as it can; the others join groups that hold the value already, so that
    every group's set of values stays as it is and no record is dropped.
    """
    d, codes = table.sizes[name], table.columns[name].astype(np.int64)
    size = set_size(d, level)
    if size == 1:
        return Groups(codes, np.eye(d, dtype=np.float32))
    stream = Keystream()
    keep = np.ones(table.n, bool)
    cap = largest_cap(table.counts(name), size)
    crowded = np.flatnonzero(table.counts(name) > cap)
    for value in crowded:
        rows = np.flatnonzero(codes == value)
        keep[rows[permutation(len(rows), stream)[cap:]]] = False
    meant = sensitive_quasi_identifier().over(name, Domain(table.values[name]))
    coded = Records(int(keep.sum()), {name: meant}, {name: codes[keep]})
    plan = Rating().recode(coded, [FrequencyLDiversity(l=size, on=[name])], lambda n: permutation(n, stream))
    column = plan.of(name)
    assert isinstance(column, Group)
    group_of = np.empty(table.n, np.int64)
    group_of[keep] = column.data
    for value in crowded:
        joined, rest = group_of[keep & (codes == value)], np.flatnonzero(~keep & (codes == value))
        group_of[rest] = joined[permutation(len(rest), stream) % len(joined)]
    inside = np.zeros((column.table.groups, d), np.float32)
    inside[column.table.group, column.table.value] = 1
    return Groups(group_of, inside / inside.sum(axis=1, keepdims=True))


def largest_cap(counts: NDArray[np.int64], size: int) -> int:
    """How many records of one value can be grouped at most: the largest c with size * c <= sum of min(count, c)."""
    low, high = 0, int(counts.max())
    while low < high:
        middle = (low + high + 1) // 2
        if size * middle <= int(np.minimum(counts, middle).sum()):
            low = middle
        else:
            high = middle - 1
    return low


def spread(columns: Sequence[Groups]) -> NDArray[np.float64]:
    """ValueAdding's count on groups: every record is spread evenly over the cells that its groups leave possible.

    With sets of l values in every column this is equation 18 at p = 1, w divided by the product of the l. Groups of
    several sizes are counted apart, each by the library's own counting of sets.
    """
    domains = [column.shares.shape[1] for column in columns]
    out = np.zeros(domains)
    sizes = [(column.shares > 0).sum(axis=1) for column in columns]
    masks = [
        ((column.shares > 0) @ (np.uint64(1) << np.arange(d, dtype=np.uint64))).astype(mask_dtype(d))
        for column, d in zip(columns, domains, strict=True)
    ]
    key = np.zeros(len(columns[0].group_of), np.int64)
    for column, size, d in zip(columns, sizes, domains, strict=True):
        key = key * (d + 1) + size[column.group_of]
    for one in np.unique(key):
        rows = np.flatnonzero(key == one)
        axes, shape, width = [], [], 1
        for j, (column, d) in enumerate(zip(columns, domains, strict=True)):
            group_of = column.group_of[rows]
            eta = int(sizes[j][group_of[0]])
            width *= eta
            shape.append(1 if eta == d else d)
            if eta < d:  # a set of the whole domain says nothing: its axis is spread at the end
                axes.append(Axis.drawn(f"{j}", SetCells(d, masks[j][group_of]), DecoyDesign(d=d, eta=eta)))
        if axes:
            frame = prepare(axes)
            found = frame.place(frame.inclusions)
        else:
            found = np.array(float(len(rows)))
        out += found.reshape(shape) / width
    return out


def apart(table: Coded, names: Sequence[str]) -> NDArray[np.float64]:
    """What columns published apart say of their cross tabulation: the product of their exact margins."""
    out = np.full((), float(table.n))
    for name in names:
        out = np.multiply.outer(out, table.counts(name) / table.n)
    return out


def random_table(rng: np.random.Generator, shape: Sequence[int], n: int) -> NDArray[np.float64]:
    """n records spread over the cells by a uniform Dirichlet draw: what can be said without any data."""
    weights = rng.standard_exponential(tuple(shape))
    return np.asarray(weights / weights.sum() * n)
