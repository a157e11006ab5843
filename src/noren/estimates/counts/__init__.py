"""What a recipient learns from a release.

A question (`query`) names columns, groupings and conditions; each column becomes an `Axis`: its cells, the statement
that says what they mean, and the groups asked for. `tabulate` answers for any axes together. Exact and drawn columns
become a `Frame` of distinct set tuples (`tuples`), on which all `estimators` work and which has `intervals`; shuffled
members a frame of their own (`shuffled`). As soon as a coarse column takes part, every axis is read as likelihood
`rows`, put into atoms that the cells tell apart, and the records into a `Grid`; `bounds` hold whatever is hidden.

EM is one (`fit`): it starts from independence and stops by held-out records, whether a
frame or a grid takes its steps. Results are an `Estimate` or a `Count`, which draw themselves (`plots`).
"""
