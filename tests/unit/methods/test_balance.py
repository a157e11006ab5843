"""Generalisation and terms under one budget: against all groupings of small trees, and against two phases."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from noren.engines import Plan, Records
from noren.errors import NorenError, RequirementNotMet
from noren.methods.cover import cover
from noren.methods.mondrian import Mondrian
from noren.methods.mondrian.classes import Workbench, classes_of
from noren.methods.mondrian.terms import term_rules
from noren.methods.suppress import balance
from noren.methods.suppress.balance import (
    Balanced,
    CutTree,
    balance_losses,
    cut_tree_of,
    grow_trees,
    price_trees,
    weaken_rules,
)
from noren.methods.suppress.beliefs import linkages
from noren.methods.suppress.kernels.balance import Prices, Shape, best_cover, cut_tree
from noren.methods.suppress.search import search_groups
from noren.metrics.general import view_of
from noren.metrics.losses import ncp_loss
from noren.models import MODELS, KAnonymity
from noren.models.base import Model
from noren.schema.knowledge import Knowledge
from tests.oracles import term_search as oracle
from tests.oracles.mondrian import published_loss, small_table, table_of
from tests.oracles.mondrian_terms import read_together, terms_satisfy, with_terms

NODES = 300


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def diverse(c: float = 1.0, l: int = 3) -> Model:  # noqa: E741
    return MODELS["qs-diversity"](c=c, l=l, on=("signs",))


def close(t: float) -> Model:
    return MODELS["qs-closeness"](t=t, on=("signs",))


def patients(seed: int, n: int, most: int = 5, base: Records | None = None) -> Records:
    """Records whose terms come from one label each, so that they can be linked."""
    rng = np.random.default_rng(seed)
    sets = [rng.choice(30, 8, replace=False).tolist() for _ in range(40)]
    knowledge = Knowledge.from_sets(sets, terms=tuple(f"term {i}" for i in range(30)))
    records = [rng.choice(sets[rng.integers(40)], rng.integers(1, most + 1), replace=False).tolist() for _ in range(n)]
    if base is None:
        base = table_of(
            {"a": ("ranked", 20, rng.integers(0, 20, n)), "b": ("set", 6, rng.integers(0, 6, n)),
             "c": ("tree", 7, rng.integers(0, 7, n))}, {},
        )  # fmt: skip
    return with_terms(base, {"signs": (knowledge, records)})


def forest_of(table: Records, model: Model, k: int = 1) -> list[CutTree]:
    return price_trees(grow_trees(table, [model], order, k), linkages(table, [model]), NODES, None, None)


def prices(table: Records, model: Model, classes: np.ndarray) -> tuple[float, float]:
    """What a grouping loses when it is published and its terms are searched anew: NCP, and terms over records."""
    count = int(classes.max()) + 1
    recoding = Plan({name: cover(table.columns[name], table.codes[name], classes, count) for name in table.quasi})
    view = view_of(table, recoding)
    (found,) = linkages(table, [model])
    ((rule, unlinked),) = found.rules
    sizes = np.bincount(view.classes)
    cost = search_groups(
        np.argsort(view.classes, kind="stable"), np.concatenate(([0], np.cumsum(sizes))), found.cells.offsets,
        found.cells.data, found.knowledge, rule, found.alpha, nodes=NODES, seconds=None, unlinked=unlinked,
    ).cost  # fmt: skip
    return ncp_loss(view), float(cost @ sizes / sizes.sum())


def covers(children: np.ndarray, node: int) -> Iterator[tuple[int, ...]]:
    """All groupings below a node."""
    yield (node,)
    if node < len(children):
        for first, second in product(*(list(covers(children, int(child))) for child in children[node])):
            yield (*first, *second)


def root_of(tree: CutTree) -> int:
    return int(tree.upwards[-1]) if len(tree.upwards) else 0


def random_tree(rng: np.random.Generator, inner: int) -> CutTree:
    n = 3 * (inner + 1)
    places = np.sort(rng.choice(np.arange(1, n), inner, replace=False))
    children, extent, upwards = cut_tree(places, rng.permutation(inner) + 2, n)
    cost = np.where(rng.random(len(extent)) < 0.2, np.inf, rng.random(len(extent)))
    return CutTree(np.arange(n), children, extent, upwards, rng.random(len(extent)), cost)


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_is_read_off_the_order_of_the_cuts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, inner = 40, 9
    places = np.sort(rng.choice(np.arange(1, n), inner, replace=False))
    numbers = rng.permutation(inner) + 5
    children, extent, upwards = cut_tree(places, numbers, n)

    def check(node: int, start: int, stop: int) -> None:
        assert extent[node].tolist() == [start, stop]
        inside = [i for i in range(inner) if start < places[i] < stop]
        if not inside:
            assert node >= inner
            return
        assert node == min(inside, key=lambda i: numbers[i])
        check(int(children[node, 0]), start, int(places[node]))
        check(int(children[node, 1]), int(places[node]), stop)

    check(int(upwards[-1]), 0, n)


def test_a_tree_without_cuts() -> None:
    children, extent, upwards = cut_tree(np.empty(0, np.int64), np.empty(0, np.int64), 4)
    assert extent.tolist() == [[0, 4]]
    assert not len(children)
    assert not len(upwards)


@pytest.mark.parametrize("seed", range(12))
def test_the_walk_up_the_tree_finds_the_best_of_all_groupings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(1, 8)))
    possible = np.isfinite(tree.cost)
    bounded, wanted = rng.random(len(possible)), rng.random(len(possible))
    allowed = [list(found) for found in covers(tree.children, root_of(tree)) if possible[list(found)].all()]
    for share in (0.0, 0.3, 0.5, 0.9, 1.0):
        chosen, *sums = best_cover(Shape(tree.children, tree.upwards), Prices(possible, bounded, wanted), share)
        value = share * bounded + (1 - share) * wanted
        if not allowed:
            assert np.isinf(sums[0])
            continue
        assert tuple(np.flatnonzero(chosen)) in {tuple(sorted(found)) for found in allowed}
        assert value[chosen].sum() == pytest.approx(min(value[found].sum() for found in allowed))
        assert sums == pytest.approx([bounded[chosen].sum(), wanted[chosen].sum()])


@pytest.mark.parametrize("seed", range(12))
def test_a_budget_is_kept_and_nearly_used_up(seed: int) -> None:
    """No better than the best of all groupings, no worse than the best one that an exchange rate alone can find."""
    rng = np.random.default_rng(100 + seed)
    tree = random_tree(rng, 8)
    allowed = [
        list(found) for found in covers(tree.children, root_of(tree)) if np.isfinite(tree.cost[list(found)]).all()
    ]
    figures = []
    for nodes in allowed:
        share = tree.size[nodes] / tree.size[nodes].sum()
        figures.append((float(share @ tree.ncp[nodes]), float(share @ tree.cost[nodes])))
    for which in (0, 1):
        for budget in np.linspace(0.2, 0.9, 5).tolist():
            given = (budget, None) if which == 0 else (None, budget)
            found = balance._choose(tree, *given)
            within = [pair for pair in figures if pair[which] <= budget]
            if not within:
                assert found is None
                continue
            assert found is not None
            achieved = found[0]
            assert achieved[which] <= budget + 1e-9
            assert achieved[1 - which] >= min(pair[1 - which] for pair in within) - 1e-9
            corners = [
                min(figures, key=lambda pair: rate * pair[which] + (1 - rate) * pair[1 - which])
                for rate in np.linspace(0.001, 0.999, 999)
            ]
            rough = [pair[1 - which] for pair in corners if pair[which] <= budget]
            assert achieved[1 - which] <= min(rough, default=np.inf) + 1e-9


@pytest.mark.parametrize("stages", [(None,), (1.0, 1.7, None)])
def test_nodes_hold_what_they_say(stages: tuple[float | None, ...]) -> None:
    """NCP of every node from the definition, also for a set with more values than a word has bits."""
    rng = np.random.default_rng(4)
    quasi = {"a": ("ranked", 9, rng.integers(0, 9, 90)), "b": ("set", 80, rng.integers(0, 80, 90)),
             "c": ("tree", 7, rng.integers(0, 7, 90)), "d": ("set", 5, rng.integers(0, 5, 90))}  # fmt: skip
    table = patients(4, 90, base=table_of(quasi, {}))
    tree = cut_tree_of(Workbench(table, [diverse(), KAnonymity(k=2)], order, {}), stages)
    assert sorted(tree.who.tolist()) == list(range(90))
    assert tree.extent[root_of(tree)].tolist() == [0, 90]
    assert tree.size.min() >= 2
    for v in range(0, len(tree.ncp), 3):
        members = tree.who[tree.extent[v, 0] : tree.extent[v, 1]].tolist()
        assert tree.ncp[v] == pytest.approx(np.mean([published_loss(table, name, members) for name in table.quasi]))


def test_the_first_stage_holds_without_losing_a_term() -> None:
    table = patients(5, 150)
    model = diverse()
    whole = cut_tree_of(Workbench(table, [model], order, {}), (1.0, None))
    tree = price_trees([whole], linkages(table, [model]), 50, None, None)[0]
    free = balance._choose(tree, None, 0.0)
    assert free is not None
    classes, _ = classes_of(table, [model], order, Mondrian())
    assert free[0][0] <= prices(table, model, classes)[0] + 1e-9


def test_weaker_rules() -> None:
    table = patients(0, 5)
    models = [diverse(2.0), close(0.4), MODELS["qs-closeness"](t=0.8, distance="emd", on=("signs",))]
    rules = term_rules(table, models)
    assert weaken_rules(rules, 1.0).first.tolist() == pytest.approx([2.0, 0.4, 0.8])
    assert weaken_rules(rules, 2.0).first.tolist() == pytest.approx([4.0, 0.8, 0.9])
    assert not len(weaken_rules(rules, None).of)


@pytest.mark.parametrize("model", [diverse(1.0, 2), close(0.45)])
def test_node_prices_are_those_of_brute_force(model: Model) -> None:
    table = patients(9, 14, most=3)
    joint, knowledge = read_together(table, "signs")
    held = [set(knowledge.codes[a:b].tolist()) for a, b in zip(knowledge.bounds, knowledge.bounds[1:], strict=False)]
    (found,) = linkages(table, [model])
    given = model.parameters()
    rule = oracle.Rule("cl" if "c" in given else "l2", given.get("c", 1.0), given.get("l", 2), given.get("t", 0.4),
                       found.alpha.tolist())  # fmt: skip
    looked = 0
    for tree in price_trees(grow_trees(table, [model], order, 1), [found], None, 20.0, None):
        for v in np.flatnonzero(tree.size <= 3).tolist():
            members = tree.who[tree.extent[v, 0] : tree.extent[v, 1]].tolist()
            least = oracle.brute_force([sorted(joint[i]) for i in members], held, rule)
            assert tree.cost[v] == pytest.approx(np.inf if least is None else least)
            looked += 1
    assert looked > 20


def run(table: Records, model: Model, **given: float | str) -> Balanced:
    return balance_losses(table, [model], order, nodes=NODES, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("model", "k"), [(diverse(), 1), (diverse(0.5, 4), 2), (close(0.3), 1)])
def test_budgets_are_kept_and_more_buys_more(model: Model, k: int) -> None:
    table = patients(3, 160)
    best: dict[str, float] = {"generalisation": np.inf, "terms": np.inf}
    for budget in (0.02, 0.05, 0.1, 0.2, 0.4, 1.0):
        for what, other in (("generalisation", "terms"), ("terms", "generalisation")):
            try:
                found = run(table, model, k=k, **{what: budget})
            except RequirementNotMet:
                assert best[what] == np.inf
                continue
            assert getattr(found, what) <= budget + 1e-9
            assert getattr(found, other) <= best[what] + 1e-9
            best[what] = getattr(found, other)
            assert np.bincount(found.classes, minlength=found.count).min() >= k
            expected = (found.generalisation, found.terms)
            assert prices(table, model, found.classes) == pytest.approx(expected, abs=1e-9)
    assert best["generalisation"] == 0
    assert best["terms"] < 0.1


def test_two_phases_are_never_better() -> None:
    table = patients(6, 200)
    for model in (diverse(), close(0.3)):
        for k in (1, 2, 5):
            classes, _ = classes_of(table, [KAnonymity(k=k)] if k > 1 else [], order, Mondrian())
            ncp, terms = prices(table, model, classes)
            assert run(table, model, generalisation=ncp).terms <= terms + 1e-9
            assert run(table, model, terms=terms).generalisation <= ncp + 1e-9
        better = run(table, model, generalisation=ncp)
        assert (better.terms, better.generalisation) < (terms, ncp)


def test_a_budget_out_of_reach_says_what_is_reachable() -> None:
    table = patients(3, 60)
    with pytest.raises(RequirementNotMet, match=r"keeps generalisation at 0\.01") as caught:
        run(table, close(0.3), k=5, generalisation=0.01)
    least = float(str(caught.value).split("at least ")[-1].split(",")[0])
    assert run(table, close(0.3), k=5, generalisation=least).generalisation <= least


@pytest.mark.parametrize("n", [8, 200])
def test_terms_that_cannot_all_be_kept(n: int) -> None:
    """All records give the same label away: not even the largest node may keep its terms."""
    knowledge = Knowledge.from_sets([[0], [1]], terms=("x", "y"), priors=np.array([0.5, 0.5]))
    base = table_of({"a": ("ranked", n, np.arange(n))}, {})
    lonely = with_terms(base, {"signs": (knowledge, [[0]] * n)})
    with pytest.raises(RequirementNotMet, match="keeps terms at 0") as caught:
        run(lonely, close(0.3), terms=0.0)
    least = float(str(caught.value).split("at least ")[-1].split(",")[0])
    assert 0 < least <= 1
    assert run(lonely, close(0.3), terms=least).count >= 1


def test_what_no_grouping_can_mend() -> None:
    knowledge = Knowledge.from_sets([[0], [1]], terms=("x", "y"))
    base = table_of({"a": ("ranked", 8, np.arange(8))}, {})
    table = with_terms(base, {"signs": (knowledge, [[0]] * 8)})
    with pytest.raises(RequirementNotMet, match="in every grouping"):
        run(table, diverse(1.0, 3), terms=1.0)


def test_other_requirements_hold_as_well() -> None:
    table = patients(8, 120, base=small_table(8, 120))
    asked = [diverse(), MODELS["distinct-l-diversity"](l=2, on=("s0",)), KAnonymity(k=3)]
    found = balance_losses(table, asked, order, generalisation=0.5, nodes=NODES)
    for c in range(found.count):
        inside = found.classes == c
        assert inside.sum() >= 3
        assert len(set(table.codes["s0"][inside].tolist())) >= 2
    whole = run(table, diverse(), terms=0.0)
    for c in range(whole.count):
        assert terms_satisfy(table, np.flatnonzero(whole.classes == c).tolist(), diverse())


def test_one_budget_and_one_rule() -> None:
    table = patients(1, 20)
    for given in ({}, {"terms": 0.1, "generalisation": 0.1}):
        with pytest.raises(NorenError, match="one budget"):
            balance_losses(table, [diverse()], order, **given)  # type: ignore[arg-type]
    with pytest.raises(NorenError, match="one requirement on terms"):
        balance_losses(table, [diverse(), close(0.3)], order, terms=0.1)
    with pytest.raises(RequirementNotMet, match="is more than the 20 records"):
        balance_losses(table, [diverse()], order, k=21, terms=0.1)


def test_progress_is_told() -> None:
    told: list[tuple[int, int, float]] = []
    balance_losses(
        patients(2, 40), [close(0.3)], order, terms=0.5, nodes=50, progress=lambda *given: told.append(given)
    )
    assert told
    assert all(0 < done <= total for done, total, _ in told)
