"""The mathematics of the sensitive-QID reproduction against slow and plain versions."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import polars as pl
import pytest
from tests.oracles.posterior import posterior, total_variation

from noren.designs import DecoyDesign
from noren_papers.base import Bench
from noren_papers.sensitive_qids import (
    PAPER,
    algorithm1,
    decomposition,
    errors,
    ground_distances,
    grounds,
    informed,
    methods,
    reconstruction,
    tables,
)
from noren_papers.standins import census68


def coded(rng: np.random.Generator, sizes: dict[str, int], n: int) -> tables.Coded:
    columns = {name: np.minimum(rng.geometric(0.35, n) - 1, d - 1).astype(np.uint8) for name, d in sizes.items()}
    values = {name: tuple(map(str, range(d))) for name, d in sizes.items()}
    return tables.Coded("test", n, columns, values)


def test_every_figure_of_the_paper_is_there():
    assert [figure.key for figure in PAPER.figures] == ["1", "2", "3", "4", "5", "6", "7", "closeness", "informed"]
    assert all(len(set(figure.claims.values())) == len(figure.claims) >= 3 for figure in PAPER.figures)


def test_census_columns_do_not_depend_on_what_else_is_made():
    few = census68.codes(["c03", "c60"], 3_000)
    more = census68.codes(["c01", "c60", "c03"], 5_000)
    assert all((few[name] == more[name][:3_000]).all() for name in few)


def test_census_has_the_domains_the_skew_and_the_dependence_it_promises():
    sizes = list(census68.DOMAINS.values())
    assert (len(sizes), min(sizes), max(sizes)) == (68, 2, 18)
    table = census68.codes(["c01", "c03", "c08", "c17", "c27", "c40"], 60_000)
    dependent = 0
    for name, column in table.items():
        seen = np.bincount(column, minlength=census68.DOMAINS[name]) / len(column)
        assert np.abs(seen - census68.shares(name)).max() < 0.01
    for one, other in combinations(table, 2):
        joint = np.zeros((census68.DOMAINS[one], census68.DOMAINS[other]))
        np.add.at(joint, (table[one], table[other]), 1 / 60_000)
        dependent += np.abs(joint - np.outer(joint.sum(1), joint.sum(0))).sum() > 0.05
    assert dependent >= 5


def test_census_as_text_is_the_codes():
    frame = census68.make(rows=50)
    assert frame.shape == (50, 68)
    assert frame["c05"].cast(pl.UInt8).to_list() == census68.codes(["c05"], 50)["c05"].tolist()


def test_numbers_fall_into_the_class_that_starts_at_or_below_them():
    frame = pl.DataFrame(
        {"age": ["17", "19", "20", "24", "25", "90"], "capital-gain": ["0", "1", "1999", "2000", "14999", "99999"]}
    )
    out = tables.categorised(frame)
    assert out["age"].to_list() == ["00+", "00+", "20+", "20+", "25+", "85+"]
    assert out["capital-gain"].to_list() == ["00000+", "00001+", "00001+", "02000+", "10000+", "15000+"]


def test_truth_counts_records():
    table = coded(np.random.default_rng(1), {"a": 3, "b": 4}, 500)
    slow = np.zeros((4, 3))
    for a, b in zip(table.columns["a"], table.columns["b"], strict=True):
        slow[b, a] += 1
    assert (table.truth(("b", "a")) == slow).all()


@pytest.mark.parametrize(("d", "level", "size"), [(2, 5, 1), (5, 5, 4), (6, 5, 5), (41, 10, 10), (3, 2, 2)])
def test_the_papers_rule_for_small_domains(d, level, size):
    assert methods.set_size(d, level) == size


@pytest.mark.parametrize("counts", [[5, 5, 5], [100, 3, 2, 2], [1, 1], [9, 0, 4, 4, 1]])
def test_the_largest_cap_is_the_largest_that_can_be_grouped(counts):
    values = np.array(counts)
    for size in range(2, int((values > 0).sum()) + 1):
        slow = max(c for c in range(values.max() + 1) if size * c <= np.minimum(values, c).sum())
        assert methods.largest_cap(values, size) == slow


def test_ratings_groups_hold_l_values_and_every_record_its_own():
    table = coded(np.random.default_rng(2), {"a": 7, "b": 2}, 4_000)
    for level in (2, 4):
        groups = methods.rated(table, "a", level)
        assert ((groups.shares > 0).sum(axis=1) >= level).all()
        assert ((groups.shares > 0).sum(axis=1) <= level + 1).mean() > 0.99
        assert (groups.shares[groups.group_of, table.columns["a"]] > 0).all()
        assert np.allclose(groups.shares.sum(axis=1), 1)
    clear = methods.rated(table, "b", 2)
    assert (clear.group_of == table.columns["b"]).all()


def test_spreading_groups_is_the_sum_over_records():
    rng = np.random.default_rng(3)
    table = coded(rng, {"a": 4, "b": 3, "c": 5}, 300)
    groups = [methods.rated(table, name, 2) for name in ("a", "b", "c")]
    slow = np.zeros((4, 3, 5))
    for i in range(300):
        parts = [one.shares[one.group_of[i]] for one in groups]
        for cell in product(range(4), range(3), range(5)):
            slow[cell] += np.prod([part[v] for part, v in zip(parts, cell, strict=True)])
    for many in (1, 2, 3):
        rest = tuple(range(many, 3))
        assert np.allclose(methods.spread(groups[:many]), slow.sum(axis=rest), atol=1e-3)


def test_spreading_full_sets_is_value_adding():
    table = coded(np.random.default_rng(4), {"a": 5, "b": 4}, 800)
    designs = {"a": DecoyDesign(d=5, eta=3), "b": DecoyDesign(d=4, eta=2)}
    sets = methods.published(table, designs)
    columns = []
    for name, design in designs.items():
        shares = np.zeros((table.n, design.d), np.float32)
        np.put_along_axis(shares, sets[name].codes(design.eta).astype(np.int64), 1 / design.eta, axis=1)
        columns.append(methods.Groups(np.arange(table.n), shares))
    found = errors.estimates(sets, designs, ("a", "b"), (errors.VALUE_ADDING,))[errors.VALUE_ADDING]
    assert np.allclose(methods.spread(columns), found, atol=1e-2)


def test_random_tables_hold_all_records():
    table = methods.random_table(np.random.default_rng(5), (4, 6), 900)
    assert table.shape == (4, 6)
    assert table.sum() == pytest.approx(900)
    assert table.min() >= 0


def test_algorithm_1_as_printed_is_what_enumerating_every_set_gives():
    counts = np.array([400, 250, 200, 90, 60])
    prior, n = counts / counts.sum(), int(counts.sum())
    for t in (0.1, 0.3):
        best = (np.inf, None)
        for eta in range(1, 5):
            for chosen in combinations(range(5), eta):
                low, high = 0.0, 1.0

                def distance(p, chosen=chosen, eta=eta):
                    design = DecoyDesign(d=5, eta=eta, p=p)
                    return total_variation(posterior(prior, chosen, design), prior)

                if distance(1.0) <= t:
                    low = 1.0
                else:
                    for _ in range(60):
                        middle = (low + high) / 2
                        low, high = (middle, high) if distance(middle) <= t else (low, middle)
                found = DecoyDesign(d=5, eta=eta, p=low).expected_l2(n)
                if found < best[0] - 1e-12:
                    best = (found, (eta, low))
        printed = algorithm1.printed_design(counts, t)
        assert (printed.eta, printed.p) == pytest.approx(best[1], abs=1e-6)


@pytest.mark.parametrize("p", [0.2, 0.7, 1.0])
def test_the_worst_distance_is_that_of_the_worst_set(p):
    counts = np.array([500, 30, 200, 90, 60, 1])
    prior = counts / counts.sum()
    for eta in (1, 2, 4):
        design = DecoyDesign(d=6, eta=eta, p=p)
        sets = list(combinations(range(6), eta))
        slow = [total_variation(posterior(prior, chosen, design), prior) for chosen in sets]
        assert algorithm1.worst_distance(counts, design) == pytest.approx(max(slow))
        share = algorithm1.beyond(counts, design, np.array(sets), 0.15)
        assert share == pytest.approx(np.mean([value > 0.15 + 1e-9 for value in slow]))


def test_the_worst_distance_without_enumeration_agrees(monkeypatch):
    counts = np.array([500, 30, 200, 90, 60, 11, 7, 0])
    designs = [DecoyDesign(d=8, eta=eta, p=p) for eta in (1, 3, 5) for p in (0.3, 0.8, 1.0)]
    assert max(comb(8, design.eta) for design in designs) < algorithm1.ENUMERATED
    exact = [algorithm1.worst_distance(counts, design) for design in designs]
    monkeypatch.setattr(algorithm1, "ENUMERATED", 0)
    assert [algorithm1.worst_distance(counts, design) for design in designs] == pytest.approx(exact)


def test_the_printed_choice_breaks_t_and_the_search_keeps_it():
    table = coded(np.random.default_rng(6), {"a": 9}, 5_000)
    counts = table.counts("a")
    safe = methods.close_designs(table, 0.1)["a"]
    assert algorithm1.worst_distance(counts, safe) <= 0.1 + 1e-9
    assert algorithm1.worst_distance(counts, algorithm1.printed_design(counts, 0.1)) > 0.1


def test_the_matrix_as_it_stands_gives_the_product_forms_table():
    table = coded(np.random.default_rng(7), {"a": 6, "b": 2, "c": 4}, 3_000)
    designs = methods.diverse_designs(table, 3)
    names = ("a", "b", "c")
    sets = methods.published(table, designs)
    found = errors.estimates(sets, designs, names, (errors.PROPOSAL,))[errors.PROPOSAL]
    slow = np.zeros((6, 2, 4))
    members = [sets[name].codes(designs[name].eta) for name in names]
    for i in range(table.n):
        slow[np.ix_(*(rows[i].astype(np.int64) for rows in members))] += 1
    dense, steps = reconstruction.as_written(slow, [designs[name] for name in names], errors.EPS)
    assert steps > 1
    assert np.allclose(dense, found, atol=1e-6 * table.n)


def test_choices_differ_stay_below_the_limit_and_repeat():
    sizes = {f"a{i}": 2 + i for i in range(9)}
    first, again = (errors.choices(Bench(None, quick=True, seed="s"), sizes, {1: 9, 2: 5, 3: 4}, 60) for _ in range(2))
    assert first == again
    assert len(first[1]) == 9
    assert len(first[2]) == 5
    for chosen in (names for several in first.values() for names in several):
        assert np.prod([sizes[name] for name in chosen]) <= 60
        assert len(set(chosen)) == len(chosen)


def test_means_are_compared_choice_by_choice():
    rows = pl.DataFrame(
        [
            {"x": x, "q": 1, "choice": c, "series": s, "metric": "L1", "distance": x * (c + 1) * (2 if s == "B" else 1)}
            for x in (2.0, 5.0) for c in (0, 1) for s in ("A", "B")
        ]
    )  # fmt: skip
    means = errors.averaged(rows)
    assert means.filter(x=2.0, series="A")["distance"].item() == 3.0
    claim, told = errors.than("A", "alike", "B", factor=0.5).compare(means)
    assert claim.true == 2
    assert "is 1 times 0.5 of that of B, in 2 places" in told


def tree_matrix() -> np.ndarray:
    """Six values: {0, 1} and {2, 3, 4} are relatives, 5 stands alone."""
    family = [0, 0, 1, 1, 1, 2]
    return np.array([[0.0 if i == j else 0.5 if family[i] == family[j] else 1.0 for j in range(6)] for i in range(6)])


def transported(one: np.ndarray, other: np.ndarray, matrix: np.ndarray) -> float:
    """The earth mover's distance as definition 5 has it: a linear programme over all flows."""
    from scipy.optimize import linprog

    d = len(one)
    out, into = np.kron(np.eye(d), np.ones(d)), np.kron(np.ones(d), np.eye(d))
    found = linprog(matrix.ravel(), A_eq=np.vstack([out, into]), b_eq=np.concatenate([one, other]))
    return float(found.fun)


