"""Mondrian: options, edges, and what it says when a requirement is out of reach."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from noren.engines import Plan, Recode, Records
from noren.errors import RequirementNotMet
from noren.methods.mondrian import Mondrian
from noren.methods.mondrian.classes import classes_of, smallest_class
from noren.methods.mondrian.space import leaf_order, space_of
from noren.methods.requirements import compiled
from noren.models import MODELS
from noren.models.base import Model
from noren.schema.nodes import tree_of
from noren.schema.roles import Role
from tests.oracles.mondrian import TOWNS, small_table, table_of

K3 = MODELS["k-anonymity"](k=3)


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def secret(n: int, d: int = 2) -> dict[str, tuple[int, np.ndarray]]:
    return {"s0": (d, np.arange(n) % d)}


def labels(recoding: Plan, name: str) -> list[str]:
    column = recoding.treatments[name]
    assert isinstance(column, Recode)
    return [column.nodes.labels[node] for node in column.data.tolist()]


def smallest(table: Records, requirements: list[Model], method: Mondrian) -> int:
    classes, _ = classes_of(table, requirements, order, method)
    return int(np.bincount(classes[classes >= 0]).min())


def test_intervals_sets_and_nodes_are_published() -> None:
    ages, colours, towns = np.array([0, 1, 2, 5, 6, 7]), np.array([0, 0, 1, 2, 2, 3]), np.array([0, 1, 0, 4, 5, 6])
    table = table_of({"age": ("ranked", 8, ages), "colour": ("set", 4, colours), "town": ("tree", 7, towns)}, secret(6))
    recoding = Mondrian().recode(table, [K3], order)
    assert labels(recoding, "age") == ["[0, 10]"] * 3 + ["[40, 70]"] * 3
    assert labels(recoding, "colour") == ["{é0000, é0001}"] * 3 + ["{é0002, é0003}"] * 3
    assert labels(recoding, "town") == ["北"] * 3 + ["四国"] * 3
    assert recoding.keep is None


def test_one_value_against_the_rest_in_a_set() -> None:
    colours = np.repeat([0, 1, 2], [2, 3, 2])
    recoding = Mondrian(refinement=0).recode(table_of({"q": ("set", 3, colours)}, secret(7)), [K3], order)
    assert labels(recoding, "q") == ["{é0000, é0002}"] * 2 + ["é0001"] * 3 + ["{é0000, é0002}"] * 2


def test_a_node_parts_from_the_rest_of_a_tree() -> None:
    towns = np.repeat([0, 2, 4], [2, 3, 2])
    recoding = Mondrian(refinement=0).recode(table_of({"q": ("tree", 7, towns)}, secret(7)), [K3], order)
    assert labels(recoding, "q") == ["*"] * 2 + ["福岡"] * 3 + ["*"] * 2


def test_ties_stay_together_unless_relaxed() -> None:
    """Ten records, eight of them in the middle: no cut leaves three on both sides unless the eight may part."""
    codes = np.repeat([0, 1, 2], [1, 8, 1])
    table = table_of({"age": ("ranked", 3, codes)}, secret(10))
    assert set(labels(Mondrian(refinement=0).recode(table, [K3], order), "age")) == {"[0, 10]"}
    relaxed = Mondrian(strict=False, refinement=0)
    parted = set(labels(relaxed.recode(table, [K3], order), "age"))
    assert len(parted) > 1
    assert smallest(table, [K3], relaxed) >= 3


def test_refinement_moves_a_record_where_it_belongs() -> None:
    rng = np.random.default_rng(4)
    table = table_of({f"q{j}": ("ranked", 30, rng.integers(0, 30, 400)) for j in range(3)}, secret(400))
    widths = []
    for rounds in (0, 3):
        recoding = Mondrian(refinement=rounds).recode(table, [K3], order)
        total = 0.0
        for column in recoding.recoded.values():
            assert isinstance(column, Recode)
            total += float(column.nodes.sizes[column.data].mean())
        widths.append(total)
        assert smallest(table, [K3], Mondrian(refinement=rounds)) >= 3
    assert widths[1] < widths[0]


def test_suppression_drops_the_record_that_costs_the_others_most() -> None:
    """Forty records of one value and a stranger: with it, every record would publish the whole range."""
    codes = np.array([0] * 40 + [7])
    table = table_of({"a": ("ranked", 8, codes), "b": ("set", 8, codes)}, secret(41))
    with_it = Mondrian(refinement=0).recode(table, [K3], order)
    assert with_it.keep is None
    assert set(labels(with_it, "a")) == {"[0, 70]"}
    without = Mondrian(refinement=0, suppression=0.05).recode(table, [K3], order)
    assert without.keep is not None
    assert without.keep.tolist() == [True] * 40 + [False]
    assert set(labels(without, "a")[:40]) == {"0"}
    assert "1 of 41" in without.notes[0]


def test_suppression_never_breaks_a_requirement() -> None:
    codes = np.array([0] * 40 + [7])
    secrets = {"s0": (2, np.array([0] * 40 + [1]))}
    table = table_of({"a": ("ranked", 8, codes), "b": ("set", 8, codes)}, secrets)
    diverse = MODELS["distinct-l-diversity"](l=2, on=("s0",))
    assert Mondrian(suppression=0.5).recode(table, [K3, diverse], order).keep is None


def test_weights_decide_which_column_stays_precise() -> None:
    rng = np.random.default_rng(2)
    table = table_of({name: ("ranked", 50, rng.integers(0, 50, 500)) for name in "ab"}, secret(500))
    spans = {}
    for heavy in "ab":
        recoding = Mondrian(weights={heavy: 50.0}).recode(table, [MODELS["k-anonymity"](k=10)], order)
        column = recoding.treatments["a"]
        assert isinstance(column, Recode)
        spans[heavy] = float(column.nodes.sizes[column.data].mean())
    assert spans["a"] < spans["b"] / 2


@pytest.mark.parametrize("kind", ["ranked", "set", "tree"])
def test_columns_with_one_value(kind: str) -> None:
    table = table_of({"q": (kind, 7 if kind == "tree" else 1, np.zeros(9, int))}, secret(9))
    recoding = Mondrian(strict=False).recode(table, [K3], order)
    assert len(set(labels(recoding, "q"))) == 1
    assert recoding.keep is None


def test_identical_records_form_one_class() -> None:
    table = table_of({"a": ("ranked", 9, np.full(20, 4)), "b": ("set", 9, np.full(20, 2))}, secret(20))
    for strict in (True, False):
        assert classes_of(table, [K3], order, Mondrian(strict=strict))[1] == 1


def test_one_record_without_requirements() -> None:
    table = table_of({"a": ("ranked", 3, np.array([1])), "b": ("tree", 7, np.array([6]))}, secret(1, 1))
    recoding = Mondrian().recode(table, [], order)
    assert labels(recoding, "a") == ["4"]
    assert labels(recoding, "b") == ["高知"]


def test_wide_columns() -> None:
    """More values than a word has bits, than a column has slots, and than rows that hold them."""
    rng = np.random.default_rng(8)
    n = 3000
    quasi = {
        "many": ("ranked", 2500, rng.integers(0, 2500, n)),
        "names": ("set", 900, rng.integers(0, 900, n)),
        "sparse": ("ranked", 100_000, np.where(rng.random(n) < 0.5, 7, rng.integers(0, 100_000, n))),
    }
    table = table_of(quasi, secret(n))
    for strict in (True, False):
        method = Mondrian(strict=strict)
        assert smallest(table, [K3], method) >= 3
        recoding = method.recode(table, [K3], order)
        for name, column in recoding.recoded.items():
            assert isinstance(column, Recode)
            assert column.nodes.covers(column.data, table.codes[name]).all()
            assert column.nodes.sizes[column.data].mean() < len(table.columns[name].domain) / 4


def test_many_rows_with_histograms_that_run() -> None:
    """Above the size where every cut counts its histogram afresh."""
    rng = np.random.default_rng(3)
    n = 4000
    ages = rng.integers(0, 60, n)
    secrets = {"s0": (5, np.minimum(ages // 12, rng.integers(0, 5, n))), "s1": (3, rng.integers(0, 3, n))}
    table = table_of({"age": ("ranked", 60, ages), "town": ("tree", 7, rng.integers(0, 7, n))}, secrets)
    close = MODELS["t-closeness"](t=0.3, distance="equal", on=("s0",))
    diverse = MODELS["frequency-l-diversity"](l=2, on=("s1",))
    classes, count = classes_of(table, [K3, close, diverse], order, Mondrian())
    assert count > 10
    for c in range(count):
        inside = classes == c
        shares = [np.bincount(table.codes["s0"][rows], minlength=5) / rows.sum() for rows in (inside, classes >= 0)]
        assert np.abs(shares[0] - shares[1]).sum() / 2 <= 0.3 + 1e-9
        assert np.bincount(table.codes["s1"][inside]).max() * 2 <= inside.sum()


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        (MODELS["k-anonymity"](k=11), ("k = 11", "10 records", "Set k to at most 10")),
        (MODELS["distinct-l-diversity"](l=4, on=("s0",)), ("'s0'", "l = 2 is reached", "Set l to at most 2")),
        (MODELS["p-sensitive-k-anonymity"](p=3, k=4, on=("s0",)), ("'s0'", "p = 2 is reached", "Set p to at most 2")),
        (MODELS["frequency-l-diversity"](l=2, on=("s0",)), ("l = 1.429 is reached", "decoys")),
        (MODELS["frequency-l-diversity"](l=3, on=("s1",)), ("l = 2 is reached", "Set l to at most 2")),
        (MODELS["entropy-l-diversity"](l=2, on=("s0",)), ("all 10 records form one class",)),
    ],
)
def test_what_is_out_of_reach(requirement: Model, words: tuple[str, ...]) -> None:
    secrets = {"s0": (2, np.array([0] * 7 + [1] * 3)), "s1": (3, np.array([0] * 5 + [1, 1, 1, 2, 2]))}
    table = table_of({"age": ("ranked", 10, np.arange(10))}, secrets)
    with pytest.raises(RequirementNotMet) as caught:
        Mondrian().recode(table, [requirement], order)
    for word in words:
        assert word in str(caught.value)


def test_problems_of_policies() -> None:
    roles = {"age": Role.QUASI_IDENTIFIER, "s0": Role.SENSITIVE}
    assert Mondrian(weights={"age": 2.0}).problems(roles, [K3]) == []
    found = Mondrian(weights={"age": 0.0, "s0": 1.0}).problems(roles, [K3])
    assert [problem.where for problem in found] == ["method.weights.age", "method.weights.s0"]
    assert Mondrian().problems({"s0": Role.SENSITIVE}, [K3])
    close = MODELS["t-closeness"](t=0.3, distance="equal", on=("s0",))
    assert Mondrian(suppression=0.1).problems(roles, [close])


def test_options_have_ranges() -> None:
    for wrong in ({"refinement": -1}, {"suppression": 1.0}, {"name": "other"}, {"unknown": 1}):
        with pytest.raises(ValidationError):
            Mondrian(**wrong)  # type: ignore[arg-type]


def test_smallest_class_that_requirements_permit() -> None:
    table = small_table(1, 40)
    alpha = MODELS["alpha-k-anonymity"](alpha=0.9, k=7, on=("s0",))
    assert smallest_class(compiled(table, [K3])) == (3, False)
    assert smallest_class(compiled(table, [K3, alpha])) == (7, True)
    assert smallest_class(compiled(table, [MODELS["frequency-l-diversity"](l=3, on=("s0",))])) == (3, True)
    assert smallest_class(compiled(table, [])) == (1, False)


def test_leaves_under_one_node_stand_together() -> None:
    tree = tree_of(TOWNS)
    walk = leaf_order(tree)
    assert sorted(walk.tolist()) == list(range(7))
    for level in tree.at:
        runs = level[walk]
        assert len(set(runs.tolist())) == 1 + int((np.diff(runs) != 0).sum())


def test_prices() -> None:
    table = small_table(3, 30)
    space = space_of(table, {"q0": 4.0})
    assert space.total == 6.0
    assert np.allclose(space.costs.prices[0, 0, :6], 4.0 * table.columns["q0"].domain.line())
