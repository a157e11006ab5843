"""Questions beyond counts: means, quantiles, correlations, models and tests, asked of a release by column names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from noren.errors import QueryError

if TYPE_CHECKING:
    from noren.inference.association import TestKind
    from noren.inference.moments import Found, Sample
    from noren.inference.regression import Regression
    from noren.inference.results import Statistic, TestResult
    from noren.inference.variables import Variable
    from noren.release.gathered import Values
    from noren.release.release import Release

Names = str | Sequence[str]
Family = Literal["gaussian", "binomial", "poisson", "multinomial"]
RESULT = ("std_error", "low", "high", "records")


class Statistics:
    """The questions that a release answers besides counts."""

    def mean(
        self,
        of: str,
        by: Names = (),
        where: Mapping[str, Any] | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        values: Values | None = None,
    ) -> Statistic:
        """The mean of a column of numbers, for every group of other columns, with standard errors and intervals.

        `of` names a column of numbers, or "column=value" for the share of one value. `by` and `where` are as in
        `estimate`. An interval of a binned column stands for its middle unless `values` says otherwise:
        `values={"income": {"[0, 10)": 4.2, ...}}`; missing cells take no part. Intervals speak of the original table,
        or with `population=True` of the population it was sampled from. Where general values or groups take part, the
        number follows from the table that `estimate` gives, under the assumption that is named; low and high are then
        hard bounds, and std_error is null.

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
        from noren.inference.moments import means

        return _answered(self, "mean", (of,), by, where, level, population, values, lambda s, v: means(s, v[0]))

    def variance(
        self,
        of: str,
        by: Names = (),
        where: Mapping[str, Any] | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        values: Values | None = None,
    ) -> Statistic:
        """The variance (over n - 1) of a column of numbers, for every group of other columns. As `mean` otherwise."""
        from noren.inference.moments import variances

        return _answered(self, "variance", (of,), by, where, level, population, values, lambda s, v: variances(s, v[0]))

    def quantile(
        self,
        of: str,
        q: float = 0.5,
        by: Names = (),
        where: Mapping[str, Any] | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        values: Values | None = None,
    ) -> Statistic:
        """The value below which a share q of the records lies, the median unless said otherwise. As `mean` otherwise.

        Of single values it is one of them; inside a bin records are taken as spread evenly.
        """
        from noren.inference.moments import quantiles

        found = _answered(
            self, "quantile", (of,), by, where, level, population, values, lambda s, v: quantiles(s, v[0], q)
        )
        return found

    def correlation(
        self,
        one: str,
        two: str,
        by: Names = (),
        where: Mapping[str, Any] | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        values: Values | None = None,
    ) -> Statistic:
        """Pearson's correlation of two columns of numbers, for every group of other columns. As `mean` otherwise."""
        from noren.inference.moments import correlations

        asked = (one, two)
        return _answered(
            self, "correlation", asked, by, where, level, population, values, lambda s, v: correlations(s, v[0], v[1])
        )

    def difference(
        self,
        of: str,
        by: Names,
        against: Names | None = None,
        where: Mapping[str, Any] | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        values: Values | None = None,
    ) -> Statistic:
        """Every group's mean less that of the group `against` (the first unless named). As `mean` otherwise."""
        return _contrast(self, "difference", of, by, against, where, level, population, values)

    def ratio(
        self,
        of: str,
        by: Names,
        against: Names | None = None,
        where: Mapping[str, Any] | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        values: Values | None = None,
    ) -> Statistic:
        """Every group's mean over that of the group `against` (the first unless named). As `mean` otherwise.

        The interval is Fieller's: infinite where the mean below may be zero.
        """
        return _contrast(self, "ratio", of, by, against, where, level, population, values)

    def regress(
        self,
        formula: str,
        family: Family = "gaussian",
        where: Mapping[str, Any] | None = None,
        *,
        estimator: Literal["scores", "likelihood"] | None = None,
        level: float = 0.95,
        values: Values | None = None,
    ) -> Regression:
        """Coefficients of a regression, whatever mix of exact, drawn and general columns it names.

        formula: "income ~ age + C(education) + age:sex"; names with other signs between back quotes. Columns of names
        become levels, compared with their first. family: gaussian, binomial (a column of two values, or
        `` `disease=Flu` ``), poisson, multinomial. Errors are those of a sample from a population.

        Drawn columns are corrected for by unbiased scores (`scores`); where those say too little the fit is refused
        with what is missing, and `estimator="likelihood"` offers a penalised fit, which general columns always take.

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
        from noren.inference.fitting import fit
        from noren.inference.formula import Formula
        from noren.release.gathered import gather

        _demand_level(level)
        parsed = Formula.parse(formula)
        found = gather(cast("Release", self), parsed.names, where or {}, values)
        return fit(
            found.records,
            found.base,
            found.variables,
            parsed,
            family,
            estimator,
            level=level,
            assumes=found.assumes,
            notes=found.notes([name for name in parsed.names if not parsed.categorical(name)]),
        )

    def test(
        self,
        one: str,
        two: str,
        kind: TestKind | None = None,
        where: Mapping[str, Any] | None = None,
        *,
        permutations: int | None = None,
        values: Values | None = None,
        seed: int = 0,
    ) -> TestResult:
        """Whether two columns are related, by a test that keeps its size in small releases too.

        kind: "independence" (both as names), "difference" (numbers of the first between groups of the second) or
        "trend" (numbers of both); left out, it follows from whether the columns hold numbers. The p-value comes from
        pairing the published cells of one column with the other's at random, which is exact under independence; for
        very many records from chi-square. `permutations` fixes how many pairings.

        >>> import noren as nr
        >>> import polars as pl
        >>> people = pl.DataFrame({"town": ["Ulm", "Bonn"] * 300, "job": ["cook", "clerk", "miner", "nurse"] * 150})
        >>> columns, diverse = {"town": "plain", "job": "sensitive"}, nr.models.FrequencyLDiversity(on="job", l=2)
        >>> policy = nr.Policy(attributes=columns, require=[diverse], dependence={"most": 1.0})
        >>> release = nr.anonymize(people, policy)
        >>> release.test("job", "town").p_value < 0.01
        True
        """
        from noren.inference.association import KINDS, related
        from noren.inference.results import TestResult
        from noren.release.gathered import gather

        if kind is not None and kind not in KINDS:
            raise QueryError(f"there is no test of {kind!r}.", hint=f"Tests: {', '.join(KINDS)}.")
        if permutations is not None and permutations < 99:
            raise QueryError(f"{permutations} permutations cannot show a p-value.", hint="Use 99 or more.")
        found = gather(cast("Release", self), [one, two], where or {}, values)
        if found.base:
            raise QueryError(
                "a condition on a hidden column selects records that nobody can point at, so they cannot be paired.",
                hint="Use conditions on columns that are published exactly.",
            )
        first, second = found.variables[one], found.variables[two]
        chosen: TestKind = kind or _kind_of(first, second)
        if chosen == "difference" and first.numbers is None:
            first, second = second, first
        result = related(found.records, first, second, chosen, permutations, seed)
        return TestResult(
            kind=chosen,
            of=(first.name, second.name),
            statistic=result.statistic,
            df=result.df,
            p_value=result.p_value,
            reference="permutation" if result.permutations else "chi-square",
            permutations=result.permutations,
            records=found.rows,
            assumes=found.assumes,
            notes=(
                f"The hypothesis: {KINDS[chosen]}.",
                *found.notes((one, two) if chosen == "trend" else (first.name,) * (chosen == "difference")),
            ),
        )


def _kind_of(one: Variable, two: Variable) -> TestKind:
    """The test that fits: trend of two columns of numbers, difference of one between few groups, else independence."""
    numeric = [variable.numbers is not None and len(variable.labels) > 2 for variable in (one, two)]
    if all(numeric):
        return "trend"
    return "difference" if any(numeric) else "independence"


Compute = Callable[["Sample", Sequence["Variable"]], Sequence["Found"]]


def _contrast(
    release: Statistics,
    measure: str,
    of: str,
    by: Names,
    against: Names | None,
    where: Mapping[str, Any] | None,
    level: float,
    population: bool,
    values: Values | None,
) -> Statistic:
    from noren.inference.moments import contrasts

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

    return _answered(release, measure, (of,), by, where, level, population, values, compute)


def _answered(
    release: Statistics,
    measure: str,
    of: Sequence[str],
    by: Names,
    where: Mapping[str, Any] | None,
    level: float,
    population: bool,
    values: Values | None,
    compute: Compute,
) -> Statistic:
    from noren.inference.moments import Sample
    from noren.inference.results import Statistic
    from noren.release.gathered import gather

    opened, names = cast("Release", release), (by,) if isinstance(by, str) else tuple(by)
    _demand_level(level)
    found = gather(opened, [*of, *names], where or {}, values)
    asked = [found.variables[name] for name in of]
    for variable, name in zip(asked, of, strict=True):
        if variable.numbers is None:
            _explain(opened, name, variable)
    hard = found.records.is_coarse
    if hard and population:
        raise QueryError(
            "there is no interval for the population here: how cells were coarsened is not random by design.",
            hint="Leave out population; low and high are then hard bounds for the original table.",
        )
    sample = Sample(found.records, found.base, asked, [found.variables[name] for name in names], level, population)
    rows = compute(sample, asked)
    return Statistic(
        measure=measure,
        of=tuple(of),
        by=(titles := tuple(_title(name, measure) for name in names)),
        frame=_frame(sample, titles, measure, rows),
        level=1.0 if hard else level,
        population=population,
        records=found.rows,
        assumes=sample.expected.assumes if hard else found.assumes,
        where=dict(where or {}),
        notes=found.notes(of),
    )


def _demand_level(level: float) -> None:
    if not 0 < level < 1:
        raise QueryError(f"level={level} is not a probability.", hint="For example 0.95.")


def _explain(release: Release, name: str, variable: Variable) -> None:
    """Why a column has no numbers, in the words of whoever knows it."""
    from noren.inference.variables import numbers_of

    column = release.by_name.get(name)
    if column is not None and column.lists_values:
        numbers_of(name, column.domain)
    assert variable.amounts is not None


def _title(name: str, measure: str) -> str:
    return name + "_" if name in (measure, *RESULT) else name


def _frame(sample: Sample, titles: Sequence[str], measure: str, rows: Sequence[Found]) -> Any:
    """One row per group: its labels, the number and its errors; what cannot be told is null."""
    import polars as pl

    from noren.inference.moments import labels_of

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
