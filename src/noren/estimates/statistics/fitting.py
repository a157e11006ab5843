"""Model fitting: from a formula to levels, responses and equations, and an explanation if they fail.

Regression by likelihood, for cells without a design and for releases in which scores say too little.

A record's cells have the probability sum over values of P(cells | values) P(covariates) P(response | covariates). EM
finds the coefficients, with the distribution of hidden covariates free within every combination of exact ones and
shrunk a little towards all records together. Coefficients have a weak normal prior, so that a fit exists. Standard
errors come from the records' scores, less what the unknown distribution of the covariates takes away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.rows import row_numbers
from noren.estimates.statistics.corrected import SIGNAL, Equations, ModelGrid, Sandwich, sandwich, solve
from noren.estimates.statistics.formula import FAMILIES, Coding, Factor, Formula, model_matrix, offset_of
from noren.estimates.statistics.noised import Blend, PlacedMargin
from noren.estimates.statistics.records import Product, Records, Variable
from noren.estimates.statistics.regression import NEARLY, FittedCells, Regression
from noren.schema.domain import MISSING

Estimator = Literal["scores", "likelihood"]
MOST_LEVELS = 200
PENALISED = "a weak normal prior on coefficients (standard deviation 2.5 for a column with standard deviation 1)"
AT_RANDOM = "coarsening at random: how a value was generalised does not depend on the value itself"


@dataclass(frozen=True, eq=False)
class Model:
    """A formula and its variables."""

    formula: Formula
    family: str
    codings: Mapping[Factor, Coding]
    titles: tuple[str, ...]
    classes: tuple[str, ...]
    base: str
    equations: Equations
    values: Mapping[Factor, NDArray]
    numbers: Mapping[str, NDArray[np.float64]]
    """Of the columns that enter as such, in the cells of the grid."""
    notes: tuple[str, ...]

    def cells(self, table: NDArray[np.float64]) -> FittedCells:
        """Return the cells that a result keeps, with the estimated records in each."""
        levels = {factor: places for factor, places in self.values.items() if self.codings[factor].levels is not None}
        return FittedCells(self.numbers, levels, np.where(self.equations.counted, table, 0.0))


def fit(
    records: Records,
    base: Product,
    variables: Mapping[str, Variable],
    formula: Formula,
    family: str,
    estimator: Estimator | None,
    *,
    level: float,
    assumes: str,
    notes: tuple[str, ...],
    margins: Sequence[PlacedMargin] = (),
    several: str = "",
) -> Regression:
    """Fit by corrected scores; by likelihood if requested, or if generalised cells require it.

    `several` is what errors rest on where people have several records, which is part of `assumes`, too.
    """
    if family not in FAMILIES:
        raise QueryError(f"there is no family {family!r}.", hint=f"Families: {', '.join(FAMILIES)}.")
    if estimator not in (None, "scores", "likelihood"):
        raise QueryError(f"there is no estimator {estimator!r}.", hint="Use scores or likelihood.")
    if records.is_coarse and estimator == "scores":
        raise QueryError(
            "generalised values and groups were not drawn by a design, so they have no unbiased scores.",
            hint='Use estimator="likelihood", which states its assumptions.',
        )
    by_likelihood = estimator == "likelihood" or records.is_coarse
    if by_likelihood and family == "ordinal":
        raise QueryError(
            "an ordinal regression needs scores, which generalised values do not have.",
            hint='Use family="multinomial", or columns that are exact or drawn.',
        )
    if by_likelihood and records.weights is not None:
        raise QueryError(
            "generalised values need a fit by likelihood, which takes no survey weights.",
            hint='Use weighted=False to model records without weights, or estimator="scores" on drawn columns.',
        )
    model = _model(records, base, variables, formula, family, 0.0 if by_likelihood else SIGNAL)
    if by_likelihood:
        theta, cov, table, facts = fit_likelihood(model.equations, formula.response.names[0])
        parts = [AT_RANDOM, *([several] if several else [])] if records.is_coarse else [assumes]
        assumes = "; ".join([*parts, PENALISED])
        cov = cov * records.inflation
        return _result(model, theta, cov, table, "likelihood", level, records, assumes, notes, facts)
    grid = model.equations.grid
    blend = Blend.of(grid, base, formula.names, margins)
    table = grid.table if blend is None else blend.table(grid.table)
    found = solve(model.equations, table, _start(model, table))
    errors = sandwich(model.equations, found, blend)
    facts = {"iterations": found.steps, "signal": errors.signal}
    facts |= {} if blend is None else {"margins_share": float(np.average(blend.share))}
    if not found.converged or errors.signal < SIGNAL:
        raise _too_little(model, found.converged, errors.signal, errors.direction, records)
    notes = (*notes, *_nearly_unidentified(model, errors))
    return _result(model, found.theta, errors.cov, found.table, "scores", level, records, assumes, notes, facts)


def _result(
    model: Model,
    theta: NDArray[np.float64],
    cov: NDArray[np.float64],
    table: NDArray[np.float64],
    estimator: str,
    level: float,
    records: Records,
    assumes: str,
    notes: tuple[str, ...],
    facts: Mapping[str, float],
) -> Regression:
    return Regression(
        formula=model.formula,
        family=model.family,
        titles=model.titles,
        classes=model.classes,
        base=model.base,
        theta=theta,
        cov=cov,
        codings=model.codings,
        cells=model.cells(table),
        estimator=estimator,
        level=level,
        records=int(records.n),
        assumes=assumes,
        notes=(*notes, *model.notes),
        diagnostics=dict(facts) | ({} if records.weights is None else {"design_effect": records.weights.design_effect}),
    )


def _nearly_unidentified(model: Model, errors: Sandwich) -> list[str]:
    """Return a note on the terms about which the sets carry little information."""
    hidden, clear = np.sqrt(np.maximum(np.diag(errors.cov), 0.0)), np.sqrt(np.maximum(np.diag(errors.clear), 1e-300))
    ratio = (hidden / clear).reshape(-1, len(model.titles)).max(axis=0)
    worst = [f"{title} ({r:.1f} times)" for title, r in zip(model.titles, ratio, strict=True) if r > NEARLY]
    if not worst:
        return []
    return [
        "Very imprecise terms, with the ratio of their standard error to that of unprotected records: "
        f"{', '.join(worst)}."
    ]


def _too_little(
    model: Model, converged: bool, signal: float, direction: NDArray[np.float64], records: Records
) -> QueryError:
    """Describe which term has too little information, and how many records would be enough."""
    p = len(model.titles)
    share = np.abs(direction.reshape(-1, p)).max(axis=0) * np.sqrt(np.abs(np.diag(_spread(model.equations))) + 1e-300)
    worst = model.titles[int(np.argmax(share))]
    n = int(records.n)
    what = "have too little information" if converged else "have no stable solution"
    more = ""
    if 0 < signal < SIGNAL:
        more = f" About {round(n * (SIGNAL / max(signal, 0.3)) ** 2, -2):,.0f} records would be enough."
    return QueryError(
        f"the corrected equations of {model.formula.text!r} {what}: {n:,} records have too little information on "
        f"{worst!r} (signal-to-noise ratio {max(signal, 0.0):.1f}, needed {SIGNAL:g}).{more}",
        hint='Use estimator="likelihood" (penalised, with wider errors), fewer terms, or coarser levels.',
    )


def _spread(equations: Equations) -> NDArray[np.float64]:
    x = equations.x.reshape(-1, equations.p)
    return x.T @ x / len(x)


def _model(
    records: Records, base: Product, variables: Mapping[str, Variable], formula: Formula, family: str, few: float
) -> Model:
    order = [variables[name] for name in formula.names]
    grid = ModelGrid.of(records, base, order)
    values: dict[Factor, NDArray] = {}
    columns: dict[str, NDArray[np.float64]] = {}
    codings: dict[Factor, Coding] = {}
    counted, notes = np.ones(grid.shape, bool), list[str]()
    for factor in formula.factors:
        first = variables[factor.names[0]]
        if factor.tree is not None or (first.numbers is not None and not factor.is_levels):
            codings[factor] = Coding(factor.text)
            columns |= {name: _numbers(variables[name])[grid.labels[name]] for name in factor.names}
            numbers = factor.values(columns)
            counted = counted & np.isfinite(numbers)
            values[factor] = np.nan_to_num(numbers)
            continue
        kept, rare = _levels(records, base, first, few)
        kept = _reference_first(kept, first, factor.reference)
        codings[factor] = Coding(first.name, tuple(first.labels[k] for k in kept))
        place = np.full(len(first.labels), -1)
        place[kept] = np.arange(len(kept))
        values[factor] = place[grid.labels[first.name]]
        counted = counted & (values[factor] >= 0)
        if rare:
            notes.append(_name_rare_levels(rare, first))
    response = order[0]
    if formula.response.tree is not None:
        response = replace(response, numbers=formula.response.values({response.name: _numbers(response)}))
    y, there, classes, no, told = _response(response, grid, family, records, base, few)
    counted = counted & there
    titles, x = model_matrix(formula, codings, values, grid.shape)
    if formula.offsets and len(classes) > 1:
        raise QueryError("a multinomial regression takes no offset.", hint="Leave the offset out.")
    if family == "ordinal" and not formula.constant:
        raise QueryError("an ordinal regression has a constant for every threshold.", hint="Leave out - 1.")
    known, q = np.broadcast_to(y, (*grid.shape, y.shape[-1])), y.shape[-1]
    offset = offset_of(formula, values, grid.shape)
    shared = None if family != "ordinal" else _proportional(q, len(titles))
    equations = Equations(grid, FAMILIES[family], x, known, counted, offset, shared)
    return Model(formula, family, codings, tuple(titles), classes, no, equations, values, columns, (*told, *notes))


def _proportional(q: int, p: int) -> NDArray[np.float64]:
    """Return a (q p, q + p - 1) matrix: a constant for each predictor, and common other coefficients."""
    out = np.zeros((q, p, q + p - 1))
    out[np.arange(q), 0, np.arange(q)] = 1.0
    out[:, np.arange(1, p), np.arange(q, q + p - 1)] = 1.0
    return out.reshape(q * p, -1)


def _start(model: Model, table: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the log odds of the classes as the start of an ordinal model; None for other models."""
    equations = model.equations
    if equations.shared is None:
        return None
    weight = np.where(equations.counted, table, 0.0)
    shares = np.maximum((weight[..., None] * equations.y).sum(axis=(0, 1)) / weight.sum(), 1e-3)
    above = np.minimum(np.cumsum(shares[::-1])[::-1], 1 - 1e-3)
    theta = np.zeros((equations.q, equations.p))
    theta[:, 0] = np.log(above / (1 - above))
    return theta


