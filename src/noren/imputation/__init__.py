"""Plausible tables: complete records drawn from what a release leaves possible, and Rubin's rules to pool them."""

from noren.lazy import lazy

_HOMES = {
    "Imputations": "noren.imputation.tables",
    "Pooled": "noren.imputation.pooling",
    "pool": "noren.imputation.pooling",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
