"""Metrics of left-out terms against plain Python, written from the formulas, on random tables."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.engines import Recode
from noren.errors import QueryError
from noren.metrics.general import GeneralColumn, GeneralTable
from noren.metrics.term_losses import (
    belief_change,
    estimated_term_counts,
    joint_terms,
    term_loss,
    term_workload,
    true_term_counts,
)
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import TermCells
from tests.oracles.term_error import term_query_error

TERMS = 6
KNOWN = 4
sets = st.sets(st.integers(0, TERMS - 1))


def cells(found: list[set[int]], d: int = TERMS) -> TermCells:
    record = np.repeat(np.arange(len(found)), [len(own) for own in found])
    return TermCells.from_entries(d, len(found), record, np.array([t for own in found for t in own], np.int64))


@st.composite
def removals(draw) -> tuple[list[set[int]], list[set[int]], list[int]]:
    """Sets before, sets after, and the group of every record; groups are numbered without gaps."""
    n = draw(st.integers(1, 8))
    had = draw(st.lists(sets, min_size=n, max_size=n))
    left = [own & draw(sets) for own in had]
    drawn = draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    shown = sorted(set(drawn) - {-1})
    return had, left, [shown.index(g) if g >= 0 else -1 for g in drawn]


def plain_cost(had: list[set[int]], left: list[set[int]]) -> float:
    """Equation 2: terms go one by one, each for 1 over what its record still has."""
    lost = most = 0.0
    for before, after in zip(had, left, strict=True):
        for still in range(len(after) + 1, len(before) + 1):
            lost += 1 / still
        for still in range(1, len(before) + 1):
            most += 1 / still
    return lost / most if most else 0.0


@given(case=removals())
@settings(max_examples=200, deadline=None)
def test_costs(case) -> None:
    had, left, group = case
    found = term_loss(cells(had), cells(left), np.array(group))
    members = [[i for i, g in enumerate(group) if g == number] for number in range(max(group) + 1)]
    costs = [plain_cost([had[i] for i in own], [left[i] for i in own]) for own in members]
    assert found.cost.tolist() == pytest.approx(costs)
    assert found.records.tolist() == [len(own) for own in members]
    assert found.mean_over_groups == pytest.approx(sum(costs) / len(costs) if costs else 0)
    assert found.mean_over_records == pytest.approx(sum(1 if g < 0 else costs[g] for g in group) / len(group))
    total = sum(map(len, had))
    kept = sum(len(left[i]) for i, g in enumerate(group) if g >= 0)
    assert found.share == pytest.approx((total - kept) / total if total else 0)


@given(st.lists(st.tuples(sets, sets), min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_columns_that_are_read_together(rows) -> None:
    both = joint_terms([cells([one for one, _ in rows]), cells([two for _, two in rows])], KNOWN)
    for i, (one, two) in enumerate(rows):
        own = both.data[both.offsets[i] : both.offsets[i + 1]]
        known = {t for t in one | two if t < KNOWN}
        assert {t for t in own.tolist() if t < KNOWN} == known
        assert len(own) == len(known) + sum(t >= KNOWN for t in one) + sum(t >= KNOWN for t in two)


@st.composite
def tables_of_knowledge(draw) -> tuple[Knowledge, list[set[int]], list[float], dict[tuple[int, int], float]]:
    held = draw(st.lists(st.sets(st.integers(0, KNOWN - 1)), min_size=1, max_size=5))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(held), max_size=len(held)))
    names = [f"t{i}" for i in range(KNOWN)]
    pairs = {(label, term): draw(st.sampled_from([0.01, 1.0, 4.0])) for label, own in enumerate(held) for term in own}
    own = np.array([pairs[label, term] for label, has in enumerate(held) for term in sorted(has)])
    found = Knowledge.from_sets(held, terms=names, weights=np.array(weights), pair_weights=own)
    return found, held, weights, pairs


@given(case=removals(), facts=tables_of_knowledge(), seed=st.integers(0, 99), prior=st.booleans())
@settings(max_examples=150, deadline=None)
def test_beliefs(case, facts, seed, prior) -> None:
    _, left, group = case
    knowledge, held, weights, pairs = facts
    drawn = np.random.default_rng(seed).random(len(held)) + 0.01
    alpha = drawn / drawn.sum()
    found = belief_change(cells(left), np.array(group), knowledge, alpha, "prior" if prior else "ignore")
    rises, peaks, sizes = [], [], []
    for number in range(max(group) + 1):
        own = [left[i] for i, g in enumerate(group) if g == number]
        beta = [0.0] * len(held)
        for terms in own:
            linked = [label for label, has in enumerate(held) if terms <= has]
            score = [w * prod(pairs[label, t] for t in terms if label in linked) for label, w in enumerate(weights)]
            total = sum(score[label] for label in linked)
            for label in range(len(held)):
                if label in linked:
                    beta[label] += score[label] / total / len(own)
                elif prior and not linked:
                    beta[label] += alpha[label] / len(own)
        rises.append(max(b - a for b, a in zip(beta, alpha, strict=True)))
        peaks.append(max(beta))
        sizes.append(len(own))
    assert found.rise.tolist() == pytest.approx(rises)
    assert found.peak.tolist() == pytest.approx(peaks)
    assert found.mean_over_groups == pytest.approx(sum(rises) / len(rises) if rises else 0)
    weighed = sum(r * s for r, s in zip(rises, sizes, strict=True))
    assert found.mean_over_records == pytest.approx(weighed / sum(sizes) if sizes else 0)
    assert found.highest == pytest.approx(max(rises, default=0))


@st.composite
def released(draw) -> tuple[GeneralTable, list[dict[str, tuple[int, ...]]], dict[str, list[set[int]]], dict]:
    """Two quasi-identifiers under random general values, two set-valued columns before and after."""
    n = draw(st.integers(1, 7))
    keep = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    columns, shown = {}, [{} for _ in range(n)]
    for name, d in (("age", draw(st.integers(1, 5))), ("town", 3)):
        truth = draw(st.lists(st.integers(0, d - 1), min_size=n, max_size=n))
        members = [tuple(sorted({v} | draw(st.sets(st.integers(0, d - 1))))) for v in truth]
        distinct = sorted(set(members))
        nodes = Nodes.from_members(d, [str(m) for m in distinct], distinct)
        domain = Domain(tuple(str(v) for v in range(d)), "integer" if name == "age" else "string")
        data = np.array([distinct.index(m) for m in members])
        columns[name] = GeneralColumn(
            Column(role=Role.QUASI_IDENTIFIER).over(name, domain), np.array(truth), Recode(nodes, data)
        )
        for i, cell in enumerate(members):
            shown[i][name] = cell
    had = {name: draw(st.lists(sets, min_size=n, max_size=n)) for name in ("signs", "drugs")}
    left = {name: [own & draw(sets) for own in found] for name, found in had.items()}
    return GeneralTable(columns, np.array(keep)), shown, had, left


@given(case=released(), dimensions=st.integers(1, 2), seed=st.integers(0, 50), s=st.sampled_from([0.05, 0.3, 0.5, 1.0]))
@settings(max_examples=120, deadline=None)
def test_counts_and_errors(case, dimensions, seed, s) -> None:
    table, shown, had, left = case
    before, after = ({name: cells(found) for name, found in part.items()} for part in (had, left))
    workload = term_workload(table, before, dimensions, 12, s, seed)
    actual, estimated = true_term_counts(table, before, workload), estimated_term_counts(table, after, workload)
    errors = []
    for q in range(12):
        (column,) = [name for name in had if workload.asked[name][q]]
        terms = set(np.flatnonzero(workload.wanted[column][q]).tolist())
        occurring = set().union(*had[column])
        assert terms <= occurring
        assert len(terms) == int(np.ceil(len(occurring) * s ** (1 / (dimensions + 1)) - 1e-9))
        names = [name for name in table.columns if workload.values.asked[name][q]]
        assert len(names) == dimensions
        asked = {name: set(np.flatnonzero(workload.values.chosen[name][q]).tolist()) for name in names}
        act = est = 0.0
        for i in range(table.n):
            truth = all(int(table.columns[name].truth[i]) in asked[name] for name in names)
            act += truth and bool(had[column][i] & terms)
            if table.keep[i] and left[column][i] & terms:
                share = 1.0
                for name in names:
                    cell = shown[i][name]
                    share *= sum(v in asked[name] for v in cell) / len(cell)
                est += share
        assert actual[q] == act
        assert estimated[q] == pytest.approx(est)
        if act:
            errors.append(abs(act - est) / act)
    if not errors:
        with pytest.raises(QueryError, match="no record meets any"):
            term_query_error(table, before, after, dimensions, 12, s, seed)
        return
    found = term_query_error(table, before, after, dimensions, 12, s, seed)
    assert found.mean == pytest.approx(sum(errors) / len(errors))
    assert (found.answered, found.empty) == (len(errors), 12 - len(errors))
