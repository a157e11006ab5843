"""Limits of the pipeline, each at the last number that passes and the first that does not."""

from __future__ import annotations

from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import MOST_LISTED, PolicyError, QueryError
from noren.models import BetaLikeness, DistinctLDiversity, KAnonymity
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.roles import Role
from noren.workflow import dependence
from noren.workflow.compare import MOST_SETTINGS, _can_be_learned, _within, settings, under
from noren.workflow.dependence import Told, refused
from noren.workflow.measure import Measure, _reachable, _read_roles
from noren.workflow.prepare import _demand_people, _watched_identifiers, prepare, remarks
from noren.workflow.settling import larger
from noren.workflow.shown import _distinct, may_be_listed
from tests.statements import meaning

ROLES: dict[str, Any] = {"who": "identifier", "home": "identifier", "town": "quasi-identifier", "ill": "sensitive"}
ASKED = [DistinctLDiversity(on="ill", l=2)]


def rules(**more: Any) -> nr.Policy:
    return nr.Policy(**({"attributes": ROLES, "require": ASKED, "method": "mondrian"} | more))


# ---------------------------------------------------------------- people with several rows


@pytest.mark.parametrize(
    ("records", "distinct", "cells", "people"),
    [
        (100, 9, 100, False),
        (100, 10, 100, True),
        (400, 19, 400, False),
        (400, 20, 400, True),
        (100, 99, 100, True),
        (100, 100, 100, False),
        (100, 90, 90, False),
    ],
)
def test_an_identifier_that_repeats_names_people(records: int, distinct: int, cells: int, people: bool) -> None:
    profile: Any = SimpleNamespace(
        identifiers=["who"], records=records, distinct=lambda name: distinct, cells=lambda name: cells
    )
    if not people:
        _demand_people(rules(), profile)
        return
    with pytest.raises(PolicyError, match=f"{cells} records have {distinct} different values of the identifier 'who'"):
        _demand_people(rules(), profile)


def test_a_dropped_column_may_repeat_and_is_never_published(tmp_path) -> None:
    """An identifier that repeats asks whose rows they are; `drop` says that the column names nobody."""
    rows = 400
    table = pl.DataFrame(
        {
            "ward": [f"ward {row % 150}" for row in range(rows)],
            "town": [("Aa", "Bo", "Cy")[row % 3] for row in range(rows)],
            "ill": [("flu", "cold", "gout", "acne")[row % 4] for row in range(rows)],
        }
    )
    others: dict[str, Any] = {"town": "quasi-identifier", "ill": "sensitive"}
    named, dropped = (rules(attributes={"ward": role, **others}) for role in ("identifier", "drop"))
    with pytest.raises(PolicyError, match="400 records have 150 different values of the identifier 'ward'"):
        nr.anonymize(table, named)
    release = nr.anonymize(table, dropped)
    assert dropped.published == tuple(release.columns) == ("town", "ill")
    release.save(tmp_path / "release")
    files = [path for path in (tmp_path / "release").iterdir() if path.is_file()]
    assert files
    assert not any(b"ward" in path.read_bytes() for path in files)
    assert nr.verify(release, policy=dropped, original=table).hold
    with pytest.raises(PolicyError, match="'ward' has the role drop and is never published"):
        rules(attributes={"ward": nr.drop(), **others}, require=[DistinctLDiversity(on="ward", l=2)])


@pytest.mark.parametrize(
    ("people", "watched"),
    [
        ({}, ["who", "home"]),
        ({"rows": "independent"}, []),
        ({"key": "who"}, []),
        ({"household": "home"}, ["who"]),
    ],
)
def test_identifiers_are_watched_unless_people_are_known(people: dict[str, str], watched: list[str]) -> None:
    assert _watched_identifiers(rules(people=people), ["who", "home", "town", "ill", "other"]) == watched


def test_the_holder_is_told_of_values_that_fewer_than_five_share() -> None:
    table = pl.DataFrame({"ill": ["a"] * 30 + ["b"] * 5 + ["c"] * 4 + ["d"], "town": ["u"] * 40})
    policy = nr.Policy(attributes={"ill": "sensitive", "town": "plain"}, require=ASKED, method="decoys")
    assert [one for one in remarks(prepare(table, policy), policy) if "fewer than five" in one] == [
        "ill: the published domain lists 2 values with fewer than five records (min_count and rare can merge or "
        "refuse them)"
    ]
    shared = table.filter(pl.col("ill") < "c")
    assert not [one for one in remarks(prepare(shared, policy), policy) if "fewer than five" in one]


# ---------------------------------------------------------------- grids


def test_a_grid_of_the_most_settings_is_tried_and_no_larger_one() -> None:
    policy = rules(require=[KAnonymity(k=2), *ASKED])
    assert settings(policy, {}) == [{}]
    assert under(policy, {}) is policy
    assert settings(policy, {"k": [2, 3], "l": [4]}) == [{"k": 2, "l": 4}, {"k": 3, "l": 4}]
    assert len(settings(policy, {"k": [*range(2, MOST_SETTINGS + 2)]})) == MOST_SETTINGS
    with pytest.raises(QueryError, match="has 201 settings"):
        settings(policy, {"k": [*range(2, MOST_SETTINGS + 3)]})
    with pytest.raises(QueryError, match="no requirement has a parameter 't'"):
        settings(policy, {"t": [0.1]})
    with pytest.raises(QueryError, match="no values of 'k'"):
        settings(policy, {"k": []})
    large, diverse = under(policy, {"k": 7}).require
    assert (large.required, diverse.required) == (7, 2)
    with pytest.raises(QueryError, match="k-anonymity cannot have k = 1: "):
        under(policy, {"k": 1})


