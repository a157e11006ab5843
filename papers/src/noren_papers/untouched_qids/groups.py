"""Figures 1 to 3: the error of a group's histogram on OCC and SAL, against what is asked and how much is hidden."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Result
from noren_papers.claims import Answer, Claims, Mean, answer, count_alike, count_below, paired
from noren_papers.relations import Along, Compare
from noren_papers.untouched_qids.methods import (
    EACH,
    METHODS_NOTE,
    OTHERS,
    OUR_SERIES,
    OURS_NOTE,
    PAPERS,
    PROPOSAL,
    SERIES,
    TP,
    codes_of,
    gains,
    measured,
)
from noren_papers.untouched_qids.tables import HISTOGRAM_NOTE, HOT_DECK, LATE_NOTE, OCC_NOTE, SAL_NOTE, Source, occ, sal
from noren_papers.untouched_qids.workload import questions

G, S, L = 3, 0.07, 10
LEVELS = (5, 7, 9, 10, 11, 13, 15)
SELECTIVITIES = (0.04, 0.06, 0.07, 0.08, 0.1)
SIZE = 600_000
CHART: Mapping[str, Any] = {
    "y": "mse", "series": "series", "panel": "data", "columns": 2, "log_y": True, "ours": OUR_SERIES, "order": SERIES,
    "error": "standard_error", "y_title": "MSE",
}  # fmt: skip
NOTES = (OCC_NOTE, SAL_NOTE, HISTOGRAM_NOTE, LATE_NOTE, METHODS_NOTE, OURS_NOTE)
FEWER = "The paper asks 1,000 questions a setting; here all methods answer the same {count}."


def _smallest(x: str, where: pl.Expr | None = None) -> Compare:
    """The other methods of the paper against the proposal, setting by setting, by the same questions."""
    return Compare(OTHERS, "above", PROPOSAL, "mse", ("data", x), each=EACH, where=where, note=HOT_DECK)


def _trend(x: str, *, rising: bool) -> Along:
    """Every method's error step by step; where the questions are the same, question by question."""
    papers, each = pl.col("series").is_in(PAPERS), EACH if x == "l" else None
    return Along(x, "mse", ("series", "data"), rising, "standard_error", each, papers, HOT_DECK)


SAID_1, SAID_2, SAID_3 = Claims(), Claims(), Claims()
SAID_1(
    "With three quasi-identifiers, TP and the proposal have nearly the same MSE.",
    Compare(TP, "alike", PROPOSAL, "mse", ("data", "g"), each=EACH, where=pl.col("qids") == 3, note=HOT_DECK),
)
SAID_1(
    "With five and with seven quasi-identifiers, the proposal has the smallest MSE for every g.",
    _smallest("g", pl.col("qids") > 3),
)
SAID_2("The MSE grows with l.", _trend("l", rising=True))


@SAID_2("The proposal's error grows because records carry more random values, which makes the estimate harder.")
def _decoys_explain(frame: pl.DataFrame, sources: Sequence[Source]) -> Answer:
    """The growth that equation 9 of the later paper predicts for unbiased estimates from sets of l values."""
    pairs, words = [], []
    for source in sources:
        kept = frame.filter((pl.col("data") == source.name) & (pl.col("series") == PROPOSAL)).sort("l")
        kept = kept.filter(pl.col("mse").is_not_null())
        d, low, high = source.frame[source.secret].n_unique(), kept["l"][0], kept["l"][-1]
        predicted = _noise(d, high) / _noise(d, low)
        found, _ = paired(kept[EACH][-1], kept[EACH][0])
        pairs.append((found, predicted))
        words.append(
            f"{source.name}: {kept['mse'][-1] / kept['mse'][0]:.2f} times from l = {low} to {high}, {predicted:.2f} "
            "expected"
        )
    return answer(
        f"the same groups are asked at every l, so only the sets differ; {'; '.join(words)} from the variance of "
        "linear inversion (about: within 25%)",
        count_alike(pairs),
    )


