"""Means, variances, quantiles, correlations, differences and ratios against tables whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError
from noren.estimates.statistics.moments import _not_ruled_out, _one_or_two_sided
from tests.unit.estimates.statistics.worlds import drawn, exact, general, grouped, people

FAR = 6.5
"""Standard errors beyond which a right estimate lies less than once in ten billion."""


def by_sex(of: str = "pay") -> dict[str, tuple[float, float]]:
    frame = people().group_by("sex").agg(pl.col(of).mean().alias("mean"), pl.col(of).var().alias("variance"))
    return {row["sex"]: (row["mean"], row["variance"]) for row in frame.iter_rows(named=True)}


def test_exact_columns_have_exact_answers() -> None:
    truth, release = by_sex(), exact()
    for row in release.mean("pay", by="sex"):
        assert row["mean"] == pytest.approx(truth[row["sex"]][0])
        assert row["std_error"] == pytest.approx(0, abs=1e-6)
    for row in release.variance("pay", by="sex"):
        assert row["variance"] == pytest.approx(truth[row["sex"]][1])
    frame = people()
    assert float(release.correlation("age", "pay")) == pytest.approx(np.corrcoef(frame["age"], frame["pay"])[0, 1])
    assert float(release.quantile("pay", 0.25)) == frame["pay"].quantile(0.25, "higher")
    assert release.mean("pay").assumes.startswith("nothing")


def test_a_population_adds_the_sampling_error() -> None:
    pay = people()["pay"]
    found = exact().mean("pay", population=True)[0]
    assert found["std_error"] == pytest.approx(pay.std() / len(pay) ** 0.5, rel=1e-3)
    assert drawn().mean("pay", population=True)[0]["std_error"] > drawn().mean("pay")[0]["std_error"]


def test_drawn_columns_are_estimated_within_their_errors() -> None:
    truth, release, frame = by_sex(), drawn(), people()
    for row in release.mean("pay", by="sex"):
        assert abs(row["mean"] - truth[row["sex"]][0]) < FAR * row["std_error"]
        assert 0 < row["std_error"] < 0.1
        assert row["low"] < row["mean"] < row["high"]
    for row in release.variance("pay", by="sex"):
        assert abs(row["variance"] - truth[row["sex"]][1]) < FAR * row["std_error"]
    found = release.correlation("age", "pay")[0]
    assert abs(found["correlation"] - np.corrcoef(frame["age"], frame["pay"])[0, 1]) < FAR * found["std_error"]
    share = release.mean("trade=nurse")[0]
    assert abs(share["mean"] - (frame["trade"] == "nurse").mean()) < FAR * share["std_error"]


def test_groups_and_conditions_may_be_hidden_too() -> None:
    frame, release = people(), drawn()
    trades = frame.group_by("trade").agg(pl.col("pay").mean(), pl.len())
    truth = {row["trade"]: row for row in trades.iter_rows(named=True)}
    for row in release.mean("pay", by="trade"):
        assert abs(row["mean"] - truth[row["trade"]]["pay"]) < FAR * row["std_error"]
        assert row["records"] == pytest.approx(truth[row["trade"]]["len"], rel=0.5)
    only = release.mean("age", where={"trade": ["nurse", "cook"], "sex": "F"})[0]
    wanted = frame.filter(pl.col("trade").is_in(["nurse", "cook"]) & (pl.col("sex") == "F"))["age"].mean()
    assert abs(only["mean"] - wanted) < FAR * only["std_error"]


def test_differences_and_ratios_of_groups() -> None:
    truth, release = by_sex(), drawn()
    women, men = truth["F"][0], truth["M"][0]
    rows = [*release.difference("pay", by="sex")]
    assert (rows[0]["difference"], rows[0]["std_error"]) == (0, 0)
    assert abs(rows[1]["difference"] - (men - women)) < FAR * rows[1]["std_error"]
    turned = {row["sex"]: row for row in release.difference("pay", by="sex", against="M")}
    assert turned["F"]["difference"] == pytest.approx(-rows[1]["difference"])
    ratio = [*release.ratio("pay", by="sex")][1]
    assert abs(ratio["ratio"] - men / women) < FAR * ratio["std_error"]
    assert ratio["low"] < ratio["ratio"] < ratio["high"]
    with pytest.raises(QueryError, match="no group"):
        release.difference("pay", by="sex", against="X")


def test_quantiles_are_values_that_occur_and_lie_between_their_ends() -> None:
    for row in drawn().quantile("pay", 0.5, by="sex"):
        assert row["quantile"] in range(8)
        assert row["low"] <= row["quantile"] <= row["high"]
    with pytest.raises(QueryError, match="share between"):
        drawn().quantile("pay", 1.5)


def test_a_width_of_nothing_is_tested_on_two_sides_and_a_large_one_on_one() -> None:
    found = _one_or_two_sided(np.array([0.0, 0.5, 50.0]), 0.9)
    assert found[0] == pytest.approx(1.6449, abs=1e-4)
    assert found[2] == pytest.approx(1.2816, abs=1e-4)
    rng = np.random.default_rng(2)
    drawn_at_an_end = rng.normal(0, 1, 4_000_000)
    inside = (drawn_at_an_end > -found[1]) & (drawn_at_an_end < 0.5 + found[1])
    assert inside.mean() == pytest.approx(0.9, abs=6.5 * np.sqrt(0.09 / 4e6))


@pytest.mark.slow
def test_a_quantile_that_is_nearly_another_value_is_covered_as_often_as_said() -> None:
    """The worst that can be for five even values: the level is what the first two have together, 0.4, so that chance
    decides between the second and the third. Two-sided intervals would cover 97.5%."""
    rng, times, noise = np.random.default_rng(8), 20_000, 0.04
    own = np.sqrt(2) * np.full(5, noise)
    error = np.array([noise] * 4 + [0.0])
    covered = 0
    for _ in range(times):
        share = np.maximum.accumulate(np.arange(1, 6) / 5 + rng.normal(size=5) * error)
        covered += _not_ruled_out(share, error, own, 0.4, 0.95)[1]
    assert covered / times == pytest.approx(0.95, abs=6.5 * np.sqrt(0.05 * 0.95 / times))


def test_bins_stand_for_their_middle_unless_numbers_are_given() -> None:
    frame = pl.DataFrame({"age": [5, 15, 15, 25] * 30})
    require = [nr.models.FrequencyLDiversity(on="age", l=2)]
    columns = {"age": nr.sensitive(bins=[0, 10, 20, 30])}
    release = nr.anonymize(frame, nr.Policy(attributes=columns, require=require))
    found = release.mean("age")
    assert abs(found[0]["mean"] - 15) < FAR * found[0]["std_error"]
    assert found.notes == ("An interval of 'age' counts as its midpoint.",)
    labels = release.column("age").domain.values
    moved = release.mean("age", values={"age": dict(zip(labels, (1, 11, 21), strict=True))})
    assert moved[0]["mean"] == pytest.approx(found[0]["mean"] - 4)
    with pytest.raises(QueryError, match="has no number"):
        release.mean("age", values={"age": {labels[0]: 3}})


def test_the_median_of_bins_is_spread_inside_the_bin() -> None:
    frame = pl.DataFrame({"age": [5] * 30 + [15] * 60 + [25] * 10})
    release = nr.anonymize(frame, nr.Policy(attributes={"age": nr.plain(bins=[0, 10, 20, 30])}))
    assert float(release.quantile("age")) == pytest.approx(10 + 10 * 20 / 60)


def test_missing_cells_take_no_part() -> None:
    frame = pl.DataFrame({"pay": [1, 2, None, 3] * 25, "sex": ["F", "M"] * 50})
    release = nr.anonymize(frame, nr.Policy(attributes={"pay": "plain", "sex": "plain"}))
    assert float(release.mean("pay")) == pytest.approx(2)
    assert release.mean("pay")[0]["records"] == 75


def test_general_values_and_groups_have_hard_bounds() -> None:
    frame = people(1_200)
    for release, of, by in ((general(), "age", "sex"), (grouped(), "pay", "sex"), (general(), "pay", "age")):
        truths = dict(frame.group_by(pl.col(by).cast(pl.String)).agg(pl.col(of).mean()).iter_rows())
        found = release.mean(of, by=by)
        assert found.error_bars == "hard bounds"
        assert "hard bounds" in found.assumes
        assert found.frame["std_error"].null_count() == len(found)
        for row in found:
            if row["mean"] is not None and row[by] in truths:
                assert row["low"] - 1e-9 <= truths[row[by]] <= row["high"] + 1e-9
                assert row["low"] - 1e-9 <= row["mean"] <= row["high"] + 1e-9
    spread = general().variance("age")[0]
    assert spread["low"] <= frame["age"].var() <= spread["high"]
    median = general().quantile("age")[0]
    assert median["low"] <= frame["age"].median() <= median["high"]
    whole = grouped().mean("pay")[0]
    assert whole["low"] == whole["high"] == pytest.approx(frame["pay"].mean())
    with pytest.raises(QueryError, match="population"):
        general().mean("age", population=True)


@pytest.mark.parametrize("ends", [{"top": 50}, {"bottom": 40}, {"top": 50, "bottom": 40}])
def test_hard_bounds_allow_for_what_lies_beyond_open_ends(ends: dict[str, int], tmp_path: Path) -> None:
    frame = people(1_200)
    roles = dict.fromkeys(frame.columns, "plain") | {"age": nr.quasi_identifier(**ends), "sex": "quasi-identifier"}
    policy = nr.Policy(attributes=roles, require=[nr.models.KAnonymity(k=30)], method=nr.methods.Mondrian())
    release = nr.anonymize(frame, policy)
    low, high = -np.inf if "bottom" in ends else None, np.inf if "top" in ends else None
    for found in (release.mean("age"), release.mean("age", by="vote"), release.difference("age", by="vote")[1:]):
        for row in found:
            assert low is None or row["low"] == low
            assert high is None or row["high"] == high
    for row in release.mean("age", by="vote"):
        own = frame.filter(pl.col("vote") == row["vote"])["age"]
        assert row["low"] <= own.mean() <= row["high"]
    spread = release.variance("age")[0]
    assert 0 <= spread["low"] <= frame["age"].var() <= spread["high"] == np.inf
    release.mean("age", by="vote").save_plot(tmp_path / "means.html")
    chart = release.mean("age", by="vote").plot().to_dict()
    drawn_rows = chart["datasets"][chart["data"]["name"]]
    assert all(np.isfinite([row["from"], row["to"]]).all() for row in drawn_rows)
    assert all((row["high"] is None) == ("top" in ends) for row in drawn_rows)
    for q in (0.02, 0.5, 0.98):
        row = release.quantile("age", q)[0]
        assert row["low"] <= frame["age"].quantile(q, "higher") <= row["high"]


def test_a_group_without_a_number_is_explained() -> None:
    release = drawn(500, 3)
    assert release.mean("age", by="sex").notes == ()
    few = release.mean("age", by="pay")
    assert few.frame["mean"].null_count()
    assert any("too small" in note for note in few.notes)


def test_groups_keep_the_difference_between_exact_ones() -> None:
    """Releases show .83 of it on average, one standard deviation .26; the mean of nine is within five of its own."""
    frame = people(1_200)
    truth = dict(frame.group_by("sex").agg(pl.col("pay").mean()).iter_rows())
    found = []
    for number in range(9):
        means = {row["sex"]: row["mean"] for row in grouped(number).mean("pay", by="sex")}
        found.append((means["M"] - means["F"]) / (truth["M"] - truth["F"]))
    assert 0.4 < np.mean(found) < 1.27


def test_what_has_no_number_is_refused_with_a_way_out() -> None:
    with pytest.raises(QueryError, match="holds no numbers") as error:
        drawn().mean("trade")
    assert "trade=clerk" in str(error.value)
    with pytest.raises(QueryError, match="no column 'wage'"):
        drawn().mean("wage")
    with pytest.raises(QueryError, match="not a probability"):
        drawn().mean("pay", level=2)


def test_a_result_shows_itself() -> None:
    found = drawn().mean("pay", by="sex")
    assert repr(found).startswith("<Statistic of mean of pay by sex: 2 groups")
    assert [row["sex"] for row in found] == ["F", "M"]
    assert found.to_dict()["rows"][0].keys() == {"sex", "mean", "std_error", "low", "high", "records"}
    assert "<table>" in found._repr_html_()
    assert found.plot().to_dict()["layer"]
    with pytest.raises(TypeError, match="2 groups"):
        float(found)
