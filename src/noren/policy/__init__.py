"""The holder's policy: attributes, requirements, method; TOML in and out."""

from noren.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
