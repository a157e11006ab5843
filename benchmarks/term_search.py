"""Term suppression in the paper's synthetic setting: proofs, costs against the adaptive search, gaps, speed, memory.

3,000 labels with Poisson(20) terms each, terms chosen so that each occurs Poisson(100) times; a record has 9 terms, all
drawn from one label (terms drawn independently link to nothing from three terms on).
Run: python benchmarks/term_search.py [--part proofs|anytime|speed|gaps|table|linkage] [--seed 1]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from noren.methods.suppress.beliefs import TermRequirement, estimated_prior, measure_groups, removal_cost
from noren.methods.suppress.search import search_group, search_groups
from noren.schema.knowledge import Knowledge

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.oracles import term_search as oracle

Array = NDArray[np.int64]
DIVERSE = TermRequirement("cl", c=1.0, l=30)
CLOSE = TermRequirement("t", t=0.4)


def synthetic(rng: np.random.Generator, labels: int = 3000, per: int = 20, occurrences: int = 100) -> Knowledge:
    terms = labels * per // occurrences
    weight = rng.poisson(occurrences, terms).astype(float)
    sets = [
        rng.choice(terms, min(max(1, int(n)), terms), replace=False, p=weight / weight.sum()).tolist()
        for n in rng.poisson(per, labels)
    ]
    return Knowledge.from_sets(sets, terms=[f"term {i}" for i in range(terms)])


def records(rng: np.random.Generator, knowledge: Knowledge, n: int, s: int = 9) -> tuple[Array, Array]:
    """CSR of n records with s terms of one label each."""
    rich = np.flatnonzero(np.diff(knowledge.bounds) >= s)
    label = rng.choice(rich, n)
    size = knowledge.bounds[label + 1] - knowledge.bounds[label]
    keys = rng.random((n, int(size.max())))
    keys[np.arange(keys.shape[1]) >= size[:, None]] = 2.0
    codes = knowledge.codes[knowledge.bounds[label][:, None] + np.argsort(keys, axis=1)[:, :s]]
    return np.arange(n + 1) * s, np.sort(codes, axis=1).ravel()


class World:
    """One knowledge table, 3,000 records, their prior."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.knowledge = synthetic(rng)
        self.bounds, self.codes = records(rng, self.knowledge, 3000)
        self.alpha = estimated_prior(self.bounds, self.codes, self.knowledge)

    def group(self, first: int, size: int) -> tuple[Array, Array]:
        return np.arange(size + 1) * 9, self.codes[9 * first : 9 * (first + size)]

    def search(self, first: int, size: int, wanted: TermRequirement, **options):  # type: ignore[no-untyped-def]
        return search_group(*self.group(first, size), self.knowledge, wanted, self.alpha, **options)


def text(wanted: TermRequirement) -> str:
    return f"({wanted.c:g}, {wanted.l})" if wanted.kind == "cl" else f"t = {wanted.t:g}"


def proofs(world: World) -> None:
    print("\nOptimum proven within half a second a group")
    print(f"{'d':>3} {'requirement':>12} {'proven':>8} {'slowest s':>10} {'mean cost':>10}")
    settings = [DIVERSE, CLOSE, *(TermRequirement("cl", c=1.0, l=k) for k in (10, 60, 100))]
    settings += [TermRequirement("cl", c=c, l=30) for c in (0.5, 2.0)] + [TermRequirement("t", t=t) for t in (0.2, 0.3)]
    for d in (1, 2, 3, 5, 8):
        for wanted in settings:
            done = [world.search(20 * g, d, wanted, seconds=0.5) for g in range(20)]
            proven = sum(r.optimal for r in done)
            slowest = max(r.seconds for r in done)
            cost = np.mean([r.cost for r in done])
            print(f"{d:>3} {text(wanted):>12} {proven:>5}/20 {slowest:>10.3f} {cost:>10.4f}")


def anytime(world: World) -> None:
    print(
        "\nMean cost at a time limit, 6 groups of 5 (best / adaptive / depth-first), and groups where best costs more"
    )
    for wanted in (DIVERSE, CLOSE, TermRequirement("t", t=0.2)):
        for limit in (0.1, 0.5, 2.0, 10.0):
            costs = np.array(
                [
                    [world.search(20 * g, 5, wanted, search=s, seconds=limit).cost for g in range(6)]
                    for s in ("best", "adaptive", "depth-first")
                ]
            )
            worse = int((costs[0] > costs[1] + 1e-9).sum())
            means = " ".join(f"{c:8.4f}" for c in costs.mean(axis=1))
            ratio = (costs[1] / costs[0]).max()
            print(f"{text(wanted):>10} {limit:>5.1f} s {means}   worse {worse}, ratio up to {ratio:.2f}")


