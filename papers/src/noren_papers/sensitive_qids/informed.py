"""What somebody who knows public shares believes of sets of decoys, and the sets that bound it, beside Figure 1.

The paper's 1/l is the belief of somebody for whom all values are equally likely. Public shares here are those of one
year of Census-Income, the table is the next year.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.designs import DecoyDesign, InformedDesign
from noren.secret import Keystream
from noren_papers import draw
from noren_papers.base import Bench, Figure, Gain, Result
from noren_papers.claims import Claims
from noren_papers.relations import Along, Check
from noren_papers.sensitive_qids import errors
from noren_papers.sensitive_qids.errors import OURS
from noren_papers.sensitive_qids.tables import Coded

COLUMNS = (
    "race", "marital_stat", "class_of_worker", "major_occupation_code", "education", "country_of_birth_self"
)  # fmt: skip
LEVELS = (2, 3)
MOST_SETS = 20_000
"""So many sets of a design are listed one by one."""
UNIFORM, INFORMED, BOTH = "uniform decoys", "informed sets (ours)", "both requirements (ours)"
"""Sets of l values; those of least error within the bound; uniform sets so large that they keep the bound as well."""
Design = DecoyDesign | InformedDesign
KEYS = ("column", "l")
OF_DECOYS = pl.col("series") == UNIFORM
SHARES = "by somebody who knows the shares of the year before"
SAID = Claims()
SAID(
    "Whoever sees a published set believes no value of it with more than 1/l.",
    Check(pl.col("largest belief") <= 1 / pl.col("l") + 1e-9, KEYS, ("largest belief",), where=OF_DECOYS, note=SHARES),
)
SAID(
    "Nobody guesses more than one of l values right on average.",
    Check(pl.col("right guesses") <= 1 / pl.col("l") + 1e-9, KEYS, ("right guesses",), where=OF_DECOYS, note=SHARES),
)
SAID(
    "The larger l, the fewer values are guessed right.",
    Along("l", "right guesses", ("column",), rising=False, where=OF_DECOYS, note=SHARES),
)


def years(bench: Bench) -> dict[str, Coded]:
    """The earlier and the later year in the same codes; two halves of a table that names no year."""
    frame = bench.table("census income", rows=bench.pick(None, 12_000))
    if "year" in frame.columns:
        early = (frame["year"] == frame["year"].min()).to_numpy()
    else:
        early = np.arange(frame.height) < frame.height // 2
    values = {name: tuple(map(str, np.unique(frame[name].to_numpy().astype(str)))) for name in COLUMNS}
    codes = {name: np.searchsorted(values[name], frame[name].to_numpy().astype(str)) for name in COLUMNS}
    return {
        title: Coded(title, int(rows.sum()), {name: codes[name][rows].astype(np.uint8) for name in COLUMNS}, values)
        for title, rows in (("earlier", early), ("later", ~early))
    }


def chances(design: Design) -> NDArray[np.float64]:
    """[R, v]: P(R | v), for every set of the design's size."""
    sets = np.array(list(combinations(range(design.d), design.eta)))
    out = np.zeros((len(sets), design.d))
    np.put_along_axis(out, sets, design.member_weights(sets), axis=1)
    return out


def least_error(design: Design, shares: NDArray[np.float64]) -> float:
    """Squared error of the best estimate of shares in large tables, times the number of records."""
    some = shares > 0
    chance = chances(design)[:, some]
    seen = chance @ shares[some]
    information = (chance[seen > 0] / seen[seen > 0, None]).T @ chance[seen > 0]
    return float(np.trace(np.linalg.inv(information)) - np.square(shares).sum())


def designs_of(prior: NDArray[np.float64], level: int) -> dict[str, Design]:
    """The bound is what somebody with the prior guesses right on average from uniform decoys."""
    uniform = DecoyDesign(d=len(prior), eta=level)
    bound = float((chances(uniform) * prior).max(axis=1).sum())
    found: dict[str, Design | None] = {UNIFORM: uniform, INFORMED: InformedDesign.within(prior, bound)}
    wider = (DecoyDesign(d=len(prior), eta=eta) for eta in range(level, len(prior)))
    found[BOTH] = next((one for one in wider if one.worst_under(prior) <= bound + 1e-9), None)
    return {series: one for series, one in found.items() if one is not None}


