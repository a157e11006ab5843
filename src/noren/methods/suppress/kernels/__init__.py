"""The search for the cheapest suppression of terms, in compiled code.

- `linkage`: from terms to labels and beliefs.
- `options`: a group prepared: the term sets that each record may keep.
- `judge`: how far a choice is from its requirement, with one record at a time taken out.
- `best`: a good first choice, lower bounds, and branch and bound that proves the optimum.
- `tree`: the paper's own two searches, over single terms.
- `balance`: the best cover of a tree of cuts.
"""
