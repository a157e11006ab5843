"""Distances between the values of a domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy, read_side_rows

MOST_JUDGED = 1000
"""Values up to which every triple is looked at."""


class DistanceError(NorenError):
    """The error for a distance that does not fit the column's values. `absent` lists the values that a table lacks."""

    def __init__(self, message: str, *, hint: str | None = None, absent: Sequence[str] = ()) -> None:
        listed = f"{message} {', '.join(map(repr, absent[:10]))}." if absent else message
        super().__init__(listed, hint=hint)
        self.absent = tuple(absent)


Matrix = NDArray[np.float64]


def equal(domain: Domain, hierarchy: Hierarchy | None = None) -> Matrix:
    """Return 1 between any two different values."""
    return 1.0 - np.eye(len(domain))


def ordinal(domain: Domain, hierarchy: Hierarchy | None = None) -> Matrix:
    """Return differences of positions in the domain's order."""
    ranks = np.arange(len(domain), dtype=float)
    return np.abs(ranks[:, None] - ranks[None, :])


def numeric(domain: Domain, hierarchy: Hierarchy | None = None) -> Matrix:
    """Return differences of the numbers; bins count as their midpoint."""
    numbers = domain.numbers
    if numbers is None:
        raise DistanceError(
            "distance 'numeric' needs a domain of numbers.",
            hint="Use 'ordinal' for ordered categories, or give bins.",
        )
    return np.asarray(np.abs(numbers[:, None] - numbers[None, :]))


def tree(domain: Domain, hierarchy: Hierarchy | None = None) -> Matrix:
    """Return heights of lowest common ancestors in the hierarchy."""
    if hierarchy is None:
        raise DistanceError("distance 'tree' needs a hierarchy.", hint='Add hierarchy = "file.csv" to the column.')
    return hierarchy.restrict_to(domain.values).lca_heights().astype(float)


DISTANCES: dict[str, Callable[[Domain, Hierarchy | None], Matrix]] = {
    "equal": equal,
    "ordinal": ordinal,
    "numeric": numeric,
    "tree": tree,
}


def matrix(rows: Sequence[Sequence[str]], domain: Domain) -> Matrix:
    """Read a distance table: a header line of values, then one line per value with its distances."""
    header = [cell.strip() for cell in rows[0][1:]]
    table = {row[0].strip(): [float(cell) for cell in row[1:]] for row in rows[1:]}
    absent = [v for v in domain.values if v not in table or v not in header]
    if absent:
        raise DistanceError(
            "the distance table has no line or column for",
            hint="Every value of the domain needs one line and one column.",
            absent=absent,
        )
    columns = [header.index(v) for v in domain.values]
    out = np.array([[table[v][c] for c in columns] for v in domain.values])
    if np.any(out != out.T) or np.any(out < 0) or np.any(np.diag(out) != 0):
        raise DistanceError(
            "the distance table is not a distance: it must be symmetric, not negative, and zero on its diagonal.",
            hint="Copy the upper triangle to the lower one, and write 0 from each value to itself.",
        )
    return out


def semilattice(pairs: Sequence[tuple[str, str]], domain: Domain) -> Matrix:
    """Return smallest heights of common ancestors, if a value may have several parents.

    A node's height is the length of the longest way down to a value; siblings are 1 apart, cousins 2, and so on.
    """
    parents: dict[str, set[str]] = {}
    for child, parent in pairs:
        parents.setdefault(child, set()).add(parent)
    absent = [v for v in domain.values if v not in parents]
    if absent:
        raise DistanceError("the semilattice has no line for", absent=absent)
    heights: dict[str, int] = {}
    above: list[set[str]] = []
    for value in domain.values:
        found, level = {value}, {value}
        for step in range(len(parents) + 2):
            for node in level:
                heights[node] = max(heights.get(node, 0), step)
            level = {parent for node in level for parent in parents.get(node, ())}
            found |= level
            if not level:
                break
        else:
            raise DistanceError("a node is its own ancestor.", hint="Remove the cycle.")
        above.append(found)
    out = np.zeros((len(domain), len(domain)))
    for i in range(len(domain)):
        for j in range(i + 1, len(domain)):
            common = above[i] & above[j]
            if not common:
                raise DistanceError("two values have no common ancestor.", hint="Give all values a common root.")
            out[i, j] = out[j, i] = min(heights[node] for node in common)
    return out


