"""Figure 6: how long a cross tabulation takes to reconstruct, against l and the number of attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb, prod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.estimators import ESTIMATORS, follow
from noren.estimates.counts.frame import prepare
from noren.metrics.distances import l1_loss
from noren_papers import draw
from noren_papers.base import Bench, Figure, Gain, Result
from noren_papers.claims import Answer, Below, Trend, answer
from noren_papers.relations import span
from noren_papers.sensitive_qids import errors, methods, tables
from noren_papers.sensitive_qids.errors import OURS, PROPOSAL, RATING, VALUE_ADDING
from noren_papers.sensitive_qids.tables import Coded
from noren_papers.sensitive_qids.times import MACHINE, clocked
from noren_papers.standins import census68

FACTORED = "Proposal in product form (ours)"
TEN_MINUTES = 600.0
MOST_STEPS = 20_000
SHORT = 0.5  # seconds: what is over sooner is timed again
CLAIMS = {
    "slower": "Reconstructing takes longer with the proposal than with ValueAdding or Rating.",
    "ten-minutes": "Even with four attributes the proposal takes less than ten minutes on average, on both data sets.",
    "grows": "Reconstruction takes longer for more attributes.",
}


def figure_6(bench: Bench) -> Result:
    every, part = bench.pick(census68.ROWS, 20_000), bench.pick(250_000, 5_000)
    levels = bench.pick((2, 5, 10), (2, 5))
    limit = bench.pick(1_200, 400)
    many = bench.pick({1: 3, 2: 3, 3: 3, 4: 4}, {1: 1, 2: 1, 3: 1, 4: 1})
    queries, census = errors.on_census(bench, many, limit, every)
    adult = tables.adult(bench, bench.pick(None, 5_000))
    on_adult = errors.choices(bench, adult.sizes, {4: bench.pick(2, 1)}, limit)
    short = Coded(census.name, part, {name: codes[:part] for name, codes in census.columns.items()}, census.values)
    free = errors.choices(bench, adult.sizes, {4: bench.pick(20, 1)}, prod(adult.sizes.values()))[4]
    bench.plan(len(levels) * (sum(map(len, queries.values())) + len(on_adult[4]) + 1) + 1)
    rows: list[dict[str, Any]] = []
    _timed(short, methods.diverse_designs(short, 3), 3, queries[4][0], (PROPOSAL, VALUE_ADDING, RATING, FACTORED, OURS))
    for table, asked, second in ((census, queries, short), (adult, on_adult, adult)):
        for level in levels:
            designs = methods.diverse_designs(table, level)
            for size, several in asked.items():
                for chosen in several:
                    base = {"table": table.name, "l": level, "q": size, "columns": " x ".join(chosen)}
                    found = _timed(table, designs, level, chosen, (PROPOSAL, VALUE_ADDING, RATING, FACTORED))
                    found += _timed(second, designs, level, chosen, (OURS,))
                    rows += [{**base, **one} for one in found]
                    bench.step(f"{table.name}, l = {level}, {size} attributes")
    unlimited: list[dict[str, Any]] = []
    for level in levels:
        designs = methods.diverse_designs(adult, level)
        for chosen in free:
            base = {"table": adult.name, "l": level, "q": 4, "columns": " x ".join(chosen)}
            unlimited += [{**base, **one} for one in _timed(adult, designs, level, chosen, (FACTORED,))]
        bench.step(f"Adult, any four attributes, l = {level}")
    large = tables.census(bench, bench.pick(("c01", "c02", "c04", "c08"), ("c05", "c10", "c12")), every)
    wide = _timed(large, methods.diverse_designs(large, 5), 5, list(large.columns), (FACTORED,))[0]
    bench.step(f"{wide['cells']:,} cells")
    sheet = pl.DataFrame(rows)
    any_size = _as_matrix(pl.DataFrame(unlimited), sheet.filter(pl.col("table") == adult.name))
    means = sheet.group_by("table", "records", "q", "l", "series", maintain_order=True).agg(
        pl.col("seconds", "wall seconds", "L1", "cells", "iterations").mean(),
        (pl.col("seconds").std() / pl.len().sqrt()).alias("standard error"),
    )
    return Result(
        {"": means, "choices": sheet, "any-size": any_size},
        {"": _picture(means, census.name)},
        _answers(means, any_size, limit),
        (FACTORED, OURS),
        {
            "l": list(levels),
            "records": {"Census shape": every, f"Census shape, {OURS}": part, "Adult": adult.n},
            "choices": errors.named_choices(queries),
            "choices on Adult": [" x ".join(names) for names in on_adult[4]],
            "choices on Adult of any size": [" x ".join(names) for names in free],
            "most cells of a choice": limit,
        },
        (
            MACHINE,
            f"The table is generated in the shape of the US Census. '{PROPOSAL}' multiplies by the matrix of "
            f"equation 26 as it stands, cells by cells, so choices have at most {limit:,} cells; '{FACTORED}' is the "
            "same iteration with the matrix as a product over the attributes, and gives the same table. Both follow "
            "the path of plain steps in leaps; step by step the equation would be applied up to hundreds of thousands "
            "of times, and times would be that much longer.",
            f"The limit keeps {_within(census68.DOMAINS, limit):.0%} of all choices of four attributes of the Census "
            f"shape and {_within(adult.sizes, limit):.0%} of Adult's, the small ones; it also hides how time grows "
            "with the number of attributes. For ten minutes on average Adult is therefore asked for any four "
            "attributes as well, in product form; what the matrix would take is estimated from the steps and the "
            "squared number of cells.",
            "Rating's sets are of several sizes, which are counted apart one after the other: its time says more of "
            "this code than of the method.",
            f"'{OURS}' is timed on the first {part:,} records; all others on all. Counting which cells the records' "
            "sets contain is part of every time.",
            "That cross tabulations of more than three attributes are rare in practice is the paper's citation; it "
            "is not measured.",
        ),
        _gains(sheet),
        f"In product form {wide['cells']:,} cells at l = 5 take {wide['seconds']:.1f} s.",
    )


def _timed(
    table: Coded, designs: Mapping[str, DecoyDesign], level: int, names: Sequence[str], wanted: Sequence[str]
) -> list[dict[str, Any]]:
    """Seconds from published sets to the estimated table, for every method."""
    chosen = Coded(table.name, table.n, {n: table.columns[n] for n in names}, {n: table.values[n] for n in names})
    plans = {name: designs[name] for name in names}
    sets = methods.published(chosen, plans)
    groups = [methods.rated(chosen, name, level) for name in names] if RATING in wanted else []
    truth, out = chosen.truth(names), []
    for series in wanted:
        found: list[tuple[NDArray[np.float64], int]] = []

        def work(series: str = series, found: list[tuple[NDArray[np.float64], int]] = found) -> None:
            one = (methods.spread(groups), 0) if series == RATING else _estimate(sets, plans, names, series)
            found.append(one)

        spent, wall = clocked(work)
        if wall < SHORT:
            spent, wall = min((spent, wall), clocked(work, 2))
        counts, steps = found[0]
        out.append(
            {
                "series": series, "records": table.n, "cells": truth.size, "iterations": steps, "seconds": spent,
                "wall seconds": wall, "L1": l1_loss(counts, truth, True),
            }
        )  # fmt: skip
    return out


def _estimate(
    sets: Mapping[str, Any], plans: Mapping[str, DecoyDesign], names: Sequence[str], series: str
) -> tuple[NDArray[np.float64], int]:
    frame = prepare([Axis.drawn(name, sets[name], plans[name]) for name in names])
    if series == PROPOSAL:
        return as_written(frame.place(frame.inclusions()), [plans[name] for name in names], errors.EPS)
    estimator = {VALUE_ADDING: "value-adding", FACTORED: "bayes", OURS: "likelihood"}[series]
    fit = ESTIMATORS[estimator](frame, progress=None, eps=errors.EPS)
    return frame.place(fit.table), fit.iterations


def as_written(w: NDArray[np.float64], designs: Sequence[DecoyDesign], eps: float) -> tuple[NDArray[np.float64], int]:
    """Equations 19, 26 and 27 with the matrix of all cells by all cells."""
    delta = np.ones((1, 1))
    for design in designs:
        one = np.full((design.d, design.d), design.p_other)
        np.fill_diagonal(one, design.p_true)
        delta = np.kron(delta, one)
    flat = w.ravel()

    def step(x: NDArray[np.float64]) -> NDArray[np.float64]:
        expected = delta @ x
        ratio = np.divide(flat, expected, out=np.zeros_like(flat), where=expected > 0)
        return np.asarray(x * (delta.T @ ratio))

    found = follow(step, flat, eps, MOST_STEPS)
    divisor = float(prod(design.eta for design in designs))
    return (found.table / divisor).reshape(w.shape), found.evaluations


def _as_matrix(unlimited: pl.DataFrame, measured: pl.DataFrame) -> pl.DataFrame:
    """With the seconds that the matrix as it stands would take: so many for a step and a pair of cells."""
    work = pl.col("iterations") * pl.col("cells").cast(pl.Float64) ** 2
    known = measured.filter(pl.col("series") == PROPOSAL).select(pl.col("seconds").sum(), work.sum().alias("work"))
    rate = known["seconds"][0] / max(known["work"][0], 1.0)
    return unlimited.with_columns((work * rate).alias("seconds as a matrix, estimated"))


def _within(sizes: Mapping[str, int], limit: int) -> float:
    """The share of all choices of four attributes that have at most so many cells."""
    ways = Counter({(0, 1): 1})  # (columns chosen, cells): in how many ways
    for size in sizes.values():
        for (many, cells), number in list(ways.items()):
            if many < 4:
                ways[many + 1, cells * size] += number
    return sum(n for (many, cells), n in ways.items() if many == 4 and cells <= limit) / comb(len(sizes), 4)


def _answers(means: pl.DataFrame, any_size: pl.DataFrame, limit: int) -> dict[str, Answer]:
    at = {
        (row["table"], row["q"], row["l"], row["series"]): row["seconds"]
        for row in means.to_dicts()
        if row["series"] in (PROPOSAL, VALUE_ADDING, RATING, FACTORED)
    }
    points = list(dict.fromkeys(key[:3] for key in at))
    ratios = {(*p, rival): at[*p, PROPOSAL] / at[*p, rival] for p in points for rival in (VALUE_ADDING, RATING)}
    least = min(ratios, key=ratios.__getitem__)
    four = {
        table: [at[p[0], p[1], p[2], PROPOSAL] for p in points if p[0] == table and p[1] == 4] for table, _, _ in points
    }
    averages = {table: float(np.mean(found)) for table, found in four.items()}
    first = points[0][0]
    product, matrix = (
        float(any_size[name].to_numpy().mean()) for name in ("seconds", "seconds as a matrix, estimated")
    )
    sizes = sorted({p[1] for p in points if p[0] == first})
    by_size = {
        q: float(np.mean([at[*p, PROPOSAL] for p in points if p[0] == first and p[1] == q])) for q in sizes
    }  # fmt: skip
    return {
        "slower": answer(
            f"The proposal takes {span(list(ratios.values()))} times as long; least against {least[3]} on "
            f"{least[0]} at q' = {least[1]}, l = {least[2]}",
            Below([(at[*p, rival], at[*p, PROPOSAL]) for p in points for rival in (VALUE_ADDING, RATING)]),
        ),
        "ten-minutes": answer(
            f"Mean over l and choices of four attributes with at most {limit:,} cells: "
            + ", ".join(f"{table} {value:.2f} s" for table, value in averages.items())
            + f". Any four attributes of Adult, up to {max(any_size['cells'].to_list()):,} cells: {product:.2f} s in "
            f"product form, which is what is compared; the matrix as it stands would take an estimated {matrix:.0f} s",
            Below([(value, TEN_MINUTES) for value in (*averages.values(), product)]),
        ),
        "grows": answer(
            f"Mean seconds of the proposal on {first} for q' = {', '.join(map(str, sizes))}: "
            + ", ".join(f"{by_size[q]:.3g}" for q in sizes),
            Trend([by_size[q] for q in sizes]),
        ),
    }


def _gains(sheet: pl.DataFrame) -> tuple[Gain, ...]:
    """The same iteration in product form; and the likelihood, which reads whole sets and not their counts."""
    wide = sheet.pivot(on="series", index=["table", "q", "l", "columns"], values="seconds", aggregate_function="first")
    found = {f"{row['columns']}, l = {row['l']}": row[FACTORED] / row[PROPOSAL] for row in wide.to_dicts()}
    return Gain.of(
        "seconds to reconstruct, product form",
        found,
        "with few cells the matrix is small and preparing the axes costs more than it saves; not worth a second path",
    )


def _picture(means: pl.DataFrame, table: str) -> object:
    shown = means.filter(pl.col("table") == table).with_columns(
        ("q' = " + pl.col("q").cast(pl.String)).alias("panel")
    )  # fmt: skip
    order = [FACTORED, OURS, PROPOSAL, VALUE_ADDING, RATING]
    return draw.lines(
        shown, x="l", y="seconds", series="series", panel="panel", columns=4, ours=[FACTORED, OURS], order=order,
        log_y=True, y_title="reconstruction time, CPU s", size=(190, 190), error="standard error",
        title="Figure 6. Reconstruction time against l, for q' = 1 to 4",
        note=f"{table}. '{OURS}' on fewer records than the others: see the sheet.",
    )  # fmt: skip


FIGURE_6 = Figure("6", "Reconstruction time against l and q'", CLAIMS, figure_6, ("adult",))
