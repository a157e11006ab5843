"""Theorem 32: SWEEP's time against the number of records and against the size of the lattice of quasi-identifiers."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import polars as pl

from noren.engines import Records
from noren.methods import Sweep
from noren.models import TauLDiversity
from noren_papers import draw
from noren_papers.base import Bench, Figure, Gain, Result
from noren_papers.claims import NO_WORSE, Pair, answer, count_below
from noren_papers.tau_l.common import CHUNK, CHUNKS, SWEEP, dataset, label, random_order, warm
from noren_papers.tau_l.execution import MORE_WORK, least_seconds
from noren_papers.tau_l.sources import Prepared

ASKED = (0.3, 5)
PARTS = (8, 4, 2, 1)
RECORDS, LATTICE = "against the records", "against the lattice"
CLAIMS = {
    "records": "SWEEP's time grows no faster than the number of records (Theorem 32).",
    "lattice": "SWEEP's time grows no faster than the number of level vectors of the quasi-identifiers (Theorem 32).",
}


def vectors(data: Prepared, names: tuple[str, ...]) -> int:
    """Items of the lattice: a taxonomy of height h has h + 1 levels."""
    return prod(data.hierarchies[name].height + 1 for name in names)


def _seconds(bench: Bench, data: Prepared, names: tuple[str, ...], records: int, method: str) -> float:
    tau, l = ASKED
    sweep, need = Sweep(chunk=CHUNK) if method == CHUNKS else Sweep(), TauLDiversity(on=data.sensitive, tau=tau, l=l)
    warm(bench, data, sweep, need)
    kept = (*names, data.sensitive)
    rows = random_order("rows")(data.coded.n)[:records]
    part = Records(
        records,
        {name: data.coded.columns[name] for name in kept},
        {name: data.coded.codes[name][rows] for name in kept},
    )
    return least_seconds(bench, lambda: sweep.recode(part, [need], random_order("tuples")))


def theorem_32(bench: Bench) -> Result:
    data = dataset(bench, "adult")
    every = tuple(data.quasi_identifiers)
    sizes = [(RECORDS, every, data.coded.n // part) for part in bench.pick(PARTS, (2, 1))]
    several = range(2, len(every) + 1) if not bench.quick else (2, 4, len(every))
    sizes += [(LATTICE, every[:many], data.coded.n) for many in several]

    def timed(panel: str, names: tuple[str, ...], records: int) -> list[dict[str, Any]]:
        size = vectors(data, names)
        place = {"x": records if panel == RECORDS else size, "quasi-identifiers": len(names), "level vectors": size}
        return [
            place | {"series": method, "seconds": _seconds(bench, data, names, records, method)}
            for method in (SWEEP, CHUNKS)
        ]

    settings = [{"panel": panel, "names": names, "records": records} for panel, names, records in sizes]
    frame = bench.sweep(settings, timed).drop("names")
    return Result(
        {"": frame},
        {"": _picture(frame)},
        {key: _linear(frame, panel) for key, panel in (("records", RECORDS), ("lattice", LATTICE))},
        (CHUNKS,),
        {"requirement": label(*ASKED), "rows": data.coded.n, "quasi-identifiers": list(every)},
        (
            "CPU seconds of compiled code, least of a few runs after a first. Smaller tables are random records of the "
            "same table, smaller lattices its first quasi-identifiers.",
            "The theorem has H as the product of the heights; the levels of a taxonomy are one more than its height, "
            "and so many level vectors are counted here.",
        ),
        _gains(frame),
    )


def _linear(frame: pl.DataFrame, panel: str) -> Any:
    """Step by step: the time of a record, or of a level vector, stays the same or falls."""
    part = frame.filter((pl.col("panel") == panel) & (pl.col("series") == SWEEP)).sort("x")
    places = list(zip(part["x"].to_list(), part["seconds"].to_list(), strict=True))
    pairs: list[Pair] = [(t / x, s / w) for (w, s), (x, t) in pairwise(places)]
    told = ", ".join(f"{x:,}: {seconds:.3f} s" for x, seconds in places)
    words = "records" if panel == RECORDS else "level vectors"
    return answer(
        f"By {words}, {told}; no faster: what each takes grows by no more than 25% a step", count_below(pairs, NO_WORSE)
    )


def _gains(frame: pl.DataFrame) -> tuple[Gain, ...]:
    return Gain.over("seconds, SWEEP in chunks over SWEEP", frame, ("panel", "x"), CHUNKS, SWEEP, "seconds", MORE_WORK)


def _picture(frame: pl.DataFrame) -> Any:
    return draw.lines(
        frame, x="x", y="seconds", series="series", panel="panel", columns=2, order=(SWEEP, CHUNKS), ours=(CHUNKS,),
        log_x=True, log_y=True, shared_y=False, x_title="records, or level vectors", y_title="CPU seconds",
        title="Theorem 32. SWEEP's time against the size of its input", size=(300, 200),
        note=f"Adult, {label(*ASKED)}. Linear growth is a slope of 1.",
    )  # fmt: skip


FIGURES: tuple[Figure, ...] = (Figure("theorem-32", "SWEEP's time and its bound", CLAIMS, theorem_32, data=("adult",)),)