def read_semilattice(path: Path, domain: Domain) -> Matrix:
    """Read the `semilattice` distance from a CSV file of child,parent pairs."""
    rows = [row for row, _ in read_side_rows(path, DistanceError, ";,\t")]
    if any(len(row) != 2 for row in rows):
        raise DistanceError(f"{path}: a line is not child,parent.", hint="Write two cells per line.")
    return semilattice([(row[0].strip(), row[1].strip()) for row in rows], domain)


def read_matrix(path: Path, domain: Domain) -> Matrix:
    """Read the `matrix` distance from a CSV file."""
    rows = [row for row, _ in read_side_rows(path, DistanceError, ";,\t")]
    try:
        return matrix(rows, domain)
    except (ValueError, IndexError):
        raise DistanceError(f"{path}: not a table of numbers.", hint="First line: ,a,b; then a,0,1; b,1,0.") from None


class Judgement(NamedTuple):
    """The properties of a distance between the values of a domain."""

    values: int
    pairs: int
    alike: int
    """Pairs of different values with distance 0, which no requirement separates."""
    detours: int
    """Pairs that are further apart than by way of a third value."""
    out_of_tree: int | None
    """Values to which one of a wider class of the hierarchy is nearer than one of a narrower class."""
    below: int
    """Pairs nearer than d."""
    lonely: int
    """Values with no other at distance d: none of them can ever be published under the requirement."""

    @property
    def is_metric(self) -> bool:
        return not self.alike and not self.detours

    def sentences(self, d: float) -> list[str]:
        """Return the properties in words."""
        out = [f"{self.values} values, {self.pairs:,} pairs"]
        why = (
            f"{self.alike:,} pairs of different values have distance 0, and {self.detours:,} break the triangle "
            "inequality"
        )
        out.append("A metric" if self.is_metric else f"Not a metric: {why}")
        if self.out_of_tree is not None:
            bad = f"Inconsistent with the hierarchy: for {self.out_of_tree} values, a value in a wider class is nearer"
            out.append(
                bad if self.out_of_tree else ("Consistent with the hierarchy: values in wider classes are never nearer")
            )
        share = self.below / self.pairs if self.pairs else 0.0
        out.append(f"Pairs below d = {d:g}: {self.below:,} ({share:.1%})")
        out.append(f"Values with no other value at d = {d:g}: {self.lonely}")
        return out


def judge_distance(distances: Matrix, hierarchy: Hierarchy | None, d: float) -> Judgement:
    """Check whether distances are a metric and agree with the hierarchy, and how many are below d."""
    n = len(distances)
    if n > MOST_JUDGED:
        raise DistanceError(
            f"{n:,} values are too many to check the triangle inequality.", hint=f"At most {MOST_JUDGED:,}."
        )
    upper = np.triu_indices(n, 1)
    least = distances.copy()
    for k in range(n):  # shortest ways: a distance that keeps the triangle inequality is its own
        np.minimum(least, distances[:, k, None] + distances[None, k, :], out=least)
    slack = 1e-9 * max(1.0, float(distances.max(initial=0.0)))
    wrong = None
    if hierarchy is not None:
        heights = hierarchy.lca_heights()
        broken = np.zeros(n, bool)
        for height in range(1, int(heights.max(initial=0))):
            inside = np.where(heights <= height, distances, -np.inf).max(axis=1)
            outside = np.where(heights > height, distances, np.inf).min(axis=1)
            broken |= inside > outside + slack
        wrong = int(broken.sum())
    far = distances >= d - slack
    return Judgement(
        values=n,
        pairs=len(upper[0]),
        alike=int((distances[upper] <= slack).sum()),
        detours=int((least < distances - slack)[upper].sum()),
        out_of_tree=wrong,
        below=int((~far)[upper].sum()),
        lonely=int((~(far & ~np.eye(n, dtype=bool)).any(axis=1)).sum()),
    )