def _numbers(variable: Variable) -> NDArray[np.float64]:
    """Return the number of every label; raise if the column holds categories."""
    if variable.numbers is None:
        raise QueryError(
            f"{variable.name!r} holds no numbers.",
            hint=f"Write `{variable.name}={variable.labels[0]}`, in backquotes, for the share of one value. "
            'A response of classes needs family="binomial", "multinomial" or "ordinal".',
        )
    return np.asarray(variable.numbers)


def _reference_first(kept: list[int], variable: Variable, reference: str | None) -> list[int]:
    if reference is None:
        return kept
    found = [k for k in kept if variable.labels[k] == reference]
    if not found:
        levels = ", ".join(variable.labels[k] for k in kept[:12])
        raise QueryError(f"{variable.name!r} has no level {reference!r} to compare with.", hint=f"Levels: {levels}.")
    return [*found, *(k for k in kept if k not in found)]


def _levels(records: Records, base: Product, variable: Variable, few: float) -> tuple[list[int], list[str]]:
    """Return the labels with more records than `few` standard errors, and those that are too rare."""
    if len(variable.labels) > MOST_LEVELS:
        raise QueryError(
            f"{variable.name!r} has {len(variable.labels):,} levels, more than {MOST_LEVELS}.",
            hint="Use a hierarchy level (`zip@1`) or intervals (`age/10`).",
        )
    kept, rare = [], []
    for label, text in enumerate(variable.labels):
        if text == MISSING:
            continue
        inside = dict(base)
        inside[variable.axis] = inside.get(variable.axis, 1.0) * variable.indicator(label)
        totals = records.totals([inside], population=False)
        if totals.value[0] > max(0.5, few * np.sqrt(max(totals.cov[0, 0], 0.0))):
            kept.append(label)
        elif not records.scores[variable.axis].axis.is_exact:
            rare.append(text)
    if len(kept) < 2 and rare:
        raise QueryError(
            f"{records.n:,.0f} records in such sets are too few to distinguish two levels of {variable.name!r}.",
            hint='Use estimator="likelihood" (penalised, with wider errors), or coarser levels.',
        )
    if len(kept) < 2:
        raise QueryError(f"{variable.name!r} has fewer than two levels that occur.", hint="Leave it out.")
    return kept, rare


