"""Means, quantiles, correlations, models and tests of a release, by column names.

Columns are gathered, computed on, and laid out by group.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, cast

import numpy as np

from noren.errors import QueryError

if TYPE_CHECKING:
    from noren.estimates.statistics.association import TestKind
    from noren.estimates.statistics.moments import Expected, Found, Sample
    from noren.estimates.statistics.records import Variable
    from noren.estimates.statistics.regression import Regression
    from noren.estimates.statistics.results import Statistic, TestResult
    from noren.release.gathered import Gathered, Values
    from noren.release.release import Release

Family = Literal["gaussian", "binomial", "poisson", "multinomial", "ordinal"]
Names = str | Sequence[str]
RESULT = ("std_error", "low", "high", "records")
Compute = Callable[["Sample", Sequence["Variable"]], Sequence["Found"]]
Where = Mapping[str, Any] | None
Verb = TypeVar("Verb", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """The common options of measures besides columns, groups and conditions; `answer_measure` has the defaults."""

    level: float
    population: bool
    values: Values | None
    weighted: bool | None


def spell_out(verb: Verb) -> Verb:
    """Show the options of a measure in its signature and help."""
    own, options = inspect.signature(verb), inspect.signature(answer_measure).parameters.values()
    named = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    every = [*named, *(one for one in options if one.kind is inspect.Parameter.KEYWORD_ONLY)]
    verb.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]
    return verb


def answer_contrast(
    release: object, measure: str, of: str, by: Names, against: Names | None, where: Where, **options: Unpack[Options]
) -> Statistic:
    """Answer a question that compares every group's mean with that of one group."""
    from noren.estimates.statistics.moments import contrasts

    if not by:
        raise QueryError(f"{measure} needs groups.", hint=f'For example {measure}({of!r}, by="sex").')

    def compute(sample: Sample, variables: Sequence[Variable]) -> Sequence[Found]:
        named = [against] if isinstance(against, str) else list(against or [])
        place = 0
        if named:
            wanted = tuple(map(str, named))
            groups = [tuple(v.labels[g] for v, g in zip(sample.by, group, strict=True)) for group in sample.groups]
            if wanted not in groups:
                shown = ", ".join(" / ".join(group) for group in groups[:12])
                raise QueryError(f"there is no group {' / '.join(wanted)!r}.", hint=f"Groups: {shown}.")
            place = groups.index(wanted)
        return contrasts(sample, variables[0], place, ratio=measure == "ratio")

    return answer_measure(release, measure, (of,), by, where, compute, **options)


def answer_standardized(
    release: object,
    of: str,
    by: Names,
    over: str,
    standard: Mapping[Any, float] | None,
    where: Where,
    **options: Unpack[Options],
) -> Statistic:
    """Answer a question for directly standardised means."""
    from noren.estimates.statistics import moments
    from noren.schema.hierarchy import value_text

    def compute(sample: Sample, variables: Sequence[Variable]) -> Sequence[Found]:
        if sample.records.is_coarse:
            raise QueryError(
                "generalised values and groups have no unbiased scores to standardise by.",
                hint="Ask for `mean` in the groups of both columns, and weigh its numbers.",
            )
        column, weights = variables[1], None
        if standard is not None:
            given = {value_text(label): float(weight) for label, weight in standard.items()}
            if unknown := [label for label in given if label not in column.labels]:
                shown = ", ".join(column.labels[:12])
                raise QueryError(f"{over!r} has no label {unknown[0]!r}.", hint=f"It has {shown}.")
            if min(given.values()) < 0:
                raise QueryError("a standard has a weight below 0.", hint="Use shares or numbers of people.")
            weights = [given.get(label, 0.0) for label in column.labels]
        return moments.standardized(sample, variables[0], column, weights)

    found = answer_measure(release, "mean", (of, over), by, where, compute, numbers=(of,), **options)
    return replace(found, of=(of,), notes=(*found.notes, f"Standardised over {over}."))


