"""Regression: exact columns as least squares and maximum likelihood have it, hidden ones within their errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

import noren as nr
from noren.errors import QueryError
from noren.estimates.statistics.regression import Regression
from tests.unit.estimates.statistics.worlds import drawn, exact, general, grouped, people

FAR = 6.5


def columns() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    frame = people()
    male = (frame["sex"] == "M").to_numpy().astype(float)
    return np.stack([np.ones(len(male)), frame["age"].to_numpy(), male], axis=1), frame["pay"].to_numpy(), male


def test_gaussian_on_exact_columns_is_least_squares_with_robust_errors() -> None:
    x, y, _ = columns()
    fit = exact().regress("pay ~ age + sex")
    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(fit.theta[0], beta, rtol=1e-8)
    left, back = y - x @ beta, np.linalg.inv(x.T @ x)
    robust = back @ ((x * left[:, None] ** 2).T @ x) @ back * len(y) / (len(y) - 3)
    np.testing.assert_allclose(fit.cov, robust, rtol=1e-6)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_other_families_on_exact_columns_are_at_the_maximum_of_the_likelihood(family: str) -> None:
    x, pay, _ = columns()
    y = (people()["vote"] == "yes").to_numpy() if family == "binomial" else pay

    def loss(beta: np.ndarray) -> float:
        eta = x @ beta
        return float((np.log1p(np.exp(eta)) if family == "binomial" else np.exp(eta)).sum() - y @ eta)

    response = "vote" if family == "binomial" else "pay"
    fit = exact().regress(f"{response} ~ age + sex", family)  # type: ignore[arg-type]
    best = minimize(loss, fit.theta[0], method="BFGS", options={"gtol": 1e-4})
    np.testing.assert_allclose(fit.theta[0], best.x, atol=1e-4)
    assert loss(fit.theta[0]) <= best.fun + 1e-6


def test_a_multinomial_of_two_classes_is_the_binomial() -> None:
    two = exact().regress("vote ~ age + sex", "binomial")
    many = exact().regress("vote ~ age + sex", "multinomial")
    np.testing.assert_allclose(two.theta, many.theta)
    assert many.frame["class"].to_list() == ["yes"] * 3


MODELS = [
    ("vote ~ pay + sex", "binomial"),
    ("pay ~ age + sex", "gaussian"),
    ("pay ~ age*sex", "poisson"),
    ("age ~ pay + trade", "gaussian"),
    ("trade ~ sex", "multinomial"),
]


@pytest.mark.parametrize(("formula", "family"), MODELS)
def test_hidden_columns_give_the_coefficients_of_the_table_within_their_errors(formula: str, family: str) -> None:
    truth = exact().regress(formula, family)  # type: ignore[arg-type]
    found = drawn().regress(formula, family)  # type: ignore[arg-type]
    assert found.estimator == "scores"
    assert found.titles == truth.titles
    errors = np.sqrt(np.diag(found.cov))
    assert (np.abs(found.theta.ravel() - truth.theta.ravel()) < FAR * errors).all()
    assert (errors >= 0.9 * np.sqrt(np.diag(truth.cov))).all()


def test_one_random_member_would_flatten_what_scores_do_not() -> None:
    release = drawn()
    member = release.frame()["pay"].list.get(0).to_numpy()
    naive = np.corrcoef(member, release.frame()["age"].to_numpy())[0, 1]
    assert float(release.correlation("pay", "age")) > 1.3 * naive


def test_too_little_is_refused_with_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import noren.estimates.statistics.fitting as module

    monkeypatch.setattr(module, "SIGNAL", 1e6)
    with pytest.raises(QueryError, match="have too little information on") as error:
        drawn().regress("vote ~ pay + sex", "binomial")
    assert 'estimator="likelihood"' in str(error.value)
    assert "records would be enough" in str(error.value)


def test_levels_of_which_none_can_be_told_are_refused() -> None:
    with pytest.raises(QueryError, match=r"too few|have too little information|no stable solution") as error:
        drawn(40, 4).regress("vote ~ C(pay) + trade + age:C(pay)", "binomial")
    assert 'estimator="likelihood"' in str(error.value)


def test_a_likelihood_fit_stands_where_scores_do_not() -> None:
    fit = drawn(120, 3).regress("vote ~ pay + sex", "binomial", estimator="likelihood")
    assert fit.estimator == "likelihood"
    assert "normal prior" in fit.assumes
    assert np.isfinite(fit.theta).all()
    assert (np.diag(fit.cov) > 0).all()


def test_a_likelihood_fit_of_exact_columns_is_the_usual_one() -> None:
    usual = exact(1_200).regress("pay ~ age + sex")
    found = exact(1_200).regress("pay ~ age + sex", estimator="likelihood")
    np.testing.assert_allclose(found.theta, usual.theta, rtol=0.02, atol=0.01)
    np.testing.assert_allclose(np.diag(found.cov), np.diag(usual.cov), rtol=0.6)


def test_general_columns_are_fitted_by_likelihood() -> None:
    truth = exact(1_200).regress("pay ~ age + sex")
    for release in (general(), grouped()):
        found = release.regress("pay ~ age + sex")
        assert found.estimator == "likelihood"
        assert "at random" in found.assumes
        errors = np.sqrt(np.diag(found.cov))
        assert (np.abs(found.theta[0] - truth.theta[0]) < FAR * errors).all()
        assert (errors[1:] < np.abs(truth.theta[0][1:]) / 2).all()
    with pytest.raises(QueryError, match="no unbiased scores"):
        general().regress("pay ~ age", estimator="scores")


def test_levels_that_cannot_be_told_are_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import noren.estimates.statistics.fitting as module

    monkeypatch.setattr(module, "SIGNAL", 7.0)  # one welder looks like as many less than once in a billion
    frame = people()
    rare = frame.with_columns(trade=pl.Series(one_welder(frame["trade"].to_list())))
    roles = dict.fromkeys(frame.columns, "plain") | {"trade": "sensitive"}
    require = [nr.models.FrequencyLDiversity(on="trade", l=2)]
    release = nr.anonymize(rare, nr.Policy(attributes=roles, require=require, dependence={"most": 1.0}))
    fit = release.regress("age ~ trade")
    assert any("because too rare" in note and "welder" in note for note in fit.notes)
    assert not any("welder" in title for title in fit.titles)


def one_welder(trades: list[str]) -> list[str]:
    """The same, with one welder only."""
    return ["welder", *("nurse" if trade == "welder" else trade for trade in trades[1:])]


@pytest.fixture(scope="module")
def fit() -> Regression:
    return drawn().regress("vote ~ pay*sex", "binomial")


def test_predictions_are_chances_with_intervals(fit: Regression) -> None:
    found = fit.predict([{"pay": 1, "sex": "F"}, {"pay": 6, "sex": "M"}])
    assert found.columns == ["pay", "sex", "mean", "std_error", "low", "high"]
    assert (found["low"] < found["mean"]).all()
    assert (found["mean"] < found["high"]).all()
    assert found["high"].max() < 1 < 1 + found["low"].min()
    assert found["mean"][1] > found["mean"][0]
    with pytest.raises(QueryError, match="no level 'X'"):
        fit.predict({"pay": 1, "sex": "X"})
    with pytest.raises(QueryError, match="needs a value"):
        fit.predict({"pay": 1})


def test_a_fit_shows_itself(fit: Regression, tmp_path: Path) -> None:
    text = str(fit)
    assert text.splitlines()[0] == "vote ~ pay*sex"
    assert all(title in text for title in ("(constant)", "pay:sex[M]", "std_error", "p_value"))
    assert repr(fit) == "<Regression of vote ~ pay*sex: binomial, 4 coefficients, 4,000 records, scores>"
    assert fit.frame.columns == ["term", "coef", "std_error", "z", "p_value", "low", "high"]
    assert fit.to_dict()["coefficients"][0]["term"] == "(constant)"
    assert fit.params["pay"] == fit.theta[0][1]
    fit.save_plot(tmp_path / "fit.svg")
    assert b"pay:sex[M]" in (tmp_path / "fit.svg").read_bytes()


@pytest.mark.parametrize(
    ("formula", "family", "match"),
    [
        ("pay ~ age", "gamma", "no family"),
        ("trade ~ age", "binomial", "a binomial response has two"),
        ("trade ~ age", "gaussian", "holds no numbers"),
        ("pay ~ wage", "gaussian", "no column 'wage'"),
    ],
)
def test_what_makes_no_model_is_refused(formula: str, family: str, match: str) -> None:
    with pytest.raises(QueryError, match=match):
        drawn().regress(formula, family)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- the names that statsmodels uses


def test_functions_and_reference_levels_on_exact_columns_are_least_squares() -> None:
    _, y, male = columns()
    age = people()["age"].to_numpy().astype(float)
    x = np.stack([np.ones(len(y)), age, age**2, np.log(age), 1 - male], axis=1)
    fit = exact().regress("pay ~ age + I(age**2) + np.log(age) + C(sex, Treatment('M'))")
    assert fit.terms == ["(constant)", "age", "I(age**2)", "np.log(age)", "sex[F]"]
    np.testing.assert_allclose(fit.theta[0], np.linalg.lstsq(x, y, rcond=None)[0], rtol=1e-6)


def test_the_response_may_be_a_function() -> None:
    x, y, _ = columns()
    fit = exact().regress("np.log1p(pay) ~ age + sex")
    np.testing.assert_allclose(fit.theta[0], np.linalg.lstsq(x, np.log1p(y), rcond=None)[0], rtol=1e-6)


def test_an_offset_has_the_coefficient_one() -> None:
    x, y, _ = columns()
    age = x[:, 1]
    fit = exact().regress("pay ~ sex + offset(np.log(age))", "poisson")
    mean = np.exp(x[:, [0, 2]] @ fit.theta[0] + np.log(age))
    np.testing.assert_allclose(x[:, [0, 2]].T @ (y - mean), 0, atol=1e-4)
    at = {"age": 40, "sex": "M"}
    assert fit.predict(at)["mean"][0] == pytest.approx(40 * np.exp(fit.theta[0].sum()))


def test_hidden_columns_of_a_function_give_its_coefficients() -> None:
    truth, found = (release.regress("age ~ pay + I(pay**2)") for release in (exact(), drawn()))
    assert (np.abs(found.theta - truth.theta)[0] < FAR * np.sqrt(np.diag(found.cov))).all()


def test_results_have_the_names_of_statsmodels() -> None:
    fit = exact().regress("pay ~ age + sex")
    rows = {row["term"]: row for row in fit.frame.iter_rows(named=True)}
    for name, row in rows.items():
        assert fit.params[name] == row["coef"]
        assert fit.bse[name] == row["std_error"]
        assert fit.tvalues[name] == row["z"]
        assert fit.pvalues[name] == row["p_value"]
        assert fit.conf_int()[name] == pytest.approx((row["low"], row["high"]))
    assert fit.nobs == fit.records
    assert fit.summary() == str(fit)
    assert fit.cov_params() is fit.cov


def test_contrasts_and_wald_tests_are_those_of_the_covariance() -> None:
    fit = exact().regress("pay ~ age + trade")
    weights = {"trade[nurse]": 1.0, "trade[cook]": -1.0}
    row = fit.t_test(weights).row(0, named=True)
    places = [fit.terms.index(name) for name in weights]
    variance = fit.cov[np.ix_(places, places)]
    assert row["estimate"] == pytest.approx(fit.params["trade[nurse]"] - fit.params["trade[cook]"])
    assert row["std_error"] == pytest.approx(np.sqrt([1, -1] @ variance @ [1, -1]))
    alone = fit.wald_test("age")
    assert (alone.df, alone.statistic) == (1, pytest.approx(fit.tvalues["age"] ** 2))
    assert alone.p_value == pytest.approx(fit.pvalues["age"])
    four = fit.wald_test("trade")
    assert four.df == 4
    assert fit.wald_test([f"trade[{name}]" for name in ("cook", "miner", "nurse", "welder")]).statistic == (
        pytest.approx(four.statistic)
    )
    with pytest.raises(QueryError, match="no term"):
        fit.wald_test("shoe")


@pytest.mark.parametrize(
    ("text", "weights", "number"),
    [
        ("trade[nurse] = trade[cook]", {"trade[nurse]": 1, "trade[cook]": -1}, 0),
        ("trade[T.nurse] - C(trade)[T.cook]", {"trade[nurse]": 1, "trade[cook]": -1}, 0),
        ("2*age + trade[cook] = 1.5", {"age": 2, "trade[cook]": 1}, 1.5),
        ("-age = Intercept", {"age": -1, "(constant)": -1}, 0),
        ("age=1e-2", {"age": 1}, 0.01),
    ],
)
def test_hypotheses_may_be_written_as_statsmodels_takes_them(
    text: str, weights: dict[str, float], number: float
) -> None:
    fit = exact().regress("pay ~ age + trade")
    row, plain = (fit.t_test(one).row(0, named=True) for one in (text, weights))
    assert row["estimate"] == pytest.approx(plain["estimate"] - number)
    assert row["std_error"] == pytest.approx(plain["std_error"])
    array = [weights.get(term, 0.0) for term in fit.terms]
    assert fit.t_test(array).row(0)[1:] == pytest.approx(plain_row := fit.t_test(weights).row(0)[1:])
    assert fit.t_test([array, array])["estimate"].to_list() == pytest.approx([plain_row[0]] * 2)
    found = fit.wald_test(text)
    assert (found.df, found.statistic) == (1, pytest.approx(row["z"] ** 2))


def test_several_hypotheses_are_tested_together() -> None:
    fit = exact().regress("pay ~ age + trade")
    every = fit.wald_test("trade")
    texts = [f"trade[{name}]" for name in ("cook", "miner", "nurse", "welder")]
    for same in ("C(trade)", ", ".join(f"{text} = 0" for text in texts), " = ".join([*texts, "0"]), np.eye(6)[2:]):
        assert fit.wald_test(same).statistic == pytest.approx(every.statistic)  # type: ignore[arg-type]
    assert fit.t_test("trade")["contrast"].to_list() == texts


@pytest.mark.parametrize("text", ["shoe = 0", "age =", "age trade[cook]", "age + = 1", "* age", "", "trade = 1"])
def test_what_is_no_hypothesis_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        exact().regress("pay ~ age + trade").t_test(text)


def test_weights_need_a_number_for_every_term() -> None:
    with pytest.raises(QueryError, match="6 terms"):
        exact().regress("pay ~ age + trade").t_test([1.0, 0.0])


def test_what_a_fit_lacks_is_answered_with_what_it_has() -> None:
    fit = exact().regress("pay ~ age")
    assert fit.get_margeff().equals(fit.marginal_effects())
    with pytest.raises(AttributeError, match=r"no 'rsquared'.*conf_int.*wald_test"):
        fit.rsquared  # noqa: B018


def test_names_may_be_quoted_as_in_patsy() -> None:
    plain, quoted = exact().regress("pay ~ age + trade"), exact().regress("pay ~ Q('age') + C(Q(\"trade\"))")
    assert quoted.params == pytest.approx(plain.params)


@pytest.mark.parametrize(("formula", "family"), [("vote ~ pay + sex", "binomial"), ("pay ~ age + sex", "poisson")])
def test_marginal_effects_are_differences_of_mean_predictions(formula: str, family: str) -> None:
    fit = exact().regress(formula, family)  # type: ignore[arg-type]
    found = {row["column"]: row for row in fit.marginal_effects().iter_rows(named=True)}
    frame, number = people(), formula.split()[2]
    there = {name: frame.with_columns(pl.lit(name).alias("sex")) for name in ("F", "M")}
    means = {name: fit.predict(each)["mean"].mean() for name, each in there.items()}
    assert found["sex"]["estimate"] == pytest.approx(means["M"] - means["F"])
    moved = [fit.predict(frame.with_columns(pl.col(number) + step))["mean"].mean() for step in (1e-3, -1e-3)]
    assert found[number]["estimate"] == pytest.approx((moved[0] - moved[1]) / 2e-3, rel=1e-4)
    assert 0 < found[number]["std_error"] < abs(found[number]["estimate"])


def test_marginal_effects_of_a_straight_line_are_its_coefficients() -> None:
    fit = drawn().regress("age ~ pay + trade")
    effects = fit.marginal_effects()
    np.testing.assert_allclose(effects["estimate"], fit.theta[0][1:], rtol=1e-6)
    np.testing.assert_allclose(effects["std_error"], np.sqrt(np.diag(fit.cov))[1:], rtol=1e-6)


def test_terms_of_which_sets_say_little_are_named() -> None:
    rng = np.random.default_rng(4)
    n = 100_000
    kind = rng.choice(8, n, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.06, 0.04])
    frame = pl.DataFrame({"y": rng.integers(0, 9, n), "kind": [f"k{k}" for k in kind]})
    require = [nr.models.FrequencyLDiversity(on="kind", l=5)]
    policy = nr.Policy(attributes={"y": "plain", "kind": "sensitive"}, require=require, dependence={"most": 1.0})
    fit = nr.anonymize(frame, policy).regress("y ~ kind")
    told = [note for note in fit.notes if note.startswith("Very imprecise terms")]
    assert told
    assert "kind[k7]" in told[0]
    assert not any(note.startswith("Nearly") for note in exact().regress("pay ~ trade").notes)


# ---------------------------------------------------------------------- ordered classes


def test_an_ordinal_fit_on_exact_columns_is_at_the_maximum_of_the_likelihood() -> None:
    x, _, _ = columns()
    pay = people()["pay"].to_numpy()
    classes = np.unique(pay)
    y, slopes = np.searchsorted(classes, pay), x[:, 1:]

    def loss(beta: np.ndarray) -> float:
        ends = np.concatenate([[-np.inf], beta[2:], [np.inf]])
        line = slopes @ beta[:2]
        upper, lower = (1 / (1 + np.exp(line - ends[place])) for place in (y + 1, y))
        return float(-np.log(upper - lower).sum())

    fit = exact().regress("pay ~ age + sex", "ordinal")
    found = np.array(list(fit.params.values()))
    assert fit.terms[:3] == ["age", "sex[M]", f"{classes[0]}|{classes[1]}"]
    steps = 1e-4 * np.eye(len(found))
    slope = [(loss(found + step) - loss(found - step)) / 2e-4 for step in steps]
    np.testing.assert_allclose(slope, 0, atol=0.05)


def test_an_ordinal_fit_of_hidden_columns_has_the_slopes_of_the_table() -> None:
    truth, found = (release.regress("pay ~ age + sex", "ordinal") for release in (exact(), drawn()))
    for term in ("age", "sex[M]"):
        assert abs(found.params[term] - truth.params[term]) < FAR * found.bse[term]
        assert found.bse[term] > 0.9 * truth.bse[term]
    shares = truth.predict({"age": 40, "sex": "M"})
    assert 0 < shares["mean"].sum() < 1
    assert len(shares) == len(truth.classes)


def test_two_ordered_classes_are_the_binomial() -> None:
    two, ordered = (exact().regress("vote ~ age + sex", family) for family in ("binomial", "ordinal"))  # type: ignore[arg-type]
    for term in ("age", "sex[M]"):
        assert ordered.params[term] == pytest.approx(two.params[term], abs=1e-6)
        assert ordered.bse[term] == pytest.approx(two.bse[term], rel=1e-6)


def test_generalised_values_have_no_ordinal_fit() -> None:
    with pytest.raises(QueryError, match="ordinal"):
        general().regress("vote ~ age", "ordinal")
