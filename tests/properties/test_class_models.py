"""Every model about classes against plain definitions, however the release is cut into batches."""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isinf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noren.models import MODELS, Evidence, KAnonymity, SemanticDiversity, Verdict
from noren.models.base import Judgement, Model
from noren.models.class_check import ClassModel
from noren.models.histograms import Histograms, sum_entries
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role
from noren.statements import CodeCells, GroupTable, OpenCells, Statement, take
from tests.oracles import classes as oracle
from tests.statements import exact_column, group_column, member_column, node_column, open_column

LEVELS = {
    2: (("a", "b"), ("*", "*")),
    3: (("a", "b", "c"), ("ab", "ab", "c"), ("*", "*", "*")),
    4: (("a", "b", "c", "d"), ("ab", "ab", "cd", "cd"), ("*",) * 4),
    5: (tuple("abcde"), ("ab", "ab", "c", "de", "de"), ("abc", "abc", "abc", "de", "de"), ("*",) * 5),
}
ages = Nodes.from_members(3, ["young", "middle", "any"], [(0,), (1,), (0, 1, 2)])

OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "distinct-l-diversity": st.fixed_dictionaries({"l": st.integers(2, 5)}),
    "frequency-l-diversity": st.fixed_dictionaries({"l": st.integers(2, 5)}),
    "m-invariance": st.fixed_dictionaries({"m": st.integers(2, 4)}),
    "entropy-l-diversity": st.fixed_dictionaries({"l": st.sampled_from([1.2, 2.0, 2.5, 3.0])}),
    "recursive-cl-diversity": st.fixed_dictionaries(
        {"c": st.sampled_from([0.5, 1.0, 1.1, 1.5, 2.0, 3.0, 7.0]), "l": st.integers(2, 4)}
    ),
    "alpha-k-anonymity": st.fixed_dictionaries(
        {"alpha": st.sampled_from([0.2, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9]), "k": st.integers(1, 4)}
    ),
    "p-sensitive-k-anonymity": st.fixed_dictionaries({"p": st.integers(2, 4), "k": st.integers(2, 6)}),
    "tau-l-diversity": st.integers(2, 5).flatmap(
        lambda l: st.fixed_dictionaries(
            {"tau": st.sampled_from([x for x in (0.2, 0.25, 0.5, 0.6, 0.75, 0.9) if x >= 1 / l]), "l": st.just(l)}
        )
    ),
    "t-closeness": st.fixed_dictionaries(
        {"t": st.floats(0.01, 0.9), "distance": st.sampled_from(["equal", "ordered", "tree"])}
    ),
    "beta-likeness": st.fixed_dictionaries(
        {"beta": st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0]), "form": st.sampled_from(["basic", "enhanced"])}
    ),
    "delta-disclosure": st.fixed_dictionaries({"delta": st.floats(0.05, 2)}),
    "le-diversity": st.fixed_dictionaries({"l": st.integers(2, 3), "e": st.integers(1, 3)}),
    "semantic-diversity": st.fixed_dictionaries({"l": st.integers(2, 3), "d": st.sampled_from([1.0, 2.0, 3.0])}),
}


def options_of(name: str, d: int) -> st.SearchStrategy[dict[str, Any]]:
    """Parameters that fit the tree over d values."""
    deepest = len(LEVELS[d]) - 1
    return OPTIONS[name].map(lambda given: given | {"e": min(given["e"], deepest)} if "e" in given else given)


def heights(d: int) -> np.ndarray:
    """How far up two values meet in the tree over d values."""
    return np.array([[oracle.meeting(LEVELS[d], a, b) for b in range(d)] for a in range(d)], float)


CLASSES = [exact_column, node_column, group_column]
"""The forms in which a secret can be judged class by class."""
CLASSWISE = [name for name, kind in MODELS.items() if issubclass(kind, ClassModel)]


@dataclass(frozen=True)
class Made:
    """A release, and for the oracle each record's class and possible values."""

    columns: dict[str, Statement]
    batch: dict[str, Any]
    keys: list[Any]
    cells: list[tuple[int, ...]]
    d: int


