"""Tables 8, 9 and 10: the paper's worked example, 1,000 people, five levels of obesity, l = d = 2.

The paper's Table 9 is one draw of decoys; here it is held against what its design gives on average, drawn afresh
through the whole pipeline in the paper's own form of release, and solved again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from noren import anonymize
from noren.methods import Decoys
from noren_papers import draw
from noren_papers.base import Bench, Gain, Result
from noren_papers.claims import judged
from noren_papers.datasets import generated
from noren_papers.semantic.combinations import ON_SIMPLE, OURS, drawn, likelihood, made, mse, paper_estimates
from noren_papers.semantic.material import Counts, Material, diverse, policy, rank_distances
from noren_papers.semantic.posterior import posterior_summary

GROUPS = (("over 50", "male"), ("over 50", "female"), ("under 50", "male"), ("under 50", "female"))
LEVELS = ("1", "2", "3", "4", "5")
TRUE = ((120, 50, 10, 20, 30), (80, 60, 30, 10, 20), (50, 30, 110, 100, 90), (20, 20, 40, 40, 70))
REPORTED = ((143, 72, 60, 86, 99), (108, 70, 65, 64, 93), (188, 108, 155, 130, 179), (83, 62, 73, 57, 105))
PRINTED = (
    (117.8, 52.5, 11.5, 20.5, 27.8),
    (82.9, 60.3, 30.8, 6.3, 19.9),
    (55.1, 27.8, 105.3, 97.8, 94.1),
    (16.9, 18.3, 44.8, 42.3, 67.9),
)
L = D = 2
PLAUSIBLE = 3.0
SELDOM = 0.01
CLOSE = 10.0
FLAT = "flat, published counts (ours)"
SERIES = {"Ex-Proposal": "paper", OURS: "ours", ON_SIMPLE: "on simple"}

CLAIMS_8 = {"hidden": "The table is unknown to the data user, who can only estimate it from the reports."}
CLAIMS_9 = {
    "totals": "Every group's total in the reports is l times its total in the true table.",
    "draw": "The table is what anonymising the true one with l = d = 2 gives.",
    "partner": "A person at level 1 reports 1 together with 2, 3, 4 or 5.",
    "both": "At l = 2 a person reports two values under either algorithm: the true one and one decoy.",
    "qids": "The reports leave everybody's age and gender as they are.",
}
CLAIMS_10 = {
    "row": "Solving the equations for men over 50 gives 117.8, 52.5, 11.5, 20.5 and 27.8.",
    "printed": "The other groups, solved on their own, give the printed table.",
    "totals": "Rows of the estimate add up to the group's people, but for rounding.",
    "close": "The estimates are close to the true counts.",
    "error": "The mean squared error of the table, over 25 cells, is about 8.06e-06.",
}


def people() -> Material:
    """The true table as records."""
    counts = np.array(TRUE)
    slots = np.repeat(np.arange(len(GROUPS)), counts.sum(axis=1))
    codes = np.concatenate([np.repeat(np.arange(5), row) for row in counts])
    return Material("obesity", codes, slots, GROUPS, LEVELS, rank_distances(5))


def solved(reported: Counts) -> Counts:
    """Algorithm 2 in every row: equations 1 and 2 at F = 5, l = d = 2."""
    q = np.where(rank_distances(5) >= D, 1.0, 0.0)
    matrix = np.eye(5) + q * (L - 1) / q.sum(axis=1, keepdims=True)
    return np.asarray(np.linalg.solve(matrix.T, np.asarray(reported, float).T).T)


def expected(inclusion: Counts) -> tuple[Counts, Counts]:
    """Mean and standard deviation of every published count, from a design's inclusion probabilities."""
    true = np.array(TRUE, float)
    return true @ inclusion, np.sqrt(true @ (inclusion * (1 - inclusion)))


def half_up(values: Counts) -> Counts:
    """One digit, halves away from zero, as the paper prints."""
    return np.floor(values * 10 + 0.5 + 1e-9) / 10


