"""What figures 11, 12 and 13 say about each claim, from the measured errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from noren import anonymize
from noren.errors import NorenError, PolicyError
from noren.estimates.counts.estimators import equation_2
from noren.methods import Anatomy, Decoys
from noren_papers.claims import Answer, Below, NoWorse, Some, Trend, answer, judged, typical
from noren_papers.semantic.combinations import DUPLICATE, LE, SIMPLE, made, short
from noren_papers.semantic.grid import Grid, named
from noren_papers.semantic.material import DEPTH
from noren_papers.semantic.policies import diverse, parted, policy

SMALL = 4
"""l d up to which l and d are called small."""


def n_proposal(grid: Grid) -> Answer:
    pairs, worst, place = [], 0.0, (0, 0)
    for setting in grid.points:
        if grid.mse(setting, "N-Proposal") is None:
            continue
        rivals = [name for name in (*DUPLICATE[1:], *SIMPLE) if grid.mse(setting, name) is not None]
        own, best = (
            grid.mean(setting, "N-Proposal"),
            min((grid.mean(setting, name) for name in rivals), key=lambda mean: mean.value),
        )
        pairs.append((own, best))
        if own.value / best.value > worst:
            worst, place = own.value / best.value, setting
    values = [own.value for own, _ in pairs]
    missing = len(grid.points) - len(values)
    gone = f"; at {missing} settings it does not exist or loses the counts" if missing else ""
    return answer(
        f"between {min(values):.2g} and {max(values):.2g}; small: no worse than the best other of the paper's "
        f"combinations (at most 25% above it), at worst {worst:.2f} times at {named(place)}{gone}",
        NoWorse(pairs),
    )


def ex_small(grid: Grid) -> Answer:
    found = [(s, ex / n) for s, ex, n in grid.both("Ex-Proposal", "N-Proposal") if s[0] * s[1] <= SMALL]
    told = ", ".join(f"{ratio:.2f} at {named(s)}" for s, ratio in found)
    return answer(
        f"error over that of N-Proposal where l d <= {SMALL}: {told} (no worse: at most 25% above)",
        NoWorse(grid.pairs("Ex-Proposal", "N-Proposal", [s for s, _ in found])),
    )


def ex_grows(grid: Grid) -> Answer:
    claims, told = [], []
    for panel in grid.panels:
        line = grid.line(panel, "Ex-Proposal")
        claims.append(Trend([grid.mean(s, "Ex-Proposal") for s, _ in line]))
        if len(line) > 1:
            told.append(f"{panel[:3]} {line[0][1]:.2g} to {line[-1][1]:.2g}")
    return answer(f"from the first to the last point {', '.join(told)}; every two points are compared", *claims)


def analysis(grid: Grid) -> Answer:
    claims, told = [], []
    for own, rivals in (("N-Proposal", DUPLICATE[1:3]), ("Ex-Proposal", SIMPLE[1:])):
        for rival in rivals:
            found = [(s, a, b) for s, a, b in grid.both(own, rival) if s[1] > 1]
            if not found:
                continue
            claims.append(Below(grid.pairs(own, rival, [s for s, _, _ in found])))
            lost = [s for s, a, b in found if a >= b]
            where = (
                f" (not at {', '.join(f'({l},{d})' for l, d in lost[:4])}{', ...' if len(lost) > 4 else ''})"
                if lost
                else ""
            )
            told.append(f"{rival} errs {typical([b / a for _, a, b in found]):.3g} times as much as {own}{where}")
    return answer("for d > 1, on geometric average " + "; ".join(told), *claims)


def loss(grid: Grid) -> Answer:
    """The paper's best combination against the existing analysis, and against LE where it can be used."""
    best = "N-Proposal" if any(s[1] > 1 for s, _, _ in grid.both("N-Proposal", "N-Simple")) else "Ex-Proposal"
    existing = best.replace("Proposal", "Existing")
    claims, told = [], []
    for rival in (existing, best.replace("Proposal", "Simple"), LE):
        found = {s: b / a for s, a, b in grid.both(best, rival) if s[1] > 1}
        if found:
            claims.append(Below(grid.pairs(best, rival, found), much=True))
            ratios = list(found.values())
            told.append(f"{rival} {typical(ratios):.3g} times ({min(ratios):.2g} to {max(ratios):.2g})")
    return answer(f"error over that of {best}, for d > 1: {'; '.join(told)}; far less is at most half", *claims)


def duplicate(grid: Grid) -> Answer:
    found = [one for one in grid.both("N-Proposal", "Ex-Proposal") if one[0][1] > 1]
    worst = max(found, key=lambda one: one[2] / one[1])
    least = min(found, key=lambda one: one[2] / one[1])
    return answer(
        f"where the algorithms differ (d > 1) Ex-Proposal errs between {least[2] / least[1]:.2f} times (at "
        f"{named(least[0])}) and {worst[2] / worst[1]:.3g} times (at {named(worst[0])}) as much as N-Proposal, "
        f"{typical([ex / n for _, n, ex in found]):.3g} times on geometric average",
        Below(grid.pairs("N-Proposal", "Ex-Proposal", [s for s, _, _ in found])),
    )


