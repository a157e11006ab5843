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


def test_sets_that_may_lack_the_truth_are_screened_too() -> None:
    one = draft({"b": 0.0}, ["a", "b"], p=0.2)
    assert all(s.design is not None and s.design.floor > 0 for s in one.statements)
    assert pairs(one, 0.05) == set()


@pytest.mark.parametrize("p", [None, 0.2])
@pytest.mark.parametrize("values", [2, 5, 30])
def test_what_counts_of_pairs_rule_out_is_never_certain(
    monkeypatch: pytest.MonkeyPatch, p: float | None, values: int
) -> None:
    """Columns that follow from each other for none, some or all of their values: whether the counts are looked at
    first changes nothing."""
    rng = np.random.default_rng(values)
    first, columns = rng.integers(0, values + 2, N), {}
    for number, known in enumerate([0, 1, values // 2, values + 2]):
        columns[f"c{number}"] = np.where(first < known, first, rng.integers(0, values + 2, N))
    table = pl.DataFrame({name: [f"{name}{x}" for x in codes] for name, codes in columns.items()})
    names = table.columns
    asked = nr.models.FrequencyLDiversity(on=names, l=3) if p is None else nr.models.TCloseness(on=names, t=p)
    policy = nr.Policy(attributes=dict.fromkeys(names, "sensitive"), require=[asked])
    found = prepare(table, policy)
    one = draft_plan(found, decide_plan(found, policy), policy)
    refused = {(pair.protected, pair.by, pair.more) for pair in told(one, above=0.05) if pair.at_most > 0.05}
    ruled_out = [
        (a.name, b.name)
        for a in one.statements
        for b in one.statements
        if a is not b and not dependence._may_be_certain(*(found.records.codes[x.name] for x in (a, b)), a, b.d)
    ]
    assert all(pair.more == 0 for pair in told(one) if (pair.protected, pair.by) in ruled_out)
    assert ruled_out or values == 30
    monkeypatch.setattr(dependence, "_may_be_certain", lambda *_: True)
    assert refused == {(pair.protected, pair.by, pair.more) for pair in told(one, above=0.05) if pair.at_most > 0.05}
