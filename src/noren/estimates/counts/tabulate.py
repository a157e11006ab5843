"""Cross tabulations of any form of cell.

What the cells of the columns asked for say decides how it is answered:

| columns | estimators | low and high |
| --- | --- | --- |
| exact and drawn | those of `estimators` | intervals: only the decoys are random, by a published design |
| shuffled members beside exact ones | those of `shuffled` | intervals |
| some coarse (general values, groups), whatever the others | `likelihood`, `spread`, `class-aware` | hard bounds |

`likelihood` is EM over what all cells of a record say together. `spread` lets a cell count for all it leaves possible,
columns independent: for reproducing papers, and for huge tables. `class-aware` is `likelihood` that knows which values
certainly occur in every class; it answers where the manifest says so and nothing else is asked for, and is `likelihood`
where it does not. What a coarse cell leaves open is not random by
design, so its estimates rest on an assumption, which they name; the bounds do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts import intervals
from noren.estimates.counts.axes import Axis, Weights
from noren.estimates.counts.bounds import ReportedAxis, ReportedRows
from noren.estimates.counts.estimate import ASSUMES
from noren.estimates.counts.estimators import (
    ESTIMATORS,
    NEEDS_INFORMATION,
    SEMANTIC_ESTIMATORS,
    SHUFFLED_ESTIMATORS,
    UNBOUNDED,
    advised,
    condition,
    invert,
    prepare_shuffled,
)
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import Frame, common_length, prepare
from noren.estimates.counts.grid import prepare_rows
from noren.estimates.counts.intervals import narrowed, shrunk
from noren.estimates.counts.rows import Reading, class_aware
from noren.estimates.counts.tuples import MAX_STEPS, Fit, Progress

NOT_BY_DESIGN = ("spread", "class-aware")
BOUNDED_ESTIMATORS = ("likelihood", *NOT_BY_DESIGN)
ESTIMATOR_NAMES = tuple(dict.fromkeys([*ESTIMATORS, *SEMANTIC_ESTIMATORS, *BOUNDED_ESTIMATORS]))
"""All estimators that can be asked for, of one release or another."""
CELL_LIMIT = 50_000_000
EXACT = "nothing: all requested columns are published exactly"
HARD = "low and high are hard bounds"
AT_RANDOM = "coarsening at random: within a published cell, how a value was generalised does not depend on the value"
OPEN_WEIGHTS = "; weights are unrelated to the value among those that a record's cells allow"
IN_CLASSES = (
    "the ends of intervals and the members of sets occur in their class; other records of the class are spread "
    "between evenly and like the whole table"
)


@dataclass(frozen=True)
class Tabulation:
    """Estimated counts, one dimension per axis, with their errors.

    Of exact and drawn columns, low and high are intervals between 0 and the number of records. `linear` counts are
    unbiased and may fall outside that range, hence outside the interval (those of `semantic-linear` and
    `uniform-linear` too); the other estimators' intervals are stretched to hold the count. Where a coarse column takes
    part, at least `low` and at most `high` records lie in a cell whatever the published cells hide, and std_error is
    NaN: nothing there is random by design.

    `interval` says where each cell's bounds came from: "fisher", "linear", "posterior" (the linear one, its upper end
    narrowed by margins and by what is likely of a cell so small), "exact" (nothing was hidden), "none" (the
    sets do not determine the count; the bounds are all that is known, and half their distance stands in for the
    standard error) or "hard". `method` is what was done, which is not what was asked for if the diagnostics say
    `ill_conditioned` and `asked_for`. `assumes` names what the counts rest on.
    """

    counts: NDArray[np.float64]
    std_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    method: str
    interval: NDArray[np.str_]
    iterations: int | None
    assumes: str
    diagnostics: dict[str, Any]
    centre: NDArray[np.float64] | None = None
    """Estimates that are not pulled anywhere, around which intervals stand."""
    noise: NDArray[np.float64] | None = None
    """Their variance; infinite where the sets do not determine a count."""

    @property
    def is_hard(self) -> bool:
        """Return whether low and high are hard bounds, not intervals."""
        return self.diagnostics.get("bounds") == "hard"


def tabulate(
    axes: Sequence[Axis],
    estimator: str | None = None,
    *,
    level: float = 0.95,
    population: bool = False,
    suppressed: int = 0,
    eps: float = 1.0,
    tolerance: float | None = None,
    max_steps: int = MAX_STEPS,
    progress: Progress | None = None,
    weights: Weights | None = None,
    among: int | None = None,
    rows_each: int | None = None,
    inflation: float = 1.0,
) -> Tabulation:
    """Estimate how many records fall into every combination of the axes' groups, with intervals at `level` or bounds.

    The estimator is `likelihood` unless another is named (`linear` for shuffled members, `class-aware` for tight
    classes). Without `population` the
    truth is the count in the original table, of which `suppressed` records were left out: they may lie anywhere, and
    raise `high`. `eps` is the bayes estimator's stopping change (before its division), `tolerance` the likelihood's.
    `progress(step, value)` is called after every iteration with the largest change or the held-out log likelihood.
    With survey weights, counts are of the people whom the records stand for. `among` is of how many records those here
    are the ones that a condition left: a population's interval needs it. `rows_each` is how many rows a person has
    where members are shuffled, which columns that are not asked for may add to. `inflation` is how many records a
    person has at most: variances are multiplied by it.
    """
    common_length(axes)
    if suppressed < 0:
        raise QueryError(f"suppressed={suppressed} is not a number of records.", hint="Use 0 or more.")
    axes = [axis if axis.is_exact else settled(axis) for axis in axes] if _mixed(axes) else list(axes)
    shuffled = any(axis.is_shuffled for axis in axes)
    if any(axis.is_coarse for axis in axes) or (estimator in NOT_BY_DESIGN and not shuffled):
        options: dict[str, Any] = {"tolerance": tolerance, "max_steps": max_steps, "progress": progress}
        if population:
            raise QueryError(
                "there is no interval for the population here, because cells were not coarsened at random by a design.",
                hint="Ask without population; low and high are then hard bounds for the original table.",
            )
        usual = "class-aware" if any(axis.is_tight for axis in axes) else "likelihood"
        if weights is not None:
            return weighed(tabulate_bounded(axes, estimator or usual, weights=weights, **options), weights, suppressed)
        return tabulate_bounded(axes, estimator or usual, suppressed=suppressed, **options)
    chosen = estimator or ("linear" if shuffled else "likelihood")
    known = SHUFFLED_ESTIMATORS if shuffled else {**ESTIMATORS, **SEMANTIC_ESTIMATORS}
    _check_drawn(axes, chosen, tuple(known), level)
    frame = prepare_shuffled(axes, rows_each) if shuffled else prepare(axes, weights, among)
    used, why = advised(frame, chosen, "bayes" if shuffled else "likelihood")
    if used == "likelihood":
        found = fit(frame, progress, tolerance=tolerance, max_steps=max_steps)
    else:
        found = known[used](frame, progress=progress, eps=eps)
    table = _with_intervals(frame, found, used, why, level, population, inflation)
    if why:
        table.diagnostics["asked_for"] = chosen
    if weights is not None:
        return weighed(table, weights, suppressed)
    return _widened(table, suppressed, drawn=any(axis.is_drawn for axis in axes))


def weighed(table: Tabulation, weights: Weights, suppressed: int) -> Tabulation:
    """Return the table in weighted people; the weights of suppressed people are unknown."""
    before = [] if table.assumes == EXACT else [table.assumes]
    assumes = "; ".join([*before, weights.assumes_without(suppressed)])
    parts = {name: getattr(table, name) * weights.unit for name in ("counts", "std_error", "low", "high")}
    facts = table.diagnostics | {"weights": weights.name, "design_effect": weights.design_effect}
    return replace(table, assumes=assumes, diagnostics=facts, **parts)


def _mixed(axes: Sequence[Axis]) -> bool:
    return any(axis.is_coarse for axis in axes) and any(axis.is_drawn for axis in axes)


def settled(axis: Axis) -> Axis:
    """Return the axis as exact if each of its generalised values is in one reported group; otherwise unchanged.

    Beside drawn columns that makes intervals of what would be bounds: what was asked for is not hidden.
    """
    if axis.is_drawn or axis.statement.nodes is None:
        return axis
    report = ReportedAxis.of(Reading.of(axis), alone=True)
    if len(report.rows) > axis.size:  # some code leads to more than one group
        return axis
    codes = np.where(report.codes < 0, axis.size, report.codes)
    return Axis.exact(axis.name, codes, axis.size + 1, np.append(np.arange(axis.size), -1), axis.size)


# ---------------------------------------------------------------------- exact and drawn columns


def _check_drawn(axes: Sequence[Axis], estimator: str, known: Sequence[str], level: float) -> None:
    """Raise if the counts cannot be estimated, before any work is done."""
    if estimator not in known:
        shuffled = estimator in ESTIMATORS
        why = f"{estimator!r} needs whole sets, but shuffled rows do not show which rows belong together."
        message = why if shuffled else f"There is no estimator {estimator!r}."
        raise QueryError(message, hint=f"Choose one of: {', '.join(known)}.")
    if not 0 < level < 1:
        raise QueryError(f"level={level} is not a probability.", hint="Use a number between 0 and 1, such as 0.95.")
    blind = [axis.name for axis in axes if axis.is_blind]
    if blind and estimator in NEEDS_INFORMATION:
        raise QueryError(
            f"The sets of {', '.join(map(repr, blind))} carry no information (eta = d or p = 0), so {estimator!r} "
            "cannot be used.",
            hint="Ask without the column, or use estimator='likelihood', which answers with the widest interval.",
        )
    drawn = [axis for axis in axes if axis.is_drawn]
    if estimator in SEMANTIC_ESTIMATORS and (len(drawn) != 1 or drawn[0].design.threshold is None):
        raise QueryError(
            f"{estimator!r} takes one column of semantically diverse sets and any number of exact columns.",
            hint="Use estimator='likelihood' or 'linear', which take any columns together.",
        )


def _with_intervals(
    frame: Frame, fitted: Fit, estimator: str, why: str, level: float, population: bool, inflation: float
) -> Tabulation:
    """Sum a fitted table into the reported groups, add intervals, and arrange both over the axes."""
    given: Any = {"level": level, "population": population, "inflation": inflation}
    counts = frame.sum_groups(fitted.table)
    w = frame.inclusions if frame.decoys else fitted.table
    centre = intervals.linear_scores(frame, w)
    if estimator == "likelihood":
        maximum = intervals.likelihood_maximum(frame, fitted)
        top = frame.sum_groups(maximum)
        around = fitted.table if fitted.maximum is None else fitted.maximum
        found = intervals.hybrid_interval(frame, centre, around, maximum=maximum, **given)
        unpulled = found
        if not population and inflation == 1 and (frame.shape[0] > 1) + len(frame.decoys) >= 3:
            found = narrowed(frame, found, centre, fitted.table, level)
    else:
        found = intervals.linear_interval(frame, centre, invert(frame, w), **given)
        unpulled = found
    error = np.where(np.broadcast_to(frame.lost, unpulled.std_error.shape), np.inf, unpulled.std_error)
    found = intervals.bound_lost(frame, found, **given)
    low, high = found.low, found.high
    outside = int(((counts < low) | (counts > high)).sum()) if estimator == "likelihood" else 0
    if estimator not in UNBOUNDED or fitted.diagnostics.get("projected"):
        low, high = np.minimum(low, counts), np.maximum(high, counts)
    weak = shrunk(frame, fitted.table, fitted.diagnostics.pop("pair_steps", {}))
    pulled: dict[str, Any] = ({"shrunk": weak} if weak else {}) | ({"outside": outside} if outside else {})
    middle = centre if estimator != "likelihood" else np.where(unpulled.source == intervals.FISHER, top, centre)
    placed = intervals.Interval(*(frame.place(part) for part in (found.std_error, low, high, found.source)))
    counts, placed = intervals.hide_blind(frame.axes, frame.place(counts), placed)
    blind = any(axis.is_blind for axis in frame.axes)
    return Tabulation(
        counts=counts,
        std_error=placed.std_error,
        low=placed.low,
        high=placed.high,
        method=estimator,
        interval=intervals.LABELS[placed.source],
        iterations=fitted.iterations or None,
        assumes=ASSUMES if any(axis.is_drawn for axis in frame.axes) else EXACT,
        diagnostics=_facts(frame, estimator, why) | pulled | fitted.diagnostics,
        centre=None if blind else frame.place(middle),
        noise=None if blind else frame.place(np.square(error)),
    )


def _facts(frame: Frame, estimator: str, why: str) -> dict[str, Any]:
    blind = [axis.name for axis in frame.axes if axis.is_blind]
    texts = [*(axis.ill_conditioned for axis in frame.decoys), why]
    errors = [error for axis in frame.decoys if (error := axis.design.inversion.error) is not None]
    source = "linear, of the published design" if estimator in SEMANTIC_ESTIMATORS else "linear"
    return {
        "records": frame.kept,
        "cells": prod(frame.shape),
        "condition": condition(frame),
        "interval_from": "fisher and linear" if estimator == "likelihood" else source,
        **({"no_information": blind} if blind else {}),
        **({"ill_conditioned": " ".join(filter(None, texts))} if any(texts) else {}),
        **({"inclusion_error": max(errors)} if errors else {}),
        **frame.facts(),
    }


def _widened(table: Tabulation, suppressed: int, *, drawn: bool) -> Tabulation:
    """Widen intervals for suppressed people, who may be in any cell. If nothing else is uncertain, they are hard
    bounds."""
    if not suppressed:
        return table
    table = replace(table, high=table.high + suppressed)
    if not drawn:
        return without_chance(table)
    return replace(table, assumes=f"{table.assumes}; {suppressed:,} people were suppressed and may belong to any cell")


def without_chance(table: Tabulation) -> Tabulation:
    """Return the bounds as hard bounds without a standard error, because nothing was drawn at random."""
    source = np.full(table.counts.shape, intervals.LABELS[intervals.HARD])
    facts = table.diagnostics | {"bounds": "hard"}
    return replace(table, std_error=np.full_like(table.counts, np.nan), interval=source, diagnostics=facts)


# ---------------------------------------------------------------------- tables with coarse columns


def tabulate_bounded(
    axes: Sequence[Axis],
    estimator: str = "likelihood",
    *,
    suppressed: int = 0,
    tolerance: float | None = None,
    max_steps: int = MAX_STEPS,
    progress: Progress | None = None,
    weights: Weights | None = None,
) -> Tabulation:
    """Estimate a table of any columns from the possible values of their cells, with hard bounds.

    With weights, what a record's cells leave open is shared out as the records without weights say.
    """
    if estimator not in BOUNDED_ESTIMATORS:
        raise QueryError(
            f"There is no estimator {estimator!r} for generalised cells.",
            hint=f"Choose one of: {', '.join(BOUNDED_ESTIMATORS)}.",
        )
    if (cells := prod(axis.size for axis in axes)) > CELL_LIMIT:
        raise QueryError(
            f"The answer would have {cells:,} cells, more than {CELL_LIMIT:,}.",
            hint="Ask for fewer columns, higher levels or wider intervals.",
        )
    order = sorted(range(len(axes)), key=lambda j: axes[j].statement.name)  # whichever way round they are asked for
    axes, back = [axes[j] for j in order], np.argsort(order)
    readings = [Reading.of(axis) for axis in axes]
    rows = ReportedRows.of([ReportedAxis.of(reading, alone=len(axes) == 1) for reading in readings], weights)
    low, high = rows.bounds()
    facts: dict[str, Any] = {"bounds": "hard", "records": common_length(axes)}
    if estimator == "spread" or np.array_equal(low, high):
        counts, iterations = rows.spread(), 0
        facts["distinct_tuples"] = len(rows.counts)
    else:
        used = [class_aware(reading) for reading in readings] if estimator == "class-aware" else readings
        grid = prepare_rows(used, progress, tolerance, max_steps)
        found = grid.fit(max_steps, progress, tolerance)
        table = found.table if weights is None else grid.weighed(found.table, weights)
        counts, iterations = grid.sum_groups(table), found.iterations
        facts |= grid.facts | found.diagnostics | ({"work": float(grid.tuples.products.work)} if grid.hidden else {})
    inside = np.clip(counts, low, high)
    facts["moved_into_bounds"] = float(np.abs(inside - counts).max(initial=0.0))
    inside, low, high = (np.ascontiguousarray(np.transpose(part, back)) for part in (inside, low, high))
    return Tabulation(
        counts=inside,
        std_error=np.full_like(inside, np.nan),
        low=low,
        high=high + suppressed,
        method=estimator,
        interval=np.full(inside.shape, intervals.LABELS[intervals.HARD]),
        iterations=iterations,
        assumes=_bounded_assumes(axes, estimator, facts) + (OPEN_WEIGHTS if weights is not None else ""),
        diagnostics=facts,
    )


def _bounded_assumes(axes: Sequence[Axis], estimator: str, facts: dict[str, Any]) -> str:
    """Return the assumption behind the counts, for the statements that occur."""
    coarse = [axis for axis in axes if axis.is_coarse]
    general = [axis for axis in coarse if axis.statement.nodes is not None]
    grouped = [axis for axis in coarse if axis.statement.nodes is None]
    drawn = [axis for axis in axes if axis.is_drawn]
    parts = []
    if general and estimator == "spread":
        how = "by the given weights" if any(axis.weights is not None for axis in general) else "evenly"
        parts.append(f"generalised values are spread {how} over the values they cover, independently across columns")
    elif estimator == "class-aware" and any(axis.is_tight for axis in general):
        parts.append(IN_CLASSES)
        if not all(axis.is_tight for axis in general):
            parts.append(f"in the other columns {AT_RANDOM}")
    elif general:
        parts.append(AT_RANDOM)
    if fakes := sum(axis.statement.fake_entries for axis in grouped):
        parts.append(f"{fakes:,} entries of the groups are counterfeits, which cannot be told from real entries")
    if grouped and estimator == "spread":
        parts.append("within a group, values are unrelated to the other columns")
    elif grouped:
        parts.append("the group of a record depends on its value, not on its other columns")
    if drawn and estimator == "spread":
        parts.append("sets are spread by their likelihood over their possible values, independently across columns")
    elif drawn:
        parts.append(ASSUMES)
    if straddling := facts.get("straddling"):
        names = ", ".join(map(repr, straddling))
        parts.append(f"within the requested groups, values of {names} are unrelated to the other columns")
    return "; ".join([*parts, HARD]) if parts else EXACT
