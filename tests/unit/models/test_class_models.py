"""Models about classes of records: classes counted by hand, how they are gathered, and what is refused."""

from __future__ import annotations

from math import exp, inf, log
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from noren.errors import ModelDoesNotApply
from noren.models import (
    MODELS,
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DistinctLDiversity,
    EntropyLDiversity,
    Evidence,
    ExpandedK,
    FrequencyLDiversity,
    KAnonymity,
    LEDiversity,
    Model,
    PSensitiveKAnonymity,
    QSCloseness,
    QSDiversity,
    RecursiveCLDiversity,
    SemanticDiversity,
    TauLDiversity,
    TCloseness,
    Verdict,
    histograms,
)
from noren.models import classes as room
from noren.models.base import Judgement
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import CodeCells, GroupStatement, GroupTable, OpenCells, SetCells, Statement, TermCells
from tests.statements import (
    exact_column,
    group_column,
    meaning,
    member_column,
    node_column,
    open_column,
    set_column,
    term_column,
)

QUASI, SECRET = Role.QUASI_IDENTIFIER, Role.SENSITIVE
TREE = Hierarchy((("a", "b", "c", "d"), ("ab", "ab", "cd", "cd"), ("*",) * 4))
WHERE = exact_column("where", 4, role=QUASI)
AGES = Nodes.from_members(2, ["0", "any"], [(0,), (0, 1)])


def seen(model: Model, columns: list[Statement], *batches: dict[str, Any]) -> Verdict:
    (check,) = model.checks(Evidence({column.name: column for column in columns}, {}))
    for batch in batches:
        check.observe(batch)
    return check.verdict()


def judged(model: Model, *classes: str, tree: Hierarchy = TREE) -> Verdict:
    """One class per word, one record per letter: "aab" has twice the value a and once b."""
    column = exact_column("x", len(tree.leaves), hierarchy=tree, role=SECRET)
    where = np.concatenate([[], *([i] * len(word) for i, word in enumerate(classes))]).astype(np.uint8)
    codes = np.array(["abcd".index(letter) for word in classes for letter in word], np.uint8)
    batch = {"where": CodeCells(4, where), "x": CodeCells(column.d, codes)}
    return seen(model, [WHERE, column], batch)


GOOD, BAD = "aabbcd", "aaab"
"""Of six records: shares 1/3, 1/3, 1/6, 1/6. Of four: 3/4, 1/4. Together a is 1/2, b 3/10, c and d 1/10 each."""
BY_HAND = [
    (DistinctLDiversity(on="x", l=3), 4, 2),
    (FrequencyLDiversity(on="x", l=3), 3, 4 / 3),
    (EntropyLDiversity(on="x", l=3), 3**(2 / 3) * 6**(1 / 3), 4 / 3**0.75),
    (RecursiveCLDiversity(on="x", c=2, l=3), 1, inf),
    (RecursiveCLDiversity(on="x", c=2, l=2), 1 / 2, 3),
    (AlphaKAnonymity(on="x", alpha=0.5, k=2), 1 / 3, 3 / 4),
    (AlphaKAnonymity(on="x", alpha=0.9, k=5), 1 / 3, 3 / 4),
    (PSensitiveKAnonymity(on="x", p=3, k=2), 4, 2),
    (PSensitiveKAnonymity(on="x", p=2, k=5), 4, 2),
    (TauLDiversity(on="x", tau=0.5, l=2), 1 / 3, 3 / 4),
    (TauLDiversity(on="x", tau=0.5, l=3), 1 / 3, 1),
    (LEDiversity(on="x", l=2, e=2), 3, 4 / 3),
    (KAnonymity(k=5), 6, 4),
]  # fmt: skip


@pytest.mark.parametrize(("model", "good", "bad"), BY_HAND, ids=lambda x: x.model if isinstance(x, Model) else "")
def test_classes_counted_by_hand(model: Model, good: float, bad: float) -> None:
    fine = judged(model, GOOD, GOOD)
    assert (fine.holds, fine.records, fine.breaches) == (True, 12, 0)
    assert fine.achieved == pytest.approx(good)
    failed = judged(model, GOOD, BAD)
    assert (failed.holds, failed.records, failed.breaches) == (False, 10, 4)
    assert failed.achieved == pytest.approx(bad)
    assert (failed.model, failed.required, failed.basis) == (model.model, model.required, "the release alone")
    assert failed.column == ("quasi-identifiers" if isinstance(model, KAnonymity) else "x")


