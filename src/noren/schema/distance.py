"""How far apart two values of a domain are."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy, read_side_file


class DistanceError(NorenError):
    """A distance that the column's values do not support. `absent` lists the values that a table misses."""

    absent: tuple[str, ...] = ()


Matrix = NDArray[np.float64]


def equal(domain: Domain, hierarchy: Hierarchy | None = None) -> Matrix:
    """1 between any two different values."""
    return 1.0 - np.eye(len(domain))


def ordinal(domain: Domain, hierarchy: Hierarchy | None = None) -> Matrix:
    """Difference of positions in the domain's order."""
    ranks = np.arange(len(domain), dtype=float)
    return np.abs(ranks[:, None] - ranks[None, :])


def numeric(domain: Domain, hierarchy: Hierarchy | None = None) -> Matrix:
    """Difference of the numbers themselves; bins count by their middle."""
    numbers = domain.numbers
    if numbers is None:
        raise DistanceError(
            "distance 'numeric' needs a domain of numbers.",
            hint="Use 'ordinal' for ordered categories, or give bins.",
        )
    return np.abs(numbers[:, None] - numbers[None, :])


def tree(domain: Domain, hierarchy: Hierarchy | None = None) -> Matrix:
    """Height of the lowest common ancestor in the hierarchy."""
    if hierarchy is None:
        raise DistanceError("distance 'tree' needs a hierarchy.", hint='Add hierarchy = "file.csv" to the column.')
    return hierarchy.restricted(domain.values).lca_heights().astype(float)


DISTANCES: dict[str, Callable[[Domain, Hierarchy | None], Matrix]] = {
    "equal": equal,
    "ordinal": ordinal,
    "numeric": numeric,
    "tree": tree,
}


def matrix(rows: Sequence[Sequence[str]], domain: Domain) -> Matrix:
    """A distance table: a header line of values, then one line per value, its distances after its name."""
    header = [cell.strip() for cell in rows[0][1:]]
    table = {row[0].strip(): [float(cell) for cell in row[1:]] for row in rows[1:]}
    absent = [v for v in domain.values if v not in table or v not in header]
    if absent:
        error = DistanceError(
            f"the distance table has no line or column for {', '.join(map(repr, absent[:10]))}.",
            hint="Every value of the domain needs one line and one column.",
        )
        error.absent = tuple(absent)
        raise error
    columns = [header.index(v) for v in domain.values]
    out = np.array([[table[v][c] for c in columns] for v in domain.values])
    if np.any(out != out.T) or np.any(out < 0) or np.any(np.diag(out) != 0):
        raise DistanceError(
            "the distance table is not a distance: it must be symmetric, not negative, and zero on its diagonal.",
            hint="Mirror the upper triangle and write 0 from each value to itself.",
        )
    return out


def semilattice(pairs: Sequence[tuple[str, str]], domain: Domain) -> Matrix:
    """The smallest height of a common ancestor, where a value may have several parents.

    A node's height is the length of the longest way down to a value; siblings are 1 apart, cousins 2, and so on.
    """
    parents: dict[str, set[str]] = {}
    for child, parent in pairs:
        parents.setdefault(child, set()).add(parent)
    absent = [v for v in domain.values if v not in parents]
    if absent:
        error = DistanceError(f"the semilattice has no line for {', '.join(map(repr, absent[:10]))}.")
        error.absent = tuple(absent)
        raise error
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
            raise DistanceError("a node is its own ancestor.", hint="A semilattice has no cycles.")
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
    """The `semilattice` distance, from a CSV file of child,parent pairs."""
    rows = _read_rows(path)
    if any(len(row) != 2 for row in rows):
        raise DistanceError(f"{path}: a line is not child,parent.", hint="Two cells per line.")
    return semilattice([(row[0].strip(), row[1].strip()) for row in rows], domain)


def read_matrix(path: Path, domain: Domain) -> Matrix:
    """The `matrix` distance, from a CSV file."""
    rows = _read_rows(path)
    try:
        return matrix(rows, domain)
    except (ValueError, IndexError):
        raise DistanceError(f"{path}: not a table of numbers.", hint="First line: ,a,b; then a,0,1; b,1,0.") from None


def _read_rows(path: Path) -> list[list[str]]:
    text = read_side_file(path, DistanceError)
    separator = max(";,\t", key=text.split("\n", 1)[0].count)
    try:
        return [row for row in csv.reader(text.splitlines(), delimiter=separator) if row]
    except csv.Error:
        raise DistanceError(f"{path}: cannot be read as CSV.", hint="Is a quotation mark left open?") from None