def probabilities(grid: Grid) -> Answer:
    """Inclusion probabilities of both designs against equation 2."""
    simple: dict[tuple[int, int], float] = {}
    kept, linear = [], 0.0
    for l, d in grid.points:
        try:
            design = made(grid.table, "simple", l, d)
            simple[l, d] = float(np.abs(design.inclusion().matrix - equation_2(design)).max())
            two = made(grid.table, "duplicate-processing", l, d)
            found = two.inclusion().matrix
            kept.append(float(np.abs(found - equation_2(two)).max()) < 1e-9)
            linear = max(linear, float(np.abs(found - equation_2(design)).max()))
        except NorenError:
            continue
    apart = [value > 1e-6 for (l, d), value in simple.items() if l > 2 and d > 1]
    rising = []
    for axis in (0, 1):
        for (l, d), value in simple.items():
            after = simple.get((l + 1, d) if axis == 0 else (l, d + 1))
            if after is not None and l > 1 and (value > 1e-9 or after > 1e-9):
                rising.append(after > value)
    top = max(simple, key=lambda key: simple[key])
    return judged(
        [*kept, *apart, *rising],
        f"the simple algorithm is off equation 2 by up to {simple[top]:.3f} (at {named(top)}), not at all at l = 2, "
        f"more at {sum(rising)} of {len(rising)} steps up; duplicate-processing keeps to it at {sum(kept)} of "
        f"{len(kept)} settings that it knows, if neighbours are counted on the circle; with distances as the text "
        f"defines them it is off by up to {linear:.3f}",
    )


def anonymity(grid: Grid) -> Answer:
    settings = [s for s, _ in grid.line("(a) l = 2, against d", "N-Anonymity")]
    ratios = [a / n for s, n, a in grid.both("N-Proposal", "N-Anonymity") if s in settings]
    return answer(
        f"its error is {min(ratios):.3g} to {max(ratios):.3g} times that of N-Proposal (far off: at least twice), and "
        "its counts add up to 2 times the records",
        Below(grid.pairs("N-Proposal", "N-Anonymity", settings), much=True),
    )


def tree(grid: Grid) -> Answer:
    """Ask the library for (l,e)-diversity on the ordered column."""
    said = "accepted"
    try:
        policy(grid.table, "ordinal", parted(2, 1), Anatomy())
    except PolicyError as error:
        said = f"refused: {error.problems[0].message}"
    return judged(
        [said != "accepted"], f"a policy that asks for l = 2, e = 1 on these {grid.table.size} ordered values is {said}"
    )


def no_duplicate(grid: Grid) -> Answer:
    refused = []
    for l, d in grid.points:
        if d == 1:  # all values are then equally far apart, and any order will do
            continue
        try:
            made(grid.table, "duplicate-processing", l, d)
            refused.append(False)
        except NorenError:
            refused.append(True)
    line = [(s, a / b) for s, a, b in grid.both("Ex-Proposal", "Ex-Simple") if s[0] > 2 and s[1] > 1]
    poor = [s for s, ratio in line if ratio > 1]
    told = f"; Ex-Proposal errs more than Ex-Simple, which only divides by l, at {len(poor)} of {len(line)} settings"
    return judged(
        [all(refused), *(ratio > 1 for _, ratio in line)],
        f"refused at {sum(refused)} of {len(refused)} settings with d > 1{told + ' with l > 2' if line else ''}",
    )


def alone(grid: Grid) -> Answer:
    """One record by itself: Anatomy has nobody to group it with, decoys need nobody."""
    person, done = grid.table.frame().head(1), {}
    asked = {"(l,e)-diversity": (parted(2, DEPTH - 1), Anatomy()), "decoys": (diverse(2, 2), Decoys())}
    for name, (model, method) in asked.items():
        try:
            anonymize(person, policy(grid.table, "tree", model, method))
            done[name] = "published"
        except NorenError as error:
            done[name] = f"refused ({short(error)})"
    return judged(
        [done["(l,e)-diversity"] != "published", done["decoys"] == "published"],
        "a single record, l = d = 2: " + ", ".join(f"{name} {said}" for name, said in done.items()),
    )


def le_better(grid: Grid) -> Answer:
    panel = next(name for name in grid.panels if name.startswith("(b)"))
    found = [(s, ex, le) for s, ex, le in grid.both("Ex-Proposal", LE) if s in grid.panels[panel]]
    told = ", ".join(f"{ex:.2g} against {le:.2g} at l = {s[0]}" for s, ex, le in found)
    return answer(f"Ex-Proposal against LE: {told}", Below(grid.pairs(LE, "Ex-Proposal", grid.panels[panel])))


def le_not_always(grid: Grid) -> Answer:
    found = grid.both("Ex-Proposal", LE)
    better = [s for s, ex, le in found if ex < le]
    return answer(
        f"Ex-Proposal errs less than LE at {len(better)} of {len(found)} settings"
        + (f": {', '.join(f'({l},{d})' for l, d in better)}" if better else ""),
        Some(Below(grid.pairs("Ex-Proposal", LE))),
    )


ANSWERS: Mapping[str, Callable[[Grid], Answer]] = {
    "n-proposal": n_proposal,
    "ex-small": ex_small,
    "ex-grows": ex_grows,
    "analysis": analysis,
    "loss": loss,
    "duplicate": duplicate,
    "probabilities": probabilities,
    "anonymity": anonymity,
    "tree": tree,
    "no-duplicate": no_duplicate,
    "alone": alone,
    "le-better": le_better,
    "le-not-always": le_not_always,
}
