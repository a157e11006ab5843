"""Kernels and Kronecker shortcuts equal the formulas written out, on small tables of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts import intervals, tuples
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bayes import bayes_step, inclusion_of
from noren.estimates.counts.estimators import invert, value_adding
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.tabulate import tabulate
from noren.statements import SetCells
from tests.oracles import estimators as oracle


@st.composite
def releases(draw: st.DrawFn, exact: bool = False):
    """(designs, records): up to three attributes with informative decoys, and some published sets."""
    designs = []
    for _ in range(draw(st.integers(1, 3))):
        d = draw(st.integers(2, 5))
        p = draw(st.sampled_from([1.0, 1.0, 0.7, 0.2]))
        smallest = 1 if p < 1 or exact else min(2, d - 1)
        designs.append((d, draw(st.integers(smallest, d - 1)), p))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 25))
    records = [tuple(frozenset(rng.choice(d, eta, replace=False).tolist()) for d, eta, _ in designs) for _ in range(n)]
    return designs, records


def axes_of(designs, records, groups=None) -> list[Axis]:
    out = []
    for j, (d, eta, p) in enumerate(designs):
        codes = np.array([sorted(record[j]) for record in records])
        extra = {} if groups is None else {"groups": groups[j], "n_groups": int(groups[j].max()) + 1}
        out.append(Axis.drawn(f"a{j}", SetCells.from_codes(d, codes), DecoyDesign(d=d, eta=eta, p=p), **extra))
    return out


def as_frame(designs, table: np.ndarray, frame) -> np.ndarray:
    """A table over all attributes in the frame's (slot, decoys) form."""
    exact = [j for j, (_, eta, p) in enumerate(designs) if eta == 1 and p == 1]
    decoys = [j for j in range(len(designs)) if j not in exact]
    moved = table.transpose(exact + decoys).reshape(-1, *(designs[j][0] for j in decoys))
    return moved[frame.slots]


def table_for(designs, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).gamma(0.7, 5.0, [d for d, _, _ in designs]) + 1e-3


def em_pass(frame, x):
    return frame.tuples.em_pass(x)


@pytest.fixture(params=[500_000, -1], ids=["serial", "threads"], scope="module", autouse=True)
def ways(request):
    """Small tables run on one thread; the second round makes them split, too."""
    before, tuples.BLOCK_WORK = tuples.BLOCK_WORK, request.param
    yield
    tuples.BLOCK_WORK = before


@settings(max_examples=60, deadline=None)
@given(releases(exact=True))
def test_inclusion_counts(release):
    frame = prepare(axes_of(*release))
    np.testing.assert_allclose(frame.place(frame.inclusions), oracle.inclusion_counts(*release))


@settings(max_examples=60, deadline=None)
@given(releases(exact=True))
def test_em_step(release):
    designs, records = release
    frame = prepare(axes_of(designs, records))
    x = table_for(designs)
    inner = as_frame(designs, x, frame)
    step = frame.place(inner * em_pass(frame, inner)[0])
    np.testing.assert_allclose(step, oracle.em_step(designs, records, x), rtol=1e-9, atol=1e-12)
    assert step.sum() == pytest.approx(len(records))


@settings(max_examples=40, deadline=None)
@given(releases(exact=True), st.data())
def test_held_out_records_are_scored_and_do_not_teach(release, data):
    designs, records = release
    frame = prepare(axes_of(designs, records))
    counts = frame.tuples.counts.astype(int)
    held = np.array([data.draw(st.integers(0, int(c))) for c in counts], np.int32)
    inner = as_frame(designs, table_for(designs), frame)
    _, sums, _ = em_pass(frame, inner)
    floor = np.linspace(0, 1, len(held))
    acc, again, score = frame.tuples.em_pass(inner, held, floor, 0.5)
    np.testing.assert_allclose(again, sums)
    assert score == pytest.approx(held @ np.log(0.5 * sums + floor))
    assert (inner * acc).sum() == pytest.approx(len(records) - held.sum())


@settings(max_examples=60, deadline=None)
@given(releases(exact=True))
def test_linear_equals_the_full_matrix(release):
    designs, records = release
    frame = prepare(axes_of(designs, records))
    found = frame.place(invert(frame, frame.inclusions))
    np.testing.assert_allclose(found, oracle.linear(designs, records), rtol=1e-8, atol=1e-8)
    assert found.sum() == pytest.approx(len(records))


