"""Paper 004: the reproduction's own arithmetic against slow plain counting, and what the stand-ins promise."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest
from tests.oracles.general_metrics import general_table

from noren.errors import RequirementNotMet
from noren.metrics.general import GeneralTable
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Tree, tree_of
from noren.schema.roles import Role
from noren_papers.base import Bench
from noren_papers.claims import FAILS, HOLDS, Tally
from noren_papers.datasets import BY_NAME
from noren_papers.standins import uci
from noren_papers.tau_l import common, eligible, execution, information, skewed, sources, violations
from noren_papers.tau_l.common import scored

DISEASES = Hierarchy.from_tree({"hemal": ["hepatitis", "anemia"], "respiratory": ["tuberculosis", "flu"]})
SECRETS = {"nursery": "class", "car": "class", "cmc": "contraceptive_method", "abalone": "rings", "mushroom": "class",
           "chess": "depth_of_win"}  # fmt: skip


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(None, quick=True, seed="test")


def published(tree: Tree, groups: list[int], truth: list[int], nodes: list[int]) -> GeneralTable:
    """A table of one exact quasi-identifier, the class, and a secret published as nodes."""
    return general_table(
        {"class": Role.QUASI_IDENTIFIER, "secret": Role.SENSITIVE},
        {"class": Domain(tuple(map(str, range(max(groups) + 1)))), "secret": Domain(tree.nodes.labels[: tree.nodes.d])},
        {"class": np.array(groups), "secret": np.array(truth)},
        {"secret": (tree.nodes, np.array(nodes))},
    )


def test_cumulative_frequencies_of_the_running_example() -> None:
    """Source: golden/generalisation.json, fig3: three classes, each F = 0.5, 0.75, 1, 1."""
    names = ["hepatitis"] * 4 + ["tuberculosis", "hepatitis"] + ["tuberculosis"] * 3 + ["flu", "hepatitis", "anemia"]
    shown = ["hemal", "hemal", *names[2:]]
    groups = [0, 0, 2, 0, 0, 1, 1, 1, 2, 1, 2, 2]
    tree = tree_of(DISEASES)
    number = {label: node for node, label in enumerate(tree.nodes.labels)}
    table = published(tree, groups, [number[name] for name in names], [number[name] for name in shown])
    assert violations.reached(table, "secret") == pytest.approx(np.tile([0.5, 0.75, 1, 1], (3, 1)))


@pytest.mark.parametrize("seed", range(5))
def test_cumulative_frequencies_against_plain_counting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = tree_of(DISEASES)
    truth = rng.integers(0, 4 if seed else 3, 40).tolist()  # seed 0: one value never occurs and must not count
    nodes = [int(tree.at[rng.integers(0, 3), code]) for code in truth]
    groups = [*range(4), *rng.integers(0, 4, 36).tolist()]
    occurs = set(truth)
    expected = []
    for group in range(4):
        share = dict.fromkeys(sorted(occurs), 0.0)
        mine = [node for node, own in zip(nodes, groups, strict=True) if own == group]
        for node in mine:
            under = [code for code in tree.nodes.members(node).tolist() if code in occurs]
            for code in under:
                share[code] += 1 / len(under) / len(mine)
        ranked = sorted(share.values(), reverse=True)
        expected.append([sum(ranked[: k + 1]) for k in range(len(ranked))])
    found = violations.reached(published(tree, groups, truth, nodes), "secret")
    assert found == pytest.approx(np.array(expected))


def test_every_release_satisfies_its_requirement_and_adds_up(bench: Bench) -> None:
    data = common.dataset(bench, "nursery")
    for method, (tau, l) in product((common.SWEEP, common.CHUNKS, common.SUPPRESSED), ((0.5, 3), (0.45, 4))):
        found = common.release_of(bench, "nursery", method, tau, l)
        assert found is not None
        rose = violations.reached(found.table, data.sensitive)
        bound = np.array([min(1.0, tau + (1 - tau) * k / (l - 1)) for k in range(rose.shape[1])])
        assert (rose <= bound + 1e-9).all()
        excess = np.abs(bound - rose).sum(axis=1)
        assert found.excess == pytest.approx(excess.min())
        assert found.mean_excess == pytest.approx((excess * found.records_of_classes).sum() / data.coded.n)
        parts = found.utility
        assert parts.total == pytest.approx((8 * parts.quasi + parts.sensitive) / 9)  # type: ignore[operator]


def test_1dld_takes_the_first_l_that_satisfies(bench: Bench) -> None:
    found = common.release_of(bench, "nursery", common.ONE_D, 0.4, 3)
    assert found is not None
    assert found.chosen == "l = 3"
    two = common.one_d(bench, "nursery", 2)
    assert two is not None
    with pytest.raises(RequirementNotMet):
        common._published(common.dataset(bench, "nursery"), "", 0.4, 3, "", two.table, 0.0)
    assert common.release_of(bench, "nursery", common.ONE_D, 0.45, 4) is None


def test_cld_takes_the_least_excess_and_no_table_of_stars(bench: Bench) -> None:
    found = common.release_of(bench, "nursery", common.CLD, 0.5, 2)
    everyone = scored(bench, "nursery", common.CLD, 0.5, 2)
    assert found is not None
    assert len(everyone) > 1
    assert found.excess == pytest.approx(min(excess for excess, _ in everyone))
    assert not any(common.is_empty(one.table) for one in common.cld(bench, "nursery").candidates)
    data = common.dataset(bench, "nursery")
    roots = {name: tree_of(data.hierarchies[name]) for name in data.quasi_identifiers}
    stars = general_table(
        {name: facts.role for name, facts in data.coded.columns.items()},
        {name: facts.domain for name, facts in data.coded.columns.items()},
        data.coded.codes,
        {name: (tree.nodes, np.full(data.coded.n, tree.root)) for name, tree in roots.items()},
    )
    assert common.is_empty(stars)
    assert not common.is_empty(common.suppressed(data))


def test_releases_do_not_depend_on_the_figure_that_asks_first() -> None:
    first = [Bench(None, quick=True, seed=seed) for seed in ("a", "b")]
    got = [common.release_of(bench, "nursery", common.SWEEP, 0.4, 4) for bench in first]
    assert got[0] is not None
    assert got[1] is not None
    assert got[0].utility == got[1].utility
    assert np.array_equal(got[0].table.classes, got[1].table.classes)


def test_weakest_cl_guarantees_tau_l(bench: Bench) -> None:
    """Random classes that meet a (c, l) which is said to guarantee (tau, l) do meet it."""
    rng = np.random.default_rng(8)
    m = common.dataset(bench, "nursery").values
    pairs = execution.weakest(bench, "nursery", 0.5, 2)
    assert pairs
    for c, size in pairs:
        for _ in range(300):
            ranked = np.sort(rng.dirichlet(np.full(m, 0.4)))[::-1]
            if ranked[0] < c * ranked[size - 1 :].sum():
                assert ranked[0] <= 0.5 + 1e-9


def test_rank_correlation_against_plain_ranks() -> None:
    x, y = np.array([1.0, 2, 2, 3]), np.array([4.0, 3, 2, 1])
    plain = np.corrcoef([1, 2.5, 2.5, 4], [4, 3, 2, 1])[0, 1]
    assert information.rank_correlation(x, y) == pytest.approx(plain)
    assert np.isnan(information.rank_correlation(x, np.ones(4)))


def test_example_4_and_patients() -> None:
    """Source: DEFINITIONS of the project: (2, 2) is eligible for the twelve patients too."""
    answer = eligible._example()
    assert answer.verdict == FAILS
    assert "(2, 2)" in answer.measured
    assert eligible._disclosure().verdict == HOLDS
    assert sum(eligible.PATIENTS.values()) == 12
    for parts in eligible.CLASSES.values():
        secrets = [secret for part in parts for secret in part]
        assert {value: secrets.count(value) for value in secrets} == eligible.PATIENTS


def test_nothing_to_compare_shows_nothing() -> None:
    frame = pl.DataFrame(
        {
            "data": ["a", "a", "a"],
            "requirement": ["r", "r", "s"],
            "method": ["P", "Q", "P"],
            "utility": [0.5, 0.4, None],
        }
    )
    assert common.gain("x", frame, "P", "Q", "utility")[0].typical == pytest.approx(1.25)
    compared, text = common.than("Q", "above", "P", "utility").compare(frame)
    assert compared == Tally(false=1)
    assert "utility of Q is 0.8 times that of P, in 1 place, not at a r" in text


def test_quick_part_keeps_rare_values_and_shares() -> None:
    secrets = pl.Series(["a"] * 600 + ["b"] * 397 + ["c"] * 2 + ["d"])
    taken = secrets.gather(sources.part_with_all_values(secrets, 100, np.random.default_rng(1)))
    assert dict(taken.value_counts().rows()) == {"a": 60, "b": 39, "c": 2, "d": 1}


@pytest.mark.parametrize("name", list(SECRETS))
def test_stand_ins_have_the_shape_and_the_eligible_range_of_the_file(name: str) -> None:
    dataset = BY_NAME[name]
    frame = uci.make(name, dataset.rows)
    assert frame.shape == (dataset.rows, dataset.columns)
    assert frame.equals(uci.make(name, dataset.rows))
    assert all(kind == pl.String for kind in frame.dtypes)
    counts = frame[SECRETS[name]].value_counts()["count"]
    assert dataset.rows // int(counts.max()) == eligible.PRINTED[name][1]  # type: ignore[arg-type]
    source = sources.SOURCES[name]
    assert {*source.quasi, source.sensitive} <= set(frame.columns)


def test_nursery_refuses_poor_health_and_nobody_else() -> None:
    frame = uci.make("nursery", 12_960)
    refused = frame["class"] == "not_recom"
    assert refused.sum() == 4_320
    assert (refused == (frame["health"] == "not_recom")).all()
    assert frame.n_unique(list(uci.NURSERY)) == 12_960


def test_small_data_sets_are_asked_for_more_than_simple_diversity(bench: Bench) -> None:
    for name, wanted in skewed.SMALL.items():
        data = common.dataset(bench, name)
        assert all(1 / l - 1e-9 <= tau < 1 and l <= data.values for tau, l in wanted)
