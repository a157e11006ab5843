"""Positive, downward and negative disclosure by hand, and the bound that a design gives."""

from __future__ import annotations

import polars as pl
import pytest

import noren as nr
from noren.audit import attack
from noren.errors import QueryError
from noren.release.release import Release
from tests.unit.audit.world import of_groups, of_sets, of_values


def only(release: Release, **options):
    (found,) = attack(release, "disclosure", **options)
    return found


def test_classes_by_hand() -> None:
    found = only(of_values("aaaaaaaab", "ccd", "cccd", "aabb"))
    rows = found.scenario("release-rows")
    # overall a 10/20, b 3/20, c 5/20, d 2/20
    assert rows.frame["positive"].to_list() == [False] * 9 + [False] * 3 + [True] * 4 + [False] * 4
    assert rows.frame["value"].to_list() == [None] * 12 + ["c"] * 4 + [None] * 4
    assert rows.frame["excluded"].to_list() == [2] * 20
    assert rows.frame["excluded_mass"].to_list() == pytest.approx([7 / 20] * 9 + [13 / 20] * 7 + [7 / 20] * 4)
    assert rows.summary["positive"] == pytest.approx(0.2)
    assert rows.summary["negative"] == 1.0
    assert rows.summary["mean_excluded_share"] == pytest.approx(0.5)
    assert found.baseline == pytest.approx({**dict.fromkeys(found.baseline, 0.0), "mean_belief": 0.5})


def test_both_bounds_count() -> None:
    """At most rho1 before and at least rho2 after, both inclusive."""
    release = of_values("aaab", "bbba", "cccc", "dddd", "abcd")
    assert only(release, rho1=0.25, rho2=0.75).scenarios[0].summary["positive"] == pytest.approx(16 / 20)
    assert only(release, rho1=0.24, rho2=0.75).scenarios[0].summary["positive"] == 0.0
    assert only(release, rho1=0.25, rho2=0.76).scenarios[0].summary["positive"] == pytest.approx(8 / 20)


def test_downward() -> None:
    release = of_values("a" * 16, "bbba")
    rows = only(release).scenario("release-rows")
    assert rows.frame["downward"].to_list() == [False] * 16 + [True] * 4
    assert only(release, rho1=0.2).scenarios[0].summary["downward"] == 0.0
    away = only(of_values("a" * 16, "bbbb")).scenario("release-rows")
    assert away.frame["downward"].to_list() == [False] * 16 + [True] * 4, "ruled out altogether is lower still"


def test_groups_and_sets() -> None:
    groups = only(of_groups("aab", "cd", "aa")).scenario("release-rows")
    assert groups.frame["excluded"].to_list() == [2] * 3 + [2] * 2 + [3] * 2
    sets = only(of_sets(["ab", "cd", "ac", "bd", "ad", "bc"])).scenario("release-rows")
    assert sets.frame["excluded"].to_list() == [2] * 6
    noisy = only(of_sets(["ab", "cd", "ac", "bd", "ad", "bc"], p=0.5))
    assert noisy.scenario("release-rows").frame["excluded"].to_list() == [0] * 6, "with p < 1 nothing is ruled out"


def test_the_bound_of_a_design() -> None:
    """gamma = 1 + p d / (eta (1 - p)) = 3 for p = 1/2, d = 4, eta = 2; odds from 0.3 to 0.7 are 49/9."""
    found = only(of_sets(["ab", "cd", "ac", "bd"], p=0.5))
    assert found.facts["gamma"] == pytest.approx(3)
    assert found.facts["gamma_bound"] == pytest.approx(49 / 9)
    assert found.facts["bounded"] is True
    assert "no belief can rise" in found.notes[-1]
    assert found.scenario("release-rows").summary["positive"] == 0.0
    tight = only(of_sets(["ab", "cd", "ac", "bd"], p=0.5), rho1=0.4, rho2=0.6)
    assert tight.facts["bounded"] is False
    assert only(of_sets(["ab", "cd"])).facts["bounded"] is False


def test_people_of_the_original() -> None:
    table = pl.DataFrame({"town": list("aaaabbbbcccc"), "ill": list("pppqxyzwxyzw")})
    policy = nr.Policy(
        attributes={"town": nr.quasi_identifier(), "ill": nr.sensitive()},
        require=[nr.models.KAnonymity(k=4), nr.models.DistinctLDiversity(on="ill", l=2)],
        method=nr.methods.Mondrian(),
    )
    found = only(nr.anonymize(table, policy), original=table, policy=policy)
    raw = found.scenario("raw")
    assert raw.summary["positive"] == pytest.approx(4 / 12)
    assert raw.frame["right"].to_list() == [1.0] * 3 + [0.0] * 9
    assert raw.summary["right"] == pytest.approx(3 / 12)
    assert found.scenario("release").frame.height == 12
    assert found.chart().to_dict()


def test_wrong_options() -> None:
    with pytest.raises(QueryError, match="rho1 must be below rho2"):
        only(of_values("ab"), rho1=0.8)