def test_distances_by_rank_and_by_matrix_are_the_least_work():
    rng = np.random.default_rng(11)
    ranks = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) / 5
    for _ in range(20):
        one, other = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
        shift = (other - one)[None, :]
        assert np.isclose(ground_distances.by_rank(shift)[0], transported(one, other, ranks))
        assert np.isclose(ground_distances.by_matrix(shift, tree_matrix())[0], transported(one, other, tree_matrix()))


def test_a_matrix_that_is_no_trees_is_refused():
    ranks = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) / 3
    with pytest.raises(ValueError, match="tree"):
        ground_distances.steps(ranks)


@pytest.mark.parametrize("t", [0.05, 0.2])
def test_the_search_by_matrix_keeps_t_and_could_not_keep_more(t):
    counts = np.array([40, 7, 30, 12, 8, 3])
    design = ground_distances.search(counts, t, tree_matrix())
    every = np.array(list(combinations(range(6), design.eta)))
    moved = ground_distances.by_matrix(ground_distances.shifts(counts, design, every), tree_matrix())
    assert np.isclose(moved.max(), t, atol=1e-9)
    more = DecoyDesign(d=6, eta=design.eta, p=min(1.0, design.p + 1e-3))
    assert ground_distances.by_matrix(ground_distances.shifts(counts, more, every), tree_matrix()).max() > t


