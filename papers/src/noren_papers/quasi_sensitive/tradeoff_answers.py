"""What figures 9, 10 and 11 say about the claims: every verdict from the lines of the sheet, by a stated criterion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from noren_papers.base import Gain
from noren_papers.claims import Answer, Below, Trend, answer, judged
from noren_papers.quasi_sensitive.adult import SIZES, Point
from noren_papers.quasi_sensitive.world import listed

ONLY_GENERAL = "generalisation only"
ONLY_REMOVAL = "k = 1, removal only"
ROUNDING = 1e-9


def named(k: int) -> str:
    """The line of the paper's two phases."""
    return ONLY_REMOVAL if k == 1 else f"k = {k}"


def grid(frame: pl.DataFrame, column: str) -> dict[str, np.ndarray]:
    """series -> values along x; nan where a requirement could not be met."""
    xs = sorted(set(frame["x"].to_list()))
    out = {}
    for (series,), part in frame.group_by("series", maintain_order=True):
        found = dict(zip(part["x"].to_list(), part[column].to_list(), strict=True))
        out[str(series)] = np.array([np.nan if found.get(x) is None else float(found[x]) for x in xs])
    return out


def over_k(values: Mapping[str, np.ndarray], at: int, *, least: int = 1) -> list[float]:
    return [float(values[named(k)][at]) for k in SIZES if k >= least]


def _xs(frame: pl.DataFrame) -> list[float]:
    return sorted(set(frame["x"].to_list()))


def _table(values: Mapping[str, np.ndarray], form: str = ".3f", *, least: int = 1) -> str:
    return "; ".join(f"k = {k}: {listed(values[named(k)].tolist(), form)}" for k in SIZES if k >= least)


def ends(frame: pl.DataFrame) -> dict[str, Answer]:
    cost, size, ncp = (grid(frame, name) for name in ("cost", "size", "ncp"))
    places = range(len(_xs(frame)))
    general = [
        bool(cost[ONLY_GENERAL][at] == 0 and size[ONLY_GENERAL][at] > max(over_k(size, at)) - ROUNDING) for at in places
    ]
    removal = [
        bool(
            cost[ONLY_REMOVAL][at] > max(over_k(cost, at, least=2)) - ROUNDING
            and ncp[ONLY_REMOVAL][at] < min(over_k(ncp, at, least=2))
        )
        for at in places
    ]
    dearest = max(float(np.nanmax(cost[named(k)])) for k in SIZES if k > 1)
    at = listed(_xs(frame), "g")
    return {
        "larger k": answer(
            f"Costs at x = {at}, by k: {_table(cost)}", *(Trend(over_k(cost, i), rising=False) for i in places)
        ),
        "general end": judged(
            general,
            f"Cost of terms {listed(cost[ONLY_GENERAL].tolist(), '.4f')} and average group "
            f"{listed(size[ONLY_GENERAL].tolist(), '.1f')} at x = {at}, against "
            f"{listed(over_k(size, 0), '.1f')} for k = {', '.join(map(str, SIZES))}",
        ),
        "removal end": judged(
            removal,
            f"Cost of terms {listed(cost[ONLY_REMOVAL].tolist())} with k = 1, at most {dearest:.3f} with larger k; "
            f"loss of quasi-identifiers (NCP) {float(np.nanmax(ncp[ONLY_REMOVAL])):.3f} against "
            f"{listed(over_k(ncp, 0, least=2))}",
        ),
    }  # fmt: skip


def spreads(values: Mapping[str, np.ndarray]) -> tuple[dict[int, float], list[float]]:
    """How far the belief change reaches along x for every k, and over the sizes k >= 2 at every x."""
    along = {k: float(np.ptp(values[named(k)])) for k in SIZES}
    across = [float(np.ptp(over_k(values, at, least=2))) for at in range(len(values[named(1)]))]
    return along, across


