"""Random count queries: their error against the requirement (figure 19) and the number of dimensions (figure 20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.schema.nodes import tree_of
from noren_papers import draw
from noren_papers.base import Bench, Figure, Gain, Result
from noren_papers.claims import ALMOST, Answer, Claims, Mean, judged
from noren_papers.relations import Along, Check, Compare, answer_from, listed
from noren_papers.tau_l import counts
from noren_papers.tau_l.common import (
    BOTH,
    CHUNKS,
    CLD,
    METHODS,
    MONDRIAN,
    ONE_D,
    PAPERS,
    SWEEP,
    ZERO_NOTE,
    Row,
    by_requirement,
    dataset,
    label,
    release_of,
    settings,
)

LIKELY = "SWEEP by likelihood (ours)"
"""SWEEP's table read with the likelihood of every column instead of leaves that count alike."""
LINES = (*METHODS, LIKELY)
OVER = "over SWEEP's"
OURS = (LIKELY, CHUNKS, MONDRIAN)
CHOSEN = {"adult": (0.3, 5), "nursery": (0.5, 3)}
"""The requirements of figure 20."""
EXAMPLE = (1437, 1502, 1672, 1744)
"""The paper's query of three dimensions: the original, SWEEP, 1DLD and CLD."""
LEFT_OUT = (
    "A relative error needs a true count above zero; queries that no record meets are left out. How many they are is "
    "in the sheet of queries."
)
DRAWN = (
    "A condition is a level of the taxonomy, drawn evenly, and a value of that level that some record has, drawn "
    "evenly; the root is a level too. The paper says only that conditions are values of the taxonomy."
)
EVEN = (
    "Leaves that count alike are exact for a column whose values are equally frequent, as Nursery's quasi-identifiers "
    "are by construction; there the likelihood can only add error."
)


@dataclass(frozen=True)
class Workload:
    """The answerable queries of every number of dimensions with their true counts, and how many were drawn."""

    members: Mapping[str, NDArray[np.bool_]]
    queries: Mapping[int, counts.Queries]
    actual: Mapping[int, NDArray[np.float64]]
    drawn: int

    @property
    def left_out(self) -> int:
        return sum(self.drawn - len(one) for one in self.queries.values())


def workload(bench: Bench, name: str) -> Workload:
    return bench.shared(("tau-l", "queries", name), lambda: _workload(bench, name))


def _workload(bench: Bench, name: str) -> Workload:
    data, size = dataset(bench, name), bench.pick(1_000, 50)
    members = counts.catalogue(data)
    queries, actual = {}, {}
    for dimensions in range(1, len(data.quasi_identifiers) + 2):
        rng = np.random.default_rng([2011, dimensions, *name.encode()])  # whichever figure asks, the same queries
        found = counts.draw(data, dimensions, size, rng)
        true = counts.truth(data, members, found)
        queries[dimensions], actual[dimensions] = found.only(true > 0), true[true > 0]
    return Workload(members, queries, actual, size)


def estimates(bench: Bench, name: str, method: str, tau: float, l: int) -> dict[int, NDArray[np.float64]] | None:
    """EST of every answerable query by the number of dimensions; None where there is no table."""
    return bench.shared(("tau-l", "estimates", name, method, tau, l), lambda: _estimates(bench, name, method, tau, l))


def _estimates(bench: Bench, name: str, method: str, tau: float, l: int) -> dict[int, NDArray[np.float64]] | None:
    found = release_of(bench, name, SWEEP if method == LIKELY else method, tau, l)
    if found is None:
        return None
    asked, weights = workload(bench, name), None
    columns = next(iter(asked.queries.values())).columns
    if method == LIKELY:
        weights = counts.likely_shares(found.table, columns)
    together = counts.Queries(columns, np.concatenate([one.asked for one in asked.queries.values()]))
    given = counts.estimate(found.table, asked.members, together, weights)
    ends = np.cumsum([len(one) for one in asked.queries.values()])
    return dict(zip(asked.queries, np.split(given, ends[:-1]), strict=True))


def errors(bench: Bench, name: str, method: str, tau: float, l: int) -> dict[int, NDArray[np.float64]] | None:
    found, asked = estimates(bench, name, method, tau, l), workload(bench, name)
    if found is None:
        return None
    return {s: counts.relative_errors(asked.actual[s], one) for s, one in found.items()}


