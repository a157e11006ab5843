"""Tables with semantically diverse columns: alone, beside others, in both forms, and where counts are lost."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from noren.designs import inversion
from noren.designs.decoys import DecoyDesign
from noren.designs.semantic.design import SemanticDesign
from noren.designs.semantic.law import Inclusion
from noren.errors import QueryError
from noren.estimates.counts import intervals
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bayes import bayes_step, inclusion_of
from noren.estimates.counts.estimators import ESTIMATORS, SEMANTIC_ESTIMATORS, SHUFFLED_ESTIMATORS, invert, projected
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.tabulate import tabulate
from noren.secret import Keystream
from noren.statements import CodeCells, SetCells
from tests.oracles import estimators as decoy_oracle

KINDS = ("simple", "duplicate-processing", "uniform-sets", "flat")


def ranks(F: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(float(F)), np.arange(float(F))))


def make(kind: str, F: int, size: int, d: int) -> SemanticDesign:
    return SemanticDesign.make(kind, ranks(F), size, d)


def publish(design: SemanticDesign, codes: np.ndarray, name: str = "level", **extra) -> Axis:
    return Axis.drawn(name, design.draw(codes, Keystream(), attribute=name), design, **extra)


def decoys(rng, values, d, eta, p=1.0, name="job", **extra) -> Axis:
    keys = rng.random((len(values), d))
    heads = np.flatnonzero(rng.random(len(values)) < p)
    keys[heads, values[heads]] = -1.0
    rows = np.argsort(keys, axis=1)[:, :eta]
    return Axis.drawn(name, SetCells.from_codes(d, rows), DecoyDesign(d=d, eta=eta, p=p), **extra)


def exact(values, d, name="sex", **extra) -> Axis:
    return Axis.exact(name, values, d, **extra)


def law(axis: Axis) -> dict[tuple[int, ...], np.ndarray]:
    """P(R | v) over every set there is, as one row over v for each set."""
    d, eta = axis.design.d, axis.design.eta
    out = {}
    for chosen in map(tuple, np.array(list(product([0, 1], repeat=d)))):
        members = np.flatnonzero(chosen)
        if len(members) != eta:
            continue
        row = np.zeros(d)
        if isinstance(axis.design, DecoyDesign):
            key = (d, eta, axis.design.p)
            row[:] = [decoy_oracle.set_probability(key, frozenset(members.tolist()), v) for v in range(d)]
        else:
            row[members] = axis.design.set_weights(members[None])[0]
        out[tuple(members.tolist())] = row
    return out


def record_likelihoods(axes: list[Axis]) -> np.ndarray:
    """(records, cells) of all set-valued axes, written out."""
    out = np.ones((len(axes[0].cells), 1))
    for axis in axes:
        known = law(axis)
        rows = np.array([known[tuple(r.tolist())] for r in axis.cells.codes(axis.design.eta)])
        out = (out[:, :, None] * rows[:, None, :]).reshape(len(out), -1)
    return out


@pytest.fixture
def rng():
    return np.random.default_rng(4)


@pytest.fixture
def mixed(rng):
    """A semantic column whose members weigh differently, plain decoys, and p < 1."""
    cells = rng.choice(7 * 4 * 3, 300, p=rng.dirichlet(np.ones(84)))
    level, job, race = np.unravel_index(cells, (7, 4, 3))
    axes = [publish(make("simple", 7, 3, 2), level), decoys(rng, job, 4, 2), decoys(rng, race, 3, 1, 0.7, "race")]
    return axes, np.bincount(cells, minlength=84).reshape(1, 7, 4, 3).astype(float)


@pytest.mark.parametrize("kind", KINDS)
def test_one_em_step_and_the_information_equal_the_formulas(rng, kind):
    axis = publish(make(kind, 9, 3, 2), rng.integers(0, 9, 200))
    frame = prepare([axis])
    x = rng.gamma(1.0, 20.0, (1, 9))
    likelihoods = record_likelihoods([axis])
    acc, sums, _ = frame.tuples.em_pass(x)
    weight = likelihoods * x[0]
    np.testing.assert_allclose((x * acc)[0], (weight / weight.sum(axis=1, keepdims=True)).sum(axis=0))
    scaled = likelihoods / (likelihoods @ x[0])[:, None]
    np.testing.assert_allclose(frame.tuples.information(sums)[0], scaled.T @ scaled, rtol=1e-9, atol=1e-12)


def test_mixed_columns_equal_the_formulas(mixed):
    axes, x = mixed
    x = x + 0.5
    frame = prepare(axes)
    likelihoods = record_likelihoods(axes)
    acc, sums, _ = frame.tuples.em_pass(x)
    weight = likelihoods * x.ravel()
    np.testing.assert_allclose((x * acc).ravel(), (weight / weight.sum(axis=1, keepdims=True)).sum(axis=0))
    scaled = likelihoods / (likelihoods @ x.ravel())[:, None]
    np.testing.assert_allclose(frame.tuples.information(sums)[0], scaled.T @ scaled, rtol=1e-8, atol=1e-10)


def inclusion_matrix(axis: Axis) -> np.ndarray:
    matrix = np.zeros((axis.design.d, axis.design.d))
    for members, chances in law(axis).items():
        matrix[:, list(members)] += chances[:, None]
    return matrix


def test_mixed_linear_and_bayes_equal_the_full_matrix(mixed):
    axes, x = mixed
    frame = prepare(axes)
    full = np.ones((1, 1))
    for axis in axes:
        full = np.kron(full, inclusion_matrix(axis))
    w = frame.inclusions
    np.testing.assert_allclose(invert(frame, w).ravel(), np.linalg.solve(full.T, w.ravel()), atol=1e-7)
    np.testing.assert_allclose(tabulate(axes, "linear").counts.sum(), 300)
    start = x + 1.0
    expected = start.ravel() * (full @ (w.ravel() / (full.T @ start.ravel())))
    np.testing.assert_allclose(bayes_step(inclusion_of(frame), start, w).ravel(), expected)


@pytest.mark.parametrize("population", [False, True])
def test_linear_variance_of_groups_equals_enumeration(mixed, population):
    axes, x = mixed
    groups = [np.array([0, 0, 1, 1, -1, 2, 2]), np.array([0, 1, 1, -1]), np.array([0, 0, 1])]
    axes = [Axis.drawn(a.name, a.cells, a.design, g, int(g.max()) + 1) for a, g in zip(axes, groups, strict=True)]
    frame = prepare(axes)
    found = intervals.linear_variance(frame, x, population=population)[0]
    moments = []
    for axis in axes:
        scores = axis.grouping.membership @ np.linalg.inv(inclusion_matrix(axis).T)
        second = np.zeros((axis.size, axis.design.d))
        for members, chances in law(axis).items():
            second += np.square(scores[:, list(members)].sum(axis=1))[:, None] * chances
        moments.append(second)
    for index in np.ndindex(found.shape):
        second, inside = np.ones(1), np.ones(1)
        for axis, moment, g in zip(axes, moments, index, strict=True):
            second, inside = np.kron(second, moment[g]), np.kron(inside, axis.grouping.membership[g])
        mean = inside @ x.ravel()
        expected = second @ x.ravel() - (mean**2 / 300 if population else mean)
        assert found[index] == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_every_estimator_answers_for_one_column_by_exact_ones(rng, kind):
    sex, level = rng.integers(0, 2, 2000), rng.choice(9, 2000, p=rng.dirichlet(np.ones(9)))
    semantic = publish(make(kind, 9, 3, 2), level)
    for estimator in (*ESTIMATORS, *SEMANTIC_ESTIMATORS):
        found = tabulate([semantic, exact(sex, 2)], estimator)
        assert found.method == estimator
        assert found.counts.shape == (9, 2)
        np.testing.assert_allclose(found.counts.sum(axis=0), np.bincount(sex))
        assert (found.low >= 0).all()
        assert (found.low <= found.high).all()
        assert found.diagnostics["inclusion_error"] == 0
        assert "ill_conditioned" not in found.diagnostics
        json.dumps(found.diagnostics)


def test_the_papers_estimators_know_one_semantic_column(rng):
    values = rng.integers(0, 4, 50)
    semantic, plain = publish(make("flat", 9, 3, 2), values), decoys(rng, values, 4, 2)
    for estimator in SEMANTIC_ESTIMATORS:
        for axes in ([plain], [semantic, plain], [semantic, semantic], [exact(values, 4)]):
            with pytest.raises(QueryError, match=r"one column of semantically.*\n.*Hint"):
                tabulate(axes, estimator)


def test_a_set_that_the_design_cannot_draw_is_refused():
    cells = SetCells.from_codes(9, np.array([[0, 1, 5], [0, 2, 5]]))
    with pytest.raises(QueryError, match=r"1 distinct sets of 'level' cannot come from its design"):
        tabulate([Axis.drawn("level", cells, make("flat", 9, 3, 2))])


def test_members_weigh_alike_only_where_the_design_says_so(rng):
    values = rng.integers(0, 9, 100)
    alike, unlike = (publish(make(name, 9, 3, 2), values).drawn_rows for name in ("flat", "simple"))
    assert np.ptp(alike.weight) < 1e-8
    assert unlike.weight.min() < 1


def test_singletons_and_whole_domains(rng):
    values = rng.integers(0, 5, 400)
    one = publish(make("flat", 5, 1, 1), values)
    assert tabulate([one]).counts.tolist() == np.bincount(values, minlength=5).tolist()
    blind = publish(make("flat", 5, 5, 1), values)
    found = tabulate([blind])
    np.testing.assert_allclose(found.counts, 80)
    assert found.high.tolist() == [400] * 5
    assert found.diagnostics["no_information"] == ["level"]
    with pytest.raises(QueryError, match="carry no information"):
        tabulate([blind], "semantic-linear")


def test_more_than_64_values(rng):
    design = make("flat", 80, 3, 10)
    values = rng.choice(80, 5000, p=rng.dirichlet(np.full(80, 0.3)))
    truth = np.bincount(values, minlength=80)
    axis = publish(design, values)
    found, linear = tabulate([axis]), tabulate([axis], "linear")
    assert np.square(found.counts - truth).sum() < np.square(linear.counts - truth).sum()
    assert found.counts.sum() == pytest.approx(5000)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SEMANTIC_ESTIMATORS])
def test_no_records_and_one_record(estimator):
    design = make("simple", 9, 3, 2)
    none = tabulate([Axis.drawn("level", SetCells.from_codes(9, np.zeros((0, 3), int)), design)], estimator)
    assert not none.counts.any()
    assert not none.high.any()
    one = tabulate([Axis.drawn("level", SetCells.from_codes(9, np.array([[0, 2, 5]])), design)], estimator)
    assert one.counts.sum() == pytest.approx(1)
    assert np.isfinite(one.std_error).all()


# ---------------------------------------------------------------- counts that the sets do not determine


@pytest.mark.parametrize("kind", ["simple", "uniform-sets", "flat"])
@pytest.mark.parametrize("estimator", ["likelihood", "linear", "semantic-linear", "share", "bayes"])
def test_lost_counts_get_bounds_that_hold(rng, kind, estimator):
    values = rng.choice(6, 3000, p=[0.5, 0.1, 0.05, 0.05, 0.2, 0.1])
    truth = np.bincount(values, minlength=6)
    found = tabulate([publish(make(kind, 6, 3, 2), values)], estimator)
    assert "'level'" in found.diagnostics["ill_conditioned"]
    assert found.diagnostics["condition"] is None
    json.dumps(found.diagnostics)
    assert set(found.interval) == {"none"}
    assert (found.low <= truth).all()
    assert (truth <= found.high).all()
    assert found.counts.min() >= 0
    assert found.counts.sum() == pytest.approx(3000)
    assert (found.high - found.low > 100).all()
    if estimator in ("linear", "semantic-linear"):
        assert found.method == "likelihood"
        assert found.diagnostics["asked_for"] == estimator


def test_sums_that_are_determined_keep_their_intervals(rng):
    # F = l d: the circular design tells the residue modulo d and nothing else, exactly.
    values = rng.choice(6, 3000, p=[0.5, 0.1, 0.05, 0.05, 0.2, 0.1])
    axis = publish(make("flat", 6, 3, 2), values, groups=np.arange(6) % 2)
    for estimator in ("likelihood", "linear"):
        found = tabulate([axis], estimator)
        assert found.method == estimator
        np.testing.assert_allclose(found.counts, np.bincount(values % 2), atol=0.2)
        np.testing.assert_allclose(found.std_error, 0, atol=0.2)
        assert "none" not in found.interval
        assert "0 of its 2 reported groups" in found.diagnostics["ill_conditioned"]


def test_bounds_count_the_records_that_must_and_can_be_there(rng):
    level = make("simple", 6, 3, 2)
    rows = np.array([[0, 2, 4], [0, 2, 5], [1, 3, 5], [0, 2, 4]])
    axes = [
        Axis.drawn("level", SetCells.from_codes(6, rows), level, np.array([0, 1, 0, 1, 0, -1])),
        decoys(rng, np.array([0, 0, 1, 2]), 3, 1, 0.5, "race", groups=np.array([0, 0, 1])),
        Axis.drawn("job", SetCells.from_codes(3, np.array([[0, 1], [0, 2], [1, 2], [0, 1]])), DecoyDesign(d=3, eta=2)),
    ]
    least, most = prepare(axes[:1]).bounds()
    assert least.tolist() == [[2, 0]]
    assert most.tolist() == [[3, 1]]
    least, most = prepare(axes).bounds()
    assert not least.any()  # any race is possible
    assert most[0, :, 0].tolist() == most[0, :, 1].tolist() == [[3, 2, 1], [0, 1, 1]]
    whole = Axis.drawn("race", axes[1].cells, axes[1].design, np.zeros(3, np.int64), 1)
    least, most = prepare([axes[0], whole]).bounds()
    assert least[0, :, 0].tolist() == [2, 0]


def test_members_that_cannot_be_true_are_no_reason_to_widen():
    # duplicate-processing at (11,3,3) publishes sets that only the last value can have produced
    axis = Axis.drawn("level", SetCells.from_codes(11, np.array([[0, 3, 7]])), make("duplicate-processing", 11, 3, 3))
    least, most = prepare([axis]).bounds()
    assert least[0].tolist() == most[0].tolist() == [0] * 7 + [1] + [0] * 3


def test_lost_cells_beside_other_columns(rng):
    values, sex = rng.integers(0, 6, 2000), rng.integers(0, 2, 2000)
    job = (values + rng.integers(0, 2, 2000)) % 4
    axes = [exact(sex, 2), publish(make("flat", 6, 3, 2), values), decoys(rng, job, 4, 2)]
    truth = np.zeros((2, 6, 4))
    np.add.at(truth, (sex, values, job), 1)
    found = tabulate(axes)
    assert ((found.low <= truth) & (truth <= found.high)).all()
    sampled = tabulate(axes, population=True)
    assert (sampled.high >= found.high).all()


def test_monte_carlo_inclusion_is_said_and_widens(rng, monkeypatch):
    design = make("flat", 9, 3, 2)
    axis = publish(design, rng.integers(0, 9, 3000))
    before = tabulate([axis], "linear")
    found = design.inclusion()
    noisy = Inclusion(found.matrix, exact=False, error=0.002)
    monkeypatch.setattr(SemanticDesign, "inclusion", lambda self, draws=0: noisy)
    inversion.solve.cache_clear()
    again = tabulate([publish(design, rng.integers(0, 9, 3000))], "linear")
    inversion.solve.cache_clear()
    assert before.diagnostics["inclusion_error"] == 0
    assert again.diagnostics["inclusion_error"] == 0.002
    assert again.std_error.mean() > before.std_error.mean()


# ---------------------------------------------------------------- the record form


def exploded(rng, axis: Axis, sex: np.ndarray) -> tuple[Axis, Axis]:
    """The same release as N x l shuffled rows."""
    size = axis.design.eta
    rows = axis.cells.codes(size).ravel()
    order = rng.permutation(len(rows))
    return exact(sex.repeat(size)[order], 2), Axis.shuffled("value", rows[order], axis.design)


@pytest.mark.parametrize("kind", KINDS)
def test_both_forms_give_the_same_linear_estimate(rng, kind):
    sex, level = rng.integers(0, 2, 3000), rng.choice(9, 3000, p=rng.dirichlet(np.ones(9)))
    axis = publish(make(kind, 9, 3, 2), level)
    qid, values = exploded(rng, axis, sex)
    for estimator in SHUFFLED_ESTIMATORS:
        sets = tabulate([exact(sex, 2), axis], estimator)
        records = tabulate([qid, values], estimator)
        counts = sets.counts
        if estimator == "linear":
            counts = projected(counts, np.bincount(sex).astype(float))
            assert records.counts.min() >= 0
            assert (records.low <= records.counts).all()
            assert (records.counts <= records.high).all()
        np.testing.assert_allclose(records.counts, counts, atol=1e-6)
        np.testing.assert_allclose(records.std_error, sets.std_error, atol=1e-6)
        assert records.diagnostics["records"] == 3000
        assert records.diagnostics["rows"] == 9000


def test_record_form_groups_conditions_and_no_exact_column(rng):
    sex, level = rng.integers(0, 2, 3000), rng.choice(9, 3000, p=rng.dirichlet(np.ones(9)))
    axis = publish(make("flat", 9, 3, 2), level)
    qid, values = exploded(rng, axis, sex)
    alone = tabulate([values])
    assert alone.counts.shape == (9,)
    np.testing.assert_allclose(alone.counts.sum(), 3000)
    groups = np.array([0, 0, 0, 1, 1, 1, -1, -1, -1])
    grouped = tabulate([Axis.shuffled("value", values.cells.data, axis.design, groups, 2)])
    np.testing.assert_allclose(grouped.counts, alone.counts[:6].reshape(2, 3).sum(axis=1))
    women = exact(qid.cells.data, 2, groups=np.array([0, -1]), n_groups=1)
    some = tabulate([women, values])
    np.testing.assert_allclose(some.counts.sum(), (sex == 0).sum())
    part = tabulate([Axis.shuffled("value", values.cells.data[:-1], axis.design)])  # rows not divisible by l
    np.testing.assert_allclose(part.counts.sum(), 3000 - 1 / 3)


def test_record_form_refusals(rng):
    design = make("flat", 9, 3, 2)
    members = rng.integers(0, 9, 30)
    values = Axis.shuffled("value", members, design)
    with pytest.raises(QueryError, match=r"'likelihood' needs whole sets"):
        tabulate([values], "likelihood")
    with pytest.raises(QueryError, match=r"no estimator 'magic'"):
        tabulate([values], "magic")
    with pytest.raises(QueryError, match=r"can be combined with exact columns only"):
        tabulate([decoys(rng, members % 4, 4, 2), values])
    with pytest.raises(QueryError, match=r"does not hold the declared 9 values"):
        tabulate([replace(values, cells=CodeCells(5, members % 5))])
    with pytest.raises(QueryError, match=r"carry no information"):
        tabulate([Axis.shuffled("value", members, make("flat", 9, 9, 1))])


def test_record_form_where_counts_are_lost(rng):
    level = rng.choice(6, 3000, p=[0.5, 0.1, 0.05, 0.05, 0.2, 0.1])
    axis = publish(make("simple", 6, 3, 2), level)
    _, values = exploded(rng, axis, level % 2)
    truth = np.bincount(level, minlength=6)
    for estimator in SHUFFLED_ESTIMATORS:
        found = tabulate([values], estimator)
        assert ((found.low <= truth) & (truth <= found.high)).all()
        assert "ill_conditioned" in found.diagnostics
        if estimator in ("linear", "semantic-linear"):
            assert found.method == "bayes"
            assert found.counts.sum() == pytest.approx(3000)


def test_record_form_of_single_values(rng):
    values = rng.integers(0, 5, 100)
    found = tabulate([Axis.shuffled("value", values, make("flat", 5, 1, 1))])
    assert found.counts.tolist() == np.bincount(values, minlength=5).tolist()


def test_projection_is_the_nearest_possible_row():
    rows = np.array([[3.0, 2.0, -1.0], [1.0, 1.0, 2.0], [9.0, -4.0, -1.0], [0.0, 0.0, 0.0]])
    found = projected(rows, rows.sum(axis=1))
    np.testing.assert_allclose(found, [[2.5, 1.5, 0], [1, 1, 2], [4, 0, 0], [0, 0, 0]])
