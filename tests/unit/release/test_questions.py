"""What may be asked of a release, exactly up to its limits, and what answers say of themselves."""

from __future__ import annotations

from math import sqrt
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError

PEOPLE = pl.DataFrame(
    {
        "sex": ["f", "m"] * 40,
        "pay": [float(i % 8) for i in range(80)],
        "age": [float(i % 5) for i in range(80)],
        "flag": [float(i % 2) for i in range(80)],
        "town": ["u", "v", "w", "x"] * 20,
        "note": [None if i % 10 == 0 else "said" for i in range(80)],
        "w": [1.0, 3.0] * 40,
    }
)
ASKED: dict[str, Any] = {"attributes": dict.fromkeys(PEOPLE.columns, "plain"), "require": []}


@pytest.fixture(scope="module")
def plain() -> nr.Release:
    return nr.anonymize(PEOPLE, nr.Policy(**ASKED))


@pytest.fixture(scope="module")
def weighed() -> nr.Release:
    roles = ASKED["attributes"] | {"w": {"role": "plain", "weight": True}}
    return nr.anonymize(PEOPLE, nr.Policy(**(ASKED | {"attributes": roles})))


@pytest.mark.parametrize(("level", "fits"), [(0, False), (1e-6, True), (1 - 1e-6, True), (1, False)])
def test_a_level_lies_between_nothing_and_certainty(plain: nr.Release, level: float, fits: bool) -> None:
    asked: list[Any] = [plain.mean, plain.quantile, lambda name, level: plain.regress(f"{name} ~ age", level=level)]
    asked += [plain.estimate, lambda name, level: plain.count({name: 1}, level=level)]
    for ask in asked:
        if fits:
            ask("pay", level=level)
        else:
            with pytest.raises(QueryError, match="is not a probability"):
                ask("pay", level=level)


def test_conditions_choose_the_records_and_are_said(plain: nr.Release) -> None:
    found = plain.mean("pay", where={"sex": "f"})
    assert found.where == {"sex": "f"}
    assert found.records == 40
    assert found.frame["mean"].to_list() == pytest.approx([3.0])
    assert plain.mean("pay").where == {}
    assert plain.test("pay", "age", where={"sex": "f"}).records == 40
    assert plain.test("pay", "age").records == 80
    assert plain.regress("pay ~ age", where={"sex": "f"}).records == 40
    with pytest.raises(QueryError, match="no record meets the conditions"):
        plain.mean("pay", where={"sex": "f", "pay": 1})


@pytest.mark.parametrize(("number", "fits"), [(98, False), (99, True)])
def test_so_many_pairings_show_a_p_value(plain: nr.Release, number: int, fits: bool) -> None:
    if fits:
        found = plain.test("pay", "age", permutations=number)
        assert (found.permutations, found.reference) == (number, "permutation")
    else:
        with pytest.raises(QueryError, match="98 permutations are too few"):
            plain.test("pay", "age", permutations=number)


def test_weights_are_referred_to_random_signs(weighed: nr.Release) -> None:
    found = weighed.test("pay", "age", permutations=99)
    assert found.reference == "random signs"
    assert weighed.test("pay", "age", permutations=99, weighted=False).reference == "permutation"


@pytest.mark.parametrize(
    ("one", "two", "kind"),
    [
        ("pay", "age", "trend"),
        ("pay", "town", "difference"),
        ("town", "pay", "difference"),
        ("pay", "flag", "difference"),
        ("flag", "town", "independence"),
        ("sex", "town", "independence"),
    ],
)
def test_the_test_follows_from_the_columns(plain: nr.Release, one: str, two: str, kind: str) -> None:
    found = plain.test(one, two, permutations=99)
    assert found.kind == kind
    if kind == "difference":
        assert found.of[0] == "pay", "a difference is of numbers"
    assert plain.test(one, two, kind="independence", permutations=99).kind == "independence"
    with pytest.raises(QueryError, match="there is no test of kind 'other'"):
        plain.test(one, two, kind="other")  # type: ignore[arg-type]


def test_the_largest_table_is_worked_out_and_no_larger_one(plain: nr.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, fits in ((8, True), (7, False)):
        monkeypatch.setattr("noren.release.answers.CELL_LIMIT", limit)
        if fits:
            assert len(plain.estimate(["sex", "town"]).frame) == 8
        else:
            with pytest.raises(QueryError, match="would have 8 cells, more than 7"):
                plain.estimate(["sex", "town"])


@pytest.mark.parametrize("weighted", [None, False, True])
def test_weights_are_used_where_there_are_some_unless_records_are_to_be_counted(
    plain: nr.Release, weighed: nr.Release, weighted: bool | None
) -> None:
    people = 20 if weighted is False else 60
    assert weighed.count({"town": "v"}, weighted=weighted).count == pytest.approx(people)
    mean = weighed.mean("flag", weighted=weighted).frame["mean"].to_list()
    assert mean == pytest.approx([0.5 if weighted is False else 0.75])
    if weighted:
        with pytest.raises(QueryError, match="no survey weights"):
            plain.count({"town": "v"}, weighted=True)
    else:
        assert plain.count({"town": "v"}, weighted=weighted).count == 20


def test_an_exact_count_of_a_sample_has_the_error_of_a_share(plain: nr.Release, weighed: nr.Release) -> None:
    found = plain.count({"sex": "f"}, population=True)
    assert found.std_error == pytest.approx(sqrt(80 * 0.5 * 0.5))
    assert plain.count({"sex": "f"}).std_error != found.std_error
    heavy = weighed.count({"sex": "m"}, population=True)
    assert heavy.count == pytest.approx(120)
    parts = [3.0 * (sex == "m") for sex in PEOPLE["sex"]]
    mean = sum(parts) / 80
    assert heavy.std_error == pytest.approx(sqrt(sum((one - mean) ** 2 for one in parts)))
    assert heavy.low < 120 < heavy.high


def test_missing_cells_of_a_plain_column_are_a_value(plain: nr.Release) -> None:
    found = plain.estimate(["note"]).frame
    assert dict(zip(found["note"], found["count"], strict=True)) == {"said": 72, "(missing)": 8}


def test_a_column_is_asked_for_once(plain: nr.Release) -> None:
    with pytest.raises(QueryError, match="listed twice"):
        plain.estimate(["sex", "sex"])


@pytest.mark.parametrize("measure", ["difference", "ratio"])
def test_groups_are_compared_with_the_one_that_is_named(plain: nr.Release, measure: str) -> None:
    """Mean pay is 3 of women and 4 of men."""
    expected = {
        ("difference", None): [0, 1],
        ("difference", "f"): [0, 1],
        ("difference", "m"): [-1, 0],
        ("ratio", None): [1, 4 / 3],
        ("ratio", "f"): [1, 4 / 3],
        ("ratio", "m"): [3 / 4, 1],
    }
    ask = getattr(plain, measure)
    for against in (None, "f", "m"):
        found = ask("pay", by="sex", against=against).frame[measure].to_list()
        assert found == pytest.approx(expected[measure, against])
    with pytest.raises(QueryError, match="there is no group 'x'"):
        ask("pay", by="sex", against="x")
    with pytest.raises(QueryError, match="needs groups"):
        ask("pay", by=())
