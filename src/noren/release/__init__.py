"""What is published."""

from noren.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
