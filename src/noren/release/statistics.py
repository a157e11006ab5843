"""Questions beyond counts: means, quantiles, correlations, models and tests, asked of a release by column names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from noren.errors import QueryError
from noren.release.measured import Names, answered, contrast, demand_level

if TYPE_CHECKING:
    from noren.estimates.statistics.association import TestKind
    from noren.estimates.statistics.results import Regression, Statistic, TestResult
    from noren.estimates.statistics.variables import Variable
    from noren.release.gathered import Gathered, Values
    from noren.release.release import Release

Family = Literal["gaussian", "binomial", "poisson", "multinomial"]


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
        weighted: bool | None = None,
    ) -> Statistic:
        """The mean of a column of numbers, for every group of other columns, with standard errors and intervals.

        `of` names a column of numbers, or "column=value" for the share of one value. `by` and `where` are as in
        `estimate`. An interval of a binned column stands for its middle unless `values` says otherwise:
        `values={"income": {"[0, 10)": 4.2, ...}}`; missing cells take no part. Intervals speak of the original table,
        or with `population=True` of the population it was sampled from. Where general values or groups take part, the
        number follows from the table that `estimate` gives, under the assumption that is named; low and high are then
        hard bounds, and std_error is null. Where the release has survey weights, every record stands for as many people
        as they say, unless `weighted=False`.

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

        return answered(
            self, "mean", (of,), by, where, level, population, values, weighted, lambda s, v: means(s, v[0])
        )

    def variance(
        self,
        of: str,
        by: Names = (),
        where: Mapping[str, Any] | None = None,
        *,
        level: float = 0.95,
        population: bool = False,
        values: Values | None = None,
        weighted: bool | None = None,
    ) -> Statistic:
        """The variance (over n - 1) of a column of numbers, for every group of other columns. As `mean` otherwise."""
        from noren.estimates.statistics.moments import variances

        return answered(
            self, "variance", (of,), by, where, level, population, values, weighted, lambda s, v: variances(s, v[0])
        )

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
        weighted: bool | None = None,
    ) -> Statistic:
        """The value below which a share q of the records lies, the median unless said otherwise. As `mean` otherwise.

        Of single values it is one of them; inside a bin records are taken as spread evenly.
        """
        from noren.estimates.statistics.moments import quantiles

        found = answered(
            self, "quantile", (of,), by, where, level, population, values, weighted, lambda s, v: quantiles(s, v[0], q)
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
        weighted: bool | None = None,
    ) -> Statistic:
        """Pearson's correlation of two columns of numbers, for every group of other columns. As `mean` otherwise."""
        from noren.estimates.statistics.moments import correlations

        asked = (one, two)
        return answered(
            self,
            "correlation",
            asked,
            by,
            where,
            level,
            population,
            values,
            weighted,
            lambda s, v: correlations(s, v[0], v[1]),
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
        weighted: bool | None = None,
    ) -> Statistic:
        """Every group's mean less that of the group `against` (the first unless named). As `mean` otherwise."""
        return contrast(self, "difference", of, by, against, where, level, population, values, weighted)

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
        weighted: bool | None = None,
    ) -> Statistic:
        """Every group's mean over that of the group `against` (the first unless named). As `mean` otherwise.

        The interval is Fieller's: infinite where the mean below may be zero.
        """
        return contrast(self, "ratio", of, by, against, where, level, population, values, weighted)

    def regress(
        self,
        formula: str,
        family: Family = "gaussian",
        where: Mapping[str, Any] | None = None,
        *,
        estimator: Literal["scores", "likelihood"] | None = None,
        level: float = 0.95,
        values: Values | None = None,
        weighted: bool | None = None,
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
            notes=found.notes([name for name in parsed.names if not parsed.categorical(name)]),
            margins=found.margins,
            several=found.several.told,
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
        weighted: bool | None = None,
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
        from noren.estimates.statistics.association import KINDS, related
        from noren.estimates.statistics.results import TestResult
        from noren.release.gathered import gather

        if kind is not None and kind not in KINDS:
            raise QueryError(f"there is no test of {kind!r}.", hint=f"Tests: {', '.join(KINDS)}.")
        if permutations is not None and permutations < 99:
            raise QueryError(f"{permutations} permutations cannot show a p-value.", hint="Use 99 or more.")
        found = gather(cast("Release", self), [one, two], where or {}, values, weighted)
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
            reference=_reference(result.permutations, found),
            permutations=result.permutations,
            records=found.rows,
            assumes=found.assumes(sampled=True),
            notes=(
                f"The hypothesis: {KINDS[chosen]}.",
                *found.notes((one, two) if chosen == "trend" else (first.name,) * (chosen == "difference")),
            ),
        )


def _reference(permutations: int, found: Gathered) -> str:
    if not permutations:
        return "chi-square"
    if found.weights is not None:
        return "random signs"
    return "permutation" if found.several.inflation == 1 else "random pairings of fewer records, at least chi-square"


def _kind_of(one: Variable, two: Variable) -> TestKind:
    """The test that fits: trend of two columns of numbers, difference of one between few groups, else independence."""
    numeric = [variable.numbers is not None and len(variable.labels) > 2 for variable in (one, two)]
    if all(numeric):
        return "trend"
    return "difference" if any(numeric) else "independence"
