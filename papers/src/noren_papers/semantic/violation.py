"""Figures 6, 14 and 15: how often plain decoys break (l, d)-semantic diversity, by theorem, exactly, and when drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.designs.semantic.compatibility import Compatibility
from noren.errors import NorenError
from noren.secret import Keystream
from noren_papers import draw
from noren_papers.base import Bench, Result
from noren_papers.claims import ALMOST, ERRORS, Answer, Claims, answer, count_trend, judged
from noren_papers.relations import Along, Check, Compare
from noren_papers.semantic import material as tables
from noren_papers.semantic.combinations import drawn, made
from noren_papers.semantic.material import Counts, Material
from noren_papers.semantic.posterior import posterior_summary
from noren_papers.semantic.rates import exact_rate, separated, theorem_bound, violation_of_table

BASE = {"F": 50, "l": 4, "d": 4}
THEOREM = "baseline, theorem (equation 11)"
MEASURED = "baseline, measured"
PROPOSALS = {"simple": "proposal, simple", "duplicate-processing": "proposal, duplicate-processing"}
EXACT_MEAN = "baseline, exact mean over all values (ours)"
EXACT_DATA = "baseline, exact for the table's values (ours)"
FLAT = "flat design (ours)"
CERTAIN = 0.99

CLAIMS_6 = {
    "zero": "The proposed algorithms never violate (l,d)-semantic diversity.",
    "grows": "The baseline's probability of violation grows with l and with d, most where they are large.",
    "because": "The reason: the larger l or d, the fewer combinations of decoys keep the distance d.",
    "bound": "Equation 11 is the least violation probability: exact for the two end values, a lower bound for others.",
    "table": "Over a table of N records at least one violation is nearly certain: at least 1 - (1 - rho)^N.",
    "feasible": "Algorithm 1 succeeds for every true value exactly where l d >= F (Theorem 5.1).",
    "room": "The check of equations 7 to 10 rolls back exactly those choices after which l values cannot be reached.",
}


# ---------------------------------------------------------------- figure 6


def figure_6(bench: Bench) -> Result:
    axes = {"F": [16, 20, 30, 40, 50, 75, 100, 150], "l": list(range(2, 11)), "d": list(range(1, 13))}
    if bench.quick:
        axes = {"F": [16, 30, 50, 100], "l": [2, 3, 4, 6, 8], "d": [1, 2, 4, 6, 8]}
    draws = bench.pick(20_000, 500)

    def rates(axis: str, x: int, F: int, l: int, d: int) -> Iterator[dict[str, Any]]:
        computed = {"identifiable": l * d + 1 <= F, "status": "computed"}
        yield computed | {"series": THEOREM, "probability": theorem_bound(F, l, d)}
        yield computed | {"series": EXACT_MEAN, "probability": exact_rate(F, l, d)}
        codes = bench.rng(f"{F}/{l}/{d}").integers(0, F, draws)
        one = Material("ranks", codes, codes * 0, (("", ""),), tuple(map(str, range(F))), tables.rank_distances(F))
        for kind, series in (*PROPOSALS.items(), ("flat", FLAT)):
            yield computed | {"series": series, **_violations(one, kind, l, d)}

    settings = [{"axis": axis, "x": place, **BASE, axis: place} for axis, places in axes.items() for place in places]
    sheet = bench.sweep(settings, rates)
    shown = sheet.with_columns(panel=pl.col("axis").replace({name: _panel(name) for name in axes}))
    order = [THEOREM, *PROPOSALS.values(), EXACT_MEAN, FLAT]
    picture = draw.lines(
        shown, x="x", y="probability", series="series", panel="panel", order=order, ours=(EXACT_MEAN, FLAT),
        title="Figure 6. Probability that a record violates (l,d)-semantic diversity", x_title="F, l or d",
        y_title="probability of violation",
        note="At zero the proposals lie on the flat design; no point where a design does not exist.",
        columns=3,
    )  # fmt: skip
    gap = _by(sheet, EXACT_MEAN) - _by(sheet, THEOREM)
    return Result(
        sheets={"": sheet},
        pictures={"": picture},
        answers=_answers_6(bench, sheet, bench.pick(16, 12)),
        more=f"The exact mean over all true values lies above the theorem's bound by {gap.mean():.3f} on average and "
        f"by up to {gap.max():.3f}: the bound is reached by the two end values only. Of the flat design's sets "
        f"{_share(sheet, 'probability'):.2%} violate; it exists at {_possible(sheet, FLAT)} of the settings, "
        f"duplicate-processing at {_possible(sheet, PROPOSALS['duplicate-processing'])}.",
        ours_series=(EXACT_MEAN, FLAT),
        parameters={"fixed where not on the axis": BASE, **axes, "sets drawn per design and setting": draws},
        notes=(
            "The paper does not say at which F, l and d the two others are held; ours are chosen so that most "
            "designs exist.",
            "Equation 11 as printed has an undefined m; it is F. In equation 17, as the text at hand has it, the "
            "binomial of the numerator is lost.",
            "Sets of the designs are drawn for true values that are all equally frequent.",
        ),
    )


def _share(sheet: pl.DataFrame, column: str) -> float:
    """Share of violating sets of the flat design, over the settings at which it exists."""
    return float(sheet.filter(series=FLAT)[column].drop_nulls().to_numpy().mean())


def _panel(name: str) -> str:
    fixed = ", ".join(f"{other} = {BASE[other]}" for other in BASE if other != name)
    return f"against {name} ({fixed})"


def _violations(one: Material, kind: str, l: int, d: float) -> dict[str, Any]:
    """Share of a design's sets that violate, or why it has none."""
    try:
        sets = drawn(one, made(one, kind, l, d))
    except NorenError:
        return {"probability": None, "status": "no such design"}
    return {"probability": float(violates(sets, one.distances, d).mean()), "status": "measured"}