RELATIVE = [
    (TCloseness(on="x", t=0.2), 1 / 4),
    (TCloseness(on="x", t=0.05, distance="ordered"), (1 / 4 + 1 / 5 + 1 / 10) / 3),
    (TCloseness(on="x", t=0.2, distance="tree"), (1 / 4 + 1 / 5) / 2),
    (BetaLikeness(on="x", beta=0.6, form="basic"), 2 / 3),
    (BetaLikeness(on="x", beta=0.6, form="enhanced"), 2 / 3),
    (DeltaDisclosure(on="x", delta=1.5), inf),
]


@pytest.mark.parametrize(("model", "worst"), RELATIVE, ids=lambda x: x.model if isinstance(x, Model) else "")
def test_classes_compared_with_the_whole(model: Model, worst: float) -> None:
    assert judged(model, GOOD, GOOD).holds is True
    assert judged(model, GOOD, GOOD).achieved == pytest.approx(0)
    failed = judged(model, GOOD, BAD)
    assert failed.holds is False
    assert failed.achieved == pytest.approx(worst)


def test_enhanced_likeness_knows_gains_that_no_beta_permits() -> None:
    """The value a rises from 9/10 to 1, by a ninth; -ln(0.9) is less."""
    classes = ("aaaaaaaab", "aaaaaaaab", "aa")
    assert judged(BetaLikeness(on="x", beta=2, form="basic"), *classes).achieved == pytest.approx(1 / 9)
    verdict = judged(BetaLikeness(on="x", beta=2), *classes)
    assert (verdict.holds, verdict.achieved, verdict.breaches) == (False, inf, 2)
    assert "for any beta" in verdict.statement


def test_disclosure_is_about_values_that_become_rarer_too() -> None:
    verdict = judged(DeltaDisclosure(on="x", delta=0.5), "aaab", "abbb")
    assert (verdict.holds, verdict.achieved, verdict.breaches) == (False, pytest.approx(log(2)), 8)
    assert judged(DeltaDisclosure(on="x", delta=0.7), "aaab", "abbb").holds is True
    assert "lacks a value" in judged(DeltaDisclosure(on="x", delta=9), "aaab", "aaaa").statement


def test_recursive_diversity_is_strict_and_rounding_does_not_help() -> None:
    assert judged(RecursiveCLDiversity(on="x", c=2, l=2), "aabb").holds is True
    assert judged(RecursiveCLDiversity(on="x", c=1, l=2), "aabb").holds is False
    assert 1.12 * 25 > 28, "in floating point"
    assert judged(RecursiveCLDiversity(on="x", c=1.12, l=2), "a" * 28 + "b" * 25).holds is False


def test_a_class_that_is_too_small_fails_although_its_values_are_mixed() -> None:
    verdict = judged(AlphaKAnonymity(on="x", alpha=0.5, k=3), "abab", "ab")
    assert (verdict.holds, verdict.achieved, verdict.breaches) == (False, 0.5, 2)
    assert "smallest class has 2 records (k = 3)" in verdict.statement


OF_CLASSES = [
    name
    for name, kind in MODELS.items()
    if kind.judge_classes is not Model.judge_classes and not kind.of_mechanism and kind is not SemanticDiversity
]
"""Semantic diversity of classes, which needs a distance, is in test_semantic_models.py."""


@pytest.mark.parametrize("name", [*OF_CLASSES, "k-anonymity"])
def test_no_records_prove_nothing(name: str) -> None:
    known = [*(case[0] for case in BY_HAND), *(case[0] for case in RELATIVE), MODELS["m-invariance"](on="x", m=2)]
    model = next(m for m in known if m.model == name)
    verdict = judged(model)
    assert (verdict.holds, verdict.achieved, verdict.records, verdict.breaches) == (False, 0, 0, 0)


