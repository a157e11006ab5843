"""The command line: parse, call, render. Its public helpers serve other distributions with commands."""

from noren.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