@st.composite
def releases(draw: st.DrawFn, make: Any) -> Made:
    """A few records: a number, an age in general values and a free text beside a secret in one of three forms."""
    d, n = draw(st.integers(2, 5)), draw(st.integers(1, 14))

    def column(upper: int) -> list[int]:
        return draw(st.lists(st.integers(0, upper), min_size=n, max_size=n))

    tree = Hierarchy(LEVELS[d])
    number, age, text = column(1), column(2), draw(st.lists(st.sampled_from(["x", None]), min_size=n, max_size=n))
    keys: list[Any] = list(zip(number, age, text, strict=True))
    quasi = Role.QUASI_IDENTIFIER
    columns = {
        "number": exact_column("number", 2, role=quasi),
        "age": node_column("age", 3, role=Role.SENSITIVE_QUASI_IDENTIFIER, nodes=ages),
        "text": open_column("text", 0, role=quasi),
        "other": exact_column("other", 9, role=Role.PLAIN),
    }
    batch: dict[str, Any] = {
        "number": CodeCells(2, np.array(number, np.uint8)),
        "age": CodeCells(3, np.array(age, np.uint8)),
        "text": OpenCells(pa.array(text, pa.string())),
    }
    common: dict[str, Any] = {"role": Role.SENSITIVE, "hierarchy": tree, "distances": heights(d)}
    if make is node_column:
        nodes = tree_of(tree).nodes
        codes = column(len(nodes) - 1)
        columns["x"] = node_column("x", d, nodes=nodes, **common)
        batch["x"] = CodeCells(len(nodes), np.array(codes, np.uint16))
        cells = [tuple(nodes.members(code).tolist()) for code in codes]
        return Made(columns, batch, keys, cells, d)
    codes = column(d - 1)
    cells = [(code,) for code in codes]
    if make is exact_column:
        columns["x"] = exact_column("x", d, **common)
        batch["x"] = CodeCells(d, np.array(codes, np.uint8))
        return Made(columns, batch, keys, cells, d)
    group = column(3)
    table = GroupTable.from_codes(5, d, np.array(group), np.array(codes))
    columns["x"] = group_column("x", d, groups=table, **common)
    batch["x"] = CodeCells(5, np.array(group, np.uint8))
    return Made(columns, batch, group, cells, d)


def judge_all(models: list[Model], made: Made, cuts: list[int]) -> list[Verdict]:
    """All models in one judgement, with the release cut into batches."""
    judgement = Judgement.of(made.columns, models)
    edges = [0, *sorted(cuts), len(made.keys)]
    for begin, end in pairwise(edges):
        judgement.observe(take(made.batch, slice(begin, end)))
    return judgement.verdicts()


@pytest.mark.parametrize("make", CLASSES)
@pytest.mark.parametrize("name", CLASSWISE)
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_verdicts_against_the_definition(name: str, make: Any, data: st.DataObject) -> None:
    made = data.draw(releases(make))
    options = data.draw(options_of(name, made.d))
    q = oracle.induced(made.cells, made.d)
    levels = Hierarchy(LEVELS[made.d]).levels
    truth = [
        (*oracle.judge(name, options, oracle.induced(cells, made.d), len(cells), q, levels), len(cells))
        for cells in oracle.gathered(made.keys, made.cells).values()
    ]
    if name in ("t-closeness", "delta-disclosure"):
        bound = options["t" if name == "t-closeness" else "delta"]
        assume(all(abs(figure - bound) > 1e-6 for figure, _, _ in truth))
    kind = MODELS[name]
    assert issubclass(kind, ClassModel)
    model = kind(on="x", **options)
    cuts = data.draw(st.lists(st.integers(0, len(made.keys)), max_size=3))
    (verdict,) = judge_all([model], made, cuts)
    worst = (min if kind.higher_is_safer else max)(figure for figure, _, _ in truth)
    assert verdict.achieved == pytest.approx(worst, abs=1e-7) or (isinf(worst) and isinf(verdict.achieved))
    assert verdict.breaches == sum(n for _, good, n in truth if not good)
    assert verdict.holds is (verdict.breaches == 0)
    assert (verdict.records, verdict.basis) == (len(made.keys), "the release alone")
    assert (verdict.model, verdict.column, verdict.required) == (name, "x", model.required)


@settings(max_examples=40, deadline=None)
@given(releases(node_column), st.integers(2, 4), st.data())
def test_weights_divide_generalised_records(made: Made, l: int, data: st.DataObject) -> None:
    weights = data.draw(st.dictionaries(st.sampled_from("abcde"), st.integers(0, 5), min_size=1))
    labels = LEVELS[made.d][0]
    assume(any(label in weights for label in labels))
    exact = [Fraction(weights.get(label, 1)) for label in labels]
    (verdict,) = judge_all([MODELS["tau-l-diversity"](on="x", tau=0.6, l=l, weights=weights)], made, [])
    shares = {k: oracle.induced(c, made.d, exact) for k, c in oracle.gathered(made.keys, made.cells).items()}
    truth = [oracle.judge("tau-l-diversity", {"tau": 0.6, "l": l}, p, 1, p, ()) for p in shares.values()]
    assert verdict.achieved == pytest.approx(max(figure for figure, _ in truth))
    assert verdict.holds is all(good for _, good in truth)


