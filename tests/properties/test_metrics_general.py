"""Metrics of generalised releases against their slow twins, on random tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.engines import Group, Recode
from noren.errors import QueryError, RequirementNotMet
from noren.metrics.general import GeneralColumn, GeneralTable
from noren.metrics.information import utility_scores
from noren.metrics.losses import GENERAL_METRICS, discernibility_loss
from noren.metrics.queries import estimated_counts, random_workload, true_counts
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role
from noren.statements import GroupTable
from noren_papers.tau_l.excess import excess_of_classes
from noren_papers.tau_l.strength import largest_c, psi
from tests.oracles import general_metrics as oracle

LABELS = "abcdefgh"


@st.composite
def columns(draw, n: int, name: str, role: Role, keep: list[bool]) -> tuple[GeneralColumn, oracle.PlainColumn]:
    """A random column in one of the published forms, and the same as lists."""
    d = draw(st.integers(1, 6))
    truth = draw(st.lists(st.integers(0, d - 1), min_size=n, max_size=n))
    codes = np.array(truth)
    quasi = role is not Role.SENSITIVE
    form = draw(st.sampled_from(["tree", "interval", "set", "group", "as it is"]))
    numeric = form == "interval" and d > 1
    domain = Domain(tuple(str(v * v) for v in range(d)), "integer") if numeric else Domain(tuple(LABELS[:d]))
    if form == "as it is":
        return GeneralColumn(Column(role=role).over(name, domain), codes), oracle.PlainColumn(
            quasi, d, truth, [(v,) for v in truth]
        )
    if form == "group":
        group = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
        table = GroupTable.from_codes(3, d, group[keep], codes[keep])
        held = [tuple(sorted(truth[i] for i in range(n) if keep[i] and group[i] == g)) for g in range(3)]
        plain = oracle.PlainColumn(quasi, d, truth, [held[g] for g in group], group=group.tolist())
        return GeneralColumn(Column(role=role).over(name, domain), codes, Group(table, group)), plain
    if form == "tree":
        upper = tuple(draw(st.sampled_from("XYZ")) for _ in range(d))
        tree = tree_of(Hierarchy((domain.values, upper, ("*",) * d)))
        nodes, data = tree.nodes, tree.at[draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), codes]
    else:
        members = []
        for v in truth:
            other = draw(st.integers(0, d - 1))
            low, high = min(v, other), max(v, other)
            members.append(tuple(range(low, high + 1)) if form == "interval" else tuple(sorted({v, other})))
        distinct = sorted(set(members))
        nodes = Nodes.from_members(d, [str(m) for m in distinct], distinct)
        data = np.array([distinct.index(m) for m in members])
    cells = [tuple(nodes.members(node).tolist()) for node in data]
    numbers = [float(v) for v in domain.values] if numeric else None
    plain = oracle.PlainColumn(quasi, d, truth, cells, numbers=numbers)
    return GeneralColumn(Column(role=role).over(name, domain), codes, Recode(nodes, data)), plain


@st.composite
def tables(draw) -> tuple[GeneralTable, list[oracle.PlainColumn], list[bool]]:
    n = draw(st.integers(1, 9))
    keep = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    keep[0] = True
    roles = {"q": Role.QUASI_IDENTIFIER, "r": Role.QUASI_IDENTIFIER, "s": Role.SENSITIVE}
    pairs = {name: draw(columns(n, name, role, keep)) for name, role in roles.items()}
    view = GeneralTable({name: column for name, (column, _) in pairs.items()}, np.array(keep))
    return view, [plain for _, plain in pairs.values()], keep


@given(tables())
@settings(max_examples=80, deadline=None)
def test_losses_and_information(case) -> None:
    view, plain, keep = case
    quasi, n = [column for column in plain if column.quasi], len(keep)
    expected = {
        "information_score": oracle.information(plain, keep),
        "utility_score": oracle.information(plain, keep) / (n * 3),
        "quasi_utility_score": oracle.information(quasi, keep) / (n * 2),
        "sensitive_utility_score": oracle.information(plain[2:], keep) / n,
        "granularity_score": oracle.granularity(quasi, keep),
        "ncp_loss": oracle.ncp(quasi, keep),
        "non_uniform_entropy_loss": oracle.non_uniform_entropy(quasi, keep),
        "average_class_size_loss": np.mean(oracle.class_sizes(plain, keep)),
        "discernibility_loss": sum(s * s for s in oracle.class_sizes(plain, keep)) + n * (n - sum(keep)),
    }
    assert expected.keys() == GENERAL_METRICS.keys()
    for name, metric in GENERAL_METRICS.items():
        assert metric(view) == pytest.approx(expected[name], abs=1e-9), name
    assert sorted(view.sizes.tolist()) == oracle.class_sizes(plain, keep)


@given(tables())
@settings(max_examples=30, deadline=None)
def test_shares_stay_between_nothing_and_all(case) -> None:
    view, _, _ = case
    for name, metric in GENERAL_METRICS.items():
        if name not in ("information_score", "average_class_size_loss", "discernibility_loss"):
            assert -1e-12 <= metric(view) <= 1 + 1e-12, name
    assert view.n <= discernibility_loss(view) <= view.n**2
    parts = utility_scores(view)
    weights = len(view.quasi), len(view.sensitive)
    shares = np.array([parts.quasi or 0.0, parts.sensitive or 0.0])
    assert parts.total * sum(weights) == pytest.approx(shares @ weights)


@given(tables(), st.integers(2, 4), st.floats(0, 0.99))
@settings(max_examples=100, deadline=None)
def test_excess(case, l, slack) -> None:  # noqa: E741
    view, plain, keep = case
    tau = 1 / l + (1 - 1 / l) * slack
    column = plain[2]
    values = sorted(set(column.truth))
    if l > len(values):
        with pytest.raises(QueryError, match="more than"):
            excess_of_classes(view, tau, l, "s")
        return
    rows = [tuple((c.group or c.cells)[i] for c in plain if c.quasi) for i in range(view.n)]
    if view.columns["s"].groups is not None:
        rows = [(cell,) for cell in view.columns["s"].cells.tolist()]
        split = {row: [(v,) for v in column.cells[i]] for i, row in enumerate(rows) if keep[i]}
    else:
        kept = [i for i in range(view.n) if keep[i]]
        split = {row: [column.cells[i] for i in kept if rows[i] == row] for row in {rows[i] for i in kept}}
    expected = [oracle.excess(cells, values, tau, l) for cells in split.values()]
    if None in expected:
        with pytest.raises(RequirementNotMet, match="does not satisfy"):
            excess_of_classes(view, tau, l, "s")
    else:
        assert sorted(excess_of_classes(view, tau, l, "s")) == pytest.approx(sorted(expected), abs=1e-9)


@given(tables(), st.integers(1, 3), st.sampled_from([None, 0.1, 1.0]), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_counts(case, dimensions, selectivity, seed) -> None:
    view, plain, keep = case
    trees = {}
    if len(view.columns["q"].domain) > 1:
        trees["q"] = Hierarchy((view.columns["q"].domain.values,))
    workload = random_workload(view, trees, "s", dimensions, 8, selectivity, seed)
    found, actual = estimated_counts(view, workload), true_counts(view, workload)
    for i in range(len(workload)):
        asked = [
            set(np.flatnonzero(workload.chosen[name][i]).tolist()) if workload.asked[name][i] else None
            for name in view.columns
        ]
        assert sum(wanted is not None for wanted in asked) == dimensions
        assert asked[2] is not None
        assert found[i] == pytest.approx(oracle.estimated_count(plain, keep, asked), abs=1e-9)
        assert actual[i] == oracle.true_count(plain, asked)


@given(st.integers(2, 7), st.data())
@settings(max_examples=40, deadline=None)
def test_the_largest_c_by_linear_programming(m, data) -> None:
    """Maximise F(k) over all classes under f1 <= c * (f_l + ... + f_m): at the bound psi holds, beyond it fails."""
    from scipy.optimize import linprog

    size, u = data.draw(st.integers(2, m)), data.draw(st.integers(2, m))
    tau = 1 / u + (1 - 1 / u) * data.draw(st.floats(0, 0.95))
    exact = largest_c(m, size, tau, u)

    def most(c: float) -> list[float]:
        falling = np.eye(m, k=1)[:-1] - np.eye(m)[:-1]
        first = np.where(np.arange(m) == 0, 1.0, 0.0) - c * (np.arange(m) >= size - 1)
        found = [
            linprog(-1.0 * (np.arange(m) < k), np.vstack([falling, first]), np.zeros(m), np.ones((1, m)), [1])
            for k in range(1, m + 1)
        ]
        return [-answer.fun for answer in found if answer.status == 0]

    bound = psi(np.arange(1, m + 1), tau, u)
    inside, outside = most(exact * (1 - 1e-6)), most(exact * (1 + 1e-4))
    assert all(reached <= limit + 1e-7 for reached, limit in zip(inside, bound, strict=False))
    assert any(reached > limit for reached, limit in zip(outside, bound, strict=True))