def test_belief_after_a_set_is_the_librarys():
    counts, design = np.array([5, 3, 2, 10]), DecoyDesign(d=4, eta=2, p=0.6)
    shift = ground_distances.shifts(counts, design, np.array([[0, 2]]))[0]
    assert np.allclose(shift, posterior(counts / 20, [0, 2], design) - counts / 20)


def test_columns_published_apart_are_independent():
    table = coded(np.random.default_rng(12), {"a": 3, "b": 4, "c": 2}, 700)
    found = methods.apart(table, ("b", "a"))
    assert np.allclose(found, np.outer(table.counts("b"), table.counts("a")) / 700)
    assert np.allclose(methods.apart(table, ("c",)), table.truth(("c",)))


def test_a_whole_domain_is_close_with_inference_only():
    table = coded(np.random.default_rng(13), {"a": 5}, 900)
    row = grounds.whole_domains(table).row(0, named=True)
    assert row["with inference"] == 0
    assert np.isclose(row["without inference"], total_variation(table.counts("a") / 900, np.full(5, 0.2)))


@pytest.mark.parametrize("protected", [(), ("a",), ("a", "b"), ("b", "d"), ("a", "b", "d"), ("a", "b", "c", "d")])
def test_a_decomposition_parts_exactly_the_pairs_of_protected_attributes(protected):
    levels = {name: 3 if name in protected else 1 for name in "abcd"}
    assert decomposition.lost_pairs(levels) == {frozenset(pair) for pair in combinations(protected, 2)}


