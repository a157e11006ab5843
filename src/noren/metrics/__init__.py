"""Metrics of loss. Public functions are loaded when first used.

A name that ends in `_loss` is better when small, one that ends in `_score` when large.
"""

from noren.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
