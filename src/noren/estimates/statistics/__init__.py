"""Statistics beyond counts from published cells: means, quantiles, correlations, models and tests.

Everything rests on `scores`: numbers of a cell whose expectation, given the true value, is a function of that value.
`records` multiplies them over columns, `moments` makes means of them, `corrected` estimating equations of a model on a
`grid` of values, `association` tests. Cells without a design have an assumption in the place of scores, with hard
`limits` beside, and models of them are fitted by `likelihood`. A release asks by names (`release/statistics.py`).
"""
