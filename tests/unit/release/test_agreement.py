"""Verbs agree: what `mean` says of the size of groups and of one hidden column is what `estimate` and `count` show."""

from __future__ import annotations

from typing import Any

import pytest

import noren as nr
from tests.unit.estimates.statistics.worlds import drawn, general, grouped

RELEASES = {"sets": drawn, "few sets": lambda: drawn(500, 3), "classes": general, "groups": grouped}
QUESTIONS: dict[str, list[tuple[str, list[str], dict[str, Any]]]] = {
    "sets": [
        ("age", ["trade"], {}),
        ("pay", ["trade"], {}),
        ("pay=3", ["trade"], {}),
        ("pay", ["trade", "sex"], {}),
        ("age", ["trade"], {"sex": "M"}),
        ("age", ["sex"], {"pay": [3, 4]}),
        ("age", ["trade"], {"pay": [3, 4]}),
        ("age", ["pay=3"], {}),
    ],
    "classes": [("age", ["sex"], {}), ("pay", ["age"], {}), ("age", ["trade"], {"sex": "M"})],
    "groups": [("pay", ["sex"], {}), ("age", ["pay"], {}), ("pay", ["trade"], {"sex": "M"})],
}
QUESTIONS["few sets"] = QUESTIONS["sets"]


def sizes(release: nr.Release, by: list[str], where: dict[str, Any]) -> list[float]:
    """The number of records that `count` gives each group, in the order of `mean`."""
    if by == ["pay=3"]:
        three = release.count({**where, "pay": "3"}).count
        return [release.records - three, three]
    found = release.estimate(by, where=where).frame
    return found["count"].to_list()


@pytest.mark.parametrize("kind", RELEASES)
def test_groups_have_the_size_that_estimate_gives_them(kind: str) -> None:
    release = RELEASES[kind]()
    for of, by, where in QUESTIONS[kind]:
        found = release.mean(of, by=by, where=where).frame
        assert found["records"].to_list() == pytest.approx(sizes(release, by, where), abs=1e-6), (of, by, where)
        for verb in (release.variance, release.difference):
            again = verb(of, by=by, where=where).frame
            assert again["records"].to_list() == pytest.approx(found["records"].to_list(), abs=1e-6)


@pytest.mark.parametrize("kind", RELEASES)
def test_of_one_column_the_mean_is_that_of_the_counts(kind: str) -> None:
    release = RELEASES[kind]()
    counts = {row["pay"]: row["count"] for row in release.estimate("pay").frame.iter_rows(named=True)}
    mean = release.mean("pay")[0]
    assert mean["mean"] == pytest.approx(sum(float(pay) * n for pay, n in counts.items()) / release.records, abs=1e-6)
    assert mean["low"] <= mean["mean"] <= mean["high"]
    for pay, n in counts.items():
        share = release.mean(f"pay={pay}")[0]
        assert share["mean"] * release.records == pytest.approx(n, abs=1e-6)
        assert n == pytest.approx(release.count({"pay": pay}).count, abs=1e-6)
        assert share["low"] <= share["mean"] <= share["high"]