def _long(series: str, table: Any, **more: Any) -> list[dict[str, Any]]:
    cells = np.asarray(table, float)
    return [
        {"series": series, "gender": gender, "age": age, "level": level, "count": float(cells[i, j]),
         **{name: float(np.asarray(part)[i, j]) for name, part in more.items()}}
        for i, (age, gender) in enumerate(GROUPS) for j, level in enumerate(LEVELS)
    ]  # fmt: skip


def _picture(sheet: pl.DataFrame, title: str, note: str = "", decimals: int = 0) -> Any:
    shown = sheet.with_columns(group=pl.concat_str("gender", "age", separator=", "))
    return draw.tiles(
        shown, x="level", y="group", value="count", panel="series", columns=2, title=title, x_title="obesity level",
        y_title="", value_title="people", label_format=f".{decimals}f", note=note, cell=(48, 26),
    )  # fmt: skip


def _fits(bench: Bench) -> dict[str, Any]:
    """Fresh decoys many times: the paper's solve on the simple design, the likelihood on both designs."""

    def make() -> dict[str, Any]:
        one, times = people(), bench.pick(400, 15)
        simple, flat = made(one, "simple", L, D), made(one, "flat", L, D)
        tables: dict[str, list[Counts]] = {"paper": [], "ours": [], "on simple": []}
        for _ in range(times):
            tables["paper"].append(paper_estimates(one, simple, drawn(one, simple), ("Ex-Proposal",))[0]["Ex-Proposal"])
            tables["ours"].append(likelihood(one, flat))
            tables["on simple"].append(likelihood(one, simple))
        errors = {name: np.array([mse(one, table) for table in found]) for name, found in tables.items()}
        return {"times": times, "mean": {name: np.mean(found, axis=0) for name, found in tables.items()}, "mse": errors}

    found: dict[str, Any] = bench.shared("semantic obesity", make)
    return found


def _used(bench: Bench) -> Material:
    one = people()
    bench.note(generated("obesity", one.frame(), "the paper's Table 8 as 1,000 records"))
    return one


def table_8(bench: Bench) -> Result:
    one, fits = _used(bench), _fits(bench)
    mean = fits["mean"]["ours"]
    series = f"{OURS}"
    sheet = pl.DataFrame(_long("true", TRUE) + _long(series, mean))
    off = float(np.abs(mean - one.truth).max())
    seen, least = (
        float(np.sqrt(part) * one.records) for part in (fits["mse"]["ours"].mean(), fits["mse"]["ours"].min())
    )
    level = float(np.sqrt(np.square(one.truth - one.truth.mean(axis=1, keepdims=True)).mean()))
    chance = seen / np.sqrt(fits["times"])
    biased = "more than chance, so it is biased in single cells" if off > 4 * chance else "no more than chance"
    solve = float(np.abs(fits["mean"]["paper"] - one.truth).max())
    return Result(
        sheets={"": sheet},
        pictures={"": _picture(sheet, "Table 8. The true table, and our estimate on average", decimals=1)},
        answers={
            "hidden": judged(
                [least > 0.5, seen < level],
                f"one release leaves a root mean squared error of {seen:.1f} people a cell, in none of "
                f"{fits['times']} releases less than {least:.1f} (unknown: more than half a person); spreading every "
                f"group evenly over the levels would be off by {level:.1f}",
            ),
        },
        more=f"Averaged over {fits['times']} draws the likelihood on flat sets is within {off:.1f} people of every "
        f"true cell (chance alone gives about {chance:.1f}: {biased}), the paper's solve within {solve:.1f}; a single "
        f"draw's mean squared error is {fits['mse']['ours'].mean():.3g}, the paper's solve has "
        f"{fits['mse']['paper'].mean():.3g}.",
        ours_series=(series,),
        parameters={"l": L, "d": D, "fresh draws": fits["times"]},
        notes=("The averaged estimate needs many releases of one table and is shown as a check of bias only.",),
    )  # fmt: skip