def test_a_method_of_groups_needs_as_many_records() -> None:
    methods: Any = [SimpleNamespace(k=5), SimpleNamespace()]
    assert _within(methods, 5)
    assert not _within(methods, 4)
    assert _within(methods[1:], 1)


def test_quasi_identifiers_and_secrets_can_be_learned() -> None:
    assert {role for role in Role if _can_be_learned(meaning("a", 2, role))} == {*Role} - {
        Role.PLAIN,
        Role.QUASI_SENSITIVE,
    }
    assert not _can_be_learned(None)


# ---------------------------------------------------------------- larger classes


@pytest.mark.parametrize("factor", [1.0, 1.5, 3.0])
def test_classes_grow_by_a_factor_however_they_are_asked_for(factor: float) -> None:
    (one,) = larger([KAnonymity(k=5)], factor)
    assert one.required == ceil(5 * factor)
    near, *counted = larger([BetaLikeness(on="ill", beta=2.0)], factor)
    assert near.required == pytest.approx(2.0 / factor**0.15)
    assert [model.required for model in counted] == ([] if factor == 1 else [ceil(2 * factor)])
    _, same = larger([KAnonymity(k=3), BetaLikeness(on="ill", beta=2.0)], factor)
    assert same.required == pytest.approx(2.0 / factor**0.15)


# ---------------------------------------------------------------- what may be listed


def test_a_declared_domain_is_listed_and_one_of_the_data_only_as_far_as_it_is_published() -> None:
    occurs = np.array([True, False, False, False])
    values = ("a", "b", OTHER, MISSING)
    assert may_be_listed(Domain(values, "string", "data"), occurs).tolist() == [True, False, False, False]
    assert may_be_listed(Domain(values, "string", "policy"), occurs).tolist() == [True, True, False, False]


def test_labels_that_read_alike_are_numbered_from_two_on() -> None:
    assert _distinct(["a", "b", "a", "a", "a (2)"]) == ["a", "b", "a (2)", "a (3)", "a (2) (2)"]


def test_columns_are_named_by_roles() -> None:
    found = _read_roles(["a", "b", "c"], ["a", "b"], ["b", "c"])
    assert found == {"a": Role.QUASI_IDENTIFIER, "b": Role.SENSITIVE_QUASI_IDENTIFIER, "c": Role.SENSITIVE}
    with pytest.raises(QueryError, match=r"there is no column 'd', 'e'\."):
        _read_roles(["a"], ["e"], ["d"])


def test_figures_end_with_the_first_that_nothing_reaches() -> None:
    nothing = nr.models.RecursiveCLDiversity.hopeless
    assert nothing is not None

    def figure(achieved: float, column: str = "ill") -> Measure:
        return Measure(column, "recursive-cl-diversity", "c", {}, achieved, False, "", "")

    found = [figure(1.0), figure(nothing), figure(nothing), figure(2.0, "job")]
    assert _reachable(found) == [found[0], found[1], found[3]]


# ---------------------------------------------------------------- what columns tell


def told(protected: str, by: str, share: float, alone: float = 0.0, asked: int = 100) -> Told:
    return Told(protected, by, share - alone, alone, 10**9, asked)


def test_two_standard_errors_are_counted_against_the_holder() -> None:
    assert told("a", "b", 0.5, 0.25, 300).at_most == pytest.approx(0.25 + 2 * (0.25 * 0.75 / 300) ** 0.5)
    assert told("a", "b", 1.0).at_most == 1
    assert told("a", "b", 0.5, asked=0).at_most == pytest.approx(0.5 + 2 * 0.5)
    assert Told("a", "b", 0.5, 0.0, 300, 10**9).at_most == pytest.approx(0.5 + 2 * (0.25 / 300) ** 0.5), "so is asking"


@pytest.mark.parametrize("most", [0.0, 0.05, 0.5, 0.95])
@pytest.mark.parametrize("people", [1, 40, 10**6])
def test_the_least_share_that_is_refused_reaches_the_limit(most: float, people: int) -> None:
    least = dependence.least_refused(most, people, 1000)
    assert 0 <= least <= most
    assert Told("a", "b", least, 0.0, 1000, people).at_most == pytest.approx(most, abs=1e-9)


@pytest.mark.parametrize(
    ("more", "counted"), [(0, ""), (1, "and 1 more group of 2 columns."), (2, "and 2 more groups of 4 columns.")]
)
def test_the_first_groups_have_a_problem_and_the_rest_is_counted(more: int, counted: str) -> None:
    """Ten lines are never exceeded: a problem and its hint for each group, and one for the rest."""
    many = dependence.GROUPS + more
    order = [f"{part}{i}" for part in "st" for i in range(many)]
    found = [told(f"s{i}", f"t{i}", 0.9 - i / 100) for i in range(many)]
    problems = refused(found, hidden=[f"s{i}" for i in range(many)], order=order, policy=rules()).problems
    assert len(problems) == dependence.GROUPS + (more > 0)
    assert 2 * len(problems) <= MOST_LISTED
    for i in range(dependence.GROUPS):
        assert f"'t{i}'" in problems[i].message
        assert f"protect 't{i}'" in problems[i].hint
    assert problems[-1].message == counted if counted else "'t3'" in problems[-1].message
    assert "[dependence] most = 0.97 accepts" in problems[-1].hint, "0.9 and two standard errors of 100 people"


@pytest.mark.parametrize(("names", "text"), [(1, "'a'"), (2, "'a' and 'b'"), (6, "'e' and 'f'"), (7, "'f' and 1 more")])
def test_lists_of_names_end_after_six(names: int, text: str) -> None:
    assert dependence.list_names("abcdefgh"[:names]).endswith(text)
