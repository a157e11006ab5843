"""Figure 22: what the methods take, with the brute-force search for l and (c, l)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import floor
from typing import Any

import numpy as np
import polars as pl

from noren.errors import RequirementNotMet
from noren.methods import Hilbert, Incognito, Sweep
from noren.metrics.information import utility_score
from noren.models import FrequencyLDiversity, RecursiveCLDiversity, TauLDiversity
from noren_papers.base import Bench, Figure, Result, clocked
from noren_papers.claims import ALMOST, MUCH, Answer, Claims, answer, count_alike, count_below, judged
from noren_papers.relations import Compare, listed
from noren_papers.tau_l.common import (
    BOTH,
    CHUNK,
    CHUNKS,
    CLD,
    DIRECT,
    KEYS,
    ONE_D,
    REQUIREMENTS,
    SWEEP,
    Row,
    by_requirement,
    cld,
    dataset,
    gain,
    label,
    release_of,
    rows_of,
    settings,
    than,
    view,
    warm,
)
from noren_papers.tau_l.protection import ALL_PUBLISH, parameters
from noren_papers.tau_l.sources import Prepared
from noren_papers.tau_l.strength import eligible_ranges, strength_table

METHODS = (SWEEP, ONE_D, CLD, CHUNKS, DIRECT)
GRADUAL = 3.0
"""A step is gradual if the time does not grow by more than this factor."""
MORE_WORK = "chunks are ordered along a Hilbert curve first, and each is swept by itself"
SAID = Claims()


def least_seconds(bench: Bench, work: Callable[[], object]) -> float:
    return max(clocked(work, bench.pick(3, 2))[0], 1e-6)


def recoding(bench: Bench, data: Prepared, method: Any, need: Any) -> Callable[[], object]:
    warm(bench, data, method, need)
    rng = np.random.default_rng(5)
    return lambda: method.recode(data.coded, [need], lambda n: np.asarray(rng.permutation(n), np.int64))


def one_d_seconds(bench: Bench, name: str, l: int) -> float:
    def measure() -> float:
        data = dataset(bench, name)
        return least_seconds(
            bench, recoding(bench, data, Hilbert(l=l, blind=False), FrequencyLDiversity(on=data.sensitive, l=l))
        )

    return bench.shared(("tau-l", "1DLD seconds", name, l), measure)


def seconds_of(bench: Bench, name: str, method: str, tau: float, l: int) -> tuple[float, str, float | None] | None:
    """CPU seconds, what was chosen and the utility; None where the method has no table."""
    found = release_of(bench, name, method, tau, l)
    if found is None:
        return None
    data = dataset(bench, name)
    if method == ONE_D:
        tried = range(2, int(found.chosen.split("=")[1]) + 1)
        return sum(one_d_seconds(bench, name, size) for size in tried), found.chosen, found.utility.total
    if method == CLD:
        return found.seconds, found.chosen, found.utility.total
    makers = {SWEEP: Sweep(), CHUNKS: Sweep(chunk=CHUNK), DIRECT: Incognito()}
    need = TauLDiversity(on=data.sensitive, tau=tau, l=l)
    return least_seconds(bench, recoding(bench, data, makers[method], need)), found.chosen, found.utility.total


def figure_22(bench: Bench) -> Result:
    rows: list[Row] = []
    for data, tau, l, row in settings(bench):
        for method in METHODS:
            found = seconds_of(bench, data.name, method, tau, l)
            seconds, chosen, utility = found or (None, "", None)
            at = {"data": row["data"], "tau": tau, "l": l, "requirement": row["requirement"], "method": method}
            rows.append(at | {"seconds": seconds, "chosen": chosen, "utility": utility})
    frame = pl.DataFrame(
        rows, schema_overrides={"seconds": pl.Float64, "utility": pl.Float64}, infer_schema_length=None
    )
    sweeps = pl.col("seconds").filter(pl.col("method") == SWEEP).first().over(KEYS)
    frame = frame.with_columns((pl.col("seconds") / sweeps).alias("times SWEEP's"))
    picture = by_requirement(
        frame, y="seconds", order=METHODS, ours=(CHUNKS, DIRECT), log_y=True, y_title="CPU seconds", size=(300, 210),
        title="Figure 22. Execution time with the search for l and (c, l)",
    )  # fmt: skip
    answers = SAID.answered(frame=frame, bench=bench)
    searches = {f"{dataset(bench, name).title} searches of CLD": cld(bench, name).searches for name in REQUIREMENTS}
    notes = (
        "CPU seconds of this machine, compiled code, least of a few runs after a first (CLD: one run of its search); "
        "the paper's were of 2010, so only ratios compare.",
        "1DLD's time is that of every l from 2 to the first that satisfies; CLD's is that of the whole grid of (c, l), "
        "because nothing orders it, and of choosing among its tables. (c, l) that the table as a whole fails are not "
        "searched. So CLD's time hardly depends on the requirement by the way it is measured, and grows with the grid.",
        "Incognito for (tau, l) takes the levels of least loss of information, CLD, as the paper has it, the fewest "
        "levels and then the least excess: part of what the former keeps more is owed to that.",
    )
    used = parameters(bench, *REQUIREMENTS) | searches | {"runs": bench.pick(3, 2)}
    own = (
        *gain("seconds, Incognito for (tau, l) itself over the search over (c, l)", frame, DIRECT, CLD, "seconds"),
        *gain("seconds, SWEEP in chunks over SWEEP", frame, CHUNKS, SWEEP, "seconds", MORE_WORK),
    )
    return Result({"": frame}, {"": picture}, answers, (CHUNKS, DIRECT), used, notes, own)


def _third(title: str) -> Compare:
    """1DLD's time is about three times SWEEP's."""
    return Compare(
        ONE_D, "alike", 3.0, "times SWEEP's", KEYS, "method", where=ALL_PUBLISH & (pl.col("data") == title),
    )  # fmt: skip


def _faster(title: str) -> Compare:
    return than(SWEEP, "below", CLD, "seconds", where=pl.col("data") == title)


SAID("On Adult SWEEP takes a third of 1DLD's time where all three publish.", _third("Adult"))
SAID("On Adult SWEEP always takes less time than CLD.", _faster("Adult"))


@SAID("Where only SWEEP publishes, its time grows gradually with the strength of the requirement.")
def _gradual(frame: pl.DataFrame) -> Answer:
    adult = frame.filter(pl.col("data") == "Adult")
    rows = rows_of(adult, SWEEP, empty=False)
    steps = [(b["seconds"] / a["seconds"], a, b) for a, b in pairwise(rows)]
    others = {row["requirement"] for method in (ONE_D, CLD) for row in rows_of(adult, method, empty=False)}
    alone = [step for step in steps if step[2]["requirement"] not in others]
    told = ", ".join(f"{row['requirement']} {row['seconds']:.3f} s" for row in rows)
    return judged(
        [1 <= ratio <= GRADUAL for ratio, _, _ in alone or steps],
        f"SWEEP: {told}; requirements that only SWEEP meets: {listed([step[2]['requirement'] for step in alone])}; a "
        f"gradual step is one up to {GRADUAL:g} times as long",
    )


SAID("On Nursery the results are similar.", _third("Nursery"), _faster("Nursery"))


@SAID("CLD's time seems to be the same for different requirements.")
def _identical(frame: pl.DataFrame) -> Answer:
    compared, texts = [], []
    for title in frame["data"].unique(maintain_order=True):
        found = [row["seconds"] for row in rows_of(frame, CLD, empty=False) if row["data"] == title]
        if len(found) > 1:
            compared.append((max(found), min(found)))
            texts.append(f"{title} {min(found):.2f} to {max(found):.2f} s for {len(found)} requirements")
    return answer(
        f"The search over all (c, l) is the same for every requirement and choosing among its tables adds little: "
        f"{'; '.join(texts)}; the same is within 5%",
        count_alike(compared, ALMOST),
    )


@SAID("CLD finds the same (c, l) for (0.5, 2) and (0.5, 3).")
def _same(frame: pl.DataFrame) -> Answer:
    adult = frame.filter(pl.col("data") == "Adult")
    chosen = {row["requirement"]: row["chosen"] for row in rows_of(adult, CLD, empty=False)}
    found = {one: chosen.get(one, "none") for one in ("(0.5, 2)", "(0.5, 3)")}
    first, second = found.values()
    told = ", ".join(f"{one} {what}" for one, what in found.items())
    return judged([first == second != "none"], f"CLD takes {told}; the paper finds c = 10,000, l = 6")


@SAID("1DLD behaves likewise: one l serves several requirements in the same time.")
def _likewise(frame: pl.DataFrame) -> Answer:
    """Requirements in a row for which 1DLD takes one and the same l."""
    found = rows_of(frame, ONE_D, empty=False)
    equal = [(a, b) for a, b in pairwise(found) if a["data"] == b["data"] and a["chosen"] == b["chosen"]]
    told = [f"{a['data']} {a['requirement']} and {b['requirement']}: {a['chosen']}" for a, b in equal]
    titles = frame["data"].unique(maintain_order=True).to_list()
    return judged(
        [any(a["data"] == title for a, _ in equal) for title in titles],
        f"Neighbouring requirements for which 1DLD takes one and the same l, and so runs the same: {listed(told)}",
    )


SAID(
    "The search over c and l, two-dimensional and unordered, takes longer than that over l.",
    than(CLD, "above", ONE_D, "seconds"),
)


def weakest(bench: Bench, name: str, tau: float, l: int) -> list[tuple[int, int]]:
    """Eligible (c, l) with the largest whole c that guarantees (tau, l), by the exact bound."""
    found = eligible_ranges(dataset(bench, name).counts)
    if l > found.values:
        return []
    rows = [(floor(row.exact + 1e-9), row.l) for row in strength_table(found.values, tau, l)]
    return [(c, size) for c, size in rows if c >= 1 and c > found.smallest_c(size)]


@SAID("The weakest requirements that guarantee (tau, l) give much less utility than the search.")
def _theory(bench: Bench) -> Answer:
    """Tables of the weakest (c, l) and l that guarantee (tau, l) beside those of the brute-force search."""
    method = Incognito(loss="height")
    compared, texts, nothing = [], [], 0
    for data, tau, l, _ in settings(bench):
        found = release_of(bench, data.name, CLD, tau, l)
        if found is None:
            continue
        sure = []
        for c, size in weakest(bench, data.name, tau, l):
            need = RecursiveCLDiversity(on=data.sensitive, c=c, l=size)
            try:
                sure.append(utility_score(view(data, method.recode(data.coded, [need], np.arange))))
            except RequirementNotMet:
                continue
        nothing += not sure
        compared.append((max(sure, default=0.0), found.utility.total))  # no table: the strongest case of much less
        if sure:
            texts.append(f"{data.title} {label(tau, l)} {max(sure):.3f} beside {found.utility.total:.3f}")
    return answer(
        f"Best table of a (c, l) that guarantees (tau, l) beside that of the search: {listed(texts, 8)}; none is "
        f"eligible for {nothing} requirements that the search meets, which counts as much less, as does at most "
        "half. 1DLD's guarantee is l itself, which its search finds too",
        count_below(compared, MUCH),
    )


SAID("SWEEP's better tables cost little time.", than(SWEEP, "no worse", (ONE_D, CLD), "seconds"))


FIGURES = (Figure("22", "Execution time", SAID, figure_22, BOTH),)
