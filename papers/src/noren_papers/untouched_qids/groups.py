"""Figures 1 to 3: the error of a group's histogram on OCC and SAL, against what is asked and how much is hidden."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from noren_papers import draw
from noren_papers.base import Bench, Result
from noren_papers.claims import Alike, Answer, Below, Mean, Trend, answer, cannot, paired
from noren_papers.untouched_qids.methods import (
    EACH,
    METHODS_NOTE,
    MONDRIAN,
    OTHERS,
    OUR_SERIES,
    OURS,
    OURS_NOTE,
    PAPERS,
    PROPOSAL,
    SERIES,
    TP,
    against,
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
AS_MANY = (
    "All methods answer the same {count:,} questions a setting (1,000 in the paper), but '{ours}', which answers "
    "the first {few}; where it is compared, it is by these."
)

CLAIMS_1 = {
    "three": "With three quasi-identifiers, TP and the proposal have nearly the same MSE.",
    "smallest": "With five and with seven quasi-identifiers, the proposal has the smallest MSE for every g.",
}
CLAIMS_2 = {
    "grows": "The MSE grows with l.",
    "reason": "The proposal's error grows because records carry more random values, which makes the estimate harder.",
    "smallest": "The proposal's MSE is below that of all other methods for every l.",
}
CLAIMS_3 = {
    "falls": "The MSE falls as s grows.",
    "reason": "The reason is that a larger s puts more records into the group, which makes the estimate easier.",
    "smallest": "The proposal's MSE is below that of all other methods for every s.",
}


def figure_1(bench: Bench) -> Result:
    sources = [whole.first(d) for d in (3, 5, 7) for whole in (occ(bench), sal(bench))]
    asked = {one.name: bench.pick(range(1, len(one.quasi)), range(1, len(one.quasi), 2)) for one in sources}
    bench.plan(sum(map(len, asked.values())) + 2)
    sheets = []
    for one in sources:
        for g in asked[one.name]:
            sheets.append(_setting(bench, one, g, S, L, {"data": one.name, "qids": len(one.quasi), "g": g}))
            bench.step(f"{one.name}, g = {g}")
    sheet, size = pl.concat(sheets), _larger(bench)
    small = sheet.filter(pl.col("qids") == 3)
    three = answer(
        f"TP's MSE is {_range(_ratios(small, ('data', 'g'), TP))} times the proposal's on OCC-3 and SAL-3 (nearly the "
        f"same: within 25%). {HOT_DECK}",
        Alike(against(small, ("data", "g"), TP)),
    )
    return _result(
        bench, sheet, "g",
        draw.bars(
            sheet, x="g", title="Figure 1. MSE of a group's histogram against g, the quasi-identifiers asked about",
            note=f"l = {L}, s = {S}", step=13, **CHART,
        ),
        {"three": three, "smallest": _smallest(sheet.filter(pl.col("qids") > 3), ("data", "g"), size)},
        {"g": "1..d-1", "records of the second picture": list(_sizes(bench))},
        (
            FEWER.format(count=_count(bench)),
            "The second picture repeats OCC-5 and SAL-5 with g = 3 on tables of other sizes up to the paper's 600,000, "
            "their records drawn with replacement.",
        ),
        size,
    )  # fmt: skip


def figure_2(bench: Bench) -> Result:
    levels, many = bench.pick(LEVELS, (5, 10, 15)), _many(bench)
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
        {
            "grows": _trend(sheet, "l", rising=True), "reason": _decoys_explain(sheet, sources),
            "smallest": _smallest(sheet, ("data", "l")),
        },
        {"l": list(levels), "questions": many, "of ours": _count(bench)},
        (note, AS_MANY.format(count=many, few=_count(bench), ours=OURS)),
    )  # fmt: skip


def figure_3(bench: Bench) -> Result:
    values = bench.pick(SELECTIVITIES, (0.04, 0.07, 0.1))
    _, sheet = _along(bench, "s", values, lambda one, s: _setting(bench, one, G, s, L, {}))
    return _result(
        bench, sheet, "s",
        draw.lines(
            sheet, x="s", title="Figure 3. MSE of a group's histogram against s", note=f"g = {G}, l = {L}",
            size=(280, 210), **CHART,
        ),
        {
            "falls": _trend(sheet, "s", rising=False), "reason": _records_explain(sheet),
            "smallest": _smallest(sheet, ("data", "s")),
        },
        {"s": list(values)},
        (FEWER.format(count=_count(bench)),),
    )  # fmt: skip


def _along(
    bench: Bench, x: str, values: Sequence[Any], setting: Callable[[Source, Any], pl.DataFrame]
) -> tuple[list[Source], pl.DataFrame]:
    """OCC-5 and SAL-5 at every value of x."""
    sources = [occ(bench).first(5), sal(bench).first(5)]
    bench.plan(len(sources) * len(values))
    sheets = []
    for one in sources:
        for value in values:
            keys = [pl.lit(one.name).alias("data"), pl.lit(value).alias(x)]
            sheets.append(setting(one, value).select(*keys, pl.all()))
            bench.step(f"{one.name}, {x} = {value}")
    return sources, pl.concat(sheets)


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


def _many(bench: Bench) -> int:
    """As many as the paper asks: for methods whose answers are counted, not fitted."""
    return bench.pick(1_000, 8)


def _setting(
    bench: Bench, source: Source, g: int, s: float, l: int, keys: dict[str, object], many: int | None = None,
) -> pl.DataFrame:  # fmt: skip
    """One setting, asked the same questions whatever l and whichever figure wants it; the first ones are the same for
    every number of them."""
    count = _count(bench) if many is None else many

    def make() -> pl.DataFrame:
        rng = np.random.default_rng([2015, g, round(1000 * s), *source.name.encode()])
        asked, _ = questions(codes_of(bench, source), source.quasi, g, s, count, rng)
        return measured(bench, source, l, asked, {}, few=_count(bench))

    found = bench.shared(("untouched", "mse", source.name, source.origin, g, s, l, count, bench.quick), make)
    return found.select([pl.lit(value).alias(name) for name, value in keys.items()] + [pl.all()])


def _sizes(bench: Bench) -> tuple[int, ...]:
    return bench.pick((36_000, 145_000, SIZE), (2_000, 8_000))


def _larger(bench: Bench) -> pl.DataFrame:
    """OCC-5 and SAL-5 on tables of other sizes, up to the paper's."""
    out = []
    for whole in (occ(bench), sal(bench)):
        for records in _sizes(bench):
            one = whole.first(5).drawn(records, bench.rng(f"size {whole.name} {records}"))
            rng = np.random.default_rng([2015, *one.name.encode()])
            asked, _ = questions(codes_of(bench, one), one.quasi, G, S, bench.pick(20, 4), rng)
            out.append(measured(bench, one, L, asked, {"data": one.name, "records": records}))
        bench.step(f"{whole.name}-5 at other sizes")
    return pl.concat(out)