def _noise(d: int, size: int) -> float:
    """Squared error of linear inversion from sets of `size` values, up to the number of records."""
    return (d - 1) ** 2 * size / (d * (d - size)) - (d - 1) / d


SAID_2("The proposal's MSE is below that of all other methods for every l.", _smallest("l"))
SAID_3("The MSE falls as s grows.", _trend("s", rising=False))


@SAID_3("The reason is that a larger s puts more records into the group, which makes the estimate easier.")
def _records_explain(frame: pl.DataFrame) -> Answer:
    claims, words = [], []
    for data in frame["data"].unique(maintain_order=True).to_list():
        kept = frame.filter((pl.col("data") == data) & (pl.col("series") == PROPOSAL)).sort("s")
        records = kept["mean_group"][-1] / kept["mean_group"][0]
        first, last = (Mean(kept["mse"][at], kept["standard_error"][at] or 0.0) for at in (0, -1))
        claims.append(count_below([(1.0, records), (last, first)]))
        words.append(
            f"{data}: groups {records:.2f} times as large, the proposal's MSE divided by {first.value / last.value:.2f}"
        )
    return answer(f"from the smallest s to the largest, {'; '.join(words)}", *claims)


SAID_3("The proposal's MSE is below that of all other methods for every s.", _smallest("s"))


def figure_1(bench: Bench) -> Result:
    sources = [whole.first(d) for d in (3, 5, 7) for whole in (occ(bench), sal(bench))]
    asked = {one.name: bench.pick(range(1, len(one.quasi)), range(1, len(one.quasi), 2)) for one in sources}
    settings = [(one, g) for one in sources for g in asked[one.name]]
    sheet, size = (
        pl.concat(
            _setting(bench, one, g, S, L, {"data": one.name, "qids": len(one.quasi), "g": g}, _count(bench))
            for one, g in bench.each(settings, lambda one: f"{one[0].name}, g = {one[1]}")
        ),
        _larger(bench),
    )
    return _result(
        bench, sheet, "g",
        draw.bars(
            sheet, x="g", title="Figure 1. MSE of a group's histogram against g, the quasi-identifiers asked about",
            note=f"l = {L}, s = {S}", step=13, **CHART,
        ),
        SAID_1.answered(frame=sheet),
        {"g": "1..d-1", "records of the second picture": list(_sizes(bench))},
        (
            FEWER.format(count=_count(bench)),
            "The second picture repeats OCC-5 and SAL-5 with g = 3 on tables of other sizes up to the paper's 600,000, "
            "their records drawn with replacement.",
        ),
        size,
    )  # fmt: skip


def figure_2(bench: Bench) -> Result:
    levels, many = bench.pick(LEVELS, (5, 10, 15)), bench.pick(250, 8)
    sources, sheet = _along(bench, "l", levels, lambda one, l: _setting(bench, one, G, S, l, {}, many))
    missing = sheet.filter(pl.col("mse").is_null())
    stopped = sorted({(row["data"], row["l"]) for row in missing.to_dicts()})
    note = (
        "TP, Anatomy and Mondrian cannot be run where the commonest sensitive value has more than 1/l of the records: "
        + "; ".join(f"{data} at l = {level}" for data, level in stopped)
        + "."
        if stopped
        else "Every method could be run at every l."
    )
    return _result(
        bench, sheet, "l",
        draw.bars(
            sheet, x="l", title="Figure 2. MSE of a group's histogram against l", step=10, **CHART,
            note=f"g = {G}, s = {S}; a method that cannot reach l has no point",
        ),
        SAID_2.answered(frame=sheet, sources=sources),
        {"l": list(levels), "questions": many},
        (note, FEWER.format(count=many)),
    )  # fmt: skip


