"""Records of tight classes lie between evenly and as all records do."""

from __future__ import annotations

import numpy as np
import pytest

from noren.estimates.counts.axes import Axis, Classes
from noren.estimates.counts.rows import Reading, class_aware
from noren.estimates.counts.tabulate import tabulate
from noren.methods.cover import cover
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import CodeCells, NodeStatement


def axis_of(truth: np.ndarray, classes: np.ndarray, ordered: bool = False) -> Axis:
    """A column of tight classes that lie along a line in the order of their numbers."""
    d = int(truth.max()) + 1
    domain = Domain(tuple(map(str, range(10, 10 + d))), "integer" if ordered else "string")
    column = Column(role=Role.QUASI_IDENTIFIER).over("v", domain)
    change = cover(column, truth, classes, int(classes.max()) + 1)
    sizes = np.bincount(classes)
    known = Classes(classes, sizes)
    return Axis("v", NodeStatement(column, change.nodes, change.tight), CodeCells(len(change.nodes), change.data),
                classes=known)  # fmt: skip


def error(axis: Axis, truth: np.ndarray) -> float:
    return float(np.abs(tabulate([axis]).counts - np.bincount(truth, minlength=axis.d)).sum())


def test_values_strewn_among_others_follow_the_shares() -> None:
    rng = np.random.default_rng(7)
    truth = rng.choice(4, 4000, p=[0.9, 0.06, 0.03, 0.01])
    axis = axis_of(truth, np.arange(4000) // 8)
    assert error(axis, truth) < 0.5 * np.abs(tabulate([axis], "spread").counts - np.bincount(truth, minlength=4)).sum()


def test_intervals_with_gaps_and_the_reading_keeps_every_record() -> None:
    rng = np.random.default_rng(2)
    truth = np.sort(np.minimum(rng.geometric(0.05, 600), 70))
    axis = axis_of(truth, np.arange(600) // 5, ordered=True)
    found = class_aware(Reading.of(axis))
    assert found.fitted is not None
    assert found.fitted.sum() == pytest.approx(600)
