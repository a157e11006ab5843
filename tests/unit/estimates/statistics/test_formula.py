"""Formulas: what they name, and the columns that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from noren.errors import QueryError
from noren.estimates.statistics.formula import Coding, Formula, model_matrix

A, B = ("a", False), ("b", False)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("y ~ a + b", [(A,), (B,)]),
        ("y ~ a:b", [(A, B)]),
        ("y ~ a*b", [(A,), (B,), (A, B)]),
        ("y ~ C(a) + b", [(("a", True),), (B,)]),
        ("y ~ `native-country=Peru` + b", [(("native-country=Peru", False),), (B,)]),
        ("y ~ 1", []),
    ],
)
def test_terms(text: str, terms: list[object]) -> None:
    found = Formula.parse(text)
    assert list(found.terms) == terms
    assert (found.response, found.constant) == ("y", True)


def test_the_constant_can_be_left_out() -> None:
    assert not Formula.parse("y ~ a - 1").constant
    assert not Formula.parse("y ~ 0 + a").constant


@pytest.mark.parametrize(
    "text", ["y", "y ~", "~ a", "y ~ a +", "y ~ a b", "y ~ y", "y ~ C(a", "y ~ a - b", "y ~ log(a)", "y ~ 0", "y:a ~ b"]
)
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        Formula.parse(text)


def test_columns_of_levels_numbers_and_products() -> None:
    formula = Formula.parse("y ~ a*s")
    codings = {"a": Coding("a"), "s": Coding("s", ("F", "M"))}
    titles, x = model_matrix(formula, codings, {"a": np.array([2.0, 3.0]), "s": np.array([0, 1])}, (2,))
    assert titles == ["(constant)", "a", "s[M]", "a:s[M]"]
    assert x.tolist() == [[1, 2, 0, 0], [1, 3, 1, 3]]


def test_without_a_constant_the_first_levels_are_all_there() -> None:
    titles, _ = model_matrix(
        Formula.parse("y ~ s + t - 1"),
        {"s": Coding("s", ("F", "M")), "t": Coding("t", ("u", "v"))},
        {"s": np.array([0, 1]), "t": np.array([0, 1])},
        (2,),
    )
    assert titles == ["s[F]", "s[M]", "t[v]"]
