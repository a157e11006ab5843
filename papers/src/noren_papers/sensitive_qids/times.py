"""Figures 5 and 6: how long it takes to anonymise a table of the Census' size, and to reconstruct tables from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from noren import Policy, anonymize
from noren.designs import DecoyDesign
from noren.methods import Decoys
from noren.models import FrequencyLDiversity
from noren_papers import draw
from noren_papers.base import Bench, Figure, Gain, Result, clocked
from noren_papers.claims import Claims
from noren_papers.relations import Compare
from noren_papers.sensitive_qids import methods, tables
from noren_papers.sensitive_qids.errors import PROPOSAL, RATING, VALUE_ADDING
from noren_papers.sensitive_qids.tables import Coded
from noren_papers.standins import census68

DRAWN = "masks and keystream (ours)"
PIPELINE = "whole pipeline, verified (ours)"
LEVEL = 5
SMALLER = 5
"""How many times fewer records show whether the time of a record depends on the others."""
PART, WHOLE = pl.col("part"), pl.col("whole") & (pl.col("l") == LEVEL)
SAID_5 = Claims()
SAID_5(
    "The proposal and ValueAdding anonymise faster than Rating.",
    Compare(
        DRAWN, "below", RATING, "seconds", ("l",), where=PART,
        note="decoys and groups by compiled code both: like is compared with like",
    ),
)  # fmt: skip
SAID_5(
    "Rating takes longer because it looks at other records for every record; the proposal treats each alone.",
    Compare(PROPOSAL, "alike", 1.0, "growth", (), note=f"time of a record among {SMALLER} times as many"),
    Compare(PROPOSAL, "below", RATING, "growth", ()),
    of="growth",
)
SAID_5(
    "The proposal and ValueAdding take almost the same time, because they publish the same sets.",
    Compare(PROPOSAL, "alike", VALUE_ADDING, "seconds", ("l",), where=PART, note="two runs of the same drawing"),
)
SAID_5(
    "Two million records with 68 attributes are anonymised within several tens of seconds.",
    Compare(
        (PROPOSAL, DRAWN), "below", 100.0, "seconds", ("l",), where=WHOLE,
        note="several tens: below 100 s, on another machine than the paper's",
    ),
)  # fmt: skip
MACHINE = (
    "Times are CPU seconds of all threads, so that other work on the machine does not count; seconds by the clock "
    "stand in the sheet. The paper's machine differs: compare ratios within the figure."
)


def figure_5(bench: Bench) -> Result:
    every = bench.pick(census68.ROWS, 30_000)
    part = bench.pick(250_000, 10_000)
    levels = bench.pick((2, 5, 10), (2, 5))
    whole = tables.census(bench, list(census68.DOMAINS), every)
    table = _beginning(whole, part)
    _warm(whole)
    rows: list[dict[str, Any]] = []

    def clock(series: str, level: int, on: Coded, work: Callable[[], object]) -> None:
        spent, wall = clocked(work, 2 if on.n <= part else 1)
        place = {"l": level, "series": series, "records": on.n, "attributes": len(on.columns)}
        rows.append({**place, "seconds": spent, "wall seconds": wall})

    for level in bench.each(levels, lambda one: f"l = {one}"):
        designs = methods.diverse_designs(whole, level)
        clock(PROPOSAL, level, table, lambda d=designs: textbook(table, d, 1))  # type: ignore[misc]
        clock(VALUE_ADDING, level, table, lambda d=designs: textbook(table, d, 2))  # type: ignore[misc]
        clock(RATING, level, table, lambda k=level: [methods.rated(table, name, k) for name in table.columns])  # type: ignore[misc]
        clock(DRAWN, level, table, lambda d=designs: methods.published(table, d))  # type: ignore[misc]
        clock(DRAWN, level, whole, lambda d=designs: methods.published(whole, d))  # type: ignore[misc]
    small = _beginning(whole, part // SMALLER)
    clock(PROPOSAL, LEVEL, small, lambda: textbook(small, methods.diverse_designs(whole, LEVEL), 4))
    clock(RATING, LEVEL, small, lambda: [methods.rated(small, name, LEVEL) for name in small.columns])
    clock(PROPOSAL, LEVEL, whole, lambda: textbook(whole, methods.diverse_designs(whole, LEVEL), 3))
    frame = _as_text(table)
    clock(PIPELINE, LEVEL, table, lambda: _pipeline(table, frame))
    sheet = pl.DataFrame(rows)
    judged = sheet.with_columns(part=pl.col("records") == part, whole=pl.col("records") == every)
    return Result(
        {"": sheet},
        {"": _picture_5(sheet.filter(pl.col("records") >= part))},
        SAID_5.answered(frame=judged, growth=_growth(sheet, part)),
        (DRAWN, PIPELINE),
        {
            "l": list(levels),
            "records": [part, every],
            "attributes": len(whole.columns),
            "pipeline and full length at l": LEVEL,
        },
        (
            MACHINE,
            f"The table is generated: 68 columns of 2 to 18 values. Lines over l are measured on its first {part:,} "
            f"records; at all {every:,} the proposal is measured at l = {LEVEL} only. Nothing is scaled up.",
            "Proposal and ValueAdding are the paper's algorithm in NumPy (random keys and a partition for every "
            "cell), run twice. Rating is the library's compiled grouping, one column after the other. Ours are "
            "codes to sets in memory: one draw from an AES keystream picks one of the precomputed masks, on all "
            "cores.",
            "The whole pipeline reads text, decides, draws, shuffles and verifies the release in memory; columns of "
            "two values pass as they are, as the paper's rule has it.",
        ),
        _gains_5(sheet, every),
    )


def textbook(table: Coded, designs: Mapping[str, DecoyDesign], seed: int) -> dict[str, Any]:
    """The paper's anonymisation as one writes it in NumPy: a random key for every value, the least ones win."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, design in designs.items():
        codes = table.columns[name]
        keys = rng.random((len(codes), design.d), np.float32)
        keys[np.arange(len(codes)), codes] = -1
        out[name] = np.argpartition(keys, design.eta - 1, axis=1)[:, : design.eta].astype(np.uint8)
    return out