def _by(sheet: pl.DataFrame, series: str) -> NDArray[np.float64]:
    return sheet.filter(series=series)["probability"].to_numpy()


def _possible(sheet: pl.DataFrame, series: str) -> str:
    found = sheet.filter(series=series)["probability"]
    return f"{len(found) - found.null_count()} of {len(found)}"


def _answers_6(bench: Bench, sheet: pl.DataFrame, largest: int) -> dict[str, Answer]:
    mine = sheet.filter(pl.col("series").is_in([*PROPOSALS.values()]) & pl.col("probability").is_not_null())
    zero = (mine["probability"] == 0).to_list()
    ends = {axis: _by(sheet.filter(axis=axis), THEOREM)[[0, -1]] for axis in ("l", "d", "F")}
    bound = sheet.filter(series=THEOREM).select("F", "l", "d").unique(maintain_order=True).rows()
    rates = {key: value_rates(tables.rank_distances(key[0]), key[1], key[2]) for key in bound}
    exact = [
        abs(r[0] - theorem_bound(*key)) < 1e-12 and r.min() > theorem_bound(*key) - 1e-12 for key, r in rates.items()
    ]
    return {
        "zero": judged(
            zero, f"not one violating set in {sum(zero)} of the {len(zero)} settings and designs that exist"
        ),
        "grows": answer(
            f"by the theorem from {ends['l'][0]:.3f} to {ends['l'][1]:.3f} along l and from {ends['d'][0]:.3f} to "
            f"{ends['d'][1]:.3f} along d; along F it falls from {ends['F'][0]:.3f} to "
            f"{ends['F'][1]:.3f}",
            *(count_trend(_by(sheet.filter(axis=axis), THEOREM).tolist()) for axis in ("l", "d")),
        ),
        "because": _because(sheet),
        "bound": judged(
            exact,
            "compared with the exact rate of every true value: equal at the ends, nowhere above; the largest excess "
            f"of a value inside is {max(r.max() - theorem_bound(*key) for key, r in rates.items()):.3f}",
        ),
        "table": _tables(bench),
        "feasible": _feasible(largest),
        "room": _room(min(largest, 12)),
    }


def _because(sheet: pl.DataFrame) -> Answer:
    """Step by step along l and d: the number of combinations that keep the distance for an end value (equation 16)."""
    outcomes, told = [], []
    for axis in ("l", "d"):
        part = sheet.filter(axis=axis, series=THEOREM)
        number = [comb(max(F - 1 - (l - 1) * (d - 1), 0), l - 1) for F, l, d in part.select("F", "l", "d").iter_rows()]
        falls = [b < a for a, b in pairwise(number)]
        share = 1 - part["probability"].to_numpy()
        outcomes += falls
        told.append(
            f"along {axis} from {number[0]:,} to {number[-1]:,}, fewer at {sum(falls)} of {len(falls)} steps, as a "
            f"share of all combinations from {share[0]:.3f} to {share[-1]:.2g}"
        )
    return judged(outcomes, f"combinations that keep the distance: {'; '.join(told)}; the share is what decides")