def test_a_sub_table_guards_the_hidden_against_the_known_alone():
    anatomised = decomposition.SubTable(frozenset("ac"), frozenset("b"))
    assert anatomised.keeps("b")
    assert not anatomised.keeps("a")
    assert anatomised.keeps("d")
    both = decomposition.SubTable(frozenset("c"), frozenset("ab"))
    assert not both.keeps("a")
    assert decomposition.SubTable(frozenset("a"), frozenset()).keeps("a")


def test_sets_for_public_shares_keep_their_bound_and_uniform_decoys_do_not() -> None:
    prior = np.array([0.5, 0.2, 0.1, 0.1, 0.06, 0.04])
    found = informed.designs_of(prior, 3)
    joint = informed.chances(found[informed.UNIFORM]) * prior
    bound = float(joint.max(axis=1).sum())
    assert (joint / joint.sum(axis=1, keepdims=True)).max() == pytest.approx(found[informed.UNIFORM].worst_under(prior))
    assert found[informed.UNIFORM].worst_under(prior) > bound
    for series in (informed.INFORMED, informed.BOTH):
        assert found[series].worst_under(prior) <= bound * (1 + 1e-6), series
    assert found[informed.BOTH].eta >= 3
    uniform, own = (informed.least_error(found[name], prior) for name in (informed.UNIFORM, informed.INFORMED))
    assert own < uniform
