"""Formulas: what they name, and the columns that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from noren.errors import QueryError
from noren.estimates.statistics.formula import Coding, Factor, Formula, model_matrix, offset_of

A, B = Factor("a", ("a",)), Factor("b", ("b",))
PERU = "native-country=Peru"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("y ~ a + b", [(A,), (B,)]),
        ("y ~ a:b", [(A, B)]),
        ("y ~ a*b", [(A,), (B,), (A, B)]),
        ("y ~ C(a) + b", [(Factor("a", ("a",), True),), (B,)]),
        ("y ~ `native-country=Peru` + b", [(Factor(PERU, (PERU,)),), (B,)]),
        ("y ~ 1", []),
        ("y ~ C(a, Treatment('low'))", [(Factor("a", ("a",), True, "low"),)]),
        ("y ~ C(a, Treatment(reference=3)):b", [(Factor("a", ("a",), True, "3"), B)]),
        ("y ~ I(a**2) + np.log(b)", [(Factor("I(a**2)", ("a",)),), (Factor("np.log(b)", ("b",)),)]),
        ("y ~ I(a > `b c`)", [(Factor("I(a > b c)", ("a", "b c")),)]),
    ],
)
def test_terms(text: str, terms: list[object]) -> None:
    found = Formula.parse(text)
    assert list(found.terms) == terms
    assert (found.response.names, found.constant) == (("y",), True)


def test_the_constant_can_be_left_out() -> None:
    assert not Formula.parse("y ~ a - 1").constant
    assert not Formula.parse("y ~ 0 + a").constant


@pytest.mark.parametrize(
    "text",
    [
        "y",
        "y ~",
        "~ a",
        "y ~ a +",
        "y ~ a b",
        "y ~ y",
        "y ~ C(a",
        "y ~ a - b",
        "y ~ log(a",
        "y ~ 0",
        "y:a ~ b",
        "y ~ poly(a, 2)",
        "y ~ (a + b)**2",
        "y ~ I(1)",
        "y ~ C(a, Sum)",
        "y ~ a:offset(b)",
        "y ~ I(a.__class__())",
        "C(y) ~ a",
    ],
)
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        Formula.parse(text)


def test_columns_of_levels_numbers_and_products() -> None:
    formula = Formula.parse("y ~ a*s")
    a, s = formula.factors
    codings = {a: Coding("a"), s: Coding("s", ("F", "M"))}
    titles, x = model_matrix(formula, codings, {a: np.array([2.0, 3.0]), s: np.array([0, 1])}, (2,))
    assert titles == ["(constant)", "a", "s[M]", "a:s[M]"]
    assert x.tolist() == [[1, 2, 0, 0], [1, 3, 1, 3]]


def test_without_a_constant_the_first_levels_are_all_there() -> None:
    formula = Formula.parse("y ~ s + t - 1")
    s, t = formula.factors
    codings = {s: Coding("s", ("F", "M")), t: Coding("t", ("u", "v"))}
    titles, _ = model_matrix(formula, codings, dict.fromkeys((s, t), np.array([0, 1])), (2,))
    assert titles == ["s[F]", "s[M]", "t[v]"]


def test_functions_are_computed_and_missing_values_stay_missing() -> None:
    square, log = Formula.parse("y ~ I((a - 1)**2 / 2) + log1p(`b c`)").factors
    columns = {"a": np.array([3.0, np.nan]), "b c": np.array([0.0, 1.0])}
    np.testing.assert_array_equal(square.values(columns), [2.0, np.nan])
    np.testing.assert_array_equal(log.values(columns), np.log1p([0.0, 1.0]))


def test_a_function_without_a_finite_value_is_refused() -> None:
    (log,) = Formula.parse("y ~ np.log(a)").factors
    with pytest.raises(QueryError, match="no finite number"):
        log.values({"a": np.array([0.0, 1.0])})


def test_offsets_have_no_coefficient() -> None:
    formula = Formula.parse("y ~ a + offset(np.log(b))")
    a, offset = formula.factors
    assert (formula.terms, formula.offsets) == (((a,),), (offset,))
    assert offset_of(formula, {offset: np.array([1.0, 2.0])}, (2,)).tolist() == [[1.0], [2.0]]


def test_a_refusal_lists_what_is_supported() -> None:
    with pytest.raises(QueryError) as refused:
        Formula.parse("y ~ spline(a)")
    for known in ("I(a**2)", "np.log", "C(a, Treatment('level'))", "offset(a)"):
        assert known in (refused.value.hint or "")
