"""Figures 9, 10 and 11: privacy, generalisation and left-out terms over l, c and t, for several sizes of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.claims import Claims
from noren_papers.quasi_sensitive.adult import (
    ONLY_GENERAL,
    ONLY_REMOVAL,
    QUASI,
    SIZES,
    Asked,
    Point,
    close,
    diverse,
    generalised,
    lab_of,
    line,
    named,
    nodes_for,
    one_step,
    two_phases,
    untouched_terms,
)
from noren_papers.quasi_sensitive.world import TERMS, drawing_note
from noren_papers.relations import Along, Check, Compare, Kind

Axis = Literal["l", "c", "t"]
BETTER = (2, 5, 10)
"""Sizes of groups that our search is shown for too."""
SHOWN = 5
"""The one that is drawn."""
ONE_STEP = "one step, as general as k = 5 (ours)"


@dataclass(frozen=True)
class Shape:
    """What runs along x in one figure."""

    number: str
    x: str
    values: tuple[float, ...]
    quick: tuple[float, ...]

    def asked(self, x: float) -> Asked:
        if self.number == "9":
            return diverse(1.0, int(x))
        return diverse(x, 60) if self.number == "10" else close(x**0.5)

    @property
    def steps(self) -> tuple[float, ...]:
        """Where one step instead of two is tried."""
        return (0.04, 0.16) if self.number == "11" else ()


SHAPES: Mapping[Axis, Shape] = {
    "l": Shape("9", "l", (10, 30, 60, 100), (10, 40)),
    "c": Shape("10", "c", (0.25, 0.5, 1, 2), (0.5, 2)),
    "t": Shape("11", "t^2", (0.01, 0.04, 0.09, 0.16, 0.25), (0.04, 0.16)),
}
TITLES: Mapping[Axis, str] = {
    "l": "privacy, generalisation and suppression against l, QS (c, l)-diversity",
    "c": "privacy, generalisation and suppression against c, QS (c, l)-diversity",
    "t": "privacy, generalisation and suppression against t^2, QS t-closeness",
}
K = pl.col("k")
THEIRS = pl.col("series").is_in([named(k) for k in SIZES])
LARGER = THEIRS & (K > 1)
REMOVAL, GENERAL = pl.col("series") == ONLY_REMOVAL, pl.col("series") == ONLY_GENERAL
CONTRAST = "QS (1, 30)-diversity, k = 2"
PLACE = ("series", "x")
ROUNDING = 1e-9


def _over_x(column: str, which: pl.Expr, most: bool = True) -> pl.Expr:
    """The largest or the smallest of some lines, beside every line of the same x."""
    found = pl.col(column).filter(which)
    return (found.max() if most else found.min()).over("x")


def _by_k(value: str, *, rising: bool, where: pl.Expr = THEIRS) -> Along:
    return Along("k", value, ("x",), rising, where=where)


def _than(one: str, kind: Kind, other: str | Sequence[str], **more: Any) -> Compare:
    return Compare(one, kind, other, "rise", ("x",), **more)


def _claims(strictness: str, *, stricter_upwards: bool) -> Claims:
    """What is said of all three figures."""
    said = Claims()
    said("The cost of left-out terms usually goes down when groups are larger.", _by_k("cost", rising=False))
    said(
        "Generalisation only leaves out no term and generalises most.",
        Check(
            (pl.col("cost") == 0) & (pl.col("size") > _over_x("size", THEIRS) - ROUNDING), PLACE, ("cost", "size"),
            where=GENERAL | THEIRS, only=GENERAL,
        ),
    )  # fmt: skip
    said(
        "Removal only (k = 1) leaves out most terms and generalises least.",
        Check(
            (pl.col("cost") > _over_x("cost", LARGER) - ROUNDING)
            & (pl.col("ncp") < _over_x("ncp", LARGER, most=False)),
            PLACE, ("cost", "ncp"), where=THEIRS, only=REMOVAL,
        ),
    )  # fmt: skip
    said(strictness, Along("x", "rise", ("series",), rising=not stricter_upwards, where=THEIRS))
    return said


def _diversity(strictness: str, *, stricter_upwards: bool) -> Claims:
    said = _claims(strictness, stricter_upwards=stricter_upwards)
    general = _over_x("rise", GENERAL)
    said(
        "Generalisation dominates: along x the belief change varies only slightly.",
        Check(
            pl.col("along x") < pl.col("over k, least"), ("k",), ("along x", "over k, least"),
            note="how far the mean belief change reaches along x, beside over k >= 2 at any x",
        ),
        of="spreads",
    )  # fmt: skip
    said(
        "Leaving out terms adds little privacy to generalisation.",
        Check(
            pl.col("rise") > 0.8 * pl.col("rise_before"), PLACE, ("rise", "rise_before"), where=LARGER,
            note="mean belief change after removal and of the same groups with all terms; little: more than 0.8 is "
            "left; k = 1 generalises nothing and is not counted",
        ),
    )  # fmt: skip
    said(
        "Two phases do not give clearly better privacy than generalisation only.",
        Check(
            pl.col("rise") > 0.8 * general, PLACE, ("rise",), where=LARGER | GENERAL, only=LARGER,
            note="clearly better would be less than 0.8 of it; k = 1 has one phase and is not counted",
        ),
    )  # fmt: skip
    said(
        "The bound c / (c + 1) on beliefs holds and is very weak.",
        Check(pl.col("belief") <= pl.col("bound") + ROUNDING, PLACE, ("belief", "bound"), where=THEIRS),
        Check(pl.col("rise") < pl.col("bound") / 2, PLACE, ("rise",), where=THEIRS, note="weak: below half of it"),
    )
    larger = [named(k) for k in SIZES if k > 1]
    said(
        "Removal only (k = 1) gives the best privacy.",
        _than(ONLY_REMOVAL, "below", larger, rival="least"),
        _than(ONLY_REMOVAL, "below", ONLY_GENERAL),
    )
    others = [named(k) for k in SIZES if k != 2]
    said("k = 2 gives the worst privacy.", _than(named(2), "above", others, rival="most"))
    said("From k = 2 on the belief change falls with k.", _by_k("rise", rising=False, where=LARGER))
    said(
        "With k = 1 most groups have a single record.",
        Check(pl.col("single") > 0.5, PLACE, ("single",), where=REMOVAL, note="share of groups with one record"),
    )
    said(
        "That is why k = 1 does well: one record's labels are all believed alike, merged records make beliefs uneven, "
        "and large groups even them out again.",
        Compare(ONLY_REMOVAL, "below", named(2), "uneven", ("x",)),
        _by_k("uneven", rising=False, where=LARGER),
    )
    return said


def _closeness() -> Claims:
    said = _claims("A smaller t means a smaller belief change.", stricter_upwards=False)
    said(
        "Generalisation no longer dominates: t matters as much as the size of groups.",
        Check(
            pl.col("along x") > 0.5 * pl.col("over k, most"), ("k",), ("along x", "over k, most"),
            note="how far the mean belief change reaches along t, beside over k >= 2 at any t; as much: above half",
        ),
        of="spreads",
    )  # fmt: skip
    said(
        "Closeness gives much better privacy than diversity.",
        _than(named(2), "much below", CONTRAST),
    )
    said(
        "Whatever k is, the privacy that is wanted can be reached by setting t.",
        Check(
            pl.col("highest") <= pl.col("x").sqrt() + ROUNDING, PLACE, ("highest", "rise"), where=THEIRS,
            note="in no group a belief rises by more than t, which the requirement itself implies",
        ),
    )  # fmt: skip
    general = {name: _over_x(name, GENERAL) for name in ("rise", "ncp")}
    first = pl.col("x") == pl.col("x").min()
    said(
        "Good privacy is reached without generalising fully.",
        Check(
            (pl.col("rise") <= general["rise"] + ROUNDING) & (pl.col("ncp") < general["ncp"]), PLACE, ("rise", "ncp"),
            where=first & (THEIRS | GENERAL), only=THEIRS,
            note="at the smallest t, belief change no larger than that of generalisation only, and NCP smaller",
        ),
    )  # fmt: skip
    said(
        "A smaller k keeps quasi-identifiers more precise, a larger k keeps more terms.",
        _by_k("ncp", rising=True),
        _by_k("share", rising=False),
    )
    return said


CLAIMS: Mapping[Axis, Claims] = {
    "l": _diversity("The mean belief change falls with l.", stricter_upwards=True),
    "c": _diversity("The mean belief change falls as c gets smaller.", stricter_upwards=False),
    "t": _closeness(),
}
PARTS = {"rise": "(a) mean belief change", "size": "(b) average group", "cost": "(c) cost of left-out terms"}


def points(bench: Bench, shape: Shape) -> pl.DataFrame:
    """One line for every x and way."""
    rows: list[Mapping[str, object]] = []
    for x in bench.each(bench.pick(shape.values, shape.quick), lambda one: f"{shape.x} = {one:g}"):
        asked = shape.asked(x)
        for k in bench.each(SIZES, "k = {}".format):
            rows.append(_line(named(k), x, two_phases(bench, asked, k, "adaptive"), k, "adaptive", bench, asked))
            if k in BETTER:
                rows.append(_line(ours(k), x, two_phases(bench, asked, k, "best"), k, "best", bench, asked))
        rows.append(_line(ONLY_GENERAL, x, generalised(bench, asked), None, "", bench, asked))
        if x in shape.steps:
            budget = untouched_terms(bench, asked, SHOWN)
            assert budget is not None
            rows.append(_line(ONE_STEP, x, one_step(bench, asked, budget.ncp), None, "best", bench, asked))
    return pl.DataFrame(rows, infer_schema_length=None)


def ours(k: int) -> str:
    return f"k = {k}, best search (ours)"


def _line(
    series: str, x: float, point: Point | None, k: int | None, search: str, bench: Bench, asked: Asked
) -> Mapping[str, object]:
    """With the belief change of the same groups before any term is left out."""
    before = None if k is None else untouched_terms(bench, asked, k)
    return line(series, x, point, k=k, search=search, rise_before=None if before is None else before.rise)


def judged(frame: pl.DataFrame, bench: Bench, axis: Axis) -> pl.DataFrame:
    """With the bound on beliefs, and beside closeness what diversity gives."""
    c = pl.col("x") if axis == "c" else pl.lit(1.0)
    bounded = frame.with_columns((c / (c + 1)).alias("bound"))
    if axis != "t":
        return bounded
    asked = diverse(1.0, 30)
    point = two_phases(bench, asked, 2, "adaptive")
    other = [_line(CONTRAST, x, point, None, "adaptive", bench, asked) for x in frame["x"].unique()]
    return pl.concat([bounded, pl.DataFrame(other)], how="diagonal_relaxed")


def spreads(frame: pl.DataFrame) -> pl.DataFrame:
    """How far the belief change reaches along x for every k >= 2, and over these k at any x."""
    reach = (pl.col("rise").max() - pl.col("rise").min()).alias("along x")
    kept = frame.filter(LARGER)
    over = kept.group_by("x").agg(reach)["along x"]
    return (
        kept.group_by("k", maintain_order=True)
        .agg(reach)
        .with_columns(pl.lit(over.min()).alias("over k, least"), pl.lit(over.max()).alias("over k, most"))
    )


def compute(bench: Bench, axis: Axis) -> Result:
    shape = SHAPES[axis]
    lab = lab_of(bench)
    frame = points(bench, shape)
    answers = CLAIMS[axis].answered(frame=judged(frame, bench, axis), spreads=spreads(frame))
    drawn = [named(k) for k in SIZES] + [ONLY_GENERAL, ours(SHOWN)] + ([ONE_STEP] if shape.steps else [])
    mine = [name for name in drawn if name.endswith("(ours)")]
    asked = {"l": "QS (1, l)-diversity", "c": "QS (c, 60)-diversity", "t": "QS t-closeness"}[axis]
    picture = draw.lines(
        _panels(frame, drawn), x="x", y="value", series="series", panel="panel", panels=list(PARTS.values()),
        columns=3, shared_y=False, ours=mine, order=drawn, x_title=shape.x, y_title="", size=(240, 210),
        error="error",
        title=f"Figure {shape.number}. Privacy, generalisation and suppression against {shape.x}",
        note=f"{asked}, {lab.table.n:,} records of Adult with {TERMS} terms each; two phases with the adaptive search "
        "unless another way is named.",
    )  # fmt: skip
    return Result(
        sheets={"": frame},
        pictures={"": picture},
        answers=answers,
        ours_series=tuple(mine),
        parameters={
            "records": lab.table.n, "terms a record": TERMS, "quasi-identifiers": list(QUASI), "k": list(SIZES),
            shape.x: list(bench.pick(shape.values, shape.quick)),
            **({"c": 1} if axis == "l" else {"l": 60} if axis == "c" else {}),
            "search nodes a group": ", ".join(f"{nodes_for(k):,} at k = {k}" for k in SIZES),
        },
        notes=(
            drawing_note(lab.world),
            "Privacy is, per group, the largest difference of posterior and prior belief over all labels (equation 1), "
            "averaged over groups; averaged over labels the signed differences would cancel. The sheet also has the "
            "mean over records and the maximum.",
            "Searches stop after a number of nodes instead of the paper's 10 s, so that a run can be repeated; groups "
            "are Mondrian's, the same for all settings of one k.",
            f"By other code than the search's, {int(frame['holds'].sum())} of {frame['holds'].count()} results satisfy "
            "their requirement in every group.",
            "Generalisation only is Mondrian with the requirement on terms as its condition for a cut.",
            f"The lines of our search for k = {', '.join(map(str, BETTER))} are in the sheet, one is drawn."
            + ("" if shape.steps else " One step instead of two is tried in figures 11 and 12, where it is quick."),
        ),
        gains=Gain.over(
            "cost of left-out terms, best over adaptive search", frame.filter(K.is_in(BETTER)), ("k", "x"), "best",
            "adaptive", "cost", series="search",
        ),
    )  # fmt: skip


def _panels(frame: pl.DataFrame, drawn: Sequence[str]) -> pl.DataFrame:
    kept = frame.filter(pl.col("series").is_in(list(drawn)))
    parts = [
        kept.select("x", "series", pl.lit(title).alias("panel"), value=name, error=f"{name}_error")
        for name, title in PARTS.items()
    ]
    return pl.concat(parts)