@settings(max_examples=30, deadline=None)
@given(releases(exact_column), st.integers(2, 4), st.lists(st.integers(0, 14), max_size=4))
def test_k_anonymity_counts_records(made: Made, k: int, cuts: list[int]) -> None:
    cuts = [min(cut, len(made.keys)) for cut in cuts]
    sizes = [len(cells) for cells in oracle.gathered(made.keys, made.cells).values()]
    alone = [len(cells) for cells in oracle.gathered([key[1] for key in made.keys], made.cells).values()]
    whole, part = judge_all([KAnonymity(k=k), KAnonymity(on="age", k=k)], made, cuts)
    for verdict, counts, title in ((whole, sizes, "quasi-identifiers"), (part, alone, "age")):
        assert (verdict.achieved, verdict.records, verdict.column) == (min(counts), sum(counts), title)
        assert verdict.breaches == sum(n for n in counts if n < k)
        assert verdict.holds is (min(counts) >= k)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(CLASSES).flatmap(releases), st.lists(st.integers(0, 14), min_size=1, max_size=5), st.data())
def test_batches_and_shared_classes_change_nothing(made: Made, cuts: list[int], data: st.DataObject) -> None:
    cuts = [min(cut, len(made.keys)) for cut in cuts]
    models = [MODELS[name](on="x", **data.draw(options_of(name, made.d))) for name in CLASSWISE]
    apart = [judge_all([model], made, [])[0] for model in models]
    assert judge_all(models, made, cuts) == apart


# ---------------------------------------------------------------- coarsening


counts = st.integers(2, 5).flatmap(lambda d: st.lists(st.lists(st.integers(0, 9), min_size=d, max_size=d), min_size=3))


def histograms(rows: list[list[int]]) -> Histograms:
    table = np.array(rows, float)
    owner, value = np.nonzero(table)
    return sum_entries(table.sum(axis=1).astype(np.int64), owner, value, table[owner, value], table.shape[1])


@pytest.mark.parametrize("name", [name for name in CLASSWISE if MODELS[name].coarsening_preserves])
@settings(max_examples=80, deadline=None)
@given(counts, st.data())
def test_classes_put_together_satisfy_what_both_satisfy(name: str, rows: list[list[int]], data: st.DataObject) -> None:
    """The claim `coarsening_preserves`. All other rows stay, so that the whole is the same before and after."""
    kind = MODELS[name]
    assert issubclass(kind, ClassModel)
    rows = [row for row in rows if any(row)]
    assume(len(rows) > 1)
    d = len(rows[0])
    model = kind(on="x", **data.draw(options_of(name, d)))
    column = exact_column("x", d, hierarchy=Hierarchy(LEVELS[d]), distances=heights(d))
    whole = np.array(rows).sum(axis=0) / np.array(rows).sum()
    both = [a + b for a, b in zip(rows[0], rows[1], strict=True)]
    _, (first, second, together) = model.judge_histograms(histograms([rows[0], rows[1], both]), column, whole)
    assert together or not (first and second)


far_sets = st.sampled_from([(0, 2), (0, 3), (1, 3), (2, 4), (0, 4), (1, 4)])


@settings(max_examples=60, deadline=None)
@given(st.lists(far_sets, min_size=1, max_size=4), st.lists(far_sets, min_size=1, max_size=4))
def test_shuffled_members_of_two_classes_put_together(first: list[tuple[int, int]], second: list[Any]) -> None:
    distances = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    column = member_column("x", 5, distances=distances)
    for people in (first, second, first + second):
        check = SemanticDiversity(on="x", l=2, d=2).check(column, Evidence({"x": column}, {}))
        check.observe({"x": CodeCells(5, np.array(people, np.uint8).ravel())})
        assert check.verdict().holds is True


WAYS = [name for name in vars(Model) if name.startswith("judge_")] + ["checks"]


NOT_PRESERVED = {"m-invariance", "mechanism", "belief"}
"""Models about which coarser classes may say less: no method that relies on merging searches for them."""


def test_every_model_judges_something_and_says_whether_coarsening_preserves_it() -> None:
    assert OPTIONS.keys() == set(CLASSWISE)
    for kind in MODELS.values():
        assert any(getattr(kind, way) is not getattr(Model, way) for way in WAYS)
        assert kind.coarsening_preserves is (kind.model_fields["model"].default not in NOT_PRESERVED)


def test_two_classes_of_different_values_put_together_hold_values_twice() -> None:
    """Why m-invariance does not claim it, and why no method that relies on it may serve it."""
    model = MODELS["m-invariance"](on="x", m=2)
    assert isinstance(model, ClassModel)
    assert model.search_rule is None
    _, good = model.judge_histograms(histograms([[1, 1, 0], [1, 1, 1], [2, 2, 1]]), exact_column("x", 3), np.zeros(0))
    assert good.tolist() == [True, True, False]
