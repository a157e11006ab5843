"""What one column tells about another, against a slow and obvious count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.designs.decoys import DecoyDesign
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import CodeCells, ExactStatement, SetStatement
from noren.workflow import dependence
from noren.workflow.dependence import _certain, _newly_certain, _Pairs, _Possible, _told, demand_independence, told


def likelihood(row: int, possible: _Possible, code: int) -> float:
    """Of a record's cell under one value."""
    listed = zip(possible.value[row], possible.weight[row], strict=True)
    return next((float(w) for v, w in listed if v == code and w > 0), possible.floor)


def slowly(own: _Possible, other: _Possible, a: np.ndarray, b: np.ndarray) -> float:
    """The definition: other people's values by the likelihood of the person's cell of the other column."""
    groups: dict[int, list[tuple[bool, float]]] = {}
    for i in range(len(own)):
        believed = {}
        for v, w in zip(own.value[i], own.weight[i], strict=True):
            if w > 0:
                shown = sum(likelihood(i, other, b[j]) for j in range(len(a)) if j != i and a[j] == v)
                believed[int(v)] = (w * shown, shown)
        total = sum(one for one, _ in believed.values())
        best = max(believed, key=lambda v: believed[v][0])
        largest = max(other.floor, *(float(w) for w in other.weight[i]))
        support = believed[best][1] / largest
        usual = {int(v): w * (a == v).sum() for v, w in zip(own.value[i], own.weight[i], strict=True) if w > 0}
        before = usual[best] / sum(usual.values())
        if total > 1e-9 and believed[best][0] >= 0.99 * total and support > 2 - 1e-9 and before < 0.95:
            groups.setdefault(int(np.floor(np.log2(support + 1e-9))), []).append((best == a[i % len(a)], before))
    return sum(sum(right for right, _ in one) for one in groups.values() if proves_right(one, len(a))) / len(own)


def proves_right(group: list[tuple[bool, float]], people: int) -> bool:
    """Nearly all are right, and three standard deviations more of the people than their own cells let one expect."""
    right, by_chance = sum(right for right, _ in group), sum(before for _, before in group)
    spread = sum(before * (1 - before) for _, before in group)
    return right >= 0.95 * len(group) and right - by_chance >= 3 * np.sqrt(spread)


def possible(rng: np.random.Generator, truth: np.ndarray, d: int, size: int, floor: float) -> _Possible:
    """Sets of up to `size` values around the truth, filled up with values of no weight."""
    value, weight = np.zeros((len(truth), size), np.int64), np.zeros((len(truth), size))
    for i, code in enumerate(truth):
        listed = [code, *rng.permutation(np.delete(np.arange(d), code))[: rng.integers(0, size)]]
        value[i, : len(listed)], weight[i, : len(listed)] = listed, 0.25 + floor
    return _Possible(value, weight, floor)


@pytest.mark.parametrize("floors", [(0.0, 0.0), (0.0, 0.01), (0.0, 1e-4)])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_people_who_are_certain_are_counted_as_defined(
    floors: tuple[float, float], dense: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not dense:
        monkeypatch.setattr(dependence, "DENSE", 0)
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 5, 60)
    b = np.where(rng.random(60) < 0.93, a, rng.integers(0, 6, 60))
    own, other = possible(rng, a, 5, 3, floors[0]), possible(rng, b, 6, 3, floors[1])
    found = _told(own.first(50), other.first(50), a, b, 5, 6)
    assert found == pytest.approx(slowly(own.first(50), other.first(50), a, b))
    assert found > 0 or floors[1] == 0.01, "where cells of the other column leave nearly everything open"


@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_beliefs_are_those_of_other_people(floor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(dependence, "_newly_certain", lambda *given: seen.append(given) or 0.5)
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 4, 20), rng.integers(0, 5, 20)
    own, other = possible(rng, a, 4, 3, 0.0), possible(rng, b, 5, 3, floor)
    assert _told(own.first(15), other.first(15), a, b, 4, 5) == 0.5
    ((alone, belief, support, values, truth, people, _),) = seen
    assert people == 20
    np.testing.assert_allclose(alone, own.weight[:15] * np.bincount(a, minlength=4)[own.value[:15]])
    assert (values.tolist(), truth.tolist()) == (own.value[:15].tolist(), a[:15].tolist())
    for i in range(15):
        for k, v in enumerate(own.value[i]):
            shown = sum(likelihood(i, other, b[j]) for j in range(20) if j != i and a[j] == v)
            assert belief[i, k] == pytest.approx(own.weight[i, k] * shown)
            assert support[i, k] == pytest.approx(shown / (0.25 + floor))


def test_values_that_a_row_does_not_list_have_the_floor() -> None:
    rows = _Possible(np.array([[2, 0], [1, 2]]), np.array([[0.5, 0.0], [0.5, 0.25]]), 0.1)
    assert rows.dense(4).tolist() == [[0.1, 0.1, 0.5, 0.1], [0.1, 0.5, 0.25, 0.1]]
    assert rows.at(np.array([0, 2])).tolist() == [0.1, 0.25]
    assert rows.at(np.array([2, 3])).tolist() == [0.5, 0.1]
    listed = rows.listed(4)
    assert (listed.floor, listed.value.tolist()) == (0.0, [[0, 1, 2, 3]] * 2)
    assert listed.weight.tolist() == rows.dense(4).tolist()
    sure = _Possible(rows.value, rows.weight, 0.0)
    assert sure.listed(4) is sure


