"""The similarity attack: nodes of a hierarchy level by level, intervals of numbers, and what has no meaning."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import attack, reasons
from noren.audit.similarity import best_interval, places
from noren.errors import QueryError
from noren.models.histograms import Histograms
from noren.release.release import Release
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.roles import Role
from noren.statements import CodeCells
from tests.unit.audit.world import assembled, keys, of_groups, of_sets, of_values, stated

TREE = (tuple("abcd"), ("ab", "ab", "cd", "cd"), ("*",) * 4)


def only(release: Release, **options):
    (found,) = attack(release, "similarity", **options)
    return found


def numbers(where: list[int], values: list[int], domain: range) -> Release:
    entry, published = keys(where)
    labels = tuple(map(str, domain))
    column = stated("wage", Role.SENSITIVE, "exact", "integer", values=labels)
    codes = np.array([labels.index(str(value)) for value in values])
    return assembled([entry, column], {"where": published, "wage": CodeCells(len(labels), codes)})


def test_levels_by_hand() -> None:
    found = only(of_values("ab", "aac", "cdd", hierarchy=TREE))
    rows = found.scenario("release-rows")
    assert rows.frame["belief_0"].to_list() == pytest.approx([0.5] * 2 + [2 / 3] * 6)
    assert rows.frame["belief"].to_list() == pytest.approx([1.0] * 2 + [2 / 3] * 3 + [1.0] * 3)
    assert rows.frame["belief_1"].to_list() == rows.frame["belief"].to_list()
    assert rows.frame["meaning"].to_list() == ["ab"] * 5 + ["cd"] * 3
    assert rows.frame["level"].to_list() == [1] * 2 + [2] * 3 + [1] * 3, "2 is the root: nothing is known"
    assert rows.summary["certain"] == pytest.approx(5 / 8)
    assert rows.summary["certain_value"] == 0.0
    # overall ab and cd have 4 of 8 records each
    assert found.baseline["mean_belief"] == pytest.approx(0.5)
    assert found.baseline["mean_level"] == 2.0
    assert rows.frame["gain"].to_list() == pytest.approx([0.5] * 2 + [1 / 6] * 3 + [0.5] * 3)


def test_level_0_is_homogeneity() -> None:
    release = of_values("ab", "aac", "cdd", hierarchy=TREE)
    (homogeneity,) = attack(release, "homogeneity")
    found = only(release, level=0).scenarios[0].frame
    assert found["belief"].to_list() == homogeneity.scenarios[0].frame["belief"].to_list()
    assert found["meaning"].to_list() == homogeneity.scenarios[0].frame["value"].to_list()
    with pytest.raises(QueryError, match="its levels are 0 to 1, and level 2 was asked for"):
        only(release, level=2)


def test_intervals_by_hand() -> None:
    release = numbers([0] * 4 + [1] * 3, [10, 11, 12, 30, 0, 50, 100], range(101))
    found = only(release, widths=["0.02", "0.5"], level=1)
    rows = found.scenario("release-rows")
    assert rows.frame["belief"].to_list() == pytest.approx([0.75] * 4 + [1 / 3] * 3)
    assert rows.frame["belief_2"].to_list() == pytest.approx([1.0] * 4 + [2 / 3] * 3)
    assert rows.frame["meaning"].to_list() == ["10"] * 4 + ["0"] * 3
    assert rows.frame["level"].to_list() == [2] * 4 + [3] * 3
    assert found.baseline["mean_belief"] == pytest.approx(3 / 7)
    assert any("interval" in note for note in found.notes)


def test_special_categories_are_near_nothing() -> None:
    domain = Domain(("1", "2", "9", OTHER, MISSING), "number")
    where = places(domain)
    assert where[:3].tolist() == [0.0, 0.125, 1.0]
    assert np.diff(where[2:]).min() > 0.9
    told = Histograms(np.array([4]), np.array([0, 4]), np.array([0, 1, 3, 4]), np.ones(4))
    found = best_interval(told, where, 0.99)
    assert found["belief"].tolist() == [0.5]
    assert places(Domain(("low", "mid", "top"), source="policy")).tolist() == [0.0, 0.5, 1.0]
    assert places(Domain(("5",), "integer")).tolist() == [0.0]


def test_right_meanings_of_people() -> None:
    table = pl.DataFrame({"town": list("aaaabbbb"), "ill": list("pqpqxyxq")})
    hierarchy = nr.Hierarchy.from_tree({"lungs": ["p", "q"], "heart": ["x", "y"]})
    policy = nr.Policy(
        attributes={"town": nr.quasi_identifier(), "ill": nr.sensitive(hierarchy=hierarchy)},
        require=[nr.models.KAnonymity(k=4), nr.models.DistinctLDiversity(on="ill", l=2)],
        method=nr.methods.Mondrian(blind=False),
        mechanism="ignored",  # a table of few people
    )
    release = nr.anonymize(table, policy)
    found = only(release, original=table, policy=policy)
    frame = found.scenario("raw").frame
    assert frame["right"].to_list() == [1.0] * 7 + [0.0]
    assert frame["truth_belief"].to_list() == pytest.approx([1.0] * 4 + [0.75] * 3 + [0.25])
    assert found.scenario("release").summary["right"] == pytest.approx(7 / 8)
    assert found.scenario("release").summary["certain"] == pytest.approx(1 / 2)
    assert found.baseline["right"] == pytest.approx(5 / 8)


def test_sets_and_groups() -> None:
    with pytest.raises(QueryError, match="neither a hierarchy with inner nodes nor an order"):
        only(of_groups("aab", "cc"))
    assert "neither a hierarchy" in str(reasons(of_sets(["ab", "cd"]))["similarity"])


@pytest.mark.parametrize("options", [{"widths": ()}, {"widths": (0.2, 0.1)}, {"widths": (1.5,)}, {"level": -1}])
def test_wrong_options(options) -> None:
    with pytest.raises(QueryError, match=next(iter(options))):
        only(of_values("ab", hierarchy=TREE), **options)
