"""What a holder is told about values that few people share."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from noren.policy.policy import Policy
from noren.workflow.anonymize import run

N = 120
TABLE = pl.DataFrame(
    {
        "town": ["Lund" if i < 3 else f"town {i % 4}" for i in range(N)],
        "ill": ["gout" if i > N - 4 else f"ill {i % 5}" for i in range(N)],
        "note": ["seldom" if i == 7 else "often" for i in range(N)],
    }
)


def told(method: str, **more: Any) -> set[str]:
    """The columns whose rare values are spoken of."""
    attributes = {"town": "quasi-identifier", "ill": {"role": "sensitive"} | more, "note": "plain"}
    rules = Policy(
        attributes=attributes,
        require=[{"model": "frequency-l-diversity", "on": "ill", "l": 2}],
        method={"name": method},
        dependence={"most": 1},
    )
    notes = run(TABLE, rules).facts.notes
    return {note.split(":")[0] for note in notes if "with fewer than five records" in note}


@pytest.mark.parametrize(("method", "columns"), [("decoys", {"ill"}), ("mondrian", {"town", "ill"})])
def test_rare_values_of_a_published_domain(method, columns):
    assert told(method) == columns


def test_declared_values_are_no_secret():
    values = ["gout", *(f"ill {i}" for i in range(5))]
    assert told("mondrian", values=values) == {"town"}
