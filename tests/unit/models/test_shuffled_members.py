"""Rows of several shuffled secrets: they agree in a member of another set, or in an exact value."""

from __future__ import annotations

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.models.set_check import _alike, count_compatible
from noren.statements import CodeCells
from tests.statements import exact_column, member_column


@pytest.mark.parametrize("eta", [2, 3])
def test_rows_agree_in_the_member_that_they_show(eta: int) -> None:
    codes = np.array([0, 3, 3, 1])
    batch = {"a": CodeCells(4, codes), "b": CodeCells(4, codes)}
    assert _alike(member_column("a", 4, DecoyDesign(d=4, eta=eta)), batch).tolist() == codes.tolist()
    assert _alike(exact_column("b", 4), batch).tolist() == codes.tolist()


@pytest.mark.parametrize(
    ("values", "enough", "found"),
    [
        ([0, 2, 4], 3, 3),
        ([0, 2, 4], 2, 2),
        ([0, 1, 4], 3, 2),
        ([0, 1], 2, 1),
        ([0, 2, 4, 5], 3, 3),
        ([3], 1, 1),
        ([], 2, 0),
    ],
)
def test_the_largest_set_of_values_two_apart_that_everyone_belongs_to(
    values: list[int], enough: int, found: int
) -> None:
    apart = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) >= 2
    assert count_compatible(values, apart, enough) == found
