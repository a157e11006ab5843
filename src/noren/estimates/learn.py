"""Estimators of scikit-learn on releases: fitted on several imputed tables, averaged, and evaluated on published cells.

A held-out record is judged by what was published of it: a model that foretells values v with probabilities p(v) gives
its published cell R the probability sum of p(v) P(R | v), whose logarithm is the score. For that the features of
held-out records are drawn without looking at their target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError, QueryError
from noren.estimates.imputation import impute

if TYPE_CHECKING:
    import polars as pl

    from noren.estimates.imputation import Cellwise

TINY = 1e-12
INSTALL = "pip install 'noren[learn]'"
MODEL = "mixture"
"""What tables are drawn from: its prior makes single tables less honest and better to learn from."""


@dataclass(frozen=True)
class CrossValidation:
    """How well a model predicts the published cells of held-out records."""

    score: float
    """Mean log-probability of a held-out record's published cell."""
    margin: float
    """The same for a model that knows the shares of the target alone."""
    folds: int

    @property
    def gain(self) -> float:
        """Return the gain from the features, in nats per record."""
        return self.score - self.margin


class _Learner(ABC):
    """The common base of classifiers and regressors."""

    def __init__(self, estimator: Any = None, *, m: int = 5, seed: int | None = None) -> None:
        self.estimator = estimator
        self.m = m
        self.seed = seed

    def fit(self, release: Cellwise, target: str, features: Sequence[str] | None = None) -> Any:
        """Fit a copy of the estimator to each of m imputed tables."""
        names = self._named(release, target, features)
        return self._fit(impute(release, self.m, seed=self.seed, model=MODEL).tables, target, names)

    def _named(self, release: Cellwise, target: str, features: Sequence[str] | None) -> tuple[str, ...]:
        release.column(target)
        names = tuple(features) if features is not None else tuple(name for name in release.columns if name != target)
        for name in names:
            if release.column(name).terms is not None:
                raise QueryError(f"column {name!r} holds sets of terms.", hint="Give features without this column.")
        if target in names or not names:
            raise QueryError("give at least one feature, and not the target itself.", hint="Name other features.")
        return names

    def _fit(self, tables: Sequence[pl.DataFrame], target: str, features: tuple[str, ...]) -> Any:
        self.target_, self.features_ = target, features
        self.models_ = []
        for table in tables:
            known = table.filter(table[target].is_not_null())
            model = self._pipeline(known, features)
            self.models_.append(model.fit(_plain(known, features), self._answers(known[target])))
        return self

    def _answers(self, column: pl.Series) -> Any:
        return column.to_numpy()

    @abstractmethod
    def _default(self) -> Any:
        """Return the default estimator."""

    def _pipeline(self, table: pl.DataFrame, features: Sequence[str]) -> Any:
        """Return the estimator with an encoding of the features: numbers unchanged, one column for each category."""
        try:
            from sklearn.base import clone
            from sklearn.compose import ColumnTransformer
            from sklearn.impute import SimpleImputer
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import OneHotEncoder, StandardScaler
        except ModuleNotFoundError:
            raise NorenError("learning needs a package that is not installed.", hint=f"{INSTALL}.") from None
        numbers = [name for name in features if table[name].dtype.is_numeric()]
        others = [name for name in features if name not in numbers]
        encode = ColumnTransformer(
            [
                ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
                ("categories", OneHotEncoder(handle_unknown="ignore"), others),
            ]
        )
        return make_pipeline(encode, clone(self.estimator if self.estimator is not None else self._default()))

    def _rows(self, table: Any) -> Any:
        if not hasattr(self, "models_"):
            raise QueryError("the model is not fitted.", hint="Call fit(release, target) first.")
        return _plain(_frame(table), self.features_)