@pytest.mark.parametrize("model", [QSDiversity(on="x", c=1, l=2), QSCloseness(on="x", t=0.5)])
@pytest.mark.parametrize("batches", [0, 1])
def test_no_terms_of_nobody_prove_nothing(model: Model, batches: int) -> None:
    knowledge = Knowledge.from_sets([[0], [0, 1]], terms=["p", "q"])
    column = term_column("x", knowledge.terms, knowledge)
    none = {"where": CodeCells(4, np.zeros(0, np.uint8)), "x": TermCells(2, np.zeros(1, int), np.zeros(0, np.int32))}
    verdict = seen(model, [WHERE, column], *[none] * batches)
    assert (verdict.holds, verdict.achieved, verdict.records, verdict.breaches) == (False, 0, 0, 0)


# ---------------------------------------------------------------- groups


TABLE = GroupTable.from_codes(3, 4, np.array([0, 0, 0, 2, 2]), np.array([0, 1, 1, 2, 3]))
GROUPED = group_column("x", 4, hierarchy=TREE, role=SECRET, groups=TABLE)


def groups(model: Model, *ids: int) -> Verdict:
    """The group id of every record; each is alone in its quasi-identifier, which does not matter."""
    keys = set_column("where", 4, role=QUASI)
    return seen(model, [keys, GROUPED], {"x": CodeCells(3, np.array(ids, np.uint8))})


def test_groups_are_judged_by_their_table() -> None:
    verdict = groups(FrequencyLDiversity(on="x", l=2), 2, 0, 0, 2, 0)
    assert (verdict.holds, verdict.achieved, verdict.records, verdict.breaches) == (False, 1.5, 5, 3)
    assert groups(DistinctLDiversity(on="x", l=2), 2, 0, 0, 2, 0).holds is True


@pytest.mark.parametrize(
    ("ids", "records", "breaches"),
    [((0, 0, 0, 2), 4, 2), ((0, 0, 0, 2, 2, 2), 6, 3), ((0, 0, 0, 1, 2, 2), 6, 1), ((0, 0, 0), 3, 2)],
    ids=["one too few", "one too many", "a group without values", "a group without records"],
)
def test_groups_whose_size_is_not_that_of_their_table(ids: tuple[int, ...], records: int, breaches: int) -> None:
    verdict = groups(DistinctLDiversity(on="x", l=2), *ids)
    assert (verdict.holds, verdict.records, verdict.breaches) == (False, records, breaches)
    assert "do not have as many records as their table says" in verdict.statement


def test_a_group_check_takes_its_cells_alone() -> None:
    check = DistinctLDiversity(on="x", l=2).check(GROUPED, Evidence({"where": WHERE, "x": GROUPED}, {}))
    assert check.needs == ("x",)
    check.observe({"x": CodeCells(3, np.array([0, 0, 0, 2, 2]))})
    assert check.verdict().holds is True


# ---------------------------------------------------------------- classes


def test_classes_by_columns_of_every_form() -> None:
    """Missing texts are a class of their own; a group id and a node are keys like any code."""
    table = GroupTable.from_codes(2, 3, np.array([0, 1]), np.array([0, 1]))
    columns = [
        open_column("text", 0, role=QUASI),
        node_column("age", 2, role=QUASI, nodes=AGES),
        group_column("job", 3, role=Role.SENSITIVE_QUASI_IDENTIFIER, groups=table),
        exact_column("note", 9, role=Role.PLAIN),
        exact_column("x", 4, role=SECRET),
    ]
    batch = {
        "text": OpenCells(pa.array(["u", "u", None, None, "u", "u"])),
        "age": CodeCells(2, np.array([0, 0, 0, 0, 1, 1])),
        "job": CodeCells(2, np.array([1, 1, 1, 1, 1, 1])),
        "x": CodeCells(4, np.array([0, 1, 0, 1, 2, 3])),
    }
    verdict = seen(FrequencyLDiversity(on="x", l=2), columns, batch, batch)
    assert (verdict.holds, verdict.achieved, verdict.records) == (True, 2, 12)
    check = KAnonymity(k=2).checks(Evidence({c.name: c for c in columns}, {}))[0]
    assert check.needs == ("text", "age", "job")


