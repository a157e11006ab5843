"""What a model declares of itself, seen in what it does: for every model of the registry."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest

from noren.models import MODELS, Evidence, Model, Verdict
from noren.models.base import Judgement
from noren.models.class_check import ClassModel
from noren.models.histograms import Histograms
from noren.schema.roles import Role
from noren.statements import CodeCells
from noren.statements.batch import PERSON
from tests.statements import exact_column, meaning
from tests.unit.models.test_judgement import FAR, JUDGES, MEANING, OPTIONS, TREE, WORLDS, D, model_of

CLASS_MODELS = sorted(name for name, kind in MODELS.items() if issubclass(kind, ClassModel))
WHERE = exact_column("where", 4, role=Role.QUASI_IDENTIFIER)
X = exact_column("x", D, **MEANING)
GRIDS: dict[str, list[float]] = {
    **{
        name: [0.05, 0.2, 0.4, 0.6, 0.8, 0.99]
        for name in ("belief", "informed-belief", "mechanism", "alpha-k-anonymity", "t-closeness")
    },
    "tau-l-diversity": [0.34, 0.4, 0.5, 0.6, 0.8, 0.99],
    "entropy-l-diversity": [1.1, 1.5, 2, 3, 5, 7],
    "recursive-cl-diversity": [0.1, 0.5, 1, 2, 4, 8],
    "beta-likeness": [0.1, 0.5, 1, 2, 5, 40],
    "delta-disclosure": [0.1, 0.5, 1, 2, 4, 8],
    "local-privacy": [0.1, 0.5, 1, 2, 4, 50],
    "qs-diversity": [0.1, 0.5, 1, 2, 4, 1e9],
    "qs-closeness": [0.01, 0.1, 0.4, 0.8, 1.5, 2],
}
"""Values of the parameter that a verdict compares with; of those that count, 2 and more."""


def with_parameter(name: str, value: float) -> Model:
    kind = MODELS[name]
    on = {} if name == "k-anonymity" else {"on": "x"}
    return kind(**on, **(OPTIONS[name] | {kind.parameter: value}))


def verdict(model: Model, rows: list[tuple[int, int]], people: list[int] | None = None, show: int = 0) -> Verdict:
    """Of rows (class, value), and whose each is."""
    judgement = Judgement.of({"where": WHERE, "x": X}, [model], show=show, people=people is not None)
    where, codes = (np.array(one) for one in zip(*rows, strict=True))
    cells: dict[str, Any] = {"where": CodeCells(4, where), "x": CodeCells(D, codes)}
    judgement.observe(cells | ({} if people is None else {PERSON: CodeCells(9, np.array(people))}))
    (found,) = judgement.verdicts()
    return found


@pytest.mark.parametrize("name", MODELS)
def test_what_holds_holds_for_every_parameter_that_asks_less(name: str) -> None:
    """`higher_is_safer`: a larger parameter asks more; else a smaller one does. Both answers occur."""
    grid = GRIDS.get(name, [2, 3, 4, 40])
    seen = set()
    for form in [form for other, form in JUDGES if other == name]:
        for n, seed in ((3, 0), (40 if name == "belief" else 150, 1)):
            world = WORLDS[form](n, np.random.default_rng(seed))
            judgement = Judgement.of(world.columns, [with_parameter(name, value) for value in grid], world.overall)
            judgement.observe(world.cells)
            holds = [one.holds is True for one in judgement.verdicts()]
            assert holds == sorted(holds, reverse=MODELS[name].higher_is_safer)
            seen |= {*holds}
    assert seen == ({False} if name == "mechanism" else {True, False})  # cells alone tell nothing of a mechanism


@pytest.mark.parametrize("name", CLASS_MODELS)
def test_two_classes_that_hold_may_be_put_together(name: str) -> None:
    """`coarsening_preserves`, for all classes with up to three records of each of three values in one whole."""
    model: Any = model_of(name)
    counts = np.array([one for one in product(range(4), repeat=3) if sum(one)])
    first, second = (index.ravel() for index in np.indices((len(counts), len(counts))))
    column = exact_column("x", 3, role=Role.SENSITIVE)
    if name in ("le-diversity", "semantic-diversity"):
        column, counts = X, np.concatenate([counts, np.zeros((len(counts), 3), int)], axis=1)[:, [0, 3, 1, 4, 2, 5]]
    overall = np.full(counts.shape[1], 1 / 3) * (counts.sum(axis=0) > 0)

    def holds(some: np.ndarray) -> np.ndarray:
        owner, value = np.nonzero(some)
        starts = np.searchsorted(owner, np.arange(len(some) + 1))
        part = Histograms(some.sum(axis=1), starts, value, some[owner, value].astype(float))
        return np.asarray(model.judge_histograms(part, column, overall)[1])

    fine = holds(counts)
    both = fine[first] & fine[second]
    assert both.any()
    assert not both.all()
    assert holds(counts[first] + counts[second])[both].all() == MODELS[name].coarsening_preserves


@pytest.mark.parametrize("name", CLASS_MODELS)
def test_a_class_is_judged_by_the_others_where_the_model_says_so(name: str) -> None:
    """`relative`: what is said of the first class changes with what others hold."""
    strict = {"l": 6, "p": 6, "m": 6} if name not in ("recursive-cl-diversity", "tau-l-diversity") else {}
    least = {"alpha": 0.01, "tau": 0.34, "t": 0.001, "beta": 0.001, "delta": 0.001, "c": 0.001}
    given = {key: (strict | least).get(key, value) for key, value in OPTIONS[name].items()}
    own = [(0, value) for value in (0, 0, 0, 1, 2, 3)]
    figures = set()
    for other in ((0, 1, 2, 3), (0, 1, 2, 3, 3, 3, 3, 3, 2)):
        found = verdict(MODELS[name](on="x", **given), own + [(1, value) for value in other], show=9)
        (mine,) = (one.achieved for one in found.shortfalls if one.keys == {"where": "0"})
        figures.add(round(mine, 9))
    assert (len(figures) == 2) is MODELS[name].relative


@pytest.mark.parametrize("name", CLASS_MODELS)
def test_a_value_that_nearly_all_have_is_too_much_where_shares_are_limited(name: str) -> None:
    """`limits_share`; how many values there are and how a class compares with the whole says nothing of shares. Others
    fail too: by the entropy of all shares, by shares of subtrees or of near values, or because a value occurs twice."""
    found = verdict(model_of(name), [(0, 0)] * 2000 + [(0, value) for value in range(D)])
    if name in ("entropy-l-diversity", "le-diversity", "m-invariance", "semantic-diversity"):
        assert not MODELS[name].limits_share
    else:
        assert found.holds is not MODELS[name].limits_share


@pytest.mark.parametrize("name", [name for name in CLASS_MODELS if name != "m-invariance"])
def test_people_count_for_all_their_values_or_by_the_shares_of_their_rows(name: str) -> None:
    """`counts_holders`. Of two people both have the first value; 2/3 and 1/2 of their rows are 7 and 5 of twelve. What
    bounds the belief that a person has a value at all counts those who have it. The rows, 3 and 2 of five, are judged
    beside, and the worse figure counts."""
    model = MODELS[name](on="x", **(OPTIONS[name] | ({"l": 2} if "l" in OPTIONS[name] else {})))
    found = verdict(model, [(0, 0), (0, 0), (0, 1), (0, 0), (0, 1)], people=[0, 0, 0, 1, 1])
    shares = verdict(model, [(0, 0)] * 7 + [(0, 1)] * 5), verdict(model, [(0, 0)] * 3 + [(0, 1)] * 2)
    if name in ("alpha-k-anonymity", "frequency-l-diversity", "tau-l-diversity"):
        assert found.achieved == 1, "everybody has the commonest value"
    else:
        worse = min if model.higher_is_safer else max
        assert found.achieved == pytest.approx(worse(one.achieved for one in shares))


@pytest.mark.parametrize("name", MODELS)
def test_a_promise_about_several_columns_is_about_each_unless_they_are_taken_together(name: str) -> None:
    says = model_of(name).promise_about(("one", "two"), name in ("belief", "local-privacy")).says
    assert ("one and two" in says) or name == "mechanism"
    assert ("each of one and two" in says) is not MODELS[name].together


@pytest.mark.parametrize(("name", "form"), [one for one in JUDGES if one[0] != "belief" and one[1] != "members"])
def test_columns_are_judged_each_on_its_own_unless_they_are_taken_together(name: str, form: str) -> None:
    """`together`: whoever judges one of the columns sees the other too. Beliefs are learned from all columns anyway,
    and shuffled rows are those of all columns."""
    world = WORLDS[form](5, np.random.default_rng(0))
    x: Any = world.columns["x"]
    columns = {**world.columns, "y": replace(x, column=x.column.over("y", x.column.domain))}
    overall = {**world.overall, **({"y": world.overall["x"]} if "x" in world.overall else {})}
    on = ("number", "text") if name == "k-anonymity" else ("x", "y")
    model = MODELS[name](on=on, **OPTIONS[name])
    seen = [{*on} <= {*check.needs} for check in model.checks(Evidence(columns, overall))]
    assert seen == [MODELS[name].together] * len(seen)


@pytest.mark.parametrize("name", MODELS)
def test_values_lie_apart_where_a_model_says_how_far(name: str) -> None:
    column = meaning("x", D, role=Role.SENSITIVE, hierarchy=TREE, distances=FAR)
    if MODELS[name].separates:
        distances, least = model_of(name).separation(column)
        assert distances.shape == (D, D)
        assert least > 0
    else:
        with pytest.raises(NotImplementedError):
            model_of(name).separation(column)


@pytest.mark.parametrize("name", [name for name, kind in MODELS.items() if kind.figure_ignores])
def test_a_parameter_that_the_figure_ignores_does_not_change_it(name: str) -> None:
    for form in [form for other, form in JUDGES if other == name]:
        world = WORLDS[form](40, np.random.default_rng(3))
        for parameter in MODELS[name].figure_ignores:
            values = (0.3, 0.9) if parameter == "most" else (2, 4)
            models = [MODELS[name](on="x", **(OPTIONS[name] | {parameter: value})) for value in values]
            judgement = Judgement.of(world.columns, models, world.overall)
            judgement.observe(world.cells)
            weak, strong = judgement.verdicts()
            assert weak.achieved == strong.achieved


@pytest.mark.parametrize(("name", "figure"), [("recursive-cl-diversity", inf), ("tau-l-diversity", 1.0)])
def test_a_figure_without_hope_is_that_of_classes_with_too_few_values(name: str, figure: float) -> None:
    assert MODELS[name].hopeless == figure
    assert {other for other, kind in MODELS.items() if kind.hopeless is not None} == {
        "recursive-cl-diversity",
        "tau-l-diversity",
    }
    for size in (3, 4):
        found = verdict(MODELS[name](on="x", **(OPTIONS[name] | {"l": size})), [(0, 0), (0, 1)])
        assert (found.achieved, found.holds) == (figure, False)
