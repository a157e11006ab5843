"""What a text asks for: a share of one value, a member of a composite, groups that have no numbers."""

from __future__ import annotations

from math import inf
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError
from noren.release.gathered import _share

PEOPLE = pl.DataFrame(
    {
        "sex": ["f", "m", "m", "m"] * 6,
        "town": ["Ulm", "Bonn"] * 12,
        "pay": [float(i % 8) for i in range(24)],
        "a=b": ["c", "d", "d"] * 8,
    }
)
OPEN = {"role": "plain", "bins": [0, 4, inf]}


@pytest.fixture(scope="module")
def release() -> nr.Release:
    roles: dict[str, Any] = dict.fromkeys(PEOPLE.columns, "plain") | {"pay": OPEN}
    return nr.anonymize(PEOPLE, nr.Policy(attributes=roles))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("town", None),
        ("town=Ulm", ("town", "Ulm")),
        ("town=Ulm=2", ("town", "Ulm=2")),
        ("town=", ("town", "")),
        ("a=b", None),
        ("a=b=c", ("a=b", "c")),
        ("a=c", None),
        ("other=Ulm", None),
    ],
)
def test_a_share_is_of_a_column_and_a_value(text: str, share: tuple[str, str] | None) -> None:
    assert _share(text, {"town": 0, "a=b": 0}) == share


def test_shares_are_means(release: nr.Release) -> None:
    assert release.mean("sex=f").frame["mean"].to_list() == pytest.approx([1 / 4])
    assert release.mean("a=b=d").frame["mean"].to_list() == pytest.approx([2 / 3])


def test_an_open_interval_is_a_group_and_needs_no_middle(release: nr.Release) -> None:
    found = release.mean("sex=f", by="pay").frame
    expected = [
        PEOPLE.filter(some)["sex"].eq("f").sum() / PEOPLE.filter(some).height
        for some in (pl.col("pay") < 4, pl.col("pay") >= 4)
    ]
    assert found["mean"].to_list() == pytest.approx(expected)


def test_numbers_that_are_given_must_fit(release: nr.Release) -> None:
    low, high = release.column("pay").domain.values
    half = PEOPLE.filter(pl.col("pay") < 4).height / 24
    given = release.mean("pay", values={"pay": {low: 1.0, high: 5.0}})
    assert given.frame["mean"].to_list() == pytest.approx([1 * half + 5 * (1 - half)])
    assert given.notes == ("Values of 'pay' stand for the numbers given.",)
    with pytest.raises(QueryError, match="pay"):
        release.mean("sex=f", by="pay", values={"pay": {"nothing": 1.0}})


def test_conditions_on_one_column_hold_together(release: nr.Release) -> None:
    assert release.mean("sex=f", where={"town": "Ulm"}).records == 12
    with pytest.raises(QueryError, match="no record meets the conditions"):
        release.mean("sex=f", where={"sex": "f", "town": "Bonn"})


def test_a_column_that_lists_no_values_can_be_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.table.profile.OPEN_LIMIT", 3)
    table = pl.DataFrame({"note": ["a", "b", "c", "d", "d", None], "town": ["u", "v"] * 3})
    release = nr.anonymize(table, nr.Policy(attributes={"note": "plain", "town": "plain"}))
    assert release.column("note").column.is_open
    assert release.count({"note": ["a", "d"]}).count == 3
    assert release.estimate("note", where={"town": "v"}).frame["count"].to_list() == [0, 1, 0, 1, 1]
    assert release.mean("town=u", where={"note": "d"}).frame["mean"].to_list() == pytest.approx([1 / 2])
