"""SWEEP on the running example of paper 004 (Tian and Zhang 2011): Figures 1 to 5 and Examples 10 to 34.

Reference values: the paper, recomputed by an independent implementation (1000 random orders for the outcomes).
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from noren.engines import Plan, Records
from noren.methods.sweep import Run, Sweep
from noren.methods.sweep.bounds import bounds_of, ceilings
from noren.methods.sweep.levels import level_vectors
from noren.models.tau_l_diversity import TauLDiversity
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role

PATIENTS = [
    (20, 10001, "hepatitis"), (21, 10002, "hepatitis"), (22, 10003, "hepatitis"), (23, 10004, "hepatitis"),
    (24, 10005, "tuberculosis"), (30, 10006, "hepatitis"), (31, 10007, "tuberculosis"), (32, 10008, "tuberculosis"),
    (33, 10009, "tuberculosis"), (34, 10000, "flu"), (25, 10011, "hepatitis"), (26, 10012, "anemia"),
]  # fmt: skip
AGE = Hierarchy.from_rows([[str(a), f"[{a // 10}0,{a // 10}9]", "[20,39]"] for a in range(20, 40)])
ZIP = Hierarchy.from_rows([[str(z), f"{z // 10}*", "100**"] for z in range(10_000, 10_020)])
DISEASE = Hierarchy.from_tree(
    {"*": {"hemal disease": ["hepatitis", "anemia"], "respiratory disease": ["flu", "tuberculosis"]}}
)
REQUIRE = [TauLDiversity(on="disease", tau=0.5, l=3)]
FIGURE_3 = [[1, 2, 4, 5], [6, 7, 8, 10], [3, 9, 11, 12]]
PRIORITY = [0, 1, 2, 3, 4, 5, 7, 8, 6, 9, 10, 11]
LEVEL_VECTORS = [
    (1.0, 2, 2), (0.55, 2, 1), (0.55, 1, 2), (0.525, 2, 0), (0.525, 0, 2), (0.1, 1, 1), (0.075, 1, 0), (0.075, 0, 1),
    (0.05, 0, 0),
]  # fmt: skip


def patients() -> Records:
    columns, codes = {}, {}
    named = {"age": AGE, "zip": ZIP, "disease": DISEASE}
    for j, (name, tree) in enumerate(named.items()):
        role = Role.SENSITIVE if name == "disease" else Role.QUASI_IDENTIFIER
        codes[name] = np.array([tree.leaves.index(str(row[j])) for row in PATIENTS])
        columns[name] = Column(role=role).over(name, Domain(tree.leaves), hierarchy=tree)
    return Records(len(PATIENTS), columns, codes)


def labels(recoding: Plan, name: str) -> list[str]:
    column = recoding.treatments[name]
    return [column.nodes.labels[i] for i in column.data]


def information(recoding: Plan) -> float:
    """I(G): what all cells of quasi-identifiers and the disease retain."""
    columns = [recoding.recoded[name] for name in ("age", "zip", "disease")]
    sizes = [column.nodes.sizes[column.data] for column in columns]
    return float(sum((1 / size).sum() for size in sizes))


def cumulative(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.cumsum(np.sort(shares)[::-1])


def induced(run: Run, rows: list[int]) -> NDArray[np.float64]:
    tree = run.bounds[0].tree
    inside = tree.nodes.membership[run.nodes[0][rows]]
    return (inside / inside.sum(axis=1, keepdims=True)).mean(axis=0)


def test_level_vectors_of_the_example() -> None:
    found, heights = level_vectors([AGE, ZIP])
    assert found == pytest.approx([vector[0] for vector in LEVEL_VECTORS])
    assert (2 - heights).tolist() == [list(vector[1:]) for vector in LEVEL_VECTORS]


def test_level_vectors_of_figure_5() -> None:
    flat = Hierarchy((("x1", "x2"), ("x0", "x0")))
    found, heights = level_vectors([flat, flat])
    assert found.tolist() == [1.0, 0.75, 0.75, 0.5]
    assert (1 - heights).tolist() == [[1, 1], [1, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("tau", "l", "psi"),
    [
        (0.5, 3, [0.5, 0.75, 1.0, 1.0]),
        (0.3, 5, [0.3, 0.475, 0.65, 0.825, 1.0, 1.0]),
        (0.15, 8, [0.15, 0.271428571, 0.392857143, 0.514285714, 0.635714286, 0.757142857, 0.878571429, 1.0]),
    ],
)
def test_ceilings(tau: float, l: int, psi: list[float]) -> None:  # noqa: E741
    assert ceilings(tau, l, len(psi)) == pytest.approx(psi)


def test_step_1_generalises_the_first_two_patients() -> None:
    table = patients()
    run = Run.of(table, ("age", "zip"), [AGE, ZIP], bounds_of(table, REQUIRE), lambda n: np.array(PRIORITY))
    everyone = list(range(12))
    names = [run.bounds[0].tree.nodes.labels[i] for i in run.nodes[0]]
    assert names == ["hemal disease"] * 2 + [row[2] for row in PATIENTS[2:]]
    assert cumulative(induced(run, everyone)) == pytest.approx([0.416666667, 0.75, 0.916666667, 1.0])
    run.nodes[0][1] = table.codes["disease"][1]
    assert cumulative(induced(run, everyone)) == pytest.approx([0.458333333, 0.791666667, 0.916666667, 1.0])
    run.nodes[0][0] = table.codes["disease"][0]
    assert cumulative(induced(run, everyone)) == pytest.approx([0.5, 0.833333333, 0.916666667, 1.0])


def test_figure_3() -> None:
    recoding = Sweep().recode(patients(), REQUIRE, lambda n: np.array(PRIORITY))
    published = list(zip(labels(recoding, "age"), labels(recoding, "zip"), strict=True))
    expected = [("[20,29]", "1000*"), ("[30,39]", "1000*"), ("[20,39]", "100**")]
    for members, label in zip(FIGURE_3, expected, strict=True):
        assert [published[i - 1] for i in members] == [label] * 4
    assert labels(recoding, "disease") == ["hemal disease"] * 2 + [row[2] for row in PATIENTS[2:]]
    assert information(recoding) == pytest.approx(13.0)
    assert information(recoding) / 36 == pytest.approx(0.3611111111111111)
    assert recoding.keep is None


def test_every_class_of_figure_3_reaches_the_bound_exactly() -> None:
    table = patients()
    run = Run.of(table, ("age", "zip"), [AGE, ZIP], bounds_of(table, REQUIRE), lambda n: np.array(PRIORITY))
    run.sweep(1)
    for members in FIGURE_3:
        rows = [i - 1 for i in members]
        assert len(set(run.classes[rows].tolist())) == 1
        assert cumulative(induced(run, rows)) == pytest.approx([0.5, 0.75, 1.0, 1.0])


def test_other_orders_have_the_known_outcomes() -> None:
    seen = set()
    for seed in range(60):
        priority = np.random.default_rng(seed).permutation(12)
        seen.add(round(information(Sweep().recode(patients(), REQUIRE, lambda n, p=priority: p)), 6))
    assert seen == {13.0, 10.05, 10.55, 11.8}
