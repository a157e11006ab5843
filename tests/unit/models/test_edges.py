"""Requirements at their edge: the last parameter that a table meets and the next, and what each says of itself."""

from __future__ import annotations

from itertools import combinations
from math import log
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.designs.semantic.design import SemanticDesign
from noren.errors import ModelDoesNotApply, NorenError
from noren.models import MODELS, Evidence, Model
from noren.models.base import NAMED_COLUMNS, Judgement, select_searchable
from noren.models.belief import Belief
from noren.models.semantic_diversity import LARGEST_SET, MOST_L
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.statements import CodeCells, SetCells
from noren.statements.batch import PERSON
from tests.statements import exact_column, member_column, open_column, set_column, term_column
from tests.unit.models.test_class_models import TREE, judged
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
    ("delta-disclosure", ("aaab", "abbb"), {"delta": 0.694}, {"delta": log(2)}),
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


def test_a_secret_by_which_people_are_found_is_judged_in_classes_by_the_others() -> None:
    """Else every class would have one value of it."""
    columns = {name: exact_column(name, 4, role=Role.QUASI_IDENTIFIER) for name in ("where", "age")}
    columns["x"] = exact_column("x", 4, role=Role.SENSITIVE_QUASI_IDENTIFIER)
    judgement = Judgement(model_of("distinct-l-diversity").checks(Evidence(columns, {})))
    same = CodeCells(4, np.zeros(3, np.uint8))
    judgement.observe({"where": same, "age": same, "x": CodeCells(4, np.array([0, 1, 3]))})
    (verdict,) = judgement.verdicts()
    assert (verdict.achieved, verdict.records) == (3, 3)


# ---------------------------------------------------------------- what they say of themselves

SAYS: dict[str, dict[Any, set[str]]] = {
    "stands": {
        0: {"k-anonymity"},
        2: {"t-closeness", "beta-likeness", "delta-disclosure", "qs-closeness", "informed-belief"},
        3: {"belief"},
    },
    "holds_of_parts": {True: {"t-closeness", "local-privacy"}},
    "judges_changed": {True: {"t-closeness", "local-privacy"}},
    "judges_left_out": {False: {"belief", "informed-belief", "local-privacy", "mechanism"}},
    "least_class_size": {
        4: {"k-anonymity", "p-sensitive-k-anonymity"},
        3: {"alpha-k-anonymity"},
    },
    "largest_share": {0.5: {"frequency-l-diversity", "alpha-k-anonymity", "tau-l-diversity"}},
    "least_set_size": {
        3: {"distinct-l-diversity", "expanded-k", "entropy-l-diversity"},
        2: {"frequency-l-diversity", "semantic-diversity", "le-diversity", "m-invariance"},
    },
}
"""Of the models of `model_of`. Others stand those who count, hold of tuples alone, do not judge changed values, judge
people who are left out, permit a class of one record and a set of one value, and name no share."""
OTHERWISE: dict[str, Any] = {"holds_of_parts": False, "judges_changed": False, "judges_left_out": True}
OTHERWISE |= {"stands": 1, "least_class_size": 1, "least_set_size": 1, "largest_share": None}


@pytest.mark.parametrize("fact", SAYS)
def test_what_is_said_of_these_models_and_of_no_other(fact: str) -> None:
    special = {name: value for value, names in SAYS[fact].items() for name in names}
    expected = {name: special.get(name, OTHERWISE[fact]) for name in MODELS}
    assert {name: getattr(model_of(name), fact) for name in MODELS} == expected


def test_what_a_column_achieves_is_asked_of_every_depth_and_what_a_table_does_of_classes() -> None:
    column, tree = exact_column("x", 4), exact_column("x", 4, hierarchy=TREE)
    for name, kind in MODELS.items():
        assert [one.model for one in kind.probes(None)] == ([name] if name == "k-anonymity" else [])
        assert all(one.on == ("x",) for one in kind.probes(column))
    asked = [(one.l, one.e) for one in MODELS["le-diversity"].probes(tree)]  # type: ignore[attr-defined]
    assert asked == [(2, 1), (2, 2)]
    assert MODELS["le-diversity"].probes(column) == []
    assert MODELS["local-privacy"].probes(column) == []
    assert [one.on for one in MODELS["local-privacy"].probes(set_column("x", 4))] == [("x",)]