def answer_measure(
    release: object,
    measure: str,
    of: Sequence[str],
    by: Names,
    where: Where,
    compute: Compute,
    numbers: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    population: bool = False,
    values: Values | None = None,
    weighted: bool | None = None,
) -> Statistic:
    """Answer a question for one number of every group; `numbers` are the columns that must hold numbers, by default
    all."""
    from noren.estimates.statistics.moments import Sample
    from noren.estimates.statistics.results import Statistic
    from noren.release.gathered import gather

    opened, names = cast("Release", release), (by,) if isinstance(by, str) else tuple(by)
    demand_level(level)
    found = gather(opened, [*of, *names], where or {}, values, weighted)
    asked = [found.variables[name] for name in of]
    for variable, name in zip(asked, of, strict=True):
        if variable.numbers is None and name in (numbers or of):
            _explain(opened, name, variable)
    hard = found.records.is_coarse
    if hard and population:
        raise QueryError(
            "there is no interval for the population here, because cells were not coarsened at random by a design.",
            hint="Ask without population; low and high are then hard bounds for the original table.",
        )
    split = [found.variables[name] for name in names]
    estimated = partial(_expected_table, opened, found, where or {}, weighted)
    expect = partial(estimated, (*names, *of))
    sample = Sample(found.records, found.base, asked, split, level, population, found.margins, expect)
    measured = [found.variables[name] for name in numbers or of]
    rows = _agree_with_counts(sample, compute(sample, asked), measured, estimated, is_mean=measure == "mean")
    notes = found.notes(numbers or of)
    if found.weights is not None:
        rows = [replace(row, records=row.records * found.weights.unit) for row in rows]
        notes = (*notes, f"Records are people of the population: the sum of {found.weights.name!r}.")
    if names and any(not np.isfinite(row.value) for row in rows):
        notes = (*notes, "Groups without a number are too small to estimate.")
    return Statistic(
        measure=measure,
        of=tuple(of),
        by=(titles := tuple(_title(name, measure) for name in names)),
        frame=_frame(sample, titles, measure, rows),
        level=1.0 if hard else level,
        population=population,
        records=found.rows,
        assumes=found.assumes_table(sample.expected.assumes) if hard else found.assumes(sampled=population),
        where=dict(where or {}),
        notes=notes,
        design_effect=None if found.weights is None else found.weights.design_effect,
    )


def _agree_with_counts(
    sample: Sample,
    rows: Sequence[Found],
    measured: Sequence[Variable],
    estimated: Callable[[Sequence[str]], Expected],
    *,
    is_mean: bool,
) -> Sequence[Found]:
    """Return the numbers with the group sizes that `estimate` gives, and the mean of one hidden column that follows
    from its counts. Intervals remain around unbiased numbers."""
    from noren.estimates.statistics.moments import times

    hidden = [not score.axis.is_exact for score in sample.records.scores]
    complete = all((variable.known > 0).all() for variable in measured)
    asked = [*sample.by, *([] if complete else measured)]
    coarse = sample.records.is_coarse
    if sample.base or any(coarse or hidden[variable.axis] for variable in asked):
        table = estimated([variable.name for variable in asked])
        there = times(*((one.axis, one.known) for one in measured)) if not complete else {}
        sizes = table.totals([times(sample.within(group), there) for group in sample.groups]).value
        rows = [replace(row, records=float(size)) for row, size in zip(rows, sizes, strict=True)]
    of, row = measured[0], rows[0]
    is_single = len(hidden) == 1 and hidden[0] and not sample.by and not sample.base
    if is_mean and is_single and not coarse and np.isfinite(row.value):
        inside = {of.axis: of.known}
        size, total = estimated([of.name]).totals([inside, times(inside, (of.axis, of.amounts))]).value
        value = float(total / size)
        rows = [replace(row, value=value, low=min(row.low, value), high=max(row.high, value))]
    return rows


