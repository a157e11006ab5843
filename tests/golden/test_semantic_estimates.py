"""The semantic-diversity paper's worked example, and maxima of the likelihood computed independently."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.designs.semantic.design import SemanticDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.estimators import equation_2
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.tabulate import tabulate
from noren.statements import SetCells

RANKS = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))

# Tables 8, 9 and 10 of the paper: gender and age by obesity level, l = d = 2.
TABLE_8 = np.array([[120, 50, 10, 20, 30], [80, 60, 30, 10, 20], [50, 30, 110, 100, 90], [20, 20, 40, 40, 70]])
TABLE_9 = np.array([[143, 72, 60, 86, 99], [108, 70, 65, 64, 93], [188, 108, 155, 130, 179], [83, 62, 73, 57, 105]])
TABLE_10 = """
117.8 52.5 11.5 20.5 27.8
82.9 60.3 30.8 6.3 19.9
55.1 27.8 105.3 97.8 94.1
16.9 18.3 44.8 42.3 67.9
"""

# How often each feasible pair occurs, and the shares that maximise the likelihood of that under two designs
# (computed with an optimiser of general purpose).
SETS = np.array([[0, 2], [0, 3], [0, 4], [1, 3], [1, 4], [2, 4]])
TIMES = np.array([30, 25, 40, 12, 18, 9])
MAXIMUM = {
    "simple": [0.634252870183, 0.167059377363, 0.014978527353, 0.0, 0.183709225101],
    "flat likelihood": [0.628784625912, 0.140333431553, 0.0, 0.0, 0.230881942535],
}


@pytest.fixture
def design() -> SemanticDesign:
    return SemanticDesign.make("simple", RANKS, 2, 2)


def printed(value: float) -> str:
    """One decimal, halves up, as the paper prints."""
    return str(Decimal(str(round(value, 9))).quantize(Decimal("0.1"), ROUND_HALF_UP))


def test_equation_2_of_the_example(design):
    q = equation_2(design)
    assert q[0].tolist() == [1, 0, 1 / 3, 1 / 3, 1 / 3]
    assert q[1].tolist() == [0, 1, 0, 1 / 2, 1 / 2]
    assert q[2].tolist() == [1 / 2, 0, 1, 0, 1 / 2]
    np.testing.assert_allclose(q, design.inclusion().matrix)  # right for l = 2


def table_10(design) -> np.ndarray:
    """Algorithm 2 on Table 9's rows."""
    person, level = np.indices(TABLE_9.shape).reshape(2, -1).repeat(TABLE_9.ravel(), axis=1)
    qid = Axis.exact("qid", person, 4)
    found = tabulate([qid, Axis.shuffled("level", level, design)], "semantic-linear")
    assert found.method == "semantic-linear"
    assert found.diagnostics["interval_from"] == "linear, of the published design"
    return found.counts


def test_table_9_becomes_table_10_to_the_printed_digit(design):
    found = table_10(design)
    np.testing.assert_allclose(found[0], [117.75, 52.5, 11.5, 20.5, 27.75])
    assert [[printed(v) for v in row] for row in found] == [row.split() for row in TABLE_10.split("\n") if row]
    np.testing.assert_allclose(found.sum(axis=1), [230, 200, 380, 190])


def test_the_example_error(design):
    # Equation 18 over 20 cells; the paper's equation 19 says 25 and prints 8.06e-6, the value for 20.
    rounded = np.array([[float(printed(v)) for v in row] for row in table_10(design)])
    assert np.square((rounded - TABLE_8) / 1000).mean() == pytest.approx(8.055e-06, rel=1e-9)


def test_linear_is_the_papers_solve_for_pairs(design):
    axis = Axis.drawn("level", SetCells.from_codes(5, SETS.repeat(TIMES, axis=0)), design)
    np.testing.assert_allclose(tabulate([axis], "linear").counts, tabulate([axis], "semantic-linear").counts)


def test_likelihood_under_the_simple_design(design):
    frame = prepare([Axis.drawn("level", SetCells.from_codes(5, SETS.repeat(TIMES, axis=0)), design)])
    found = fit(frame, tolerance=1e-7).table[0]
    np.testing.assert_allclose(found / TIMES.sum(), MAXIMUM["simple"], atol=2e-5)


def test_likelihood_where_members_weigh_alike():
    # Uniform decoys weigh the members of a set alike, as a flat design does. (The circular flat design has no set
    # {0, 4} at F = 5, so its own axis would refuse these records.)
    axis = Axis.drawn("level", SetCells.from_codes(5, SETS.repeat(TIMES, axis=0)), DecoyDesign(d=5, eta=2))
    found = fit(prepare([axis]), tolerance=1e-7).table[0]
    np.testing.assert_allclose(found / TIMES.sum(), MAXIMUM["flat likelihood"], atol=2e-5)


def test_baselines(design):
    axis = Axis.drawn("level", SetCells.from_codes(5, SETS.repeat(TIMES, axis=0)), design)
    omega = np.array([95, 30, 39, 37, 67])
    np.testing.assert_allclose(tabulate([axis], "share").counts, omega / 2)  # equation 20
    np.testing.assert_allclose(tabulate([axis], "uniform-linear").counts, (omega - 134 / 4) / (1 - 1 / 4))  # 21, 22
