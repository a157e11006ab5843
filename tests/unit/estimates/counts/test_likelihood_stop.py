"""Where the likelihood stops: the table's own counts, and no overflow after a long step."""

from __future__ import annotations

import numpy as np

from noren.designs.decoys import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import prepare
from noren.estimates.counts.tuples import Ascent
from noren.secret import Keystream


def test_small_slices_keep_what_their_own_sets_say() -> None:
    """Many small groups whose values are alike in the population: held-out records favour the pooled distribution, and
    yet nearly every group's own counts can be read off its sets."""
    rng = np.random.default_rng(4)
    groups, values, records = 60, 40, 3000
    group = rng.integers(0, groups, records)
    value = rng.integers(0, values, records)
    design = DecoyDesign(d=values, eta=2)
    frame = prepare(
        [
            Axis.exact("group", group.astype(np.uint8), groups),
            Axis.drawn("value", design.draw(value, Keystream(), attribute="value"), design),
        ]
    )
    truth = np.zeros((groups, values))
    np.add.at(truth, (group, value), 1)
    found = fit(frame)
    assert found.iterations >= 1
    np.testing.assert_allclose(found.table.sum(axis=1), truth.sum(axis=1), rtol=1e-9)
    pooled = np.outer(truth.sum(axis=1), truth.sum(axis=0)) / records
    assert np.square(found.table - truth).mean() < 0.6 * np.square(pooled - truth).mean()


def test_a_long_step_to_nothing_does_not_overflow() -> None:
    """A path along which one cell falls ever faster is extrapolated far below the smallest number."""
    least: list[float] = []

    walk = Ascent(np.array([1.0, 1.0]), 1e-6, 8)
    while not walk.has_ended:
        least.append(float(walk.x.min()))
        following = walk.x * np.array([1.0, 1e-30 if len(least) == 1 else 1e-29])
        walk.take(following * (walk.x.sum() / following.sum()), float(len(least)))
    x = walk.x
    assert np.isfinite(x).all()
    with np.errstate(all="raise"):
        assert np.isfinite(1 / np.array(least[3:4])).all(), "after the long step every cell can still be divided by"
