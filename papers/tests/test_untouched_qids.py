"""The paper on untouched quasi-identifiers: questions, errors, estimators and tables against plain oracles."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest

from noren.designs import DecoyDesign
from noren_papers.standins import people as standins
from noren_papers.untouched_qids.median import Classes, median_classes
from noren_papers.untouched_qids.methods import (
    ANATOMY,
    LEAST_LOSS,
    OURS,
    PROPOSAL,
    TP,
    equation_10,
    from_sets,
    held_out,
    membership,
    overall,
    publish,
)
from noren_papers.untouched_qids.tables import Source, hot_deck, with_wages
from noren_papers.untouched_qids.workload import (
    Coded,
    Published,
    Question,
    asked_values,
    coded,
    questions,
    squared_errors,
    truths,
)


def small(rows: int = 900) -> Source:
    rng = np.random.default_rng(3)
    age = rng.choice([20, 21, 23, 30, 41], rows)  # gaps: a release of general values lists the whole range
    sex = rng.choice(["f", "m"], rows)
    job = (rng.integers(0, 6, rows) + (age > 23) * rng.integers(0, 3, rows)) % 6
    frame = pl.DataFrame({"age": age.astype(str), "sex": sex, "job": np.array(list("abcdef"))[job]})
    return Source("small", frame, ("age", "sex"), "job")


def ask(table: Coded, **wanted: set[str]) -> Question:
    return Question(
        {name: np.array([float(label in values) for label in table.labels[name]]) for name, values in wanted.items()}
    )


def test_the_number_of_values_asked_for() -> None:
    assert [asked_values(80, 3, 0.07), asked_values(2, 3, 0.07), asked_values(7, 1, 0.04), asked_values(5, 2, 1.0)] == [
        42, 2, 2, 5,
    ]  # fmt: skip


def test_questions_are_met_and_have_the_right_size() -> None:
    source = small()
    table = coded(source.frame, ["age", "sex", "job"])
    asked, _ = questions(table, source.quasi, 2, 0.07, 25, np.random.default_rng(0))
    assert len(asked) == 25
    for one in asked:
        assert {name: int(w.sum()) for name, w in one.chosen.items()} == {
            name: asked_values(table.sizes[name], 2, 0.07) for name in one.chosen
        }
        assert table.members(one).any()


def test_true_histograms_by_filtering() -> None:
    source = small()
    table = coded(source.frame, ["age", "sex", "job"])
    found = truths(table, "job", [ask(table, age={"20", "41"}, sex={"m"})])[0]
    kept = source.frame.filter(pl.col("age").is_in(["20", "41"]) & (pl.col("sex") == "m"))
    assert found.tolist() == [kept.filter(pl.col("job") == job).height for job in table.labels["job"]]


def test_both_readings_of_equation_11() -> None:
    truth, estimate = np.array([[6, 2]]), np.array([[9.0, 3.0]])
    own, by_truth = squared_errors(truth, estimate)
    assert own.tolist() == [0.0]
    assert by_truth[0] == pytest.approx(((6 - 9) ** 2 + (2 - 3) ** 2) / 64 / 2)


@pytest.mark.parametrize("series", [TP, LEAST_LOSS])
def test_general_values_are_spread_evenly(series: str) -> None:
    source = small(200)
    table = coded(source.frame, ["age", "sex", "job"])
    release = publish(source, 3, series)
    assert release is not None
    question = ask(table, age={"20", "23", "41"}, sex={"f"})
    found = Published(release, table, source.quasi, source.secret).spread_histogram(question)
    expected = dict.fromkeys(table.labels["job"], 0.0)
    rows = release.frame()
    under = {name: release.manifest.column(name) for name in source.quasi}
    cells = release.cells(list(source.quasi))
    for i in range(rows.height):
        share = 1.0
        for name, wanted in {"age": {"20", "23", "41"}, "sex": {"f"}}.items():
            nodes, domain = under[name].catalogue, under[name].domain
            assert nodes is not None
            inside = [domain.values[code] for code in nodes.members(int(cells[name].data[i]))]
            share *= len(wanted & set(inside)) / len(inside)
        expected[rows["job"][i]] += share
    assert found.tolist() == pytest.approx(list(expected.values()))


def test_groups_answer_by_their_shares() -> None:
    source = small(200)
    table = coded(source.frame, ["age", "sex", "job"])
    release = publish(source, 3, ANATOMY)
    assert release is not None
    found = Published(release, table, source.quasi, source.secret).spread_histogram(ask(table, sex={"m"}))
    groups, counts = release.cells(["job"])["job"].data, release.column("job").table
    assert counts is not None
    male = (release.frame()["sex"] == "m").to_numpy()
    expected = np.zeros(6)
    for group, is_male in zip(groups.tolist(), male.tolist(), strict=True):
        mine = slice(counts.bounds[group], counts.bounds[group + 1])
        for value, count in zip(counts.value[mine], counts.count[mine], strict=True):
            expected[value] += is_male * count / counts.count[mine].sum()
    assert found.tolist() == pytest.approx(expected.tolist())


def test_median_cuts_part_the_records_and_keep_the_requirement() -> None:
    source = small(600)
    table = coded(source.frame, ["age", "sex", "job"])
    found = median_classes(table, source.quasi, source.secret, 3)
    assert found is not None
    assert len(found.low) > 2
    codes = np.stack([table.codes[name] for name in source.quasi], axis=1)
    seen = np.zeros(len(codes), int)
    for low, high, secrets in zip(found.low, found.high, found.secrets, strict=True):
        inside = ((codes >= low) & (codes <= high)).all(axis=1)
        seen += inside
        assert np.bincount(table.codes["job"][inside], minlength=6).tolist() == secrets.tolist()
        assert secrets.max() * 3 <= secrets.sum()
    assert (seen == 1).all(), "strict cuts: ranges do not overlap"
    first = codes[:, 0] <= np.sort(codes[:, 0])[299]
    halves = [np.bincount(table.codes["job"][part]) for part in (first, ~first)]
    assert all(half.max() * 3 <= half.sum() for half in halves), "the median of age can be cut"
    place = int(codes[first, 0].max())
    assert all(high <= place or low > place for low, high in zip(found.low[:, 0], found.high[:, 0], strict=True))


def test_a_class_of_ranges_answers_by_the_share_that_is_asked_for() -> None:
    found = Classes(("a", "b"), np.array([[0, 0], [2, 0]]), np.array([[1, 1], [3, 1]]), np.array([[4, 0], [0, 8]]))
    asked = Question({"a": np.array([1.0, 0, 1, 1]), "b": np.array([1.0, 0])})
    assert found.histogram(asked).tolist() == [4 * 0.5 * 0.5, 8 * 1.0 * 0.5]


def test_what_cannot_be_reached_is_none() -> None:
    common = pl.DataFrame({"q": ["x"] * 10, "s": ["a"] * 8 + ["b", "c"]})
    source = Source("common", common, ("q",), "s")
    assert [publish(source, 2, name) is None for name in (PROPOSAL, TP, ANATOMY, LEAST_LOSS)] == [
        False,
        True,
        True,
        True,
    ]
    table = coded(common, ["q", "s"])
    assert median_classes(table, ("q",), "s", 2) is None
    assert publish(source, 3, PROPOSAL) is not None  # the whole domain: allowed by the paper, says nothing
    assert publish(source, 4, PROPOSAL) is None


def test_the_papers_iteration_is_the_librarys_bayes() -> None:
    source = small()
    table = coded(source.frame, ["age", "sex", "job"])
    release = publish(source, 3, PROPOSAL)
    assert release is not None
    asked = [ask(table, sex={"f"}), ask(table, age={"20", "30"}, sex={"m"})]
    found = from_sets(release, table, source, asked, np.random.default_rng(0))[PROPOSAL]
    for row, where in zip(found, ({"sex": ["f"]}, {"age": [20, 30], "sex": ["m"]}), strict=True):
        counts = release.estimate("job", where, "bayes").frame["count"].to_list()
        assert row.tolist() == pytest.approx(counts, abs=0.01 * row.sum())  # the library leaps along the same path


def test_equation_10_written_out() -> None:
    w, l, d = np.array([50.0, 30.0, 28.0, 12.0]), 2, 4
    p = [[1.0 if a == b else (l - 1) / (d - 1) for b in range(d)] for a in range(d)]
    x = list(w)
    for _ in range(1000):
        new = [sum(w[b] * p[a][b] * x[a] / sum(p[c][b] * x[c] for c in range(d)) for b in range(d)) for a in range(d)]
        moved = max(abs(a - b) for a, b in zip(new, x, strict=True))
        x = new
        if moved < 1:
            break
    found, steps = equation_10(w[None], l)
    assert found[0].tolist() == pytest.approx([value / l for value in x])
    assert 1 < steps[0] < 1000


def test_sets_of_the_whole_domain_give_equal_counts() -> None:
    assert equation_10(np.full((1, 5), 40.0), 5)[0][0].tolist() == pytest.approx([8.0] * 5)


def test_ours_agrees_with_the_librarys_cross_tabulation() -> None:
    """The library splits all records into slots and stops by held-out likelihood; ours does so for one group."""
    source = small(4000)
    table = coded(source.frame, ["age", "sex", "job"])
    release = publish(source, 3, PROPOSAL)
    assert release is not None
    ours = from_sets(release, table, source, [ask(table, sex={"f"})], np.random.default_rng(0))[OURS][0]
    library = release.estimate(["sex", "job"]).frame.filter(pl.col("sex") == "f")["count"].to_numpy()
    assert ours.sum() == pytest.approx(library.sum())
    assert np.abs(ours - library).max() < 0.04 * library.sum()


def test_a_small_group_stays_near_everybody_and_a_large_one_does_not() -> None:
    rng = np.random.default_rng(1)
    design = DecoyDesign(d=8, eta=3)

    def sets(shares: list[float], n: int) -> np.ndarray:
        truth = rng.choice(8, n, p=shares)
        others = np.argsort(rng.random((n, 8)) + 2.0 * (np.arange(8) == truth[:, None]), axis=1)[:, : design.eta - 1]
        out = np.zeros((n, 8), np.float32)
        out[np.arange(n), truth] = 1
        np.put_along_axis(out, others, np.float32(1), axis=1)
        return out

    everybody, group = [0.125] * 8, [0.65] + [0.05] * 7
    start = np.array(everybody)
    large = sets(group, 20_000)
    near = held_out(large, start, rng.integers(0, 4, len(large)))
    assert np.abs(near - group).max() < 0.02
    few = held_out(large[:6], start, rng.integers(0, 4, 6))
    assert few.tolist() == pytest.approx((large[:6].sum(axis=0) / 18).tolist())  # each set's members are as likely
    assert overall(large)[0] == pytest.approx(0.65, abs=0.02)


def test_membership_lists_the_sets() -> None:
    source = small(60)
    release = publish(source, 3, PROPOSAL)
    assert release is not None
    found = membership(release.cells(["job"])["job"], 3)
    labels = "abcdef"
    assert [[labels[i] for i in np.flatnonzero(row)] for row in found] == release.frame()["job"].to_list()


def test_the_hot_deck_takes_from_those_alike() -> None:
    sex = np.array([0, 0, 0, 1, 1, 1, 2])
    age = np.array([0, 0, 1, 0, 0, 1, 0])
    wage = np.array([0.0, 5, 7, 0, 9, 0, 0])
    rng = np.random.default_rng(0)
    for found in (hot_deck(wage, (sex, age), rng) for _ in range(20)):
        assert found[:6].tolist() == [5, 5, 7, 9, 9, 9]
        assert found[6] in (5, 7, 9)


def test_stand_ins_have_the_shape_of_the_files() -> None:
    people = standins.make("occupations", 20_000)
    assert people.equals(standins.make("occupations", 20_000))
    assert set(people.dtypes) == {pl.String}
    assert people.columns == [
        "age", "sex", "marital_status", "race", "birthplace", "education", "workclass", "occupation_code",
        "occupation_group", "income_class",
    ]  # fmt: skip
    counts = people["occupation_code"].value_counts()["count"]
    assert people["occupation_code"].n_unique() == 46
    assert 0.05 < counts.max() / people.height < 0.1  # type: ignore[operator]
    wages = with_wages(standins.make("census income", 20_000), np.random.default_rng(0))
    assert 8_000 < wages.height < 11_000
    assert 35 <= wages["income"].n_unique() <= 50
    assert wages["income"].value_counts()["count"].max() / wages.height < 1 / 12  # type: ignore[operator]
    for one, other in product(("age", "sex"), repeat=2):
        assert wages[one].null_count() == wages[other].null_count() == 0


def test_tables_6_and_7_women_seem_to_have_cancer() -> None:
    """Source: the paper's Tables 6 and 7 and the text below them: Anatomy makes it 3/8 of the women, in truth none."""
    from noren_papers.sensitive_qids.methods import Groups, spread

    women = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    disease = np.array([0, 0, 0, 1, 1, 2, 2, 2])  # Cancer, Cold, Cut
    group = np.array([2, 4, 1, 3, 4, 3, 1, 2]) - 1
    sensitive = [{0, 2}, {0, 2}, {1, 2}, {0, 1}]
    assert all(value in sensitive[one] for one, value in zip(group, disease, strict=True))
    assert sorted(np.bincount(group).tolist()) == [2, 2, 2, 2]
    shares = np.array([[0.5 * (value in one) for value in range(3)] for one in sensitive], np.float32)
    found = spread([Groups(women, np.eye(2, dtype=np.float32)), Groups(group, shares)])
    assert found[1, 0] / found[1].sum() == pytest.approx(3 / 8)
    assert not ((women == 1) & (disease == 0)).any()


def test_table_5_is_diverse_and_leaves_everybody_recognisable() -> None:
    """Source: the paper's Table 5: the original is 2-diverse, so a method may leave it as it is."""
    people = pl.DataFrame(
        {"age": [31, 31, 52, 52], "job": ["Artist", "Artist", "Writer", "Writer"],
         "disease": ["Fever", "Sty", "Cancer", "HIV"]}
    )  # fmt: skip
    source = Source("table 5", people.cast(pl.String), ("age", "job"), "disease")
    table = coded(source.frame, ["age", "job", "disease"])
    classes = median_classes(table, source.quasi, source.secret, 2)
    assert classes is not None
    assert (classes.low == classes.high).all(), "every quasi-identifier is as it was"
    release = publish(source, 2, LEAST_LOSS)
    assert release is not None
    assert sorted(release.frame()["age"].cast(pl.String).unique().to_list()) == ["31", "52"]
