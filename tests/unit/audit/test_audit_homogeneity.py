"""Homogeneity and skewness: classes by hand, the classic inpatient table, decoy sets and groups."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.audit import Case, applicable, attack
from noren.audit.targets import published_target
from noren.errors import DataError, QueryError
from noren.release.release import Release
from noren.schema.roles import Role
from noren.statements import CodeCells, OpenCells
from tests.oracles.posterior import posterior
from tests.unit.audit.world import assembled, keys, of_groups, of_nodes, of_sets, of_values, stated


def only(release: Release, **options):
    (found,) = attack(release, "homogeneity", **options)
    return found


def test_classes_by_hand() -> None:
    found = only(of_values("aaa", "aabb", "bcd"))
    rows = found.scenario("release-rows")
    assert rows.frame["belief"].to_list() == pytest.approx([1] * 3 + [0.5] * 4 + [1 / 3] * 3)
    assert rows.frame["value"].to_list() == ["a"] * 3 + ["a"] * 4 + ["b"] * 3
    assert rows.frame["ties"].to_list() == [1] * 3 + [2] * 4 + [3] * 3
    assert rows.frame["values"].to_list() == [1] * 3 + [2] * 4 + [3] * 3
    # overall: a 5/10, b 3/10, c and d 1/10 each
    assert rows.frame["gain"].to_list() == pytest.approx([0.5] * 3 + [0.2] * 4 + [1 / 3 - 0.1] * 3)
    assert rows.frame["ratio"].to_list() == pytest.approx([2.0] * 3 + [0.5 / 0.3] * 4 + [10 / 3] * 3)
    assert rows.summary["certain"] == pytest.approx(0.3)
    assert rows.summary["above"] == pytest.approx(0.3), "a belief of one half is not above it"
    assert rows.summary["max_ratio"] == pytest.approx(10 / 3)
    assert found.baseline["mean_belief"] == pytest.approx(0.5)
    assert (found.baseline["max_gain"], found.baseline["max_ratio"]) == (0.0, 1.0)
    assert not found.holder_only


def test_the_threshold_is_an_option() -> None:
    assert only(of_values("aaa", "aabb", "bcd"), threshold=0.4).scenarios[0].summary["above"] == pytest.approx(0.7)
    with pytest.raises(QueryError, match="threshold"):
        only(of_values("aa"), threshold=2)


def test_general_secrets_are_divided_among_their_values() -> None:
    found = only(of_nodes([[0], [0, 1], [2, 3]], [0, 0, 1], [0, 1, 2]))
    frame = found.scenario("release-rows").frame
    assert frame["belief"].to_list() == pytest.approx([0.75, 0.75, 0.5])
    assert frame["value"].to_list() == ["a", "a", "c"]


def test_a_prior_divides_general_secrets() -> None:
    """Who knows that a is three times as common as b believes so below a node of both; c and d are not known at all."""
    release = of_nodes([[0], [0, 1], [2, 3]], [0, 0, 1], [0, 1, 2])
    told = published_target(Case(release), release.column("x"), np.array([0.75, 0.25, 0.0, 0.0]))
    assert told.basis == "the original"
    part = told.told(told.own)
    assert part.value.tolist() == [0, 1, 2, 3]
    assert part.share.tolist() == pytest.approx([(1 + 0.75) / 2, 0.25 / 2, 0.5, 0.5])


def test_groups_are_their_own_classes() -> None:
    found = only(of_groups("aab", "cc"))
    frame = found.scenario("release-rows").frame
    assert frame["belief"].to_list() == pytest.approx([2 / 3] * 3 + [1.0] * 2)
    assert frame["candidates"].to_list() == [3, 3, 3, 2, 2]
    assert found.scenario("release-rows").summary["certain"] == pytest.approx(0.4)


@pytest.mark.parametrize("p", [1.0, 0.6])
def test_sets_by_bayes(p) -> None:
    release = of_sets(["ab", "ab", "bc", "ad", "cd", "ac", "ab"], p=p)
    found = only(release)
    counts = release.estimate("x").frame["count"].to_numpy()
    prior = np.maximum(0, counts) / np.maximum(0, counts).sum()
    design = release.designs["x"]
    frame = found.scenario("release-rows").frame
    for word, belief, ratio in zip(
        ["ab", "ab", "bc", "ad", "cd", "ac", "ab"], frame["belief"], frame["ratio"], strict=True
    ):
        after = posterior(prior, ["abcd".index(letter) for letter in word], design)
        assert belief == pytest.approx(after.max())
        assert ratio == pytest.approx((after[prior > 0] / prior[prior > 0]).max())
    assert found.facts["prior_from"] == "an estimate from the release"


def test_a_set_of_one_value_is_certain() -> None:
    found = only(of_sets(["a", "b", "b"], d=3))
    assert found.scenario("release-rows").summary["certain"] == 1.0


INPATIENTS = pl.DataFrame(
    {
        "zip": ["13053", "13068", "13068", "13053"] + ["14853"] * 2 + ["14850"] * 2 + ["13053"] * 2 + ["13068"] * 2,
        "age": [28, 29, 21, 23, 50, 55, 47, 49, 31, 37, 36, 35],
        "condition": ["Heart Disease"] * 2 + ["Viral Infection"] * 2 + ["Cancer", "Heart Disease"]
        + ["Viral Infection"] * 2 + ["Cancer"] * 4,
    }
)  # fmt: skip
"""The inpatients of Machanavajjhala et al. 2007, Figure 1, without nationality."""


def classic() -> Release:
    """Their 4-anonymous table (Figure 2): the classes are the first, the middle and the last four."""
    entry, where = keys([0] * 4 + [1] * 4 + [2] * 4)
    names = ("Cancer", "Heart Disease", "Viral Infection")
    codes = np.array([names.index(value) for value in INPATIENTS["condition"]])
    column = stated("condition", Role.SENSITIVE, "exact", values=names)
    return assembled([entry, column], {"where": where, "condition": CodeCells(3, codes)})


def test_the_classic_example() -> None:
    """Bob, 31, lives in 13053: all four records that could be his have cancer. Umeko's class leaves two conditions."""
    rows = only(classic()).scenario("release-rows")
    bob = rows.frame.tail(4)
    assert bob["value"].to_list() == ["Cancer"] * 4
    assert bob["belief"].to_list() == [1.0] * 4
    assert rows.summary["certain"] == pytest.approx(1 / 3)
    assert rows.frame.head(4)["belief"].to_list() == [0.5] * 4
    assert rows.frame.head(4)["values"].to_list() == [2] * 4


