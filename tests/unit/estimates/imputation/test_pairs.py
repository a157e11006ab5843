"""Tables of all pairs: what one and two columns tell is told with intervals that cover it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError
from noren.estimates import pool
from noren.estimates.mixture import Axis, Pairs, is_enough

SIZES = (3, 4, 3)


def codes_of(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """Three columns: two follow a hidden kind, the third what one of them is."""
    kind = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    first = np.where(rng.random(n) < 0.6, kind, rng.integers(0, 3, n))
    second = np.where(rng.random(n) < 0.6, kind + 1, rng.integers(0, 4, n))
    third = np.where(rng.random(n) < 0.2 + 0.4 * (first == 0), 1, rng.choice(3, n, p=[0.4, 0.2, 0.4]))
    return [first, second, third]


def hidden(rng: np.random.Generator, codes: np.ndarray, d: int) -> Axis:
    """Sets of two, the other member by chance."""
    other = (codes + rng.integers(1, d, len(codes))) % d
    sets = np.sort(np.stack([codes, other], axis=1), axis=1)
    different, cell = np.unique(sets, axis=0, return_inverse=True)
    return Axis("x", d, cell.reshape(-1), different, np.ones((len(different), 2)))


def known(codes: np.ndarray, d: int) -> Axis:
    return Axis("x", d, codes, np.arange(d)[:, None], np.ones((d, 1)))


def asked(codes: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Shares of values and of pairs of values, and two log odds ratios, with the variances of a complete table."""
    n = len(codes[0])
    hits = [code == v for code, d in zip(codes, SIZES, strict=True) for v in range(d)]
    hits += [(codes[0] == v) & (codes[1] == w) for v in range(3) for w in range(4)]
    shares = np.array([hit.mean() for hit in hits])
    odds, spread = [], []
    for x, y in ((codes[0] == 0, codes[2] == 1), (codes[1] == 1, codes[0] == 0)):
        cells = np.array([(x & y).sum(), (x & ~y).sum(), (~x & y).sum(), (~x & ~y).sum()]) + 0.5
        odds.append(np.log(cells[0] * cells[3] / cells[1] / cells[2]))
        spread.append((1 / cells).sum())
    return np.concatenate([shares, odds]), np.concatenate([shares * (1 - shares) / n, spread])


def test_pooled_intervals_cover_the_population():
    """95% intervals cover nine truths of ten and more in each kind of question, over 30 seeded tables."""
    truth, rng, inside = asked(codes_of(np.random.default_rng(1), 1_000_000))[0], np.random.default_rng(2), []
    for _ in range(30):
        axes = [hidden(rng, code, d) for code, d in zip(codes_of(rng, 1200), SIZES, strict=True)]
        assert is_enough(axes)
        model = Pairs(axes)
        pooled = pool(asked(model.draw(rng)) for _ in range(8))
        inside.append((pooled.low <= truth) & (truth <= pooled.high))
    found = np.array(inside)
    for questions in (slice(0, 10), slice(10, 22), slice(22, 24)):
        assert found[:, questions].mean() >= 0.9


def test_known_cells_stay_and_their_pairs_are_fitted_exactly():
    codes = codes_of(np.random.default_rng(3), 800)
    model = Pairs([known(code, d) for code, d in zip(codes, SIZES, strict=True)])
    for drawn, code in zip(model.draw(np.random.default_rng(4)), codes, strict=True):
        assert np.array_equal(drawn, code)
    full = np.zeros(SIZES)
    np.add.at(full, tuple(codes), 1.0)
    for gone in range(3):
        assert model.table.sum(axis=gone) == pytest.approx(full.sum(axis=gone), abs=0.5)


def test_drawn_values_are_members_and_never_what_cannot_be():
    rng = np.random.default_rng(5)
    codes = codes_of(rng, 1000)
    codes[1][(codes[0] == 0) & (codes[1] == 3)] = 1
    axes = [hidden(rng, code, d) for code, d in zip(codes, SIZES, strict=True)]
    drawn = Pairs(axes, [{0: 0, 1: 3}]).draw(rng)
    for axis, values in zip(axes, drawn, strict=True):
        assert (axis.value[axis.cell] == values[:, None]).any(axis=1).all()
    assert not ((drawn[0] == 0) & (drawn[1] == 3)).any()


def test_what_is_enough_of_every_pair():
    """Sets of two of three values tell a quarter of a value, of two of four a third: a twelfth of a record for twelve
    pairs of values, hence 4 * 12 * 12 records."""
    rng = np.random.default_rng(6)
    for n, enough in ((575, False), (577, True)):
        axes = [hidden(rng, rng.integers(0, d, n), d) for d in (3, 4)]
        assert axes[0].information() == pytest.approx(1 / 4)
        assert axes[1].information() == pytest.approx(1 / 3)
        assert is_enough(axes) is enough
    assert known(np.zeros(3, np.int64), 5).information() == pytest.approx(1.0)
    assert not is_enough(axes[:1])


def released(n: int) -> nr.Release:
    rng = np.random.default_rng(7)
    columns = {name: [f"{name}{v}" for v in code] for name, code in zip("abc", codes_of(rng, n), strict=True)}
    diverse = nr.models.FrequencyLDiversity(on=["a", "b", "c"], l=2)
    policy = nr.Policy(attributes=dict.fromkeys("abc", "sensitive"), require=[diverse], dependence={"most": 1.0})
    return nr.anonymize(pl.DataFrame(columns), policy)


def test_tables_say_what_they_are_good_for():
    """The label goes where pairs are told well enough, and stays elsewhere."""
    much, little = released(1500), released(120)
    rich, poor = much.impute(m=2, seed=1), little.impute(m=2, seed=1)
    assert (rich.model, rich.holds, poor.model, poor.holds) == ("pairs", True, "mixture", False)
    for made, label in ((rich, False), (poor, True)):
        pooled = made.pool(lambda table: ((table["a"] == "a0").mean(), 0.25 / table.height))
        for text in (repr(made), repr(pooled), made.to_dict()["good_for"], str(made.plot().to_dict())):
            assert ("not for inference" in text) is label
    assert much.impute(m=2, seed=1, model="mixture").model == "mixture"
    with pytest.raises(QueryError, match="too little"):
        little.impute(m=2, model="pairs")
    with pytest.raises(QueryError, match="no model 'other'"):
        much.impute(m=2, model="other")
