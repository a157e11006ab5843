"""Domains: order, kinds, labels. What a text looks like decides what it may become."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.schema.domain import MISSING, OTHER, Domain, bin_labels, infer_kind, number_text, parse, sort_labels
from noren.schema.kinds import Format, reader


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["1", "-20", "0"], "integer"),
        (["1", "2.5"], "number"),
        (["1e+16", "0.1"], "number"),
        (["true", "false"], "boolean"),
        (["true", "maybe"], "string"),
        (["01234", "12345"], "string"),
        (["1.50", "2.5"], "string"),
        (["+1"], "string"),
        (["1_000"], "string"),
        (["٣"], "string"),
        ([" 1"], "string"),
        (["nan"], "string"),
        (["inf"], "string"),
        (["9223372036854775807"], "integer"),
        (["9223372036854775808"], "string"),
        (["1", MISSING], "integer"),
        (["1", OTHER], "string"),
        ([MISSING], "string"),
        ([], "string"),
    ],
)
def test_the_kind_is_the_narrowest_that_gives_the_text_back(labels: list[str], kind: str) -> None:
    assert infer_kind(labels) == kind


@given(st.lists(st.one_of(st.text(), st.integers().map(str), st.floats().map(repr)), min_size=1))
def test_whatever_the_kind_the_text_comes_back(labels: list[str]) -> None:
    kind = infer_kind(labels)
    for label in labels:
        if label not in (MISSING, OTHER):
            value = parse(label, kind)
            back = {"boolean": lambda v: str(v).lower(), "string": str}.get(kind, number_text)(value)
            assert back == label or (kind == "integer" and str(value) == label)


def test_numbers_are_sorted_by_size_and_text_by_code_point() -> None:
    assert sort_labels(["10", "9", "-1", MISSING, "2"], "integer") == ["-1", "2", "9", "10", MISSING]
    assert sort_labels(["0.5", "0.25", "1e+16"], "number") == ["0.25", "0.5", "1e+16"]
    assert sort_labels(["10", "9", "01"], "string") == ["01", "10", "9"]
    assert sort_labels([MISSING, "é", OTHER, "z", "漢", "A"], "string") == ["A", "z", "é", "漢", OTHER, MISSING]


def test_index_and_special_categories() -> None:
    domain = Domain(("Köln", "北京", MISSING))
    assert domain.index == {"Köln": 0, "北京": 1, MISSING: 2}
    assert domain.has_missing
    assert len(domain) == 3
    assert not Domain(("a", "b")).has_missing


@pytest.mark.parametrize(
    ("domain", "ordered"),
    [
        (Domain(("a", "b")), False),
        (Domain(("b", "a"), source="policy"), True),
        (Domain(("1", "2"), "integer"), True),
        (Domain(("0.5", "2"), "number"), True),
        (Domain(("false", "true"), "boolean"), False),
        (Domain(bin_labels((0, 1)), edges=(0, 1), source="bins"), True),
    ],
)
def test_which_orders_mean_something(domain: Domain, ordered: bool) -> None:
    assert domain.is_ordered is ordered


def test_numbers_of_a_domain() -> None:
    assert np.array_equal(Domain(("1", "2.5")).numbers, [1, 2.5])
    assert Domain(("1", "two")).numbers is None
    edges = (0.0, 18.0, 120.0)
    assert np.array_equal(Domain(bin_labels(edges), edges=edges).numbers, [9, 69])
    assert Domain((*bin_labels(edges), MISSING), edges=edges).numbers is None


def test_typed_values() -> None:
    assert Domain(("-1", "10", MISSING), "integer").typed_values() == [-1, 10, None]
    assert Domain(("0.5", "2"), "number").typed_values() == [0.5, 2.0]
    assert Domain(("false", "true"), "boolean").typed_values() == [False, True]
    assert Domain(("01234", MISSING)).typed_values() == ["01234", MISSING]


def test_bin_labels_close_the_last_interval() -> None:
    assert bin_labels((0, 18, 30.5, 120)) == ("[0, 18)", "[18, 30.5)", "[30.5, 120]")


@pytest.mark.parametrize(
    ("number", "text"), [(18.0, "18"), (-0.0, "0"), (0.1, "0.1"), (1e16, "1e+16"), (1e-7, "1e-07"), (-2.5, "-2.5")]
)
def test_numbers_as_a_person_writes_them(number: float, text: str) -> None:
    assert number_text(number) == text


def test_whole_numbers_are_exact_ones() -> None:
    """From 2**53 on a float no longer names one whole number, so it is written as a number."""
    read = reader("integer", Format())
    assert read("3.0") == "3"
    assert read("9007199254740991") == "9007199254740991"
    assert read("9007199254740992.0") is None
    assert read("1.5") is None


def test_numbers_beside_a_category_are_read_as_numbers() -> None:
    made = Domain(("151.5", "160", MISSING), reads="number")
    opened = Domain(("151.5", "160", MISSING))
    for domain in (made, opened):
        assert domain.canonical(["160.0", "1.515e2", "170"]) == ["160", "151.5", "170"]
    said = Domain(("151.5", "160", OTHER), reads="string")
    assert said.canonical(["160.0"]) == ["160.0"]
