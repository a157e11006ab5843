"""Generalisation and suppression of terms together: one loss is limited, the other minimised.

Two phases fix the groups before any term is looked at. Here cuts are kept as trees whose every node could be a group,
with two prices: what its records lose by generalisation (NCP), and what its terms cost (equation
2, by the search that suppresses them). A cover of a tree, one node on every way from the root to a leaf, is a
grouping. For a fixed exchange rate between the two prices the best cover comes from one walk up the tree; the rate is
bisected until the budget is met. The groups of two phases are a cover too, and so are those of `mondrian` under the
requirements on terms, which costs none.

Two trees. The plain tree is cut for groups of k and looks at no terms. The staged tree is cut under the requirements on
terms first, then under weaker and weaker ones, each inside the pieces of the last, and at the end under none: its upper
nodes hold without losing a term, and further down every cut that could keep terms is made before those that cannot.
More trees (plain ones for larger groups, staged ones that begin with weaker requirements) change the other loss by less
than 1%.

What is bounded and minimised are means over records: they add up over groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from noren.engines import RandomOrder, Records
from noren.errors import NorenError, RequirementNotMet
from noren.methods.mondrian.classes import Workbench
from noren.methods.mondrian.kernels.term_rules import NEAR_EMD, TermRules
from noren.methods.requirements import about_values, demand_reachable
from noren.methods.suppress.beliefs import Linkage, linkages, measure_groups
from noren.methods.suppress.kernels.balance import Prices, Shape, best_cover, cut_tree, node_losses
from noren.methods.suppress.search import search_groups
from noren.models import KAnonymity
from noren.models.base import Model
from noren.ragged import offsets_of, owners, ranges, runs

Progress = Callable[[int, int, float], None]

STAGES = (1.0, 1.3, 1.7, 2.5, None)
"""How much weaker than required the stages of the staged tree are; the last one requires nothing of terms."""
NODES = 2000
ROUNDS = 2
MOST_RECORDS = 96
"""Larger nodes are groups only if they hold as they are: searching them would take long and gain little."""
ENTRIES_AT_ONCE = 1 << 22
NEVER = np.iinfo(np.int64).max
STEPS = 45
SLACK = 1e-12


@dataclass(frozen=True)
class Balanced:
    """A grouping within a limit: the class of every record, and the expected losses."""

    classes: NDArray[np.int64]
    count: int
    generalisation: float
    """Mean NCP over records and quasi-identifiers."""
    terms: float
    """Mean inverse weighted cost over records: a group counts as often as it has records."""


def balance_losses(
    table: Records,
    requirements: Sequence[Model],
    order: RandomOrder,
    *,
    k: int = 1,
    generalisation: float | None = None,
    terms: float | None = None,
    nodes: int | None = NODES,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Balanced:
    """Return groups of at least k records that keep the given limit and have a small other loss.

    Requirements that are not about terms hold in every group. nodes, seconds: bounds of the search for one group;
    without seconds a run can be repeated exactly.
    """
    if (generalisation is None) == (terms is None):
        raise NorenError("one budget is needed, and only one.", hint="Give generalisation or terms.")
    asked = [found for found in linkages(table, requirements) if found.rules]
    if any(len(found.rules) > 1 for found in asked):
        raise NorenError("the search handles one requirement on terms at a time.", hint='Keep one, or use "mondrian".')
    forest = price_trees(grow_trees(table, requirements, order, k), asked, nodes, seconds, progress)
    attempts = (_choose(tree, generalisation, terms) for tree in forest)
    covers = [found for found in attempts if found is not None]
    if not covers:
        _refuse(forest, k, generalisation, terms)
    ranks = (0, 1) if generalisation is None else (1, 0)
    figures, tree, cover = min(covers, key=lambda found: tuple(round(found[0][rank], 12) for rank in ranks))
    classes = np.empty(table.n, np.int64)
    chosen = np.flatnonzero(cover)
    for number, node in enumerate(chosen[np.argsort(tree.extent[chosen, 0])].tolist()):
        classes[tree.who[tree.extent[node, 0] : tree.extent[node, 1]]] = number
    return Balanced(classes, len(chosen), *figures)


Figures = tuple[float, float]
Chosen = tuple[Figures, "CutTree", NDArray[np.bool_]]


def _choose(tree: CutTree, generalisation: float | None, terms: float | None) -> Chosen | None:
    """Return the cover of a tree within the limit and with a small other loss: that of the best exchange rate, found by
    bisection, or the leaves; None if none keeps the limit."""
    ncp, cost = _means(tree)
    bounded, wanted, budget = (ncp, cost, generalisation) if terms is None else (cost, ncp, terms)
    assert budget is not None
    best, least, _ = _best(tree, bounded, wanted, 1.0)
    if not least <= budget + SLACK:
        return None
    low, high, middle = 0.0, 1.0, 0.0
    for _ in range(STEPS):
        found, reached, _ = _best(tree, bounded, wanted, middle)
        if reached <= budget + SLACK:
            best, high = found, middle
        else:
            low = middle
        if low >= high:
            break
        middle = (low + high) / 2
    leaves = np.arange(len(tree.cost)) >= len(tree.children)
    kept = [
        one for one in (best, leaves) if np.isfinite(tree.cost[one]).all() and bounded[one].sum() <= budget + 2 * SLACK
    ]
    cover = min(kept, key=lambda one: float(wanted[one].sum()))
    return (float(ncp[cover].sum()), float(cost[cover].sum())), tree, cover


def _best(tree: CutTree, bounded: NDArray, wanted: NDArray, share: float) -> tuple[NDArray[np.bool_], float, float]:
    prices = Prices(np.isfinite(tree.cost), bounded, wanted)
    cover, first, second = best_cover(Shape(tree.children, tree.upwards), prices, share)
    return cover, float(first), float(second)


def _means(tree: CutTree) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the contribution of every node to the means over records."""
    share = tree.size / len(tree.who)
    return tree.ncp * share, np.where(np.isfinite(tree.cost), tree.cost, 0.0) * share


