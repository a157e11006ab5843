"""Estimates of counts from a release.

A question (`query`) names columns, groupings and conditions; each column becomes an `Axis`: its cells, the statement
that says what they mean, and the groups asked for. `tabulate` answers for any axes together. Exact and drawn columns
become a `Frame`, on which all `estimators` work and which has `intervals`; shuffled members a frame of their own. As
soon as a coarse column takes part, every axis is read as likelihood `rows`, put into atoms that the cells distinguish,
and the records into a `Grid`; `bounds` hold whatever is hidden.

Behind both stand the records as `tuples`, distinct and counted, over which every step of EM sums. EM starts from
independence and stops by held-out records (`fit`; frames of several columns: `held_out`). Results are an `Estimate` or
a `Count`, which draw themselves (`plots`).
"""
