"""The worked examples of paper 002: diversity that leaves quasi-identifiers bare, and what Anatomy's groups tell.

Source: tables 5 to 7 of the paper and the text beside them.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.tabulate import tabulate
from noren.models import Evidence, FrequencyLDiversity
from noren.schema.roles import Role
from noren.statements import CodeCells, GroupTable
from tests.statements import exact_column, group_column

TABLE_5 = pl.DataFrame(
    {
        "gender": ["M", "M", "M", "M"],
        "age": [31, 31, 52, 52],
        "address": ["13000", "13000", "13021", "13021"],
        "job": ["Artist", "Artist", "Writer", "Writer"],
        "disease": ["Fever", "Sty", "Cancer", "HIV"],
    }
)
QUASI = ["gender", "age", "address", "job"]
MEN = np.array([0, 0, 0, 0, 1, 1, 1, 1])
ILL = np.array([0, 0, 0, 1, 1, 2, 2, 2])
"""Table 6, in its order: men then women; Cancer, Cold, Cut."""
GROUP = np.array([1, 3, 0, 2, 3, 2, 0, 1])
"""Table 7 (a), groups counted from 0."""
MEMBERS = np.array([[0, 2], [0, 2], [1, 2], [0, 1]])
"""Table 7 (b)."""


def test_table_5_is_two_diverse_as_it_stands_so_nothing_protects_its_quasi_identifiers() -> None:
    found = nr.measure(TABLE_5, quasi=QUASI, sensitive=["disease"])
    assert found.value("k-anonymity") == 2
    assert found.value("frequency-l-diversity", "disease") == 2
    roles = {**dict.fromkeys(QUASI, "quasi-identifier"), "disease": "sensitive"}
    policy = nr.Policy(
        attributes=roles,
        require=[FrequencyLDiversity(l=2, on=["disease"])],
        method={"name": "mondrian", "blind": False},
        people={"rows": "independent"},
        dependence={"most": 1.0},
        mechanism="ignored",  # a table of few people
    )
    cells = nr.anonymize(TABLE_5, policy).frame()
    assert {tuple(map(str, row)) for row in cells.select(QUASI).iter_rows()} == {
        tuple(map(str, row)) for row in TABLE_5.select(QUASI).iter_rows()
    }


def anatomised() -> GroupTable:
    return GroupTable.from_codes(4, 3, np.repeat(np.arange(4), 2), MEMBERS.ravel())


def test_table_7_holds_everybody_of_table_6_in_two_diverse_groups() -> None:
    assert all(ill in MEMBERS[group] for ill, group in zip(ILL, GROUP, strict=True))
    assert np.array_equal(np.bincount(MEMBERS.ravel()), np.bincount(ILL))
    columns = {
        "gender": exact_column("gender", 2, role=Role.QUASI_IDENTIFIER),
        "ill": group_column("ill", 3, groups=anatomised(), role=Role.SENSITIVE),
    }
    (check,) = FrequencyLDiversity(l=2, on=["ill"]).checks(Evidence(columns, {}))
    check.observe({"gender": CodeCells(2, MEN), "ill": CodeCells(4, GROUP)})
    verdict = check.verdict()
    assert verdict.holds
    assert verdict.achieved == 2


@pytest.mark.parametrize("sex", [0, 1])
def test_table_7_tells_three_eighths_of_cancer_for_men_and_women_alike(sex: int) -> None:
    """The text: 3 of 4 men have cancer and no woman, yet groups spread evenly say 3/8 of either."""
    ill = Axis("ill", group_column("ill", 3, groups=anatomised()), CodeCells(4, GROUP), None)
    found = tabulate([Axis.exact("gender", MEN, 2), ill], "spread").counts
    assert found[sex, 0] / found[sex].sum() == pytest.approx(3 / 8)
    assert np.bincount(ILL[sex == MEN], minlength=3)[0] / 4 == (3 / 4, 0)[sex]
