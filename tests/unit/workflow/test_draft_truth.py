"""The last check before anything is written: cells that do not cover their truth, and sets that do not follow their
design, are a defect that nothing passes.
"""

from __future__ import annotations

from functools import cache
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.engines import Group, Omit, Plan, Recode, Table
from noren.engines.plan import Average, Draw
from noren.errors import RequirementNotMet
from noren.schema.nodes import Nodes
from noren.statements import GroupTable, TermCells
from noren.workflow.draft import Draft, Drawn
from noren.workflow.prepare import prepare

KNOWN = nr.Knowledge.from_pairs([("flu", "cough"), ("flu", "ache"), ("pox", "rash"), ("pox", "cough")])
TOWNS = {"tree": {"south": ["Ulm", "Hof"], "north": ["Kiel"]}}


@cache
def table() -> Table:
    """Six people, in the order of their towns: Ulm, Hof, Kiel, Ulm, Hof, Kiel."""
    people = pa.table(
        {
            "town": ["Ulm", "Hof", "Kiel"] * 2,
            "age": [20, 30, 40, 50, 60, 70],
            "ill": ["flu", "flu", "cold", "cold", "gout", "gout"],
            "signs": pa.array([["cough"], ["ache"], [], ["rash", "salt"], ["cough", "ache"], ["salt"]]),
        }
    )
    signs = {"role": "quasi-sensitive", "knowledge": KNOWN, "unknown": "keep"}
    town = {"role": "quasi-identifier", "hierarchy": TOWNS}
    policy = nr.Policy(
        attributes={"town": town, "age": "quasi-identifier", "ill": "sensitive", "signs": signs},
        require=[nr.models.DistinctLDiversity(on="ill", l=2), {"model": "qs-closeness", "on": "signs", "t": 0.9}],
        method={"name": "suppress", "k": 2},
        dependence={"most": 1.0},
    )
    return prepare(people, policy)


def drafted(keep: list[bool] | None = None, **treatments: Any) -> Draft:
    kept = None if keep is None else np.array(keep)
    return Draft(table(), Plan(treatments, keep=kept, records=table().records), most=0.5)


def refused(column: str, keep: list[bool] | None = None, **treatments: Any) -> None:
    with pytest.raises(RequirementNotMet, match=f"cells of '{column}' do not cover the true values") as caught:
        drafted(keep, **treatments)
    assert "defect of the software" in str(caught.value.hint)


# ---------------------------------------------------------------- general values


def general(places: list[int], d: int = 3) -> Recode:
    """The first value, the other two, or all of them."""
    return Recode(Nodes.from_runs(d, ["first", "others", "*"], [[(0, 1)], [(1, d)], [(0, d)]]), np.array(places))


def test_a_general_value_covers_its_record() -> None:
    first = table().records.columns["town"].domain.index
    assert [first[name] for name in ("Ulm", "Hof", "Kiel")] == [0, 1, 2]
    drafted(town=general([0, 1, 1, 2, 1, 2]))
    refused("town", town=general([1, 1, 1, 2, 1, 2]))
    refused("town", town=general([0, 1, 1, 2, 1, 0]))


def test_only_records_that_are_published_must_be_covered() -> None:
    keep = [False, True, True, True, True, True]
    drafted(keep, town=general([1, 1, 1, 2, 1, 2]))
    refused("town", keep, town=general([0, 0, 1, 2, 1, 2]))


# ---------------------------------------------------------------- groups


def groups(counts: list[tuple[int, int, int]], places: list[int]) -> Group:
    """(group, value, count); the values are cold, flu, gout."""
    group, value, count = (np.array(part, np.int64) for part in zip(*counts, strict=True))
    return Group(GroupTable(2, 3, group, value, count), np.array(places))


def test_a_group_holds_what_its_table_says() -> None:
    domain = table().records.columns["ill"].domain.index
    cold, flu, gout = (domain[name] for name in ("cold", "flu", "gout"))
    rows = sorted([(0, flu, 2), (0, cold, 1), (1, cold, 1), (1, gout, 2)])
    drafted(ill=groups(rows, [0, 0, 0, 1, 1, 1]))
    refused("ill", ill=groups(rows, [0, 0, 1, 1, 1, 0]))
    other = sorted([(0, flu, 1), (0, cold, 2), (1, cold, 1), (1, gout, 2)])
    refused("ill", ill=groups(other, [0, 0, 0, 1, 1, 1]))


# ---------------------------------------------------------------- means


def test_a_mean_is_that_of_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    made = drafted(age=Average(np.array([0, 0, 0, 1, 1, 1])))
    statement, cells, real = made.by_name["age"], made.cells["age"], Draft._amounts
    assert made._true(statement, cells, np.arange(6))
    monkeypatch.setattr(Draft, "_amounts", lambda self, name: real(self, name) + 1)
    assert not made._true(statement, cells, np.arange(6))