def _refuse(forest: Sequence[CutTree], k: int, generalisation: float | None, terms: float | None) -> NoReturn:
    """Raise an error that states the smallest reachable loss."""
    what, budget = ("generalisation", generalisation) if terms is None else ("terms", terms)
    least = min(_best(tree, *(_means(tree)[terms is not None],) * 2, 1.0)[1] for tree in forest)
    if not np.isfinite(least):
        raise RequirementNotMet(
            "the terms disclose too much in every grouping, whatever is suppressed.",
            hint="Lower the requirement: a larger t or c, or a smaller l.",
        )
    raise RequirementNotMet(
        f"no grouping with at least {k} record{'s' if k > 1 else ''} a group keeps {what} at {budget:.4g}; the "
        f"smallest reachable value is {least:.4g}.",
        hint=f"Set {what} to at least {np.ceil(least * 1e4) / 1e4:g}, or lower the requirement.",
    )


@dataclass(frozen=True)
class CutTree:
    """A tree of cuts. Inner nodes come first, then leaves; `upwards` lists the inner nodes, children before parents.

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
    def size(self) -> NDArray[np.int64]:
        return np.asarray(self.extent[:, 1] - self.extent[:, 0])


def grow_trees(table: Records, requirements: Sequence[Model], order: RandomOrder, k: int) -> list[CutTree]:
    """Grow the plain and the staged tree. Requirements that are not about terms hold in all nodes, and k in all
    leaves."""
    classic = about_values(requirements)
    sized = [KAnonymity(k=k)] if k > 1 else []
    demand_reachable(table, [*classic, *sized])
    out = [cut_tree_of(Workbench(table, [*classic, *sized], order, {}), STAGES[-1:])]
    if len(classic) < len(requirements):
        out.append(cut_tree_of(Workbench(table, [*requirements, *sized], order, {}), STAGES))
    return out


def cut_tree_of(bench: Workbench, stages: Sequence[float | None], rounds: int = ROUNDS) -> CutTree:
    """Cut, let records move between the parts and cut these again; then continue under the weaker stages.

    The nodes of all stages stay in one piece. A cut keeps its number when records move. Pieces that are left empty
    vanish, and of two cuts that come to lie at one place the earlier one, which is nearer to the root, stands for
    both.
    """
    n = len(bench.records.who)
    asked = bench.required
    bench.required = asked._replace(terms=weaken_rules(asked.terms, stages[0]))
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
        bench.required = asked._replace(terms=weaken_rules(asked.terms, stage))
        marks = _cut_on(bench, marks)
    places = np.flatnonzero(marks[:n])
    children, extent, upwards = cut_tree(places, marks[places], n)
    ncp = node_losses(bench.records.rows, extent, bench.space.costs)
    return CutTree(bench.records.who, children, extent, upwards, ncp, np.zeros(len(extent)))


def _cut_on(bench: Workbench, marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut the parts between the marks; new cuts have higher numbers."""
    marks[0] = 0
    again = bench.divide(np.concatenate(([0], np.flatnonzero(marks))), False)
    return np.where(marks > 0, marks, np.where(again > 0, again + marks.max(), 0))


