"""The cheapest suppression of terms in a group so that beliefs in labels stay diverse, or close to the prior.

The cost is the inverse weighted cost (equation 2, inner index corrected): removing a term from a record that has w
terms left costs 1/w; or, with `prices`, what every removed term is worth. A group's cost is normalised by that of
removing everything. Three searches:

- "best": one option per record, from a good first choice to a proof; reports a proven lower bound;
- "adaptive": the paper's anytime search, ranked by gain per cost with ties by slack;
- "depth-first": the paper's baseline.

A time bound stops a search early, a node budget does so repeatably. Groups are independent and run on all cores; those
with the same term sets are searched once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.methods.suppress.beliefs import (
    TOLERANCE,
    Array,
    TermRequirement,
    Unlinked,
    harmonic_sums,
    measure_groups,
    postings_of,
    priced_cost,
    removal_cost,
)
from noren.methods.suppress.kernels import judge
from noren.methods.suppress.kernels.best import cost_bounds, find_choice, prove_choice
from noren.methods.suppress.kernels.options import group_options
from noren.methods.suppress.kernels.tree import new_entries, search_tree
from noren.ragged import chosen, numbered_sets, offsets_of, ranges, runs
from noren.schema.knowledge import Knowledge

Search = Literal["best", "adaptive", "depth-first"]
Progress = Callable[[int, int, float], None]

MOST_OPTIONS = 4096
"""Options of a record."""
MOST_WEIGHED, LEAST_WEIGHED = 1 << 14, 16
"""Where pairs have weights, options are many: so many a group, but no fewer a record than the second says."""
MOST_PROVED = 256
"""Records of the largest group for which a proof is tried."""
MOST_ENTRIES = 1 << 14
"""Terms of a group that the searches of the paper take: their memory grows with the square."""
ENDLESS = 1 << 62
CLOSE = 1e-10
FEW = 500
"""Nodes after which a search with a time bound looks at the clock."""
AT_ONCE = 16
"""Groups that a thread is given together, where there are many."""


@dataclass(frozen=True)
class GroupResult:
    """The suppressed terms of one group, as a mask over its (record, term) entries, and the quality of the result.

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
        """Return by what share of the proven lower bound the cost may exceed the minimum."""
        if self.optimal or self.cost == self.lower_bound:
            return 0.0
        return self.cost / self.lower_bound - 1 if self.lower_bound > 0 else np.inf


@dataclass(frozen=True)
class GroupsResult:
    """The results of many groups: one mask over all entries of the table, and one value a group."""

    removed: NDArray[np.bool_]
    cost: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    optimal: NDArray[np.bool_]
    feasible: NDArray[np.bool_]
    searched: NDArray[np.bool_]
    nodes: int
    seconds: float