def test_people_of_the_original() -> None:
    policy = nr.Policy(
        attributes={"zip": nr.quasi_identifier(), "age": nr.quasi_identifier(), "condition": nr.sensitive()},
        require=[nr.models.KAnonymity(k=4), nr.models.DistinctLDiversity(on="condition", l=2)],
        method=nr.methods.Mondrian(),
    )
    release = nr.anonymize(INPATIENTS, policy)
    found = only(release, original=INPATIENTS, policy=policy)
    assert [one.name for one in found.scenarios] == ["raw", "release", "release-rows"]
    assert all(one.holder_only for one in found.scenarios)
    raw = found.scenario("raw")
    assert raw.summary["certain"] == 1.0
    assert raw.summary["right"] == 1.0
    assert raw.frame["value"].to_list() == INPATIENTS["condition"].to_list()
    inside = found.scenario("release")
    assert inside.frame["record"].to_list() == list(range(1, 13))
    assert inside.summary["certain"] == 0.0
    assert 5 / 12 <= inside.summary["right"] < 1.0
    assert found.baseline["right"] == pytest.approx(5 / 12)
    assert found.baseline["mean_truth_belief"] == pytest.approx((25 + 9 + 16) / 144)
    assert found.chart().to_dict()
    assert found.records().height == 36


def test_people_among_decoy_sets() -> None:
    """Found by an exact column, a person's row is any of those there: the mean of their posteriors."""
    table = pl.DataFrame({"town": list("nnnss"), "ill": list("abcab")})
    policy = nr.Policy(
        attributes={"town": nr.quasi_identifier(), "ill": nr.sensitive()},
        require=[nr.models.FrequencyLDiversity(on="ill", l=2)],
        method=nr.methods.Decoys(),
    )
    release = nr.anonymize(table, policy)
    found = only(release, original=table, policy=policy)
    prior = np.array([0.4, 0.4, 0.2])
    rows = release.frame().to_dicts()
    told = [posterior(prior, ["abc".index(v) for v in row["ill"]], release.designs["ill"]) for row in rows]
    for person, line in zip(table.to_dicts(), found.scenario("release").frame.to_dicts(), strict=True):
        after = np.mean([own for own, row in zip(told, rows, strict=True) if row["town"] == person["town"]], axis=0)
        assert line["belief"] == pytest.approx(after.max())
        assert line["truth_belief"] == pytest.approx(after["abc".index(person["ill"])])
        assert line["candidates"] == {"n": 3, "s": 2}[person["town"]]
    row_wise = found.scenario("release-rows").frame["belief"].to_list()
    assert row_wise == pytest.approx([own.max() for own in told])


def test_what_is_refused() -> None:
    entry, where = keys([0, 1])
    with pytest.raises(QueryError, match="no sensitive column"):
        only(assembled([entry], {"where": where}))
    known = applicable(assembled([entry], {"where": where}))
    assert "reidentification" in known
    assert not {"homogeneity", "similarity", "disclosure", "known-records", "linking"} & set(known)
    policy = nr.Policy(
        attributes={"where": nr.quasi_identifier(), "x": nr.Column(role="plain")},
        require=[],
        method=nr.methods.Decoys(),
    )
    table = pl.DataFrame({"where": [0, 1, 1], "x": ["a", "b", "a"]})
    with pytest.raises(DataError, match="does not protect column 'x'"):
        only(of_values("a", "bb"), original=table, policy=policy)


def test_open_secrets_are_named() -> None:
    entry, where = keys([0, 1])
    column = stated("note", Role.SENSITIVE, "open")
    release = assembled([entry, column], {"where": where, "note": OpenCells(pa.array(["p", "q"]))})
    with pytest.raises(QueryError, match="column 'note' is published exactly without a list of its values"):
        only(release)