def _size_picture(size: pl.DataFrame) -> object:
    return draw.lines(
        size, x="records", title="Figure 1, continued. MSE against the number of records", log_x=True, size=(280, 210),
        note=f"g = {G}, l = {L}, s = {S}; records drawn with replacement", **CHART,
    )  # fmt: skip


# ---------------------------------------------------------------------- judging


def _range(ratios: Sequence[float]) -> str:
    return f"{min(ratios):.3g} to {max(ratios):.3g}" if ratios else "nowhere comparable to"


def _smallest(sheet: pl.DataFrame, keys: Sequence[str], size: pl.DataFrame | None = None) -> Answer:
    """The proposal against each other method of the paper, setting by setting, by the same questions."""
    words = []
    for name in OTHERS:
        parts = [
            f"{kind} {_range(found)} ({sum(r > 1 for r in found)} of {len(found)} above 1)"
            for kind in ("OCC", "SAL")
            if (found := _ratios(sheet.filter(pl.col("data").str.starts_with(kind)), keys, name))
        ]
        if parts:
            words.append(f"{name}'s MSE over the proposal's: {', '.join(parts)}")
    if not words:
        return cannot("no other method could be run in any of the 0 settings that all can do")
    sized = [f"{name} {_range(_ratios(sheet, keys, name, 'mse_true_total'))}" for name in (TP, MONDRIAN)]
    text = "; ".join(words) + f"; divided by the true group size instead: {', '.join(sized)} times"
    if size is not None:
        records = max(size["records"].to_list())
        largest = size.filter(pl.col("records") == records)
        at_most = [f"{name} {_range(_ratios(largest, ('data',), name))}" for name in OTHERS]
        text += f"; on OCC-5 and SAL-5 drawn to {records:,} records, g = {G}: {', '.join(at_most)} times"
    pairs = [(other, mine) for name in OTHERS for mine, other in against(sheet, keys, name)]
    return answer(f"{text}. {HOT_DECK}", Below(pairs))