def _expected_table(
    release: Release, found: Gathered, where: Mapping[str, Any], weighted: bool | None, texts: Sequence[str]
) -> Expected:
    """Return the table that `estimate` gives of these columns, so that derived numbers agree with it."""
    from noren.estimates.statistics.moments import Expected
    from noren.release.answers import answer

    together: dict[int, list[str]] = {}
    for text in dict.fromkeys(texts):
        together.setdefault(found.variables[text].axis, []).append(text)
    asked, first = [], []
    for place, own in together.items():
        variable, axis = found.variables[own[0]], found.axes[place]
        if len(own) > 1 or variable.is_share:
            asked.append(axis.name)
            first.append(np.arange(axis.d))
            continue
        asked.append(own[0])
        admitted = found.base.get(place, np.ones(axis.d)) > 0
        one = np.zeros(len(variable.labels), np.int64)
        for counted in (~admitted, admitted):  # a value that the conditions admit, where a group has one
            one[variable.groups[counted]] = np.flatnonzero(counted)
        first.append(one)
    table = answer(release, asked, where, None, 0.95, False, None, weighted)
    unit = 1.0 if found.weights is None else found.weights.unit
    counts = table.counts.reshape([len(one) for one in first]) / unit
    return Expected(counts, list(together), first, table.assumes)


def demand_level(level: float) -> None:
    """Refuse an invalid confidence level."""
    if not 0 < level < 1:
        raise QueryError(f"level={level} is not a probability.", hint="For example 0.95.")


def _explain(release: Release, name: str, variable: Variable) -> None:
    """Explain why a column has no numbers."""
    from noren.estimates.statistics.records import numbers_of

    column = release.by_name.get(name)
    if column is not None and column.lists_values:
        numbers_of(name, column.domain)
    assert variable.amounts is not None


def _title(name: str, measure: str) -> str:
    return name + "_" if name in (measure, *RESULT) else name


def _frame(sample: Sample, titles: Sequence[str], measure: str, rows: Sequence[Found]) -> Any:
    """Return one row per group: its labels, the number and its errors; unknown numbers are null."""
    import polars as pl

    from noren.estimates.statistics.moments import labels_of

    labels = list(labels_of(sample))
    columns = {
        title: pl.Series([group[place] for group in labels], dtype=pl.String) for place, title in enumerate(titles)
    }
    fields = {measure: "value", "std_error": "std_error", "low": "low", "high": "high", "records": "records"}
    for title, name in fields.items():
        numbers = [getattr(row, name) for row in rows]
        columns[title] = pl.Series(
            [None if x is None else float(x) for x in numbers], dtype=pl.Float64, strict=False
        ).fill_nan(None)
    return pl.DataFrame(columns)


