"""The generators and the counting of paper 001's figures, against plain loops."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import polars as pl
import pytest

from noren.methods.suppress.beliefs import TermRequirement
from noren_papers.base import Bench
from noren_papers.claims import FAILS, HOLDS, IN_PART
from noren_papers.quasi_sensitive import PAPER, metrics, progress, search, tradeoff, transactions
from noren_papers.quasi_sensitive import world as worlds
from noren_papers.quasi_sensitive.adult import ONLY_GENERAL, SIZES, Lab, diverse, named
from noren_papers.quasi_sensitive.world import APART, World, draw_terms, make_knowledge
from noren_papers.standins.people import make


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def lab(world: World) -> Lab:
    return Lab(make("adult", 120), world)


def sets_of(world: World) -> list[set[int]]:
    bounds, codes = world.knowledge.bounds, world.knowledge.codes
    return [set(codes[a:b].tolist()) for a, b in pairwise(bounds)]


def belief(records: list[list[int]], labels: list[set[int]]) -> dict[int, float]:
    """Definition: the mean over records of 1 / |K| for the labels that have all terms."""
    out: dict[int, float] = {}
    for terms in records:
        fit = [i for i, own in enumerate(labels) if own >= set(terms)]
        for i in fit:
            out[i] = out.get(i, 0.0) + 1 / len(fit) / len(records)
    return out


def test_knowledge_has_the_shape_of_the_paper(world: World) -> None:
    sizes = np.diff(world.knowledge.bounds)
    occurrences = np.bincount(world.knowledge.codes, minlength=600)
    assert (len(sizes), len(world.knowledge.terms)) == (3000, 600)
    assert abs(sizes.mean() - 20) < 0.5
    assert abs(sizes.var() - 20) < 2.5
    assert abs(occurrences.mean() - 100) < 2.5
    # Poisson(100) weights and then drawn: between the variance of one and of both.
    assert 120 < occurrences.var() < 280


def test_every_record_comes_from_one_label() -> None:
    rng = np.random.default_rng(3)
    knowledge = make_knowledge(rng, labels=200)
    drawn = draw_terms(rng, knowledge, 50)
    labels = [set(knowledge.codes[a:b].tolist()) for a, b in zip(knowledge.bounds, knowledge.bounds[1:], strict=False)]
    for row in drawn.tolist():
        assert len(set(row)) == len(row) == 15
        assert any(own >= set(row) for own in labels)


def test_independent_terms_link_to_nothing(world: World) -> None:
    labels = sets_of(world)
    rng = np.random.default_rng(3)
    drawn = np.sort(np.argsort(rng.random((3000, 600)), axis=1)[:, :3], axis=1)
    some = [set(row) for row in drawn[:200].tolist()]
    plain = np.mean([any(own >= row for own in labels) for row in some])
    assert abs(world.linked_share(3) - plain) < 0.07
    assert world.linked_share(1) == 1.0
    assert world.linked_share(9) == 0.0


@pytest.mark.parametrize("kind", ["cl", "t"])
@pytest.mark.parametrize("name", ["best", "adaptive"])
def test_what_a_search_removes_is_counted_and_checked(world: World, kind: str, name: str) -> None:
    wanted = TermRequirement(kind, c=1.0, l=10, t=0.3)  # type: ignore[arg-type]
    bounds = world.people(5).bounds
    for dataset in range(2):
        found = world.search(wanted, name, dataset, n=5, d=3)  # type: ignore[arg-type]
        sizes = np.diff(bounds[APART * dataset :][:4])
        assert found.solved
        assert found.holds
        assert 1 <= found.removed <= sizes.sum()
        whole = sum(1 / j for size in sizes for j in range(1, size + 1))
        assert found.removed / sizes.max() / whole - 1e-12 <= found.cost <= found.removed / whole + 1e-12


def test_a_search_that_finds_nothing_costs_everything(world: World) -> None:
    found = world.search(TermRequirement("cl", c=0.25, l=60), "adaptive", 2, d=10, nodes=1)
    assert not found.solved
    assert found.cost == 1
    assert found.removed == np.diff(world.people().bounds)[2 * APART :][:10].sum()


def test_records_have_their_terms_on_average_and_nested(world: World) -> None:
    few, many = world.people(5), world.people(9)
    sizes = np.diff(few.bounds)
    assert set(sizes) == {3, 4, 5, 6, 7}
    # five sizes, all as likely: variance 2, so six standard errors of the mean of 3,000 are 0.155
    assert abs(sizes.mean() - 5) < 0.155
    for i in range(40):
        short = set(few.codes[few.bounds[i] : few.bounds[i + 1]].tolist())
        longer = many.codes[many.bounds[i] : many.bounds[i + 1]].tolist()
        assert short < set(longer)
        assert longer == sorted(set(longer))


def test_group_of_a_dataset_is_the_same_in_both_calls(world: World) -> None:
    wanted = TermRequirement("t", t=0.4)
    for dataset in range(3):
        one, found = world.one(wanted, "best", dataset, 1 << 40), world.search(wanted, "best", dataset)
        assert one.optimal
        assert found.optimal
        assert one.cost == pytest.approx(found.cost)
    assert max(x for panel in search.PANELS["cl"] if panel.key == "tuples" for x in panel.values) <= APART


def test_a_world_of_real_knowledge_draws_its_records_from_its_labels() -> None:
    bench = Bench(None, quick=True, seed="x")
    world = worlds.real_world(bench)
    labels = sets_of(world)
    assert len(labels) == 133
    for row in world.terms[:50].tolist():
        assert any(own >= set(row) for own in labels)
    assert np.diff(world.people(worlds.REAL_TERMS).bounds).max() == worlds.REAL_MOST
    assert "columbia" in bench.used


def test_course_starts_at_the_first_solution_and_never_rises(world: World) -> None:
    wanted = search.DEFAULT[False]
    course = progress.followed(world, wanted, "depth-first", 0, 1)
    nodes = [rung[0] for rung in course.rungs]
    costs = [rung[2] for rung in course.rungs]
    assert nodes == sorted(nodes)
    assert costs == sorted(costs, reverse=True)
    before = world.one(wanted, "depth-first", 0, nodes[0] - 1)
    assert not before.feasible
    assert course.ended is None
    size = {"d": progress.SMALL[0][0], "n": progress.SMALL[0][1]}
    ended = progress.followed(world, wanted, "best", 0, 1 << 40, **size)
    assert ended.ended is not None
    assert ended.rungs[-1][2] == pytest.approx(world.one(wanted, "depth-first", 0, 1 << 40, **size).cost)


def test_a_search_is_watched_for_seconds_too(world: World) -> None:
    """After its nodes it runs by the clock; what it has by then is never dearer."""
    wanted = search.DEFAULT[False]
    by_nodes = progress.followed(world, wanted, "adaptive", 0, 500)
    watched = progress.followed(world, wanted, "adaptive", 0, 500, (0.01, 0.05))
    assert len(watched.rungs) == len(by_nodes.rungs) + 2
    line = watched.line(optimum=by_nodes.rungs[-1][2])
    assert line["cost at the end"] <= line["cost at 10 s"] <= line["first cost"] == by_nodes.rungs[0][2]
    assert line["nodes to the end"] is None


def test_completion_is_endless_for_a_search_that_did_not_end() -> None:
    place = {"setting": progress.SYNTHETIC, "dataset": 1}
    lines = [
        place | {"series": name, "nodes to the end": end} for name, end in (("adaptive", 7), ("depth-first", None))
    ]
    ends = pl.DataFrame(lines)
    found = progress._completes(ends, ends.with_columns(setting=pl.lit("small")).head(0))
    assert (found.verdict, found.count) == (HOLDS, "1 of 1")
    assert "depth-first completes 0 of 1" in found.measured


def test_point_of_the_lab_against_plain_loops(lab: Lab, world: World) -> None:
    from noren.methods import Suppress

    rule = diverse(1.0, 5)
    point = lab.measured(lab.recoded(Suppress(k=4, nodes=2000), [rule.model]), rule.rule)
    labels = sets_of(world)
    place = {name: i for i, name in enumerate(world.knowledge.terms)}
    own = np.array([place[name] for name in lab.table.terms["signs"].domain.values])

    def terms(cells: object, i: int) -> list[int]:
        return own[cells.data[cells.offsets[i] : cells.offsets[i + 1]]].tolist()  # type: ignore[attr-defined]

    n = lab.table.n
    prior = belief([terms(lab.had, i) for i in range(n)], labels)
    rises_of, costs, uneven = [], [], []
    for group in range(point.groups):
        members = np.flatnonzero(point.view.classes == group)
        beta = belief([terms(point.terms, i) for i in members], labels)
        ranked = sorted(beta.values(), reverse=True)
        assert ranked[0] <= sum(ranked[4:]) + 1e-9
        rises_of.append(max(beta[i] - prior.get(i, 0.0) for i in beta))
        uneven.append(max(beta.values()) / np.mean([b for b in beta.values() if b > 0]))
        lost = sum(1 / j for i in members for j in range(len(terms(point.terms, i)) + 1, len(terms(lab.had, i)) + 1))
        costs.append(lost / sum(1 / j for i in members for j in range(1, len(terms(lab.had, i)) + 1)))
    assert point.rise == pytest.approx(np.mean(rises_of))
    assert point.cost == pytest.approx(np.mean(costs))
    assert point.uneven == pytest.approx(np.mean(uneven))
    assert point.size == pytest.approx(n / point.groups)
    assert point.holds


def test_a_broken_requirement_is_seen(lab: Lab) -> None:
    from noren.engines import Plan

    assert not lab.measured(Plan(), diverse(1.0, 30).rule).holds


def verdicts(rise: dict[str, list[float]]) -> list[str]:
    """What the claims of figure 9 become where beliefs change so, line by line along x."""
    sizes = {named(k): k for k in SIZES}
    frame = pl.DataFrame([
        {"x": float(at), "series": series, "k": sizes.get(series), "rise": value, "uneven": value, "rise_before": 1.0,
         "belief": 0.4, "single": 0.9, "cost": 0.1, "size": 2.0, "ncp": 0.1, "bound": 0.5}
        for series, line in rise.items() for at, value in enumerate(line)
    ])  # fmt: skip
    found = tradeoff.CLAIMS["l"].answered(frame=frame, spreads=tradeoff.spreads(frame))
    wanted = ("The mean belief", "Generalisation dom", "Removal only (k = 1) gives", "k = 2 gives", "From k", "That is")
    return [answer.verdict for text in wanted for claim, answer in found.items() if claim.startswith(text)]


def test_verdicts_follow_the_numbers() -> None:
    """A sheet made to agree with the paper, and one made to disagree."""
    line = {named(k): v for k, v in {1: 0.1, 2: 0.9, 5: 0.8, 10: 0.7, 20: 0.6}.items()}
    agree = {name: [v, v - 0.001] for name, v in line.items()} | {ONLY_GENERAL: [0.5, 0.5]}
    assert verdicts(agree) == [HOLDS] * 6
    opposed = {name: [1 - v[0], 1.5 - v[0]] for name, v in agree.items()}
    assert verdicts(opposed) == [FAILS] * 6


def searched(costs: dict[str, tuple[float, ...]]) -> dict[str, pl.DataFrame]:
    """What the claims of figures 6 and 7 read, from the costs of either search in some groups."""
    every = pl.DataFrame([
        {"key": "terms", "panel": "(a)", "x": 1.0, "series": series, "dataset": i, "cost": cost, "solved": True,
         "holds": True, "proven": False, "terms removed": round(10 * cost)}
        for series, line in costs.items() for i, cost in enumerate(line)
    ])  # fmt: skip
    groups = search.needed(every)
    averaged = search.averaged
    return {"frame": averaged(every), "needed": averaged(groups), "groups": groups, "every": every}


def test_always_better_counts_ties_and_losses() -> None:
    found = search.CLAIMS["cl"].answered(**searched({"adaptive": (0.1, 0.2, 0.3), "depth-first": (0.2, 0.2, 0.2)}))
    answer = found["Within the time bound the adaptive search always finds the better solution."]
    assert answer.verdict == IN_PART
    assert "true in 1 of 3 comparisons, 1 tied" in answer.measured


def test_groups_that_hold_as_they_are_are_not_compared() -> None:
    made = searched({"adaptive": (0.0, 0.1), "depth-first": (0.0, 0.2)})
    assert set(made["groups"]["dataset"]) == {1}
    found = search.CLAIMS["cl"].answered(**made)
    assert "cost of adaptive is 0.5 times that of depth-first" in next(iter(found.values())).measured


def test_every_figure_of_the_evaluation_is_there() -> None:
    keys = [figure.key for figure in PAPER.figures]
    assert keys == ["6", "7", "8", "9", "10", "11", "12", "section-6", "section-1.1"]
    assert tradeoff.SHAPES["t"].asked(0.16).rule.t == pytest.approx(0.4)
    assert (tradeoff.SHAPES["c"].asked(0.5).rule.l, tradeoff.SHAPES["l"].asked(30).rule.c) == (60, 1.0)


def holding(records: list[frozenset[int]], known: tuple[int, ...]) -> list[frozenset[int]]:
    return [record for record in records if set(known) <= record]


def some_records(seed: int) -> list[frozenset[int]]:
    rng = np.random.default_rng(seed)
    return [frozenset(np.flatnonzero(rng.random(7) < 0.4).tolist()) for _ in range(30)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("m", [1, 2, 3])
def test_known_terms_leave_k_records(seed: int, m: int) -> None:
    records = some_records(seed)
    for k in (2, 5):
        left = transactions.suppressed(records, k, m)
        known = [c for size in range(1, m + 1) for c in combinations(range(7), size) if holding(left, c)]
        assert all(len(holding(left, c)) >= k for c in known)
        assert all(after <= before for after, before in zip(left, records, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_coherence_is_the_least_crowd_and_the_largest_share(seed: int) -> None:
    records, private = some_records(seed), {1, 4}
    crowds = [
        holding(records, known)
        for size in range(3)
        for known in combinations(sorted(set(range(7)) - private), size)
        if holding(records, known)
    ]
    found = transactions.coherence(records, private, 2)
    assert found.k == min(map(len, crowds))
    assert found.h == max(sum(term in record for record in crowd) / len(crowd) for crowd in crowds for term in private)


def test_records_without_terms_are_as_alike_as_can_be() -> None:
    empty = [frozenset[int]()] * 4
    assert transactions.coherence(empty, {1}, 2) == transactions.Coherence(4, 0.0)


def test_the_cost_of_a_removal_is_counted_by_each_metric_as_it_says(world: World) -> None:
    """The group of one search again: what went, what it was worth, over what everything is worth."""
    wanted, people = TermRequirement("cl", c=1.0, l=30), world.people()
    bounds, codes = world._group(people, 0, worlds.TUPLES)
    held = np.bincount(world.knowledge.codes, minlength=len(world.knowledge.terms))
    for metric, worth in metrics.prices(world).items():
        found = world.one(wanted, "best", 0, 4000, prices=worth)
        if worth is None:
            lost = sum(
                1 / j for a, b in pairwise(bounds) for j in range(int((~found.removed[a:b]).sum()) + 1, int(b - a) + 1)
            )
            most = sum(1 / j for a, b in pairwise(bounds) for j in range(1, int(b - a) + 1))
        else:
            assert (worth > 0).all()
            lost, most = worth[codes[found.removed]].sum(), worth[codes].sum()
        assert found.cost == pytest.approx(lost / most), metric
    told = metrics.prices(world)[metrics.TOLD]
    assert told is not None
    assert told[held.argmin()] == told.max()