def test_columns_too_wide_for_one_number_are_several_keys() -> None:
    """Packed into 64 bits, a first column of 0 and of 2^31 would look alike."""
    wide = [GroupStatement(meaning(f"q{i}", 2, QUASI), 2**33) for i in range(4)]
    batch = {f"q{i}": CodeCells(2**33, np.array([0, (i == 0) * 2**31, 0, i == 3])) for i in range(4)}
    verdict = seen(KAnonymity(k=2), wide, batch)
    assert (verdict.achieved, verdict.records, verdict.breaches) == (1, 4, 2)


def test_missing_texts_look_alike() -> None:
    text = open_column("text", 0, role=QUASI)
    verdict = seen(KAnonymity(k=2), [text], {"text": OpenCells(pa.array(["u", None, "v", None, "v"]))})
    assert (verdict.achieved, verdict.records, verdict.breaches) == (1, 5, 1)


def test_many_batches_are_put_together_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PENDING", 5)
    monkeypatch.setattr(histograms, "CHUNK", 3)
    rng = np.random.default_rng(3)
    where, codes = rng.integers(0, 4, 400), rng.integers(0, 4, 400)
    columns = [WHERE, exact_column("x", 4, role=SECRET)]
    batches = [
        {"where": CodeCells(4, where[i : i + 20]), "x": CodeCells(4, codes[i : i + 20])} for i in range(0, 400, 20)
    ]
    for model in (EntropyLDiversity(on="x", l=2), TCloseness(on="x", t=0.2), KAnonymity(k=2)):
        whole = seen(model, columns, {"where": CodeCells(4, where), "x": CodeCells(4, codes)})
        assert seen(model, columns, *batches) == whole


def test_checks_share_their_classes() -> None:
    column = exact_column("x", 4, role=SECRET)
    judgement = Judgement.of({"where": WHERE, "x": column}, [BY_HAND[0][0], BY_HAND[1][0]])
    assert (len(judgement.checks), len(judgement.parts)) == (2, 1)
    batch = {"where": CodeCells(4, np.array([0, 0])), "x": CodeCells(4, np.array([0, 1]))}
    for _ in range(2):
        judgement.observe(batch)
    assert [verdict.records for verdict in judgement.verdicts()] == [4, 4]
    assert [verdict.records for verdict in judgement.verdicts()] == [4, 4]


# ---------------------------------------------------------------- what is refused


CLASS_ONLY = [
    KAnonymity(on="x", k=2),
    *(model for model, _, _ in BY_HAND[3:11]),
    *(model for model, _ in RELATIVE[3:]),
]


@pytest.mark.parametrize("make", [set_column, member_column])
@pytest.mark.parametrize("model", CLASS_ONLY, ids=lambda model: model.model)
def test_sets_are_refused_with_a_way_out(model: Model, make: Any) -> None:
    column = make("x", 4, role=SECRET)
    with pytest.raises(ModelDoesNotApply, match=f"{model.model} makes no statement about column 'x'") as caught:
        model.checks(Evidence({"where": WHERE, "x": column}, {}))
    assert caught.value.hint is not None
    assert '"mondrian"' in caught.value.hint
    assert model.least_set_size == 1


@pytest.mark.parametrize("make", [exact_column, node_column, group_column, open_column])
def test_a_model_of_sets_refuses_classes_by_name(make: Any) -> None:
    column, model = make("x", 4, role=SECRET), ExpandedK(on="x", k=2)
    with pytest.raises(ModelDoesNotApply, match=f"{model.model} makes no statement about column 'x', which is publ"):
        model.checks(Evidence({"where": WHERE, "x": column}, {}))


def test_classes_that_nobody_can_tell_are_refused() -> None:
    column = exact_column("x", 4, role=SECRET)
    for make, words in ((set_column, "published as sets"), (member_column, "published as shuffled members")):
        hidden = make("where", 4, role=Role.SENSITIVE_QUASI_IDENTIFIER)
        with pytest.raises(ModelDoesNotApply, match=f"'where' is {words}, so equivalence classes cannot be formed"):
            seen(FrequencyLDiversity(on="x", l=2), [hidden, column])
    with pytest.raises(ModelDoesNotApply, match="beside no quasi-identifier"):
        seen(FrequencyLDiversity(on="x", l=2), [exact_column("where", 4, role=Role.PLAIN), column])
    with pytest.raises(ModelDoesNotApply, match="and the release has none"):
        seen(KAnonymity(k=2), [column])


