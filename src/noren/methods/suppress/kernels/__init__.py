"""Which terms a group gives up, at least cost, in compiled code. Callers import the part that they run.

- `options`: a group prepared: label classes, and the term sets that each record may keep.
- `weighed`: those term sets where pairs of a label and a term have weights.
- `term_sets`: term sets as rows of bits.
- `judge`: how far a choice is from its requirement, with one record at a time taken out.
- `plain`: under closeness, a proof alone, which most groups need nothing beside.
- `bound`: lower bounds on the cost, as if the records shared no label.
- `best`: good first choices, read off the bounds; exchange from there, and a best-first search that proves the optimum.
- `tree`: the paper's own two searches, over single terms.
"""
