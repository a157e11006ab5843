"""Two kernels and a slow oracle agree on what groups of terms reveal, whatever the table and the knowledge."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.methods.suppress.beliefs import estimated_prior, measure_groups
from noren.models import kernels as beliefs
from noren.models.term_check import Beliefs
from noren.schema.knowledge import Knowledge
from noren.statements import TermCells
from tests.oracles.terms import World, moved, ratio, squared

WIDE = 70
"""Labels enough for a second word of bits."""
TERMS = "abcde"


@st.composite
def cases(draw: st.DrawFn) -> tuple[World, list[list[str]], list[list[int]], bool, int]:
    """A world, records, a partition of them into groups, whether unlinked records believe the prior, and a rank."""
    few = draw(st.lists(st.frozensets(st.sampled_from(TERMS)), min_size=1, max_size=4))
    many = draw(st.sampled_from([1, 1, WIDE // len(few) + 1]))
    labels = {f"L{i}-{j}": held for j in range(many) for i, held in enumerate(few)}
    labels["L0-0"] = labels["L0-0"] | {"a"}
    weights = {}
    if draw(st.booleans()):
        weights = {label: Fraction(draw(st.integers(1, 5))) for label in list(labels)[:8]}
    paired = {}
    if draw(st.booleans()):
        some = [(label, term) for label, held in list(labels.items())[:8] for term in sorted(held)]
        paired = {pair: Fraction(draw(st.sampled_from(["1/1000", "1/4", "1", "3"]))) for pair in some}
    records = draw(st.lists(st.lists(st.sampled_from(TERMS + "?"), max_size=3, unique=True), min_size=1, max_size=8))
    place = [draw(st.integers(0, 3)) for _ in records]
    groups = [[r for r, own in enumerate(place) if own == g] for g in sorted(set(place))]
    return World(labels, weights, pair_weights=paired), records, groups, draw(st.booleans()), draw(st.integers(1, 4))


@settings(max_examples=150)
@given(case=cases(), given_prior=st.booleans())
def test_kernels_and_oracle_agree(
    case: tuple[World, list[list[str]], list[list[int]], bool, int], given_prior: bool
) -> None:
    world, records, groups, prior, l = case  # noqa: E741
    weights = {label: float(w) for label, w in world.weights.items()} or None
    paired = {pair: float(w) for pair, w in world.pair_weights.items()} or None
    known = Knowledge.from_pairs(world.pairs, weights=weights, pair_weights=paired)
    codes = np.concatenate([known.encode(own) for own in records]).astype(np.int64)
    bounds = np.concatenate(([0], np.cumsum([len(own) for own in records]))).astype(np.int64)
    order = np.array([r for group in groups for r in group], np.int64)
    ends = np.concatenate(([0], np.cumsum([len(group) for group in groups]))).astype(np.int64)

    estimate = world.mean(records)
    alpha = np.array([float(share) for share in estimate.values()])
    assert beliefs.mean_beliefs(bounds, codes, *known.links) == pytest.approx(alpha, abs=1e-12)
    assert estimated_prior(bounds, codes, known) == pytest.approx(alpha, abs=1e-12)
    if given_prior:
        estimate = dict.fromkeys(world.labels, Fraction(1, len(world.labels)))
        alpha = np.full(len(world.labels), 1 / len(world.labels))

    table = beliefs.group_beliefs(
        order, ends, bounds, codes, *known.links, alpha, prior, l
    )  # fmt: skip
    other = measure_groups(order, ends, bounds, codes, known, alpha, l=l, unlinked="prior" if prior else "ignore")
    columns = [beliefs.LINKED, beliefs.PEAK, beliefs.TAIL, beliefs.SQUARE, beliefs.MOVED]
    assert table[:, columns] == pytest.approx(other, abs=1e-11)

    found = Beliefs(np.diff(ends), table)
    for g, group in enumerate(groups):
        own = [records[r] for r in group]
        linked = [terms for terms in own if world.linked(terms)]
        beta = world.mean(own, estimate if prior else None)
        wanted = ratio(beta, l)
        assert found.peak[g] == pytest.approx(float(max(beta.values())))
        assert found.ratio[g] == (np.inf if wanted is None else pytest.approx(float(wanted)))
        assert found.euclidean[g] == pytest.approx(sqrt(squared(beta, estimate)), abs=1e-7)
        assert found.moved[g] == pytest.approx(float(moved(beta, estimate)), abs=1e-12)
        alone = world.mean(linked) if linked else estimate
        assert found.euclidean_linked[g] == pytest.approx(sqrt(squared(alone, estimate)), abs=1e-7)
        assert found.moved_linked[g] == pytest.approx(float(moved(alone, estimate)), abs=1e-12)
        rise = max(beta[label] - estimate[label] for label in beta)
        assert table[g, beliefs.RISE] == pytest.approx(float(rise), abs=1e-12)
    assert found.unlinked == sum(not world.linked(own) for own in records)


@settings(max_examples=60)
@given(
    rows=st.lists(st.lists(st.integers(0, 6), max_size=6), max_size=8),
    picks=st.lists(st.integers(0, 7), max_size=8),
    wanted=st.sets(st.integers(0, 6)),
    kept=st.integers(0, 2**32),
)
def test_cells_behave_as_lists_of_sets(
    rows: list[list[int]], picks: list[int], wanted: set[int], kept: int
) -> None:  # fmt: skip
    record = np.repeat(np.arange(len(rows)), [len(own) for own in rows]).astype(np.int64)
    cells = TermCells.from_entries(7, len(rows), record, np.array([c for own in rows for c in own], np.int64))
    truth = [sorted(set(own)) for own in rows]

    def listed(found: TermCells) -> list[list[int]]:
        return [found.data[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]

    assert listed(cells) == truth
    rows_taken = [pick for pick in picks if pick < len(rows)]
    assert listed(cells.take(np.array(rows_taken, np.int64))) == [truth[pick] for pick in rows_taken]
    assert listed(TermCells.concat([cells.take(slice(2, 5)), cells])) == truth[2:5] + truth
    stays = np.array([kept >> (i % 32) & 1 for i in range(len(cells.data))], bool)
    flat = iter(stays.tolist())
    assert listed(cells.keep(stays)) == [[code for code in own if next(flat)] for own in truth]
    assert cells.counts().tolist() == [sum(code in own for own in truth) for code in range(7)]
    chosen = np.isin(np.arange(7), list(wanted))
    assert cells.has(chosen).tolist() == [bool(wanted & set(own)) for own in truth]
    assert cells.has(chosen, every=True).tolist() == [wanted <= set(own) for own in truth]
