"""The semantic-diversity paper: its baselines, tables and rates against slow and plain counterparts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.methods import Decoys
from noren.release.release import Release
from noren_papers.base import Bench
from noren_papers.claims import FAILS, HOLDS
from noren_papers.semantic import PAPER, obesity
from noren_papers.semantic.combinations import (
    DUPLICATE,
    LE,
    OURS,
    SERIES,
    SIMPLE,
    drawn,
    grouped_estimate,
    groups_of,
    made,
    measure,
    mse,
    paper_estimates,
    subtrees,
)
from noren_papers.semantic.errors import SAID_11, SAID_12
from noren_papers.semantic.histograms import histograms, unevenness
from noren_papers.semantic.material import (
    Material,
    diverse,
    income_labels,
    income_table,
    policy,
    rank_distances,
    schooling_tree,
    yen_distances,
)
from noren_papers.semantic.rates import exact_rate, theorem_bound
from noren_papers.semantic.violation import plain_sets, room, true_room, value_rates, violates


def ranked(F: int = 14, n: int = 600) -> Material:
    rng = np.random.default_rng(3)
    codes = np.minimum(rng.geometric(0.25, n) - 1, F - 1)
    labels = (("20-29", "male"), ("20-29", "female"), ("30-39", "male"))
    return Material("ranks", codes, rng.integers(0, 3, n), labels, tuple(map(str, range(F))), rank_distances(F))


def schooled(n: int = 600) -> Material:
    tree, rng = schooling_tree(), np.random.default_rng(4)
    codes = rng.choice(16, n, p=np.arange(1, 17) / 136)
    labels = (("20-29", "male"), ("20-29", "female"))
    heights = tree.lca_heights().astype(float)
    return Material("schooling", codes, rng.integers(0, 2, n), labels, tree.leaves, heights, tree)


# ---------------------------------------------------------------- the worked example


def test_table_9_solved_gives_table_10() -> None:
    found = obesity.solved(np.array(obesity.REPORTED))
    assert found[0].tolist() == pytest.approx([117.75, 52.5, 11.5, 20.5, 27.75])
    assert obesity.half_up(found).tolist() == [pytest.approx(row) for row in obesity.PRINTED]
    assert mse(obesity.people(), np.array(obesity.PRINTED)) == pytest.approx(8.055e-06)


def test_expected_reports_are_those_of_the_equations_written_out() -> None:
    partners = {0: (2, 3, 4), 1: (3, 4), 2: (0, 4), 3: (0, 1), 4: (0, 1, 2)}
    slow, spread = np.array(obesity.TRUE, float), np.zeros((4, 5))
    for i, row in enumerate(obesity.TRUE):
        for k, count in enumerate(row):
            for j in partners[k]:
                q = 1 / len(partners[k])
                slow[i, j] += count * q
                spread[i, j] += count * q * (1 - q)
    one = obesity.people()
    mean, deviation = obesity.expected(made(one, "simple", 2, 2).inclusion().matrix)
    assert np.allclose(mean, slow)
    assert np.allclose(deviation**2, spread)


def test_fresh_reports_vary_as_the_variance_says() -> None:
    one = obesity.people()
    design = made(one, "simple", 2, 2)
    mean, spread = obesity.expected(design.inclusion().matrix)
    z = np.array([(one.counted(drawn(one, design)) - mean) / spread for _ in range(200)])
    assert abs(np.square(z).mean() - 1) < 0.15


# ---------------------------------------------------------------- tables


def test_schooling_has_the_distances_that_the_text_names() -> None:
    tree = schooling_tree()
    heights = tree.lca_heights()
    at = {leaf: i for i, leaf in enumerate(tree.leaves)}
    assert tree.height == 4
    assert len(at) == 16
    assert heights[at["Doctorate"], at["Masters"]] == 1
    assert heights[at["Doctorate"], at["Bachelors"]] == heights[at["Doctorate"], at["Prof-school"]] == 2
    assert heights[at["Doctorate"], at["Some-college"]] == 3
    assert heights[at["Doctorate"], at["HS-grad"]] == 4
    assert [len(set(subtrees(tree, depth).tolist())) for depth in (1, 2, 3, 4)] == [2, 6, 12, 16]


def test_incomes_are_repeatable_and_depend_on_age_and_gender() -> None:
    frame = income_table(5_000)
    assert frame.equals(income_table(5_000))
    assert set(frame["income"]) <= set(income_labels())
    assert len(income_labels()) == 14
    place = frame.with_columns(rank=pl.col("income").replace_strict({v: i for i, v in enumerate(income_labels())}))
    men, women = (place.filter(sex=sex)["rank"].mean() for sex in ("Male", "Female"))
    young, grown = (place.filter(pl.col("age").cast(int).is_between(*a))["rank"].mean() for a in ((18, 25), (45, 55)))
    assert men > women + 1  # type: ignore[operator]
    assert grown > young + 0.5  # type: ignore[operator]


def test_three_seven_is_impossible_by_rank_and_possible_in_yen() -> None:
    def largest(distances: np.ndarray, v: int) -> bool:
        far = [u for u in range(14) if distances[v, u] >= 7]
        return any(distances[a, b] >= 7 for a, b in combinations(far, 2))

    assert not any(largest(rank_distances(14), v) for v in range(14) if 6 < v + 1 < 9)
    assert all(largest(yen_distances(), v) for v in range(14))


# ---------------------------------------------------------------- rates


@pytest.mark.parametrize(("l", "d"), [(2, 2), (3, 2), (3, 3), (4, 2)])
def test_rates_of_every_value_are_those_of_all_sets_counted(l: int, d: int) -> None:
    for distances in (rank_distances(9), schooling_tree().lca_heights()[3:13, 3:13].astype(float)):
        found = value_rates(distances, l, d)
        for v in range(len(distances)):
            others = [u for u in range(len(distances)) if u != v]
            sets = [(v, *rest) for rest in combinations(others, l - 1)]
            broken = [any(distances[a, b] < d for a, b in combinations(one, 2)) for one in sets]
            assert found[v] == pytest.approx(np.mean(broken))
            assert violates(np.array(sets), distances, d).tolist() == broken
    ranks = value_rates(rank_distances(9), l, d)
    assert ranks.mean() == pytest.approx(exact_rate(9, l, d))
    assert ranks[0] == ranks[-1] == pytest.approx(theorem_bound(9, l, d))


def test_plain_sets_hold_the_truth_and_l_values() -> None:
    codes = np.arange(14).repeat(20)
    sets = plain_sets(codes, 14, 3)
    assert sets.shape == (280, 3)
    assert (sets == codes[:, None]).any(axis=1).all()
    assert (np.diff(np.sort(sets, axis=1), axis=1) > 0).all()


def test_room_that_is_left_is_counted_right_and_the_paper_counts_less() -> None:
    for F, d in ((7, 2), (9, 3)):
        for size in (1, 2):
            for chosen in combinations(range(1, F + 1), size):
                if any(b - a < d for a, b in combinations(chosen, 2)):
                    continue
                free = [u for u in range(1, F + 1) if all(abs(u - c) >= d for c in chosen)]
                slow = max(
                    k for k in range(len(free) + 1)
                    if k == 0 or any(all(b - a >= d for a, b in combinations(c, 2)) for c in combinations(free, k))
                )  # fmt: skip
                assert true_room(F, chosen, d) == slow
                assert room(F, chosen, d) <= slow
    assert room(10, (1, 3, 9), 2) == 2  # the paper's own example
    assert room(10, (1, 3, 6, 9), 2) == 0


# ---------------------------------------------------------------- combinations


def test_paper_estimates_are_those_of_the_library() -> None:
    """The formulas here against release.estimate on the very same published sets."""
    table = ranked()
    release = nr.anonymize(table.frame(), policy(table, "ordinal", diverse(3, 2), Decoys(design="simple")))
    published = release.frame()
    at = {label: i for i, label in enumerate(table.slot_labels)}
    slots = np.array([at[pair] for pair in published.select("age", "gender").iter_rows()])
    sets = np.array([[int(v) for v in cell] for cell in published["secret"]])
    same = Material("same", table.codes, slots, table.slot_labels, table.values, table.distances)
    found, why = paper_estimates(same, release.designs["secret"], sets, SIMPLE)
    assert not why
    for name, estimator in zip(SIMPLE, ("semantic-linear", "uniform-linear", "share"), strict=True):
        asked = release.estimate(["age", "gender", "secret"], estimator=estimator).frame
        for age, gender, value, count in asked.select("age", "gender", "secret", "count").iter_rows():
            if (age, gender) in at:
                assert found[name][at[age, gender], int(value)] == pytest.approx(count, abs=1e-6)


def test_points_tell_why_there_is_no_error() -> None:
    rng = np.random.default_rng(1)
    lost = {p.series: p for p in measure(ranked(), 2, 7, repetitions=1, ours=1, rng=rng)}
    assert lost["N-Proposal"].mse is lost["Ex-Proposal"].mse is lost[OURS].mse is None
    assert lost["N-Proposal"].status == lost[OURS].status == "counts are lost"
    assert lost["N-Simple"].mse is not None
    assert lost[LE].status == "needs a tree"
    never = {p.series: p for p in measure(ranked(), 3, 7, repetitions=1, ours=1, rng=rng)}
    assert all(never[name].mse is None for name in SERIES)
    tree = {p.series: p for p in measure(schooled(), 2, 3, repetitions=1, ours=1, rng=rng)}
    assert all("ranks only" in tree[name].status for name in DUPLICATE)
    assert tree[LE].mse is not None


def test_groups_hold_l_subtrees_and_everybody_is_in_one() -> None:
    table, rng = schooled(), np.random.default_rng(2)
    classes = subtrees(schooling_tree(), 2)
    for l in (2, 3, 4):
        group = groups_of(classes[table.codes], l, rng)
        assert group.min() == 0
        for g in range(int(group.max()) + 1):
            assert len(set(classes[table.codes[group == g]].tolist())) >= l
    estimate = grouped_estimate(table, classes, 2, rng)
    assert np.allclose(estimate.sum(axis=0), table.truth.sum(axis=0))
    assert np.allclose(estimate.sum(axis=1), table.truth.sum(axis=1))


def test_histograms_of_the_pipeline_know_what_cannot_be() -> None:
    found = histograms(ranked(n=400), 3, 7, "(3,7)")
    assert not found.found
    assert "14 of 14 values cannot be in a set of 3" in found.status["Ex-Proposal"]
    tree = histograms(schooled(), 2, 3, "(2,3)", "tree")
    assert {"Ex-Proposal", "Ex-Simple", LE, OURS} <= set(tree.found)
    assert np.allclose(tree.found["Ex-Simple"].sum(), 600)
    assert unevenness(tree.found["Ex-Simple"]) < unevenness(tree.table.truth)


def test_le_spreads_every_group_over_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper gives Anatomy the simple analysis; the library's default would be a cleverer one."""
    releases: list[Release] = []

    def keep(data: pl.DataFrame, asked: nr.Policy) -> Release:
        releases.append(anonymize(data, asked))
        return releases[-1]

    anonymize = nr.anonymize
    monkeypatch.setattr("noren_papers.semantic.histograms.anonymize", keep)
    table = schooled()
    found = histograms(table, 2, 3, "(2,3)", "tree").found[LE]
    groups = releases[-1].column("secret").table
    assert groups is not None
    mix = np.zeros((groups.groups, table.size))
    mix[groups.group, groups.value] = groups.count
    mix /= mix.sum(axis=1, keepdims=True)
    slow = np.zeros_like(found)
    for age, gender, group in releases[-1].frame().select("age", "gender", "secret").iter_rows():
        slow[table.slot_labels.index((age, gender))] += mix[int(group)]
    assert np.allclose(found, slow)


