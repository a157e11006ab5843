"""The beliefs about one person's secret of somebody who reads everything that is published about the person.

One computation for the requirement `belief`, for `audit bayes`, for `compare` and for the report. It needs the release
alone: how columns go together is learned from the cells of *other* people (cross-fitted), as any recipient could.

1. Evidence (`pairs`): every published column as sparse likelihoods P(cell | value), whatever its form.
2. `pairs`: how the secret goes together with each other column, and with two of them at once, by expectation
   maximisation on the cells of other people, stopped by held-out likelihood. Two are read at once where they tell most,
   or tell together what neither does (a parity); there the likeliest rule by which one of the three columns follows
   from the others is tried as well. Dependence of four and more columns is not looked for.
3. Powers (`posterior`): how far each of them is to be trusted beside the others, so that two columns that say the
   same are not counted twice: the weights under which people's own cells are foreseen best.
4. `posterior`: Bayes' rule for every record; where only a class of rows is known to be the person's, its mean.
"""
