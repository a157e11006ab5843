"""Where the search for a single column starts: near its maximum, or from even shares if the way there breaks off."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts.fit import converge
from noren.estimates.counts.raking import MAX_MARGIN_STEPS, nearer
from noren.estimates.counts.tuples import Tuples

D, N, CLOSE = 30, 4_000, 1e-6


def drawn(seed: int) -> Tuples:
    """Sets of two of thirty values, the commonest eleven times as common as the rarest."""
    rng = np.random.default_rng(seed)
    shares = np.exp(-np.arange(D) / 12.0)
    code = rng.choice(D, N, p=shares / shares.sum())
    keys = rng.random((N, D))
    keys[np.arange(N), code] = -1
    sets = np.sort(np.argpartition(keys, 1, axis=1)[:, :2], axis=1).astype(np.int32)
    distinct, number = np.unique(sets, axis=0, return_inverse=True)
    return Tuples.single(DecoyDesign(d=D, eta=2), distinct, np.bincount(number.ravel()).astype(np.float64))


def even() -> NDArray[np.float64]:
    return np.full((1, D), N / D)


@pytest.mark.parametrize("seed", range(3))
def test_from_much_the_same_records_the_start_is_the_maximum(seed: int) -> None:
    """What EM finds in many steps Newton finds in a few, from a tenth away."""
    one = drawn(seed)
    top = converge(one, even(), CLOSE, 100 * MAX_MARGIN_STEPS).table
    near = top.reshape(1, D) * np.random.default_rng(seed).uniform(0.9, 1.1, D)
    start = nearer(one, near, even(), CLOSE)
    assert not np.array_equal(start, even())
    assert np.abs(start - top.reshape(1, D)).max() < 0.01


def test_where_the_equations_cannot_be_solved_shares_are_even(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **more: object) -> None:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    one = drawn(1)
    near = converge(one, even(), CLOSE, MAX_MARGIN_STEPS).table.reshape(1, D)
    monkeypatch.setattr(np.linalg, "eigh", fails)
    assert np.array_equal(nearer(one, near, even(), CLOSE), even())