def _strict(frame: pl.DataFrame, rise: Mapping[str, np.ndarray], *, upwards: bool) -> Answer:
    return answer(
        f"Mean belief change at x = {listed(_xs(frame), 'g')}, by k: {_table(rise)}",
        *(Trend(rise[named(k)].tolist(), rising=not upwards) for k in SIZES),
    )


def diversity(frame: pl.DataFrame, upwards: bool, c: float | None) -> dict[str, Answer]:
    rise, before, belief = (grid(frame, name) for name in ("rise", "rise_before", "belief"))
    single, uneven = (grid(frame, name) for name in ("single", "uneven"))
    xs = _xs(frame)
    places = range(len(xs))
    along, across = spreads(rise)
    share = {k: rise[named(k)] / before[named(k)] for k in SIZES}
    bounds = [(x if c is None else c) for x in xs]
    bounds = [one / (one + 1) for one in bounds]
    kept = [bool(belief[named(k)][at] <= bounds[at] + ROUNDING) for k in SIZES for at in places]
    weak = [bool(rise[named(k)][at] < bounds[at] / 2) for k in SIZES for at in places]
    general = rise[ONLY_GENERAL]
    return {
        "strictness": _strict(frame, rise, upwards=upwards),
        "dominant": judged(
            [along[k] < min(across) for k in SIZES if k > 1],
            f"Along x the mean belief change varies by {listed([along[k] for k in SIZES if k > 1])} (k = 2, 5, 10, "
            f"20), over these k at fixed x by {listed(across)}; it dominates if the first is below all of the second",
        ),
        "little": judged(
            [bool(share[k][at] > 0.8) for k in SIZES if k > 1 for at in places],
            "Mean belief change after removal as a share of that of the same groups with all terms, by k: "
            + "; ".join(f"k = {k}: {listed(share[k].tolist(), '.2f')}" for k in SIZES)
            + ". Little means that more than 0.8 is left; k = 1 generalises nothing and is not counted",
        ),
        "over general": judged(
            [bool(rise[named(k)][at] > 0.8 * general[at]) for k in SIZES if k > 1 for at in places],
            f"Generalisation only: {listed(general.tolist())}; two phases, by k: {_table(rise)}. Clearly better would "
            "be less than 0.8 of it; k = 1 has one phase and is not counted",
        ),
        "weak bound": judged(
            kept + weak,
            f"Bounds c / (c + 1): {listed(bounds)}. Largest beliefs, by k: {_table(belief)}. The mean belief change is "
            f"at most {max(rise[named(k)][at] / bounds[at] for k in SIZES for at in places):.2f} of the bound; weak "
            "means that it is below half of it",
        ),
        "k = 1": answer(
            f"k = 1: {listed(rise[ONLY_REMOVAL].tolist())}; the best of the larger k: "
            f"{listed([min(over_k(rise, at, least=2)) for at in places])}; generalisation only "
            f"{listed(general.tolist())}",
            Below([(float(rise[ONLY_REMOVAL][at]), min(over_k(rise, at, least=2))) for at in places]),
            Below([(float(rise[ONLY_REMOVAL][at]), float(general[at])) for at in places]),
        ),
        "k = 2": answer(
            f"k = 2: {listed(rise[named(2)].tolist())}; the worst of the others: "
            f"{listed([max(rise[named(k)][at] for k in SIZES if k != 2) for at in places])}",
            Below([(max(_others(rise, at)), float(rise[named(2)][at])) for at in places]),
        ),
        "larger groups": answer(
            f"By k: {_table(rise, least=2)}", *(Trend(over_k(rise, at, least=2), rising=False) for at in places)
        ),
        "single": judged(
            [bool(single[ONLY_REMOVAL].min() > 0.5)],
            f"{float(single[ONLY_REMOVAL].min()):.1%} of the groups have one record",
        ),
        "uneven": answer(
            "Largest belief over the mean belief in a label that fits, averaged over groups, by k: "
            f"{_table(uneven)}; k = 1 is to be below k = 2, and from there it is to fall",
            Below([(float(uneven[ONLY_REMOVAL][at]), float(uneven[named(2)][at])) for at in places]),
            *(Trend(over_k(uneven, at, least=2), rising=False) for at in places),
        ),
    }  # fmt: skip