def _name_rare_levels(rare: Sequence[str], variable: Variable) -> str:
    told = f"{', '.join(rare)} of {variable.name!r}"
    return f"Not estimated because too rare: {told}. Their records take no part in the fit."


def _response(
    variable: Variable, grid: ModelGrid, family: str, records: Records, base: Product, few: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_], tuple[str, ...], str, list[str]]:
    """Return y (.., q), where it is known, the classes with coefficients, the reference class, and notes."""
    labels = grid.labels[variable.name]
    if family in ("multinomial", "ordinal"):
        kept, rare = _levels(records, base, variable, few)
        y = np.stack([labels == k for k in kept[1:]], axis=-1).astype(np.float64)
        there = np.isin(labels, kept)
        classes = tuple(variable.labels[k] for k in kept[1:])
        told = [_name_rare_levels(rare, variable)] if rare else []
        if family == "ordinal":
            told.insert(0, f"Classes in this order: {', '.join(variable.labels[k] for k in kept)}.")
        return y, there, classes, variable.labels[kept[0]], told
    if family == "binomial":
        return _binary(variable, labels)
    numbers = _numbers(variable)[labels]
    if family == "poisson" and np.nanmin(numbers) < 0:
        raise QueryError(f"{variable.name!r} has negative numbers, which are no counts.", hint="Use gaussian.")
    return np.nan_to_num(numbers)[..., None], np.isfinite(numbers), ("",), "", []


