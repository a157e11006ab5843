"""A table with terms, free texts and several records a person: what is read as what, and what a method sees of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.engines import Table
from noren.engines.table import _kind, subdomain
from noren.errors import DataError
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.workflow.prepare import prepare
from tests.unit import term_world

PEOPLE = pl.DataFrame(
    {
        "row": ["r1", "r2", "r3", "r4"],
        "age": [30, 30, 40, 40],
        "town": ["n", "s", "n", "s"],
        "ill": ["a", "b", "c", "d"],
        "signs": [["cough"], ["fever", "ache"], [], ["rash"]],
    }
)


def test_columns_are_read_as_codes_terms_or_texts() -> None:
    whole = prepare(PEOPLE, term_world.policy())
    everything = whole.reading()
    assert (list(everything.domains), list(everything.terms)) == (["row", "age", "town"], ["signs"])
    some = whole.reading(["town", "signs"], key="row")
    assert (list(some.domains), list(some.terms), list(some.open), some.key) == (["town"], ["signs"], [], "row")
    free = replace(whole, columns={**whole.columns, "row": Column(role=Role.PLAIN).over("row", None)})
    told = free.reading()
    assert (list(told.domains), list(told.terms), list(told.open)) == (["age", "town"], ["signs"], ["row"])


def test_a_method_sees_codes_of_values_and_sets_of_terms() -> None:
    whole = prepare(PEOPLE, term_world.policy())
    found = whole.records
    assert sorted(found.codes) == sorted(found.columns) == ["age", "town"]
    assert list(found.terms) == ["signs"]
    ages = [whole.columns["age"].domain.values[code] for code in found.codes["age"]]
    assert ages == ["30", "30", "40", "40"]
    cells, terms = found.terms["signs"].cells, whole.columns["signs"].domain.values
    rows = [sorted(terms[c] for c in cells.data[a:b]) for a, b in zip(cells.offsets, cells.offsets[1:], strict=False)]
    assert rows == [["cough"], ["ache", "fever"], [], ["rash"]]


def test_a_table_that_changed_while_it_was_read_is_refused() -> None:
    whole = prepare(PEOPLE, term_world.policy())
    fewer = replace(whole, profile=replace(whole.profile, records=5))
    with pytest.raises(DataError, match="it changed while it was read"):
        _ = fewer.records


@pytest.mark.parametrize(("counts", "shares"), [([1, 0], [1, 0]), ([0, 0], [0, 0]), ([1, 3], [0.25, 0.75])])
def test_shares_of_values_add_up_to_one_if_there_are_some(counts: list[int], shares: list[float]) -> None:
    whole: Any = replace(prepare(PEOPLE, term_world.policy()), counts={"town": np.array(counts)})
    assert whole.shares("town").tolist() == shares


# ---------------------------------------------------------------- people


def keyed(*keys: Any) -> Table:
    frame = pl.DataFrame({"house": ["a", "a", "b", "b"], "name": keys, "ill": ["x", "y", "x", "y"]})
    policy = nr.Policy(
        attributes={"house": "identifier", "name": "identifier", "ill": "sensitive"},
        require=[nr.models.DistinctLDiversity(on="ill", l=2)],
        people={"key": ["house", "name"]},
    )
    return prepare(frame, policy)


def test_several_columns_may_name_a_person() -> None:
    found = keyed("u", "u", "u", "v").people
    assert found is not None
    assert found[0] == found[1]
    assert sorted(found[1:].tolist()) == [0, 1, 2]
    assert keyed("u", "v", "u", "v").people is None, "everybody has one record"


@pytest.mark.parametrize("keys", [("u", "u", "u", None), (None, "u", "u", "u")])
def test_a_person_of_whom_a_part_of_the_key_is_missing_is_refused(keys: tuple[Any, ...]) -> None:
    with pytest.raises(DataError, match="the key of a person is missing in some records"):
        _ = keyed(*keys).people


# ---------------------------------------------------------------- values that nobody has


@pytest.mark.parametrize(
    ("require", "seen"),
    [
        ([{"model": "t-closeness", "on": "grade", "t": 0.4, "distance": "equal"}], ("a", "c")),
        ([{"model": "t-closeness", "on": "grade", "t": 0.4, "distance": "ordered"}], ("a", "b", "c")),
        ([{"model": "m-invariance", "on": "grade", "m": 2}], ("a", "b", "c")),
    ],
)
def test_secrets_that_nobody_has_stay_where_their_order_or_earlier_releases_count(
    require: list[Any], seen: tuple[str, ...]
) -> None:
    frame = pl.DataFrame({"id": range(8), "town": ["u", "v"] * 4, "grade": ["a", "c"] * 4})
    invariant = require[0]["model"] == "m-invariance"
    policy = nr.Policy(
        attributes={
            "id": "identifier",
            "town": {"role": "quasi-identifier", "values": ["u", "v", "w"]},
            "grade": {"role": "sensitive", "values": ["a", "b", "c"], "distance": "ordinal"},
        },
        require=require,
        method="m-invariance" if invariant else "mondrian",
        randomness={"record_key": "id", "mode": "fresh"} if invariant else {},
    )
    columns, places = prepare(frame, policy).seen
    assert columns["grade"].domain.values == seen
    assert columns["town"].domain.values == ("u", "v", "w"), "what finds people keeps its domain"
    assert {name: place.tolist() for name, place in places.items()} == ({"grade": [0, 0, 1]} if len(seen) == 2 else {})


def test_a_value_that_one_person_has_is_kept() -> None:
    frame = pl.DataFrame({"town": ["u"] * 3, "ill": ["a", "b", "b"]})
    roles = {"town": "quasi-identifier", "ill": {"role": "sensitive", "values": ["a", "b", "c"]}}
    policy = nr.Policy(
        attributes=roles, require=[nr.models.DistinctLDiversity(on="ill", l=2)], method="mondrian"
    )  # fmt: skip
    assert prepare(frame, policy).seen[0]["ill"].domain.values == ("a", "b")


def test_a_hierarchy_of_fewer_values_is_that_of_those() -> None:
    tree = Hierarchy((("a", "b", "c"), ("X", "X", "Y"), ("*", "*", "*")))
    column = Column(role=Role.SENSITIVE).over("ill", Domain(("a", "b", "c")), hierarchy=tree)
    less, place = subdomain(column, np.array([False, True, True]))
    assert less.tree is not None
    assert (less.tree.leaves, place.tolist()) == (("b", "c"), [0, 0, 1])
    plain, _ = subdomain(Column(role=Role.SENSITIVE).over("ill", Domain(("a", "b"))), np.array([True, False]))
    assert plain.tree is None


def test_bins_that_all_stay_are_still_bins_with_or_without_what_is_missing() -> None:
    bins = Domain(("[0, 10)", "[10, 20]", "(missing)", "(other)"), edges=(0.0, 10.0, 20.0), source="bins")
    for kept, edges in (([True, True, False, False], bins.edges), ([True, True, True, False], bins.edges)):
        less, _ = subdomain(Column(role=Role.SENSITIVE).over("age", bins), np.array(kept))
        assert less.domain.edges == edges


@pytest.mark.parametrize(
    ("domain", "declared", "left", "kind"),
    [
        (Domain(("1", "2", "(missing)"), "string", "policy"), None, ("1", "2"), "integer"),
        (Domain(("1", "2", "(missing)"), "string", "policy", reads="string"), "text", ("1", "2"), "string"),
        (Domain(("1", "2", "(missing)"), "string", "data", reads="string"), None, ("1", "2"), "string"),
        (Domain(("1", "2", "(missing)"), "string", "hierarchy"), None, ("1", "2"), "string"),
        (Domain(("1", "2", "(missing)"), "integer", "data"), None, ("1", "2"), "integer"),
        (Domain(("1", "2"), "string", "policy"), None, ("1",), "string"),
    ],
)
def test_numbers_of_a_policy_are_numbers_again_unless_it_calls_them_texts(
    domain: Domain, declared: Any, left: tuple[str, ...], kind: str
) -> None:
    column = Column(role=Role.PLAIN, kind=declared).over("x", domain)
    assert _kind(column, left) == kind
