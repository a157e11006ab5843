"""Which terms to suppress in a group so that its labels stay diverse, or close to what was known before, at least cost.

The cost is the inverse weighted cost (equation 2, inner index corrected): removing a term from a record that has w
terms left costs 1/w; or, with `prices`, what every removed term is worth. A group's cost is normalised by that of
removing everything. Three searches:

- "best": one option per record, from a good start by exchange to a proof; reports a proven lower bound;
- "adaptive": the paper's anytime search, ranked by gain per cost with ties by slack;
- "depth-first": the paper's baseline.

A time bound stops a search early, a node budget does so repeatably. Groups are independent and run on all cores; those
with the same term sets are searched once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from noren.engines.finding import numbered_sets
from noren.errors import NorenError
from noren.methods.suppress import setting as settings
from noren.methods.suppress.beliefs import (
    Array,
    TermRequirement,
    Unlinked,
    measure_groups,
    priced_cost,
    removal_cost,
)
from noren.methods.suppress.setting import Setting, choice_cost, overlap_order, removed_entries, reordered
from noren.ragged import chosen, offsets_of, ranges, runs
from noren.schema.knowledge import Knowledge

Search = Literal["best", "adaptive", "depth-first"]
Progress = Callable[[int, int, float], None]

MOST_OPEN = 1 << 22
MOST_ENTRIES = 1 << 14
"""Terms of a group that the searches of the paper take: their memory grows with the square."""
STARTS = 12
FIRST = 4
"""Scenarios that are tried before all others are looked at."""
CLOSE = 1e-10
NO_LIMIT = 1 << 62
FEW_OPTIONS = 4096
"""Options of a group up to which some starts take less than a look at the clock is worth."""
AT_ONCE = 16
"""Groups that a thread is given together, where there are many."""
FEW = 1 << 12
"""Nodes of a group: no more than a good first choice and its bounds cost."""
MORE = 1 << 20
"""Nodes of all groups that are left together: less than what compiling the other search costs."""
SHARE = 0.25
"""Of the time and the nodes that a group has."""


@dataclass(frozen=True)
class GroupResult:
    """What to remove from one group: a mask over its (record, term) entries, and how good it is known to be.

    Without a solution `feasible` is false and the cost infinite; `optimal` then says that none exists.
    """

    removed: NDArray[np.bool_]
    cost: float
    lower_bound: float
    optimal: bool
    feasible: bool
    nodes: int
    seconds: float

    @property
    def gap(self) -> float:
        """By how much the cost may exceed the least possible, as a share of the proven lower bound."""
        if self.optimal or self.cost == self.lower_bound:
            return 0.0
        return self.cost / self.lower_bound - 1 if self.lower_bound > 0 else np.inf


@dataclass(frozen=True)
class GroupsResult:
    """The same for many groups: one mask over all entries of the table, and one value a group."""

    removed: NDArray[np.bool_]
    cost: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    optimal: NDArray[np.bool_]
    feasible: NDArray[np.bool_]
    searched: NDArray[np.bool_]
    nodes: int
    seconds: float


class Clock:
    """When to stop: a deadline, a node budget, or both; and how many nodes to look at before asking again."""

    def __init__(self, seconds: float | None, nodes: int | None) -> None:
        self.begin = time.perf_counter()
        self.end = np.inf if seconds is None else self.begin + seconds
        self.nodes = (1 << 62) if nodes is None else nodes
        self.timed = seconds is not None
        self.rate = 2e5

    def share(self, part: float, used: int) -> tuple[float, int]:
        """A part of what is left: a deadline and a number of nodes."""
        now = time.perf_counter()
        end = now + part * max(0.0, self.end - now) if self.timed else np.inf
        return end, used + int(part * max(0, self.nodes - used)) if self.nodes < 1 << 62 else self.nodes

    def run(self, step: Callable[[int], object], counters: Array, at: int, end: float, limit: int) -> None:
        """Call step(nodes in all) in slices of some milliseconds until it makes no progress or a bound is reached."""
        while counters[at] < limit:
            now = time.perf_counter()
            if now >= end:
                return
            before = int(counters[at])
            slice_ = limit if not self.timed else before + int(max(200, self.rate * min(0.02, (end - now) / 2 + 1e-4)))
            step(min(limit, slice_))
            spent = time.perf_counter() - now
            done = int(counters[at]) - before
            if done == 0 or counters[at] < min(limit, slice_):
                return
            self.rate = max(1e4, 0.5 * self.rate + 0.5 * done / max(spent, 1e-6))


def search_group(
    bounds: Array,
    codes: Array,
    knowledge: Knowledge,
    requirement: TermRequirement,
    alpha: Array | None = None,
    *,
    search: Search = "best",
    seconds: float | None = 2.0,
    nodes: int | None = None,
    unlinked: Unlinked = "ignore",
    prices: Array | None = None,
) -> GroupResult:
    """The cheapest removal for one group of records with distinct term codes codes[bounds[i]:bounds[i + 1]].

    prices: what every term is worth, by code; equation 2 unless given.
    """
    setting = _setting(search, knowledge, requirement, alpha, unlinked, prices)
    own, codes = _whole(bounds), _whole(codes)
    if search == "best" and requirement.kind == "t":
        _compile_plain()
        found = _plain(setting, own, codes, Clock(seconds, nodes), max(FEW, patience(1, nodes)))
        if found is not None:
            return found
    _compile(search, requirement.kind)
    return _search(setting, own, codes, search, seconds, nodes)


def _setting(search: Search, knowledge: Knowledge, *given: Any) -> Setting:
    if search != "best" and knowledge.pairs is not None:
        message = f"search {search!r} goes by label sets, and pairs of a label and a term have weights."
        raise NorenError(message, hint='Use search = "best".')
    return Setting.of(knowledge, *given)


def _whole(numbers: Array) -> NDArray[np.int64]:
    return np.ascontiguousarray(numbers, np.int64)


@cache
def _compile(search: Search, kind: str) -> None:
    """Load the kernels before a clock runs: the first call in a new installation takes long."""
    from noren.methods.suppress.kernels import best
    from noren.methods.suppress.kernels import tree as trees
    from noren.methods.suppress.kernels.bound import cost_bounds, scenarios
    from noren.methods.suppress.kernels.judge import new_desk

    knowledge = Knowledge.from_sets([[0], [1]], terms=["a", "b"])
    wanted = TermRequirement("cl") if kind == "cl" else TermRequirement("t", t=0.5)
    setting = Setting.of(knowledge, wanted, np.full(2, 0.5), "ignore")
    bounds = np.array([0, 1, 2])
    group, rule = setting.options(bounds, np.array([0, 1])), setting.rule(2)
    desk, counters, numbers = new_desk(group.size.size), np.zeros(5, np.int64), np.zeros(2)
    none = np.zeros(0)
    if search == "adaptive":
        trees.adaptive(group, rule, trees.new_tree(group, bounds, none), desk, np.empty((3, 2, 2)), 0)
        return
    if search == "depth-first":
        trees.depth_first(group, rule, trees.new_tree(group, bounds, none), desk, 0)
        return
    group = reordered(group, overlap_order(group))
    tables = cost_bounds(group, scenarios(group, rule), np.inf, FIRST)
    front, place = best.new_front(4), np.zeros(2, np.int64)
    standing = best.Standing(group.first[:-1].copy(), numbers, counters)
    best.step(best.SLACK, group, rule, tables, desk, front, standing, place, 0)


@cache
def _compile_plain() -> None:
    """Likewise for the search that most groups under closeness need alone."""
    knowledge = Knowledge.from_sets([[0], [1]], terms=["a", "b"])
    setting = Setting.of(knowledge, TermRequirement("t", t=0.5), np.full(2, 0.5), "ignore")
    _plain(setting, np.array([0, 1, 2]), np.array([0, 1]), Clock(None, None), FEW)


def _plain(setting: Setting, bounds: Array, codes: Array, clock: Clock, most: int) -> GroupResult | None:
    """What a proof alone comes to, or None: `_search` will know more."""
    if bounds.size < 2:
        return None
    group = setting.options(bounds, codes)
    found = proven(group, setting.rule(bounds.size - 1), clock, most)
    if found is None:
        return None
    choice, _, looked = found
    kept = group.sets[group.first[:-1] if choice is None else choice]
    removed = removed_entries(bounds, kept)
    return _result(setting, bounds, codes, clock, (removed, 0.0, True, choice is not None, looked))


def _search(
    setting: Setting, bounds: Array, codes: Array, search: Search, seconds: float | None, nodes: int | None
) -> GroupResult:
    clock = Clock(seconds, nodes)
    if bounds.size < 2:
        return GroupResult(np.zeros(0, bool), 0.0, 0.0, True, True, 0, 0.0)
    rule, group = setting.rule(bounds.size - 1), setting.options(bounds, codes)
    if search == "best":
        removed, lower, optimal, found, looked = _best(bounds, group, rule, clock)
        if setting.weighed and not (group.complete.all() or (optimal and not removed.any())):
            # an option that is not listed may believe less in its top label than all that are
            lower, optimal = 0.0, False
    else:
        removed, lower, optimal, found, looked = _tree(bounds, group, rule, clock, search, setting.paid(codes))
    return _result(setting, bounds, codes, clock, (removed, lower, optimal, found, looked))


def _result(
    setting: Setting, bounds: Array, codes: Array, clock: Clock, found_: tuple[Array, float, bool, bool, int]
) -> GroupResult:
    removed, lower, optimal, found, looked = found_
    sizes, paid = np.diff(bounds), setting.paid(codes)
    if paid.size:
        most, cost = float(paid.sum()), priced_cost(paid, removed)
    else:
        spent = np.add.reduceat(np.append(removed, False), bounds[:-1]) * (sizes > 0)
        most = float(sum(map(_all_of, sizes.tolist()))) or 1.0
        cost = removal_cost(sizes, spent)
    cost = cost if found else np.inf
    bound = cost if optimal else min(lower / most, cost)
    return GroupResult(removed, cost, bound, optimal, found, looked, time.perf_counter() - clock.begin)


@cache
def _all_of(terms: int) -> float:
    """What it costs to remove all terms of a record."""
    return float(1 / np.arange(1, terms + 1) @ np.ones(terms))


def _tree(
    bounds: Array, group: Any, rule: Any, clock: Clock, search: Search, paid: Array
) -> tuple[Array, float, bool, bool, int]:
    from noren.methods.suppress.kernels import tree as tree_search
    from noren.methods.suppress.kernels.judge import new_desk

    if not group.complete.all():
        raise NorenError(
            f"a record links to more than {settings.MOST_OPTIONS} different label sets.", hint='Use search = "best".'
        )
    entries = int(bounds[-1])
    if entries > MOST_ENTRIES:
        raise NorenError(
            f"a group has {entries:,} terms, and search {search!r} takes at most {MOST_ENTRIES:,}.",
            hint='Use search = "best", or form smaller groups.',
        )
    tree, desk = tree_search.new_tree(group, bounds, paid), new_desk(group.size.size)
    if search == "adaptive":
        scores = np.empty((entries + 1, 2, entries))
        step = lambda budget: tree_search.adaptive(group, rule, tree, desk, scores, budget)  # noqa: E731
    else:
        step = lambda budget: tree_search.depth_first(group, rule, tree, desk, budget)  # noqa: E731
    clock.run(step, tree.counters, tree_search.NODES, clock.end, clock.nodes)
    done = bool(tree.counters[tree_search.DONE])
    found = bool(tree.counters[tree_search.FOUND])
    return tree.removed_best, 0.0, done, found, int(tree.counters[tree_search.NODES])


def _best(bounds: Array, group: Any, rule: Any, clock: Clock) -> tuple[Array, float, bool, bool, int]:
    from noren.methods.suppress.kernels import best
    from noren.methods.suppress.kernels.bound import cost_bounds, no_bounds, scenarios
    from noren.methods.suppress.kernels.judge import new_desk

    desk, counters, place = new_desk(group.size.size), np.zeros(5, np.int64), np.zeros(2, np.int64)
    tables, front = no_bounds(), best.new_front(0)

    def step(task: int, budget: int = 0) -> float:
        return float(best.step(task, group, rule, tables, desk, front, standing, place, budget))

    def start(some: Array, limit: int) -> None:
        best.step(best.START, group, rule, tables, desk, front, standing, some, limit)

    counters[best.NODES] += 1
    standing = best.Standing(group.first[:-1].copy(), np.zeros(2), counters)
    if step(best.SLACK) >= -rule.tolerance:
        return np.zeros(int(bounds[-1]), bool), 0.0, True, True, 1
    order = overlap_order(group)
    group = reordered(group, order)
    choice, numbers = group.first[1:] - 1, np.zeros(2)
    standing = best.Standing(choice, numbers, counters)
    numbers[best.BEST] = choice_cost(group, choice) if step(best.SLACK) >= -rule.tolerance else np.inf
    listed = scenarios(group, rule)
    tables = cost_bounds(group, listed, numbers[best.BEST] - CLOSE, FIRST)
    if len(listed.floor) > FIRST:  # a first choice spares the tables of what costs more
        start(np.arange(len(tables.root)), NO_LIMIT)
        tables = cost_bounds(group, listed, numbers[best.BEST] - CLOSE, len(listed.floor))
    complete = bool(group.complete.all())
    if tables.root.size == 0:
        numbers[best.LOWEST] = numbers[best.BEST]
    else:
        numbers[best.LOWEST] = tables.root[0]
        _, first = np.unique(tables.at, return_index=True)
        for some in starts_of(np.sort(first)[:STARTS], group.cost.size):
            start(some, clock.nodes)
            if time.perf_counter() > clock.begin + 0.5 * (clock.end - clock.begin):
                break
        if np.isfinite(numbers[best.BEST]) and numbers[best.LOWEST] < numbers[best.BEST] - CLOSE:
            place[:] = 0
            end, limit = clock.share(0.5, int(counters[best.NODES]))
            clock.run(partial(step, best.IMPROVE), counters, best.NODES, end, limit)
            numbers[best.BEST] = choice_cost(group, choice)
        # where options are missing only the root's bound is proven
        if complete and numbers[best.LOWEST] < numbers[best.BEST] - CLOSE:
            front = best.new_front(1 << 14)
            best.open_root(front, counters, numbers[best.LOWEST])
            clock.run(partial(step, best.PROVE), counters, best.NODES, clock.end, clock.nodes)
            while counters[best.FULL] and front.bound.size < MOST_OPEN:
                counters[best.FULL] = 0
                front = best.wider_front(front, 4 * front.bound.size)
                clock.run(partial(step, best.PROVE), counters, best.NODES, clock.end, clock.nodes)
    found = bool(np.isfinite(numbers[best.BEST]))
    optimal = bool(numbers[best.LOWEST] >= numbers[best.BEST] - CLOSE) and (complete or numbers[best.BEST] < np.inf)
    kept = np.empty((order.size, group.sets.shape[1]), np.uint64)
    kept[order] = group.sets[choice if found else group.first[:-1]]
    looked = int(counters[best.NODES])
    return removed_entries(bounds, kept), float(numbers[best.LOWEST]), optimal, found, looked


def starts_of(listed: Array, options: int) -> Sequence[Array]:
    """The scenarios that are tried between two looks at the clock: of a small group all at once."""
    return [listed] if options <= FEW_OPTIONS else np.split(listed, len(listed))


def search_groups(
    order: Array,
    group_bounds: Array,
    bounds: Array,
    codes: Array,
    knowledge: Knowledge,
    requirement: TermRequirement,
    alpha: Array | None = None,
    *,
    search: Search = "best",
    seconds: float | None = 2.0,
    nodes: int | None = None,
    total_seconds: float | None = None,
    unlinked: Unlinked = "ignore",
    threads: int | None = None,
    progress: Progress | None = None,
    prices: Array | None = None,
) -> GroupsResult:
    """Search every group that does not hold already; group g is the records order[group_bounds[g]:group_bounds[g+1]].

    With only a node budget the result does not depend on time or threads. `total_seconds` is shared out evenly among
    the groups still to come. `progress(done, groups, mean cost so far)` is called after every searched group.
    `prices` are those of the terms, by code.
    """
    setting = _setting(search, knowledge, requirement, alpha, unlinked, prices)
    order, group_bounds, bounds, codes = _whole(order), _whole(group_bounds), _whole(bounds), _whole(codes)
    plain = search == "best" and requirement.kind == "t"
    _compile_plain() if plain else _compile(search, requirement.kind)
    begin = time.perf_counter()
    measures = measure_groups(
        order, group_bounds, bounds, codes, knowledge, setting.alpha, l=requirement.l, unlinked=unlinked
    )
    holds = requirement.holds(measures)
    count = holds.size
    out = GroupsResult(
        np.zeros(codes.size, bool), np.zeros(count), np.zeros(count), np.ones(count, bool), np.ones(count, bool),
        ~holds, 0, 0.0,
    )  # fmt: skip
    todo = np.flatnonzero(~holds)
    same = alike(*of_groups(order, group_bounds, todo), bounds, codes)
    kinds = same.kinds
    workers = max(1, min(threads or os.cpu_count() or 1, len(kinds)))
    started = 0
    waiting = list(range(len(kinds)))

    def one(at: int, most: int | None, limit: float | None) -> GroupResult | None:
        """What is found for the groups of a kind: by a proof of so many nodes, or None; else by all means."""
        nonlocal started
        started += 1
        if total_seconds is not None:
            left = total_seconds - (time.perf_counter() - begin)
            fair = max(0.0, left) * workers / max(1, len(waiting) - started + workers)
            limit = fair if limit is None else min(limit, fair)
        own, entries = same.entries(kinds[at][0], bounds)
        if most is None:
            return _search(setting, own, codes[entries], search, limit, nodes)
        return _plain(setting, own, codes[entries], Clock(limit, nodes), most)

    def work(some: list[int], most: int | None, limit: float | None) -> list[GroupResult | None]:
        return [one(at, most, limit) for at in some]

    looked, spent, finished = 0, 0.0, count - todo.size
    most, common = (FEW if plain else None), MORE
    while waiting:
        if most is None:
            _compile(search, requirement.kind)
        started = 0
        limit = seconds if most in (None, FEW) else None  # what the groups share takes less than a second
        unknown, before = [], looked
        step = max(1, min(AT_ONCE, len(waiting) // (8 * workers)))
        lots = [waiting[first : first + step] for first in range(0, len(waiting), step)]
        with ThreadPoolExecutor(workers) as pool:
            found = chain.from_iterable(pool.map(partial(work, most=most, limit=limit), lots))
            for at, result in zip(waiting, found, strict=True):
                if result is None:
                    unknown.append(at)
                    continue
                for group in kinds[at]:
                    out.removed[same.entries(group, bounds)[1]] = result.removed
                groups = todo[kinds[at]]
                out.cost[groups], out.lower_bound[groups] = result.cost, result.lower_bound
                out.optimal[groups], out.feasible[groups] = result.optimal, result.feasible
                looked += result.nodes
                finished += len(kinds[at])
                if result.feasible:
                    spent += result.cost * len(kinds[at])
                if progress is not None:
                    progress(finished, count, spent / finished)
        if most is not None:
            common -= 0 if most == FEW else looked - before + most * len(unknown)
            more = patience(len(unknown), nodes, common)
            most = more if more > most else None
        waiting = unknown
    return GroupsResult(
        out.removed, out.cost, out.lower_bound, out.optimal, out.feasible, out.searched, looked,
        time.perf_counter() - begin,
    )  # fmt: skip


def patience(groups: int, nodes: int | None, pool: int = MORE) -> int:
    """Nodes for each of so many groups that `FEW` were not enough for, of all that it has; 0 if those are no more.
    pool: what the groups have left together."""
    each = max(0, pool) // max(1, groups)
    if nodes is not None:
        each = min(each, int(SHARE * nodes))
    return each if each > FEW else 0


def proven(group: Any, rule: Any, clock: Clock, most: int) -> tuple[NDArray[np.int64] | None, float, int] | None:
    """The cheapest option of every record (None: no choice meets the requirement), its cost, and how many options were
    looked at; or None if that is not known after so many."""
    from noren.methods.suppress.kernels import plain
    from noren.methods.suppress.kernels.judge import CL, EMD

    if rule.kind == CL or not group.complete.all() or most <= 0:
        return None
    if rule.kind == EMD:
        group = group._replace(flat=np.zeros_like(group.flat))
        wanted = rule.bound - rule.tolerance
    else:
        wanted = rule.alpha_square * rule.records**2 - rule.bound - rule.tolerance
    end, limit = clock.share(SHARE, 0)
    limit = min(limit, most)
    order = overlap_order(group)
    front = plain.no_nodes(limit + int(np.diff(group.first).max()) + 1)
    choice = np.empty(order.size, np.int64)
    done = False

    def step(budget: int) -> None:
        nonlocal done
        done = bool(plain.prove(group, rule, order, wanted, front, choice, budget))

    clock.run(step, front.counters, plain.LOOKED, end, limit)
    if not done:
        return None
    cost, looked = float(front.numbers[plain.BEST]), int(front.counters[plain.LOOKED])
    if not np.isfinite(cost):
        return None, cost, looked
    by_record = np.empty_like(choice)
    by_record[order] = choice
    return by_record, cost, looked


@dataclass(frozen=True)
class Alike:
    """Groups by kind. Record i of a group in `order` has the terms of record i of the kind's first group."""

    order: Array
    bounds: Array
    """Where every group begins and ends in `order`."""
    kinds: list[Array]
    """The groups of every kind, in the order of their first ones."""

    def entries(self, group: int, terms: Array) -> tuple[Array, Array]:
        """Where the records' terms begin in one group, and where they lie among all of the table."""
        return chosen(terms, self.order[self.bounds[group] : self.bounds[group + 1]])


