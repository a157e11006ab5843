"""Section 1.1: what existing models do for terms that an outside table links to secrets.

Real symptoms beside Adult's quasi-identifiers. The symptoms are taken as one secret, or each as a yes/no secret, and
groups are formed by Mondrian under an existing model; then the adversary with the knowledge table reads them. The
models of the related work (section 5) are asked the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.engines import Omit, Plan
from noren.errors import RequirementNotMet
from noren.methods import Mondrian, Suppress
from noren.methods.base import ClassMethod
from noren.models import DistinctLDiversity, FrequencyLDiversity, KAnonymity, Model, TCloseness
from noren.statements import TermCells
from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.claims import Claims
from noren_papers.quasi_sensitive import transactions
from noren_papers.quasi_sensitive.adult import QUICK_RECORDS, SIGNS, Lab, diverse, nodes_for
from noren_papers.quasi_sensitive.world import OURS, RECORDS, TERMS, World, real_world
from noren_papers.relations import Check, Compare

ONE = "all symptoms"
LEVELS = (2, 3, 5, 10)
SYMPTOMS = (1, 2, 5, 10, 20)
"""How many of the most common symptoms are yes/no secrets."""
CLOSE = (0.5, 0.75, 0.9, 0.95, 0.99)
KNOWN, CROWD = (1, 2), (2, 5, 10)
HALF = 0.5
"""What QS (1,l)-diversity allows to be believed in one label: c / (c + 1). Yes or no suggest it too."""
AS_ONE, AS_CLOSE, AS_MANY = "one secret, l-diversity", "one secret, t-closeness", "yes/no secrets"
K_M, PROPOSAL = "k^m-anonymity", "QS diversity, adaptive"
BEST = f"QS diversity, {OURS}"
TITLE = "diseases revealed where symptoms are secrets of existing models"
KEYS = ("series", "x")
REVEALED = pl.col("revealed") > 0
SHOWN = ("revealed", "certain", "groups")
CROWDED = pl.col("series").str.starts_with(K_M)
SAID = Claims()
SAID(
    "Diversity of the symptoms as one secret does not prevent that diseases are disclosed.",
    Check(REVEALED, KEYS, SHOWN, where=pl.col("series") == AS_ONE, note="shares of the people; believed above 1/l"),
)
SAID(
    "Closeness of the symptoms as one secret does not prevent it either.",
    Check(
        REVEALED, KEYS, SHOWN, where=pl.col("series") == AS_CLOSE,
        note="hardly two people share all symptoms, so that small groups are far from the whole table whatever they "
        "reveal",
    ),
)  # fmt: skip
SAID(
    "With each symptom a yes/no secret the table is generalised far more than by the proposal.",
    Check(
        pl.col("ncp") >= 2 * pl.col("ncp of the proposal"), KEYS, ("ncp", "ncp of the proposal"),
        where=pl.col("series") == AS_MANY, note="loss of generalisation (NCP), both with groups of two; far: twice",
    ),
)  # fmt: skip
SAID(
    "With each symptom a yes/no secret people can still be linked to a unique disease.",
    Check(REVEALED, KEYS, SHOWN, where=pl.col("series") == AS_MANY, note="believed above one half"),
)
SAID(
    "Bounds on linking people to transactions (k^m-anonymity) leave the link to diseases open.",
    Check(
        REVEALED, KEYS, (*SHOWN, "terms left out", "coherent h", "coherent k"), where=CROWDED,
        note="believed above 1/k; coherent with the rarest tenth of the symptoms private",
    ),
)  # fmt: skip
SAID(
    "The search is easily carried over to other measures of what removal costs.",
    Compare(
        BEST, "below", PROPOSAL, "terms left out", ("x",), where=pl.col("cost") > 0,
        note="the exact search, which minimises equation 2, beside the adaptive one: what one measure saves the other "
        "saves as well",
    ),
)  # fmt: skip


def compute(bench: Bench) -> Result:
    world = real_world(bench)
    lab = lab_of(bench, world)
    rows = []
    for l in bench.each(LEVELS, "l = {}".format):
        rows.append(_line(lab, AS_ONE, l, Mondrian(), [FrequencyLDiversity(l=l, on=[ONE])], 1 / l))
        for series, search in ((PROPOSAL, "adaptive"), (BEST, "best")):
            method = Suppress(k=l, search=search, nodes=bench.pick(nodes_for(l), 500))
            rows.append(_line(lab, series, l, method, [diverse(1.0, 2).model]))
    for t in bench.each(CLOSE, "t = {}".format):
        rows.append(_line(lab, AS_CLOSE, t, Mondrian(), [TCloseness(t=t, on=[ONE])]))
    for many in bench.each(SYMPTOMS, "{} symptoms".format):
        asked: list[Model] = [KAnonymity(k=2), *(DistinctLDiversity(l=2, on=[_yes(i)]) for i in range(many))]
        rows.append(_line(lab, AS_MANY, many, Mondrian(), asked))
    rows += [_known(lab, k, m) for m, k in bench.each(product(KNOWN, CROWD))]
    sheet = pl.DataFrame(rows, infer_schema_length=None)
    theirs = pl.col("ncp").filter(pl.col("series") == PROPOSAL).first().alias("ncp of the proposal")
    return Result(
        {"": sheet},
        {"": _picture(sheet)},
        SAID.answered(frame=sheet.with_columns(theirs)),
        (BEST,),
        {"records": lab.table.n, "terms a record": TERMS, "l": list(LEVELS), "t": list(CLOSE), "k": list(CROWD)},
        (
            "Records of Adult with nine symptoms each, all of one disease of Columbia's table, every disease as often. "
            "A disease counts as revealed where the records that match a person make it more likely than the "
            "model says of what it protects: 1/l, 1/k, otherwise one half, which is what QS (1,2)-diversity forbids.",
            "Yes/no secrets are those of the most common symptoms, distinct 2-diversity each; frequency 2-diversity "
            "cannot be met by a symptom that fewer than half of all people have. A setting that no generalisation "
            "meets is one group of all records in the sheet.",
            "k^m-anonymity is reached by leaving terms out of the whole table; groups are then those of k-anonymity.",
        ),
        Gain.over(
            "share of terms left out, best over adaptive search", sheet, ("x",), BEST, PROPOSAL, "terms left out"
        ),
    )


def lab_of(bench: Bench, world: World) -> Lab:
    """Adult with real symptoms, once as sets, once as one text, once as answers yes and no."""
    records = min(bench.pick(RECORDS, QUICK_RECORDS), len(world.terms))
    frame = bench.table("adult", rows=records)

    def make() -> Lab:
        sets = np.sort(world.terms[:records, :TERMS], axis=1)
        secrets: dict[str, Any] = {ONE: ["+".join(map(str, row)) for row in sets]}
        common = np.argsort(-np.bincount(sets.ravel(), minlength=len(world.knowledge.terms)), kind="stable")
        for i in range(max(SYMPTOMS)):
            secrets[_yes(i)] = np.where((sets == common[i]).any(axis=1), "yes", "no").tolist()
        return Lab(frame, world, pl.DataFrame(secrets))

    return bench.shared(("quasi-sensitive lab of section 1.1", records), make)


def _yes(number: int) -> str:
    return f"symptom {number + 1}"


def _line(
    lab: Lab, series: str, x: float, method: ClassMethod, asked: Sequence[Model], limit: float = HALF
) -> dict[str, Any]:
    try:
        plan = lab.recoded(method, list(asked))
    except RequirementNotMet:
        return {"series": series, "x": x, "m": None, "met": False, "groups": 1, "ncp": 1.0, **EMPTY}
    return {"series": series, "x": x, "m": None, "met": True, **_read(lab, plan, limit)}


EMPTY = {"revealed": 0.0, "certain": 0.0, "cost": 0.0, "terms left out": 0.0}


def _known(lab: Lab, k: int, m: int) -> dict[str, Any]:
    """k^m-anonymous terms in k-anonymous groups."""
    had = lab.had
    records = [frozenset(had.data[a:b].tolist()) for a, b in zip(had.offsets[:-1], had.offsets[1:], strict=True)]
    left = transactions.suppressed(records, k, m)
    sizes = np.array([len(record) for record in left])
    codes = np.array([term for record in left for term in sorted(record)], int)
    cells = TermCells.from_entries(had.d, len(left), np.repeat(np.arange(len(left)), sizes), codes)
    groups = lab.recoded(Mondrian(), [KAnonymity(k=k)])
    plan = replace(groups, treatments={**groups.treatments, SIGNS: Omit(cells)})
    common = np.argsort(np.bincount(codes, minlength=had.d), kind="stable")
    private = common[np.bincount(codes, minlength=had.d)[common] > 0][: had.d // 10].tolist()
    found = transactions.coherence(left, private, m)
    return {
        "series": f"{K_M}, m = {m}", "x": k, "m": m, "met": True, **_read(lab, plan, 1 / k), "coherent k": found.k,
        "coherent h": found.h,
    }  # fmt: skip


def _read(lab: Lab, plan: Plan, limit: float) -> dict[str, Any]:
    peak, size = lab.peaks(plan)
    point = lab.measured(plan, diverse(1.0, 2).rule)
    return {
        "groups": point.groups,
        "ncp": point.ncp,
        "revealed": _share(peak > limit + 1e-9, size),
        "certain": _share(peak > 1 - 1e-9, size),
        "cost": point.cost,
        "terms left out": point.share,
    }


def _share(which: NDArray[np.bool_], size: NDArray[np.int64]) -> float:
    return float(size[which].sum() / size.sum())


def _picture(sheet: pl.DataFrame) -> Any:
    shown = sheet.with_columns(
        pl.col("x").map_elements(lambda x: f"{x:g}", return_dtype=pl.String).alias("setting"),
        pl.col("series").alias("panel"),
    )
    long = pl.concat(
        [
            shown.select("panel", "setting", pl.lit(name).alias("share of people"), pl.col(column).alias("share"))
            for name, column in (("believed above what is promised", "revealed"), ("certain", "certain"))
        ]
    )
    return draw.bars(
        long, x="setting", y="share", series="share of people", panel="panel", columns=3, step=14, height=130,
        panels=list(dict.fromkeys(sheet["series"])), shared_y=True, x_title="l, t, k or number of symptoms",
        y_title="share of people", title="Section 1.1. Diseases revealed by the knowledge table",
        note="Adult with real symptoms. Under QS diversity (1,2) nobody is.",
    )  # fmt: skip
