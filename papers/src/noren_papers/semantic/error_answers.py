"""What figures 11, 12 and 13 say about each claim, from the measured errors."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np

from noren.errors import NorenError
from noren_papers.base import FAILS, HOLDS, Answer, judged
from noren_papers.semantic.combinations import DUPLICATE, LE, SIMPLE, made, short
from noren_papers.semantic.grid import Grid, factor, named
from noren_papers.semantic.material import DEPTH
from noren_papers.semantic.policies import diverse, parted, policy

CLOSE = 1.5
"""No worse: at most so many times the other's error."""
SMALL = 4
"""l d up to which l and d are called small."""
FAR = 10.0
"""Far off, and far less: at least so many times."""


def n_proposal(grid: Grid) -> Answer:
    outcomes, worst, place = [], 0.0, (0, 0)
    for setting in grid.points:
        own = grid.mse(setting, "N-Proposal")
        if own is None:
            continue
        rivals = [v for name in (*DUPLICATE[1:], *SIMPLE) if (v := grid.mse(setting, name)) is not None]
        ratio = own / min(rivals)
        outcomes.append(ratio <= CLOSE)
        if ratio > worst:
            worst, place = ratio, setting
    values = [v for s in grid.points if (v := grid.mse(s, "N-Proposal")) is not None]
    missing = len(grid.points) - len(values)
    gone = f"; at {missing} settings it does not exist or loses the counts" if missing else ""
    return judged(
        outcomes,
        f"between {min(values):.2g} and {max(values):.2g}; asked that no other of the paper's combinations be more "
        f"than {CLOSE:g} times better, at worst {worst:.2f} times at {named(place)}{gone}",
    )


def ex_small(grid: Grid) -> Answer:
    pairs = [(s, ex / n) for s, ex, n in grid.both("Ex-Proposal", "N-Proposal") if s[0] * s[1] <= SMALL]
    told = ", ".join(f"{ratio:.2f} at {named(s)}" for s, ratio in pairs)
    return judged(
        [ratio <= CLOSE for _, ratio in pairs],
        f"error over that of N-Proposal where l d <= {SMALL}: {told} (up to {CLOSE:g} counts)",
    )


def ex_grows(grid: Grid) -> Answer:
    outcomes, told = [], []
    for panel in grid.panels:
        line = grid.line(panel, "Ex-Proposal")
        outcomes += [b > a for (_, a), (_, b) in itertools.pairwise(line)]
        if len(line) > 1:
            told.append(f"{panel[:3]} {line[0][1]:.2g} to {line[-1][1]:.2g}")
    return judged(outcomes, f"from the first to the last point {', '.join(told)}; step by step it rises")


def analysis(grid: Grid) -> Answer:
    outcomes, told = [], []
    for own, rivals in (("N-Proposal", DUPLICATE[1:3]), ("Ex-Proposal", SIMPLE[1:])):
        for rival in rivals:
            pairs = [(s, a, b) for s, a, b in grid.both(own, rival) if s[1] > 1]
            if not pairs:
                continue
            outcomes += [a < b for _, a, b in pairs]
            lost = [s for s, a, b in pairs if a >= b]
            where = (
                f" (not at {', '.join(f'({l},{d})' for l, d in lost[:4])}{', ...' if len(lost) > 4 else ''})"
                if lost
                else ""
            )
            told.append(f"{rival} errs {factor([b / a for _, a, b in pairs]):.3g} times as much as {own}{where}")
    return judged(outcomes, "for d > 1, on geometric average " + "; ".join(told))


def loss(grid: Grid) -> Answer:
    """The paper's best combination against the existing analysis, and against LE where it can be used."""
    best = "N-Proposal" if any(s[1] > 1 for s, _, _ in grid.both("N-Proposal", "N-Simple")) else "Ex-Proposal"
    existing = best.replace("Proposal", "Existing")
    outcomes, told = [], []
    for rival in (existing, best.replace("Proposal", "Simple"), LE):
        ratios = [b / a for s, a, b in grid.both(best, rival) if s[1] > 1]
        if ratios:
            outcomes += [ratio >= FAR for ratio in ratios]
            told.append(f"{rival} {factor(ratios):.3g} times ({min(ratios):.2g} to {max(ratios):.2g})")
    return judged(
        outcomes, f"error over that of {best}, for d > 1: {'; '.join(told)}; far less is read as {FAR:g} times"
    )


def duplicate(grid: Grid) -> Answer:
    pairs = [found for found in grid.both("N-Proposal", "Ex-Proposal") if found[0][1] > 1]
    worst = max(pairs, key=lambda found: found[2] / found[1])
    least = min(pairs, key=lambda found: found[2] / found[1])
    return judged(
        [n < ex for _, n, ex in pairs],
        f"where the algorithms differ (d > 1) Ex-Proposal errs between {least[2] / least[1]:.2f} times (at "
        f"{named(least[0])}) and {worst[2] / worst[1]:.3g} times (at {named(worst[0])}) as much as N-Proposal, "
        f"{factor([ex / n for _, n, ex in pairs]):.3g} times on geometric average",
    )


def probabilities(grid: Grid) -> Answer:
    """Inclusion probabilities of both designs against equation 2."""
    from noren.analysis.estimators import equation_2

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
    line = [(s, v) for s, v in grid.line("(a) l = 2, against d", "N-Anonymity")]
    ratios = {s: v / n for s, v in line if (n := grid.mse(s, "N-Proposal")) is not None}
    total = {s: s[0] for s in ratios}
    return judged(
        [ratio >= FAR for ratio in ratios.values()],
        f"its error is {min(ratios.values()):.3g} to {max(ratios.values()):.3g} times that of N-Proposal, and its "
        f"counts add up to {set(total.values()).pop() if total else 0} times the records",
    )


def tree(grid: Grid) -> Answer:
    """Ask the library for (l,e)-diversity on the ordered column."""
    from noren.errors import PolicyError
    from noren.methods import Anatomy

    said = "accepted"
    try:
        policy(grid.table, "ordinal", parted(2, 1), Anatomy())
    except PolicyError as error:
        said = f"refused: {error.problems[0].message}"
    return Answer(
        HOLDS if said != "accepted" else FAILS,
        f"a policy that asks for l = 2, e = 1 on these {grid.table.size} ordered values is {said}",
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
    from noren import anonymize
    from noren.methods import Anatomy, Decoys

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
    pairs = [(s, ex, le) for s, ex, le in grid.both("Ex-Proposal", LE) if s in grid.panels[panel]]
    told = ", ".join(f"{ex:.2g} against {le:.2g} at l = {s[0]}" for s, ex, le in pairs)
    return judged([ex > le for _, ex, le in pairs], f"Ex-Proposal against LE: {told}")


def le_not_always(grid: Grid) -> Answer:
    pairs = grid.both("Ex-Proposal", LE)
    better = [s for s, ex, le in pairs if ex < le]
    return Answer(
        HOLDS if better else FAILS,
        f"Ex-Proposal errs less than LE at {len(better)} of {len(pairs)} settings"
        + (f": {', '.join(f'({l},{d})' for l, d in better)}" if better else ""),
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