def _beginning(table: Coded, rows: int) -> Coded:
    columns = {name: np.ascontiguousarray(codes[:rows]) for name, codes in table.columns.items()}
    return Coded(table.name, rows, columns, table.values)


def _warm(table: Coded) -> None:
    """What is compiled or loaded on first use must not be timed."""
    small = _beginning(table, 2_000)
    methods.published(small, methods.diverse_designs(small, 3))
    methods.rated(small, "c01", 3)
    few = Coded(small.name, small.n, {"c01": small.columns["c01"]}, {"c01": small.values["c01"]})
    _pipeline(few, _as_text(few))


def _as_text(table: Coded) -> pl.DataFrame:
    return pl.DataFrame({name: pl.Series(codes).cast(pl.String) for name, codes in table.columns.items()})


def _pipeline(table: Coded, frame: pl.DataFrame) -> object:
    from noren.schema.column import plain, sensitive_quasi_identifier

    sizes = {name: methods.set_size(d, LEVEL) for name, d in table.sizes.items()}
    attributes = {name: sensitive_quasi_identifier() if size > 1 else plain() for name, size in sizes.items()}
    named = sorted({size for size in sizes.values() if size > 1})
    require = [FrequencyLDiversity(l=size, on=[n for n, s in sizes.items() if s == size]) for size in named]
    return anonymize(frame, Policy(dependence={"most": 1.0}, attributes=attributes, require=require, method=Decoys()))


def _at(sheet: pl.DataFrame, series: str, records: int) -> dict[int, float]:
    kept = sheet.filter((pl.col("series") == series) & (pl.col("records") == records))
    return dict(zip(kept["l"].to_list(), kept["seconds"].to_list(), strict=True))


def _growth(sheet: pl.DataFrame, part: int) -> pl.DataFrame:
    """How many times as long a record takes among so many more."""
    rows = []
    for series in (PROPOSAL, RATING):
        few, many = (_at(sheet, series, size)[LEVEL] / size for size in (part // SMALLER, part))
        rows.append({"series": series, "growth": many / few})
    return pl.DataFrame(rows)


def _gains_5(sheet: pl.DataFrame, every: int) -> tuple[Gain, ...]:
    """The library's drawing over the algorithm in NumPy, on all records."""
    ours, theirs = (_at(sheet, series, every)[LEVEL] for series in (DRAWN, PROPOSAL))
    return Gain.of("seconds to draw all sets", {f"l = {LEVEL}, {every:,} records": ours / theirs}, "not explained")


def _picture_5(sheet: pl.DataFrame) -> object:
    shown = sheet.with_columns((pl.col("records").map_elements(lambda n: f"{n:,} records", pl.String)).alias("panel"))
    return draw.lines(
        shown, x="l", y="seconds", series="series", panel="panel", columns=2, x_title="l", ours=[DRAWN, PIPELINE],
        order=[DRAWN, PIPELINE, PROPOSAL, VALUE_ADDING, RATING], log_y=True, y_title="anonymisation time, CPU s",
        title="Figure 5. Time to anonymise the whole table", size=(300, 220),
        note="Shape of the US Census, 68 attributes.",
    )  # fmt: skip


FIGURE_5 = Figure("5", "Time to anonymise the whole table", SAID_5, figure_5)
