"""Quasi-sensitive terms (paper 001): generalise into groups, then leave out terms group by group.

- `method`: the options, and the two phases.
- `beliefs`: what terms reveal of a group, what a removal costs, and which columns link to which labels.
- `search`: the terms to leave out of one group, or of all of them.
- `groups`: the second phase; what becomes of groups beyond mending.
- `setting`: what all groups of a table share, and choices of options.
- `balance`: both losses chosen together, as a cover of a tree of cuts.
"""

from noren.methods.suppress.method import Balance, Suppress

__all__ = ["Balance", "Suppress"]
