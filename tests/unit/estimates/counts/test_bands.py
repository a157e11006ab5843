"""Slots of very different sizes have stops of their own, and nothing else changes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.designs import DecoyDesign
from noren.estimates.counts import raking
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import Frame, prepare
from noren.estimates.counts.raking import FAR_FEWER, LEAST_OF_BAND, bands_of, restricted
from noren.statements import SetCells


def released(rng: np.random.Generator, slot: np.ndarray, codes: np.ndarray, d: int, eta: int) -> Frame:
    keys = rng.random((len(codes), d))
    keys[np.arange(len(codes)), codes] = -1
    cells = SetCells.from_codes(d, np.argsort(keys, axis=1)[:, :eta])
    return prepare([Axis.exact("slot", slot, int(slot.max()) + 1), Axis.drawn("v", cells, DecoyDesign(d=d, eta=eta))])


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=40))
def test_bands_are_a_partition_by_size(records):
    counts = np.array(records, float)
    found = bands_of(counts)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(records)))
    for band in found:
        assert band.tolist() == sorted(band)
        assert len(found) == 1 or counts[band].sum() >= LEAST_OF_BAND
    for larger, smaller in pairwise(found):
        assert counts[larger].min() >= counts[smaller].max()
        assert counts[smaller].max() * FAR_FEWER < counts[larger].max()


def test_where_a_band_begins():
    assert [band.tolist() for band in bands_of(np.array([100.0, 8_001.0, 1_000.0]))] == [[1], [0, 2]]
    assert [band.tolist() for band in bands_of(np.array([1_000.0, 8_000.0]))] == [[0, 1]], "not more than eight times"
    assert len(bands_of(np.array([10_000.0, 150.0, 50.0]))) == 2
    assert len(bands_of(np.array([10_000.0, 150.0, 49.0]))) == 1, "too few records to choose a stop by"
    assert len(bands_of(np.array([199.0, 2.0, 1.0] + [1.0] * 400))) == 2, "the first band is filled to 200 records"
    assert bands_of(np.zeros(3))[0].tolist() == [0, 1, 2]


def test_the_tuples_of_some_slots_are_those_of_their_records():
    rng = np.random.default_rng(3)
    slot, codes = rng.integers(0, 5, 3_000), rng.integers(0, 7, 3_000)
    whole = released(rng, slot, codes, 7, 2)
    kept = np.array([1, 4])
    part, rows = restricted(whole.tuples, kept)
    x = rng.random(whole.shape)
    acc, sums, _ = whole.tuples.em_pass(x)
    own, some, _ = part.em_pass(x[kept])
    np.testing.assert_allclose(own, acc[kept])
    np.testing.assert_allclose(some, sums[rows])
    assert part.counts.sum() == np.isin(slot, kept).sum()
    assert part.shape == (2, 7)


@pytest.mark.parametrize("seed", range(2))
def test_small_classes_do_not_stop_a_large_one(seed):
    """One class of 20,000 whose law is far from that of 30 others with 100 records each: with one stop for all its
    squared error is larger, over draws that chose nothing."""
    rng = np.random.default_rng([17, seed])
    d, before, now = 12, 0.0, 0.0
    for _ in range(3):
        base = rng.dirichlet(np.full(d, 3.0))
        laws = np.stack([rng.dirichlet(base * 15), *(rng.dirichlet(base * 400) for _ in range(30))])
        slot = np.repeat(np.arange(31), [20_000] + [100] * 30)
        codes = (rng.random(len(slot))[:, None] > laws.cumsum(axis=1)[slot]).sum(axis=1).clip(0, d - 1)
        frame = released(rng, slot, codes, d, 4)
        truth = np.bincount(codes[slot == 0], minlength=d)
        now += float(np.square(fit(frame).table[0] - truth).sum())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(raking, "FAR_FEWER", np.inf)
            before += float(np.square(fit(frame).table[0] - truth).sum())
    assert now < before


def test_each_band_keeps_its_records_and_the_margins_agree():
    rng = np.random.default_rng(5)
    slot = np.repeat(np.arange(3), [9_000, 600, 400])
    codes = rng.integers(0, 6, len(slot))
    frame = released(rng, slot, codes, 6, 2)
    found = fit(frame)
    np.testing.assert_allclose(found.table.sum(axis=1), [9_000, 600, 400], rtol=1e-6)
    assert found.diagnostics["stops"] == 2