def weaken_rules(rules: TermRules | None, factor: float | None) -> TermRules | None:
    """Weaken rules by a factor: a larger c or t, more overlap under "emd". None removes the rule."""
    if rules is None:
        return None
    if factor is None:
        return rules._replace(of=rules.of[:0])
    apart = 1 - (1 - rules.first) / factor
    return rules._replace(first=np.where(rules.kinds == NEAR_EMD, np.maximum(rules.first, apart), rules.first * factor))


def price_trees(
    trees: Sequence[CutTree],
    asked: Sequence[Linkage],
    nodes: int | None,
    seconds: float | None,
    progress: Progress | None,
) -> list[CutTree]:
    """Add the cost of the terms of every node to the trees: the mean over the knowledge tables. If no grouping is
    possible, large nodes are searched as well."""
    n = len(trees[0].who)
    who = np.concatenate([tree.who for tree in trees])
    extent = np.concatenate([tree.extent + number * n for number, tree in enumerate(trees)])
    leaf = np.concatenate([np.arange(len(tree.cost)) >= len(tree.children) for tree in trees])
    ends = offsets_of([len(tree.cost) for tree in trees])[1:-1]
    for searched in ((extent[:, 1] - extent[:, 0] <= MOST_RECORDS) | leaf, np.ones(len(extent), bool)):
        found = [_node_costs(who, extent, n, one, searched, nodes, seconds, progress) for one in asked]
        cost = np.mean(found, axis=0) if found else np.zeros(len(extent))
        out = [replace(tree, cost=part) for tree, part in zip(trees, np.split(cost, ends), strict=True)]
        if any(np.isfinite(_best(tree, tree.ncp, tree.ncp, 0.5)[1]) for tree in out):
            break
    return out


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
    """Return the cost of the terms of every node; infinite if they cannot be fixed, or the node is not searched and
    fails.

    The members of a node stand in the order of the table, so that whoever searches it again finds the same.
    """
    ((rule, unlinked),) = found.rules
    cells, size = found.cells, extent[:, 1] - extent[:, 0]
    cost = np.full(len(size), np.inf)
    done = 0
    for search in (False, True):
        wanted = np.flatnonzero(searched == search)
        for some in np.split(wanted, runs(np.cumsum(size[wanted]) // ENTRIES_AT_ONCE)[1:-1]) if len(wanted) else ():
            bounds, place = offsets_of(size[some]), ranges(extent[some, 0], extent[some, 1])
            members = np.sort(owners(bounds) * n + who[place]) % n
            given = (members, bounds, cells.offsets, cells.data, found.knowledge)
            if search:
                watch = None if progress is None else partial(_tell, progress, done, len(size))
                cost[some] = search_groups(
                    *given, rule, found.alpha, nodes=nodes, seconds=seconds, unlinked=unlinked, progress=watch
                ).cost
            else:
                measures = measure_groups(*given, found.alpha, l=rule.l, unlinked=unlinked)
                cost[some] = np.where(rule.holds(measures), 0.0, np.inf)
            done += len(some)
    return cost


def _tell(progress: Progress, before: int, total: int, done: int, _: int, cost: float) -> None:
    progress(before + done, total, cost)