# ---------------------------------------------------------------- answers


def answered(errors: dict[str, list[float]]) -> dict[str, str]:
    """Verdicts by the beginnings of claims, for a panel of three settings."""
    rows = [
        {"panel": "(b) d = 2, against l", "x": l, "l": l, "d": 2, "series": name, "mse": line[i], "std_error": None}
        for i, l in enumerate((2, 3, 4))
        for name, line in errors.items()
    ]
    sheet = pl.DataFrame(rows, schema_overrides={"std_error": pl.Float64}).with_columns(first=pl.lit(value=True))
    said = SAID_12.answered(frame=sheet, sheet=sheet, table=schooled(40)) | SAID_11.answered(
        frame=sheet, sheet=sheet, table=ranked(n=40)
    )
    return {text[:24]: answer.verdict for text, answer in said.items()}


def test_verdicts_follow_the_numbers() -> None:
    found = answered({"Ex-Proposal": [1e-6, 2e-6, 9e-6], LE: [2e-7, 3e-7, 4e-7]})
    assert found["Here too Ex-Proposal's e"] == HOLDS
    assert found["In panel (b) Ex-Proposal"] == HOLDS
    assert found["There are settings at wh"] == FAILS
    found = answered({"Ex-Proposal": [9e-6, 2e-6, 1e-6], LE: [2e-5, 3e-5, 4e-5], "N-Proposal": [1e-4] * 3})
    assert found["Here too Ex-Proposal's e"] == FAILS
    assert found["In panel (b) Ex-Proposal"] == FAILS
    assert found["There are settings at wh"] == HOLDS
    assert found["At every setting N-Propo"] == FAILS


def test_a_table_runs_alone_and_answers_all_its_claims() -> None:
    figure = PAPER.figure("table-10")
    assert figure is not None
    result = figure.compute(Bench(None, quick=True, seed="test"))
    assert set(result.answers) == set(figure.claims)
    assert result.answers["row"].verdict == HOLDS
