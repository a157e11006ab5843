"""Requirements at their edge: the last parameter that a table meets and the next, and what each says of itself."""

from __future__ import annotations

from math import log
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from noren.cells import CodeCells
from noren.cells.batch import PERSON
from noren.errors import ModelDoesNotApply
from noren.models import MODELS, Evidence, Model, Overall
from noren.models.base import NAMED_COLUMNS, searched
from noren.models.belief import Belief
from noren.models.judgement import Judgement
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from tests.statements import exact_column, member_column, open_column, set_column, term_column
from tests.unit.models.test_class_models import judged
from tests.unit.models.test_judgement import model_of

EDGES: list[tuple[str, tuple[str, ...], dict[str, Any], dict[str, Any]]] = [
    ("k-anonymity", ("abcd", "abcda"), {"k": 4}, {"k": 5}),
    ("distinct-l-diversity", ("aab", "abc"), {"l": 2}, {"l": 3}),
    ("frequency-l-diversity", ("aabb", "abc"), {"l": 2}, {"l": 3}),
    ("entropy-l-diversity", ("aabb", "abc"), {"l": 2}, {"l": 2.001}),
    ("recursive-cl-diversity", ("aab",), {"c": 2.001, "l": 2}, {"c": 2, "l": 2}),
    ("recursive-cl-diversity", ("aabc",), {"c": 2.001, "l": 3}, {"c": 2, "l": 3}),
    ("alpha-k-anonymity", ("aabb",), {"alpha": 0.5, "k": 4}, {"alpha": 0.499, "k": 4}),
    ("alpha-k-anonymity", ("aabb",), {"alpha": 0.5, "k": 4}, {"alpha": 0.5, "k": 5}),
    ("p-sensitive-k-anonymity", ("aaab", "abcd"), {"p": 2, "k": 4}, {"p": 3, "k": 4}),
    ("p-sensitive-k-anonymity", ("aaab", "abcd"), {"p": 2, "k": 4}, {"p": 2, "k": 5}),
    ("tau-l-diversity", ("aabc",), {"tau": 0.5, "l": 3}, {"tau": 0.499, "l": 3}),
    ("tau-l-diversity", ("aabb",), {"tau": 0.5, "l": 2}, {"tau": 0.5, "l": 3}),
    ("t-closeness", ("aab", "abb"), {"t": 1 / 6}, {"t": 0.166}),
    ("beta-likeness", ("aab", "abb"), {"beta": 1 / 3}, {"beta": 0.333}),
    ("delta-disclosure", ("aab", "abb"), {"delta": 0.406}, {"delta": log(3 / 2)}),
    ("le-diversity", ("abcd",), {"l": 2, "e": 1}, {"l": 3, "e": 1}),
    ("le-diversity", ("abcd",), {"l": 4, "e": 2}, {"l": 3, "e": 1}),
    ("m-invariance", ("ab", "abc"), {"m": 2}, {"m": 3}),
]


@pytest.mark.parametrize(("name", "classes", "last", "beyond"), EDGES)
def test_the_last_parameter_that_holds(
    name: str, classes: tuple[str, ...], last: dict[str, Any], beyond: dict[str, Any]
) -> None:
    on: dict[str, Any] = {} if name == "k-anonymity" else {"on": "x"}
    assert judged(MODELS[name](**on, **last), *classes).holds is True
    assert judged(MODELS[name](**on, **beyond), *classes).holds is False


# ---------------------------------------------------------------- what they say of themselves

SAYS: dict[str, dict[Any, set[str]]] = {
    "stands": {
        0: {"k-anonymity"},
        2: {"t-closeness", "beta-likeness", "delta-disclosure", "qs-closeness"},
        3: {"belief"},
    },
    "holds_of_parts": {True: {"t-closeness", "local-privacy"}},
    "judges_changed": {True: {"t-closeness", "local-privacy"}},
    "judges_left_out": {False: {"belief", "local-privacy", "mechanism"}},
    "least_class_size": {
        4: {"k-anonymity", "p-sensitive-k-anonymity"},
        3: {"alpha-k-anonymity"},
    },
}
"""Of the models of `model_of`. Others stand those who count, hold of tuples alone, do not judge changed values, judge
people who are left out, and permit a class of one record as far as its size goes."""
OTHERWISE = {"stands": 1, "holds_of_parts": False, "judges_changed": False, "judges_left_out": True}


