"""People found in groups, searches in figures: against what the words say, at the ends."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.engines.engine import OPEN_LIMIT, Profile, ValueCounts
from noren.engines.finding import Finder, exact_nodes, numbered_sets, sorted_groups
from noren.engines.plan import TermSearch
from noren.engines.records import Records, TermRecords, pinned, priors
from noren.engines.table import Table, subdomain
from noren.errors import DataError
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import TermCells


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[list[tuple[int, ...]]], list[list[int]], list[list[int]]]:
    """Columns of nodes, a node of every record, and people by their codes, some unknown."""
    columns, d = draw(st.integers(1, 3)), 4
    member = st.lists(st.integers(0, d - 1), min_size=1, max_size=d, unique=True).map(lambda own: tuple(sorted(own)))
    nodes = [draw(st.lists(member, min_size=1, max_size=4)) for _ in range(columns)]
    rows, people = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    data = [draw(st.lists(st.integers(0, len(own) - 1), min_size=rows, max_size=rows)) for own in nodes]
    codes = [draw(st.lists(st.integers(-1, d - 1), min_size=people, max_size=people)) for _ in nodes]
    return nodes, data, codes


@given(groups())
def test_people_are_found_in_the_groups_that_cover_them(case: Any) -> None:
    members, data, codes = case
    rows, people = len(data[0]), len(codes[0])
    nodes = [Nodes.from_members(4, [f"n{i}" for i in range(len(own))], own) for own in members]
    finder = Finder(nodes, [np.array(one) for one in data], rows)
    kind = finder.class_of
    cells = [tuple(one[row] for one in data) for row in range(rows)]
    assert [[cells[a] == cells[b] for b in range(rows)] for a in range(rows)] == (kind[:, None] == kind).tolist()

    def covered(person: int, row: int) -> bool:
        return all(codes[c][person] in members[c][data[c][row]] for c in range(len(members)))

    who, group = finder.pairs([np.array(one) for one in codes], people)
    expected = sorted({(p, int(kind[r])) for p in range(people) for r in range(rows) if covered(p, r)})
    assert [*zip(who.tolist(), group.tolist(), strict=True)] == expected
    seen = {}
    for some in finder.candidates([np.array(one) for one in codes], people):
        for person, number in zip(some.people.tolist(), some.of.tolist(), strict=True):
            seen[person] = sorted(some.order[some.bounds[number] : some.bounds[number + 1]].tolist())
    wanted = {p: [r for r in range(rows) if covered(p, r)] for p in range(people)}
    assert seen == {person: found for person, found in wanted.items() if found}


def test_without_columns_everybody_is_in_every_group() -> None:
    finder = Finder([], [], 3)
    assert [part.tolist() for part in finder.pairs([], 2)] == [[0, 1], [0, 0]]
    (found,) = finder.candidates([], 2)
    assert (found.people.tolist(), sorted(found.order.tolist()), found.bounds.tolist()) == ([0, 1], [0, 1, 2], [0, 3])
    assert (found.of.tolist(), found.groups.tolist()) == ([0, 0], [1])


def test_people_and_records_are_found_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine people of a value each, and one group for every two values: three rows of every group."""
    monkeypatch.setattr("noren.engines.finding.PEOPLE_AT_ONCE", 4)
    monkeypatch.setattr("noren.engines.finding.RECORDS_AT_ONCE", 6)
    nodes = Nodes.from_members(9, [f"n{i}" for i in range(8)], [(i, i + 1) for i in range(8)])
    finder = Finder([nodes], [np.repeat(np.arange(8), 3)], 24)
    seen = {}
    for some in finder.candidates([np.arange(9)[::-1]], 9):
        assert len(set(some.of.tolist())) == len(some.groups) == len(some.bounds) - 1
        assert some.bounds[-1] == len(some.order) <= 6 or len(some.groups) == 1
        for person, number in zip(some.people.tolist(), some.of.tolist(), strict=True):
            rows = some.order[some.bounds[number] : some.bounds[number + 1]]
            seen[person] = (int(some.groups[number]), sorted({int(row) // 3 for row in rows}), len(rows))
    inner = {8 - value: (2, [value - 1, value], 6) for value in range(1, 8)}
    assert seen == inner | {8: (1, [0], 3), 0: (1, [7], 3)}


def test_base_values_are_nodes_of_their_own_and_rows_alike_stand_together() -> None:
    nodes = exact_nodes(3)
    assert [nodes.members(i).tolist() for i in range(len(nodes))] == [[0], [1], [2]]
    keys, order, bounds = sorted_groups(np.array([[1, 0], [0, 2], [1, 0]]))
    assert (keys.tolist(), order.tolist(), bounds.tolist()) == ([[0, 2], [1, 0]], [1, 0, 2], [0, 1, 3])
    keys, order, bounds = sorted_groups(np.zeros((3, 0), int))
    assert (keys.shape, sorted(order.tolist()), bounds.tolist()) == ((1, 0), [0, 1, 2], [0, 3])


@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=8))
def test_lists_have_one_number_if_they_are_equal(lists: list[list[int]]) -> None:
    offsets = np.cumsum([0, *map(len, lists)])
    found = numbered_sets(offsets, np.array([one for own in lists for one in own], np.int64))
    assert [[a == b for b in lists] for a in lists] == (found[:, None] == found).tolist()
    assert set(found.tolist()) == set(range(len(set(map(tuple, lists)))))


def search(records: list[int], cost: list[float], bound: list[float]) -> TermSearch:
    some = np.ones(len(records), bool)
    return TermSearch(
        ("signs",), "greedy", np.array(records), np.array(cost), np.array(bound), ~some, some, 9, 3, 7, 0.0
    )


@pytest.mark.parametrize(
    ("records", "cost", "bound", "of_groups", "of_records", "gap"),
    [
        ([1], [0.5], [0.25], 0.5, 0.5, 1.0),
        ([1, 3], [0.4, 0.0], [0.2, 0.0], 0.2, 0.1, 1.0),
        ([2, 2], [0.4, 0.2], [0.4, 0.2], 0.3, 0.3, 0.0),
        ([2], [0.4], [0.0], 0.4, 0.4, inf),
        ([], [], [], 0.0, 0.0, 0.0),
    ],
)
def test_costs_of_a_search_are_means(records, cost, bound, of_groups, of_records, gap) -> None:
    found = search(records, cost, bound)
    assert (found.mean_cost, found.mean_cost_of_records) == pytest.approx((of_groups, of_records))
    assert found.gap == pytest.approx(gap)
    assert found.totals["groups"] == len(records)
    assert (found.totals["searched"], found.totals["proven"]) == (len(records), 0)


def test_a_search_among_some_groups_is_of_these() -> None:
    less = search([1, 3], [0.4, 0.0], [0.2, 0.0]).among(np.array([0]), 4, 2)
    assert (less.mean_cost, less.records.tolist(), less.entries, less.removed) == (0.4, [1], 4, 2)


@pytest.mark.parametrize("given_priors", [None, {"flu": 0.75, "cold": 0.25}])
def test_parts_remember_what_was_believed_because_of_all_records(given_priors: dict[str, float] | None) -> None:
    known = Knowledge.from_pairs([("flu", "fever"), ("cold", "cough")], priors=given_priors)
    column = Column(role=Role.QUASI_SENSITIVE, knowledge="signs.csv").over(
        "signs", Domain(known.terms), knowledge=known
    )
    fever, cough = known.terms.index("fever"), known.terms.index("cough")
    cells = TermCells.from_entries(2, 4, np.arange(4), np.array([fever, fever, fever, cough]))
    records = Records(4, {}, {}, {"signs": TermRecords(column, cells)})
    part = pinned(records).taken(np.array([3])).terms["signs"]
    if given_priors is not None:
        assert part.prior is None
        assert priors(records) == {}
        return
    assert part.prior is not None
    assert part.prior[known.labels.index("flu")] == pytest.approx(0.75)


def test_the_room_of_a_decision_grows_with_records_and_widths_of_codes() -> None:
    """64 bytes of every record, and six times its codes: of one byte up to 256 values, of two beyond."""
    columns = {
        name: Column(role=Role.QUASI_IDENTIFIER).over(name, Domain(tuple(map(str, range(d)))))
        for name, d in (("a", 2), ("b", 256), ("c", 257))
    }
    columns["free"] = Column(role=Role.PLAIN).over("free", None)
    profile: Any = SimpleNamespace(records=10)

    def room(*names: str) -> int:
        table: Any = SimpleNamespace(deciding=names, columns=columns, n=profile.records)
        return Table.room.fget(table)  # type: ignore[attr-defined, no-any-return]

    assert [room(), room("a"), room("a", "b"), room("c")] == [640, 700, 760, 760]
    with pytest.raises(DataError, match="'free' has too many values for classes"):
        room("a", "free")


def test_some_values_of_a_column_keep_their_order_distance_and_bins() -> None:
    apart = ((0.0, 1.0, 5.0), (1.0, 0.0, 4.0), (5.0, 4.0, 0.0))
    column = Column(role=Role.SENSITIVE).over("ill", Domain(("a", "b", "c")), distance=apart)
    less, place = subdomain(column, np.array([True, False, True]))
    assert (less.domain.values, less.distance, place.tolist()) == (("a", "c"), ((0.0, 5.0), (5.0, 0.0)), [0, 0, 1])
    same, place = subdomain(column, np.array([True, True, True]))
    assert same is column
    assert place.tolist() == [0, 1, 2]
    bins = Domain(("[0, 10)", "[10, 20]", "(missing)"), edges=(0.0, 10.0, 20.0), source="bins")
    for kept, edges in (([True, True, False], (0.0, 10.0, 20.0)), ([True, False, True], None)):
        less, _ = subdomain(Column(role=Role.SENSITIVE).over("age", bins), np.array(kept))
        assert less.domain.edges == edges


@pytest.mark.parametrize(("extra", "is_open"), [(0, False), (1, True)])
def test_a_column_is_open_beyond_so_many_values_whichever_part_had_them(extra: int, is_open: bool) -> None:
    half = {str(i): 1 for i in range(OPEN_LIMIT - 1)}
    one, two = ValueCounts("x", missing=1, outside=2), ValueCounts("x", missing=3, outside=4, not_numeric=True)
    one.add(half)
    two.add({"0": 2, "last": 1} | {f"more {i}": 1 for i in range(extra)})
    one.merge(two)
    assert (one.is_open, one.missing, one.outside, one.not_numeric) == (is_open, 4, 6, True)
    assert one.counts.get("0") == (None if is_open else 3)
    one.add({"0": 1})
    assert one.counts.get("0") == (None if is_open else 4)
    other = ValueCounts("x")
    other.merge(one)
    assert (other.is_open, other.not_numeric) == (is_open, True)
    other.merge(ValueCounts("x"))
    assert (other.is_open, other.not_numeric) == (is_open, True)
    two.merge(ValueCounts("x"))
    assert not two.is_open
    fine = ValueCounts("x")
    fine.merge(ValueCounts("x"))
    assert not fine.not_numeric


def test_profiles_of_parts_merge_and_an_empty_table_is_refused() -> None:
    def profile(records: int, dropped: int, *hashes: int) -> Profile:
        return Profile(records, dropped, {"x": ValueCounts("x")}, {"id": [np.array(hashes, np.uint64)]})

    whole = profile(2, 1, 7, 8)
    whole.merge(profile(1, 0, 8))
    assert (whole.records, whole.dropped, whole.distinct("id"), whole.cells("id")) == (3, 1, 2, 3)
    assert whole.identifiers == ["id"]
    whole.demand("t.csv")
    assert profile(0, 0).distinct("other") == 0
    told = Profile(3, 0, {}, told={"id": (2, 3)})
    assert (told.distinct("id"), told.cells("id"), told.identifiers) == (2, 3, ["id"])
    for empty, why in (
        (profile(0, 0), "it has a header but no rows"),
        (profile(0, 2), "dropped because of a missing value"),
    ):
        with pytest.raises(DataError, match=why):
            empty.demand("t.csv")
    whole.columns["x"].is_open = True
    whole.demand("t.csv")
    with pytest.raises(DataError, match="'x' has more than 100,000 different terms"):
        whole.demand("t.csv", ["x"])
