"""Figures 11, 12 and 13: mean squared error of the combinations of Table 12 against d and against l."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.semantic import material as tables
from noren_papers.semantic.combinations import DUPLICATE, ON_SIMPLE, OUR_SERIES, OURS, SERIES, measure
from noren_papers.semantic.error_answers import ANSWERS
from noren_papers.semantic.grid import Grid, sheet_of
from noren_papers.semantic.material import Material

Panels = dict[str, list[tuple[int, int]]]

ANALYSIS = {
    "analysis": "The proposed analysis is worth its trouble: on the same reports its error is below that of the "
    "existing and of the simple analysis.",
    "loss": "It loses far less information than the existing algorithms do.",
}
CLAIMS_11 = {
    "n-proposal": "At every setting N-Proposal's error is small.",
    "ex-small": "While l and d are small, Ex-Proposal is no worse than N-Proposal.",
    "ex-grows": "Ex-Proposal's error grows with l and with d.",
    **ANALYSIS,
    "duplicate": "Duplicate-processing is worth its trouble: N-Proposal errs less than Ex-Proposal.",
    "probabilities": "The simple algorithm's probabilities of choosing a decoy move away from equation 2 as l or d "
    "grows; duplicate-processing keeps them equal to it.",
    "anonymity": "Without analysis the histogram is far off (panel a), because there are l times as many records.",
    "tree": "(l,e)-diversity cannot be used here: it needs a tree of values.",
}
CLAIMS_12 = {
    "ex-grows": "Here too Ex-Proposal's error grows with l and with d.",
    "no-duplicate": "Duplicate-processing cannot be used on schooling, which has no order, and so the result is poor.",
    **ANALYSIS,
    "alone": "(l,e)-diversity needs the whole table, so it is of no use where every person anonymises alone.",
    "le-better": "In panel (b) Ex-Proposal errs more than (l,e)-diversity.",
    "le-not-always": "There are settings at which the proposal beats (l,e)-diversity.",
}
CLAIMS_13 = {key: CLAIMS_11[key] for key in CLAIMS_11 if key != "probabilities"}


def figure_11(bench: Bench) -> Result:
    panels = _panels(range(1, 8), range(2, 8), range(1, 5), range(2, 5))
    if bench.quick:
        panels = _panels((1, 2, 3, 4), (2, 3, 4), (1, 2, 3), (2, 3))
    notes = (
        "Incomes are generated: age, gender and income depend on each other as in a salary survey, 14 classes as in "
        "the paper.",
        "On 14 ranks every value has a set up to l d = 14; at l d = 14 the true counts are lost, under any design, "
        "and the analyses that would invert are left out. Duplicate-processing needs F >= (l-1)(2d-1)+1.",
    )
    return _figure(bench, "11", "income", tables.income, panels, CLAIMS_11, bench.pick((20, 5), (2, 1)), notes)


def figure_12(bench: Bench) -> Result:
    panels = _panels(range(1, 5), range(2, 9), range(1, 4), range(2, 7))
    if bench.quick:
        panels = _panels((1, 2, 3, 4), (2, 3, 4), (1, 2, 3), (2, 3, 4))
    notes = (
        "The tree has four levels below its root and every node that the text names; the published ARX hierarchy "
        "has three and cannot stand in. Between values of one inner node the distance is that node's height above "
        "the leaves.",
        "LE: (l,e)-diversity by Anatomy with e = 5 - d, the depth at which values at distance d part; a group holds "
        "secrets of at least l subtrees. The library's stricter reading (no subtree above 1/l of a group) refuses l "
        "= 3 at d = 2.",
        "With d = 4 there are two classes: at l = 2 the true counts are lost. At d = 1 all values are equally far "
        "apart and duplicate-processing would run on any order; the sheet has those errors, the picture, like the "
        "paper, has not.",
    )
    return _figure(
        bench, "12", "Adult, education", tables.education, panels, CLAIMS_12, bench.pick((20, 5), (2, 1)), notes
    )


def figure_13(bench: Bench) -> Result:
    panels = _panels((1, 2, 3, 5, 10, 20, 30), (2, 3, 4, 6, 8, 10), (1, 2, 3, 5, 10, 20, 30), (2, 3, 4, 6, 8, 10))
    if bench.quick:
        panels = _panels((1, 2, 10), (2, 3), (1, 3, 10), (2, 3))
    classes, step = tables.weight_classes(bench)
    whose = "the paper's " if not bench.quick else ""
    notes = (
        f"fnlwgt falls into classes of {step:,}: from {step:,} to {(classes + 1) * step:,} these are {whose}{classes}. "
        "Values outside are put into the nearest class.",
        "An earlier form of the library's likelihood gave the population that predicts held-out records best; on "
        "cells as small as these it was up to twenty times worse than what is drawn here, the table's own counts with "
        "that population as prior. This figure is what showed it.",
    )
    return _figure(bench, "13", "Adult, fnlwgt", tables.weights, panels, CLAIMS_13, bench.pick((10, 3), (2, 1)), notes)


def _panels(a: Iterable[int], b: Iterable[int], c: Iterable[int], d: Iterable[int]) -> Panels:
    """The paper's four panels as lists of (l, d)."""
    return {
        "(a) l = 2, against d": [(2, x) for x in a],
        "(b) d = 2, against l": [(x, 2) for x in b],
        "(c) l = 3, against d": [(3, x) for x in c],
        "(d) d = 3, against l": [(x, 3) for x in d],
    }


