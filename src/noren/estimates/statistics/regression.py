"""Fitted regressions: formula, family, and coefficients with robust errors, under the names that statsmodels uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.statistics.formula import CONSTANT, FAMILIES, Coding, Factor, Formula, model_matrix, offset_of
from noren.estimates.statistics.results import TestResult, interval_chart
from noren.results import Shown, plain

if TYPE_CHECKING:
    import polars as pl

NEARLY = 4.0
"""A coefficient is nearly unidentified if its error is so many times what the same records in clear would give."""
STEP = 1e-4
"""Of a column's spread: by how much it is moved for a derivative."""

Contrast = str | Mapping[str, float] | Sequence[float]
"""A linear hypothesis as text ("a = b"), weights by term, or a weight for every term."""
OPERATOR = re.compile(r"(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|[-+*=,]")
LISTED = (
    "params, bse, tvalues, pvalues, nobs, conf_int, cov_params, t_test, wald_test, get_margeff, predict, summary, "
    "terms, frame, notes, diagnostics"
)


class FittedCells(NamedTuple):
    """The cells on which a model was fitted: numbers by column, levels by factor, and estimated records."""

    columns: Mapping[str, NDArray[np.float64]]
    levels: Mapping[Factor, NDArray[np.int64]]
    weight: NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Regression(Shown):
    """Coefficients of a model with standard errors, as if of a sample from a population.

    `frame` has one row per coefficient: class (multinomial only), term, coef, std_error, z, p_value, low, high. Printed
    it is the table that other tools print. `predict` gives means for new values with intervals. `params`, `bse`,
    `tvalues`, `pvalues`, `conf_int()`, `cov_params()`, `nobs`, `t_test()`, `wald_test()` and `summary()` are what
    statsmodels calls so, by term; `get_margeff()` is also `marginal_effects()`.
    """

    formula: Formula
    family: str
    titles: tuple[str, ...]
    classes: tuple[str, ...]
    """The classes that have coefficients; one empty text unless multinomial."""
    base: str
    """The class that others are compared with, or what a binomial response counts as no."""
    theta: NDArray[np.float64]
    cov: NDArray[np.float64]
    codings: Mapping[Factor, Coding]
    cells: FittedCells
    estimator: str
    level: float
    records: int
    assumes: str
    notes: tuple[str, ...] = ()
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def frame(self) -> pl.DataFrame:
        names: dict[str, Any] = {}
        if self.family == "multinomial":
            names["class"] = [name for name in self.classes for _ in self.titles]
        names["term"] = self.terms if self.family == "ordinal" else [*self.titles] * len(self.classes)
        return self._table(names, *self._shown()).rename({"estimate": "coef"})

    def _shown(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the coefficients in the order of `terms`, and their covariance. An ordinal model has common slopes,
        and thresholds, which are the constants with the opposite sign."""
        if self.family != "ordinal":
            return self.theta.ravel(), self.cov
        (q, p), every = self.theta.shape, np.eye(self.theta.size)
        rows = np.concatenate([every[1:p], -every[np.arange(q) * p]])
        return rows @ self.theta.ravel(), rows @ self.cov @ rows.T

    @property
    def terms(self) -> list[str]:
        """Return the names of the coefficients: the term; of a multinomial "class: term", of an ordinal "low|middle"
        for the threshold between two classes."""
        if self.family == "ordinal":
            below = [self.base, *self.classes[:-1]]
            return [*self.titles[1:], *(f"{one}|{two}" for one, two in zip(below, self.classes, strict=True))]
        heads = [f"{name}: " if self.family == "multinomial" else "" for name in self.classes]
        return [head + title for head in heads for title in self.titles]

    @property
    def params(self) -> dict[str, float]:
        """Return the coefficients by term."""
        return dict(zip(self.terms, map(float, self._shown()[0]), strict=True))

    @property
    def bse(self) -> dict[str, float]:
        """Return the standard errors by term."""
        return self._by_term("std_error")

    @property
    def tvalues(self) -> dict[str, float]:
        """Return the coefficients divided by their standard errors, by term."""
        return self._by_term("z")

    @property
    def pvalues(self) -> dict[str, float]:
        """Return two-sided p-values by term."""
        return self._by_term("p_value")

    @property
    def nobs(self) -> int:
        """Return the number of records of the fit."""
        return self.records

    def _by_term(self, column: str) -> dict[str, float]:
        return dict(zip(self.terms, self.frame[column].to_list(), strict=True))

    def cov_params(self) -> NDArray[np.float64]:
        """Return the covariance of the coefficients, in the order of `terms`."""
        return self._shown()[1]

    def conf_int(self, alpha: float = 0.05) -> dict[str, tuple[float, float]]:
        """Return intervals of 1 - alpha by term."""
        if not 0 < alpha < 1:
            raise QueryError(f"alpha={alpha} is not a probability.", hint="Use 0.05 for 95% intervals.")
        reach = NormalDist().inv_cdf(1 - alpha / 2)
        errors = self.bse
        return {term: (b - reach * errors[term], b + reach * errors[term]) for term, b in self.params.items()}

    def summary(self) -> str:
        """Return the table as a text to print."""
        return str(self)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a fit to published cells has no {name!r}. It has {LISTED}.")

    def t_test(self, contrast: Contrast | Sequence[Contrast]) -> pl.DataFrame:
        """Return contrasts of coefficients with their errors, one row each: "job[Nurse] = job[Clerk]", weights by term,
        or a weight for every term.

        `fit.t_test("job[Nurse] = job[Clerk]")` is how much nurses differ from clerks: left side minus right side.
        """
        words, rows, number = self._hypotheses(contrast)
        value, cov = self._shown()
        return self._table({"contrast": words}, rows @ value - number, rows @ cov @ rows.T)

    def wald_test(self, hypotheses: Contrast | Sequence[Contrast]) -> TestResult:
        """Test several hypotheses together, by chi-square: "age = 0, job[Nurse] = job[Clerk]".

        A column's name stands for all its terms: `fit.wald_test("job")`.
        """
        words, rows, number = self._hypotheses(hypotheses)
        value, cov = self._shown()
        value, cov = rows @ value - number, rows @ cov @ rows.T
        from scipy.stats import chi2

        statistic, df = float(value @ np.linalg.pinv(cov, hermitian=True) @ value), int(np.linalg.matrix_rank(cov))
        same = all(word in self.terms for word in words)
        return TestResult(
            kind="Wald test",
            of=(" = ".join([*words, "0"]) if same else ", ".join(words),),
            statistic=statistic,
            df=df,
            p_value=float(chi2.sf(statistic, df)),
            reference="chi-square",
            permutations=0,
            records=self.records,
            assumes=self.assumes,
            notes=self.notes,
        )

    def _hypotheses(
        self, given: Contrast | Sequence[Contrast]
    ) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
        """Return for each hypothesis its text, the weights of the terms, and the number that they are compared with."""
        if isinstance(given, str):
            return parse_hypotheses(given, self.terms)
        if isinstance(given, Mapping):
            parts = [parse_hypotheses(f"{float(weight)!r} * {term}", self.terms)[1] for term, weight in given.items()]
            words = " ".join(f"{weight:+g} {term}" for term, weight in given.items()).removeprefix("+")
            return [words], np.sum(parts, axis=0), np.zeros(1)
        if len(given) and all(isinstance(one, (int, float, np.number)) for one in given):
            row = np.array([given], np.float64)
            if row.size != len(self.terms):
                raise QueryError(f"{row.size} weights for {len(self.terms)} terms.", hint=list_terms(self.terms))
            weights = {term: weight for term, weight in zip(self.terms, row[0], strict=True) if weight}
            words = " ".join(f"{weight:+g} {term}" for term, weight in weights.items()).removeprefix("+")
            return [words], row, np.zeros(1)
        several = [self._hypotheses(one) for one in given]  # type: ignore[arg-type]
        if not several:
            raise QueryError("there is no hypothesis.", hint=list_terms(self.terms))
        texts, rows, numbers = zip(*several, strict=True)
        return [word for one in texts for word in one], np.concatenate(rows), np.concatenate(numbers)

    def _table(self, names: dict[str, Any], value: NDArray[np.float64], cov: NDArray[np.float64]) -> pl.DataFrame:
        """Return estimates with errors and intervals as a frame."""
        import polars as pl
        from scipy.stats import norm

        error = np.sqrt(np.maximum(np.diag(cov), 0.0))
        z = np.divide(value, error, out=np.full(len(value), np.nan), where=error > 0)
        reach = NormalDist().inv_cdf((1 + self.level) / 2) * error
        columns = {"estimate": value, "std_error": error, "z": z, "p_value": 2 * norm.sf(np.abs(z))}
        return pl.DataFrame(names | columns | {"low": value - reach, "high": value + reach})

    def marginal_effects(self) -> pl.DataFrame:
        """Return the mean change of the response with each column, averaged over the people.

        Of a number the derivative, of a share from no to yes, of levels from the reference to each. The distribution of
        the columns is taken as estimated; errors are those of the coefficients.
        """
        moves = list(self._moves())
        if not moves:
            raise QueryError("the model has no column.", hint="Add a term.")
        effects, gradients = zip(*(self._effect(*move[2:]) for move in moves), strict=True)
        names: dict[str, Any] = {"column": [name for name, *_ in moves for _ in self.classes]}
        names["change"] = [change for _, change, *_ in moves for _ in self.classes]
        if len(self.theta) > 1:
            names["class"] = [*self.classes] * len(moves)
        gradient = np.concatenate(gradients)
        return self._table(names, np.concatenate(effects), gradient @ self.cov @ gradient.T)

    get_margeff = marginal_effects

    def _moves(self) -> Iterator[tuple[str, str, FittedCells, FittedCells, float]]:
        """Return for each change of a column: column, description, the cells after and before it, and its size."""
        columns, levels, _ = self.cells
        moved = [name for factor in self.formula.factors if not self._is_levels(factor) for name in factor.names]
        for name in dict.fromkeys(moved):
            there = columns[name]
            if set(np.unique(there[np.isfinite(there)])) <= {0.0, 1.0}:
                ends = [self.cells._replace(columns={**columns, name: np.full_like(there, k)}) for k in (1.0, 0.0)]
                yield name, "no to yes", ends[0], ends[1], 1.0
                continue
            half = STEP * max(float(np.nanstd(there)), 1e-9)
            ends = [self.cells._replace(columns={**columns, name: there + s}) for s in (half, -half)]
            yield name, "by 1", ends[0], ends[1], 2 * half
        for factor, places in levels.items():
            names = self.codings[factor].levels or ()
            before = self.cells._replace(levels={**levels, factor: np.zeros_like(places)})
            for k, label in enumerate(names[1:], start=1):
                after = self.cells._replace(levels={**levels, factor: np.full_like(places, k)})
                yield factor.names[0], f"{names[0]} to {label}", after, before, 1.0

    def _effect(
        self, after: FittedCells, before: FittedCells, size: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the (q,) mean change of the response, and its (q, coefficients) gradient."""
        weight, family, q = self.cells.weight.ravel(), FAMILIES[self.family], len(self.theta)
        change, gradient = np.zeros(q), np.zeros((q, self.theta.size))
        for cells, sign in ((after, 1.0), (before, -1.0)):
            values: dict[Factor, NDArray] = {
                factor: cells.levels[factor] if self._is_levels(factor) else np.nan_to_num(factor.values(cells.columns))
                for factor in self.codings
            }
            shape = cells.weight.shape
            x = model_matrix(self.formula, self.codings, values, shape)[1].reshape(weight.size, -1)
            mean = family.mean(x @ self.theta.T + offset_of(self.formula, values, shape).reshape(-1, 1))
            change += sign * (weight @ mean)
            slope = family.slope(mean) * weight[:, None, None]
            gradient += sign * np.einsum("nab,np->abp", slope, x).reshape(q, -1)
        whole = size * weight.sum()
        return change / whole, gradient / whole

    def _is_levels(self, factor: Factor) -> bool:
        return self.codings[factor].levels is not None

    def predict(self, at: Mapping[str, Any] | Sequence[Mapping[str, Any]] | pl.DataFrame) -> pl.DataFrame:
        """Predict the mean response for new values: one row each with mean, std_error, low, high (for each class).

        `at` is one or several mappings of column to value, or a frame; the response is not needed.
        """
        import polars as pl

        frame = at if isinstance(at, pl.DataFrame) else pl.DataFrame([at] if isinstance(at, Mapping) else list(at))
        values = {factor: self._coded(factor, frame) for factor in self.codings}
        _, x = model_matrix(self.formula, self.codings, values, (frame.height,))
        family, q = FAMILIES[self.family], len(self.theta)
        eta = x @ self.theta.T + offset_of(self.formula, values, (frame.height,))
        mean = family.mean(eta)
        slope = family.slope(mean)
        jacobian = np.einsum("nab,np->nabp", slope, x).reshape(frame.height, q, -1)
        error = np.sqrt(np.maximum(np.einsum("nai,ij,naj->na", jacobian, self.cov, jacobian), 0.0))
        reach = NormalDist().inv_cdf((1 + self.level) / 2)
        if q == 1 and self.family != "gaussian":  # symmetric on the scale of the predictor, and within what is possible
            spread = reach * np.sqrt(np.maximum(np.einsum("np,pk,nk->n", x, self.cov, x), 0.0))[:, None]
            low, high = family.mean(eta - spread), family.mean(eta + spread)
        else:
            low, high = mean - reach * error, mean + reach * error
        if len(self.theta) > 1:
            low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
        out = [
            frame.with_columns(
                *([pl.lit(name).alias("class")] if len(self.theta) > 1 else []),
                pl.Series("mean", mean[:, k]),
                pl.Series("std_error", error[:, k]),
                pl.Series("low", low[:, k]),
                pl.Series("high", high[:, k]),
            )
            for k, name in enumerate(self.classes)
        ]
        return pl.concat(out)

    def _coded(self, factor: Factor, frame: pl.DataFrame) -> NDArray:
        from noren.schema.hierarchy import value_text

        if missing := [name for name in factor.names if name not in frame.columns]:
            known = dict.fromkeys(name for one in self.codings for name in one.names)
            raise QueryError(f"a prediction needs a value of {missing[0]!r}.", hint=f"Give {', '.join(known)}.")
        levels = self.codings[factor].levels
        if levels is None:
            columns = {}
            for name in factor.names:
                try:
                    columns[name] = np.array([float(value) for value in frame[name].to_list()])
                except (TypeError, ValueError):
                    raise QueryError(f"{name!r} is a number in this model.", hint="Give numbers.") from None
            return factor.values(columns)
        texts = [value_text(value) for value in frame[factor.names[0]].to_list()]
        if unknown := [text for text in texts if text not in levels]:
            raise QueryError(
                f"{factor.names[0]!r} has no level {unknown[0]!r} in this model.",
                hint=f"It has {', '.join(levels[:12])}.",
            )
        return np.array([levels.index(text) for text in texts])

    def plot(self, *, title: str | None = None) -> Any:
        """Return an Altair chart of every coefficient with its interval, without the constant."""
        frame = self.frame
        kept = frame.filter(frame["term"] != CONSTANT) if len(self.titles) > 1 else frame
        labels = kept["term"].to_list()
        if self.family == "multinomial":
            labels = [f"{name}: {term}" for name, term in zip(kept["class"], labels, strict=True)]
        small = f"{self.family}, {self.estimator}, {self.level:.0%} intervals, {self.records:,} records"
        return interval_chart(labels, kept, "coef", title or self.formula.text, small, 0.0)

    def save_plot(self, path: str | Path) -> None:
        """Write the chart as .html (opens without network), .png or .svg."""
        from noren.estimates.counts.plots import save_chart

        save_chart(self.plot(), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        told = {name: getattr(self, name) for name in ("family", "estimator", "level", "records", "assumes", "notes")}
        told |= {"formula": self.formula.text, "base": self.base, "diagnostics": self.diagnostics}
        return dict(plain(told | {"coefficients": self.frame.to_dicts()}))

    def __str__(self) -> str:
        link = FAMILIES[self.family].link
        head = [
            f"{self.formula.text}",
            f"{self.family} ({link}), {self.estimator}, {self.records:,} records, {self.level:.0%} intervals",
        ]
        if self.base and self.family != "ordinal":
            head.append(f"Compared with {self.base!r}." if self.family == "multinomial" else f"Against {self.base!r}.")
        rows = self.frame.rows()
        names = self.frame.columns
        body = [[value if isinstance(value, str) else _short(value) for value in row] for row in rows]
        wide = [max(len(name), *(len(row[k]) for row in body)) for k, name in enumerate(names)]
        texts = [isinstance(value, str) for value in rows[0]]
        lines = [
            "  ".join(cell.ljust(w) if text else cell.rjust(w) for cell, w, text in zip(row, wide, texts, strict=True))
            for row in [names, *body]
        ]
        rule = "-" * max(len(line) for line in lines)
        return "\n".join([*head, rule, lines[0], rule, *lines[1:], rule, *self._notes()])

    def _subject(self) -> str:
        return self.formula.text

    def _headline(self) -> str:
        return f"{self.family}, {self.theta.size} coefficients, {self.records:,} records, {self.estimator}"

    def _notes(self) -> tuple[str, ...]:
        return (f"Assumes {self.assumes}.", *self.notes)


def _short(value: float | None) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.4g}"


def parse_hypotheses(text: str, terms: Sequence[str]) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Read linear hypotheses such as "a = b, 2*c + d = 1"; a side by itself is compared with zero.

    Terms may be called as statsmodels does: "Intercept", "a[T.level]", "C(a)[T.level]". A column's name by itself
    stands for all its terms.
    """
    plain = re.sub(r"\bC\(([^,()]+)(?:,.*?\))?\)", r"\1", text.replace("[T.", "["))
    if CONSTANT in terms:
        plain = re.sub(r"\bIntercept\b", CONSTANT, plain)
    words, rows, numbers = [], [], []
    for tokens in _split_tokens(_cut_tokens(plain, terms), ","):
        own = [term for term in terms if _belongs(term, tokens[0])] if len(tokens) == 1 else []
        sides = [_weigh_terms([one], terms) for one in own] or [
            _weigh_terms(side, terms) for side in _split_tokens(tokens, "=")
        ]
        pairs = [(side, 0 * side) for side in sides] if own or len(sides) == 1 else list(pairwise(sides))
        for place, (left, right) in enumerate(pairs):
            words.append(own[place] if own else "".join(f" {one} " if one in "=+-" else one for one in tokens).strip())
            rows.append((left - right)[:-1])
            numbers.append((right - left)[-1])
    return words, np.array(rows), np.array(numbers)


def _cut_tokens(text: str, terms: Sequence[str]) -> list[str]:
    """Cut a text into terms, columns, numbers and signs."""
    names = sorted({*terms, *(term.partition("[")[0] for term in terms)} - {""}, key=len, reverse=True)
    out, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        sign = OPERATOR.match(text, at)
        name = next((n for n in names if text.startswith(n, at) and not _is_longer_name(text, at + len(n))), None)
        if name is None and sign is None:
            raise QueryError(f"there is no term {text[at:].strip()!r}.", hint=list_terms(terms))
        out.append(name if name is not None else text[at : sign.end() if sign else at])
        at += len(out[-1])
    return out


def _is_longer_name(text: str, at: int) -> bool:
    return text[at : at + 1].isalnum() or text[at : at + 1] in ("_", "[")


def _split_tokens(tokens: Sequence[str], sign: str) -> list[list[str]]:
    edges = [-1, *(k for k, token in enumerate(tokens) if token == sign), len(tokens)]
    return [list(tokens[before + 1 : after]) for before, after in pairwise(edges)]


def _weigh_terms(tokens: Sequence[str], terms: Sequence[str]) -> NDArray[np.float64]:
    """Return the weight of every term in a sum, and its number at the end."""
    out, at = np.zeros(len(terms) + 1), 0
    while at < len(tokens) or not at:
        part, sign = list(tokens[at:]), 1.0
        while part and part[0] in ("+", "-"):
            sign *= -1.0 if part.pop(0) == "-" else 1.0
        found = OPERATOR.fullmatch(part[0]) if part else None
        number = float(part.pop(0)) if found is not None and found["number"] else None
        times = bool(part) and part[0] == "*"
        if times:
            part.pop(0)
        if part and part[0] in terms and (number is None) != times:
            out[terms.index(part.pop(0))] += sign * (1.0 if number is None else number)
        elif number is not None and not times:
            out[-1] += sign * number
        else:
            raise QueryError(f"{' '.join(tokens)!r} is no sum of terms.", hint=f'Write "a = b". {list_terms(terms)}')
        if part and part[0] not in ("+", "-"):
            raise QueryError(f"{' '.join(tokens)!r} is no sum of terms.", hint=f'Write "a = b". {list_terms(terms)}')
        at = len(tokens) - len(part)
    return out


def list_terms(terms: Sequence[str]) -> str:
    return f"Terms: {', '.join(terms[:12])}."


def _belongs(term: str, column: str) -> bool:
    """Return whether a term is one of a column's levels."""
    return term == column or term.startswith(f"{column}[")
