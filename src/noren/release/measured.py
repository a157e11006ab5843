"""How a question about numbers becomes a table of answers: columns are gathered, computed on, and laid out by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from noren.errors import QueryError

if TYPE_CHECKING:
    from noren.estimates.statistics.moments import Found, Sample
    from noren.estimates.statistics.results import Statistic
    from noren.estimates.statistics.variables import Variable
    from noren.release.gathered import Values
    from noren.release.release import Release

Names = str | Sequence[str]
RESULT = ("std_error", "low", "high", "records")
Compute = Callable[["Sample", Sequence["Variable"]], Sequence["Found"]]


def contrast(
    release: object,
    measure: str,
    of: str,
    by: Names,
    against: Names | None,
    where: Mapping[str, Any] | None,
    level: float,
    population: bool,
    values: Values | None,
    weighted: bool | None,
) -> Statistic:
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

    return answered(release, measure, (of,), by, where, level, population, values, weighted, compute)


def answered(
    release: object,
    measure: str,
    of: Sequence[str],
    by: Names,
    where: Mapping[str, Any] | None,
    level: float,
    population: bool,
    values: Values | None,
    weighted: bool | None,
    compute: Compute,
) -> Statistic:
    from noren.estimates.statistics.moments import Sample
    from noren.estimates.statistics.results import Statistic
    from noren.release.gathered import gather

    opened, names = cast("Release", release), (by,) if isinstance(by, str) else tuple(by)
    demand_level(level)
    found = gather(opened, [*of, *names], where or {}, values, weighted)
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
    split = [found.variables[name] for name in names]
    sample = Sample(found.records, found.base, asked, split, level, population, found.margins)
    rows = compute(sample, asked)
    notes = found.notes(of)
    if found.weights is not None:
        rows = [replace(row, records=row.records * found.weights.unit) for row in rows]
        notes = (*notes, f"Records counts people of the population: the sum of {found.weights.name!r}.")
    return Statistic(
        measure=measure,
        of=tuple(of),
        by=(titles := tuple(_title(name, measure) for name in names)),
        frame=_frame(sample, titles, measure, rows),
        level=1.0 if hard else level,
        population=population,
        records=found.rows,
        assumes=sample.expected.assumes if hard else found.assumes(sampled=population),
        where=dict(where or {}),
        notes=notes,
        design_effect=None if found.weights is None else found.weights.design_effect,
    )


def demand_level(level: float) -> None:
    if not 0 < level < 1:
        raise QueryError(f"level={level} is not a probability.", hint="For example 0.95.")


def _explain(release: Release, name: str, variable: Variable) -> None:
    """Why a column has no numbers, in the words of whoever knows it."""
    from noren.estimates.statistics.variables import numbers_of

    column = release.by_name.get(name)
    if column is not None and column.lists_values:
        numbers_of(name, column.domain)
    assert variable.amounts is not None


def _title(name: str, measure: str) -> str:
    return name + "_" if name in (measure, *RESULT) else name


def _frame(sample: Sample, titles: Sequence[str], measure: str, rows: Sequence[Found]) -> Any:
    """One row per group: its labels, the number and its errors; what cannot be told is null."""
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
