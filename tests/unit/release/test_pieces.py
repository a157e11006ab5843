"""Small pieces that reading a release is made of: rows, people, differences, statistics, what answers rest on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.errors import QueryError, ReleaseError
from noren.estimates.counts.estimate import SEVERAL_ROWS
from noren.release import gathered as room
from noren.release.answers import NOTHING, Reader, SeveralRows
from noren.release.closed import _demand_statistics, _differences
from noren.release.gathered import EXACT, SCORES, SPREAD, Gathered, _margins, gather
from noren.release.published import Published
from noren.release.store import PeopleStore, side_columns, sides
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import CodeCells, ExactStatement
from noren.statements.batch import PERSON

JOB = ExactStatement(Column(role=Role.SENSITIVE).over("job", Domain(("cook", "clerk"))))


class Store:
    """Two batches of two records and one."""

    def batches(self, columns: Any) -> Any:
        for codes in ([0, 1], [1]):
            yield {column.name: CodeCells(2, np.array(codes)) for column in columns}


class Counted(Store):
    """Tells different cells and how often each stands there."""

    def __init__(self, *rows: int) -> None:
        self.rows = rows

    def count_combinations(self, columns: Any) -> Any:
        return {"job": CodeCells(2, np.array([1, 0]))}, np.array(self.rows)


class Nothing(Store):
    def batches(self, columns: Any) -> Any:
        return iter(())


def test_rows_are_those_that_the_manifest_says() -> None:
    assert Published([JOB], Store(), 3).suppressed == 0
    assert Published([JOB], Store(), 3).cells(["job"])["job"].data.tolist() == [0, 1, 1]  # type: ignore[attr-defined]
    with pytest.raises(ReleaseError, match="the data hold 3 rows, the manifest says 4"):
        Published([JOB], Store(), 4).cells(["job"])
    with pytest.raises(ReleaseError, match="the data hold 0 rows, the manifest says 3"):
        Published([JOB], Nothing(), 3).cells(["job"])
    with pytest.raises(ReleaseError, match="the data hold 0 rows, the manifest says 0"):
        Published([JOB], Nothing(), 0).cells(["job"])


def test_counted_rows_are_as_good_as_rows() -> None:
    found = Published([JOB], Counted(2, 1), 3).gather_cells(["job"])["job"]
    assert found.data.tolist() == [1, 1, 0]  # type: ignore[attr-defined]
    with pytest.raises(ReleaseError, match="the data hold 5 rows, the manifest says 3"):
        Published([JOB], Counted(2, 3), 3).gather_cells(["job"])
    plain = Published([JOB], Store(), 3).gather_cells(["job"])["job"]
    assert plain.data.tolist() == [0, 1, 1]  # type: ignore[attr-defined]


def test_whose_rows_they_are_goes_on_from_batch_to_batch() -> None:
    people = PeopleStore(Store(), np.array([7, 8, 9]))
    assert [batch[PERSON].data.tolist() for batch in people.batches([JOB])] == [[7, 8], [9]]  # type: ignore[attr-defined]


def test_lists_differ_where_their_entries_do() -> None:
    assert _differences([1, 2], [1, 2], "here", same=True) == []
    assert _differences([1, 3], [1, 2], "here", same=True) == ["here[1]"]
    assert _differences([1], [1, 2], "here", same=True) == ["here"]
    assert _differences([{"a": 1}, 2], [{"a": 2}, 3], "", same=True) == ["[0].a", "[1]"]
    assert _differences([], [], "here", same=True) == []


@pytest.mark.parametrize(
    ("cells", "told", "refused"),
    [
        ([1, 2, 3], (1, 3), False),
        ([1, 2, 3], (0, 3), True),
        ([1, 2, 3], (1, 4), True),
        ([1, 2, 3], None, False),
        ([1, 2, 3], (), False),
        ([[1, 2], [3]], (1, 3), False),
        ([[1, 2], [3]], (1, 2), True),
        (["a", "b"], ("a", "b"), False),
        (["a", "b"], ("a", "c"), True),
    ],
)
def test_statistics_name_values_that_cells_have(cells: list[Any], told: Any, refused: bool) -> None:
    stated = None
    if told is not None:
        stated = SimpleNamespace(has_min_max=bool(told), min=told[0] if told else None, max=told[-1] if told else None)
    group = SimpleNamespace(column=lambda at: SimpleNamespace(statistics=stated))
    table = pa.table({"x": cells})
    if refused:
        with pytest.raises(ReleaseError, match="its statistics name values that its cells do not have"):
            _demand_statistics(Path("data.parquet"), group, table)
        return
    _demand_statistics(Path("data.parquet"), group, table)
    _demand_statistics(Path("data.parquet"), group, table.slice(0, 0))


def test_side_tables_stand_by_number_and_hold_the_longest_of_what_is_put_in() -> None:
    stems = ["groups-10", None, "groups-2", "terms", "groups-2"]
    columns: Any = [SimpleNamespace(name=str(i), side=stem) for i, stem in enumerate(stems)]
    found = sides(columns)
    assert list(found) == ["groups-2", "groups-10", "terms"]
    assert [one.name for one in found["groups-2"]] == ["2", "4"]
    sharing: Any = [
        SimpleNamespace(side_columns=lambda: {"a": [1], "b": [1, 2]}),
        SimpleNamespace(side_columns=lambda: {"a": [3, 4], "b": [5]}),
    ]
    assert side_columns(sharing) == {"a": [3, 4], "b": [1, 2]}
    nothing: Any = [SimpleNamespace(side_columns=lambda: {"a": []})]
    assert side_columns(nothing) == {"a": []}


# ---------------------------------------------------------------- what answers rest on


def rests(*, sampled: bool = False, **given: Any) -> str:
    plain = {"axes": (), "suppressed": 0, "weights": None, "margins": (), "several": NOTHING}
    return Gathered.assumes(SimpleNamespace(**plain | given), sampled=sampled)  # type: ignore[arg-type]


def axis(drawn: bool = False, coarse: bool = False) -> Any:
    return SimpleNamespace(is_drawn=drawn, is_coarse=coarse)


def test_what_numbers_rest_on_is_said() -> None:
    assert rests() == rests(axes=[axis()]) == rests(axes=[axis()], margins=[1]) == EXACT
    assert rests(axes=[axis(drawn=True), axis()]) == SCORES
    assert rests(axes=[axis(coarse=True), axis()]) == SPREAD
    noised = "noised margins, where they help, as described in the manifest"
    assert rests(axes=[axis(drawn=True)], margins=[1]) == f"{SCORES}; {noised}"
    assert rests(suppressed=1200) == "the 1,200 suppressed records are distributed like the others"
    assert rests(weights=SimpleNamespace(assumes="weights")) == "weights"
    several = SeveralRows(1, SEVERAL_ROWS)
    assert rests(several=several) == rests(sampled=True) == EXACT
    assert rests(several=several, sampled=True) == SEVERAL_ROWS
    assert rests(axes=[axis(drawn=True)], several=several) == f"{SCORES}; {SEVERAL_ROWS}"


def test_notes_are_sentences_each_once() -> None:
    told: Any = SimpleNamespace(
        variables={
            "a": SimpleNamespace(note="middles stand for bins"),
            "b": SimpleNamespace(note=""),
            "c": SimpleNamespace(note="middles stand for bins"),
        }
    )
    assert Gathered.notes(told, ["a", "b", "c"]) == ("Middles stand for bins.",)


def test_a_member_has_a_domain_of_its_own() -> None:
    members: Any = SimpleNamespace(owner={"m": "pair"}, columns={"m": "the member"})
    reader = Reader(members, {"job": JOB}, {})
    assert reader.column("m") == "the member"
    assert reader.column("job") is JOB.column


def test_margins_serve_that_know_all_columns_with_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [SimpleNamespace(names=("job", "town")), SimpleNamespace(names=("job",))]
    monkeypatch.setattr(room, "noised_tables", lambda release: tables)
    monkeypatch.setattr(room, "PlacedMargin", lambda table, places, masks: (table.names, places, masks))
    both = _margins(None, {"town": 0}, {"job": "mask"}, [])  # type: ignore[arg-type,dict-item]
    assert both == [(("job", "town"), (None, 0), {0: "mask"}), (("job",), (None,), {0: "mask"})]
    assert [one[0] for one in _margins(None, {}, {}, ["town"])] == [("job", "town")]  # type: ignore[arg-type,index]
    assert _margins(None, {}, {}, ["job", "town", "else"]) == []  # type: ignore[arg-type]


def test_shuffled_rows_are_nobodys() -> None:
    with pytest.raises(QueryError, match="shuffled rows"):
        gather(SimpleNamespace(rows_per_record=2), [], {})  # type: ignore[arg-type]
