"""docs/protection.md, "Several releases": 14 values and l = 5, how often the truth alone survives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import attack

DOCS = Path(__file__).parents[2] / "docs" / "protection.md"


def documented() -> dict[int, float]:
    """The table of the documentation: releases and share of records."""
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| releases |"))
    head, shares = ([part.strip() for part in lines[i].strip("|").split("|")][1:] for i in (start, start + 2))
    return {int(many): float(share.rstrip("%")) / 100 for many, share in zip(head, shares, strict=True)}


def test_the_simulation_reproduces_the_documented_shares() -> None:
    written = documented()
    assert written == {1: 0.0, 2: 0.18, 3: 0.66, 4: 0.89, 5: 0.96}
    codes = np.random.default_rng(0).integers(0, 14, 2_000)
    policy = nr.Policy(
        attributes={"ill": "sensitive"}, require=[{"model": "frequency-l-diversity", "on": "ill", "l": 5}]
    )
    (found,) = attack(nr.anonymize(pl.DataFrame({"ill": codes.astype(str)}), policy), "intersection")
    assert found.scenario("again-1").summary["alone"] == written.pop(1)
    for many, share in written.items():
        low, high = found.scenario(f"again-{many}").bounds["alone"]
        # the documentation rounds to whole percent, and a 95% interval may miss: twice its width is enough
        room = 0.005 + (high - low) / 2
        assert low - room < share < high + room
        assert found.scenario(f"again-{many}").summary["alone"] == pytest.approx(share, abs=0.02)
