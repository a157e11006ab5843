"""Learning from a release with scikit-learn (extra `learn`): any estimator, fitted on plausible tables."""

from noren.lazy import lazy

_HOMES = {
    "CrossValidation": "noren.learn.models",
    "ReleaseClassifier": "noren.learn.models",
    "ReleaseRegressor": "noren.learn.models",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
