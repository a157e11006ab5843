"""What noised margins do to an estimate: which counts may be negative, and from how many cells on they judge it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from noren.estimates.counts.tabulate import Tabulation
from noren.release.noised import Margins, NoisedTable


def put(method: str, counts: Any, centre: Any, margin: Any, n: float = 1000.0) -> Tabulation:
    """A table whose unbiased estimates have a variance of 4, with a margin whose noise has the same."""
    made, unbiased = np.asarray(counts, np.float64), np.asarray(centre, np.float64)
    size = len(made)
    table = Tabulation(
        made,
        np.full(size, 2.0),
        made - 4,
        made + 4,
        method,
        np.full(size, "linear"),
        None,
        "",
        {},
        unbiased,
        np.full(size, 4.0),
    )
    noised = NoisedTable(("ill",), np.asarray(margin, np.float64), 4.0, 1.0)
    whole = [(noised, noised.folded({"ill": (np.arange(size), size)}))]
    return Margins(whole, []).put_into(table, 0.95, n, sampled=0)


@pytest.mark.parametrize("method", ["linear", "semantic-linear", "uniform-linear"])
def test_unbiased_counts_may_be_negative_and_their_intervals_not(method: str) -> None:
    found = put(method, [0.0, 30.0], [-12.0, 30.0], [-8.0, 34.0])
    assert found.counts.tolist() == pytest.approx([-10, 32])  # halfway, for both are as sure
    assert (found.low[0], found.high[0]) == (0, 0)


def test_other_counts_lie_between_nothing_and_everybody_and_in_their_intervals() -> None:
    found = put("likelihood", [0.0, 30.0], [-12.0, 30.0], [-8.0, 34.0], n=31.0)
    assert found.counts.tolist() == pytest.approx([0, 31])
    assert (found.low <= found.counts).all()
    assert (found.counts <= found.high).all()


@pytest.mark.parametrize(("cells", "method", "count"), [(7, "likelihood", 15), (8, "likelihood", 20), (8, "other", 15)])
def test_few_cells_do_not_tell_how_wrong_an_estimate_is(cells: int, method: str, count: float) -> None:
    """The likelihood says 20, as the margin does, so that it cannot be very wrong; the unbiased estimate says 10."""
    found = put(method, [20.0] * cells, [10.0] * cells, [20.0] * cells)
    assert found.counts.tolist() == pytest.approx([count] * cells)
