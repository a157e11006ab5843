"""The worked examples of the papers that named the attacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from noren.audit import attack
from noren.release.release import Release
from noren.schema.roles import Role
from noren.statements import CodeCells
from tests.unit.audit.world import assembled, keys, stated


def published(where: Sequence[int], held: Sequence[str], values: Sequence[str], **more: Any) -> Release:
    """Classes by number, and a sensitive column as it is."""
    entry, cells = keys(where)
    column = stated("secret", Role.SENSITIVE, "exact", values=tuple(values), **more)
    codes = np.array([list(values).index(value) for value in held])
    return assembled([entry, column], {"where": cells, "secret": CodeCells(len(values), codes)})


def rows_of(release: Release, name: str, **options: Any) -> Any:
    (found,) = attack(release, name, **options)
    return found.scenario("release-rows")


def test_inpatients() -> None:
    """Machanavajjhala et al. 2007, Figure 2: the last of three classes of four has cancer alone."""
    held = ["Heart Disease"] * 2 + ["Viral Infection"] * 2
    held += ["Cancer", "Heart Disease"] + ["Viral Infection"] * 2 + ["Cancer"] * 4
    release = published([0] * 4 + [1] * 4 + [2] * 4, held, ("Cancer", "Heart Disease", "Viral Infection"))
    rows = rows_of(release, "homogeneity")
    assert rows.summary["certain"] == pytest.approx(4 / 12)
    assert rows.frame.tail(4)["value"].to_list() == ["Cancer"] * 4
    # who knows that Umeko (first class) has no heart disease is left with one condition; negative disclosure is that
    # cancer is ruled out for her already
    assert rows_of(release, "disclosure").frame["excluded"].to_list() == [1] * 4 + [0] * 4 + [2] * 4


STOMACH, LUNGS = "stomach", "respiratory"
DISEASES = {
    "gastric ulcer": STOMACH, "gastritis": STOMACH, "stomach cancer": STOMACH,
    "flu": LUNGS, "bronchitis": LUNGS, "pneumonia": LUNGS,
}  # fmt: skip
PATIENTS = ["gastric ulcer", "gastritis", "stomach cancer", "gastritis", "flu", "bronchitis"]
PATIENTS += ["bronchitis", "pneumonia", "stomach cancer"]
CLASSES = [0] * 3 + [1] * 3 + [2] * 3


def test_similar_diseases() -> None:
    """Li et al. 2007, Table 4: a 3-diverse class of which all know that it is the stomach."""
    tree = (tuple(DISEASES), tuple(DISEASES.values()), ("*",) * 6)
    release = published(CLASSES, PATIENTS, tuple(DISEASES), hierarchy=tree)
    rows = rows_of(release, "similarity")
    assert rows.frame["meaning"].to_list() == [STOMACH] * 3 + [LUNGS] * 6
    assert rows.frame["belief"].to_list() == pytest.approx([1.0] * 3 + [2 / 3] * 6)
    assert rows.frame["level"].to_list() == [1] * 3 + [2] * 6
    assert rows.summary["certain_value"] == 0.0


def test_similar_salaries() -> None:
    """The same table's salaries in thousands, 3 to 11: the first class lies between 3 and 5."""
    salaries = ["3", "4", "5", "6", "11", "8", "7", "9", "10"]
    release = published(CLASSES, salaries, tuple(map(str, range(3, 12))), kind="integer")
    rows = rows_of(release, "similarity", widths=(0.25,))
    assert rows.frame["meaning"].to_list()[:3] == ["3"] * 3
    assert rows.frame["belief"].to_list() == pytest.approx([1.0] * 3 + [2 / 3] * 6)


def test_skewed_tests() -> None:
    """Li et al. 2007, section 3.2: 1 % of 10,000 are positive, and a class of 50 has 49 of them."""
    where = [0] * 50 + [1] * 9950
    held = ["positive"] * 49 + ["negative"] + ["positive"] * 51 + ["negative"] * 9899
    rows = rows_of(published(where, held, ("positive", "negative")), "homogeneity")
    assert rows.frame["belief"][0] == pytest.approx(0.98)
    assert rows.frame["ratio"][0] == pytest.approx(98)
    disclosed = rows_of(published(where, held, ("positive", "negative")), "disclosure")
    assert disclosed.frame["positive"].to_list() == [True] * 50 + [False] * 9950
    assert disclosed.frame["downward"].to_list() == [True] * 50 + [False] * 9950
