"""Full-domain generalisation: one level per quasi-identifier, the same for all records, and the best there is.

- `method`: the options.
- `losses`: what a level vector costs.
- `lattice`: all level vectors, the classes of each, and which of them hold.
- `search`: the best vector, with every other one tested or ruled out.
- `reach`: what even the most general release misses.
"""

from noren.methods.incognito.method import Incognito

__all__ = ["Incognito"]