def _tables(bench: Bench) -> Answer:
    """Small tables of plain decoys: how many hold a violating set, beside equation 12."""
    F, l, d = BASE["F"], BASE["l"], BASE["d"]
    rho = theorem_bound(F, l, d)
    need = next(n for n in range(1, 10**6) if violation_of_table(rho, n) >= CERTAIN)
    outcomes, told = [], []
    for size in (2, 4, need):
        count = bench.pick(5_000, 500)
        codes = bench.rng(f"tables of {size}").integers(0, F, count * size)
        bad = violates(plain_sets(codes, F, l), tables.rank_distances(F), d).reshape(count, size).any(axis=1).mean()
        bound = violation_of_table(rho, size)
        outcomes.append(bool(bad >= bound - 3 * np.sqrt(bound * (1 - bound) / count)))
        told.append(f"{bad:.3f} of tables with {size} records (at least {bound:.3f} by the bound)")
    return judged(
        [*outcomes, bool(bad >= CERTAIN)],
        f"at F = {F}, l = {l}, d = {d} the bound is {rho:.3f} per record; a violating set is in {', '.join(told)}; "
        f"nearly certain is read as {CERTAIN}",
    )


def _feasible(largest: int) -> Answer:
    """Both readings of Theorem 5.1 against what is possible, for every F, l, d up to a size."""
    printed, turned = [], []
    for F in range(4, largest + 1):
        for l in range(2, F + 1):
            for d in range(1, F):
                possible = all(1 + (i - 1) // d + (F - i) // d >= l for i in range(1, F + 1))
                printed.append(possible == (l * d >= F))
                turned.append(possible == (l * d <= F))
    return judged(
        printed,
        f"the printed condition agrees with what is possible in {sum(printed)} of {len(printed)} settings: over all "
        f"F up to {largest} every value has a set exactly if l d <= F (true in {sum(turned)} of {len(turned)} "
        "settings); as printed the condition is turned round",
    )


def _room(largest: int) -> Answer:
    """Equation 9 against the true room, over all partial sets of small domains."""
    outcomes, example, size = [], "", 0
    for F in range(5, largest + 1):
        for d in (2, 3):
            for k in (1, 2, 3):
                for chosen in combinations(range(1, F + 1), k):
                    if any(b - a < d for a, b in pairwise(chosen)):
                        continue
                    said, truth = room(F, chosen, d), true_room(F, chosen, d)
                    outcomes.append(said == truth)
                    if said > truth or truth - said > size:
                        size, example = truth - said, f"F = {F}, d = {d}, values {list(chosen)}: {said} against {truth}"
    if all(outcomes):
        return judged(outcomes, f"right for all {len(outcomes)} partial sets")
    return judged(
        outcomes,
        f"right for {sum(outcomes)} of {len(outcomes)} partial sets; elsewhere it counts too few further values, "
        f"because an order is no circle, and choices that could be completed are rolled back (for example {example})",
    )


# ---------------------------------------------------------------- figures 14 and 15


def figure_14(bench: Bench) -> Result:
    plan = {"income": range(2, 7), "fnlwgt": (2, 3, 4, 5, 6, 8, 10), "education": range(2, 7)}
    if bench.quick:
        plan = {"income": range(2, 5), "fnlwgt": (2, 3, 5), "education": range(2, 4)}
    return _rates(bench, {name: [(l, 3) for l in ls] for name, ls in plan.items()}, "l", "14", "d = 3")


def figure_15(bench: Bench) -> Result:
    plan = {"income": range(1, 8), "fnlwgt": (1, 2, 3, 5, 10, 20, 30), "education": range(1, 5)}
    if bench.quick:
        plan = {"income": range(1, 5), "fnlwgt": (1, 3, 10), "education": range(1, 4)}
    return _rates(bench, {name: [(3, d) for d in ds] for name, ds in plan.items()}, "d", "15", "l = 3")


def _rates(bench: Bench, plan: dict[str, list[tuple[int, int]]], axis: str, number: str, fixed: str) -> Result:
    found = {"income": tables.income, "fnlwgt": tables.weights, "education": tables.education}
    times = bench.pick(5, 1)
    rows: list[dict[str, Any]] = []
    for name, (l, d) in bench.each((name, one) for name, settings in plan.items() for one in settings):
        rows += _setting(found[name](bench), l, d, times, axis)
    sheet = pl.DataFrame(rows, infer_schema_length=None)
    order = [THEOREM, MEASURED, *PROPOSALS.values(), EXACT_DATA, FLAT]
    picture = draw.lines(
        sheet, x=axis, y="rate", series="series", panel="panel", order=order, ours=(EXACT_DATA, FLAT),
        title=f"Figure {number}. Violation rate of (l,d)-semantic diversity at {fixed}",
        x_title={"l": "l, values in a set", "d": "d, least distance"}[axis], y_title="violation rate",
        note="Measured lies on exact, the proposals on flat. No theorem for the tree.", columns=3,
    )  # fmt: skip
    wide = sheet.pivot(on="series", index=["table", "l", "d"], values="rate", maintain_order=True)
    ordered = wide.filter(pl.col(THEOREM).is_not_null())
    theorem = pl.col("rate").filter(pl.col("series") == THEOREM).first().over("table", "l", "d").alias("theorem")
    theory = float(np.abs((ordered[MEASURED] - ordered[THEOREM]).to_numpy()).mean())
    ours = float(np.abs((wide[MEASURED] - wide[EXACT_DATA]).to_numpy()).mean())
    broken = _share(sheet, "rate")
    return Result(
        sheets={"": sheet},
        pictures={"": picture},
        answers=SAID[axis].answered(frame=sheet.with_columns(theorem)),
        more="Computed for the values that the table really has, the exact rate is off the measured one by "
        f"{ours:.4f} on average, the theorem by {theory:.4f}; it also answers for the tree, where the theorem is "
        f"silent. Of the flat design's sets {broken:.2%} violate.",
        ours_series=(EXACT_DATA, FLAT),
        parameters={
            "settings (l, d)": {k: [list(v) for v in vs] for k, vs in plan.items()}, "draws of each table": times
        },
        notes=(
            "The baseline hides each value among l - 1 others drawn uniformly, as the l-diversity method with p = 1 "
            "does.",
            f"'Almost the same' is read as a difference of at most {ALMOST:g}.",
            "The theorem assumes ranks; for the tree of schooling only measured and exact rates are given.",
        ),
    )  # fmt: skip


def _setting(table: Material, l: int, d: int, times: int, axis: str) -> list[dict[str, Any]]:
    panel = f"{table.name}, F = {table.size}"
    point = {"table": table.name, "panel": panel, "l": l, "d": d, "identifiable": _identifiable(table, l, d)}
    ordered = table.hierarchy is None
    shares = [violates(plain_sets(table.codes, table.size, l), table.distances, d).mean() for _ in range(times)]
    n, rate = times * table.records, float(np.mean(shares))
    exact = float(value_rates(table.distances, l, d)[table.codes].mean())
    rows = [
        {**point, "series": THEOREM, "rate": theorem_bound(table.size, l, d) if ordered else None, "std_error": None},
        {**point, "series": MEASURED, "rate": rate, "std_error": float(np.sqrt(max(rate * (1 - rate), 1 / n) / n))},
        {**point, "series": EXACT_DATA, "rate": exact, "std_error": None},
    ]
    for kind, series in (*PROPOSALS.items(), ("flat", FLAT)):
        rows.append(
            {**point, "series": series, "rate": _violations(table, kind, l, d)["probability"], "std_error": None}
        )
    return rows


def _identifiable(table: Material, l: int, d: int) -> bool:
    return Compatibility.from_distances(table.distances, d).identifiable(l)


PLACE = ("table", "l", "d")


def _rate_claims(axis: str) -> Claims:
    said, measured = Claims(), pl.col("series") == MEASURED
    gap = (pl.col("rate") - pl.col("theorem")).abs()
    said(
        "No set of the proposed algorithms breaks (l,d)-semantic diversity: their rate is zero everywhere.",
        Check(
            pl.col("rate") == 0, (*PLACE, "series"), ("rate",),
            where=pl.col("series").is_in([*PROPOSALS.values()]) & pl.col("rate").is_not_null(),
        ),
    )  # fmt: skip
    said(
        "Decoys drawn for plain l-diversity break it often.",
        Compare(
            MEASURED, "above", ALMOST, "rate", PLACE, error="std_error", where=pl.col("d") > 1,
            note=f"the share of records whose set violates, for d > 1; often: more than {ALMOST:g}",
        ),
    )  # fmt: skip
    said(
        "At every setting the theorem's rate is close to the measured one.",
        Check(
            pl.when((gap - ALMOST).abs() > ERRORS * pl.col("std_error")).then(gap <= ALMOST), PLACE,
            ("theorem", "rate"), where=measured & pl.col("theorem").is_not_null(),
            note=f"close: a difference of at most {ALMOST:g}; within two standard errors of that it is undecided",
        ),
    )  # fmt: skip
    said(
        "At no setting does the theorem's rate exceed the measured one.",
        Check(
            pl.col("rate") - pl.col("theorem") >= -3 * pl.col("std_error"), PLACE, ("theorem", "rate"),
            where=measured & pl.col("theorem").is_not_null(), note="but for three standard errors",
        ),
    )  # fmt: skip
    said(
        "The violation rate of the baseline rises along the axis.",
        Along(axis, "rate", ("table",), error="std_error", where=measured),
    )
    return said


SAID = {axis: _rate_claims(axis) for axis in ("l", "d")}


@SAID["l"]("Whoever sees a person's l values cannot tell the true one: no value is likelier than 1/l.")
def _hidden() -> Answer:
    """P(true | set) under a uniform prior for the paper's two designs and the flat one."""
    told, outcomes = [], []
    for F, l, d in ((14, 3, 3), (11, 3, 3), (14, 2, 3)):
        codes = np.zeros(1, np.int64)
        one = Material("ranks", codes, codes, (("", ""),), tuple(map(str, range(F))), tables.rank_distances(F))
        found = {kind: posterior_summary(made(one, kind, l, d).law) for kind in (*PROPOSALS, "flat")}
        outcomes += [found[kind].worst <= 1 / l + 1e-9 for kind in PROPOSALS]
        certain = found["duplicate-processing"].certain
        sure = f" ({certain:.0%} of its sets reveal the value)" if certain else ""
        told.append(
            f"(F,l,d) = ({F},{l},{d}): simple {found['simple'].worst:.3f}, duplicate-processing "
            f"{found['duplicate-processing'].worst:.3f}{sure}, flat {found['flat'].worst:.3f}"
        )
    return judged(outcomes, "largest P(true value | set) under a uniform prior, " + "; ".join(told))


# ---------------------------------------------------------------- plain decoys against a distance


def value_rates(distances: Counts, l: int, d: float) -> Counts:
    """Exact violation rate of plain decoys for every true value, on a line of ranks or on the classes of a tree."""
    near = distances < d * (1 - 1e-9)
    F, total = len(distances), comb(len(distances) - 1, l - 1)
    if np.array_equal(near, near @ near):  # being near is transitive: classes
        _, size = np.unique(np.argmax(near, axis=1), return_counts=True)
        own = near.sum(axis=1)
        fine = [_chosen([*np.delete(size, int(np.flatnonzero(size == n)[0]))], l - 1) for n in own]
        return 1 - np.array(fine, float) / total
    step = int(np.argmin(near[0]))
    out = np.empty(F)
    for v in range(F):
        left, right = max(0, v - step + 1), max(0, F - v - step)
        out[v] = 1 - sum(separated(left, k, step) * separated(right, l - 1 - k, step) for k in range(l)) / total
    return out


def _chosen(sizes: list[int], count: int) -> int:
    """Ways to choose `count` values, each of another class."""
    ways = [1] + [0] * count
    for size in sizes:
        for k in range(count, 0, -1):
            ways[k] += ways[k - 1] * int(size)
    return ways[count]


def violates(sets: NDArray[Any], distances: Counts, d: float) -> NDArray[np.bool_]:
    """Which sets hold two values closer than d."""
    out = np.zeros(len(sets), bool)
    for a, b in combinations(range(sets.shape[1]), 2):
        out |= distances[sets[:, a], sets[:, b]] < d * (1 - 1e-9)
    return out


def plain_sets(codes: NDArray[Any], F: int, l: int) -> NDArray[Any]:
    """Decoys of the l-diversity paper: any l - 1 other values."""
    return np.asarray(DecoyDesign(d=F, eta=l).draw(codes, Keystream(), attribute="x").codes(l), np.int64)


def room(F: int, chosen: tuple[int, ...], d: int) -> int:
    """Equation 9, for ranks 1..F: how many more values the paper counts as possible, going round the circle."""
    total = 0
    for i, here in enumerate(chosen):
        there = chosen[(i + 1) % len(chosen)]
        gap = there - here if here < there else F - here + there
        total += max(gap // d - 1, 0)
    return total


def true_room(F: int, chosen: tuple[int, ...], d: int) -> int:
    """How many more values really fit, at both ends and in between."""
    inner = sum((b - a) // d - 1 for a, b in pairwise(chosen))
    return (chosen[0] - 1) // d + inner + (F - chosen[-1]) // d
