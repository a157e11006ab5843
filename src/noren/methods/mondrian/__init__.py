"""Mondrian: the table is cut into classes as long as every class meets every requirement.

- `method`: the options, and why a table cannot be cut at all.
- `space`: quasi-identifiers in the order in which they are cut, and what a class would lose.
- `terms`: requirements on quasi-sensitive terms, as rules on profiles.
- `classes`: cut, refine, cut again, drop; the work is in `kernels.mondrian`.
- `exchange`: the same with cuts that leave records behind, under closeness.
"""

from noren.methods.mondrian.method import Mondrian

__all__ = ["Mondrian"]
