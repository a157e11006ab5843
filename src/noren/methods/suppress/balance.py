"""Generalisation and left-out terms chosen together: a budget for one loss, the other as small as it gets.

Two phases fix the groups before any term is looked at. Here cuts are kept as trees whose every node could be a group,
with two prices: what its records lose by generalisation (NCP), and what its terms cost (equation
2, by the search that suppresses them). A cover of a tree, one node on every way from the root to a leaf, is a
grouping. For a fixed exchange rate between the two prices the best cover comes from one walk up the tree; the rate is
bisected until the budget is met, and single moves use up what is left of it. The groupings of two phases with the
sizes of the ladder are covers too, and so are those of `mondrian` under the requirements on terms, which costs none.

Two kinds. A plain tree is cut for groups of some size and looks at no terms. A staged tree is cut under the
requirements on terms first, then under weaker and weaker ones, each inside the pieces of the last, and at the end
under none: its upper nodes hold without losing a term, and further down every cut that could keep terms is made
before those that cannot.

The mean over records adds up over groups and is therefore what is bounded and minimised by default. The plain mean
over groups, which the paper reports, can be bounded and minimised as well ("groups"): sum (cost - mean) <= 0 adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from noren.engines import RandomOrder, Records
from noren.errors import NorenError, RequirementNotMet
from noren.methods.mondrian import unreachable
from noren.methods.mondrian.classes import Workbench
from noren.methods.requirements import about_values
from noren.methods.suppress.beliefs import Linkage, linkages
from noren.models import KAnonymity
from noren.models.base import Model
from noren.ragged import offsets_of, owners, ranges, runs

if TYPE_CHECKING:
    from noren.methods.mondrian.kernels.term_rules import TermRules
    from noren.methods.suppress.kernels.balance import Shape

Progress = Callable[[int, int, float], None]

LADDER = (1, 2, 5, 10, 20)
"""Sizes of the plain trees, in multiples of k."""
STAGES = (1.0, 1.3, 1.7, 2.5)
"""How much weaker than required the stages are; there is a tree for every stage to begin with."""
NODES = 2000
ROUNDS = 2
MOST_RECORDS = 96
"""Larger nodes are groups only if they hold as they are: searching them would take long and gain little."""
ENTRIES_AT_ONCE = 1 << 22
NEVER = np.iinfo(np.int64).max
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
Chosen = tuple[Figures, "CutTree", NDArray[np.bool_]]


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


@dataclass(frozen=True)
class CutTree:
    """Inner nodes come first, then leaves; `upwards` lists the inner nodes, children before parents.

    Node v holds the records who[extent[v, 0]:extent[v, 1]]. Prices are per record; a node that cannot be a group has
    an infinite `cost`.
    """

    who: NDArray[np.int64]
    children: NDArray[np.int64]
    extent: NDArray[np.int64]
    upwards: NDArray[np.int64]
    ncp: NDArray[np.float64]
    cost: NDArray[np.float64]

    @property
    def shape(self) -> Shape:
        from noren.methods.suppress.kernels.balance import Shape

        return Shape(self.children, self.upwards)

    @property
    def size(self) -> NDArray[np.int64]:
        return np.asarray(self.extent[:, 1] - self.extent[:, 0])

    @property
    def root(self) -> int:
        return int(self.upwards[-1]) if len(self.upwards) else 0


def grown(
    table: Records, requirements: Sequence[Model], order: RandomOrder, k: int, ladder: Sequence[int]
) -> list[CutTree]:
    """Plain and staged trees. Requirements that are not about terms hold in all nodes, and k in all leaves."""
    classic = about_values(requirements)
    out = []
    for step in sorted({1, *ladder}):
        asked = [*classic, KAnonymity(k=step * k)] if step * k > 1 else classic
        if (reason := unreachable(table, asked)) is None:
            out.append(cut_tree_of(Workbench(table, asked, order, {}), (None,)))
        elif step == 1:
            raise RequirementNotMet(reason[0], hint=reason[1])
    asked = [*requirements, KAnonymity(k=k)] if k > 1 else list(requirements)
    for first in range(len(STAGES) if len(classic) < len(requirements) else 0):
        out.append(cut_tree_of(Workbench(table, asked, order, {}), (*STAGES[first:], None)))
    return out


def cut_tree_of(bench: Workbench, stages: Sequence[float | None], rounds: int = ROUNDS) -> CutTree:
    """Cut, let records move between the pieces and cut these again; then cut on under the weaker stages.

    The nodes of all stages stay in one piece. A cut keeps its number when records move. Pieces that are left empty
    vanish, and of two cuts that come to lie at one place the earlier one, which is nearer to the root, stands for
    both.
    """
    from noren.methods.suppress.kernels import balance as kernel

    n = len(bench.records.who)
    asked = bench.required
    bench.required = asked._replace(terms=weaker(asked.terms, stages[0]))
    marks = bench.divide(np.array([0, n]), False)
    awake = np.ones(n, bool)
    for _ in range(rounds):
        places = np.flatnonzero(marks)
        begins = np.concatenate(([0], places))
        of, count = owners(begins), len(begins) - 1
        touched = bench.refine(begins, of, awake[begins[:-1]])
        if not touched.any():
            break
        awake = touched[of[bench.arrange(of)]]
        earlier = np.full(n + 1, NEVER)
        np.minimum.at(earlier, np.cumsum(np.bincount(of, minlength=count)), marks[places])
        marks = _cut_on(bench, np.where(earlier < NEVER, earlier, 0))
    for stage in stages[1:]:
        bench.required = asked._replace(terms=weaker(asked.terms, stage))
        marks = _cut_on(bench, marks)
    places = np.flatnonzero(marks[:n])
    children, extent, upwards = kernel.cut_tree(places, marks[places], n)
    ncp = kernel.node_losses(bench.records.rows, extent, bench.space.costs)
    return CutTree(bench.records.who, children, extent, upwards, ncp, np.zeros(len(extent)))


def _cut_on(bench: Workbench, marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut the pieces between the marks; new cuts have higher numbers."""
    marks[0] = 0
    again = bench.divide(np.concatenate(([0], np.flatnonzero(marks))), False)
    return np.where(marks > 0, marks, np.where(again > 0, again + marks.max(), 0))


