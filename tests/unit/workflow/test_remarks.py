"""What a holder is told about the values that a release will name: whom it concerns, and from how many people on."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.workflow.prepare import prepare, remarks

ASKED = [nr.models.DistinctLDiversity(on="ill", l=2)]
RARE = "values with fewer than five records"


def told(columns: dict[str, Any], method: str = "decoys", **cells: list[Any]) -> list[str]:
    """The remarks on a table of forty people with two illnesses, beside other columns."""
    table = pl.DataFrame({"ill": ["flu", "cold"] * 20} | cells)
    policy = nr.Policy(
        attributes={"ill": "sensitive"} | columns, require=ASKED, method=method, dependence={"most": 1.0}
    )
    return remarks(prepare(table, policy), policy)


def counted(**times: int) -> list[str]:
    return [value for value, count in times.items() for _ in range(count)]


def test_nothing_is_said_where_everybody_has_company() -> None:
    assert told({"town": "quasi-identifier"}, "mondrian", town=counted(a=5, b=35)) == []


@pytest.mark.parametrize(("rare", "named"), [(5, ""), (4, "1"), (1, "1")])
def test_rare_values_are_counted_from_one_record_to_four(rare: int, named: str) -> None:
    found = told({"town": "quasi-identifier"}, "mondrian", town=counted(a=rare, b=40 - rare))
    assert [one.split(RARE)[0] for one in found] == ([f"town: the published domain lists {named} "] if named else [])


def test_rare_values_are_told_of_what_is_hidden_or_general() -> None:
    rare = counted(a=2, b=38)
    assert told({"town": "plain"}, "decoys", town=rare) == [], "what passes as it is names them in its cells"
    both = told({"town": "plain", "home": "quasi-identifier"}, "mondrian", town=rare, home=counted(a=5, b=35))
    assert both == [], "whatever other columns are"
    assert told({"town": "quasi-identifier"}, "decoys", town=rare) == [], "as do quasi-identifiers beside decoys"
    (found,) = told({"town": "quasi-identifier"}, "mondrian", town=rare)
    assert found.startswith("town: the published domain lists 1 values")
    (found,) = told({}, "decoys", ill=counted(flu=38, gout=2))
    assert found.startswith("ill: the published domain lists 1 values")
    assert told({"age": "quasi-identifier"}, "mondrian", age=[20] * 38 + [30, 40]) == [], "intervals name no number"
    declared = {"role": "quasi-identifier", "values": ["a", "b"]}
    assert told({"town": declared}, "mondrian", town=rare) == []


def test_values_that_nobody_has_are_not_rare() -> None:
    tree = {"tree": {"x": ["a", "c"], "y": ["b", "d"]}}
    town = {"role": "quasi-identifier", "hierarchy": tree}
    assert told({"town": town}, "mondrian", town=counted(a=5, b=35)) == []


@pytest.mark.parametrize(("rare", "said"), [((2, 2), False), ((1, 1), True), ((2, 1), True)])
def test_merged_values_stand_for_enough_people_or_it_is_said(rare: tuple[int, int], said: bool) -> None:
    """Values of fewer than four people become one: together they must be four."""
    first, second = rare
    ill = counted(flu=8, cold=8, ache=8, rash=8, mumps=8 - first - second, gout=first, burn=second)
    found = told({"ill": {"role": "sensitive", "min_count": 4, "rare": "merge"}}, "decoys", ill=ill)
    assert [one for one in found if "even (other)" in one] == (
        ["ill: even (other) has fewer than min_count records"] if said else []
    )


def test_a_value_that_is_called_other_was_not_merged() -> None:
    ill = ["(other)"] * 6 + ["flu"] * 34
    found = told({"ill": {"role": "sensitive", "min_count": 1}}, "decoys", ill=ill)
    assert not [one for one in found if "even (other)" in one]


@pytest.mark.parametrize(("shared", "said"), [(5, []), (4, ["4 records"]), (1, ["1 records"])])
def test_weights_that_few_share_are_told(shared: int, said: list[str]) -> None:
    weight = {"role": "plain", "weight": True}
    found = told({"w": weight, "town": "plain"}, w=[1.5] * shared + [2.5] * (40 - shared), town=counted(a=1, b=39))
    assert [one.split(" have")[0] for one in found] == [f"w: {one}" for one in said]


# ---------------------------------------------------------------- terms

KNOWN = nr.Knowledge.from_pairs([("flu", "cough"), ("flu", "ache"), ("pox", "rash"), ("pox", "cough")])


def of_terms(unknown: str, *times: int) -> list[str]:
    """The remarks on forty people who all have a cough, of whom some have terms that no knowledge names."""
    held = [["cough", *(f"t{i}" for i, count in enumerate(times) if row < count)] for row in range(40)]
    table = pa.table({"age": ["old", "young"] * 20, "signs": pa.array(held, pa.list_(pa.string()))})
    signs = {"role": "quasi-sensitive", "knowledge": KNOWN, "unknown": unknown}
    policy = nr.Policy(
        attributes={"age": "quasi-identifier", "signs": signs},
        require=[{"model": "qs-closeness", "on": "signs", "t": 0.9}],
        method="suppress",
    )
    return remarks(prepare(table, policy), policy)


def test_terms_that_are_not_published_are_counted() -> None:
    assert of_terms("drop", 4, 6) == [
        "signs: 10 terms that the knowledge table lacks are not published (counted once per record)"
    ]
    assert of_terms("drop") == of_terms("keep") == []


def test_unknown_terms_of_few_records_are_counted_from_one_to_four() -> None:
    assert of_terms("keep", 5, 6) == []
    assert of_terms("keep", 5, 4, 1) == ["signs: 2 unknown terms with fewer than five records are published"]


@pytest.mark.parametrize(("rare", "share"), [(4, ""), (8, "20%")])
def test_many_merged_values_are_told_of(rare: int, share: str) -> None:
    column = {"role": "quasi-identifier", "min_count": 5, "rare": "merge"}
    found = told({"town": column}, "mondrian", town=[*map(str, range(rare)), *counted(b=20, c=20 - rare)])
    merged = [one.partition(" have a value")[0] for one in found if "of the records" in one]
    assert merged == ([f"town: {share} of the records"] if share else [])