def speed(world: World) -> None:
    print("\nNodes a second of the adaptive search, groups of 5")
    knowledge = world.knowledge
    sets = [set(knowledge.codes[a:b].tolist()) for a, b in pairwise(knowledge.bounds)]
    for wanted, budget in ((DIVERSE, 4000), (TermRequirement("t", t=0.2), 600)):
        ratios = []
        for g in range(3):
            bounds, codes = world.group(20 * g, 5)
            group = [codes[a:b].tolist() for a, b in pairwise(bounds)]
            kind = "cl" if wanted.kind == "cl" else "l2"
            rule = oracle.Rule(kind, wanted.c, wanted.l, wanted.t, world.alpha.tolist())
            slow = oracle.AdaptiveSearch(group, sets, rule, budget)
            begin = time.perf_counter()
            cost = slow.run()
            plain = slow.nodes / (time.perf_counter() - begin)
            same = world.search(20 * g, 5, wanted, search="adaptive", seconds=None, nodes=budget)
            if same.nodes != slow.nodes or abs(same.cost - (np.inf if cost is None else cost)) > 1e-9:
                print(f"  the two disagree: {same.nodes} and {slow.nodes} nodes, cost {same.cost} and {cost}")
            many = world.search(20 * g, 5, wanted, search="adaptive", seconds=1.0)
            fast = many.nodes / many.seconds
            ratios.append(fast / plain)
            print(f"{text(wanted):>10} plain {plain:>8.0f}, kernel {fast:>12,.0f}, ratio {fast / plain:>8.0f}")
        print(f"{'':>10} lowest ratio {min(ratios):.0f}")


def gaps(world: World) -> None:
    print("\nGroups of 10 to 40 at 2 seconds: largest gap to the proven lower bound")
    for d in (10, 15, 20, 30, 40):
        for wanted in (DIVERSE, CLOSE, TermRequirement("cl", c=1.0, l=100), TermRequirement("t", t=0.1)):
            done = [world.search(50 * g, d, wanted, seconds=2.0) for g in range(3)]
            gap, slowest = max(r.gap for r in done), max(r.seconds for r in done)
            proven = sum(r.optimal for r in done)
            print(f"{d:>3} {text(wanted):>10} proven {proven}/3 gap {gap:.3f} slowest {slowest:.2f} s")


def table(world: World) -> None:
    print("\n3,000 records, 9 terms each, k = 1..20, 0.05 s a group")
    whole = time.perf_counter()
    order = np.arange(3000)
    for k in (1, 2, 5, 10, 20):
        groups = np.append(np.arange(0, 3000 - k + 1, k), 3000)
        for wanted in (DIVERSE, CLOSE):
            done = search_groups(
                order, groups, world.bounds, world.codes, world.knowledge, wanted, world.alpha, seconds=0.05
            )
            print(
                f"k = {k:>2} {text(wanted):>10} {done.seconds:>6.1f} s, proven {done.optimal.mean():.1%}, "
                f"feasible {done.feasible.mean():.1%}, mean cost {done.cost[done.feasible].mean():.4f}"
            )
    print(f"all of it: {time.perf_counter() - whole:.1f} s")


def linkage(world: World) -> None:
    print("\n1 million records, 10,000 labels")
    rng = np.random.default_rng(5)
    knowledge = synthetic(rng, labels=10_000, occurrences=200)
    blocks = [records(rng, knowledge, 100_000, 5)[1] for _ in range(10)]
    codes, bounds = np.concatenate(blocks), np.arange(1_000_001) * 5
    begin = time.perf_counter()
    alpha = estimated_prior(bounds, codes, knowledge)
    middle = time.perf_counter()
    order, groups = np.arange(1_000_000), np.arange(0, 1_000_001, 5)
    measures = measure_groups(order, groups, bounds, codes, knowledge, alpha, l=30)
    end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    share = DIVERSE.holds(measures).mean()
    print(f"prior {middle - begin:.1f} s, 200,000 groups {end - middle:.1f} s, {peak:.2f} GB, {share:.1%} hold (1, 30)")
    few = search_groups(
        order[:5000], groups[:1001], bounds[:5001], codes[:25_000], knowledge, DIVERSE, alpha, seconds=0.05
    )
    rate = few.seconds / max(1, int(few.searched.sum()))
    lost = removal_cost(np.full(5000, 5), np.add.reduceat(few.removed, bounds[:5000]))
    print(f"search: {1000 * rate:.1f} ms a group, proven {few.optimal.mean():.1%}, cost {lost:.4f}")


PARTS: dict[str, Callable[[World], None]] = {
    "proofs": proofs,
    "anytime": anytime,
    "speed": speed,
    "gaps": gaps,
    "table": table,
    "linkage": linkage,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=sorted(PARTS))
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    world = World(chosen.seed)
    for name, part in PARTS.items():
        if chosen.part in (None, name):
            part(world)


if __name__ == "__main__":
    main()
