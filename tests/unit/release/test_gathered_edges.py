"""What a text asks for: a share of one value, a member of a composite, groups that have no numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError
from noren.estimates.statistics.results import SCORES
from noren.release.gathered import _share
from noren.release.manifest import PublishedMargin

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
    assert given.notes == ("Values of 'pay' count as the given numbers.",)
    with pytest.raises(QueryError, match="pay"):
        release.mean("sex=f", by="pay", values={"pay": {"nothing": 1.0}})


def test_conditions_on_one_column_hold_together(release: nr.Release) -> None:
    assert release.mean("sex=f", where={"town": "Ulm"}).records == 12
    with pytest.raises(QueryError, match="no record meets the conditions"):
        release.mean("sex=f", where={"sex": "f", "town": "Bonn"})


def test_a_column_that_lists_no_values_can_be_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 3)
    table = pl.DataFrame({"note": ["a", "b", "c", "d", "d", None], "town": ["u", "v"] * 3})
    release = nr.anonymize(table, nr.Policy(attributes={"note": "plain", "town": "plain"}))
    assert release.column("note").column.is_open
    assert release.count({"note": ["a", "d"]}).count == 3
    assert release.estimate("note", where={"town": "v"}).frame["count"].to_list() == [0, 1, 0, 1, 1]
    assert release.mean("town=u", where={"note": "d"}).frame["mean"].to_list() == pytest.approx([1 / 2])


def test_members_of_a_composite_are_columns_of_their_own() -> None:
    """Of columns that are hidden together, what is asked of one is the sum over the tuples that have its value."""
    table = pl.DataFrame({"a": ["x", "x", "y", "y"] * 12, "b": ["1", "2", "1", "3"] * 12, "town": ["u", "v", "w"] * 16})
    roles = {"a": "sensitive", "b": "sensitive", "town": "plain"}
    asked = [nr.models.FrequencyLDiversity(on="a + b", l=2)]
    policy = nr.Policy(attributes=roles, require=asked, together=["a", "b"], dependence={"most": 1.0})
    release = nr.anonymize(table, policy)
    (name,) = release.designs
    whole = release.estimate(name, estimator="linear").frame
    tuples = dict(zip(whole[name], whole["count"], strict=True))
    members = release.estimate("a", estimator="linear").frame
    assert members["a"].to_list() == ["x", "y"]
    expected = [sum(count for label, count in tuples.items() if label.startswith(value)) for value in ("x", "y")]
    assert len(tuples) == 4
    assert members["count"].to_list() == pytest.approx(expected)
    count = release.count({"a": "x"}, estimator="linear").count
    assert count == pytest.approx(expected[0])
    share = release.mean("a=x").frame["mean"].to_list()
    parts = [release.mean(f"{name}={label}").frame["mean"][0] for label in tuples if label.startswith("x")]
    assert share == pytest.approx([sum(parts)])
    both = release.count({"a": "y", "b": "3"}, estimator="linear").count
    assert both == pytest.approx(next(count for label, count in tuples.items() if label.endswith("3")))


def test_margins_are_named_where_they_help() -> None:
    table = pl.DataFrame({"ill": ["a", "b", "c", "d"] * 6, "sex": ["f", "m", "m"] * 8})
    asked = [nr.models.FrequencyLDiversity(on="ill", l=2)]
    policy = nr.Policy(attributes={"ill": "sensitive", "sex": "plain"}, require=asked, dependence={"most": 1.0})
    release = nr.anonymize(table, policy)
    margin = PublishedMargin(of=("ill",), epsilon=1, sensitivity=2, counts=(6, 5, 8, 6))

    def told(ask: Callable[[nr.Release], str], **changes: Any) -> bool:
        changed = release.manifest.model_copy(update=changes)
        return "noised margins" in ask(nr.Release(changed, release.store))

    def share(opened: nr.Release) -> str:
        return opened.mean("ill=a").assumes

    assert told(share, margins=(margin,))
    assert not told(share)
    assert share(release) == SCORES  # and nothing behind it
    assert not told(share, margins=(margin,), suppressed=1)
    assert told(lambda opened: opened.mean("sex=f", where={"ill": ["a", "b"]}).assumes, margins=(margin,))
    assert not told(lambda opened: opened.mean("sex=f").assumes, margins=(margin,))
    assert not told(lambda opened: opened.mean("ill=a", where={"sex": "f"}).assumes, margins=(margin,))