def table_9(bench: Bench) -> Result:
    one = _used(bench)
    simple, duplicate, flat = (made(one, kind, L, D) for kind in ("simple", "duplicate-processing", "flat"))
    mean, spread = expected(simple.inclusion().matrix)
    z = (np.array(REPORTED) - mean) / spread
    fresh, qids = _published(one)
    z_fresh = (fresh - mean) / spread
    square = float(np.square(z).mean())
    squares = np.array([
        np.square((one.counted(drawn(one, simple)) - mean) / spread).mean() for _ in range(bench.pick(5_000, 400))
    ])  # fmt: skip
    lower = float((squares <= square).mean())
    _other, _ = expected(flat.inclusion().matrix)
    sheet = pl.DataFrame(
        _long("paper's Table 9", REPORTED, z_score=z)
        + _long("fresh draw, simple design", fresh, z_score=z_fresh)
        + _long("expected, simple design", mean, z_score=np.zeros_like(z))
        + _long(FLAT, one.counted(drawn(one, flat)), z_score=np.full_like(z, np.nan))
    ).with_columns(pl.col("z_score").fill_nan(None))
    worst = {design.name: posterior_summary(design.law).worst for design in (simple, flat)}
    pairs = {design.name: _partners(one, design) for design in (simple, duplicate)}
    totals = np.array(REPORTED).sum(axis=1)
    return Result(
        sheets={"": sheet},
        pictures={"": _picture(sheet, "Table 9. Reports: the paper's draw, a fresh one, and what is expected")},
        answers={
            "totals": judged(
                (totals == L * one.truth.sum(axis=1)).tolist(),
                f"totals {', '.join(map(str, totals))} are twice the true",
            ),
            "draw": judged(
                [bool(np.abs(z).max() <= PLAUSIBLE), lower >= SELDOM, lower <= 1 - SELDOM],
                f"no count is far off (largest |z| {np.abs(z).max():.2f}), yet together they are too near to the "
                f"mean: the average of z squared is {square:.2f}, {lower:.1%} of {len(squares):,} fresh draws have "
                "so small a one, whose "
                f"average is {squares.mean():.2f} and whose smallest is {squares.min():.2f}" if lower < SELDOM else
                f"largest |z| {np.abs(z).max():.2f}, average of z squared {square:.2f}, at or above that of "
                f"{lower:.1%} of {len(squares):,} fresh draws",
            ),
            "partner": judged(
                [level in pairs["semantic-simple"] for level in (2, 3, 4, 5)],
                f"of 20,000 reports from level 1 the partners are {_listed(pairs['semantic-simple'])}: at d = 2 "
                "level 2 is "
                "too close, as the paper's own equations say" if 2 not in pairs["semantic-simple"] else
                f"partners seen are {_listed(pairs['semantic-simple'])}",
            ),
            "both": judged(
                [_true_and_one(one, design) for design in (simple, duplicate)],
                "read off every set of a fresh draw of each; the decoys differ: level 1 goes with "
                f"{_listed(pairs['semantic-simple'])} in the simple algorithm and with "
                f"{_listed(pairs['semantic-duplicate-processing'])} in duplicate-processing, which works on a circle "
                "where 1 and 5 are neighbours; Table 9's equations are those of the simple one",
            ),
            "qids": judged([qids], "age and gender of the fresh release have the counts of the true table, times l"),
        },
        more=f"Sets of the flat design let no level be likelier than {worst['semantic-flat']:.3f} under a uniform "
        f"prior; those of the simple design up to {worst['semantic-simple']:.3f}.",
        ours_series=(FLAT,),
        parameters={
            "l": L, "d": D, "fresh draws": len(squares),
            "plausible": f"|z| at most {PLAUSIBLE:g}, average of z squared not among the {SELDOM:.0%} at either end",
        },
        notes=(
            "The fresh draw comes from the whole pipeline in the form of shuffled records, N x l rows, as in the "
            "paper.",
            "z-scores use the exact variance of the design; cells of one row are dependent.",
        ),
    )  # fmt: skip


def _listed(values: set[int]) -> str:
    return ", ".join(map(str, sorted(values)))


def _partners(one: Material, design: Any) -> set[int]:
    """Levels seen beside level 1."""
    crowd = Material(
        "level 1", np.zeros(20_000, np.int64), np.zeros(20_000, np.int64), GROUPS[:1], LEVELS, one.distances
    )
    return set((np.unique(drawn(crowd, design)) + 1).tolist()) - {1}


def _true_and_one(one: Material, design: Any) -> bool:
    """Whether every set of a draw is the true value and one other."""
    sets = drawn(one, design)
    return bool(sets.shape[1] == L and ((sets == one.codes[:, None]).sum(axis=1) == 1).all())


