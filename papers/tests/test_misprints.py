"""Misprints of the papers that the mistakes page lists: each reading as printed, and the one that works."""

from __future__ import annotations

from itertools import combinations, pairwise, product
from math import comb

import numpy as np
import pytest
from tests.oracles.posterior import ordered_emd

from noren.designs import DecoyDesign
from noren.metrics.distances import hellinger_loss
from noren.schema.hierarchy import Hierarchy
from noren_papers.datasets import BY_NAME
from noren_papers.semantic.obesity import PRINTED, REPORTED, half_up
from noren_papers.semantic.violation import room


def test_algorithm_1_needs_the_set_size_beside_p() -> None:
    """000: it inserts (p, s), and s is nothing; one p has another error for every eta."""
    errors = {DecoyDesign(d=6, eta=eta, p=0.5).expected_l2(1000) for eta in (1, 2, 3)}
    assert len(errors) == 3


def test_equation_18_needs_the_set_size_of_each_attribute() -> None:
    """000: eta/d(s') without its argument; counted over all sets it is eta(s')/d(s')."""
    for d, eta, p in ((5, 3, 0.7), (4, 2, 0.6)):
        holding = sum(0 in chosen for chosen in combinations(range(d), eta))
        counted = p + (1 - p) * holding / comb(d, eta)
        assert DecoyDesign(d=d, eta=eta, p=p).p_true == pytest.approx(counted)
        assert p + (1 - p) * (5 - eta) / d != pytest.approx(counted), "the other attribute's set size"


def test_distributions_have_as_many_shares_as_values() -> None:
    """000, Definition 5: q is the number of attributes; over the first q = 2 of four values nothing would move."""
    a, b = np.array([1.0, 0, 0, 0]), np.array([0, 0, 0, 1.0])
    assert ordered_emd(a, b) == pytest.approx(1.0)
    assert a[:2].sum() != b[:2].sum(), "no flow turns one into the other"


def test_the_hellinger_distance_of_section_2_is_cut_off() -> None:
    """000, section II.C: 0.74 and 1.95 are printed; 0.7465 is 0.75 to two places."""
    one = hellinger_loss([10.0, 100.0], [10.0, 80.0], False)
    two = hellinger_loss([10.0, 25.0], [10.0, 5.0], False)
    assert (one, two) == (pytest.approx(0.7465, abs=5e-5), pytest.approx(1.954, abs=5e-4))
    assert round(one, 2) == 0.75


def test_the_node_of_example_1_is_not_in_its_tree() -> None:
    """003: at depth three $40K lies under $30K-$50K; there is no $30K-$40K."""
    ends = (20, 30, 50, 70, 80, 90, 100)
    nodes = ["less", *(f"{a}-{b}" for a, b in pairwise(ends)), "more"]
    assert len(nodes) == 8
    assert "30-40" not in nodes
    place = [int(np.searchsorted(ends, value, side="right")) for value in (20, 25, 40)]
    assert [nodes[i] for i in place] == ["20-30", "20-30", "30-50"], "the example's conclusion stands"


def test_equation_9_counts_from_zero() -> None:
    """003: e_0, e_1, ... are summed from 1 to |R|, which leaves out the first and asks for e_|R|; the examples count
    from 0 to |R| - 1 and go round."""
    assert [room(10, chosen, 2) for chosen in ((1, 3, 9), (1, 3, 6, 9), (1, 3, 5, 9))] == [2, 0, 1]


def test_algorithm_2_needs_a_loop_over_both_values() -> None:
    """003: q(i, j) is set in a loop over i alone; with j over all values Table 9 gives Table 10."""
    q = np.zeros((5, 5))
    for i in range(5):
        far = [j for j in range(5) if abs(i - j) >= 2]
        for j in far:
            q[i, j] = 1 / len(far)
    solved = np.linalg.solve((np.eye(5) + q).T, np.array(REPORTED, float).T).T
    assert half_up(solved).tolist() == [list(row) for row in PRINTED]


def test_a_taxonomy_has_one_level_more_than_its_height() -> None:
    """004: H is the product of the heights; level vectors are as many as the product of the levels."""
    tall = Hierarchy((("a", "b", "c", "d"), ("ab", "ab", "cd", "cd"), ("*", "*", "*", "*")))
    flat = Hierarchy((("x", "y"), ("*", "*")))
    levels = [range(tree.height + 1) for tree in (tall, flat)]
    assert len(list(product(*levels))) == 6 == len(tall.levels) * len(flat.levels)
    assert tall.height * flat.height == 2


def test_dummies_are_numbered_by_their_distance_from_the_true_value() -> None:
    """003: dist(u_i, u_j) < dist(u_i, u_j) holds for nothing; meant are distances from u_0, here 2, 3 and 5."""
    u = (4, 6, 1, 9)
    apart = [[abs(a - b) for b in u] for a in u]
    assert not any(apart[i][j] < apart[i][j] for i, j in combinations(range(4), 2))
    assert all(apart[0][i] < apart[0][j] for i, j in combinations(range(1, 4), 2))
    assert not all(apart[i][j] < apart[i][k] for i in range(4) for j, k in combinations(range(4), 2)), "from u_0 only"


def test_the_training_part_of_adult_is_part_of_the_whole() -> None:
    """001: 30612 records; with 15,060 of the test part, as the publisher counts them, the file has 45,222."""
    assert BY_NAME["adult"].rows - 15_060 == 30_162
