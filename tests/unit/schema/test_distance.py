"""Distances between the values of a domain, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from noren.schema.distance import (
    DISTANCES,
    DistanceError,
    equal,
    judge_distance,
    matrix,
    numeric,
    ordinal,
    read_matrix,
    tree,
)
from noren.schema.domain import MISSING, Domain, bin_labels
from noren.schema.hierarchy import Hierarchy

GRADES = Domain(("low", "middle", "high"), source="policy")


def test_equal() -> None:
    assert np.array_equal(equal(GRADES), [[0, 1, 1], [1, 0, 1], [1, 1, 0]])


def test_ordinal_counts_ranks() -> None:
    assert np.array_equal(ordinal(GRADES), [[0, 1, 2], [1, 0, 1], [2, 1, 0]])


def test_numeric_takes_the_numbers_themselves() -> None:
    assert np.array_equal(numeric(Domain(("1", "4", "-2"), "integer")), [[0, 3, 3], [3, 0, 6], [3, 6, 0]])


def test_numeric_takes_bins_by_their_middle() -> None:
    edges = (0.0, 10.0, 20.0, 60.0)
    assert np.array_equal(numeric(Domain(bin_labels(edges), edges=edges))[0], [0, 10, 35])


@pytest.mark.parametrize("domain", [GRADES, Domain(("1", "2", MISSING), "integer")])
def test_numeric_refuses_what_is_not_a_number(domain: Domain) -> None:
    with pytest.raises(DistanceError, match="needs a domain of numbers"):
        numeric(domain)


def test_tree_is_the_height_of_the_lowest_common_ancestor_in_the_domains_order() -> None:
    hierarchy = Hierarchy.from_tree({"lung": ["flu", "tb"], "bone": ["fracture"]})
    domain = Domain(("fracture", "tb", "flu", MISSING))
    assert np.array_equal(tree(domain, hierarchy), [[0, 2, 2, 2], [2, 0, 1, 2], [2, 1, 0, 2], [2, 2, 2, 0]])


def test_tree_needs_a_hierarchy() -> None:
    with pytest.raises(DistanceError, match="needs a hierarchy"):
        tree(GRADES)


def test_every_named_distance_is_one() -> None:
    domain = Domain(("1", "2", "5"), "integer")
    hierarchy = Hierarchy.from_widths(domain.values, [3])
    for name, distance in DISTANCES.items():
        found = distance(domain, hierarchy)
        assert np.array_equal(found, found.T), name
        assert (np.diag(found) == 0).all(), name
        assert (found + np.eye(3) > 0).all(), name


ROWS = [["", "low", "high", "middle"], ["high", "3", "0", "1"], ["middle", "1.5", "1", "0"], ["low", "0", "3", "1.5"]]


def test_matrix_is_put_into_the_domains_order() -> None:
    assert np.array_equal(matrix(ROWS, GRADES), [[0, 1.5, 3], [1.5, 0, 1], [3, 1, 0]])


def test_matrix_must_know_every_value() -> None:
    with pytest.raises(DistanceError, match="no line or column for 'top'"):
        matrix(ROWS, Domain((*GRADES.values, "top")))
    with pytest.raises(DistanceError, match="no line or column for 'high'"):
        matrix([row[:2] + row[3:] for row in ROWS], GRADES)


@pytest.mark.parametrize(
    ("row", "column", "cell"),
    [(1, 1, "2"), (1, 2, "1"), (3, 3, "-1.5"), (1, 1, "nan")],
    ids=["not symmetric", "not zero on the diagonal", "negative", "not a number"],
)
def test_matrix_must_be_a_distance(row: int, column: int, cell: str) -> None:
    rows = [list(line) for line in ROWS]
    rows[row][column] = cell
    with pytest.raises(DistanceError, match="not a distance"):
        matrix(rows, GRADES)


def test_matrix_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("\n".join(";".join(row) for row in ROWS), encoding="utf-8-sig")
    assert np.array_equal(read_matrix(path, GRADES), matrix(ROWS, GRADES))


def test_matrix_files_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    with pytest.raises(DistanceError, match="no such file"):
        read_matrix(path, GRADES)
    with pytest.raises(DistanceError, match="cannot be read"):
        read_matrix(tmp_path, GRADES)
    for text in (
        "",
        ",low,middle,high\nlow,0,x,1\nmiddle,1,0,1\nhigh,1,1,0\n",
        ",low,middle,high\nlow\nmiddle\nhigh\n",
    ):
        path.write_text(text)
        with pytest.raises(DistanceError, match="not a table of numbers"):
            read_matrix(path, GRADES)
    path.write_bytes(b",M\xfcll\nM\xfcll,0\n")
    with pytest.raises(DistanceError, match="not UTF-8 at byte 2"):
        read_matrix(path, GRADES)


def judged_slowly(distances: np.ndarray, classes: Hierarchy | None, d: float) -> dict[str, int | None]:
    """The definitions, pair by pair."""
    n = len(distances)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    broken = None
    if classes is not None:
        height = classes.lca_heights()
        broken = sum(
            any(height[a, b] < height[a, c] and distances[a, b] > distances[a, c] for b in range(n) for c in range(n))
            for a in range(n)
        )
    return {
        "values": n,
        "pairs": len(pairs),
        "alike": sum(distances[i, j] == 0 for i, j in pairs),
        "detours": sum(any(distances[i, k] + distances[k, j] < distances[i, j] for k in range(n)) for i, j in pairs),
        "out_of_tree": broken,
        "below": sum(distances[i, j] < d for i, j in pairs),
        "lonely": sum(all(distances[i, j] < d for j in range(n) if j != i) for i in range(n)),
    }


@pytest.mark.parametrize("seed", range(8))
def test_a_judged_distance_is_as_the_definitions_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    half = rng.integers(0, 6, (n, n))
    distances = np.triu(half, 1) + np.triu(half, 1).T.astype(float)
    leaves = [f"v{i}" for i in range(n)]
    classes = Hierarchy.from_rows([[leaf, f"g{i // 2}", f"h{i // 4}", "all"] for i, leaf in enumerate(leaves)])
    for one in (classes, None):
        assert judge_distance(distances, one, 3)._asdict() == judged_slowly(distances, one, 3)


def test_the_distance_of_a_tree_is_a_metric_in_step_with_it() -> None:
    leaves = [f"v{i}" for i in range(8)]
    classes = Hierarchy.from_rows([[leaf, f"g{i // 2}", f"h{i // 4}", "all"] for i, leaf in enumerate(leaves)])
    found = judge_distance(classes.lca_heights().astype(float), classes, 2)
    assert found.is_metric
    assert found.out_of_tree == 0
    assert (found.below, found.lonely) == (4, 0)