def _binary(
    variable: Variable, labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], tuple[str, ...], str, list[str]]:
    plain = [k for k, text in enumerate(variable.labels) if text != MISSING]
    numbers = variable.numbers
    if numbers is not None and set(numbers[np.isfinite(numbers)].tolist()) <= {0.0, 1.0}:
        yes, there = numbers[labels] == 1.0, np.isfinite(numbers[labels])
        return yes.astype(np.float64)[..., None], there, ("",), "", []
    if len(plain) != 2:
        name = variable.labels[plain[0]] if plain else "..."
        raise QueryError(
            f"{variable.name!r} has {len(plain)} values, and a binomial response has two.",
            hint=f"Ask about one of them: `{variable.name}={name}` ~ ..., or use family='multinomial'.",
        )
    no, yes_label = plain
    told = [f"Models the chance of {variable.name} = {variable.labels[yes_label]}."]
    y = (labels == yes_label).astype(np.float64)[..., None]
    return y, np.isin(labels, plain), ("",), variable.labels[no], told


STEPS = 1500
TOLERANCE = 2e-6
PRIOR_SD = 2.5
"""Of a coefficient, for a column of unit spread."""
ENTRIES = 60_000_000
SMALL = 3_000
"""Records up to which errors are also found by leaving parts out."""
PARTS = 16
SHRUNK = 4.0
"""Records for each combination of hidden covariates, by which their distribution in a slot is shrunk."""
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Evidence:
    """The likelihood P(cells | combination) of every distinct tuple, as entries: tuple, cell of the grid,
    probability."""

    row: NDArray[np.int64]
    cell: NDArray[np.int64]
    chance: NDArray[np.float64]
    first: NDArray[np.int64]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, grid: ModelGrid) -> Evidence:
        tables = [_likelihood(grid, place) for place in range(len(grid.hidden))]
        rows, cells, chances, total = [], [], [], 0
        for part in grid.chunks():
            weights = grid.weights(tables, part)
            row, column = np.nonzero(weights)
            total += len(row)
            if total > ENTRIES:
                raise QueryError(
                    "the cells allow too many combinations of values for a fit by likelihood.",
                    hint="Use fewer hidden columns, hierarchy levels (`zip@1`) or intervals (`age/10`).",
                )
            rows.append(row + part.start)
            cells.append(grid.slot[part][row] * grid.shape[1] + column)
            chances.append(weights[row, column])
        row = np.concatenate(rows)
        first = np.searchsorted(row, np.arange(len(grid.counts)))
        return cls(row, np.concatenate(cells), np.concatenate(chances), first, grid.counts)

    def posterior(self, density: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(cell | record) of every entry."""
        weight = self.chance * density[self.cell]
        whole = np.add.reduceat(weight, self.first)
        return weight / np.maximum(whole, TINY)[self.row]


def _likelihood(grid: ModelGrid, place: int) -> NDArray[np.float64]:
    """Return P(cell | atom) of a hidden axis as a (cells, atoms) array, with values in an atom distributed as in its
    margin."""
    scores = grid.records.scores[grid.hidden[place]]
    axis, member = scores.axis, grid.members[place]
    if axis.is_coarse:
        table, widths = axis.statement.table, axis.statement.domain.widths
        common = np.asarray(table.totals if table is not None else np.ones(axis.d) if widths is None else widths)
    else:
        common = scores.margin
    common = common + TINY
    whole = common @ member
    top = max(float(axis.rows.weight.max(initial=0.0)), TINY)
    return np.asarray((axis.rows.dense(axis.d) / top * common) @ member / np.maximum(whole, TINY))


@dataclass(frozen=True, eq=False)
class Slots:
    """The cells of the grid by their covariates: exact ones make slots, hidden ones are distributed within them."""

    exact: NDArray[np.int64]
    hidden: NDArray[np.int64]
    shape: tuple[int, int]

    @classmethod
    def of(cls, grid: ModelGrid, response: str) -> Slots:
        labels = {name: found for name, found in grid.labels.items() if name != response}
        slots, width = grid.shape
        exact = row_numbers([found[:, 0] for found in labels.values() if found.shape[1] == 1], slots)
        hidden = row_numbers([found[0] for found in labels.values() if found.shape[1] != 1], width)
        return cls(exact, hidden, (int(exact.max(initial=0)) + 1, int(hidden.max(initial=0)) + 1))

    def sum(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        place = self.exact[:, None] * self.shape[1] + self.hidden[None, :]
        sums = np.bincount(place.ravel(), table.ravel(), minlength=self.shape[0] * self.shape[1])
        return sums.astype(np.float64).reshape(self.shape)


def fit_likelihood(
    equations: Equations, response: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], dict[str, float]]:
    """Return coefficients (q, p), their covariance, the expected records of every cell, and how the iteration ended."""
    grid = equations.grid
    evidence, slots = Evidence.of(grid), Slots.of(grid, response)
    table = np.maximum(grid.table, 0)
    table = table + 0.02 * table.mean()
    ridge = _prior(equations, table)
    theta = solve(equations, np.where(equations.counted, table, 0.0), ridge=ridge, steps=25).theta
    ascent = Ascent(equations, evidence, slots, ridge)
    best = ascent.climb(Point(table, theta, _variance(equations, table, theta)))
    cov = _covariance(equations, evidence, slots, best, ridge)
    n = float(evidence.counts.sum())
    if n <= SMALL:
        cov = _at_least(cov, ascent.jackknife(best))
    return best.theta, cov, best.table, {"iterations": float(best.steps), "moved": best.moved}


@dataclass(frozen=True, eq=False)
class Point:
    """The state of EM: expected records of every cell, coefficients, the variance of a gaussian response."""

    table: NDArray[np.float64]
    theta: NDArray[np.float64]
    variance: float
    steps: int = 0
    moved: float = np.inf


@dataclass(frozen=True, eq=False)
class Ascent:
    """EM on the likelihood of the records."""

    equations: Equations
    evidence: Evidence
    slots: Slots
    ridge: NDArray[np.float64]

    def climb(self, start: Point, counts: NDArray[np.float64] | None = None) -> Point:
        """Iterate until no coefficient changes, with counts[t] records of tuple t."""
        equations, evidence, now = self.equations, self.evidence, start
        each = (evidence.counts if counts is None else counts)[evidence.row]
        gaussian = equations.family.name == "gaussian"
        for step in range(1, STEPS + 1):
            post = evidence.posterior(_density(equations, self.slots, now).ravel())
            sums = np.bincount(evidence.cell, post * each, minlength=now.table.size)
            table = sums.astype(np.float64).reshape(now.table.shape)
            ridge = self.ridge * (now.variance if gaussian else 1.0)
            inside = np.where(equations.counted, table, 0.0)
            theta = solve(equations, inside, now.theta, ridge=ridge, steps=4).theta
            moved = float(np.abs(theta - now.theta).max() / (1 + np.abs(now.theta).max()))
            now = Point(table, theta, _variance(equations, table, theta), step, moved)
            if moved < TOLERANCE:
                break
        return now

    def jackknife(self, best: Point) -> NDArray[np.float64]:
        """Return the variance of every coefficient, from fits that each leave out a part of the records.

        Information at the maximum says too little in a small release. As many parts as there are have a wider
        reference than the normal, which is put into the variance.
        """
        from scipy.stats import norm, t

        counts = self.evidence.counts.astype(np.int64)
        owner = np.repeat(np.arange(len(counts)), counts)
        part = np.random.default_rng(0).permutation(len(owner)) % PARTS  # which part is arbitrary: no secret
        found = []
        for left in range(PARTS):
            kept = np.bincount(owner[part != left], minlength=len(counts)).astype(np.float64)
            found.append(self.climb(best, kept).theta.ravel())
        spread = np.square(np.array(found) - np.mean(found, axis=0)).sum(axis=0) * (PARTS - 1) / PARTS
        return np.asarray(spread * (t.ppf(0.975, PARTS - 1) / norm.ppf(0.975)) ** 2)


def _at_least(cov: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance with at least these variances and unchanged correlations."""
    own = np.maximum(np.diag(cov), TINY)
    factor = np.sqrt(np.maximum(variance / own, 1.0))
    return np.asarray(cov * np.outer(factor, factor))


def _prior(equations: Equations, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the prior precision of every coefficient; 0 for the constant."""
    weight = np.where(equations.counted, table, 0.0).ravel()
    x = equations.x.reshape(-1, equations.p)
    mean = weight @ x / weight.sum()
    spread = weight @ (x - mean) ** 2 / weight.sum()
    return np.tile(spread / PRIOR_SD**2, equations.q)


def _variance(equations: Equations, table: NDArray[np.float64], theta: NDArray[np.float64]) -> float:
    if equations.family.name != "gaussian":
        return 1.0
    weight = np.where(equations.counted, table, 0.0)
    left = equations.y[..., 0] - equations.predictor(theta)[..., 0]
    return float((weight * left**2).sum() / weight.sum())


def _density(equations: Equations, slots: Slots, at: Point) -> NDArray[np.float64]:
    """Return P(hidden values and response | exact covariates) of every cell; cells outside the model are free."""
    table, theta, variance = at.table, at.theta, at.variance
    shares = _shares(slots, np.where(equations.counted, table, 0.0), slots.sum(table).sum(axis=1))
    q, shape = equations.q, equations.grid.shape
    y, eta = equations.y.reshape(-1, q), equations.predictor(theta).reshape(-1, q)
    if equations.family.name == "gaussian":
        chance = np.exp(-((y - eta)[:, 0] ** 2) / (2 * variance)) / np.sqrt(variance)
    else:
        gain = equations.family.gain(y, eta)
        if equations.family.name == "poisson":
            from scipy.special import gammaln

            gain = gain - gammaln(y[:, 0] + 1)
        chance = np.exp(gain)
    inside = shares[slots.exact][:, slots.hidden] * chance.reshape(shape)
    whole = np.maximum(slots.sum(table).sum(axis=1), TINY)[slots.exact][:, None]
    return np.asarray(np.where(equations.counted, inside, table / whole))


def _shares(slots: Slots, table: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(hidden covariates | exact ones), shrunk towards that of all records with the weight of four records."""
    sums = slots.sum(table)
    overall = sums.sum(axis=0) / max(sums.sum(), TINY)
    extra = SHRUNK * slots.shape[1] if slots.shape[0] > 1 else 0.0
    return np.asarray((sums + extra * overall) / np.maximum(sizes + extra, TINY)[:, None])


def _covariance(
    equations: Equations,
    evidence: Evidence,
    slots: Slots,
    at: Point,
    ridge: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the inverse of the records' information, without the part that the covariates' distribution explains."""
    from scipy.sparse import csr_array

    q, p, width = equations.q, equations.p, equations.grid.shape[1]
    table, theta, variance = at.table, at.theta, at.variance
    post = evidence.posterior(_density(equations, slots, at).ravel())
    n = len(evidence.counts)
    weights = csr_array((post, (evidence.row, evidence.cell)), (n, table.size))
    x = equations.x.reshape(-1, p)
    eta = equations.predictor(theta).reshape(-1, q)
    left = np.where(equations.counted.reshape(-1, 1), equations.y.reshape(-1, q) - equations.family.mean(eta), 0.0)
    columns = (left[:, :, None] * x[:, None, :]).reshape(-1, q * p) / variance
    if equations.family.name == "gaussian":
        spread = np.where(equations.counted.ravel(), left[:, 0] ** 2 / variance - 1, 0.0)
        columns = np.concatenate([columns, spread[:, None]], axis=1)
    scores = np.asarray(weights @ columns)
    share = weights @ csr_array(
        (np.ones(table.size), (np.arange(table.size), np.tile(slots.hidden, equations.grid.shape[0]))),
        (table.size, slots.shape[1]),
    )
    share = share.toarray()
    counts = evidence.counts
    found = (scores * counts[:, None]).T @ scores
    own = slots.exact[evidence.cell[evidence.first] // width]
    for slot in range(slots.shape[0]):
        rows = np.flatnonzero(own == slot)
        if not len(rows):
            continue
        mean = counts[rows] @ share[rows] / counts[rows].sum()
        centred = share[rows] - mean
        inner = (centred * counts[rows, None]).T @ centred
        prior = (SHRUNK * slots.shape[1] if slots.shape[0] > 1 else 1e-6) * (np.diag(mean) - np.outer(mean, mean))
        cross = (scores[rows] * counts[rows, None]).T @ centred
        found -= cross @ np.linalg.pinv(inner + prior, rcond=1e-9, hermitian=True) @ cross.T
    found[np.arange(q * p), np.arange(q * p)] += ridge
    return np.linalg.pinv(found, hermitian=True)[: q * p, : q * p]
