"""Models of scikit-learn on releases."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError

pytest.importorskip("sklearn", reason="learning needs the extra learn")


def people(n: int = 3000, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age, job = rng.integers(20, 70, n), rng.integers(0, 4, n)
    rich = rng.random(n) < 1 / (1 + np.exp(-(age - 45) / 6 - (job - 1.5)))
    noise = rng.choice(list("uvw"), n)
    return pl.DataFrame(
        {"age": age, "job": [f"j{v}" for v in job], "noise": noise, "rich": np.where(rich, "yes", "no")}
    )


@pytest.fixture(scope="module")
def release() -> nr.Release:
    roles = {"age": "plain", "job": "sensitive", "noise": "plain", "rich": "sensitive"}
    asked = [nr.models.LocalPrivacy(on=["rich", "job"], epsilon=4.0)]
    policy = nr.Policy(attributes=roles, require=asked, dependence={"most": 1.0}, method="pram")
    return nr.anonymize(people(), policy)


def auc(truth: np.ndarray, score: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth == "yes", score))


def test_a_classifier_is_nearly_as_good_as_one_that_saw_the_truth(release):
    from sklearn.linear_model import LogisticRegression

    from noren.estimates import ReleaseClassifier

    fresh = people(4000, seed=9)
    model = ReleaseClassifier(m=3, seed=1).fit(release, "rich", ["age", "job"])
    column = list(model.classes_).index("yes")
    found = auc(fresh["rich"].to_numpy(), model.predict_proba(fresh)[:, column])
    train, test = (
        pl.concat([f.select("age"), f.select("job").to_dummies()], how="horizontal") for f in (people(), fresh)
    )
    best = LogisticRegression(max_iter=3000).fit(train.to_numpy(), people()["rich"].to_numpy())
    truth = auc(fresh["rich"].to_numpy(), best.predict_proba(test.to_numpy())[:, 1])
    assert found > truth - 0.03
    assert set(model.predict(fresh)) <= {"yes", "no"}


@pytest.mark.slow
def test_cross_validation_knows_features_from_noise_without_the_truth(release):
    from noren.estimates import ReleaseClassifier

    model = ReleaseClassifier(m=2, seed=1)
    telling = model.cross_validate(release, "rich", ["age", "job"], folds=2)
    nothing = model.cross_validate(release, "rich", ["noise"], folds=2)
    assert telling.gain > 0.03
    assert nothing.gain < 0.01
    assert telling.score < 0


def test_a_regressor(release):
    from noren.estimates import ReleaseRegressor

    model = ReleaseRegressor(m=2, seed=1).fit(release, "age", ["rich"])
    old, young = model.predict(pl.DataFrame({"rich": ["yes", "no"]}))
    assert 8 < old - young < 30
    with pytest.raises(QueryError, match="does not hold numbers"):
        ReleaseRegressor().fit(release, "job")


def test_bad_calls_are_said(release):
    from noren.estimates import ReleaseClassifier

    with pytest.raises(QueryError, match="not fitted"):
        ReleaseClassifier().predict(people())
    with pytest.raises(QueryError, match="give at least one feature"):
        ReleaseClassifier().fit(release, "rich", ["rich"])
    with pytest.raises(QueryError, match="lacks the column 'age'"):
        ReleaseClassifier(m=1, seed=1).fit(release, "rich", ["age"]).predict(people().select("job"))
    with pytest.raises(QueryError, match="no column"):
        ReleaseClassifier().fit(release, "wealth")
