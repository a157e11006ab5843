"""Tables of several drawn columns: folds side by side, starts from pairs, margins that agree, and no flattening."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts import held_out
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.held_out import DRAWN, by_held_out, flattens, folds_of, momentum, rake
from noren.estimates.counts.tabulate import tabulate
from noren.statements import SetCells

SHAPE = (6, 4, 5, 4, 4)


def published(rng, name, code, d, eta, p=1.0):
    n = len(code)
    keys = rng.random((n, d))
    keys[np.arange(n), code] = np.where(rng.random(n) < p, -1.0, keys[np.arange(n), code])
    sets = np.argpartition(keys, eta - 1, axis=1)[:, :eta]
    return Axis.drawn(name, SetCells.from_codes(d, sets), DecoyDesign(d=d, eta=eta, p=p))


def people(rng, n):
    """Four covariates with a common cause, and an outcome of four values whose upper half depends on them."""
    cause, columns = rng.normal(size=n), []
    for d in SHAPE[:4]:
        score = 0.7 * cause + rng.normal(size=n)
        columns.append(np.digitize(score, np.quantile(score, np.linspace(0, 1, d + 1)[1:-1])))
    linear = -1.2 + 0.6 * (columns[0] - 1.5) + 0.4 * (columns[1] - 1) - 0.3 * (columns[2] - 2)
    upper = rng.random(n) < 1 / (1 + np.exp(-linear))
    return [*columns, np.where(upper, 2, 0) + rng.integers(0, 2, n)]


def counted(columns, shape):
    table = np.zeros(shape)
    np.add.at(table, tuple(columns), 1)
    return table


def coefficients(table):
    """A logistic regression of the outcome's upper half on the covariates, from a table of counts."""
    at = np.indices(table.shape[:4]).reshape(4, -1)
    x = np.column_stack([np.ones(at.shape[1]), *(i - i.mean() for i in at.astype(float))])
    upper, total, found = table[..., 2:].sum(axis=-1).ravel(), table.sum(axis=-1).ravel(), np.zeros(5)
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ found))
        found = found + np.linalg.solve((x.T * (total * p * (1 - p))) @ x, x.T @ (upper - total * p))
    return found[1:4]


@pytest.fixture(scope="module")
def five_way():
    rng = np.random.default_rng(2)
    columns = people(rng, 30_000)
    axes = [published(rng, f"c{j}", code, d, 2) for j, (code, d) in enumerate(zip(columns, SHAPE, strict=True))]
    return axes, counted(columns, SHAPE), tabulate(axes)


def test_a_logistic_coefficient_of_the_five_way_table_is_not_flattened(five_way):
    # With independence as the start the three coefficients were 19, 24 and 44% too small on such tables.
    _, truth, found = five_way
    bias = coefficients(found.counts) / coefficients(truth) - 1
    assert found.diagnostics["start"] == "pairs of columns"
    assert abs(bias[0]) < 0.08
    assert np.abs(bias).max() < 0.2
    assert np.abs(found.counts - truth).sum() < 0.28 * truth.sum(), "0.36 from independence"


def test_margins_are_the_answers_of_lower_order(five_way):
    axes, _, found = five_way
    for j in (0, 3):
        rest = tuple(k for k in range(5) if k != j)
        alone = tabulate([axes[j]])
        assert np.abs(found.counts.sum(axis=rest) - alone.counts).max() < 0.02 * alone.std_error.min()
    pair = tabulate([axes[0], axes[2]])
    margin = found.counts.sum(axis=(1, 3, 4))
    assert np.abs(margin - pair.counts).max() < 0.05 * pair.std_error.min()


def test_margins_agree_beside_an_exact_column():
    rng = np.random.default_rng(8)
    columns = people(rng, 5000)
    axes = [Axis.exact("c0", columns[0], 6), *(published(rng, f"c{j}", columns[j], SHAPE[j], 2) for j in (1, 2))]
    found = tabulate(axes)
    np.testing.assert_allclose(found.counts.sum(axis=(1, 2)), np.bincount(columns[0], minlength=6), rtol=1e-6)
    alone = tabulate([axes[1]])
    assert np.abs(found.counts.sum(axis=(0, 2)) - alone.counts).max() < 0.02 * alone.std_error.min()


def test_independent_columns_stay_independent():
    rng = np.random.default_rng(5)
    columns = [rng.integers(0, d, 4000) for d in (5, 4, 6)]
    found = tabulate(
        [published(rng, f"c{j}", c, d, 2) for j, (c, d) in enumerate(zip(columns, (5, 4, 6), strict=True))]
    )
    truth = counted(columns, (5, 4, 6))
    assert np.abs(found.counts - truth).sum() < 0.35 * 4000