@pytest.mark.parametrize("fact", SAYS)
def test_what_is_said_of_these_models_and_of_no_other(fact: str) -> None:
    special = {name: value for value, names in SAYS[fact].items() for name in names}
    expected = {name: special.get(name, OTHERWISE.get(fact, 1)) for name in MODELS}
    assert {name: getattr(model_of(name), fact) for name in MODELS} == expected


def test_six_columns_are_named_and_of_seven_five() -> None:
    model = model_of("distinct-l-diversity")
    names = [f"c{i}" for i in range(NAMED_COLUMNS + 1)]
    assert "each of c0, c1, c2, c3, c4 and c5" in model.promised(names[:6], False).says
    assert "each of c0, c1, c2, c3, c4 and 2 more columns" in model.promised(names, False).says
    assert "each of" not in model.promised(names[:1], False).says


def test_methods_look_for_what_classes_and_sets_can_meet() -> None:
    every = [model_of(name) for name in ("k-anonymity", "belief", "mechanism")]
    assert [one.model for one in searched(every)] == ["k-anonymity"]
    assert [one.model for one in searched(every, choosing=True)] == ["k-anonymity", "mechanism"]


SETS, CLASSES = "columns published as sets of possible values", "classes of records with equal quasi-identifiers"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("expanded-k", f"It is checked on {SETS}."),
        ("alpha-k-anonymity", f"It is checked on {CLASSES}, or on groups."),
        ("distinct-l-diversity", f"It is checked on {SETS}, and on {CLASSES}, or on groups."),
        ("qs-closeness", "It is checked on columns of the role 'quasi-sensitive'."),
    ],
)
def test_a_refusal_says_what_a_model_is_checked_on(name: str, hint: str) -> None:
    model = model_of(name)
    assert model.refuses(open_column("x")).hint == hint
    drawn = model.refuses(set_column("x", 4)).hint
    assert drawn is not None
    assert ('"mondrian"' in drawn) is (CLASSES in hint)


@pytest.mark.parametrize(("name", "apart"), [("t-closeness", False), ("distinct-l-diversity", True)])
def test_classes_are_judged_apart_unless_they_are_compared_with_all_together(name: str, apart: bool) -> None:
    columns = {"where": exact_column("where", 4, role=Role.QUASI_IDENTIFIER), "x": exact_column("x", 8)}
    known = {"x": Overall(np.full(8, 1 / 8), "the original")}
    assert [model_of(name).checks(Evidence(columns, one))[0].is_apart for one in ({}, known)] == [apart, True]
    assert not set_check_is_apart()


def set_check_is_apart() -> bool:
    (check,) = model_of("distinct-l-diversity").checks(Evidence({"x": set_column("x", 8)}, {}))
    return check.is_apart


# ---------------------------------------------------------------- belief


