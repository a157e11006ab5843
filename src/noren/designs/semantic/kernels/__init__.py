"""Sets of values that are far apart, in compiled code. Callers import the part that their design runs.

- `draws`: sets from random words, on the circle, along a chain, or out of a list.
- `simple`: Algorithm 1 on a chain, with the probabilities that it gives to sets.
- `cliques`: Algorithm 1 and enumeration over any compatibility matrix.
- `chains`: sums over all feasible sets of a chain, and over listed sets.
"""