def figure_3(bench: Bench) -> Result:
    values = bench.pick(SELECTIVITIES, (0.04, 0.07, 0.1))
    _, sheet = _along(bench, "s", values, lambda one, s: _setting(bench, one, G, s, L, {}, _count(bench)))
    return _result(
        bench, sheet, "s",
        draw.lines(
            sheet, x="s", title="Figure 3. MSE of a group's histogram against s", note=f"g = {G}, l = {L}",
            size=(280, 210), **CHART,
        ),
        SAID_3.answered(frame=sheet),
        {"s": list(values)},
        (FEWER.format(count=_count(bench)),),
    )  # fmt: skip


def _along(
    bench: Bench, x: str, values: Sequence[Any], setting: Callable[[Source, Any], pl.DataFrame]
) -> tuple[list[Source], pl.DataFrame]:
    """OCC-5 and SAL-5 at every value of x."""
    sources = [occ(bench).first(5), sal(bench).first(5)]
    settings = bench.each(product(sources, values), lambda one: f"{one[0].name}, {x} = {one[1]}")
    return sources, pl.concat(
        setting(one, value).select(pl.lit(one.name).alias("data"), pl.lit(value).alias(x), pl.all())
        for one, value in settings
    )


def _result(
    bench: Bench, sheet: pl.DataFrame, x: str, picture: Any, answers: dict[str, Answer], asked: dict[str, object],
    notes: tuple[str, ...], size: pl.DataFrame | None = None,
) -> Result:  # fmt: skip
    """What the three figures have in common. size: the sheet of tables of other sizes."""
    sheets = {"": sheet} | ({} if size is None else {"size": size})
    parameters = {"g": G, "s": S, "l": L, "questions": _count(bench), "stopping of equation 10": "1 record"}
    return Result(
        sheets={name: one.drop(EACH) for name, one in sheets.items()},
        pictures={"": picture} | ({} if size is None else {"size": _size_picture(size)}),
        answers=answers,
        gains=gains(sheet, ("data", x)),
        ours_series=OUR_SERIES,
        parameters=parameters | asked,
        notes=(*NOTES, *notes),
    )


# ---------------------------------------------------------------------- measuring


def _count(bench: Bench) -> int:
    return bench.pick(40, 5)


def _setting(
    bench: Bench, source: Source, g: int, s: float, l: int, keys: dict[str, object], count: int
) -> pl.DataFrame:
    """One setting, asked the same questions whatever l and whichever figure wants it; the first ones are the same for
    every number of them."""

    def make() -> pl.DataFrame:
        rng = np.random.default_rng([2015, g, round(1000 * s), *source.name.encode()])
        asked, _ = questions(codes_of(bench, source), source.quasi, g, s, count, rng)
        return measured(bench, source, l, asked, {})

    found = bench.shared(("untouched", "mse", source.name, source.origin, g, s, l, count, bench.quick), make)
    return found.select([pl.lit(value).alias(name) for name, value in keys.items()] + [pl.all()])


def _sizes(bench: Bench) -> tuple[int, ...]:
    return bench.pick((36_000, 145_000, SIZE), (2_000, 8_000))


def _larger(bench: Bench) -> pl.DataFrame:
    """OCC-5 and SAL-5 on tables of other sizes, up to the paper's."""
    out = []
    for whole in bench.each((occ(bench), sal(bench)), lambda one: f"{one.name}-5 at other sizes"):
        for records in _sizes(bench):
            one = whole.first(5).drawn(records, bench.rng(f"size {whole.name} {records}"))
            rng = np.random.default_rng([2015, *one.name.encode()])
            asked, _ = questions(codes_of(bench, one), one.quasi, G, S, bench.pick(20, 4), rng)
            out.append(measured(bench, one, L, asked, {"data": one.name, "records": records}))
    return pl.concat(out)


def _size_picture(size: pl.DataFrame) -> object:
    return draw.lines(
        size, x="records", title="Figure 1, continued. MSE against the number of records", log_x=True, size=(280, 210),
        note=f"g = {G}, l = {L}, s = {S}; records drawn with replacement", **CHART,
    )  # fmt: skip
