"""Survey weights: totals, means, models and tests against the same formulas written out over rows."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import noren as nr
from noren.errors import PolicyError, QueryError
from noren.estimates.statistics.records import AxisScores, Records
from noren.release.gathered import gather
from tests.unit.estimates.statistics.worlds import people

FAR = 6.5
"""Standard errors beyond which a right estimate lies less than once in ten billion."""
HIDDEN = ("pay", "trade")


def weights_of(frame: pl.DataFrame) -> NDArray[np.float64]:
    """Women and the well paid stand for more people."""
    return np.where(frame["sex"] == "F", 3.0, 1.0) * np.where(frame["pay"] > 3, 2.0, 0.5)


@cache
def weighed(n: int = 4_000) -> pl.DataFrame:
    return people(n).with_columns(pl.Series("wt", weights_of(people(n))))


def policy(hidden: tuple[str, ...] = HIDDEN, **more: object) -> nr.Policy:
    roles: dict[str, object] = dict.fromkeys(people().columns, "plain") | dict.fromkeys(hidden, "sensitive")
    require = [nr.models.FrequencyLDiversity(on=list(hidden), l=2)] if hidden else []
    given = {"attributes": roles | {"wt": nr.plain(weight=True)}, "require": require, "dependence": {"most": 1.0}}
    return nr.Policy(**(given | more))


@cache
def hidden() -> nr.Release:
    return nr.anonymize(weighed(), policy())


@cache
def shown() -> nr.Release:
    return nr.anonymize(weighed(), policy(()))


# ---------------------------------------------------------------------- exact columns: the plain weighted formulas


def test_exact_columns_have_weighted_answers() -> None:
    frame, release = weighed(), shown()
    w, pay, women = weights_of(frame), frame["pay"].to_numpy(), (frame["sex"] == "F").to_numpy()
    assert float(release.mean("pay")) == pytest.approx((w * pay).sum() / w.sum())
    for row in release.estimate(["sex", "pay"]):
        here = ((frame["sex"] == row["sex"]) & (frame["pay"] == int(row["pay"]))).to_numpy()
        assert row["count"] == pytest.approx(w[here].sum())
        assert row["std_error"] is None
        assert row["low"] == pytest.approx(row["high"])
    assert release.count({"sex": "F"}).count == pytest.approx(w[women].sum())
    order = np.argsort(pay, kind="stable")
    middle = pay[order][np.argmax(np.cumsum(w[order]) >= w.sum() / 2)]
    assert float(release.quantile("pay")) == middle
    mean = release.mean("pay", by="sex")[0]
    assert mean["records"] == pytest.approx(w[women].sum())


def test_a_population_has_the_error_of_weighted_records() -> None:
    frame, release = weighed(), shown()
    w, pay, n = weights_of(frame), frame["pay"].to_numpy(), frame.height
    mean = (w * pay).sum() / w.sum()
    error = np.sqrt(n / (n - 1) * np.square(w * (pay - mean)).sum()) / w.sum()
    assert release.mean("pay", population=True)[0]["std_error"] == pytest.approx(error, rel=1e-6)
    part = w * (frame["sex"] == "F").to_numpy()
    count = np.sqrt(np.square(part).sum() - part.sum() ** 2 / n)
    assert release.count({"sex": "F"}, population=True).std_error == pytest.approx(count, rel=1e-6)
    assert release.estimate("sex", population=True)[0]["std_error"] == pytest.approx(count, rel=1e-6)


def test_regression_of_exact_columns_is_weighted_least_squares_with_its_sandwich() -> None:
    frame = weighed()
    w, y = weights_of(frame), frame["pay"].to_numpy().astype(float)
    x = np.column_stack([np.ones(frame.height), frame["age"], frame["sex"] == "M"]).astype(float)
    bread = np.linalg.inv((x * w[:, None]).T @ x)
    theta = bread @ ((x * w[:, None]).T @ y)
    own = x * (w * (y - x @ theta))[:, None]
    cov = bread @ (own.T @ own) @ bread * frame.height / (frame.height - 3)
    found = shown().regress("pay ~ age + sex")
    assert found.theta.ravel() == pytest.approx(theta)
    assert found.cov == pytest.approx(cov)
    assert found.diagnostics["design_effect"] == pytest.approx(frame.height * np.square(w).sum() / w.sum() ** 2)


# ---------------------------------------------------------------------- drawn columns: the score formulas over rows


def test_totals_are_sums_of_weighted_scores_with_squared_weights_in_their_variance() -> None:
    found = gather(hidden(), ["pay", "trade"], {})
    records, w = found.records, weights_of(weighed()) / weights_of(weighed()).mean()
    release_weights = found.weights
    assert isinstance(records, Records)
    assert release_weights is not None
    assert np.sort(release_weights.of) == pytest.approx(np.sort(w))
    w = release_weights.of
    amounts, nurses = found.variables["pay"].amounts, found.variables["trade"].indicator(3)

    def rows(place: int, function: NDArray[np.float64]) -> NDArray[np.float64]:
        axis = AxisScores(found.axes[place])
        return axis.of(function[:, None])[axis.ids, 0]

    s = rows(0, amounts) * rows(1, nurses)
    both = rows(0, amounts**2) * rows(1, nurses)
    for population in (False, True):
        totals = records.totals([{0: amounts, 1: nurses}], population=population)
        assert totals.value[0] == pytest.approx((w * s).sum())
        n = len(w)
        wanted = np.square(w * s - (w * s).mean()).sum() * n / (n - 1) if population else (w**2 * (s**2 - both)).sum()
        assert totals.cov[0, 0] == pytest.approx(wanted)


def test_the_linear_table_is_the_weighted_inversion_of_inclusions() -> None:
    release = hidden()
    design, frame, domain = release.designs["pay"], release.frame(), release.column("pay").domain.values
    d, eta = len(domain), design.eta
    other = (eta - 1) / (d - 1)
    w = frame["wt"].to_numpy()
    for row in release.estimate("pay", estimator="linear"):
        inside = frame["pay"].cast(pl.List(pl.String)).list.contains(row["pay"]).to_numpy()
        assert row["count"] == pytest.approx((w * (inside - other)).sum() / (1 - other))
        chances = np.where(inside, 1.0, 0.0)
        assert 0 < row["std_error"] < np.sqrt(np.square(w).sum()) / (1 - other)
        assert chances.any()


def test_tables_means_and_coefficients_of_drawn_columns_are_near_the_weighted_truth() -> None:
    frame, release = weighed(), hidden()
    w = frame["wt"].to_numpy()
    for by in (["pay"], ["sex", "pay"], ["pay", "trade"], ["sex", "pay", "trade"]):
        truth = {tuple(map(str, row[:-1])): row[-1] for row in frame.group_by(by).agg(pl.col("wt").sum()).iter_rows()}
        found = release.estimate(by)
        assert found.frame["count"].sum() == pytest.approx(w.sum(), rel=1e-6)
        for row in found:
            true = truth.get(tuple(row[name] for name in by), 0.0)
            # around the ends, not the count: an interval may have been stretched to hold the count at one of them
            beyond = (FAR - 1.96) * row["std_error"] + 6 * w.max()
            assert row["low"] - beyond < true < row["high"] + beyond
    mean = release.mean("pay")[0]
    assert abs(mean["mean"] - (w * frame["pay"].to_numpy()).sum() / w.sum()) < FAR * mean["std_error"]
    plain = release.mean("pay", weighted=False)[0]
    assert abs(plain["mean"] - frame["pay"].mean()) < FAR * plain["std_error"]
    assert abs(plain["mean"] - mean["mean"]) > 0.3  # the weights matter here
    one, other = release.regress("pay ~ age").params["age"], release.regress("pay ~ age", weighted=False).params["age"]
    assert one != other


def covered(releases: int = 160, n: int = 600) -> dict[str, NDArray[np.bool_]]:
    """Samples with unequal chances from one population: is its truth inside the intervals?"""
    rng = np.random.default_rng(99)
    size = 60_000
    x = rng.integers(0, 2, size)
    y = np.minimum(rng.poisson(1 + 0.8 * x), 5)
    chance = np.where(y > 2, 3.0, 1.0) * np.where(x == 1, 0.5, 1.0)
    chance = chance / chance.sum() * n
    share, mean = float((y == 1).mean()), float(y.mean())
    slope = float(np.polyfit(x, y, 1)[0])
    rules = nr.Policy(
        attributes={"x": "plain", "y": "sensitive", "wt": nr.plain(weight=True)},
        require=[nr.models.FrequencyLDiversity(on="y", l=2)],
        dependence={"most": 1.0},
    )
    out: dict[str, list[bool]] = {"share": [], "mean": [], "slope": []}
    for _ in range(releases):
        rows = rng.random(size) < chance
        frame = pl.DataFrame({"x": x[rows], "y": y[rows], "wt": np.round(1 / chance[rows], 6)})
        release = nr.anonymize(frame, rules)
        table = release.estimate("y", population=True)
        scaled = share * size
        out["share"].append(table[1]["low"] <= scaled <= table[1]["high"])
        found = release.mean("y", population=True)[0]
        out["mean"].append(found["low"] <= mean <= found["high"])
        line = release.regress("y ~ x").frame.row(1, named=True)
        out["slope"].append(line["low"] <= slope <= line["high"])
    return {name: np.array(found) for name, found in out.items()}


@pytest.mark.slow
def test_intervals_of_a_weighted_sample_cover_its_population() -> None:
    """160 releases at 95%: fewer than 128 that cover happen less than once in 10^10 times (binomial)."""
    for name, found in covered().items():
        assert found.sum() >= 128, name


def test_a_weighted_test_finds_what_is_there_and_keeps_still_otherwise() -> None:
    release = hidden()
    assert release.test("pay", "age").p_value < 0.01
    found = release.test("pay", "age")
    assert found.reference == "random signs"
    assert "random signs" in str(found)
    rng = np.random.default_rng(5)
    small = []
    for _ in range(150):
        y = rng.integers(0, 5, 300)
        frame = pl.DataFrame({"x": rng.integers(0, 3, 300), "y": y, "wt": np.where(y > 2, 4.0, 1.0)})
        roles = {"x": "plain", "y": "sensitive", "wt": nr.plain(weight=True)}
        require = [nr.models.FrequencyLDiversity(on="y", l=2)]
        made = nr.anonymize(frame, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}))
        small.append(made.test("x", "y", "independence", permutations=199).p_value <= 0.05)
    assert sum(small) <= 30  # a test of 5% rejects more than 30 of 150 true hypotheses less than once in 10^9 times


def test_very_many_records_take_chi_square(monkeypatch: pytest.MonkeyPatch) -> None:
    from noren.estimates.statistics import association

    slow = hidden().test("sex", "trade", permutations=1999).p_value
    monkeypatch.setattr(association, "WORK", 1.0)
    quick = hidden().test("sex", "trade")
    assert quick.reference == "chi-square"
    assert quick.p_value == pytest.approx(slow, abs=0.05)


# ---------------------------------------------------------------------- general values


def test_general_values_have_weighted_hard_bounds() -> None:
    frame = weighed(1_200)
    roles = {name: nr.plain() for name in frame.columns} | {"age": nr.quasi_identifier(), "wt": nr.plain(weight=True)}
    rules = nr.Policy(attributes=roles, require=[nr.models.KAnonymity(k=300)], method=nr.methods.Mondrian())
    release = nr.anonymize(frame, rules)
    truth = dict(frame.group_by("age").agg(pl.col("wt").sum()).iter_rows())
    for estimator in (None, "likelihood", "spread"):
        found = release.estimate("age", estimator=estimator)
        assert found.frame["count"].sum() == pytest.approx(frame["wt"].sum())
        for row in found:
            assert row["low"] - 1e-6 <= truth.get(int(row["age"]), 0.0) <= row["high"] + 1e-6
    assert "weights are unrelated to the value" in release.estimate("age").assumes
    mean = release.mean("age")[0]
    w = frame["wt"].to_numpy()
    assert mean["low"] < (w * frame["age"].to_numpy()).sum() / w.sum() < mean["high"]
    with pytest.raises(QueryError, match="takes no survey weights"):
        release.regress("pay ~ age")
    assert release.regress("pay ~ age", weighted=False).records == 1_200


# ---------------------------------------------------------------------- what is refused


def test_the_manifest_says_which_column_is_the_weight(tmp_path) -> None:
    release = hidden()
    assert release.manifest.weight == "wt"
    opened = nr.open_release(release.save(tmp_path / "release"))
    assert opened.manifest.weight == "wt"
    assert all(verdict.holds for verdict in nr.verify(tmp_path / "release"))
    assert "In `wt` stands how many people" in (tmp_path / "release" / "README.md").read_text()
    assert "weight" not in nr.anonymize(people(400), nr.Policy(attributes=dict.fromkeys(people().columns, "plain"))
                                        ).manifest.model_dump()  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([1.0, -2.0, 1.0], "1 records have a negative weight"),
        ([1.0, 0.0, 0.0], "2 records have the weight 0"),
        ([1.0, None, 2.0], "1 records have no weight"),
        (["a", "b", "c"], "not numbers"),
    ],
)
def test_what_is_no_weight_is_refused(numbers: list[object], said: str) -> None:
    frame = pl.DataFrame({"town": ["Ulm", "Bonn", "Ulm"], "wt": numbers})
    rules = nr.Policy(attributes={"town": nr.plain(), "wt": nr.plain(weight=True)})
    with pytest.raises(PolicyError, match=said):
        nr.anonymize(frame, rules)


def test_a_policy_has_one_weight_and_it_is_plain() -> None:
    with pytest.raises(PolicyError, match="2 columns are weights: a, b"):
        nr.Policy(attributes={"a": nr.plain(weight=True), "b": nr.plain(weight=True)})
    with pytest.raises(PolicyError, match="role 'plain'"):
        nr.Policy.parse('[attributes]\na = { role = "quasi-identifier", weight = true }\n')
    text = policy().to_toml()
    assert "weight = true" in text
    assert nr.Policy.parse(text).weight == "wt"


def test_weights_can_be_left_out_and_must_be_there_to_be_asked_for() -> None:
    with pytest.raises(QueryError, match="no survey weights"):
        nr.anonymize(people(400), nr.Policy(attributes=dict.fromkeys(people().columns, "plain"))).estimate(
            "sex", weighted=True
        )
    assert shown().count({"sex": "F"}, weighted=False).count == (weighed()["sex"] == "F").sum()
    assert shown().estimate("sex", weighted=False).frame["count"].sum() == weighed().height


def test_a_holder_hears_of_weights_that_few_share() -> None:
    from noren.workflow.anonymize import run

    frame = weighed(400).with_columns(pl.Series("wt", np.arange(1, 401) / 7))
    notes = run(frame, policy(())).facts.notes
    assert any("400 records have a weight that fewer than five share" in note for note in notes)
    assert not any("weight" in note for note in run(weighed(), policy(())).facts.notes)


def test_a_sample_of_the_table_stands_for_as_many_more() -> None:
    """Half of 4,000 records: the sum of their weights is off by at most 6.5 standard deviations of the draw."""
    release = nr.anonymize(weighed(), policy((), sample={"share": 0.5}))
    w = weights_of(weighed())
    assert abs(release.estimate("sex").frame["count"].sum() - w.sum()) < FAR * np.sqrt(np.square(w).sum())