@dataclass(frozen=True)
class Setting:
    """The common settings of all groups of a table."""

    knowledge: Knowledge
    requirement: TermRequirement
    alpha: NDArray[np.float64]
    prior: bool
    search: Search
    prices: NDArray[np.float64] | None

    @classmethod
    def of(
        cls,
        knowledge: Knowledge,
        requirement: TermRequirement,
        alpha: Array | None,
        unlinked: Unlinked,
        search: Search = "best",
        prices: Array | None = None,
    ) -> Setting:
        if search != "best" and knowledge.pairs is not None:
            message = f"search {search!r} works on label sets and does not take weights of pairs."
            raise NorenError(message, hint='Use search = "best".')
        if alpha is None and (requirement.kind == "t" or unlinked == "prior"):
            raise NorenError("closeness and unlinked = 'prior' need a prior.", hint="Give alpha, or estimate it.")
        if prices is not None and not (np.isfinite(prices).all() and (np.asarray(prices) > 0).all()):
            raise NorenError("the price of a term must be a positive number.", hint="Give every term a price above 0.")
        given = np.zeros(len(knowledge.labels)) if alpha is None else np.asarray(alpha, np.float64)
        return cls(knowledge, requirement, given, unlinked == "prior", search, prices)

    def rule(self, d: int) -> Any:
        wanted, alpha = self.requirement, self.alpha
        own = alpha, float((alpha * alpha).sum()), max(0.0, 1 - float(alpha.sum()))
        if wanted.kind == "cl":
            return judge.Rule(judge.CL, float(wanted.c), float(wanted.l), float(d), *own, TOLERANCE * d)
        if wanted.metric == "l2":
            return judge.Rule(judge.L2, 1.0, float(d * wanted.t) ** 2, float(d), *own, TOLERANCE * d * d)
        return judge.Rule(judge.EMD, 1.0, float(d * (1 - wanted.t)), float(d), *own, TOLERANCE * d)

    def paid(self, codes: Array) -> NDArray[np.float64]:
        """Return the price of every entry; empty if equation 2 is used."""
        return np.zeros(0) if self.prices is None else np.ascontiguousarray(self.prices[codes], np.float64)

    def options(self, bounds: Array, codes: Array) -> Any:
        most = MOST_OPTIONS
        if self.knowledge.pairs is not None:
            most = min(most, max(LEAST_WEIGHED, MOST_WEIGHED // max(1, bounds.size - 1)))
        return group_options(bounds, codes, self.paid(codes), postings_of(self.knowledge), self.alpha, self.prior, most)


@dataclass
class Limits:
    """When to stop: after some seconds, a number of nodes, or both."""

    seconds: float | None
    nodes: int | None
    last: int = 0

    def __post_init__(self) -> None:
        self.begin = self.since = time.perf_counter()

    def budget(self, looked: int) -> int:
        """Return how many nodes the next run may examine in total; 0 if none. With a time limit first a few, and then
        as many as the remaining time permits, estimated from the last run."""
        most, now = ENDLESS if self.nodes is None else self.nodes, time.perf_counter()
        left = np.inf if self.seconds is None else self.begin + self.seconds - now
        if left <= 0 or self.last >= most or (self.last and self.seconds is None):
            return 0
        more = most if self.seconds is None else FEW
        if self.last:
            more = int(0.9 * left * looked / max(now - self.since, 1e-6))
            if more < 2 * self.last:
                return 0
        self.last, self.since = min(more, most), now
        return self.last


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
    """Return the cheapest suppression for one group of records with distinct term codes codes[bounds[i]:bounds[i + 1]].

    prices: what every term is worth, by code; equation 2 unless given.
    """
    setting = Setting.of(knowledge, requirement, alpha, unlinked, search, prices)
    return _search(setting, _whole(bounds), _whole(codes), seconds, nodes)


def _whole(numbers: Array) -> NDArray[np.int64]:
    return np.ascontiguousarray(numbers, np.int64)


def _search(setting: Setting, bounds: Array, codes: Array, seconds: float | None, nodes: int | None) -> GroupResult:
    if bounds.size < 2:
        return GroupResult(np.zeros(0, bool), 0.0, 0.0, True, True, 0, 0.0)
    limits = Limits(seconds, nodes)
    group = setting.options(bounds, codes)
    run = _best if setting.search == "best" else _tree
    removed, lower, optimal, found, looked = run(setting, bounds, codes, group, limits)
    sizes, paid = np.diff(bounds), setting.paid(codes)
    if paid.size:
        most, cost = float(paid.sum()), priced_cost(paid, removed)
    else:
        most = float(harmonic_sums(int(sizes.max()))[sizes].sum()) or 1.0
        cost = removal_cost(sizes, np.add.reduceat(np.append(removed, False), bounds[:-1]) * (sizes > 0))
    cost = cost if found else np.inf
    bound = cost if optimal else min(lower / most, cost)
    return GroupResult(removed, cost, bound, optimal, found, looked, time.perf_counter() - limits.begin)


Outcome = tuple[NDArray[np.bool_], float, bool, bool, int]
"""What is removed, a lower bound, whether it is the least cost, whether anything was found, nodes."""


def _tree(setting: Setting, bounds: Array, codes: Array, group: Any, limits: Limits) -> Outcome:
    if not group.complete.all():
        raise NorenError(
            f"a record is linked to more than {MOST_OPTIONS} different label sets.", hint='Use search = "best".'
        )
    if bounds[-1] > MOST_ENTRIES:
        raise NorenError(
            f"a group has {bounds[-1]:,} terms, and search {setting.search!r} takes at most {MOST_ENTRIES:,}.",
            hint='Use search = "best", or form smaller groups.',
        )
    rule, desk = setting.rule(bounds.size - 1), judge.new_desk(setting.alpha.size)
    removed, cost, looked, done = np.zeros(int(bounds[-1]), bool), np.inf, 0, False
    while not done and (budget := limits.budget(looked)):
        entries = new_entries(group, bounds, setting.paid(codes))
        removed, cost, looked, done = search_tree(group, rule, entries, desk, setting.search == "adaptive", budget)
    return removed, 0.0, done, bool(np.isfinite(cost)), int(looked)


def _best(setting: Setting, bounds: Array, codes: Array, group: Any, limits: Limits) -> Outcome:
    rule, desk = setting.rule(bounds.size - 1), judge.new_desk(setting.alpha.size)
    choice, cost, first = find_choice(group, rule, desk)
    lower, more = 0.0, 0
    if cost > 0 and group.complete.all() and len(choice) <= MOST_PROVED:
        tables = cost_bounds(group, rule, cost - CLOSE)
        lower = float(min(tables.root.min(initial=np.inf), cost))
        while lower < cost - CLOSE and (budget := limits.budget(more)) > first:
            cost, lower, more = prove_choice(group, rule, tables, desk, choice, cost, lower, budget - first)
    found = bool(np.isfinite(cost))
    kept = group.kept[choice] if found else np.full(len(choice), -1)
    sizes = np.diff(bounds)
    record = np.repeat(np.arange(sizes.size), sizes)
    removed = (kept[record] >> (ranges(np.zeros_like(sizes), sizes) % group.bits[record])) & 1 == 0
    return removed, lower, bool(lower >= cost - CLOSE), found, int(first + more)


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
    """Search every group that breaks the requirement; group g is the records order[group_bounds[g]:group_bounds[g+1]].

    With only a node budget the result does not depend on time or threads. `total_seconds` is shared out evenly among
    the groups still to come. `progress(done, groups, mean cost so far)` is called after every searched group.
    `prices` are those of the terms, by code.
    """
    setting = Setting.of(knowledge, requirement, alpha, unlinked, search, prices)
    order, group_bounds, bounds, codes = _whole(order), _whole(group_bounds), _whole(bounds), _whole(codes)
    begin = time.perf_counter()
    measures = measure_groups(
        order, group_bounds, bounds, codes, knowledge, setting.alpha, l=requirement.l, unlinked=unlinked
    )
    holds = requirement.holds(measures)
    zero, one = np.zeros(2, np.int64), np.array([0, 1])
    bare = measure_groups(zero[:1], one, zero, zero[:0], knowledge, setting.alpha, l=requirement.l, unlinked=unlinked)
    bare_holds = bool(requirement.holds(bare)[0])  # a record without terms, and so any group of such records
    todo = np.flatnonzero(~holds)
    members = order[ranges(group_bounds[todo], group_bounds[todo + 1])]
    of_group = offsets_of(np.diff(group_bounds)[todo])
    members, kinds = group_kinds(members, of_group, bounds, codes)
    workers = max(1, min(threads or os.cpu_count() or 1, len(kinds)))
    started = 0

    def entries_of(group: int) -> tuple[Array, Array]:
        """Return the offsets of the records' terms in one group, and their positions in the table."""
        return chosen(bounds, members[of_group[group] : of_group[group + 1]])

    def search_kind(kind: Array) -> GroupResult:
        nonlocal started
        started += 1
        limit = seconds
        if total_seconds is not None:
            left = total_seconds - (time.perf_counter() - begin)
            fair = max(0.0, left) * workers / max(1, len(kinds) - started + workers)
            limit = fair if limit is None else min(limit, fair)
        own, entries = entries_of(kind[0])
        found = _search(setting, own, codes[entries], limit, nodes)
        if found.feasible or found.optimal or not bare_holds:
            return found
        gone, low = np.ones_like(found.removed), min(found.lower_bound, 1.0)  # nothing was found in time: all terms go
        return replace(found, removed=gone, cost=1.0, lower_bound=low, feasible=True)

    def search_lot(some: list[Array]) -> list[GroupResult]:
        return [search_kind(kind) for kind in some]

    count = holds.size
    removed, optimal, feasible = np.zeros(codes.size, bool), np.ones(count, bool), np.ones(count, bool)
    cost, lower = np.zeros(count), np.zeros(count)
    looked, spent, finished = 0, 0.0, count - todo.size
    step = max(1, min(AT_ONCE, len(kinds) // (8 * workers)))
    lots = [kinds[first : first + step] for first in range(0, len(kinds), step)]
    with ThreadPoolExecutor(workers) as pool:
        for kind, result in zip(kinds, chain.from_iterable(pool.map(search_lot, lots)), strict=True):
            for group in kind:
                removed[entries_of(group)[1]] = result.removed
            groups = todo[kind]
            cost[groups], lower[groups] = result.cost, result.lower_bound
            optimal[groups], feasible[groups] = result.optimal, result.feasible
            looked += result.nodes
            finished += len(kind)
            if result.feasible:
                spent += result.cost * len(kind)
            if progress is not None:
                progress(finished, count, spent / finished)
    return GroupsResult(removed, cost, lower, optimal, feasible, ~holds, looked, time.perf_counter() - begin)


def group_kinds(order: Array, bounds: Array, terms: Array, codes: Array) -> tuple[Array, list[Array]]:
    """Group identical groups order[bounds[g]:bounds[g + 1]] of records with the terms codes[terms[r]:terms[r + 1]] into
    kinds, in the order of their first groups; return also the records ordered so that records at the same position have
    the same terms."""
    offsets, entries = chosen(terms, order)
    own = codes[entries]
    number = numbered_sets(offsets, own - own.min(initial=0))
    ranked = np.lexsort((number, np.repeat(np.arange(bounds.size - 1), np.diff(bounds))))
    kind = numbered_sets(bounds, number[ranked])
    by_kind = np.argsort(kind, kind="stable")
    parts = np.split(by_kind, runs(kind[by_kind])[1:-1]) if len(kind) else []
    return order[ranked], sorted(parts, key=lambda part: int(part[0]))