def _others(rise: Mapping[str, np.ndarray], at: int) -> list[float]:
    return [float(rise[named(k)][at]) for k in SIZES if k != 2]


def closeness(frame: pl.DataFrame, contrast: Point) -> dict[str, Answer]:
    rise, highest, ncp, size, share, cost = (
        grid(frame, name) for name in ("rise", "highest", "ncp", "size", "share", "cost")
    )
    xs = _xs(frame)
    places = range(len(xs))
    along, across = spreads(rise)
    default = min(places, key=lambda at: abs(xs[at] - 0.16))
    strict = {k: float(np.nanmin(rise[named(k)])) for k in SIZES}
    reached = [bool(highest[named(k)][at] <= xs[at] ** 0.5 + ROUNDING) for k in SIZES for at in places]
    worst = max(float(rise[named(k)][default]) for k in SIZES)
    target = float(rise[ONLY_GENERAL][0])
    return {
        "strictness": _strict(frame, rise, upwards=False),
        "dominant": judged(
            [along[k] > 0.5 * max(across) for k in SIZES if k > 1],
            f"Along t the mean belief change varies by {listed([along[k] for k in SIZES if k > 1])} (k = 2, 5, 10, "
            f"20), over these k at fixed t by {listed(across)}; t counts as equal in weight if the first is above "
            "half of the largest of the second",
        ),
        "much better": answer(
            f"With k = 2 the mean belief change is {listed(rise[named(2)].tolist())} at t^2 = {listed(xs, 'g')} "
            f"against {contrast.rise:.3f} under QS (1, 30)-diversity, whose cost of terms is {contrast.cost:.3f} "
            f"against {listed(cost[named(2)].tolist())}; the worst k at t^2 = {xs[default]:g} has {worst:.3f}. Much "
            "better: at most half",
            Below([(float(rise[named(2)][at]), contrast.rise) for at in places], much=True),
        ),
        "any k": judged(
            reached,
            "In every group no belief rises by more than t, which the requirement itself implies; the mean belief "
            "change comes down to "
            f"{listed([strict[k] for k in SIZES], '.4f')} at t^2 = {xs[0]:g} for k = {', '.join(map(str, SIZES))}",
        ),
        "not full": judged(
            [bool(rise[named(k)][0] <= target + ROUNDING and ncp[named(k)][0] < ncp[ONLY_GENERAL][0]) for k in SIZES],
            f"At t^2 = {xs[0]:g} generalisation only has a belief change of {target:.4f} at NCP "
            f"{float(ncp[ONLY_GENERAL][0]):.3f} (groups of {float(size[ONLY_GENERAL][0]):.0f}); two phases have "
            f"{listed(over_k(rise, 0), '.4f')} at NCP {listed(over_k(ncp, 0))}. Counted where both are no larger",
        ),
        "choice": answer(
            f"NCP by k: {listed(over_k(ncp, default))}; share of terms left out at t^2 = {xs[default]:g}: "
            f"{listed(over_k(share, default))}, at t^2 = {xs[0]:g}: {listed(over_k(share, 0))}",
            *(Trend(over_k(ncp, at)) for at in places),
            *(Trend(over_k(share, at), rising=False) for at in places),
        ),
    }  # fmt: skip


def gains(frame: pl.DataFrame, ours: Mapping[str, str]) -> tuple[Gain, ...]:
    """Cost of terms with our search over that with the paper's, in the same groups."""
    cost, xs = grid(frame, "cost"), _xs(frame)
    found = {
        f"{theirs}, x = {x:g}": float(cost[mine][at] / cost[theirs][at])
        for theirs, mine in ours.items()
        for at, x in enumerate(xs)
        if cost[theirs][at] > 0
    }
    return Gain.of("cost of left-out terms, best over adaptive search", found)
