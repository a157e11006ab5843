"""Quasi-sensitive terms (paper 001): generalise into groups, then suppress terms group by group.

- `method`: the options, and the two phases.
- `beliefs`: what terms reveal of a group, what a removal costs, and which columns link to which labels.
- `search`: the terms to suppress in one group, or in all of them.
- `groups`: the second phase; what becomes of groups beyond mending.
- `balance`: both losses chosen together, as a cover of a tree of cuts.
"""

from noren.methods.suppress.method import Balance, Suppress

__all__ = ["Balance", "Suppress"]