def alike(order: Array, bounds: Array, terms: Array, codes: Array) -> Alike:
    """Sort groups order[bounds[g]:bounds[g + 1]] of records with the terms codes[terms[r]:terms[r + 1]] into kinds."""
    sizes = np.diff(bounds)
    offsets, entries = chosen(terms, order)
    own = codes[entries]
    number = numbered_sets(offsets, own - own.min(initial=0))
    group = np.repeat(np.arange(len(sizes)), sizes)
    ranked = np.lexsort((number, group))
    kind = numbered_sets(bounds, number[ranked])
    by_kind = np.argsort(kind, kind="stable")
    parts = np.split(by_kind, runs(kind[by_kind])[1:-1]) if len(kind) else []
    kinds = sorted(parts, key=lambda part: int(part[0]))
    first = np.arange(len(sizes))
    for same in kinds:
        if len(same) > 1:
            first[same] = same[0]
    rank = np.empty(len(order), np.int64)
    rank[ranked] = np.arange(len(order)) - bounds[:-1][group]
    placed = bounds[:-1][group] + rank[ranges(bounds[first], bounds[first] + sizes)]
    return Alike(order[ranked[placed]], bounds, kinds)


def of_groups(order: Array, bounds: Array, todo: Array) -> tuple[Array, Array]:
    """The records of some groups alone, and where each group begins and ends among them."""
    return order[ranges(bounds[todo], bounds[todo + 1])], offsets_of(np.diff(bounds)[todo])
