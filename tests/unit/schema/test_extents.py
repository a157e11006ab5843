"""Where labels of the calendar begin and end, up to its last day, which often stands for "until further notice"."""

from __future__ import annotations

from datetime import date, timedelta
from math import inf
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.estimates.counts.query import allowed_values
from noren.schema.column import Column
from noren.schema.domain import Domain, bin_labels
from noren.schema.extents import Ends, after, ends_of
from noren.schema.roles import Role

LAST = date.max.toordinal()


@pytest.mark.parametrize(
    ("label", "first"),
    [
        ("9999-12", date(9999, 12, 1)),
        ("9999-Q4", date(9999, 10, 1)),
        ("9999-W52", date(9999, 12, 27)),
        ("9999", date(9999, 1, 1)),
        ("9990s", date(9990, 1, 1)),
    ],
)
def test_the_last_spans_of_the_calendar_have_no_end(label: str, first: date) -> None:
    assert ends_of(label, "date") == Ends(float(first.toordinal()), inf)


def test_nothing_follows_the_last_day() -> None:
    assert after(LAST, "date") == inf
    assert after(LAST - 1, "date") == LAST
    assert bin_labels((LAST - 2, LAST, inf), "date") == ("[9999-12-29, 9999-12-31)", "9999-12-31")


@pytest.mark.parametrize("wanted", [{">=": "9999"}, {"<=": "9999"}, {">=": "9999-12"}, {"<=": "9999-12-31"}])
def test_ranges_reach_the_last_year(wanted: dict[str, Any]) -> None:
    one = Column(role=Role.QUASI_IDENTIFIER).over("until", Domain(("9999-12-31",), "date"))
    assert allowed_values(one, wanted, one.domain).all()


@pytest.mark.parametrize("name", ["local-suppression", "incognito", "mondrian"])
def test_who_stays_until_further_notice_is_published_and_verified(name: str, tmp_path: Path) -> None:
    days = [date.max] * 20 + [date.max - timedelta(days=day % 30) for day in range(40)]
    people = pl.DataFrame({"until": days, "town": ["Ulm", "Bonn", "Jena"] * 20})
    attributes = {"until": nr.quasi_identifier(), "town": nr.quasi_identifier()}
    policy = nr.Policy(attributes=attributes, require=[nr.models.KAnonymity(k=3)], method={"name": name})
    nr.anonymize(people, policy, to=tmp_path / "release")
    assert all(verdict.holds for verdict in nr.verify(tmp_path / "release", policy, original=people))
