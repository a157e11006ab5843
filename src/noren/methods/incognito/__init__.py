"""Full-domain generalisation: the best single level for every quasi-identifier.

- `method`: the options.
- `lattice`: all level vectors: what each costs, its classes, and which of them hold.
- `search`: the best vector, with every other one tested or ruled out.
"""

from noren.methods.incognito.method import Incognito

__all__ = ["Incognito"]