def compared(errors: NDArray[np.float64] | None, sweeps: NDArray[np.float64] | None) -> dict[str, float | None]:
    """A method's mean error with its standard error, and beside SWEEP's by the same queries."""
    if errors is None or not len(errors):
        return dict.fromkeys(("error", "error, standard error", "median", OVER, f"{OVER}, standard error"))
    mean = Mean.of(errors.tolist())
    over = None if sweeps is None else Mean.ratio(errors.tolist(), sweeps.tolist())
    return {
        "error": mean.value,
        "error, standard error": mean.error,
        "median": float(np.median(errors)),
        OVER: None if over is None else over.value,
        f"{OVER}, standard error": None if over is None else over.error,
    }


def sweep_best(*keys: str) -> Compare:
    """The others' errors over SWEEP's, by the same queries."""
    found = pl.col("method").is_in([ONE_D, CLD]) & pl.col(OVER).is_finite()
    return Compare(
        (ONE_D, CLD), "above", 1.0, OVER, ("data", *keys), "method", f"{OVER}, standard error", apart=("data",),
        where=found,
    )  # fmt: skip


def row_of(bench: Bench, name: str, method: str, tau: float, l: int) -> dict[str, Any]:
    title = dataset(bench, name).title
    return {"data": title, "requirement": label(tau, l), "tau": tau, "l": l, "method": method}


def drawn_sheet(bench: Bench) -> pl.DataFrame:
    return pl.DataFrame([
        {"data": dataset(bench, name).title, "dimensions": s, "drawn": asked.drawn, "answered": len(one),
         "left_out": asked.drawn - len(one),
         "median_true_count": float(np.median(asked.actual[s])) if len(one) else None}
        for name in BOTH
        for asked in [workload(bench, name)]
        for s, one in asked.queries.items()
    ])  # fmt: skip


def parameters(bench: Bench) -> dict[str, Any]:
    found = {dataset(bench, name).title: workload(bench, name) for name in BOTH}
    return {
        "queries": [
            f"{title} {asked.drawn} for every s from 1 to {len(asked.queries)}" for title, asked in found.items()
        ],
        "left out": [f"{title} {asked.left_out}" for title, asked in found.items()],
        "sensitive column": [dataset(bench, name).sensitive for name in BOTH],
        "records": [dataset(bench, name).coded.n for name in BOTH],
    }


SAID = Claims()