def test_closeness_and_subtrees_need_the_tree() -> None:
    column = exact_column("x", 4, role=SECRET)
    with pytest.raises(ModelDoesNotApply, match="by tree distance needs a hierarchy"):
        seen(TCloseness(on="x", t=0.5, distance="tree"), [WHERE, column])
    with pytest.raises(ModelDoesNotApply, match="at least 1 levels"):
        seen(LEDiversity(on="x", l=2, e=1), [WHERE, column])


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        (exact_column("x", 4), CodeCells(5, np.array([0])), "does not hold the declared"),
        (exact_column("x", 4), SetCells(4, np.array([1])), "does not hold the declared"),
        (exact_column("x", 4), CodeCells(4, np.array([4])), "a code outside its 4 values"),
        (exact_column("x", 4), CodeCells(4, np.array([-1])), "a code outside its 4 values"),
        (node_column("x", 4, nodes=AGES), CodeCells(2, np.array([0])), "no list of its general values"),
        (GroupStatement(meaning("x", 4), 4), CodeCells(4, np.array([0])), "no table of its groups"),
        (GROUPED, CodeCells(3, np.array([3])), "a code outside its 3 groups"),
    ],
)
def test_cells_that_are_not_what_the_manifest_says(column: Statement, cells: Any, message: str) -> None:
    with pytest.raises(ModelDoesNotApply, match=message):
        seen(DistinctLDiversity(on="x", l=2), [WHERE, column], {"where": CodeCells(4, np.array([0])), "x": cells})


def test_a_column_is_not_judged_without_those_beside_it() -> None:
    column = exact_column("x", 4, role=SECRET)
    check = DistinctLDiversity(on="x", l=2).check(column, Evidence({"where": WHERE, "x": column}, {}))
    assert set(check.needs) == {"where", "x"}
    with pytest.raises(KeyError, match="where"):
        check.observe({"x": CodeCells(4, np.array([0]))})
    free = open_column("text", 0, role=QUASI)
    with pytest.raises(ModelDoesNotApply, match="does not hold open values"):
        seen(KAnonymity(k=2), [free], {"text": CodeCells(4, np.array([0]))})


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (KAnonymity, {"k": 1}),
        (KAnonymity, {"k": 2, "on": ["a", "a"]}),
        (DistinctLDiversity, {"on": "x", "l": 1}),
        (DistinctLDiversity, {"l": 2}),
        (RecursiveCLDiversity, {"on": "x", "c": 0, "l": 2}),
        (RecursiveCLDiversity, {"on": "x", "c": inf, "l": 2}),
        (AlphaKAnonymity, {"on": "x", "alpha": 1, "k": 2}),
        (TauLDiversity, {"on": "x", "tau": 0.3, "l": 3}),
        (TauLDiversity, {"on": "x", "tau": 1, "l": 3}),
        (TauLDiversity, {"on": "x", "tau": 0.5, "l": 3, "weights": {"a": -1}}),
        (BetaLikeness, {"on": "x", "beta": 0}),
        (BetaLikeness, {"on": "x", "beta": 1, "form": "other"}),
        (DeltaDisclosure, {"on": "x", "delta": 0}),
        (PSensitiveKAnonymity, {"on": "x", "p": 1, "k": 2}),
    ],
)
def test_parameters_that_make_no_sense(kind: type[Model], options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        kind(**options)


def test_parameters_survive_json() -> None:
    model = TauLDiversity(on="x", tau=1 / 3, l=3, weights={"flu": 2.0})
    assert TauLDiversity.model_validate_json(model.model_dump_json()) == model
    assert KAnonymity(k=3).on == ()
    assert judged(EntropyLDiversity(on="x", l=2), "ab").achieved == pytest.approx(exp(log(2)))
