"""Steps by a sample of the records: held to all of them, no fold sees its own, and the answer is that of all steps."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts import held_out
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.fit import DRAWN
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.held_out import (
    Held,
    Looks,
    Outset,
    Sought,
    Trail,
    Walk,
    by_held_out,
    flattens,
    folds_of,
    search,
    smooth,
)
from noren.estimates.counts.tuples import Tuples
from noren.statements import SetCells

SHAPE = (12, 10)


def drawn(rng, code, d, eta, p=1.0):
    n = len(code)
    keys = rng.random((n, d))
    keys[np.arange(n), code] = np.where(rng.random(n) < p, -1.0, keys[np.arange(n), code])
    sets = np.argpartition(keys, eta - 1, axis=1)[:, :eta]
    return Axis.drawn(f"c{d}", SetCells.from_codes(d, sets), DecoyDesign(d=d, eta=eta, p=p))


def related(rng, n):
    """Two columns that know of each other, and their table."""
    first = rng.integers(0, SHAPE[0], n)
    second = np.where(rng.random(n) < 0.5, first % SHAPE[1], rng.integers(0, SHAPE[1], n))
    truth = np.zeros(SHAPE)
    np.add.at(truth, (first, second), 1)
    return first, second, truth


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(11)
    first, second, truth = related(rng, 40_000)
    return prepare([drawn(rng, first, 12, 5, 0.9), drawn(rng, second, 10, 4)]).tuples, truth


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(held_out, "LEAST_TUPLES", 100)
    monkeypatch.setattr(held_out, "PER_CELL", 30)


def test_few_tuples_are_all_looked_at(many):
    assert held_out.chosen(many[0]) is None


def test_a_sample_is_the_share_it_should_be(many, small_samples):
    tuples, _ = many
    rows = held_out.chosen(tuples)
    assert 3000 < len(rows) < 0.15 * len(tuples)
    assert (np.diff(rows) > 0).all(), "tuples stay sorted"


def test_no_fold_sees_its_held_out_records(many, small_samples):
    tuples, _ = many
    held = folds_of(tuples.counts)
    x = np.random.default_rng(0).gamma(1.0, 1.0, (*tuples.shape, 4))
    found = Looks.of_folds(tuples, held).sample(x)
    rows = held_out.chosen(tuples)
    for f in range(4):
        trained = tuples.counts[rows] - held.counts[rows, f]
        part = Tuples(tuples.rows, tuples.shape, tuples.order, tuples.ids[rows], trained)
        np.testing.assert_allclose(found[..., f], part.em_pass(x[..., f])[0], rtol=1e-9)


def test_the_slope_is_exact_at_a_look_and_near_by_a_share_of_the_change(many, small_samples):
    tuples, truth = many
    looks = Looks.of_all(tuples)
    x = truth[None] + 50.0
    acc = tuples.em_pass(x)[0]
    np.testing.assert_allclose(looks.seen(x, acc), np.log(acc))
    np.testing.assert_allclose(looks.between(x), np.log(acc), atol=1e-12)
    away = x * np.random.default_rng(1).uniform(0.8, 1.25, x.shape)
    exact = np.log(tuples.em_pass(away)[0])
    change, missed = np.abs(exact - np.log(acc)).mean(), np.abs(looks.between(away) - exact).mean()
    assert missed < 0.35 * change
    alone = np.log(looks.sample(away) * (len(tuples) / len(held_out.chosen(tuples))))
    assert missed < 0.7 * np.abs(alone - exact).mean(), "better than the sample by itself"


def test_looks_are_further_apart_while_the_sample_is_right():
    looks = Looks(lambda x: 2.0 * x)
    x = np.ones(3)
    looks.seen(x, 3.0 * x)
    assert looks.apart == 0
    looks.seen(2.0 * x, 6.0 * x)
    looks.seen(3.0 * x, 9.0 * x)
    assert looks.apart == 3
    looks.seen(3.0 * x, 1.1 * x)
    assert looks.apart == 1
    with pytest.raises(RuntimeError):
        Looks(None).between(x)


def test_the_answer_is_that_of_steps_over_all_records(monkeypatch):
    rng = np.random.default_rng(5)
    first, second, _ = related(rng, 60_000)
    third = (first + second + rng.integers(0, 3, 60_000)) % 5
    axes = [drawn(rng, first, 12, 5), drawn(rng, second, 10, 4), drawn(rng, third, 5, 2)]
    tuples = prepare(axes).tuples
    exact = by_held_out(tuples, DRAWN, None, 2000)
    monkeypatch.setattr(held_out, "LEAST_TUPLES", 2000)
    monkeypatch.setattr(held_out, "PER_CELL", 20)
    found = by_held_out(tuples, DRAWN, None, 2000)
    assert found.iterations < 0.8 * exact.iterations
    whole = np.zeros((12, 10, 5))
    np.add.at(whole, (first, second, third), 1)
    error = [np.abs(one.table[0] - whole).sum() / whole.sum() for one in (exact, found)]
    assert error[1] < 1.03 * error[0]
    assert np.abs(found.table - exact.table).sum() / whole.sum() < 0.2 * error[0]
    assert max(found.diagnostics["held_out"]) > max(exact.diagnostics["held_out"]) - 1.0 / whole.sum()
    steps = found.diagnostics["held_out_steps"]
    assert len(steps) == len(found.diagnostics["held_out"])
    assert (np.diff(steps) > 0).all()


def test_a_sample_that_misleads_is_left_for_the_last_look(many, small_samples, monkeypatch):
    """A sample that says the opposite: the walk goes back and ends no lower than where all steps are exact."""
    tuples, _ = many
    held = folds_of(tuples.counts)
    outset = Outset.of(tuples, held, *Sought.of(tuples, DRAWN, 2000, None).independent())
    exact = search(tuples, held, outset, DRAWN, 2000)
    between = Looks.between
    monkeypatch.setattr(
        Looks, "between", lambda self, x: -20.0 * between(self, x) + np.sin(np.arange(x.size)).reshape(x.shape)
    )
    monkeypatch.setattr(held_out, "NEAR", 1e9)
    found = search(tuples, held, outset, DRAWN, 2000)
    assert max(found.curve) > max(exact.curve) - 1.0
    assert (np.diff(found.steps) > 0).all()


def test_a_retreat_forgets_what_came_after_the_look():
    walk, trail = Walk(np.array([[1.0, 3.0]])), Trail(10)
    trail.note(0, walk)
    trail.score(0, -5.0)
    walk.advance(np.array([[0.3, -0.3]]))
    trail.note(1, walk)
    trail.score(1, -4.9)
    at = walk.x.copy()
    for step in (2, 3):
        walk.advance(np.array([[0.3, -0.3]]))
        trail.note(step, walk)
    assert trail.retreat(walk) == 1
    np.testing.assert_allclose(walk.x, at)
    assert (walk.k, trail.steps, trail.curve, sorted(trail.passed)) == (0, [0], [-5.0], [0, 1])


def test_a_curve_known_at_some_steps_flattens_where_the_whole_does():
    whole = [-((k - 40) ** 2) * 0.05 for k in range(60)]
    steps = [0, 1, 2, 4, 6, 9, 13, 18, 25, 34, 46]
    ends = [i for i in range(2, len(steps) + 1) if flattens([whole[s] for s in steps[:i]], steps[:i])]
    assert ends[0] == len(steps), "at the first look beyond the best"
    every = list(range(60))
    assert [flattens(whole[:i]) for i in range(1, 60)] == [flattens(whole[:i], every[:i]) for i in range(1, 60)]


def test_scores_between_looks_are_those_of_a_parabola():
    steps = [0, 1, 2, 4, 6, 9, 13, 18]
    curve = [-0.3 * (s - 11.0) ** 2 for s in steps]
    at = np.arange(19)
    np.testing.assert_allclose(smooth(at, steps, curve), -0.3 * (at - 11.0) ** 2, atol=1e-9)
    np.testing.assert_allclose(smooth(np.array([0, 3]), [0, 6], [0.0, 2.0]), [0.0, 1.0])


def test_the_stop_between_looks_is_the_earliest_within_half_a_nat():
    walk, trail = Walk(np.ones((1, 2))), Trail(100)
    looked = {0, 1, 2, 4, 6, 9, 13, 18}
    for step in range(19):
        trail.note(step, walk)
        if step in looked:
            trail.score(step, -0.3 * (step - 11.0) ** 2)
    assert trail.best() == 10, "0.3 below the best; at 9 it is 1.2"


@pytest.mark.parametrize("weighted", [False, True])
def test_held_records_gathered_by_place_are_those_added_one_by_one(weighted):
    rng = np.random.default_rng(4)
    held = rng.integers(0, 2, (200, 4)) * rng.integers(0, 3, (200, 4))
    if weighted:
        held = held * rng.choice([1.0, 0.5, 2.25], 200)[:, None]
    made = Held(held.astype(np.float64 if weighted else np.int32))
    place = rng.integers(0, 30, 200)
    expected = np.zeros((30, 4))
    for t in range(200):
        expected[place[t]] += held[t]
    found = made.gathered(place, 30)
    assert found.dtype == made.counts.dtype
    np.testing.assert_allclose(found, expected)