@settings(max_examples=40, deadline=None)
@given(releases(exact=True))
def test_bayes_step_equals_equation_26(release):
    designs, records = release
    frame = prepare(axes_of(designs, records))
    w, x = oracle.inclusion_counts(designs, records), table_for(designs)
    inner = bayes_step(inclusion_of(frame), as_frame(designs, x, frame), frame.inclusions)
    expected = as_frame(designs, oracle.bayes_step(designs, w, x), frame)
    np.testing.assert_allclose(inner, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(releases())
def test_value_adding_equals_equation_18(release):
    designs, records = release
    if any(eta == 1 and p == 1 for _, eta, p in designs):
        return  # exact columns split the records first; equation 18 knows none
    frame = prepare(axes_of(designs, records))
    np.testing.assert_allclose(frame.place(value_adding(frame).table), oracle.value_adding(designs, records))


@settings(max_examples=40, deadline=None)
@given(releases(exact=True))
def test_information_equals_the_sum_of_outer_products_and_the_curvature(release):
    designs, records = release
    frame = prepare(axes_of(designs, records))
    x = table_for(designs)
    inner = as_frame(designs, x, frame)
    blocks = frame.tuples.information(em_pass(frame, inner)[1])
    full = oracle.information(designs, records, x)
    size = x.size
    place = as_frame(designs, np.arange(size).reshape(x.shape), frame).reshape(len(frame.slots), -1)
    # The kernel leaves out constant factors of L, which cancel in J.
    for block, cells in zip(blocks, place, strict=True):
        np.testing.assert_allclose(block, full[np.ix_(cells, cells)], rtol=1e-9, atol=1e-12)
        elsewhere = np.setdiff1d(np.arange(size), cells)
        assert not full[np.ix_(cells, elsewhere)].any()
    bump = np.zeros(size)
    bump[int(place[0, 0])] = step = 1e-3 * x.ravel()[place[0, 0]]
    around = [oracle.log_likelihood(designs, records, x + s * bump.reshape(x.shape)) for s in (-1, 0, 1)]
    curvature = -(around[0] - 2 * around[1] + around[2]) / step**2
    assert curvature == pytest.approx(blocks[0, 0, 0], rel=1e-3, abs=1e-4 * max(1, abs(around[1])))


@st.composite
def grouped(draw: st.DrawFn):
    designs, records = draw(releases(exact=True))
    groups = []
    for d, _, _ in designs:
        chosen = draw(st.lists(st.integers(-1, 2), min_size=d, max_size=d).filter(lambda g: max(g) >= 0))
        groups.append(np.array(chosen, np.int64))
    return designs, records, groups


@settings(max_examples=60, deadline=None)
@given(grouped())
def test_grouped_linear_is_the_sum_of_linear_cells(case):
    designs, records, groups = case
    found = tabulate(axes_of(designs, records, groups), "linear")
    cells = tabulate(axes_of(designs, records), "linear").counts
    for j, axis in enumerate(axes_of(designs, records, groups)):
        cells = axis.grouping.sum(cells, j)
    np.testing.assert_allclose(found.counts, cells, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(grouped(), st.booleans())
def test_linear_variance_of_groups_equals_enumeration(case, population):
    designs, records, groups = case
    axes = [axis for axis in axes_of(designs, records, groups) if not axis.is_exact]
    kept = [j for j, (_, eta, p) in enumerate(designs) if not (eta == 1 and p == 1)]
    if not kept:
        return
    designs, groups = [designs[j] for j in kept], [groups[j] for j in kept]
    frame = prepare(axes)
    x = table_for(designs)
    x *= frame.n / x.sum()
    found = intervals.linear_variance(frame, x[None], population=population)[0]
    for index in np.ndindex(found.shape):
        members = [frozenset(np.flatnonzero(g == k).tolist()) for g, k in zip(groups, index, strict=True)]
        expected = oracle.linear_variance(designs, members, x, population)
        assert found[index] == pytest.approx(max(expected, 0.0), rel=1e-7, abs=1e-7)


@settings(max_examples=25, deadline=None)
@given(releases(exact=True), st.sampled_from(["likelihood", "bayes", "linear", "value-adding"]), st.booleans())
def test_every_estimate_is_complete_and_ordered(release, estimator, population):
    designs, records = release
    found = tabulate(axes_of(designs, records), estimator, population=population)
    assert found.counts.shape == tuple(d for d, _, _ in designs)
    assert found.counts.sum() == pytest.approx(len(records))
    for part in (found.counts, found.std_error, found.low, found.high):
        assert part.shape == found.counts.shape
        assert np.isfinite(part).all()
    assert (found.low >= 0).all()
    assert (found.low <= found.high).all()
    assert (found.high <= len(records) * (1 + 1e-9)).all()
    if estimator != "linear":
        assert (found.counts >= 0).all()
        assert (found.low <= found.counts).all()
        assert (found.counts <= found.high).all()


@pytest.mark.slow  # in threads: thousands of steps, each handed from one to another
@settings(max_examples=20, deadline=None)
@given(releases(exact=True), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(release, random):
    designs, records = release
    shuffled = list(records)
    random.shuffle(shuffled)
    first, second = tabulate(axes_of(designs, records)), tabulate(axes_of(designs, shuffled))
    np.testing.assert_array_equal(first.counts, second.counts)
    np.testing.assert_array_equal(first.high, second.high)