class ReleaseClassifier(_Learner):
    """A classifier fitted on a release; probabilities are means over imputed tables.

    >>> import noren as nr
    >>> import polars as pl
    >>> people = pl.DataFrame({"town": ["Ulm", "Bonn"] * 40, "job": ["cook", "clerk", "miner", "clerk"] * 20})
    >>> columns, diverse = {"town": "plain", "job": "sensitive"}, nr.models.FrequencyLDiversity(on="job", l=2)
    >>> policy = nr.Policy(attributes=columns, require=[diverse], dependence={"most": 1.0})
    >>> model = nr.estimates.ReleaseClassifier(m=2, seed=1).fit(nr.anonymize(people, policy), "job")
    >>> [str(one) for one in model.predict(pl.DataFrame({"town": ["Bonn"]}))]
    ['clerk']
    """

    def _default(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)

    def _answers(self, column: pl.Series) -> Any:
        return column.cast(str).to_numpy()

    def _fit(self, tables: Sequence[pl.DataFrame], target: str, features: tuple[str, ...]) -> ReleaseClassifier:
        super()._fit(tables, target, features)
        self.classes_ = np.unique(np.concatenate([model.classes_ for model in self.models_]))
        return self

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Return the probability of every class in `classes_`, for every row."""
        rows = self._rows(table)
        out = np.zeros((len(rows), len(self.classes_)))
        for model in self.models_:
            out[:, np.searchsorted(self.classes_, model.classes_)] += model.predict_proba(rows) / len(self.models_)
        return out

    def predict(self, table: Any) -> NDArray:
        """Return the likeliest class of every row."""
        likeliest = self.predict_proba(table).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def cross_validate(
        self, release: Cellwise, target: str, features: Sequence[str] | None = None, *, folds: int = 4
    ) -> CrossValidation:
        """Estimate from the release how well the model predicts held-out records."""
        names = self._named(release, target, features)
        statement = release.column(target)
        cells = release.cells([target])[target]
        found = statement.likelihood(cells)
        if statement.column.is_open or found is None:
            raise QueryError(f"column {target!r} has no values to predict.", hint="Name another target.")
        if not 2 <= folds <= release.records:
            raise QueryError(f"folds={folds} is not possible here.", hint="For example 4.")
        every = found.dense(statement.d)
        part = np.random.default_rng(self.seed).permutation(release.records) % folds
        totals = np.zeros(2)
        for fold in range(folds):
            rows = np.flatnonzero(part == fold)
            tables = impute(release, self.m, seed=self.seed, without={target: rows}, model=MODEL).tables
            learned = type(self)(self.estimator, m=self.m, seed=self.seed)
            learned._fit([table[np.flatnonzero(part != fold)] for table in tables], target, names)
            chance = np.zeros((len(rows), statement.d))
            places = [statement.domain.index[str(one)] for one in learned.classes_]
            for table in tables:
                chance[:, places] += learned.predict_proba(table[rows]) / len(tables)
            seen = np.concatenate([learned._answers(table[target].drop_nulls()) for table in tables])
            values, counts = np.unique(seen, return_counts=True)
            shares = np.zeros(statement.d)
            shares[[statement.domain.index[str(one)] for one in values]] = counts / counts.sum()
            totals += [_score(every[rows], chance), _score(every[rows], np.repeat(shares[None], len(rows), axis=0))]
        score, margin = (totals / release.records).tolist()
        return CrossValidation(score, margin, folds)


class ReleaseRegressor(_Learner):
    """A regression fitted on a release; predictions are means over imputed tables."""

    def _default(self) -> Any:
        from sklearn.linear_model import Ridge

        return Ridge()

    def _named(self, release: Cellwise, target: str, features: Sequence[str] | None) -> tuple[str, ...]:
        if release.column(target).column.is_open or release.column(target).domain.kind not in ("integer", "number"):
            raise QueryError(f"column {target!r} does not hold numbers.", hint="Use ReleaseClassifier.")
        return super()._named(release, target, features)

    def predict(self, table: Any) -> NDArray[np.float64]:
        """Return the expected number of every row."""
        rows = self._rows(table)
        return np.asarray(np.mean([model.predict(rows) for model in self.models_], axis=0))


def _score(likelihood: NDArray[np.float64], chance: NDArray[np.float64]) -> float:
    return float(np.log(np.maximum((likelihood * chance).sum(axis=1), TINY)).sum())


def _frame(table: Any) -> pl.DataFrame:
    import polars as pl

    return table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)


def _plain(table: pl.DataFrame, features: Sequence[str]) -> Any:
    """Return the features as pandas columns that scikit-learn selects by name; categories are texts."""
    import polars as pl

    absent = [name for name in features if name not in table.columns]
    if absent:
        raise QueryError(f"the table lacks the column {absent[0]!r}.", hint="Give a table with all the features.")
    texts = [name for name in features if not table[name].dtype.is_numeric()]
    return table.select(features).with_columns(pl.col(texts).cast(pl.String).fill_null("(missing)"))
