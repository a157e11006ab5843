"""The figures of paper 004 that its models must reproduce."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import ModelDoesNotApply
from noren.models import (
    AlphaKAnonymity,
    Evidence,
    FrequencyLDiversity,
    Model,
    RecursiveCLDiversity,
    TauLDiversity,
    Verdict,
)
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role
from noren.statements import CodeCells, Statement
from tests.statements import exact_column, node_column

WHERE = exact_column("where", 4, role=Role.QUASI_IDENTIFIER)


def seen(model: Model, column: Statement, where: np.ndarray, codes: np.ndarray) -> Verdict:
    (check,) = model.checks(Evidence({"where": WHERE, "x": column}, {}))
    cells = CodeCells(4, codes) if column.nodes is None else CodeCells(len(column.nodes), codes)
    check.observe({"where": CodeCells(4, where), "x": cells})
    return check.verdict()


def psi(tau: float, l: int) -> list[float]:
    return [TauLDiversity(on="x", tau=tau, l=l).psi(k) for k in range(1, 15)]


def test_psi() -> None:
    """Source: golden/generalisation.json, from section 3 of paper 004."""
    assert psi(0.5, 3) == [0.5, 0.75] + [1.0] * 12
    assert psi(0.3, 5) == pytest.approx([0.3, 0.475, 0.65, 0.825] + [1.0] * 10)
    eight = [0.15, 0.271428571, 0.392857143, 0.514285714, 0.635714286, 0.757142857, 0.878571429]
    assert psi(0.15, 8) == pytest.approx(eight + [1.0] * 7)


CHECKS = [
    ((50, 25, 25, 0), 0.5, 3, True),
    ((50, 50, 0, 0), 0.5, 3, False),
    ((40, 30, 20, 10), 0.4, 4, False),
    ((40, 40, 20, 0), 0.4, 4, False),
    ((25, 25, 25, 25), 0.25, 4, True),
    ((100, 0, 0, 0), 0.5, 2, False),
    ((34, 33, 33, 0), 0.5, 3, True),
]
"""Source: golden/generalisation.json, `checks`: frequencies in percent, tau, l and whether they satisfy it."""


@pytest.mark.parametrize(("counts", "tau", "l", "ok"), CHECKS)
def test_golden_frequencies(counts: tuple[int, ...], tau: float, l: int, ok: bool) -> None:
    codes = np.repeat(np.arange(4), counts)
    column = exact_column("x", 4, role=Role.SENSITIVE)
    verdict = seen(TauLDiversity(on="x", tau=tau, l=l), column, np.zeros(100, int), codes)
    assert verdict.holds is ok
    assert (verdict.achieved <= tau + 1e-9) is ok


ILLS = Hierarchy.from_tree({"hemal": ["hepatitis", "anemia"], "lung": ["tuberculosis", "flu"]})
PATIENTS = "hhhhthtttfha"
"""The twelve patients of Fig. 1(a) of paper 004, in order: hepatitis, anemia, tuberculosis, flu."""


def patients(model: Model, *classes: tuple[int, ...], hemal: tuple[int, ...] = ()) -> Verdict:
    """Patients by their numbers from 1; those under `hemal` are published as that general value."""
    nodes = tree_of(ILLS).nodes
    codes = np.array(["hatf".index(letter) for letter in PATIENTS])
    for number in hemal:
        codes[number - 1] = nodes.labels.index("hemal")
    rows = np.array([number - 1 for members in classes for number in members])
    where = np.repeat(np.arange(len(classes)), [len(members) for members in classes])
    column = node_column("x", 4, hierarchy=ILLS, role=Role.SENSITIVE, nodes=nodes)
    return seen(model, column, where, codes[rows])


ALL = tuple(range(1, 13))


@pytest.mark.parametrize(
    ("hemal", "F", "ok"),
    [
        ((), [0.5, 0.833333333, 0.916666667, 1.0], False),
        ((1,), [0.458333333, 0.791666667, 0.916666667, 1.0], False),
        ((1, 2), [0.416666667, 0.75, 0.916666667, 1.0], True),
    ],
)
def test_the_running_example_becomes_diverse(hemal: tuple[int, ...], F: list[float], ok: bool) -> None:
    """Source: golden/generalisation.json, running_example. tau is the least that covers F(1) and F(2)."""
    verdict = patients(TauLDiversity(on="x", tau=0.5, l=3), ALL, hemal=hemal)
    assert verdict.holds is ok
    assert verdict.achieved == pytest.approx(max(F[0], (F[1] - 0.5) / 0.5))
    frequency = patients(FrequencyLDiversity(on="x", l=2), ALL, hemal=hemal)
    assert 1 / frequency.achieved == pytest.approx(F[0])


def test_figure_3_satisfies_its_requirement_exactly() -> None:
    classes = ((1, 2, 4, 5), (6, 7, 8, 10), (3, 9, 11, 12))
    verdict = patients(TauLDiversity(on="x", tau=0.5, l=3), *classes, hemal=(1, 2))
    assert (verdict.holds, verdict.achieved, verdict.breaches) == (True, pytest.approx(0.5), 0)
    stricter = patients(TauLDiversity(on="x", tau=0.45, l=3), *classes, hemal=(1, 2))
    assert (stricter.holds, stricter.breaches) == (False, 12)


def test_figure_1b_and_1c() -> None:
    table_b = ((1, 2, 3, 4, 5, 11, 12), (6, 7, 8, 9, 10))
    assert patients(RecursiveCLDiversity(on="x", c=3, l=2), *table_b).holds is True
    assert patients(AlphaKAnonymity(on="x", alpha=0.9, k=1), *table_b).achieved == pytest.approx(0.7142857142857143)
    assert patients(AlphaKAnonymity(on="x", alpha=0.9, k=1), table_b[1]).achieved == pytest.approx(0.6)
    table_c = (tuple(range(1, 11)), (11, 12))
    assert patients(FrequencyLDiversity(on="x", l=2), *table_c).holds is True
    assert patients(RecursiveCLDiversity(on="x", c=2, l=2), *table_c).holds is True
    top_two = patients(TauLDiversity(on="x", tau=0.5, l=3), table_c[0])
    assert top_two.achieved == pytest.approx((0.9 - 0.5) / 0.5)


def test_weights_say_how_likely_the_values_under_a_node_are() -> None:
    """Three of four hemal patients have hepatitis: generalising hides less than it seems."""
    plain = patients(TauLDiversity(on="x", tau=0.5, l=2), (1, 2), hemal=(1, 2))
    assert (plain.holds, plain.achieved) == (True, pytest.approx(0.5))
    model = TauLDiversity(on="x", tau=0.5, l=2, weights={"hepatitis": 3, "gout": 7})
    verdict = patients(model, (1, 2), hemal=(1, 2))
    assert (verdict.holds, verdict.achieved) == (False, pytest.approx(0.75))
    assert patients(model, (1, 5)).achieved == pytest.approx(0.5), "exact values are not weighed"
    with pytest.raises(ModelDoesNotApply, match="name no value of 'x'"):
        patients(TauLDiversity(on="x", tau=0.5, l=2, weights={"gout": 7}), (1, 2))


def test_weights_without_a_hierarchy_need_names() -> None:
    model = TauLDiversity(on="x", tau=0.5, l=2, weights={"a": 3})
    named = Nodes.from_members(2, ["b", "a", "any"], [(1,), (0,), (0, 1)])
    column = node_column("x", 2, role=Role.SENSITIVE, nodes=named)
    zeros = np.zeros(2, int)
    assert seen(model, column, zeros, np.array([2, 2])).achieved == pytest.approx(0.75)
    bare = node_column("x", 2, role=Role.SENSITIVE, nodes=Nodes.from_members(2, ["any"], [(0, 1)]))
    with pytest.raises(ModelDoesNotApply, match="weights need the names of all values"):
        seen(model, bare, zeros, zeros)


CONCAVE, CONVEX = (0.4, 0.8, 0.95), (0.4, 0.5, 0.65)


@pytest.mark.parametrize("ceilings", [CONCAVE, CONVEX])
def test_any_rising_ceilings_are_judged_as_they_stand(ceilings: tuple[float, ...]) -> None:
    """Definition of paper 004: F(k) <= psi(k) for every k, psi rising from tau to 1 at l."""
    rng = np.random.default_rng(7)
    model = TauLDiversity(on="x", tau=0.4, l=4, ceilings=ceilings)
    column = exact_column("x", 4, role=Role.SENSITIVE)
    seen_both = set()
    for _ in range(60):
        counts = rng.multinomial(40, rng.dirichlet((2.5, 2.5, 2.5, 2.5)))
        shares = np.cumsum(np.sort(counts)[::-1]) / 40
        ok = bool((counts > 0).sum() >= 4 and all(shares[k] <= ceilings[k] + 1e-9 for k in range(3)))
        verdict = seen(model, column, np.zeros(40, int), np.repeat(np.arange(4), counts))
        assert verdict.holds is ok
        assert (verdict.achieved <= 0.4 + 1e-9) is ok
        seen_both.add(ok)
    assert seen_both == ({True, False} if ceilings == CONCAVE else {False})


@pytest.mark.parametrize("ceilings", [CONCAVE, CONVEX, (0.6,), (0.3, 0.35, 0.4, 0.99)])
def test_the_line_that_searches_use_lies_below_every_ceiling(ceilings: tuple[float, ...]) -> None:
    l = len(ceilings) + 1
    model = TauLDiversity(on="x", tau=ceilings[0], l=l, ceilings=ceilings)
    rule = model.search_rule
    line = TauLDiversity(on="x", tau=rule.first, l=int(rule.second))
    assert all(line.psi(k) <= model.psi(k) + 1e-12 for k in range(1, 40))
    even = TauLDiversity(on="x", tau=0.4, l=4, ceilings=(0.4, 0.4 + 0.2, 0.4 + 0.4))
    assert even.search_rule[1:] == pytest.approx(TauLDiversity(on="x", tau=0.4, l=4).search_rule[1:])


@pytest.mark.parametrize(
    ("ceilings", "words"), [((0.4, 0.7), "needs 3"), ((0.5, 0.7, 0.9), r"psi\(1\)"), ((0.4, 0.4, 0.9), "rise")]
)
def test_ceilings_that_are_none_are_refused(ceilings: tuple[float, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TauLDiversity(on="x", tau=0.4, l=4, ceilings=ceilings)


@pytest.mark.parametrize("method", ["sweep", "mondrian"])
def test_methods_keep_ceilings_that_do_not_rise_evenly(method: str) -> None:
    """Two values together may make up no more than 0.55, one no more than 0.5: an even rise would allow 0.667."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {"age": rng.integers(0, 40, 400), "ill": rng.choice(list("abcdef"), 400, p=[0.25, 0.2, 0.2, 0.15, 0.1, 0.1])}
    )
    asked = {"model": "tau-l-diversity", "on": "ill", "tau": 0.5, "l": 4, "ceilings": [0.5, 0.55, 0.9]}
    policy = nr.Policy(
        mechanism="ignored",
        attributes={"age": "quasi-identifier", "ill": "sensitive"},
        require=[asked],
        method=method,
        people={"rows": "independent"},
        dependence={"most": 1.0},
    )
    release = nr.anonymize(table, policy)
    assert all(verdict.holds for verdict in nr.verify(release))
    for _, part in release.frame().group_by("age"):
        if set(part["ill"]) <= set("abcdef"):  # no secret of the class is generalised
            shares = np.sort(part["ill"].value_counts()["count"].to_numpy())[::-1].cumsum() / part.height
            assert shares[0] <= 0.5
            assert shares[1] <= 0.55
            assert shares[2] <= 0.9
