"""Noren: publish tables about people, and analyse them.

The holder's verbs: `Policy.load`, `anonymize`, `verify`. The recipient's: `open_release`, then `release.estimate`,
`release.count`, `release.mean`, `release.regress`, `release.test`. The rest lives in named rooms:
`noren.models.KAnonymity`, `noren.methods.Mondrian`, `noren.metrics.ncp_loss`. Names are loaded when first used, so that
`import noren` costs next to nothing.
"""

from noren.lazy import lazy

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