def figure(bench: Bench) -> Result:
    table, draws = years(bench), bench.pick(10, 2)
    early, later = table["earlier"], table["later"]

    def measured(column: str, l: int) -> list[dict[str, Any]]:
        d = early.sizes[column]
        prior = np.asarray((early.counts(column) + 0.5) / (early.n + 0.5 * d), np.float64)
        shares = np.asarray(later.counts(column) / later.n, np.float64)
        part = Coded(later.name, later.n, {column: later.columns[column]}, {column: later.values[column]})
        rows = []
        for series, design in designs_of(prior, l).items() if l < d - 1 else ():
            held = [_squared(part, column, design) for _ in range(draws)]
            small = comb(design.d, design.eta) <= MOST_SETS
            rows.append(
                {
                    "values": d, "series": series, "members": design.eta,
                    "right guesses": float((chances(design) * prior).max(axis=1).sum()) if small else None,
                    "largest belief": design.worst_under(prior),
                    "if all alike": design.worst_under(np.ones(d, np.float64)),
                    "least error": least_error(design, shares) if small else None, "error": float(np.mean(held)),
                }
            )  # fmt: skip
        return rows

    sheet = bench.sweep([{"column": name, "l": l} for name in COLUMNS for l in LEVELS], measured)
    beliefs = sheet.filter(pl.col("series") == INFORMED)
    return Result(
        {"": sheet},
        {"": _picture(sheet)},
        SAID.answered(frame=sheet),
        (INFORMED, BOTH),
        {"records": {name: one.n for name, one in table.items()}, "l": list(LEVELS), "draws": draws},
        (
            "The bound of informed sets is what uniform decoys of l values permit on average, so that both are guessed "
            "right as often; uniform decoys exceed it for single people. Shares of the earlier year are the public "
            "fact, errors are those of the later year: squared distance of estimated from true shares, times the "
            "number of records. 'Least error' is that of the best estimate in large tables, 'error' that of the "
            "library's.",
            "Somebody who believes all values alike can be surer of an informed set than 1/l. A table that asks for "
            "frequency-l-diversity too gets uniform sets with more members: 'both requirements'.",
        ),
        tuple(
            one
            for l in LEVELS
            for value in ("least error", "error")
            for one in Gain.over(
                f"{value} at uniform decoys' average guess, l = {l}", sheet.filter(pl.col("l") == l), ("column",),
                INFORMED, UNIFORM, value, "a bound for every single person costs more than one on average",
            )
        ),
        f"The largest belief in an informed set is {max(beliefs['largest belief']):.3f} for somebody who knows the "
        f"shares, {max(beliefs['if all alike']):.3f} for somebody who believes all values alike.",
    )  # fmt: skip


def _squared(table: Coded, column: str, design: Any) -> float:
    """Squared error of the estimated shares of one release, times the number of records."""
    sets = {column: design.draw(table.columns[column], Keystream(), attribute=column)}
    found = errors.estimates(sets, {column: design}, (column,), (OURS,))[OURS]
    return float(np.square(found - table.truth((column,))).sum() / table.n)


def _picture(sheet: pl.DataFrame) -> Any:
    titles = {"error": "squared error times records", "largest belief": "largest belief, shares known"}
    long = pl.concat(
        sheet.select("column", "series", panel=pl.format("{}, l = {}", pl.lit(title), "l"), y=name)
        for name, title in titles.items()
    )
    return draw.bars(
        long, x="column", y="y", series="series", panel="panel", columns=2, ours=[INFORMED, BOTH], x_title="",
        order=(UNIFORM, INFORMED, BOTH), y_title="", step=11, shared_y=False,
        title="Sets for somebody who knows public shares, beside uniform decoys of l values",
        note="Shares of one year of Census-Income are known, the next year is published.",
    )  # fmt: skip


FIGURE = Figure("informed", "Beliefs of somebody who knows public shares", SAID, figure, ("census income",))
