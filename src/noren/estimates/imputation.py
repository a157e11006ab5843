"""Imputed tables of a release: sources, valid uses, and diagnostics.

Rubin's rules: one answer from the answers of several imputed tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.mixture import Axis, Mixture, Pairs, is_enough, run
from noren.results import Shown, plain
from noren.schema.domain import MISSING
from noren.statements import Cells, Statement
from noren.statements.texts import arrow_values

if TYPE_CHECKING:
    import polars as pl


NOT_FOR_INFERENCE = (
    "intervals pooled from imputed tables cover the truth less often than their level; for inference use "
    "release.mean, release.regress and release.test"
)
OF_PAIRS = (
    "intervals are valid for one and two columns and for models without interactions; the imputed tables lack "
    "associations that exist only among three or more columns"
)


@dataclass(frozen=True, repr=False, eq=False)
class Pooled(Shown):
    """Pooled estimates with standard errors, intervals and the share of information that is missing."""

    names: tuple[str, ...]
    estimate: NDArray[np.float64]
    std_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    degrees: NDArray[np.float64]
    missing: NDArray[np.float64]
    """Share of the variance that comes from not knowing the hidden values."""
    level: float
    tables: int
    holds: bool = False
    """Whether the tables were drawn so that intervals of one and two columns hold."""

    @property
    def frame(self) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(
            {
                "term": list(self.names), "estimate": self.estimate, "std_error": self.std_error, "low": self.low,
                "high": self.high, "missing_information": self.missing,
            }
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        return dict(plain({"level": self.level, "tables": self.tables, "terms": self.frame.to_dicts()}))

    def _headline(self) -> str:
        told = f"{len(self.names)} estimates from {self.tables} tables, {self.level:.0%} intervals"
        return told if self.holds else f"{told}, not for inference"

    def _notes(self) -> Sequence[str]:
        return (OF_PAIRS if self.holds else NOT_FOR_INFERENCE,)


def pool(
    answers: Iterable[Any], *, level: float = 0.95, names: Sequence[str] | None = None, complete: float | None = None
) -> Pooled:
    """Pool the answers of several tables by Rubin's rules.

    An answer is a pair (estimates, variances), numbers or arrays, or a fitted model with `params` and `bse` as
    statsmodels has them. `complete` are the degrees of freedom that a complete table would have, for small samples
    (Barnard and Rubin).

    >>> from noren.estimates import pool
    >>> pooled = pool([(1.0, 0.04), (1.2, 0.04), (1.1, 0.04)])
    >>> round(float(pooled.estimate[0]), 3), round(float(pooled.std_error[0]), 3)
    (1.1, 0.231)
    """
    pairs = [_pair(answer) for answer in answers]
    if len(pairs) < 2:
        raise QueryError(
            "pooling needs the answers of two tables or more.", hint="Ask for more tables, for example impute(m=20)."
        )
    if not 0 < level < 1:
        raise QueryError(f"level={level} is not a probability.", hint="For example 0.95.")
    if len({len(estimate) for estimate, _, _ in pairs}) != 1:
        raise QueryError("the answers do not have the same terms.", hint="Fit one model to all tables.")
    from scipy import stats

    m = len(pairs)
    every, within = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs]).mean(axis=0)
    between = every.var(axis=0, ddof=1)
    total = within + (1 + 1 / m) * between
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, (1 + 1 / m) * between / total, 0.0)
        degrees = (m - 1) / np.maximum(share, 1e-12) ** 2
        if complete is not None:
            observed = (complete + 1) / (complete + 3) * complete * (1 - share)
            degrees = 1 / (1 / degrees + 1 / np.maximum(observed, 1e-12))
    reach = stats.t.ppf(0.5 + level / 2, degrees) * np.sqrt(total)
    centre = every.mean(axis=0)
    told = tuple(names or pairs[0][2] or (f"term {i + 1}" for i in range(len(centre))))
    return Pooled(told, centre, np.sqrt(total), centre - reach, centre + reach, degrees, share, level, m)


def _pair(answer: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], Sequence[str]]:
    """Return estimates, variances and names of one answer."""
    if hasattr(answer, "params") and hasattr(answer, "bse"):
        names = [str(one) for one in getattr(answer.params, "index", ())]
        return np.ravel(np.asarray(answer.params, float)), np.ravel(np.asarray(answer.bse, float)) ** 2, names
    try:
        estimate, variance = answer
        found = np.ravel(np.asarray(estimate, float)), np.ravel(np.asarray(variance, float))
    except (TypeError, ValueError):
        hint = "Give pairs (estimates, variances), or fitted models with params and bse."
        raise QueryError("an answer is not a pair.", hint=hint) from None
    if len(found[0]) != len(found[1]) or (found[1] < 0).any():
        raise QueryError("estimates and variances do not fit.", hint="Variances are squares of standard errors.")
    return *found, ()


Question = Callable[["pl.DataFrame"], Any]
"""What is asked of every table: gives a pair or a fitted model."""


CLASSES = 40
BURN_IN = 150
BETWEEN = 8
GOOD_FOR = "for tools that need complete tables and for machine learning; not for inference"
GOOD_FOR_PAIRS = "for tools that need complete tables, machine learning, and inference on one and two columns"
MODELS = ("pairs", "mixture")


class Cellwise(Protocol):
    """A protocol: the parts of a published table that imputation reads."""

    statements: tuple[Statement, ...]
    records: int

    def column(self, name: str) -> Statement: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def rows_per_record(self) -> int: ...

    def cells(self, columns: Sequence[str]) -> dict[str, Cells]: ...


@dataclass(frozen=True, repr=False, eq=False)
class Imputations(Shown):
    """Imputed complete tables that fit a release. They contain no information beyond the release."""

    tables: Sequence[pl.DataFrame]
    occupied: int
    """Classes of records that the last table used."""
    classes: int
    trace: Sequence[float] = field(repr=False)
    margins: pl.DataFrame = field(repr=False)
    """Shares of every value of every drawn column: spread over what cells leave possible, and in the tables."""
    model: str = "mixture"
    """`pairs`: all associations of two columns, parameters by the bootstrap. `mixture`: classes of records."""
    rows_are_people: bool = True
    """Else rows of one person share draws, and no interval from the tables allows for that."""

    @property
    def holds(self) -> bool:
        """Whether pooled intervals about one and two columns have their stated coverage."""
        return self._of_pairs and self.rows_are_people

    @property
    def _of_pairs(self) -> bool:
        return self.model == "pairs"

    def __len__(self) -> int:
        return len(self.tables)

    def __getitem__(self, number: int) -> pl.DataFrame:
        return self.tables[number]

    @property
    def frame(self) -> pl.DataFrame:
        """Return all tables one below the other, numbered in the first column."""
        import polars as pl

        name = "table"
        while name in self.tables[0].columns:
            name += "_"
        parts = [table.insert_column(0, pl.lit(number).alias(name)) for number, table in enumerate(self._copies(), 1)]
        return pl.concat(parts)

    def _copies(self) -> list[pl.DataFrame]:
        return [table.clone() for table in self.tables]

    def pool(self, question: Question, *, level: float = 0.95, names: Sequence[str] | None = None) -> Pooled:
        """Analyse every table in the same way and pool the answers (see `noren.estimates.pool`)."""
        return replace(pool((question(table) for table in self.tables), level=level, names=names), holds=self.holds)

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = plain(
            {
                "tables": len(self), "records": self.tables[0].height, "columns": self.tables[0].columns,
                "model": self.model, "classes": self.occupied, "good_for": GOOD_FOR_PAIRS if self.holds else GOOD_FOR,
                "margins": self.margins.to_dicts(),
            }
        )  # fmt: skip
        return told

    def _headline(self) -> str:
        told = f"{len(self)} tables of {self.tables[0].height:,} records"
        told += ", all pairs of columns" if self._of_pairs else f", {self.occupied} classes"
        return told if self.holds else f"{told}; not for inference"

    def _notes(self) -> Sequence[str]:
        if self.holds:
            return (OF_PAIRS,)
        more = (
            ["all latent classes are in use; ask for more classes"]
            if not self._of_pairs and self.occupied >= self.classes
            else []
        )
        return (*more, NOT_FOR_INFERENCE)

    def plot(self) -> Any:
        """Return diagnostic charts: convergence of the chain, and shares in the tables against shares in the
        release."""
        import altair as alt
        import polars as pl

        dots = (
            alt.Chart(self.margins)
            .mark_circle(size=60)
            .encode(
                alt.X("spread", title="share if cells were spread evenly"),
                alt.Y("imputed", title="share in the imputed tables"),
                alt.Color("column"),
                tooltip=["column", "value", "spread", "imputed"],
            )
            .properties(title="Values of drawn columns", width=320, height=260)
        )
        if self._of_pairs:
            return alt.hconcat(dots).properties(title=f"{len(self)} plausible tables")
        trace = pl.DataFrame({"sweep": np.arange(1, len(self.trace) + 1), "log-likelihood": list(self.trace)})
        line = (
            alt.Chart(trace)
            .mark_line()
            .encode(alt.X("sweep"), alt.Y("log-likelihood", scale=alt.Scale(zero=False), title="log-likelihood, mean"))
            .properties(title="Convergence of the chain", width=320, height=260)
        )
        return alt.hconcat(line, dots).properties(title=f"{len(self)} imputed tables, not for inference")

    def save_plot(self, path: str | Path) -> None:
        """Write the diagnostic page as .html (opens without network), .png or .svg."""
        from noren.estimates.counts.plots import save_chart

        save_chart(self.plot(), Path(path))


def impute(
    published: Cellwise,
    m: int = 20,
    *,
    seed: int | None = None,
    classes: int = CLASSES,
    burn_in: int = BURN_IN,
    between: int = BETWEEN,
    impossible: Sequence[Mapping[str, Any]] = (),
    without: Mapping[str, NDArray[np.int64]] | None = None,
    model: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Imputations:
    """Draw m complete tables from what a published table leaves possible (`Release.impute`).

    `without` names rows of columns whose cells are not looked at, to see how well others predict them.
    """
    import polars as pl

    for name, number in (("m", m), ("classes", classes), ("burn_in", burn_in), ("between", between)):
        if number < (2 if name == "classes" else 1):
            raise QueryError(f"{name}={number} is too small.", hint="Omit it for a default that fits the table.")
    if published.rows_per_record > 1:
        raise QueryError(
            "the rows of this release do not show which belong to one person.",
            hint="Use estimate(), which needs no rows.",
        )
    cells = published.cells(published.columns)
    coded = [one for one in published.statements if not one.column.is_open and one.terms is None]
    if not any(one.hides for one in coded):
        raise QueryError("nothing in this release is hidden: frame() is complete already.", hint="Use frame().")
    axes = [Axis.of(statement, cells[statement.name]) for statement in coded]
    for name, rows in (without or {}).items():
        number = [axis.name for axis in axes].index(name)
        axes[number] = axes[number].without(rows)
    chosen = _chosen(model, coded, axes)
    rng, rules = np.random.default_rng(seed), _rules(impossible, coded)
    occupied, trace = 0, []
    if chosen == "pairs":
        classes, drawn = 0, _of_pairs(axes, rules, rng, m, (burn_in, between), progress)
    else:
        mixture = Mixture(axes, classes, rng, rules)
        drawn = run(mixture, burn_in, m, between, progress)
        occupied, trace = mixture.occupied, mixture.trace
    others = {
        one.name: pl.from_arrow(one.to_arrow(cells[one.name])) for one in published.statements if one not in coded
    }
    tables = [
        pl.DataFrame(
            {
                one.name: others[one.name] if one.name in others else _column(one, values[coded.index(one)])
                for one in published.statements
            }
        )
        for values in drawn
    ]
    return Imputations(tables, occupied, classes, trace, _margins(coded, axes, drawn), chosen)


def _chosen(asked: str | None, coded: Sequence[Statement], axes: Sequence[Axis]) -> str:
    """Choose the model: pairs if hidden columns were drawn by a design and carry enough information; otherwise the
    mixture."""
    if asked is not None and asked not in MODELS:
        raise QueryError(f"there is no model {asked!r}.", hint=f"Choose one of: {', '.join(MODELS)}.")
    fits = all(one.design is not None for one in coded if one.hides) and is_enough(axes)
    if asked == "pairs" and not fits:
        raise QueryError(
            "the records carry too little information about some pair of columns, too many combinations are "
            "possible, or a column was not drawn by a design.",
            hint="Do not choose a model, or use the mixture and no intervals from it.",
        )
    return asked or ("pairs" if fits else "mixture")


def _of_pairs(
    axes: Sequence[Axis],
    rules: Sequence[Mapping[int, int]],
    rng: np.random.Generator,
    m: int,
    steps: tuple[int, int],
    progress: Callable[[int], None] | None,
) -> list[list[NDArray[np.int64]]]:
    """Draw the values of all axes for each of m tables."""
    model, tell = Pairs(axes, rules), progress or (lambda _: None)
    tell(steps[0])
    out = []
    for _ in range(m):
        out.append(model.draw(rng))
        tell(steps[1])
    return out


def _column(statement: Statement, codes: NDArray[np.int64]) -> Any:
    """Return codes as typed values; a missing one is null."""
    import polars as pl
    import pyarrow as pa

    domain = statement.domain
    gone = codes == domain.index[MISSING] if domain.has_missing else None
    return pl.from_arrow(arrow_values(domain).take(pa.array(codes, mask=gone)))


def _rules(given: Sequence[Mapping[str, Any]], coded: Sequence[Statement]) -> list[dict[int, int]]:
    """Return impossible combinations as numbers of axes and values."""
    place = {statement.name: number for number, statement in enumerate(coded)}
    out = []
    for rule in given:
        found = {}
        for name, value in rule.items():
            if name not in place:
                raise QueryError(f"there is no column {name!r} to rule out.", hint=f"Columns: {', '.join(place)}.")
            index = coded[place[name]].domain.index
            if str(value) not in index:
                raise QueryError(
                    f"column {name!r} does not have the value that is ruled out.", hint="Check its spelling."
                )
            found[place[name]] = index[str(value)]
        if not found:
            raise QueryError(
                "an impossible combination has no column.", hint='For example {"sex": "m", "births": "2"}.'
            )
        out.append(found)
    return out


def _margins(coded: Sequence[Statement], axes: Sequence[Axis], drawn: Sequence[Sequence[NDArray[np.int64]]]) -> Any:
    import polars as pl

    parts = []
    for number, (statement, axis) in enumerate(zip(coded, axes, strict=True)):
        if axis.is_known:
            continue
        counted = [np.bincount(values[number], minlength=axis.d) for values in drawn]
        shares = np.mean(counted, axis=0) / len(axis.cell)
        told = {"column": [axis.name] * axis.d, "value": list(statement.domain.values), "spread": axis.mean_shares()}
        parts.append(pl.DataFrame(told | {"imputed": shares}))
    return pl.concat(parts)