def _figure(
    bench: Bench,
    number: str,
    name: str,
    load: Callable[[Bench], Material],
    panels: Panels,
    claims: dict[str, str],
    repetitions: tuple[int, int],
    notes: tuple[str, ...],
) -> Result:
    table = load(bench)
    settings = list(dict.fromkeys(pair for pairs in panels.values() for pair in pairs))
    bench.plan(len(settings))
    points = {}
    for l, d in settings:
        rng = bench.rng(f"{l}/{d}")
        points[l, d] = measure(table, l, d, repetitions=repetitions[0], ours=repetitions[1], rng=rng)
        bench.step(f"l = {l}, d = {d}")
    sheet = sheet_of(
        ({"panel": panel, "x": d if "against d" in panel else l, "l": l, "d": d}, point)
        for panel, pairs in panels.items()
        for l, d in pairs
        for point in points[l, d]
    )
    shown = sheet if table.hierarchy is None else sheet.filter(~pl.col("series").is_in(DUPLICATE))
    present = set(shown.filter(pl.col("mse").is_not_null())["series"])
    picture = draw.lines(
        shown, x="x", y="mse", series="series", panel="panel", columns=2, log_y=True, ours=OUR_SERIES,
        order=[series for series in SERIES if series in present], x_title="d or l", y_title="mean squared error",
        title=f"Figure {number}. Mean squared error, {name}", size=(300, 190),
        error="std_error", note="No point where a design does not exist or the true counts are lost.",
    )  # fmt: skip
    grid = Grid(table, panels, {pair: {p.series: p for p in found} for pair, found in points.items()})
    return Result(
        sheets={"": sheet},
        pictures={"": picture},
        answers={key: ANSWERS[key](grid) for key in claims},
        ours_series=OUR_SERIES,
        parameters={
            "records": table.records,
            "F": table.size,
            "cells": f"{len(table.slot_labels)} combinations of age class and gender, {table.size} values",
            "(l, d)": [f"({l},{d})" for l, d in settings],
            "draws of the paper's combinations": repetitions[0],
            "draws of ours": repetitions[1],
        },
        notes=(
            *notes,
            "Sets are drawn by the designs themselves and the paper's analyses computed from how often each value "
            "occurs, with the formulas of the estimators semantic-linear, uniform-linear and share; every histogram "
            "of age and gender is solved on its own.",
        ),
        gains=_gains(grid),
    )


def _gains(grid: Grid) -> tuple[Gain, ...]:
    """Ours over the best of the paper's combinations, setting by setting."""
    out: list[Gain] = []
    for series, reason in ((OURS, FLAT_LOSES), (ON_SIMPLE, SIMPLE_LOSES)):
        ratios, settings = grid.against_best(series)
        found = {f"l = {l}, d = {d}": float(ratio) for (l, d), ratio in zip(settings, ratios, strict=True)}
        out += Gain.of(f"mean squared error, {series.removesuffix(' (ours)')}", found, reason)
    return tuple(out)


FLAT_LOSES = (
    "flat sets hide every value equally well and so tell less than simple ones; the likelihood on simple sets, in the "
    "next line, shows that the estimator is not what loses"
)
SIMPLE_LOSES = (
    "compared with the best of eight combinations, among them those on duplicate-processing's sets, which tell more"
)
