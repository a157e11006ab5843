"""A missing cell beside declared values in order: as far from all of them as any two are, for verification too."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr

GRADES = [f"g{i}" for i in range(8)]


@pytest.mark.parametrize(
    "declared", [{"values": GRADES}, {"bins": list(range(0, 90, 10))}, {}], ids=["values", "bins", "data"]
)
def test_a_release_with_missing_cells_is_verified_with_its_policy(declared):
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 8, 400)
    cells = [GRADES[c] if "values" in declared else int(c) * 10 + 3 for c in codes]
    table = pl.DataFrame({"grade": [None if i % 20 == 3 else cell for i, cell in enumerate(cells)]})
    column = {"role": "sensitive", "distance": "ordinal", "missing": "category", **declared}
    asked = nr.models.SemanticDiversity(on="grade", l=3, d=2, most=0.6)
    policy = nr.Policy(attributes={"grade": column}, require=[asked])
    release = nr.anonymize(table, policy)
    assert "(missing)" in release.column("grade").domain.values
    assert all(verdict.holds for verdict in nr.verify(release, policy, original=table))
