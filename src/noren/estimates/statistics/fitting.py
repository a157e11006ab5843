"""From a formula over variables to a fitted model: levels, responses, equations, and what is missing if they fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.statistics.corrected import SIGNAL, Equations, ModelGrid, sandwich, solve
from noren.estimates.statistics.formula import FAMILIES, Coding, Formula, model_matrix
from noren.estimates.statistics.noised import Blend, PlacedMargin
from noren.estimates.statistics.records import Product, Records
from noren.estimates.statistics.results import Regression
from noren.estimates.statistics.variables import Variable
from noren.schema.domain import MISSING

Estimator = Literal["scores", "likelihood"]
MOST_LEVELS = 200
PENALISED = "a weak normal prior on coefficients (standard deviation 2.5 for a column of unit spread)"
AT_RANDOM = "cells coarsened at random: which values share one does not depend on the value itself"


@dataclass(frozen=True, eq=False)
class Model:
    """A formula whose names have met their variables."""

    formula: Formula
    family: str
    codings: Mapping[str, Coding]
    titles: tuple[str, ...]
    classes: tuple[str, ...]
    base: str
    equations: Equations
    notes: tuple[str, ...]


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
    """Fit by corrected scores, or by likelihood where that was asked for or general cells leave no other way.

    `several` is what errors rest on where people have several records, which is part of `assumes`, too.
    """
    if family not in FAMILIES:
        raise QueryError(f"there is no family {family!r}.", hint=f"Families: {', '.join(FAMILIES)}.")
    if estimator not in (None, "scores", "likelihood"):
        raise QueryError(f"there is no estimator {estimator!r}.", hint="Use scores or likelihood.")
    if records.is_coarse and estimator == "scores":
        raise QueryError(
            "general values and groups were not drawn by a design, so they have no unbiased scores.",
            hint='Use estimator="likelihood", which names what it assumes.',
        )
    by_likelihood = estimator == "likelihood" or records.is_coarse
    if by_likelihood and records.weights is not None:
        raise QueryError(
            "a fit by likelihood, which general values need, takes no survey weights.",
            hint='Ask about the records themselves with weighted=False, or use estimator="scores" on drawn columns.',
        )
    model = _model(records, base, variables, formula, family, 0.0 if by_likelihood else SIGNAL)
    if by_likelihood:
        from noren.estimates.statistics.likelihood import fit_likelihood

        theta, cov, facts = fit_likelihood(model.equations, variables[formula.response].name)
        parts = [AT_RANDOM, *([several] if several else [])] if records.is_coarse else [assumes]
        assumes = "; ".join([*parts, PENALISED])
        return _result(model, theta, cov * records.inflation, "likelihood", level, records, assumes, notes, facts)
    grid = model.equations.grid
    blend = Blend.of(grid, base, formula.names, margins)
    found = solve(model.equations, grid.table if blend is None else blend.table(grid.table))
    errors = sandwich(model.equations, found, blend)
    facts = {"iterations": found.steps, "signal": errors.signal}
    facts |= {} if blend is None else {"margins_share": float(np.average(blend.share))}
    if not found.converged or errors.signal < SIGNAL:
        raise _too_little(model, found.converged, errors.signal, errors.direction, records)
    return _result(model, found.theta, errors.cov, "scores", level, records, assumes, notes, facts)


def _result(
    model: Model,
    theta: NDArray[np.float64],
    cov: NDArray[np.float64],
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
        estimator=estimator,
        level=level,
        records=int(records.n),
        assumes=assumes,
        notes=(*notes, *model.notes),
        diagnostics=dict(facts) | ({} if records.weights is None else {"design_effect": records.weights.design_effect}),
    )


def _too_little(
    model: Model, converged: bool, signal: float, direction: NDArray[np.float64], records: Records
) -> QueryError:
    """What the equations lack, in words: which term, and how many records would do."""
    p = len(model.titles)
    share = np.abs(direction.reshape(-1, p)).max(axis=0) * np.sqrt(np.abs(np.diag(_spread(model.equations))) + 1e-300)
    worst = model.titles[int(np.argmax(share))]
    n = int(records.n)
    what = "rest on too little" if converged else "have no stable solution"
    more = ""
    if 0 < signal < SIGNAL:
        more = f" About {round(n * (SIGNAL / max(signal, 0.3)) ** 2, -2):,.0f} records of this kind would do."
    return QueryError(
        f"the corrected equations of {model.formula.text!r} {what}: {n:,} records in such sets say least about "
        f"{worst!r} (signal {max(signal, 0.0):.1f} times its noise, {SIGNAL:g} are needed).{more}",
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
    values: dict[str, NDArray] = {}
    codings: dict[str, Coding] = {}
    counted, notes = np.ones(grid.shape, bool), list[str]()
    for variable in order[1:]:
        labels = grid.labels[variable.name]
        if variable.numbers is not None and not formula.categorical(variable.name):
            codings[variable.name] = Coding(variable.name)
            numbers = variable.numbers[labels]
            counted = counted & np.isfinite(numbers)
            values[variable.name] = np.nan_to_num(numbers)
            continue
        kept, rare = _levels(records, base, variable, few)
        codings[variable.name] = Coding(variable.name, tuple(variable.labels[k] for k in kept))
        place = np.full(len(variable.labels), -1)
        place[kept] = np.arange(len(kept))
        values[variable.name] = place[labels]
        counted = counted & (place[labels] >= 0)
        if rare:
            notes.append(f"Too rare to tell, and left out: {', '.join(rare)} of {variable.name!r}.")
    y, there, classes, no, told = _response(order[0], grid, family, records, base, few)
    counted = counted & there
    titles, x = model_matrix(formula, codings, values, grid.shape)
    equations = Equations(grid, FAMILIES[family], x, np.broadcast_to(y, (*grid.shape, y.shape[-1])), counted)
    return Model(formula, family, codings, tuple(titles), classes, no, equations, (*told, *notes))


def _levels(records: Records, base: Product, variable: Variable, few: float) -> tuple[list[int], list[str]]:
    """The labels that more records have than `few` standard errors, and those of which that cannot be told."""
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
            f"{records.n:,.0f} records in such sets are too few to tell two levels of {variable.name!r}.",
            hint='Use estimator="likelihood" (penalised, with wider errors), or coarser levels.',
        )
    if len(kept) < 2:
        raise QueryError(f"{variable.name!r} has fewer than two levels that occur.", hint="Leave it out.")
    return kept, rare


def _response(
    variable: Variable, grid: ModelGrid, family: str, records: Records, base: Product, few: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_], tuple[str, ...], str, list[str]]:
    """y (.., q), where it is known, the classes that have coefficients, the one that has none, and notes."""
    labels = grid.labels[variable.name]
    if family == "multinomial":
        kept, rare = _levels(records, base, variable, few)
        y = np.stack([labels == k for k in kept[1:]], axis=-1).astype(np.float64)
        there = np.isin(labels, kept)
        classes = tuple(variable.labels[k] for k in kept[1:])
        told = [f"Too rare to tell, and left out: {', '.join(rare)} of {variable.name!r}."] if rare else []
        return y, there, classes, variable.labels[kept[0]], told
    if family == "binomial":
        return _binary(variable, labels)
    if variable.numbers is None:
        variable.amounts  # noqa: B018  says what to do about names
    numbers = np.asarray(variable.numbers)[labels]
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