def _ratios(sheet: pl.DataFrame, keys: Sequence[str], name: str, values: str = "mse") -> list[float]:
    """A method's error over the proposal's, in every setting that it could be run in."""
    wide = sheet.pivot(on="series", index=list(keys), values=values)
    if name not in wide.columns:
        return []
    return [float(value) for value in (wide[name] / wide[PROPOSAL]).drop_nulls()]


def _trend(sheet: pl.DataFrame, x: str, *, rising: bool) -> Answer:
    """Every method's error step by step; where the questions are the same, question by question."""
    claims, words = [], []
    for name in PAPERS:
        parts = []
        for data in sheet["data"].unique(maintain_order=True).to_list():
            kept = sheet.filter((pl.col("data") == data) & (pl.col("series") == name) & pl.col("mse").is_not_null())
            if kept.height < 2:
                continue
            kept = kept.sort(x)
            means = [Mean(mse, error or 0.0) for mse, error in kept.select("mse", "standard_error").iter_rows()]
            claims.append(Trend(kept[EACH].to_list() if x == "l" else means, rising))
            parts.append(
                f"{means[-1].value / means[0].value:.2f} times on {data} ({x} = {kept[x][0]} to {kept[x][-1]})"
            )
        if parts:
            words.append(f"{name} {', '.join(parts)}")
    return answer(f"from the smallest {x} to the largest the MSE becomes: {'; '.join(words)}. {HOT_DECK}", *claims)


def _decoys_explain(sheet: pl.DataFrame, sources: Sequence[Source]) -> Answer:
    """The growth that equation 9 of the later paper predicts for unbiased estimates from sets of l values."""
    pairs, words = [], []
    for source in sources:
        kept = sheet.filter((pl.col("data") == source.name) & (pl.col("series") == PROPOSAL)).sort("l")
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
        Alike(pairs),
    )


def _noise(d: int, size: int) -> float:
    """Squared error of linear inversion from sets of `size` values, up to the number of records."""
    return (d - 1) ** 2 * size / (d * (d - size)) - (d - 1) / d


def _records_explain(sheet: pl.DataFrame) -> Answer:
    claims, words = [], []
    for data in sheet["data"].unique(maintain_order=True).to_list():
        kept = sheet.filter((pl.col("data") == data) & (pl.col("series") == PROPOSAL)).sort("s")
        records = kept["mean_group"][-1] / kept["mean_group"][0]
        first, last = (Mean(kept["mse"][at], kept["standard_error"][at] or 0.0) for at in (0, -1))
        claims.append(Below([(1.0, records), (last, first)]))
        words.append(
            f"{data}: groups {records:.2f} times as large, the proposal's MSE divided by {first.value / last.value:.2f}"
        )
    return answer(f"from the smallest s to the largest, {'; '.join(words)}", *claims)
