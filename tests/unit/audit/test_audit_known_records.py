"""Known records: classes by hand, groups, general values, people in several classes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noren as nr
from noren.audit import attack, reasons
from noren.audit.known_records import most_left
from noren.errors import QueryError
from noren.release.release import Release
from tests.unit.audit.world import of_groups, of_nodes, of_sets, of_values


def only(release: Release, **options):
    (found,) = attack(release, "known-records", **options)
    return found


def test_all_but_one_are_known() -> None:
    found = only(of_values("aaab", "abcd"))
    rows = found.scenario("release-rows")
    for figure in ("certain", "worst_certain", "mean_belief"):
        assert rows.summary[figure] == pytest.approx(1.0)
    assert rows.frame["left"].to_list() == [1.0] * 8
    assert rows.frame["needed"].to_list() == [1.0] * 4 + [3.0] * 4
    assert (rows.summary["min_needed"], rows.summary["mean_needed"]) == (1.0, 2.0)
    assert any("knows the last" in note for note in found.notes)
    # before: a 4/8, b 2/8, c and d 1/8
    assert found.baseline["mean_belief"] == pytest.approx((16 + 4 + 1 + 1) / 64)
    assert found.baseline["mean_worst_belief"] == pytest.approx(0.5)
    assert found.baseline["min_needed"] == 4.0


def test_two_are_known() -> None:
    """Of aaab two are left: aa in 3 of 6 ways, ab in 3. Of abcd always two different ones."""
    found = only(of_values("aaab", "abcd"), known=2)
    frame = found.scenario("release-rows").frame
    assert frame["left"].to_list() == [2.0] * 8
    assert frame["certain"].to_list() == pytest.approx([0.5] * 4 + [0.0] * 4)
    assert frame["values"].to_list() == pytest.approx([1.5] * 4 + [2.0] * 4)
    assert frame["belief"].to_list() == pytest.approx([0.75] * 4 + [0.5] * 4)
    assert frame["worst_belief"].to_list() == pytest.approx([1.0] * 4 + [0.5] * 4)
    assert frame["worst_values"].to_list() == [1.0] * 4 + [2.0] * 4
    assert not any("knows the last" in note for note in found.notes)


def test_nobody_is_known() -> None:
    frame = only(of_values("aaab", "ab"), known=0).scenario("release-rows").frame
    assert frame["belief"].to_list() == pytest.approx([10 / 16] * 4 + [0.5] * 2)
    assert frame["worst_belief"].to_list() == pytest.approx([0.75] * 4 + [0.5] * 2)
    assert frame["values"].to_list() == pytest.approx([2.0] * 6)


def test_members_of_a_group_are_struck_out_of_its_table() -> None:
    frame = only(of_groups("aaab", "abcd"), known=2).scenario("release-rows").frame
    assert frame["certain"].to_list() == pytest.approx([0.5] * 4 + [0.0] * 4)
    assert frame["needed"].to_list() == [1.0] * 4 + [3.0] * 4


def test_general_values_keep_their_doubt() -> None:
    release = of_nodes([[0], [0, 1], [2, 3]], [0, 0, 1, 1], [0, 1, 2, 2])
    found = only(release)
    frame = found.scenario("release-rows").frame
    # the last record is 'a' or one of a and b; in the other class it is always one of c and d
    assert frame["certain"].to_list() == pytest.approx([0.5] * 2 + [0.0] * 2)
    assert frame["belief"].to_list() == pytest.approx([(1 + 0.5) / 2] * 2 + [0.5] * 2)
    assert frame["worst_belief"].to_list() == pytest.approx([1.0] * 2 + [0.5] * 2)
    assert frame["needed"].to_list() == [1.0, 1.0, None, None]
    assert found.scenario("release-rows").summary["min_needed"] == 1.0
    assert not any("knows the last" in note for note in found.notes)


def test_how_many_must_be_known_for_a_belief() -> None:
    """Of aaab one is struck out for certainty and none for 3/4; of abcd two for 1/2."""
    for limit, needed in ((1.0, [1.0, 3.0]), (0.75, [0.0, 3.0]), (0.5, [0.0, 2.0]), (0.26, [0.0, 1.0])):
        found = only(of_values("aaab", "abcd"), limit=limit)
        assert found.scenario("release-rows").frame["needed"].to_list() == [needed[0]] * 4 + [needed[1]] * 4
    assert found.baseline["min_needed"] == 0.0


def test_how_much_knowledge_defeats_the_example_of_tau_l_diversity() -> None:
    """Paper 004, Figure 3: each class is (0.5, 3)-diverse, F(1) = 0.5; in the first two records are general."""
    nodes = [[0], [1], [2], [3], [0, 1]]  # hepatitis, anemia, flu, tuberculosis; hemal disease
    release = of_nodes(nodes, [0] * 4 + [1] * 4, [4, 4, 0, 3, 0, 3, 3, 2])
    for limit, needed in ((0.5, [0, 0]), (0.6, [1, 1]), (0.75, [2, 2]), (1.0, [3, 2])):
        frame = only(release, limit=limit).scenario("release-rows").frame
        assert frame["needed"].to_list() == [needed[0]] * 4 + [needed[1]] * 4


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from([0.3, 0.5, 0.6, 0.75, 1.0]),
)
@settings(max_examples=150, deadline=None)
def test_the_most_that_may_be_left_against_all_choices(told: list[list[float]], limit: float) -> None:
    """Records that tell three values with any beliefs; each value by itself."""
    m, most = len(told), 0
    for left in range(1, m + 1):
        best = max(sum(sorted((row[v] for row in told), reverse=True)[:left]) / left for v in range(3))
        most = left if best >= limit - 1e-9 else most
    entries = [(v, row[v]) for row in told for v in range(3) if row[v] > 0]
    if entries:
        value, mass = (np.array(one) for one in zip(*entries, strict=True))
        one = np.zeros(len(value), np.int64)
        assert most_left(np.array([m]), one, value, mass, one + 1, 3, limit).tolist() == [most]


def test_how_many_must_be_known_of_a_person() -> None:
    table = pl.DataFrame({"town": list("aaaabbbb"), "ill": list("pppqxyzx")})
    policy = nr.Policy(
        attributes={"town": nr.quasi_identifier(), "ill": nr.sensitive()},
        require=[nr.models.KAnonymity(k=4), nr.models.DistinctLDiversity(on="ill", l=2)],
        method=nr.methods.Mondrian(blind=False),
        mechanism="ignored",  # a table of few people
    )
    found = only(nr.anonymize(table, policy), original=table, policy=policy)
    for name in ("raw", "release"):
        assert found.scenario(name).frame["truth_needed"].to_list() == [1, 1, 1, 3, 2, 3, 3, 2]
    assert found.scenario("release").summary["mean_truth_needed"] == pytest.approx(2.0)
    assert found.baseline["mean_truth_needed"] == pytest.approx((3 * 5 + 7 + 6 * 2 + 7 * 2) / 8)


def test_people_in_several_groups_have_the_mean() -> None:
    """Two people look alike and stand in different groups: their candidates are one record of each."""
    table = pl.DataFrame({"town": ["n", "n", "s", "s"], "ill": list("abac")})
    policy = nr.Policy(
        attributes={"town": nr.quasi_identifier(), "ill": nr.sensitive()},
        require=[nr.models.DistinctLDiversity(on="ill", l=2)],
        method=nr.methods.Anatomy(),
    )
    release = nr.anonymize(table, policy)
    frame = only(release, original=table, policy=policy, known=0).scenario("release").frame
    assert frame["belief"].to_list() == pytest.approx([0.5] * 4)
    assert frame["needed"].to_list() == pytest.approx([1.0] * 4)


def test_sets_speak_for_themselves() -> None:
    assert "its own record only" in str(reasons(of_sets(["ab", "cd"]))["known-records"])
    with pytest.raises(QueryError, match="its own record only"):
        only(of_sets(["ab", "cd"]))