def test_certainty_begins_at_its_limits() -> None:
    one, none = np.array([[0.99, 0.01]]), np.array([[0.0, 0.0]])
    values, truth = np.array([[0, 1]]), np.array([0])
    assert _certain(one, values, truth) == 1.0
    assert _certain(one - [[0.001, -0.001]], values, truth) == 0.0
    assert _certain(none, values, truth) == 0.0
    assert _certain(np.zeros((0, 2)), values[:0], truth[:0]) == 0.0


@pytest.mark.parametrize(("wrong", "share"), [(0, 1.0), (1, 0.95), (2, 0.0)])
def test_certainty_counts_where_it_proves_right_in_nineteen_of_twenty(wrong: int, share: float) -> None:
    belief, values = np.tile([1.0, 0.0], (20, 1)), np.tile([0, 1], (20, 1))
    truth = np.array([1] * wrong + [0] * (20 - wrong))
    alone = np.ones((20, 2))
    assert _newly_certain(alone, belief, np.full((20, 2), 3.0), values, truth, 20) == share
    mixed = np.full((20, 2), 4.0)
    mixed[: max(wrong, 1)] = 2.0  # those with less support are judged among themselves
    assert _newly_certain(alone, belief, mixed, values, truth, 20) == (20 - max(wrong, 1)) / 20  # one proves nothing


@pytest.mark.parametrize(("before", "share"), [(0.5, 1.0), (0.94, 0.0), (0.96, 0.0)])
def test_what_the_own_cell_all_but_says_is_not_told_by_another_column(before: float, share: float) -> None:
    """Nine people who are right prove something where the own cell leaves a half open, and nothing where it hardly
    does: 9 - 4.5 is three times the root of 9 / 4, and 9 - 8.46 is not three times that of 9 * 0.94 * 0.06."""
    belief, values, truth = np.tile([1.0, 0.0], (9, 1)), np.tile([0, 1], (9, 1)), np.zeros(9, np.int64)
    alone = np.tile([before, 1 - before], (9, 1))
    assert _newly_certain(alone, belief, np.full((9, 2), 3.0), values, truth, 9) == share
    again = [np.tile(one, (50, 1)) for one in (alone, belief, np.full((9, 2), 3.0), values)]
    assert _newly_certain(*again, np.zeros(450, np.int64), 9) == share, "the same people again prove nothing more"


def test_pairs_that_do_not_occur_count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (dependence.DENSE, 0):
        monkeypatch.setattr(dependence, "DENSE", most)
        pairs = _Pairs.of(np.array([3, 3, 5]), 9)
        assert pairs.count(np.array([[0, 3], [5, 8]])).tolist() == [[0, 2], [1, 0]]


# ---------------------------------------------------------------- which pairs are looked at


def drawn(name: str, role: Role = Role.SENSITIVE) -> SetStatement:
    return SetStatement(Column(role=role).over(name, Domain(tuple("uvwxyz"))), DecoyDesign(d=6, eta=2))


def exact(name: str, role: Role = Role.PLAIN) -> ExactStatement:
    return ExactStatement(Column(role=role).over(name, Domain(tuple("uvwxyz"))))


def asked(monkeypatch: pytest.MonkeyPatch, statements: list[Any], lost: tuple[str, ...] = ()) -> set[tuple[str, str]]:
    codes = np.arange(12) % 6
    truth = {one.name: codes for one in statements if one.name not in lost}
    cells: dict[str, Any] = {}
    for one in statements:
        found = [sorted(("uvwxyz"[c], "uvwxyz"[(c + 1) % 6])) for c in codes]
        cells[one.name] = CodeCells(6, codes) if isinstance(one, ExactStatement) else one.from_arrow(pa.array(found))
    monkeypatch.setattr(dependence, "_sampled", lambda draft, drawn: (truth, cells))
    designs = {one.name: one.design for one in statements if isinstance(one, SetStatement)}
    draft: Any = SimpleNamespace(statements=statements, designs=designs, records=12)
    return {(one.protected, one.by) for one in told(draft)}


def test_hidden_secrets_are_asked_for_and_all_listed_columns_may_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    job, pay, town = drawn("job"), drawn("pay"), exact("town")
    assert asked(monkeypatch, [job, town]) == {("job", "town")}
    assert asked(monkeypatch, [job, pay]) == {("job", "pay"), ("pay", "job")}
    free, open_secret = drawn("free", Role.PLAIN), exact("told", Role.SENSITIVE)
    assert asked(monkeypatch, [job, free, open_secret]) == {("job", "free"), ("job", "told")}
    assert asked(monkeypatch, [job, pay, town], lost=("pay",)) == {("job", "town")}
    assert asked(monkeypatch, [town, free]) == set()
    assert asked(monkeypatch, [job]) == set()


@pytest.mark.parametrize(("most", "looked", "refused"), [(1.0, False, False), (0.5, True, False), (0.4, True, True)])
def test_what_is_told_of_more_people_than_permitted_is_refused(
    most: float, looked: bool, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def found(draft: Any, above: float) -> list[Any]:
        asked.append(above)
        return [SimpleNamespace(at_most=0.5)]

    monkeypatch.setattr(dependence, "told", found)
    monkeypatch.setattr(dependence, "refused", lambda *given: ValueError("too much is told"))
    draft: Any = SimpleNamespace(statements=[drawn("job"), exact("town")], by_name={"job": 0, "town": 0})
    policy: Any = SimpleNamespace(dependence=SimpleNamespace(most=most))
    if refused:
        with pytest.raises(ValueError, match="too much is told"):
            demand_independence(draft, policy)
    else:
        assert demand_independence(draft, policy) == []
    assert asked == ([most] if looked else [])
