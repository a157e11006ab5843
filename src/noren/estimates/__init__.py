"""What the recipient learns: counts, means and models, imputed tables, learners, beliefs. Loaded when first used."""

from noren.lazy import lazy

_HOMES = {
    "Belief": "noren.estimates.belief.posterior",
    "believed": "noren.estimates.belief.posterior",
    "Count": "noren.estimates.counts.estimate",
    "Estimate": "noren.estimates.counts.estimate",
    "Members": "noren.estimates.counts.query",
    "BLUES": "noren.estimates.counts.plots",
    "INK": "noren.estimates.counts.plots",
    "PALETTE": "noren.estimates.counts.plots",
    "RULE": "noren.estimates.counts.plots",
    "SOFT": "noren.estimates.counts.plots",
    "rendered": "noren.estimates.counts.plots",
    "BOUNDED_ESTIMATORS": "noren.estimates.counts.tabulate",
    "ESTIMATORS": "noren.estimates.counts.tabulate",
    "SEMANTIC_ESTIMATORS": "noren.estimates.counts.tabulate",
    "Pooled": "noren.estimates.imputation.tables",
    "pool": "noren.estimates.imputation.tables",
    "Imputations": "noren.estimates.imputation.tables",
    "CrossValidation": "noren.estimates.learn",
    "ReleaseClassifier": "noren.estimates.learn",
    "ReleaseRegressor": "noren.estimates.learn",
    "Regression": "noren.estimates.statistics.results",
    "Statistic": "noren.estimates.statistics.results",
    "TestResult": "noren.estimates.statistics.results",
    "numbers_of": "noren.estimates.statistics.variables",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
