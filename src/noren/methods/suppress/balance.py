"""Generalisation and left-out terms chosen together: a budget for one loss, the other as small as it gets.

Two phases fix the groups before any term is looked at. Here cuts are kept as trees whose every node could be a group
(`cut_trees`), with two prices: what its records lose by generalisation (NCP), and what its terms cost (equation
2, by the search that suppresses them). A cover of a tree, one node on every way from the root to a leaf, is a
grouping. For a fixed exchange rate between the two prices the best cover comes from one walk up the tree; the rate is
bisected until the budget is met, and single moves use up what is left of it. The groupings of two phases with the
sizes of the ladder are covers too, and so are those of `mondrian` under the requirements on terms, which costs none.

The mean over records adds up over groups and is therefore what is bounded and minimised by default. The plain mean
over groups, which the paper reports, can be bounded and minimised as well ("groups"): sum (cost - mean) <= 0 adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from noren.engines import RandomOrder, Records
from noren.errors import NorenError, RequirementNotMet
from noren.methods.suppress.cut_trees import LADDER, NODES, CutTree, Progress, grown, priced
from noren.methods.suppress.linkages import linkages
from noren.models.base import Model

Weighting = Literal["records", "groups"]

STEPS = 45
MOVES = 256
CURVE = np.concatenate((np.linspace(0, 1, 41)[1:-1], [1e-9, 1e-3, 1 - 1e-3, 1 - 1e-9]))
SLACK = 1e-12


@dataclass(frozen=True)
class Balanced:
    """A grouping under a budget: the class of every record, and what was expected of it when it was chosen."""

    classes: NDArray[np.int64]
    count: int
    generalisation: float
    """Mean NCP over records and quasi-identifiers."""
    terms: float
    """Mean inverse weighted cost over records: a group counts as often as it has records."""
    terms_of_groups: float
    """The plain mean over groups."""
    curve: list[tuple[float, float]]
    """What other budgets would give: (generalisation, terms over records), generalisation ascending."""


def balanced(
    table: Records,
    requirements: Sequence[Model],
    order: RandomOrder,
    *,
    k: int = 1,
    generalisation: float | None = None,
    terms: float | None = None,
    weighting: Weighting = "records",
    nodes: int | None = NODES,
    seconds: float | None = None,
    ladder: Sequence[int] = LADDER,
    progress: Progress | None = None,
) -> Balanced:
    """Groups of at least k records that keep the one budget that is given and make the other loss small.

    Requirements that are not about terms hold in every group. nodes, seconds: bounds of the search for one group;
    without seconds a run can be repeated exactly. ladder: the sizes to cut for, in multiples of k.
    """
    if (generalisation is None) == (terms is None):
        raise NorenError("one budget is needed, and only one.", hint="Give generalisation or terms.")
    asked = [found for found in linkages(table, requirements) if found.rules]
    if any(len(found.rules) > 1 for found in asked):
        raise NorenError("a search meets one requirement on terms at a time.", hint='Keep one, or use "mondrian".')
    forest = priced(grown(table, requirements, order, k, ladder), asked, nodes, seconds, progress)
    curve = _curve(forest)
    attempts = (_choose(tree, generalisation, terms, weighting) for tree in forest)
    covers = [found for found in attempts if found is not None]
    if not covers:
        _refuse(curve, forest, k, generalisation, terms, weighting)
    last = 2 if weighting == "groups" else 1
    ranks = (0, last) if generalisation is None else (last, 0)
    figures, tree, cover = min(covers, key=lambda found: tuple(round(found[0][rank], 12) for rank in ranks))
    classes = np.empty(table.n, np.int64)
    chosen = np.flatnonzero(cover)
    for number, node in enumerate(chosen[np.argsort(tree.extent[chosen, 0])].tolist()):
        classes[tree.who[tree.extent[node, 0] : tree.extent[node, 1]]] = number
    return Balanced(classes, len(chosen), *figures, curve)


def _best(
    tree: CutTree, possible: NDArray[np.bool_], bounded: NDArray, wanted: NDArray, share: float
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    from noren.methods.suppress.kernels.balance import Prices, best_covers

    found: Any = best_covers(tree.shape, Prices(possible, bounded, wanted), share)
    return found


Figures = tuple[float, float, float]
Chosen = tuple[Figures, CutTree, NDArray[np.bool_]]


def _choose(tree: CutTree, generalisation: float | None, terms: float | None, weighting: Weighting) -> Chosen | None:
    """The cover of one tree; None if it cannot keep the budget."""
    ncp, cost = _means(tree)
    if weighting == "records":
        bounded, wanted, budget = (ncp, cost, generalisation) if terms is None else (cost, ncp, terms)
        assert budget is not None
        return _under(tree, bounded, wanted, budget)
    if terms is not None:
        return _under(tree, _over_groups(tree, terms), ncp, 0.0)
    assert generalisation is not None
    low, high = 0.0, 1.0
    best = _under(tree, ncp, cost, generalisation)
    if best is None:
        return None
    high = best[0][2]
    for _ in range(STEPS // 2):
        middle = (low + high) / 2
        found = _under(tree, _over_groups(tree, middle), ncp, 0.0)
        if found is not None and found[0][0] <= generalisation + SLACK:
            best, high = found, min(middle, found[0][2])
        else:
            low = middle
    return best


def _means(tree: CutTree) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What every node adds to the means over records."""
    share = tree.size / len(tree.who)
    return tree.ncp * share, np.where(np.isfinite(tree.cost), tree.cost, 0.0) * share