def believed(
    monkeypatch: pytest.MonkeyPatch,
    model: Model,
    beliefs: list[float],
    whose: list[int] | None = None,
    used: dict[str, float] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """The verdict on these beliefs about an exact column, and what was asked to learn them."""
    asked: dict[str, Any] = {}

    def learns(name: str, statements: Any, cells: Any, **more: Any) -> Any:
        asked.update(more, name=name, statements=[one.name for one in statements])
        return SimpleNamespace(belief=np.array(beliefs), used=used or {})

    monkeypatch.setattr("noren.models.belief.believed", learns)
    knowledge = Knowledge.from_sets([[0], [0, 1]], terms=["p", "q"])
    columns = {
        "x": exact_column("x", 2),
        "where": exact_column("where", 2, role=Role.QUASI_IDENTIFIER),
        "signs": term_column("signs", knowledge.terms, knowledge),
        "members": member_column("members", 4),
    }
    judgement = Judgement(model.checks(Evidence(columns, {}, whose is not None)))
    cells: dict[str, Any] = {name: CodeCells(2, np.zeros(len(beliefs), np.uint8)) for name in ("x", "where")}
    if whose is not None:
        cells[PERSON] = CodeCells(max(whose) + 1, np.array(whose))
    judgement.observe(cells)
    (verdict,) = judgement.verdicts()
    return verdict, asked


@pytest.mark.parametrize(
    ("share", "holds", "achieved"), [(0.0, False, 0.9), (0.2, False, 0.8), (0.4, True, 0.5), (0.99, True, 0.1)]
)
def test_a_share_of_the_people_may_be_believed_more_firmly(
    monkeypatch: pytest.MonkeyPatch, share: float, holds: bool, achieved: float
) -> None:
    model = Belief(on="x", most=0.5, share=share)
    verdict, _ = believed(monkeypatch, model, [0.5, 0.9, 0.1, 0.8, 0.3])
    assert (verdict.holds, verdict.achieved, verdict.breaches, verdict.records) == (holds, achieved, 2, 5)
    assert f"; 40.0% above {model.most:g}" in verdict.statement


def test_a_person_is_believed_as_the_firmest_of_the_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, asked = believed(monkeypatch, Belief(on="x", most=0.5), [0.1, 0.9, 0.2, 0.3, 0.4], [7, 2, 7, 2, 4])
    assert (verdict.records, verdict.breaches, verdict.achieved) == (3, 1, 0.9)
    assert asked["people"].tolist() == [7, 2, 7, 2, 4]
    model = Belief(on="x", most=0.5, share=0.67)
    assert believed(monkeypatch, model, [0.1, 0.9, 0.2, 0.3, 0.4], [7, 2, 7, 2, 4])[0].achieved == 0.2


@pytest.mark.parametrize(
    ("given", "others", "words", "who"),
    [
        ("published", None, "from all published columns, nobody", "Whoever reads all published columns"),
        ("own", (), "from the own cell, nobody", "Whoever reads a person's published cell of x and knows how common"),
    ],
)
def test_what_is_read_is_all_that_is_published_or_the_own_cell(
    monkeypatch: pytest.MonkeyPatch, given: Any, others: Any, words: str, who: str
) -> None:
    model = Belief(on="x", most=0.5, given=given)
    used = {"a": 0.1, "b": 0.4, "c": 0.2, "d": 0.3}
    verdict, asked = believed(monkeypatch, model, [0.5], used=used)
    assert (asked["name"], asked["given"], asked["people"]) == ("x", others, None)
    assert asked["statements"] == ["x", "where"], "neither terms nor members, whose rows are no records"
    assert verdict.statement.startswith(words)
    assert verdict.statement.endswith("; most is told by b, d, c")
    assert verdict.holds is True, "believed exactly as firmly as is permitted"
    assert model.promise("x", False).says.startswith(who)
    assert ("apart from" in model.promise("x", False).says) is False
    assert ", apart from 0.25 of the people." in Belief(on="x", most=0.5, share=0.25).promise("x", False).says
    assert model.least_set_size == 1


def test_rows_of_unknown_people_can_show_a_firm_belief_and_no_weak_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Belief(on="x", most=0.5)
    (check,) = model.checks(Evidence({"x": exact_column("x", 2)}, {}))
    for beliefs, holds in (([0.9], False), ([0.1], None)):
        verdict, _ = believed(monkeypatch, model, beliefs)
        told = check.of_rows(verdict)
        assert told.holds is holds
        assert ("rows were counted" in told.statement) is (holds is None)


def test_beliefs_are_in_columns_with_a_list_of_values_and_a_row_for_every_person() -> None:
    knowledge = Knowledge.from_sets([[0], [0, 1]], terms=["p", "q"])
    for column in (open_column("x"), member_column("x", 4), term_column("x", knowledge.terms, knowledge)):
        with pytest.raises(ModelDoesNotApply, match="belief makes no statement about column 'x'"):
            Belief(on="x", most=0.5).checks(Evidence({"x": column}, {}))
    for column in (exact_column("x", 1), set_column("x", 4)):
        assert Belief(on="x", most=0.5).checks(Evidence({"x": column}, {}))
