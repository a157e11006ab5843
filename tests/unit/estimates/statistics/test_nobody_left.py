"""Questions that leave nobody: an answer of nobody or a clear error, never a warning of an empty mean."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

import noren as nr

HERE = {"sex": "F", "town": "north"}
"""Both values occur, never together."""


@cache
def release() -> nr.Release:
    frame = pl.DataFrame(
        {
            "sex": ["F", "M"] * 40,
            "town": ["south", "north"] * 40,
            "pay": [1, 2, 3, 4] * 20,
            "trade": ["smith", "baker", "baker", "smith", "miller"] * 16,
            "wt": [1.0, 2.0, 0.5, 1.5] * 20,
        }
    )
    roles = {"sex": "plain", "town": "plain", "pay": "sensitive", "trade": "sensitive", "wt": nr.plain(weight=True)}
    require = [nr.models.FrequencyLDiversity(on=["pay", "trade"], l=2)]
    return nr.anonymize(frame, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("estimator", [None, "bayes", "likelihood", "linear"])
@pytest.mark.parametrize("by", [["trade"], ["pay", "trade"], ["sex"], ["sex", "trade"]])
def test_nobody_left_counts_nobody(by: list[str], estimator: str | None, weighted: bool) -> None:
    found = release().estimate(by, where=HERE, estimator=estimator, weighted=weighted)
    assert found.frame["count"].abs().sum() == pytest.approx(0, abs=1e-9)