class Statistics:
    """The questions that a release answers besides counts."""

    @spell_out
    def mean(self, of: str, by: Names = (), where: Where = None, **options: Unpack[Options]) -> Statistic:
        """Estimate the mean of a column of numbers, for every group of other columns, with standard errors and
        intervals.

        `of` names a column of numbers, or "column=value" for the share of one value. `by` and `where` are as in
        `estimate`. An interval of a binned column stands for its middle unless `values` says otherwise:
        `values={"income": {"[0, 10)": 4.2, ...}}`; missing cells take no part. Intervals speak of the original table,
        or with `population=True` of the population it was sampled from. Where generalised values or groups take part,
        the number follows from the table that `estimate` gives, under the assumption that is named; low and high are
        then hard bounds, and std_error is null. Where the release has survey weights, every record stands for as many
        people as they say, unless `weighted=False`.

        >>> import noren as nr
        >>> import polars as pl
        >>> people = pl.DataFrame({"town": ["Ulm", "Bonn"] * 60, "visits": [0, 1, 2, 3, 4, 5] * 20})
        >>> columns = {"town": "plain", "visits": "sensitive"}
        >>> diverse = nr.models.FrequencyLDiversity(on="visits", l=2)
        >>> policy = nr.Policy(attributes=columns, require=[diverse], dependence={"most": 1.0})
        >>> release = nr.anonymize(people, policy)
        >>> release.mean("visits", by="town").frame.columns
        ['town', 'mean', 'std_error', 'low', 'high', 'records']
        """
        from noren.estimates.statistics.moments import means

        return answer_measure(self, "mean", (of,), by, where, lambda s, v: means(s, *v), **options)

    @spell_out
    def variance(self, of: str, by: Names = (), where: Where = None, **options: Unpack[Options]) -> Statistic:
        """Estimate the variance (with n - 1) of a column of numbers, for every group of other columns. Otherwise as
        `mean`."""
        from noren.estimates.statistics.moments import variances

        return answer_measure(self, "variance", (of,), by, where, lambda s, v: variances(s, *v), **options)

    @spell_out
    def quantile(
        self, of: str, q: float = 0.5, by: Names = (), where: Where = None, **options: Unpack[Options]
    ) -> Statistic:
        """Estimate the value below which a share q of the records is, by default the median. Otherwise as `mean`.

        Of single values it is one of them; inside a bin records are taken as spread evenly.
        """
        from noren.estimates.statistics.moments import quantiles

        return answer_measure(self, "quantile", (of,), by, where, lambda s, v: quantiles(s, v[0], q), **options)

    @spell_out
    def correlation(
        self, one: str, two: str, by: Names = (), where: Where = None, **options: Unpack[Options]
    ) -> Statistic:
        """Estimate Pearson's correlation of two columns of numbers, for every group of other columns. Otherwise as
        `mean`."""
        from noren.estimates.statistics.moments import correlations

        return answer_measure(self, "correlation", (one, two), by, where, lambda s, v: correlations(s, *v), **options)

    @spell_out
    def difference(
        self, of: str, by: Names, against: Names | None = None, where: Where = None, **options: Unpack[Options]
    ) -> Statistic:
        """Estimate the difference between every group's mean and that of the group `against` (by default the first).
        Otherwise as `mean`."""
        return answer_contrast(self, "difference", of, by, against, where, **options)

    @spell_out
    def ratio(
        self, of: str, by: Names, against: Names | None = None, where: Where = None, **options: Unpack[Options]
    ) -> Statistic:
        """Estimate the ratio of every group's mean and that of the group `against` (by default the first). Otherwise as
        `mean`.

        The interval is Fieller's: infinite where the mean below may be zero.
        """
        return answer_contrast(self, "ratio", of, by, against, where, **options)

    @spell_out
    def standardize(
        self,
        of: str,
        by: Names,
        over: str,
        standard: Mapping[Any, float] | None = None,
        where: Where = None,
        **options: Unpack[Options],
    ) -> Statistic:
        """Estimate directly standardised means: every group's mean if all groups had the same distribution of a column.

        `over` is the column that groups differ in, such as "age/10"; `standard` says what each of its labels weighs
        (`{"[20, 30)": 0.4, ...}`), and is the distribution of all records unless given. As `mean` otherwise: with
        "column=value" for `of` the numbers are standardised rates.
        """
        return answer_standardized(self, of, by, over, standard, where, **options)

    def regress(
        self,
        formula: str,
        family: Family = "gaussian",
        where: Where = None,
        *,
        estimator: Literal["scores", "likelihood"] | None = None,
        level: float = 0.95,
        values: Values | None = None,
        weighted: bool | None = None,
    ) -> Regression:
        """Fit a regression to any mix of exact, drawn and generalised columns.

        formula: "income ~ age + I(age**2) + C(education, Treatment('low')) + age:sex + offset(np.log(hours))"; names
        with other signs between back quotes. Columns of names become levels, compared with their first. family:
        gaussian, binomial (a column of two values, or `` `disease=Flu` ``), poisson, multinomial, ordinal (proportional
        odds). Errors are those of a sample from a population.

        Drawn columns are corrected for by unbiased scores (`scores`); where those say too little the fit is refused
        with what is missing, and `estimator="likelihood"` offers a penalised fit, which generalised columns always
        take.

        >>> import noren as nr
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [20, 30, 40, 50, 60] * 400, "visits": [0, 0, 1, 1, 2, 1, 2, 2, 3, 3] * 200})
        >>> columns = {"age": "plain", "visits": "sensitive"}
        >>> diverse = nr.models.FrequencyLDiversity(on="visits", l=2)
        >>> policy = nr.Policy(attributes=columns, require=[diverse], dependence={"most": 1.0})
        >>> release = nr.anonymize(people, policy)
        >>> fit = release.regress("visits ~ age")
        >>> fit
        <Regression of visits ~ age: gaussian, 2 coefficients, 2,000 records, scores>
        >>> fit.frame.columns
        ['term', 'coef', 'std_error', 'z', 'p_value', 'low', 'high']
        """
        from noren.estimates.statistics.fitting import fit
        from noren.estimates.statistics.formula import Formula
        from noren.release.gathered import gather

        demand_level(level)
        parsed = Formula.parse(formula)
        found = gather(cast("Release", self), parsed.names, where or {}, values, weighted)
        return fit(
            found.records,
            found.base,
            found.variables,
            parsed,
            family,
            estimator,
            level=level,
            assumes=found.assumes(sampled=True),
            notes=found.notes(parsed.numbers),
            margins=found.margins,
            several=found.several.told,
        )

    def test(
        self,
        one: str,
        two: str,
        kind: TestKind | None = None,
        where: Where = None,
        *,
        within: str | None = None,
        permutations: int | None = None,
        values: Values | None = None,
        seed: int = 0,
        weighted: bool | None = None,
    ) -> TestResult:
        """Test whether two columns are related; the test keeps its size in small releases.

        kind: "independence" (both as names), "difference" (numbers of the first between groups of the second) or
        "trend" (numbers of both); left out, it follows from whether the columns hold numbers. The p-value comes from
        pairing the published cells of one column with the other's at random, which is exact under independence; for
        very many records from chi-square. `permutations` fixes how many pairings. `within` names a column, hidden or
        not, in whose groups the two are to be independent (Cochran, Mantel and Haenszel); its reference is chi-square.

        >>> import noren as nr
        >>> import polars as pl
        >>> people = pl.DataFrame({"town": ["Ulm", "Bonn"] * 300, "job": ["cook", "clerk", "miner", "nurse"] * 150})
        >>> columns, diverse = {"town": "plain", "job": "sensitive"}, nr.models.FrequencyLDiversity(on="job", l=2)
        >>> policy = nr.Policy(attributes=columns, require=[diverse], dependence={"most": 1.0})
        >>> release = nr.anonymize(people, policy)
        >>> release.test("job", "town").p_value < 0.01
        True
        """
        from noren.estimates.statistics.association import KINDS, related
        from noren.estimates.statistics.results import TestResult
        from noren.release.gathered import gather

        if kind is not None and kind not in KINDS:
            raise QueryError(f"there is no test of kind {kind!r}.", hint=f"Tests: {', '.join(KINDS)}.")
        if permutations is not None and permutations < 99:
            raise QueryError(f"{permutations} permutations are too few for a p-value.", hint="Use 99 or more.")
        asked = [one, two, *([] if within is None else [within])]
        found = gather(cast("Release", self), asked, where or {}, values, weighted)
        if found.base:
            raise QueryError(
                "a condition on a hidden column does not select known records, so they cannot be paired.",
                hint="Use conditions on columns that are published exactly.",
            )
        first, second = found.variables[one], found.variables[two]
        chosen: TestKind = kind or _kind_of(first, second)
        if chosen == "difference" and first.numbers is None:
            first, second = second, first
        strata = None if within is None else found.variables[within]
        result = related(found.records, first, second, chosen, permutations, seed, strata)
        return TestResult(
            kind=chosen,
            of=(first.name, second.name),
            statistic=result.statistic,
            df=result.df,
            p_value=result.p_value,
            reference=_reference(result.permutations, found),
            permutations=result.permutations,
            records=found.rows,
            assumes=found.assumes(sampled=True),
            notes=(
                f"Null hypothesis: {KINDS[chosen]}{'' if within is None else f', in every group of {within!r}'}.",
                *found.notes((one, two) if chosen == "trend" else (first.name,) * (chosen == "difference")),
            ),
        )


def _reference(permutations: int, found: Gathered) -> str:
    if not permutations:
        return "chi-square"
    if found.weights is not None:
        return "random signs"
    return (
        "permutation"
        if found.several.inflation == 1
        else ("random pairings of part of the records; chi-square if larger")
    )


def _kind_of(one: Variable, two: Variable) -> TestKind:
    """Return the kind of test: trend of two columns of numbers, difference of one between few groups, otherwise
    independence."""
    numeric = [variable.numbers is not None and len(variable.labels) > 2 for variable in (one, two)]
    if all(numeric):
        return "trend"
    return "difference" if any(numeric) else "independence"
