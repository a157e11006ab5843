"""The main functions: draft, anonymize, verify, compare, measure; loaded when first used."""

from noren.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
