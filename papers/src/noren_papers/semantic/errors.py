"""Figures 11, 12 and 13: mean squared error of the combinations of Table 12 against d and against l."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from noren import anonymize
from noren.errors import NorenError, PolicyError
from noren.estimates.counts.estimators import equation_2
from noren.methods import Anatomy, Decoys
from noren_papers import draw
from noren_papers.base import Bench, Result, ratios
from noren_papers.claims import Answer, Claims, judged
from noren_papers.relations import Along, Compare, Kind
from noren_papers.semantic import material as tables
from noren_papers.semantic.combinations import (
    DUPLICATE,
    LE,
    ON_SIMPLE,
    OUR_SERIES,
    OURS,
    PAPER_SERIES,
    SERIES,
    SIMPLE,
    gains,
    made,
    measure,
    sheet_of,
    short,
)
from noren_papers.semantic.material import DEPTH, Material, diverse, parted, policy

Panels = dict[str, list[tuple[int, int]]]

KEYS = ("l", "d")
SMALL = 4
"""l d up to which l and d are called small."""
FIRST, FAR = pl.col("first"), pl.col("first") & (pl.col("d") > 1)
"""Settings once each, though several panels show them; and those at which distance matters."""


def than(one: str, kind: Kind, other: str | Sequence[str], where: pl.Expr = FIRST, **more: Any) -> Compare:
    """Two combinations at every setting."""
    return Compare(one, kind, other, "mse", KEYS, error="std_error", where=where, **more)


GROWS = Along("x", "mse", ("panel",), error="std_error", where=pl.col("series") == "Ex-Proposal", sort=False)
SAID_12, SAID_11, SAID_13 = Claims(), Claims(), Claims()


def _on_ranks(said: Claims) -> None:
    """What is said of incomes and of survey weights, which have an order."""
    rivals = (*DUPLICATE[1:], *SIMPLE)
    said("At every setting N-Proposal's error is small.", than("N-Proposal", "no worse", rivals, rival="least"))
    said(
        "While l and d are small, Ex-Proposal is no worse than N-Proposal.",
        than("Ex-Proposal", "no worse", "N-Proposal", FIRST & (pl.col("l") * pl.col("d") <= SMALL)),
    )
    said("Ex-Proposal's error grows with l and with d.", GROWS)
    _on_analysis(said, "N-Proposal")
    said(
        "Duplicate-processing is worth its trouble: N-Proposal errs less than Ex-Proposal.",
        than("N-Proposal", "below", "Ex-Proposal", FAR),
    )
    if said is SAID_11:
        said(
            "The simple algorithm's probabilities of choosing a decoy move away from equation 2 as l or d grows; "
            "duplicate-processing keeps them equal to it."
        )(_probabilities)
    said(
        "Without analysis the histogram is far off (panel a), because there are l times as many records.",
        than("N-Proposal", "much below", "N-Anonymity", pl.col("panel").str.starts_with("(a)")),
    )
    said("(l,e)-diversity cannot be used here: it needs a tree of values.")(_tree)


def _on_analysis(said: Claims, best: str) -> None:
    """What is said of the analyses of the same reports, and of the paper's best combination."""
    said(
        "The proposed analysis is worth its trouble: on the same reports its error is below that of the existing and "
        "of the simple analysis.",
        than("N-Proposal", "below", DUPLICATE[1:3], FAR),
        than("Ex-Proposal", "below", SIMPLE[1:], FAR),
    )
    rivals = (best.replace("Proposal", "Existing"), best.replace("Proposal", "Simple"), LE)
    said("It loses far less information than the existing algorithms do.", than(best, "much below", rivals, FAR))


def settings_of(sheet: pl.DataFrame) -> list[tuple[int, int]]:
    return sheet.select(KEYS).unique(maintain_order=True).rows()


def _probabilities(table: Material, sheet: pl.DataFrame) -> Answer:
    """Inclusion probabilities of both designs against equation 2."""
    simple: dict[tuple[int, int], float] = {}
    kept, linear = [], 0.0
    for l, d in settings_of(sheet):
        try:
            design = made(table, "simple", l, d)
            simple[l, d] = float(np.abs(design.inclusion().matrix - equation_2(design)).max())
            two = made(table, "duplicate-processing", l, d)
            found = two.inclusion().matrix
            kept.append(float(np.abs(found - equation_2(two)).max()) < 1e-9)
            linear = max(linear, float(np.abs(found - equation_2(design)).max()))
        except NorenError:
            continue
    apart = [value > 1e-6 for (l, d), value in simple.items() if l > 2 and d > 1]
    rising = []
    for axis in (0, 1):
        for (l, d), value in simple.items():
            after = simple.get((l + 1, d) if axis == 0 else (l, d + 1))
            if after is not None and l > 1 and (value > 1e-9 or after > 1e-9):
                rising.append(after > value)
    top = max(simple, key=lambda key: simple[key])
    return judged(
        [*kept, *apart, *rising],
        f"the simple algorithm is off equation 2 by up to {simple[top]:.3f} (at (l,d) = {top}), not at all at l = 2, "
        f"more at {sum(rising)} of {len(rising)} steps up; duplicate-processing keeps to it at {sum(kept)} of "
        f"{len(kept)} settings that it knows, if neighbours are counted on the circle; with distances as the text "
        f"defines them it is off by up to {linear:.3f}",
    )


