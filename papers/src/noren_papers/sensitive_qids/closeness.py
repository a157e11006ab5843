"""Figures 3 and 4: distances against t, and what Algorithm 1 as printed does to the guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Figure, Result
from noren_papers.claims import Answer, Claims, judged
from noren_papers.relations import span
from noren_papers.sensitive_qids import algorithm1, errors, methods, tables
from noren_papers.sensitive_qids.errors import (
    OURS,
    PRINTED,
    PROPOSAL,
    RANDOM,
    VALUE_ADDING,
    Measured,
    half_of_random,
    proposal_along,
    than,
)
from noren_papers.sensitive_qids.tables import Coded

SERIES = (OURS, PROPOSAL, PRINTED, VALUE_ADDING, RANDOM)
SAFE = "safe search (ours)"
AS_PRINTED = "Algorithm 1 as printed"
TS = (0.1, 0.2, 0.3, 0.4, 0.5)
SEARCH_NOTE = (
    "All lines but one use the largest p that keeps every set within t (equal distances between values). Algorithm "
    f"1 as printed stores a p for every single set and takes the one of least expected error; the line '{PRINTED}' "
    "uses it to show what the paper may have measured, and does not have the protection that t names."
)


def figure_3(bench: Bench) -> Result:
    table, limit = tables.adult(bench, bench.pick(None, 5_000)), bench.pick(4_000, 1_000)
    many = bench.pick({1: 15, 2: 7, 3: 5, 4: 4}, {1: 4, 2: 2, 3: 1, 4: 1})
    note = f"Numbers are cut into classes: {tables.BINS}. Other columns keep their values."
    return _figure(bench, "3", table, errors.choices(bench, table.sizes, many, limit), limit, note)


def figure_4(bench: Bench) -> Result:
    limit, many = bench.pick(2_000, 600), bench.pick({1: 10, 2: 5, 3: 3, 4: 3}, {1: 3, 2: 1, 3: 1, 4: 1})
    queries, table = errors.on_census(bench, many, limit, bench.pick(250_000, 20_000))
    note = (
        f"The table is generated in the shape of the US Census (2,458,285 records, 68 columns of 2 to 18 values); "
        f"distances use its first {table.n:,} records."
    )
    return _figure(bench, "4", table, queries, limit, note)


def _figure(bench: Bench, number: str, table: Coded, queries: errors.Queries, limit: int, note: str) -> Result:
    ts = bench.pick(TS, (0.1, 0.5))
    settings = []
    for t in ts:
        printed = {name: algorithm1.printed_design(table.counts(name), t) for name in table.columns}
        settings.append(errors.Setting(t, methods.close_designs(table, t), printed=printed))
    few = bench.pick((0.1, 0.3, 0.5), (0.1, 0.5))
    found = Measured.of(bench, "t", table, queries, limit, settings, few)
    audit = audited(bench, table, settings)
    no_rating = "Rating has no form for closeness and is left out, as in the paper."
    return found.result(
        number,
        SERIES,
        SAID.answered(frame=found.means, audit=audit),
        (note, SEARCH_NOTE, errors.STOPPING, errors.UNITS, no_rating),
        own=(SAFE,),
        sheets={"algorithm-1": audit},
        pictures={"algorithm-1": _worst(number, audit)},
        parameters={"distance between values": "equal"},
    )


SAID = Claims()
SAID(
    "The proposal's distances are below those of ValueAdding and of Random.",
    than(PROPOSAL, "below", (VALUE_ADDING, RANDOM)),
)
SAID("The proposal's distances fall as t grows.", proposal_along(rising=False))
SAID(
    "The proposal's distances are small even at t = 0.1.",
    than(PROPOSAL, "much below", RANDOM, where=pl.col("x") == pl.col("x").min().over("metric", "q")),
)
SAID(
    "In L1 and L2 ValueAdding and Random come out alike.",
    than(VALUE_ADDING, "alike", RANDOM, where=pl.col("metric").is_in(["L1", "L2"])),
)
SAID(
    "For large t the L1 and L2 distances of ValueAdding are about half of Random's.",
    half_of_random((VALUE_ADDING,), smallest=False),
)
SAID(
    "Parameters are chosen for the L2 distance, yet L1 and Hellinger distances fall greatly too.",
    than(PROPOSAL, "much below", VALUE_ADDING, where=pl.col("metric").is_in(["L1", "Hellinger"])),
)


def audited(bench: Bench, table: Coded, settings: Sequence[errors.Setting]) -> pl.DataFrame:
    """For every attribute and t: what each search chose, its worst set, and how many published sets go beyond t."""
    rows: list[dict[str, Any]] = []
    for setting in bench.each(settings, lambda one: f"Algorithm 1 at t = {one.x:g}"):
        for series, designs in ((AS_PRINTED, setting.printed or {}), (SAFE, setting.designs)):
            sets = methods.published(table, designs)
            for name, design in designs.items():
                counts = table.counts(name)
                rows.append({
                    "t": setting.x, "series": series, "attribute": name, "values": design.d, "eta": design.eta,
                    "p": design.p, "epsilon": design.epsilon,
                    "worst distance": algorithm1.worst_distance(counts, design),
                    "sets beyond t": algorithm1.beyond(counts, design, sets[name].codes(design.eta), setting.x),
                })  # fmt: skip
    return pl.DataFrame(rows)


@SAID("Parameters chosen for the largest distance over all sets keep the release within t (Theorem 4).")
def guarantee(audit: pl.DataFrame) -> Answer:
    """Theorem 4 as the text above it has it: the largest distance over all sets is within t (but for rounding)."""
    printed = audit.filter(pl.col("series") == AS_PRINTED)
    safe = audit.filter(pl.col("series") == SAFE)
    kept = int((printed["worst distance"] <= printed["t"] + 1e-6).sum())
    worst = printed.sort(pl.col("worst distance") / pl.col("t"), descending=True).row(0, named=True)
    clear = printed.filter((pl.col("eta") == 1) & (pl.col("p") == 1.0)).height
    share = float(printed["sets beyond t"].to_numpy().mean())
    return judged(
        (safe["worst distance"] <= safe["t"] + 1e-6).to_list(),
        "The text asks for the largest distance over all sets to be within t; so read, p is "
        f"{span(safe['p'].to_list())}. The pseudo-code of Algorithm 1 takes the p of one set instead, and as printed "
        f"it keeps t in {kept} of {printed.height} cases: p = {span(printed['p'].to_list())}, the true values "
        f"themselves in {clear}, the worst set at {worst['worst distance']:.2f} where t = {worst['t']:g} was asked "
        f"({worst['attribute']}), on average {share:.0%} of the published sets beyond t",
    )


def _worst(number: str, audit: pl.DataFrame) -> object:
    distance = pl.col("worst distance")
    panels = {"worst attribute": distance.max(), "mean of attributes": distance.mean()}
    parts: list[Mapping[str, Any]] = []
    for here in audit.partition_by("t", maintain_order=True):
        t = here["t"][0]
        for series in (SAFE, AS_PRINTED):
            found = here.filter(pl.col("series") == series).select(**panels).row(0, named=True)
            parts += [{"t": t, "panel": panel, "series": series, "y": y} for panel, y in found.items()]
        parts += [{"t": t, "panel": panel, "series": "allowed", "y": t} for panel in panels]
    return draw.lines(
        pl.DataFrame(parts), x="t", y="y", series="series", panel="panel", columns=2, ours=[SAFE],
        title=f"Figure {number}, continued. Distance of the worst set from the overall distribution",
        y_title="worst distance", x_title="t", note="At most t is asked. Equal distances between values",
    )  # fmt: skip


FIGURE_3 = Figure("3", "Distances against t on Adult", SAID, figure_3, ("adult",))
FIGURE_4 = Figure("4", "Distances against t on a table in the shape of the US Census", SAID, figure_4)