def _strength(bench: Bench) -> Result:
    rows: list[Row] = []
    for data, tau, l, row in settings(bench):
        given = {method: errors(bench, data.name, method, tau, l) for method in LINES}
        pooled = {method: None if one is None else np.concatenate([*one.values()]) for method, one in given.items()}
        rows += [
            row | {"method": method} | compared(one, pooled[SWEEP]) | {"queries": None if one is None else len(one)}
            for method, one in pooled.items()
        ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    example, shown = _example(bench)
    answers = SAID.answered(frame=frame, example=example)
    picture = by_requirement(
        frame, y="error", order=LINES, ours=OURS, log_y=True, size=(330, 230), error="error, standard error",
        x_title="requirement (tau, l), from weak to strong", y_title="average relative error",
        title="Figure 19. Count queries: error against the requirement",
        note="All numbers of dimensions together; no point: the method has no table for the requirement.",
    )  # fmt: skip
    sheets = {"": frame, "queries": drawn_sheet(bench), "example": shown}
    notes = (
        LEFT_OUT,
        DRAWN,
        EVEN,
        "The mean is over all answerable queries of all dimensions. Queries met by few records have large relative "
        "errors and rule the mean; the sheet has the median beside it.",
    )
    own = gains(frame, "requirement")
    return Result(sheets, {"": picture}, answers, OURS, parameters(bench), notes, own)


SAID("SWEEP answers count queries with less error than 1DLD and CLD at every requirement.", sweep_best("requirement"))


LOSES = (
    "on Nursery every combination of quasi-identifiers occurs once, so that leaves counting alike are exact and an "
    "estimate can only add noise"
)


def gains(frame: pl.DataFrame, key: str) -> tuple[Gain, ...]:
    """SWEEP's table read by likelihood over the same read by leaves that count alike, by data set."""
    out: list[Gain] = []
    for (title,), part in frame.filter(pl.col("method") == LIKELY).group_by("data", maintain_order=True):
        found = {f"{row[key]}": row[OVER] for row in part.to_dicts() if row[OVER] is not None}
        out += Gain.of(f"error of count queries, {title}", found, LOSES)
    return tuple(out)


@SAID("1DLD and CLD have no result where they have no table; SWEEP has one everywhere.")
def _no_result(frame: pl.DataFrame) -> Answer:
    rows = [row for row in frame.to_dicts() if row["error"] is None]
    empty = {name: [f"{row['data']} {row['requirement']}" for row in rows if row["method"] == name] for name in PAPERS}
    words = ", ".join(
        f"{method} has no table for {len(places)}" + (f" ({listed(places)})" if places else "")
        for method, places in empty.items()
    )
    total = frame.filter(pl.col("method") == SWEEP).height
    return judged([not empty[SWEEP], bool(empty[ONE_D]), bool(empty[CLD])], f"Of {total} requirements {words}")


SAID(
    "A random query of three dimensions on Adult at (0.3, 5), 1,437 in the original, gets 1,502 from SWEEP, 1,672 from "
    "1DLD and 1,744 from CLD: SWEEP is nearest, CLD farthest."
)(lambda example: example)


def _example(bench: Bench) -> tuple[Answer, pl.DataFrame]:
    """The query whose true count is nearest to the paper's, and the order over all queries of three dimensions.

    A condition that asks for the root is met by everybody, so such queries are not taken as the example.
    """
    name, (tau, l) = "adult", CHOSEN["adult"]
    asked, data = workload(bench, name), dataset(bench, name)
    found = {method: estimates(bench, name, method, tau, l) for method in (*PAPERS, LIKELY)}
    actual = asked.actual[3]
    if not len(actual):
        return judged([], "No record meets a query of three dimensions"), pl.DataFrame({"table": [], "count": []})
    wanted = EXAMPLE[0] * data.coded.n / 45_222
    real = np.ones(len(actual), bool)
    for column, node in zip(asked.queries[3].columns, asked.queries[3].asked.T, strict=True):
        root = asked.members[column].sum(axis=1) == asked.members[column].shape[1]
        real &= (node < 0) | ~root[node]
    place = int(np.argmin(np.where(real, np.abs(actual - wanted), np.inf)))
    given = {method: one[3] for method, one in found.items() if one is not None}
    words = _conditions(bench, name, asked.queries[3].asked[place])
    shown = pl.DataFrame(
        [{"table": "original", "count": float(actual[place]), "query": words}]
        + [{"table": method, "count": float(one[place]), "query": words} for method, one in given.items()]
    )
    texts = [f"{method} {one[place]:,.0f}" for method, one in given.items()]
    outcomes, shares = [], []
    for near, far in ((SWEEP, ONE_D), (ONE_D, CLD)):
        if near in given and far in given:
            a, b = np.abs(given[near] - actual), np.abs(given[far] - actual)
            outcomes += [bool(a[place] < b[place]), bool(np.mean(a < b) > np.mean(a > b))]
            shares.append(f"{near} is nearer than {far} in {np.mean(a < b):.0%} and farther in {np.mean(a > b):.0%}")
    return judged(
        outcomes,
        f"The query nearest to that count ({words}) has {actual[place]:,.0f} in the original and {', '.join(texts)}; "
        f"of all {len(actual)} queries of three dimensions {'; '.join(shares)}",
    ), shown


def _conditions(bench: Bench, name: str, query: NDArray[np.int64]) -> str:
    data = dataset(bench, name)
    columns = (data.sensitive, *data.quasi_identifiers)
    return ", ".join(
        f"{column} = {tree_of(data.hierarchies[column]).nodes.labels[node]}"
        for column, node in zip(columns, query.tolist(), strict=True)
        if node >= 0
    )


SAID(
    "The errors of all three grow as the requirement gets stronger.",
    Along(
        "requirement", "error", ("method", "data"), error="error, standard error", sort=False,
        where=pl.col("method").is_in(PAPERS),
    ),
)  # fmt: skip


# ------------------------------------------------------------------ figure 20

DIMENSIONS_SAID = Claims()
best = sweep_best("dimensions")
DIMENSIONS_SAID(
    "SWEEP has less error than 1DLD and CLD for every number of dimensions above one.",
    replace(best, where=best.where & (pl.col("dimensions") > 1)),  # type: ignore[operator]
)


@DIMENSIONS_SAID("That is because it may generalise secrets and so generalises quasi-identifiers less than the others.")
def _reason(bench: Bench) -> Answer:
    """Information that is left in quasi-identifiers: more in SWEEP's table than in the others."""
    outcomes, words = [], []
    for name, (tau, l) in CHOSEN.items():
        found = {method: release_of(bench, name, method, tau, l) for method in PAPERS}
        kept = {method: one.utility for method, one in found.items() if one is not None}
        for other in (ONE_D, CLD):
            if SWEEP in kept and other in kept:
                outcomes.append((kept[SWEEP].quasi or 0) > (kept[other].quasi or 0))
        if SWEEP in kept:
            outcomes.append((kept[SWEEP].sensitive or 0) < 1)
        words.append(
            f"{dataset(bench, name).title} {label(tau, l)}: "
            + ", ".join(f"{method} {one.quasi or 0:.3f} and {one.sensitive or 0:.4f}" for method, one in kept.items())
        )
    return judged(outcomes, f"Information left in quasi-identifiers and in secrets: {'; '.join(words)}")


DIMENSIONS_SAID(
    "With one dimension SWEEP is worse, because it generalises secrets and the others do not.",
    Compare(
        (ONE_D, CLD), "below", SWEEP, "error", ("panel",), "method", "error, standard error",
        where=pl.col("dimensions") == 1,
    ),
)  # fmt: skip


@DIMENSIONS_SAID("With one dimension the differences between the three are very small.")
def _small(frame: pl.DataFrame) -> Answer:
    known = pl.col("error").is_not_null() & pl.col("method").is_in(PAPERS)
    one = frame.filter(pl.col("dimensions") == 1, known).filter((pl.col("method") == SWEEP).any().over("panel"))
    spans = one.group_by("panel", maintain_order=True).agg(span=pl.col("error").max() - pl.col("error").min())
    return answer_from(
        spans, Check(pl.col("span") < ALMOST, ("panel",), ("span",), note=f"very small: below {ALMOST:g}")
    )


def _dimensions(bench: Bench) -> Result:
    rows: list[dict[str, Any]] = []
    for name, (tau, l) in bench.each(CHOSEN.items(), lambda one: one[0]):
        found = {method: errors(bench, name, method, tau, l) for method in LINES}
        for method, one in found.items():
            for s in workload(bench, name).queries:
                mine, sweeps = (None if given is None else given[s] for given in (one, found[SWEEP]))
                rows.append(
                    row_of(bench, name, method, tau, l) | {"dimensions": s} | compared(mine, sweeps)
                    | {"queries": None if mine is None else len(mine)}
                )  # fmt: skip
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(panel=pl.format("{} {}", "data", "requirement"))
    places = pl.format("{} dimensions", "dimensions")
    picture = draw.lines(
        frame, x="dimensions", y="error", series="method", panel="panel", order=LINES, ours=OURS,
        columns=2, log_y=True, shared_y=False, size=(330, 230), x_title="dimensions (conditions)",
        title="Figure 20. Count queries: error against the number of dimensions", y_title="average relative error",
        error="error, standard error", note=ZERO_NOTE,
    )  # fmt: skip
    notes = (LEFT_OUT, DRAWN, EVEN)
    sheets = {"": frame, "queries": drawn_sheet(bench)}
    answers = DIMENSIONS_SAID.answered(frame=frame, bench=bench)
    own = gains(frame.with_columns(place=places), "place")
    return Result(sheets, {"": picture}, answers, OURS, parameters(bench), notes, own)


FIGURES = (
    Figure("19", "count queries against the requirement", SAID, _strength, BOTH),
    Figure("20", "count queries against the number of dimensions", DIMENSIONS_SAID, _dimensions, BOTH),
)