def _tree(table: Material) -> Answer:
    """Ask the library for (l,e)-diversity on the ordered column."""
    said = "accepted"
    try:
        policy(table, "ordinal", parted(2, 1), Anatomy())
    except PolicyError as error:
        said = f"refused: {error.problems[0].message}"
    return judged(
        [said != "accepted"], f"a policy that asks for l = 2, e = 1 on these {table.size} ordered values is {said}"
    )


SAID_12("Here too Ex-Proposal's error grows with l and with d.", GROWS)


@SAID_12("Duplicate-processing cannot be used on schooling, which has no order, and so the result is poor.")
def _no_duplicate(table: Material, sheet: pl.DataFrame) -> Answer:
    refused = []
    for l, d in settings_of(sheet):
        if d == 1:  # all values are then equally far apart, and any order will do
            continue
        try:
            made(table, "duplicate-processing", l, d)
            refused.append(False)
        except NorenError:
            refused.append(True)
    kept = sheet.filter(pl.col("l") > 2, pl.col("d") > 1)
    line = list(ratios(kept, KEYS, "Ex-Proposal", "Ex-Simple", "mse").values())
    poor = [ratio for ratio in line if ratio > 1]
    told = f"; Ex-Proposal errs more than Ex-Simple, which only divides by l, at {len(poor)} of {len(line)} settings"
    return judged(
        [all(refused), *(ratio > 1 for ratio in line)],
        f"refused at {sum(refused)} of {len(refused)} settings with d > 1{told + ' with l > 2' if line else ''}",
    )


_on_analysis(SAID_12, "Ex-Proposal")


@SAID_12("(l,e)-diversity needs the whole table, so it is of no use where every person anonymises alone.")
def _alone(table: Material) -> Answer:
    """One record by itself: Anatomy has nobody to group it with, decoys need nobody."""
    person, done = table.frame().head(1), {}
    asked = {"(l,e)-diversity": (parted(2, DEPTH - 1), Anatomy()), "decoys": (diverse(2, 2), Decoys())}
    for name, (model, method) in asked.items():
        try:
            anonymize(person, policy(table, "tree", model, method))
            done[name] = "published"
        except NorenError as error:
            done[name] = f"refused ({short(error)})"
    return judged(
        [done["(l,e)-diversity"] != "published", done["decoys"] == "published"],
        "a single record, l = d = 2: " + ", ".join(f"{name} {said}" for name, said in done.items()),
    )


SAID_12(
    "In panel (b) Ex-Proposal errs more than (l,e)-diversity.",
    than(LE, "below", "Ex-Proposal", pl.col("panel").str.starts_with("(b)")),
)
SAID_12("There are settings at which the proposal beats (l,e)-diversity.", than("Ex-Proposal", "below", LE, some=True))
_on_ranks(SAID_11)
_on_ranks(SAID_13)


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
    return _figure(bench, "11", "income", tables.income, panels, SAID_11, bench.pick((20, 5), (2, 1)), notes)


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
        bench, "12", "Adult, education", tables.education, panels, SAID_12, bench.pick((20, 5), (2, 1)), notes
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
    return _figure(bench, "13", "Adult, fnlwgt", tables.weights, panels, SAID_13, bench.pick((10, 3), (2, 1)), notes)


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
    claims: Claims,
    repetitions: tuple[int, int],
    notes: tuple[str, ...],
) -> Result:
    table = load(bench)
    settings = list(dict.fromkeys(pair for pairs in panels.values() for pair in pairs))
    points = {}
    for l, d in bench.each(settings, "(l, d) = {}".format):
        rng = bench.rng(f"{l}/{d}")
        points[l, d] = measure(table, l, d, repetitions=repetitions[0], ours=repetitions[1], rng=rng)
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
    frame = sheet.with_columns(first=pl.struct("l", "d", "series").is_first_distinct())
    return Result(
        sheets={"": sheet},
        pictures={"": picture},
        answers=claims.answered(frame=frame, sheet=sheet, table=table),
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
        gains=gains(frame.filter(FIRST), KEYS, PAPER_SERIES, {OURS: FLAT_LOSES, ON_SIMPLE: SIMPLE_LOSES}),
    )


FLAT_LOSES = (
    "flat sets hide every value equally well and so tell less than simple ones; the likelihood on simple sets, in the "
    "next line, shows that the estimator is not what loses"
)
SIMPLE_LOSES = (
    "compared with the best of eight combinations, among them those on duplicate-processing's sets, which tell more"
)
