"""Where policy and table meet: what the table that comes out knows of itself."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.errors import PolicyError
from noren.workflow.prepare import KEY_LEAST, prepare

N = 30
PEOPLE = pl.DataFrame(
    {
        "pid": [f"p{i}" for i in range(N)],
        "town": ["Ulm", "Hof", None] * (N // 3),
        "pay": ["1,5", "2,5"] * (N // 2),
        "ill": ["flu", "cold"] * (N // 2),
        "note": ["seen", "unseen"] * (N // 2),
        "other": ["x"] * N,
    }
)
ROLES: dict[str, Any] = {
    "pid": "identifier",
    "town": {"role": "quasi-identifier", "missing": "drop"},
    "pay": {"role": "quasi-identifier", "decimal": ","},
    "ill": "sensitive",
    "note": "plain",
    "other": "identifier",
}
KEPT = N - N // 3


def ready(**more: Any) -> Any:
    given = {"attributes": ROLES, "require": [nr.models.DistinctLDiversity(on="ill", l=2)], "method": "mondrian"}
    return prepare(PEOPLE, nr.Policy(**(given | more)))


def test_methods_decide_about_quasi_identifiers_and_secrets() -> None:
    found = ready()
    assert found.deciding == ("town", "pay", "ill")
    assert list(found.columns) == ["town", "pay", "ill", "note"]
    assert (found.n, found.profile.dropped) == (KEPT, N - KEPT)


def test_numbers_are_read_with_the_mark_that_is_declared() -> None:
    domain = ready().columns["pay"].domain
    assert domain.kind == "number"
    assert [float(one) for one in domain.amounts] == [1.5, 2.5]


def test_bins_count_numbers_with_the_mark_that_is_declared() -> None:
    binned = ready(attributes=ROLES | {"pay": {"role": "quasi-identifier", "decimal": ",", "bins": [0, 2, 4]}})
    assert binned.columns["pay"].domain.values == ("[0, 2)", "[2, 4]")
    assert binned.counts["pay"].tolist() == [KEPT // 2, KEPT // 2]


def test_a_sample_is_taken_unless_everybody_is_asked_for() -> None:
    rules = nr.Policy(attributes={"note": "plain"}, require=[], method="decoys", sample={"share": 0.01})
    many = pl.DataFrame({"note": ["a", "b"] * 2000})
    assert prepare(many, rules).n < 400
    assert prepare(many, rules, sample=False).n == 4000


def test_a_table_without_a_column_of_the_policy_is_refused() -> None:
    with pytest.raises(PolicyError, match="town"):
        prepare(PEOPLE.select("other"), nr.Policy(attributes={"town": "plain"}, require=[], method="decoys"))


@pytest.mark.parametrize(("values", "people"), [(KEY_LEAST - 1, False), (KEY_LEAST, True)])
def test_ten_values_of_an_identifier_may_name_people(values: int, people: bool) -> None:
    table = PEOPLE.select("note").with_columns(other=pl.Series([f"x{i % values}" for i in range(N)]))
    rules = nr.Policy(attributes={"note": "plain", "other": "identifier"}, require=[], method="decoys")
    assert values == 10 - (not people)
    if people:
        with pytest.raises(PolicyError, match="30 records have 10 different values of the identifier 'other'"):
            prepare(table, rules)
    else:
        assert prepare(table, rules).n == N