def _over_groups(tree: CutTree, mean: float) -> NDArray[np.float64]:
    """Numbers that add up to at most 0 where the plain mean over groups is at most `mean`."""
    return np.where(np.isfinite(tree.cost), tree.cost - mean, 0.0) / (len(tree.children) + 1)


def _under(tree: CutTree, bounded: NDArray, wanted: NDArray, budget: float) -> Chosen | None:
    """The best cover with bounded <= budget: the exchange rate by bisection, then single moves."""
    from noren.methods.suppress.kernels import balance as kernel

    possible = np.isfinite(tree.cost)
    rigid, frugal = _best(tree, possible, bounded, wanted, 1.0)
    if not frugal[tree.root, 0] <= budget + SLACK:
        return None
    low, high = 0.0, 1.0
    lavish = _best(tree, possible, bounded, wanted, 0.0)
    keeps, breaks = (rigid, frugal), lavish
    if breaks[1][tree.root, 0] <= budget + SLACK:
        keeps, low = breaks, 1.0
    for _ in range(STEPS):
        if low >= high:
            break
        middle = (low + high) / 2
        found = _best(tree, possible, bounded, wanted, middle)
        if found[1][tree.root, 0] <= budget + SLACK:
            keeps, high = found, middle
        else:
            breaks, low = found, middle
    others, sums = (np.stack(found) for found in zip(keeps, breaks, (rigid, frugal), lavish, strict=True))
    prices = kernel.Prices(possible, bounded, wanted)
    candidates = []
    for stops in (keeps[0], _leaves(tree)):
        cover = np.zeros(len(possible), bool)
        kernel.cover_below(tree.children, stops, tree.root, cover)
        left = budget + SLACK - float(bounded[cover].sum())
        if left >= -SLACK and possible[cover].all():
            kernel.use_up(tree.shape, prices, others, sums, cover, left, MOVES)
            candidates.append((float(wanted[cover].sum()), cover))
    cover = min(candidates, key=lambda found: found[0])[1]
    return _figures(tree, cover), tree, cover


def _leaves(tree: CutTree) -> NDArray[np.bool_]:
    """The cover that two phases would take: every piece as it was cut."""
    return np.arange(len(tree.cost)) >= len(tree.children)


def _figures(tree: CutTree, cover: NDArray[np.bool_]) -> Figures:
    ncp, cost = _means(tree)
    return float(ncp[cover].sum()), float(cost[cover].sum()), float(tree.cost[cover].mean())


def _curve(forest: Sequence[CutTree]) -> list[tuple[float, float]]:
    """Pairs of losses that no other pair of the forest's best covers beats in both."""
    found = []
    for tree in forest:
        ncp, cost = _means(tree)
        for share in CURVE.tolist():
            sums = _best(tree, np.isfinite(tree.cost), ncp, cost, share)[1]
            if np.isfinite(sums[tree.root, 0]):
                found.append((float(sums[tree.root, 0]), float(sums[tree.root, 1])))
    out: list[tuple[float, float]] = []
    for pair in sorted(found):
        if not out or pair[1] < out[-1][1] - SLACK:
            out.append(pair)
    return out


def _refuse(
    curve: list[tuple[float, float]],
    forest: Sequence[CutTree],
    k: int,
    generalisation: float | None,
    terms: float | None,
    weighting: Weighting,
) -> NoReturn:
    if not curve:
        raise RequirementNotMet(
            "the terms reveal too much in every grouping, whatever is left out.",
            hint="Ask for less: a larger t or c, or a smaller l.",
        )
    if generalisation is not None:
        what, budget, least = "generalisation", generalisation, curve[0][0]
    else:
        what, budget, least = "terms", terms or 0.0, curve[-1][1]
        if weighting == "groups":
            least = min(_least_over_groups(tree) for tree in forest)
    raise RequirementNotMet(
        f"no grouping with at least {k} record{'s' if k > 1 else ''} a group keeps {what} at {budget:.4g}; "
        f"{least:.4g} is reachable.",
        hint=f"Set {what} to at least {np.ceil(least * 1e4) / 1e4:g}, or ask for less protection.",
    )


def _least_over_groups(tree: CutTree) -> float:
    """The smallest plain mean over groups that a cover reaches."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        over = _over_groups(tree, middle)
        if _best(tree, np.isfinite(tree.cost), over, over, 1.0)[1][tree.root, 0] <= SLACK:
            high = middle
        else:
            low = middle
    return high
