"""Folds of records that are held out, and where a walk of EM stops."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.held_out import (
    DRAWN,
    ROOM,
    Held,
    Outset,
    folds_of,
    independent,
    search,
    single_columns,
)
from noren.estimates.counts.tuples import Tuples
from noren.statements import SetCells

SHAPE = (12, 10)


@pytest.fixture(scope="module")
def records() -> Tuples:
    """Two columns that know of each other."""
    rng, axes = np.random.default_rng(11), []
    first = rng.integers(0, SHAPE[0], 4_000)
    second = np.where(rng.random(4_000) < 0.5, first % SHAPE[1], rng.integers(0, SHAPE[1], 4_000))
    for code, d, eta in ((first, 12, 3), (second, 10, 2)):
        keys = rng.random((len(code), d))
        keys[np.arange(len(code)), code] = -1.0
        sets = np.argpartition(keys, eta - 1, axis=1)[:, :eta]
        axes.append(Axis.drawn(f"c{d}", SetCells.from_codes(d, sets), DecoyDesign(d=d, eta=eta)))
    return prepare(axes).tuples


def test_a_walk_stops_at_the_earliest_step_within_half_a_nat_of_the_best(records: Tuples) -> None:
    held = folds_of(records.counts)
    outset = Outset.of(records, held, *independent(single_columns(records, held, DRAWN.tolerance)))
    found = search(records, held, outset, DRAWN, 2000)
    near = [step for step, score in enumerate(found.curve) if score >= max(found.curve) - ROOM]
    assert 0 < found.best == near[0] < len(found.curve) - 1


def test_no_fold_sees_its_held_out_records(records: Tuples) -> None:
    held = folds_of(records.counts)
    x = np.random.default_rng(0).gamma(1.0, 1.0, (*records.shape, 4))
    found = records.fold_pass(x, held)[0]
    for f in range(4):
        part = Tuples(records.rows, records.shape, records.order, records.ids, records.counts - held.counts[:, f])
        np.testing.assert_allclose(found[..., f], part.em_pass(x[..., f])[0], rtol=1e-9)


def test_all_records_go_on_as_four_thirds_ask_for_and_take_a_plain_step(records: Tuples) -> None:
    held = folds_of(records.counts)
    outset = Outset.of(records, held, *independent(single_columns(records, held, DRAWN.tolerance)))
    found = search(records, held, outset, DRAWN, 2000)
    once = search(records, held, outset, DRAWN, 1)
    assert once.best == 0
    np.testing.assert_allclose(once.table, outset.table * records.em_pass(outset.table)[0])
    assert found.passes > len(found.curve) + 1
    assert found.table.sum() == pytest.approx(4_000)


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