@pytest.mark.parametrize("p", [1.0, 0.7])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_four_folds_at_once_are_four_passes(p, depth):
    """However many columns are shared: with one left to sum over, whose members weigh alike or not, and with more."""
    rng = np.random.default_rng(1)
    columns = people(rng, 700)
    axes = [Axis.exact("c1", columns[1], 4)]
    axes += [published(rng, f"c{j}", columns[j], SHAPE[j], 3, p) for j in (0, 2, 4)]
    tuples = prepare(axes).tuples
    shared = prepare(axes).tuples
    shared.products.depth = depth
    held = folds_of(tuples.counts)
    tables = rng.gamma(1.0, 1.0, (*tuples.shape, 4))
    floor, scale = rng.random(len(tuples)) * 1e-3, np.array([0.1, 0.2, 0.3, 0.4])
    acc, score = shared.fold_pass(tables, held, floor, scale)
    expected = 0.0
    for f in range(4):
        one, _, value = tuples.em_pass(tables[..., f], np.ascontiguousarray(held.counts[:, f]), floor, scale[f])
        np.testing.assert_allclose(acc[..., f], one, rtol=1e-9)
        expected += value
    assert score == pytest.approx(expected)


def test_folds_hold_every_record_out_once():
    counts = np.array([1.0, 5.0, 40.0, 2.0])
    held = folds_of(counts)
    np.testing.assert_array_equal(held.counts.sum(axis=1), counts)
    assert not folds_of(np.array([1.0])).counts.any(), "a fold that would hold out everything"


def test_parts_of_tuples_count_the_same_records():
    rng = np.random.default_rng(3)
    columns = people(rng, 900)
    axes = [published(rng, f"c{j}", columns[j], SHAPE[j], 2) for j in range(3)]
    tuples = prepare([Axis.exact("c4", columns[4], 4), *axes]).tuples
    part, place = tuples.part((1, 3))
    alone = prepare([axes[0], axes[2]]).tuples
    np.testing.assert_allclose(part.em_pass(np.ones(part.shape))[0], alone.em_pass(np.ones(part.shape))[0])
    np.testing.assert_allclose(np.bincount(place, tuples.counts), part.counts)
    beside, _ = tuples.part((0, 2))
    alone, x = prepare([Axis.exact("c4", columns[4], 4), axes[1]]).tuples, rng.random(beside.shape)
    np.testing.assert_allclose(beside.em_pass(x)[0], alone.em_pass(x)[0])


def test_the_method_takes_about_the_square_root_of_plain_steps():
    # Residuals of modes that plain steps shrink by 1 - r each: as small after 60 of these steps as after hundreds.
    rates = np.linspace(0.001, 1, 500)
    rest = before = np.ones(500)
    for k in range(1, 61):
        again, length = momentum(k)
        rest, before = rest + again * (rest - before) - length * rates * rest, rest
    assert np.abs(rest).max() < 1
    assert np.abs(rest[rates > 0.02]).max() < 0.02
    assert (1 - 0.02) ** 60 > 0.29


def test_a_curve_flattens_when_little_is_left():
    rising = [-(0.9**k) * 100 for k in range(12)]
    assert not flattens(rising)
    assert flattens([-(0.5**k) * 100 for k in range(14)])
    assert flattens([*(-(0.9**k) for k in range(10)), -0.5, -0.6, -0.7])


def test_raking_keeps_associations_and_takes_margins():
    table = np.array([[10.0, 2.0], [3.0, 20.0]])
    raked = rake(table, {(0,): np.array([30.0, 70.0]), (1,): np.array([50.0, 50.0])})
    np.testing.assert_allclose(raked.sum(axis=1), [30, 70], rtol=1e-6)
    np.testing.assert_allclose(raked.sum(axis=0), [50, 50], rtol=1e-6)
    odds = lambda t: t[0, 0] * t[1, 1] / (t[0, 1] * t[1, 0])  # noqa: E731
    assert odds(raked) == pytest.approx(odds(table))


def test_one_record_has_an_answer():
    axes = [published(np.random.default_rng(0), f"c{j}", np.array([1]), 4, 2) for j in range(3)]
    found = by_held_out(prepare(axes).tuples, DRAWN, None, 50)
    assert found.table.sum() == pytest.approx(1)
    assert np.isfinite(found.table).all()


def test_fits_side_by_side_are_the_same_to_the_last_bit(monkeypatch) -> None:
    """Pairs, folds, single columns and the start in threads of their own."""
    rng = np.random.default_rng(4)
    columns = people(rng, 3_000)[1:4]
    axes = [published(rng, f"a{i}", code, SHAPE[i + 1], 2) for i, code in enumerate(columns)]
    one_by_one = fit(prepare(axes))
    monkeypatch.setattr(held_out, "MANY", 1)
    together = fit(prepare(axes))
    assert np.array_equal(together.table, one_by_one.table)
    assert together.iterations == one_by_one.iterations
    assert together.diagnostics == one_by_one.diagnostics
    assert list(together.diagnostics["pair_steps"]) == [(2, 3), (1, 3), (1, 2)]