def _published(one: Material) -> tuple[Counts, bool]:
    """Counts of a release in the paper's form, and whether age and gender are unchanged."""
    asked = policy(one, "ordinal", diverse(L, D), Decoys(design="simple", form="records"))
    rows = anonymize(one.frame(), asked).frame()
    found = rows.group_by("age", "gender", "secret").len()
    counts = np.zeros((len(GROUPS), 5))
    for age, gender, level, number in found.iter_rows():
        counts[GROUPS.index((age, gender)), int(level) - 1] = number
    return counts, counts.sum(axis=1).tolist() == (L * one.truth.sum(axis=1)).tolist()


def table_10(bench: Bench) -> Result:
    one, fits = _used(bench), _fits(bench)
    estimate = solved(np.array(REPORTED))
    rounded, printed = half_up(estimate), np.array(PRINTED)
    single = likelihood(one, made(one, "flat", L, D))
    sheet = pl.DataFrame(
        _long("true", TRUE) + _long("paper's Table 10", PRINTED) + _long("solved again from Table 9", estimate)
        + _long(OURS, single)
    )  # fmt: skip
    errors = np.square((printed - one.truth) / one.records)
    runs = pl.DataFrame(
        [{"series": name, "repetition": i, "mse": float(v)}
         for name, key in SERIES.items() for i, v in enumerate(fits["mse"][key])]
    )  # fmt: skip
    paper, ours, mixed = (fits["mse"][key] for key in SERIES.values())
    twenty, wide = float(errors.mean()), float(errors.sum() / 25)
    apart = np.abs(estimate - one.truth)
    ratio = ours.mean() / paper.mean()
    return Result(
        sheets={"": sheet, "errors": runs},
        pictures={"": _picture(sheet, "Table 10. The estimated table", decimals=1)},
        answers={
            "row": judged(
                (np.abs(rounded[0] - printed[0]) < 1e-9).tolist(),
                "solved: " + ", ".join(f"{v:g}" for v in estimate[0]) + ", which rounds to the printed figures",
            ),
            "printed": judged(
                (np.abs(rounded[1:] - printed[1:]) < 1e-9).ravel().tolist(),
                f"largest difference after rounding {np.abs(rounded - printed).max():.1f}",
            ),
            "totals": judged(
                (np.abs(estimate.sum(axis=1) - one.truth.sum(axis=1)) < 1e-6).tolist(),
                f"the unrounded rows add up to {', '.join(f'{v:g}' for v in estimate.sum(axis=1))}",
            ),
            "close": judged(
                (apart <= CLOSE).ravel().tolist(),
                f"off by {apart.mean():.1f} people on average and {apart.max():.2f} at most, asked for {CLOSE:g}; of "
                f"{fits['times']} fresh draws {float((paper > twenty).mean()):.0%} have a larger error (their mean "
                f"is {paper.mean():.3g}, {paper.mean() / twenty:.0f} times this one)",
            ),
            "error": judged(
                [_alike(wide), _alike(twenty)],
                f"{twenty:.4g} over the 20 cells that the table has; divided by 25, as written, it would be {wide:.3g}",
            ),
        },
        ours_series=(OURS, ON_SIMPLE),
        parameters={"l": L, "d": D, "fresh draws": fits["times"], "close": f"within {CLOSE:g} people"},
        notes=(
            "Whole sets of the paper's Table 9 were never published, so the likelihood cannot be computed from it; "
            "ours is estimated from sets drawn afresh.",
            "The text swaps the meanings of x and omega: x counts the original table, omega the published one.",
        ),
        gains=(
            *Gain.of(
                "mean squared error, flat + likelihood",
                {"l = d = 2": float(ratio)},
                "flat sets hide every level equally well and so tell less than simple ones: the design loses, not the "
                "estimator (next line)",
            ),
            *Gain.of("mean squared error, simple + likelihood", {"l = d = 2": float(mixed.mean() / paper.mean())}),
        ),
    )  # fmt: skip


def _alike(value: float) -> bool:
    """Rounds to the printed figure."""
    return abs(value - 8.06e-6) < 0.006e-6
