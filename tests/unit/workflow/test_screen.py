"""The screen before the close look: what tells too much is never let go, what tells nothing mostly is."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.workflow import dependence
from noren.workflow.dependence import told
from noren.workflow.draft import Draft
from noren.workflow.prepare import prepare
from noren.workflow.settling import decide_plan, draft_plan

D, N = 12, 4000
RNG = np.random.default_rng(3)


def draft(shares: dict[str, float], protected: list[str], *, p: float | None = None) -> Draft:
    """A column `a`, and others that are a copy of it for a share of the people."""
    codes = RNG.integers(0, D, N)
    columns = {"a": codes}
    for name, share in shares.items():
        columns[name] = np.where(RNG.random(N) < share, codes + D, RNG.integers(0, D, N))
    table = pl.DataFrame({name: [f"{name}{x}" for x in cells] for name, cells in columns.items()})
    asked: list[nr.models.base.Model] = [nr.models.FrequencyLDiversity(on=protected, l=3)]
    if p is not None:
        asked = [nr.models.TCloseness(on=protected, t=p)]
    roles = {name: "sensitive" if name in protected else "plain" for name in table.columns}
    policy = nr.Policy(attributes=roles, require=asked)
    found = prepare(table, policy)
    return draft_plan(found, decide_plan(found, policy), policy)


def pairs(one: Draft, above: float) -> set[tuple[str, str]]:
    return {(found.protected, found.by) for found in told(one, above=above)}


@pytest.mark.parametrize("share", [0.06, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("protected", [["a"], ["a", "b"]])
def test_what_tells_too_much_is_looked_at(share: float, protected: list[str]) -> None:
    one = draft({"b": share, "c": 0.0}, protected)
    limit = 0.05 * min(1.0, share)
    closely = {(found.protected, found.by) for found in told(one) if found.more > limit}
    assert closely <= pairs(one, limit)


def test_what_tells_nothing_is_let_go() -> None:
    one = draft(dict.fromkeys("bcdef", 0.0), ["a", "b", "c"])
    assert pairs(one, 0.05) == set()
    assert len(told(one)) == 3 * 5


def test_a_limit_that_few_people_cannot_show_lets_nothing_go() -> None:
    one = draft({"b": 0.0, "c": 0.0}, ["a"])
    assert pairs(one, 0.0) == {("a", "b"), ("a", "c")}
    assert pairs(one, 0.001) == {("a", "b"), ("a", "c")}


def test_large_domains_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "MOST_VALUES", D - 1)
    one = draft({"b": 0.0}, ["a"])
    assert pairs(one, 0.05) == {("a", "b")}


def test_the_screen_counts_what_the_close_look_counts() -> None:
    """With everybody asked and no slack, on the same cells."""
    one = draft({"b": 0.3, "c": 1.0, "d": 0.0}, ["a", "c"])
    truth, cells = dependence._sampled(one)
    rows = {s.name: dependence._Possible.of(s, cells[s.name]) for s in one.statements}
    dense = {s.name: rows[s.name].dense(s.d).T for s in one.statements}
    seen = dependence.Screen(truth, dense, certain=0.99, support=2, right=0.95)
    beside = {(x, y): table for x, y, table in seen._pairs([s.name for s in one.statements], ["a", "c"])}
    beside |= {(y, x): table.T for (x, y), table in beside.items()}
    for own in ("a", "c"):
        for other in one.statements:
            if other.name == own:
                continue
            d = one.by_name[own].d
            exact = dependence._told(rows[own], rows[other.name], truth[own], truth[other.name], d, other.d)
            assert seen._share(own, other.name, beside[own, other.name]) == pytest.approx(exact, abs=0.01)
            assert seen._share(own, other.name, beside[own, other.name]) >= exact - 1e-9


@pytest.mark.parametrize("most", [1, 20, 400])
@pytest.mark.parametrize("owns", [["x0"], ["x1", "x6"], [f"x{i}" for i in range(7)]])
def test_pairs_counted_together_are_those_counted_alone(
    most: int, owns: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependence, "COUNTED_TOGETHER", most)
    sizes = {f"x{i}": d for i, d in enumerate((2, 2, 3, 19, 5, 2, 64))}
    truth = {name: RNG.integers(0, d, 500) for name, d in sizes.items()}
    seen = dependence.Screen(
        truth, {name: np.ones((d, 10)) for name, d in sizes.items()}, certain=0.99, support=2, right=0.95
    )
    found = list(seen._pairs(list(sizes), owns))
    wanted = {frozenset((own, other)) for own in owns for other in sizes if own != other}
    assert {frozenset((one, other)) for one, other, _ in found} == wanted
    assert len(found) == len(wanted)
    for one, other, table in found:
        expected = np.zeros((sizes[one], sizes[other]))
        np.add.at(expected, (truth[one], truth[other]), 1)
        np.testing.assert_array_equal(table, expected)


def test_sets_that_may_lack_the_truth_are_screened_too() -> None:
    one = draft({"b": 0.0}, ["a", "b"], p=0.2)
    assert all(s.design is not None and s.design.floor > 0 for s in one.statements)
    assert pairs(one, 0.05) == set()


def groups(alike: int, odd: int) -> dependence.Screen:
    """Groups of five: in some all have the same secret, in others one person alone has the second of two.

    With nothing but the others of the group to go by, people of the first kind are certain and right, and of the second
    kind the odd one alone is certain, and wrong.
    """
    secret = np.concatenate([np.repeat(np.arange(alike) % 2, 5), np.tile([1, 0, 0, 0, 0], odd)])
    group = np.repeat(np.arange(alike + odd), 5)
    n = len(secret)
    shown = {"secret": np.ones((2, n)), "group": (np.arange(alike + odd)[:, None] == group).astype(float)}
    return dependence.Screen({"secret": secret, "group": group}, shown, certain=0.99, support=2, right=0.95)


@pytest.mark.parametrize(("alike", "odd", "share"), [(20, 2, 100 / 110), (14, 30, 0.0), (3, 0, 1.0), (0, 3, 0.0)])
def test_certainty_counts_where_it_proves_right(alike: int, odd: int, share: float) -> None:
    seen = groups(alike, odd)
    ((one, other, together),) = seen._pairs(["secret", "group"], ["secret"])
    assert seen._share(one, other, together) == pytest.approx(share)


def test_pairs_are_loud_where_one_of_them_is_protected() -> None:
    seen = groups(20, 2)
    assert seen.loud({"secret"}, ["secret", "group"], 0.5) == {("secret", "group")}
    assert seen.loud({"secret"}, ["group", "secret"], 0.5) == {("secret", "group")}
    assert seen.loud({"secret"}, ["group", "secret", "else"], 3.0) == {("secret", "else")}
    assert seen.loud(set(), ["group", "secret"], 0.5) == set()


def test_a_share_may_be_larger_than_few_people_show() -> None:
    """A hundred people: five deviations are half the root of what is counted."""
    seen = groups(20, 0)
    assert seen._may_exceed(0.2, 0.5)
    assert not seen._may_exceed(0.2, 0.7)
