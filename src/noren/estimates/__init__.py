"""Answers for recipients: counts, means and models, imputed tables, learners, beliefs. Loaded when first used."""

from noren.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