def weaker(rules: TermRules | None, factor: float | None) -> TermRules | None:
    """Rules that ask for less by a factor: a larger c or t, more overlap under "emd". None asks for nothing."""
    from noren.methods.mondrian.kernels.term_rules import NEAR_EMD

    if rules is None:
        return None
    if factor is None:
        return rules._replace(of=rules.of[:0])
    apart = 1 - (1 - rules.first) / factor
    return rules._replace(first=np.where(rules.kinds == NEAR_EMD, np.maximum(rules.first, apart), rules.first * factor))


def priced(
    trees: Sequence[CutTree],
    asked: Sequence[Linkage],
    nodes: int | None,
    seconds: float | None,
    progress: Progress | None,
) -> list[CutTree]:
    """The trees with what the terms of every node cost: the mean over the knowledge tables.

    A set of records that is a node of several trees is searched once. Where no grouping at all is possible, large
    nodes are searched as well.
    """
    n = len(trees[0].who)
    who = np.concatenate([tree.who for tree in trees])
    extent = np.concatenate([tree.extent + number * n for number, tree in enumerate(trees)])
    leaf = np.concatenate([np.arange(len(tree.cost)) >= len(tree.children) for tree in trees])
    first, of = _same_records(who, extent, n)
    size = (extent[:, 1] - extent[:, 0])[first]
    small = (size <= MOST_RECORDS) | (np.bincount(of, leaf, minlength=len(first)) > 0)
    for searched in (small, np.ones(len(first), bool)):
        found = [_node_costs(who, extent[first], n, one, searched, nodes, seconds, progress) for one in asked]
        cost = (np.mean(found, axis=0) if found else np.zeros(len(first)))[of]
        parts = np.split(cost, offsets_of([len(tree.cost) for tree in trees])[1:-1])
        out = [replace(tree, cost=part) for tree, part in zip(trees, parts, strict=True)]
        if any(possible(tree) for tree in out):
            break
    return out


def possible(tree: CutTree) -> bool:
    """Whether some cover of the tree consists of nodes that can be groups."""
    from noren.methods.suppress.kernels.balance import Prices, best_covers

    _, sums = best_covers(tree.shape, Prices(np.isfinite(tree.cost), tree.ncp, tree.ncp), 0.5)
    return bool(np.isfinite(sums[tree.root, 0]))


def _same_records(
    who: NDArray[np.int64], extent: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nodes that hold the same records: the first of each, and the number of every node among them.

    Sums of two random words per record tell the sets apart, but for a chance of about nodes^2 / 2^128.
    """
    words = np.random.default_rng(n).integers(0, 2**64, (n, 2), np.uint64)
    ahead = np.zeros((len(who) + 1, 2), np.uint64)
    np.cumsum(words[who], axis=0, out=ahead[1:])
    _, first, of = np.unique(ahead[extent[:, 1]] - ahead[extent[:, 0]], axis=0, return_index=True, return_inverse=True)
    return first, of.ravel()


def _node_costs(
    who: NDArray[np.int64],
    extent: NDArray[np.int64],
    n: int,
    found: Linkage,
    searched: NDArray[np.bool_],
    nodes: int | None,
    seconds: float | None,
    progress: Progress | None,
) -> NDArray[np.float64]:
    """What the terms of every node cost; infinite where they cannot be mended, or the node is not searched and fails.

    The members of a node stand in the order of the table, so that whoever searches it again finds the same.
    """
    from noren.methods.suppress.beliefs import measure_groups
    from noren.methods.suppress.search import search_groups

    ((rule, unlinked),) = found.rules
    cells, size = found.cells, extent[:, 1] - extent[:, 0]
    cost = np.full(len(size), np.inf)
    done = 0
    for search in (False, True):
        wanted = np.flatnonzero(searched == search)
        for some in _chunks(wanted, size[wanted]):
            bounds, place = offsets_of(size[some]), ranges(extent[some, 0], extent[some, 1])
            members = np.sort(owners(bounds) * n + who[place]) % n
            given = (members, bounds, cells.offsets, cells.data, found.knowledge)
            if search:
                watch = _shifted(progress, done, len(size))
                cost[some] = search_groups(
                    *given, rule, found.alpha, nodes=nodes, seconds=seconds, unlinked=unlinked, progress=watch
                ).cost
            else:
                measures = measure_groups(*given, found.alpha, l=rule.l, unlinked=unlinked)
                cost[some] = np.where(rule.holds(measures), 0.0, np.inf)
            done += len(some)
    return cost


def _shifted(progress: Progress | None, done: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda mine, _, cost: progress(done + mine, total, cost)


def _chunks(wanted: NDArray[np.int64], size: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Nodes in runs whose records together stay below a limit."""
    number = np.cumsum(size) // ENTRIES_AT_ONCE
    return np.split(wanted, runs(number)[1:-1]) if len(wanted) else []