# ---------------------------------------------------------------- terms


def signs(*held: list[str]) -> TermCells:
    index = table().columns["signs"].domain.index
    bounds = np.concatenate([[0], np.cumsum([len(one) for one in held])]).astype(np.int64)
    codes = [code for one in held for code in sorted(index[term] for term in one)]
    return TermCells(len(index), bounds, np.array(codes, np.int32))


HELD = (["cough"], ["ache"], [], ["rash", "salt"], ["cough", "ache"], ["salt"])


def test_published_terms_are_some_of_a_records_own() -> None:
    drafted(signs=Omit(signs(*HELD)))
    drafted(signs=Omit(signs([], [], [], ["rash"], ["ache"], [])))
    for wrong in (["ache"], ["cough", "ache"], ["rash"]):
        refused("signs", signs=Omit(signs(wrong, *HELD[1:])))
    refused("signs", signs=Omit(signs(*HELD[:2], ["salt"], *HELD[3:])))


def test_terms_of_the_knowledge_are_listed_and_of_others_those_that_are_published() -> None:
    assert drafted().by_name["signs"].domain.values == ("cough", "ache", "rash", "salt")
    none = drafted(signs=Omit(signs(["cough"], [], [], [], [], [])))
    assert none.by_name["signs"].domain.values == ("cough", "ache", "rash")
    assert (none.by_name["signs"].domain.source, drafted().by_name["signs"].domain.source) == ("policy", "data")
    one = drafted([True, True, True, True, True, False])
    assert one.by_name["signs"].domain.values[-1] == "salt", "one who is published is enough"
    keep = [True, True, True, False, True, False]
    less = drafted(keep)
    assert less.by_name["signs"].domain.values == ("cough", "ache", "rash"), "only they knew of salt"
    shown = less.cells["signs"].take(np.flatnonzero(keep))
    assert [cells.tolist() for cells in np.split(shown.data, shown.offsets[1:-1])] == [[0], [1], [], [0, 1]]  # type: ignore[attr-defined]


# ---------------------------------------------------------------- how many are left out


def test_what_may_be_left_out_is_left_out_and_no_record_more() -> None:
    half = [True, False] * 3
    assert drafted(half).suppressed == 3
    for keep, said in (([True, True] + [False] * 4, "more records were suppressed"), ([False] * 6, "every record")):
        with pytest.raises(RequirementNotMet, match=said):
            drafted(keep)


# ---------------------------------------------------------------- sets


N = 10_000


@cache
def many() -> Table:
    people = pa.table({"ill": [f"i{i % 4}" for i in range(N)]})
    asked = [nr.models.FrequencyLDiversity(on="ill", l=2)]
    return prepare(people, nr.Policy(attributes={"ill": "sensitive"}, require=asked, method="decoys"))


def counted(design: DecoyDesign, heads: int) -> Draft:
    """A draft whose sets had the truth so often."""
    made = Draft(many(), Plan({"ill": Draw(design)}))
    made.take_in(Drawn({"ill": heads}, {"ill": N * design.p_true}))
    return made


@pytest.mark.parametrize(
    "design",
    [DecoyDesign(d=4, eta=2), DecoyDesign(d=4, eta=4, p=1.0)],
    ids=["the truth is always in its set", "sets of everything"],
)
def test_a_truth_that_is_always_inside_is_never_missing(design: DecoyDesign) -> None:
    counted(design, N).demand_heads()
    for wrong in (N - 1, N + 1, 0):
        with pytest.raises(RequirementNotMet, match="sets of 'ill' do not follow their design"):
            counted(design, wrong).demand_heads()


def test_a_truth_that_is_sometimes_inside_is_there_as_often_as_the_design_says() -> None:
    """Within eight standard deviations, and a millionth of the records and one for rounding."""
    design = DecoyDesign(d=4, eta=2, p=0.8)
    mean = N * design.p_true
    far = 8 * sqrt(mean * (1 - design.p_true)) + 1e-6 * N + 1
    for heads in (mean, int(mean + far), int(mean - far) + 1):
        counted(design, round(heads)).demand_heads()
    for heads in (int(mean + far) + 1, int(mean - far)):
        with pytest.raises(RequirementNotMet, match="do not follow their design"):
            counted(design, heads).demand_heads()


def test_counting_begins_anew_where_cells_are_made_again() -> None:
    made = counted(DecoyDesign(d=4, eta=2), N)
    made.forget()
    made.take_in(Drawn({"ill": N}, {"ill": float(N)}))
    made.demand_heads()