def test_what_is_asked_to_see_what_a_column_achieves() -> None:
    def sizes(name: str, statement: Any) -> list[int]:
        return [one.l for one in MODELS[name].probes(statement)]  # type: ignore[attr-defined]

    far = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    assert sizes("qs-diversity", exact_column("x", 4)) == [2, 3, 5, 10]
    assert sizes("recursive-cl-diversity", exact_column("x", 4)) == [2, 3, 4]
    for eta, asked in ((1, []), (3, [2, 3]), (LARGEST_SET, [*range(2, MOST_L + 1)]), (LARGEST_SET + 1, [])):
        column = set_column("x", 20, DecoyDesign(d=20, eta=eta), distances=far)
        assert sizes("semantic-diversity", column) == asked
    assert sizes("semantic-diversity", set_column("x", 4)) == []
    assert sizes("semantic-diversity", exact_column("x", 20, distances=far)) == [*range(2, MOST_L + 1)]
    assert sizes("semantic-diversity", exact_column("x", 20)) == sizes("semantic-diversity", open_column("x")) == []
    distances, least = MODELS["semantic-diversity"](on="x", l=2, d=3.0).separation(column.column)
    assert (distances.tolist(), least) == (far.tolist(), 3.0)


def test_closeness_of_beliefs_speaks_of_one_label_or_of_sets_of_them() -> None:
    for distance, words in (("l2", "no single label becomes"), ("emd", "no set of labels becomes")):
        model = MODELS["qs-closeness"](on="x", t=0.2, distance=distance)
        assert words in model.promise("x", False).says


def test_sets_are_counted_in_which_a_value_is_believed_too_much() -> None:
    """Sets of one design differ in how much their likeliest member is believed: those above the limit fall short."""
    far = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    design = SemanticDesign.make("simple", far, 3, 2)
    sets = np.array([own for own in combinations(range(9), 3) if np.diff(own).min() >= 2])
    weights = design.set_weights(sets)
    beliefs = weights.max(axis=1) / weights.sum(axis=1)
    limit = float(np.median(beliefs))
    model = MODELS["semantic-diversity"](on="x", l=3, d=2.0, most=limit)
    judgement = Judgement.of({"x": set_column("x", 9, design, distances=far)}, [model])
    judgement.observe({"x": SetCells.from_codes(9, sets)})
    (verdict,) = judgement.verdicts()
    assert 0 < (beliefs > limit + 1e-9).sum() < len(sets)
    assert (verdict.holds, verdict.breaches) == (False, (beliefs > limit + 1e-9).sum())


def test_values_of_different_subtrees_lie_apart() -> None:
    model, column = MODELS["le-diversity"](on="x", l=2, e=1), exact_column("x", 4, hierarchy=TREE).column
    branch = np.array([0, 0, 1, 1])
    apart, least = model.separation(column)
    assert (apart.tolist(), least) == ((branch[:, None] != branch).astype(float).tolist(), 1.0)
    deepest, _ = MODELS["le-diversity"](on="x", l=2, e=2).separation(column)
    assert deepest.tolist() == (1 - np.eye(4)).tolist()
    for e, of, there in ((3, column, 2), (1, exact_column("x", 4).column, 0)):
        with pytest.raises(NorenError, match=f"{e} levels below its root; this one has {there}"):
            MODELS["le-diversity"](on="x", l=2, e=e).separation(of)


@pytest.mark.parametrize(
    ("classes", "says"),
    [(("ab", "abc"), "every class has at least 2 different values, each once"), (("ab", "aab"), "more than once")],
)
def test_invariant_classes_hold_every_value_once(classes: tuple[str, ...], says: str) -> None:
    assert says in judged(MODELS["m-invariance"](on="x", m=2), *classes).statement
    assert "at least 1 different" in judged(MODELS["m-invariance"](on="x", m=2), "a", "ab").statement


def test_six_columns_are_named_and_of_seven_five() -> None:
    model = model_of("distinct-l-diversity")
    names = [f"c{i}" for i in range(NAMED_COLUMNS + 1)]
    assert "each of c0, c1, c2, c3, c4 and c5" in model.promise_about(names[:6], False).says
    assert "each of c0, c1, c2, c3, c4 and 2 more columns" in model.promise_about(names, False).says
    assert "each of" not in model.promise_about(names[:1], False).says


def test_methods_look_for_what_classes_and_sets_can_meet() -> None:
    every = [model_of(name) for name in ("k-anonymity", "belief", "mechanism")]
    assert [one.model for one in select_searchable(every)] == ["k-anonymity"]
    assert [one.model for one in select_searchable(every, choosing=True)] == ["k-anonymity", "mechanism"]


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
        (
            "published",
            None,
            "from all published columns, singly and in pairs, no secret",
            "Somebody who reads all published columns",
        ),
        (
            "own",
            (),
            "from the own cell, no secret",
            "Somebody who reads a person's published cell of x and knows the freq",
        ),
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
    assert verdict.statement.endswith("; the columns that disclose most are b, d, c")
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
        with pytest.raises(ModelDoesNotApply, match="belief cannot judge column 'x'"):
            Belief(on="x", most=0.5).checks(Evidence({"x": column}, {}))
    for column in (exact_column("x", 1), set_column("x", 4)):
        assert Belief(on="x", most=0.5).checks(Evidence({"x": column}, {}))
