"""The method 'suppress': what it publishes is true, hides what it must, and is as the oracle says it should be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.workflow.anonymize import Outcome, run
from tests.oracles.terms import Demand, World, groups
from tests.unit.term_world import DIVERSE, ENOUGH, N, check, known, policy, table

# ---------------------------------------------------------------- releases


@pytest.mark.parametrize("way", ["memory", "parquet", "csv", "saved"])
def test_what_is_published_is_true_and_diverse(way: str, tmp_path: Path) -> None:
    target, original = tmp_path / "release", table()
    if way in ("parquet", "csv"):
        made = run(original, policy(k=3), to=target, file_format=way)  # type: ignore[arg-type]
    else:
        made = run(original, policy(k=3))
    if way == "saved":
        made.release.save(target)
    release = made.release if way == "memory" else nr.open_release(target)
    rows = check(release, original, ENOUGH)
    assert len(rows) == N
    assert [v.holds for v in made.facts.verdicts] == [v.holds for v in nr.verify(release)] == [True]
    assert release.frame().sort("row").equals(made.release.frame().sort("row"))
    (figures,) = made.facts.terms
    true = sum(len(set(row["signs_true"])) for row in rows)
    left = sum(len(row["signs"]) for row in rows)
    assert (figures.entries, figures.removed) == (true, true - left)
    assert figures.removed > 0
    keys = ["age", "town"]
    assert len(figures.cost) == len(groups(rows, keys))
    assert sorted(figures.records.tolist()) == sorted(map(len, groups(rows, keys)))
    assert min(figures.records) >= 3
    assert (figures.lower_bound <= figures.cost + 1e-12).all()
    assert ((figures.cost > 0) <= figures.searched).all()


def test_with_k_1_quasi_identifiers_stay_as_they_are() -> None:
    original = table()
    release = nr.anonymize(original, policy())
    assert [release.column(name).is_exact for name in ("age", "town", "signs")] == [True, True, False]
    assert release.column("signs").terms is not None
    check(release, original, ENOUGH)
    frame = release.frame().sort("row")
    for name in ("age", "town"):
        assert frame[name].to_list() == original[name].to_pylist()


# ---------------------------------------------------------------- what a removal costs


def lost_terms(rows: list[dict[str, Any]]) -> list[str]:
    return [term for row in rows for term in set(row["signs_true"]) - set(row["signs"])]


def test_a_group_s_cost_is_that_of_what_its_terms_are_worth() -> None:
    """Of quasi-identifiers left as they are the groups are the same, so each cost can be counted again."""
    original, worth = table(), {"cough": 8.0, "rash": 0.5}
    outcome = run(original, policy(cost="terms", term_weights=worth))
    rows = check(outcome.release, original, ENOUGH)
    (figures,) = outcome.facts.terms
    found = []
    for group in groups(rows, ["age", "town"]):
        most = sum(worth.get(term, 1.0) for row in group for term in set(row["signs_true"]))
        found.append(sum(worth.get(term, 1.0) for term in lost_terms(group)) / (most or 1.0))
    assert sorted(figures.cost.tolist()) == pytest.approx(sorted(found))
    assert figures.optimal.all()
    assert (figures.lower_bound <= figures.cost + 1e-12).all()


def test_fewer_terms_go_where_every_one_costs_the_same() -> None:
    """Both searches prove their optimum, each by its own metric: neither can be beaten by the other in it."""
    original = table()
    counted, inverse = (run(original, policy(cost=cost)) for cost in ("terms", "inverse"))
    removed = [outcome.facts.terms[0].removed for outcome in (counted, inverse)]
    assert all(outcome.facts.terms[0].optimal.all() for outcome in (counted, inverse))
    assert removed[0] <= removed[1]


def test_a_term_that_is_worth_much_stays_where_another_can_go() -> None:
    original = table()
    lost = {}
    for worth in (100.0, 0.01):
        outcome = run(original, policy(cost="terms", term_weights={"cough": worth}))
        assert outcome.facts.terms[0].optimal.all()
        lost[worth] = lost_terms(check(outcome.release, original, ENOUGH)).count("cough")
    assert lost[100.0] < lost[0.01]


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ({"term_weights": {"cough": 2.0}}, "cost = "),
        ({"cost": "terms", "term_weights": {"cough": 0.0}}, "greater than 0"),
        ({"cost": "terms", "balance": {"terms": 0.1}}, "balance uses"),
        ({"cost": "terms", "term_weights": {"hiccup": 2.0}}, "in no knowledge table"),
    ],
    ids=["without the metric", "nothing", "balance", "unknown term"],
)
def test_weights_that_do_not_fit_are_refused(method: dict[str, Any], said: str) -> None:
    with pytest.raises(nr.errors.PolicyError, match=said):
        run(table(), policy(**method))


@pytest.mark.parametrize("phase", ["mondrian", "incognito", "hilbert", "three-phase", "sweep"])
@pytest.mark.parametrize("k", [1, 4])
def test_every_first_phase_keeps_its_own_promises(phase: str, k: int) -> None:
    original = table(120)
    secret = {"model": "frequency-l-diversity", "on": "ill", "l": 2}
    release = nr.anonymize(original, policy(require=[secret, DIVERSE], ill="sensitive", k=k, generalise=phase))
    assert {v.model: v.holds for v in nr.verify(release)} == {"frequency-l-diversity": True, "qs-diversity": True}
    rows = check(release, original, ENOUGH)
    classes = groups(rows, ["age", "town"])
    assert min(map(len, classes)) >= max(2, k)
    if phase != "sweep":
        for one in classes:
            ills = [row["ill"] for row in one]
            assert max(map(ills.count, ills)) * 2 <= len(ills)


def test_a_requirement_on_k_is_met_as_well() -> None:
    rules = policy(require=[DIVERSE, {"model": "k-anonymity", "k": 5}], k=2)
    assert [(v.model, v.holds) for v in run(table(), rules).facts.verdicts] == [
        ("qs-diversity", True), ("k-anonymity", True)
    ]  # fmt: skip


def test_options_of_the_first_phase_reach_it() -> None:
    rules = policy(k=10, generalise={"name": "incognito", "loss": "class-size"})
    assert min(map(len, groups(nr.anonymize(table(), rules).frame().to_dicts(), ["age", "town"]))) >= 10


# ---------------------------------------------------------------- searches


@pytest.mark.parametrize("search", ["best", "adaptive", "depth-first"])
def test_a_node_budget_repeats_exactly_under_one_order(search: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.methods.base.secret_order", lambda n: np.random.default_rng(n).permutation(n))

    def made(rows: pa.Table) -> Outcome:
        return run(rows, policy(k=2, search=search, nodes=40, generalise="incognito"))

    first, second = made(table()), made(table())
    assert first.release.frame().sort("row").equals(second.release.frame().sort("row"))
    for one, other in zip(first.facts.terms, second.facts.terms, strict=True):
        assert one.cost.tolist() == other.cost.tolist()
        assert one.nodes == other.nodes
    check(first.release, table(), ENOUGH)
    assert first.facts.terms[0].search == search


def test_the_best_search_costs_no_more_than_the_others() -> None:
    costs = {}
    for search in ("best", "adaptive", "depth-first"):
        (figures,) = run(table(), policy(search=search, nodes=5_000)).facts.terms
        costs[search] = figures.cost.sum()
        assert figures.gap >= 0
    assert costs["best"] <= costs["adaptive"] + 1e-9
    assert costs["best"] <= costs["depth-first"] + 1e-9
    (figures,) = run(table(), policy(nodes=5_000)).facts.terms
    assert figures.optimal.all()
    assert figures.gap == 0
    assert figures.cost == pytest.approx(figures.lower_bound)


@pytest.mark.parametrize("search", ["best", "adaptive", "depth-first"])
@pytest.mark.parametrize(
    "bound", [{"nodes": 1}, {"nodes": None, "seconds": 1e-9}, {"nodes": None, "total_seconds": 1e-9}]
)
def test_a_search_without_time_leaves_out_all_terms_rather_than_merge(search: str, bound: dict[str, Any]) -> None:
    made = run(table(), policy(k=3, search=search, infeasible="refuse", **bound))
    check(made.release, table(), ENOUGH)
    (figures,) = made.facts.terms
    assert (figures.lower_bound <= figures.cost + 1e-12).all()
    assert (figures.cost <= 1).all()
    searched = figures.optimal & figures.searched
    assert figures.removed > 0
    assert search == "best" or not searched.any()


def test_progress_tells_groups_and_cost() -> None:
    seen: list[tuple[int, str, int | None]] = []

    @contextmanager
    def stage(name: str, total: int | None) -> Iterator[Any]:
        yield lambda done, *, note="", total=None: seen.append((done, note, total))

    made = run(table(), policy(k=3), stage=stage)
    told = [(done, note, total) for done, note, total in seen if note.startswith("Terms, cost 0.")]
    assert told
    figures = made.facts.terms[0]
    assert {total for _, _, total in told} == {len(figures.cost)}
    assert sum(done for done, _, _ in told) == len(figures.cost)
    assert told[-1][1] == f"Terms, cost {figures.mean_cost:.4f}"


# ---------------------------------------------------------------- groups beyond mending

SKEWED = World(
    {"Flu": frozenset({"a", "b"}), "Cold": frozenset({"a"})}, priors={"Flu": Fraction(9, 10), "Cold": Fraction(1, 10)}
)
"""A record with b has Flu; one without terms is as likely to have Cold, which is far from the prior."""


def skewed(*people: tuple[int, str]) -> pa.Table:
    signs = pa.array([list(word) for _, word in people], pa.list_(pa.string()))
    return pa.table({"row": range(len(people)), "age": [age for age, _ in people], "signs": signs})


def skewed_policy(t: float = 0.3, **method: Any) -> nr.Policy:
    signs = {"role": "quasi-sensitive", "knowledge": known(SKEWED)}
    return nr.Policy(
        mechanism="ignored",
        attributes={"row": "plain", "age": "quasi-identifier", "signs": signs},
        require=[nr.models.QSCloseness(on="signs", t=t)],
        method={"name": "suppress", "nodes": 100} | method,
    )


PEOPLE = skewed((1, "b"), (1, "b"), (2, ""), (2, ""), (9, "b"), (9, "b"))


def test_a_group_beyond_mending_is_merged_with_its_nearest_neighbour() -> None:
    made = run(PEOPLE, skewed_policy())
    rows = check(made.release, PEOPLE, Demand("l2", t=Fraction(3, 10)), SKEWED)
    assert sorted((row["age"], row["row"]) for row in rows) == [
        ("9", 4), ("9", 5), ("[1, 2]", 0), ("[1, 2]", 1), ("[1, 2]", 2), ("[1, 2]", 3)
    ]  # fmt: skip
    assert any("merged with their nearest neighbours" in note for note in made.facts.notes)
    assert made.facts.terms[0].removed == 0


def test_merging_goes_on_until_it_suffices() -> None:
    people = skewed((1, ""), (2, ""), (3, ""), (8, "b"), (9, "b"), (10, "b"), (30, "b"))
    rows = check(run(people, skewed_policy()).release, people, Demand("l2", t=Fraction(3, 10)), SKEWED)
    assert len(rows) == 7
    assert len(groups(rows, ["age"])) < 7


def test_a_group_beyond_mending_is_dropped_where_that_may_be() -> None:
    """Another group goes with it: of the two alone, half would be believed to have Cold."""
    made = run(PEOPLE, skewed_policy(infeasible="drop", suppression=0.67))
    rows = check(made.release, PEOPLE, Demand("l2", t=Fraction(3, 10)), SKEWED)
    assert sorted(row["row"] for row in rows) in ([0, 1], [4, 5])
    assert (made.facts.suppressed, made.release.manifest.suppressed) == (4, 4)
    with pytest.raises(nr.errors.RequirementNotMet, match="Suppression does not help"):
        run(PEOPLE, skewed_policy(infeasible="drop", suppression=0.34))
    says = r"1 of 3 groups \(2 records\) .*; at most 1 records may be suppressed"
    with pytest.raises(nr.errors.RequirementNotMet, match=says):
        run(PEOPLE, skewed_policy(infeasible="drop", suppression=0.33))


def test_a_group_beyond_mending_is_refused_where_that_is_asked() -> None:
    with pytest.raises(nr.errors.RequirementNotMet, match=r"1 of 3 groups \(2 records\) disclose too much") as caught:
        run(PEOPLE, skewed_policy(infeasible="refuse"))
    assert "infeasible" in (caught.value.hint or "")
    assert run(PEOPLE, skewed_policy(infeasible="refuse", k=4)).facts.verdicts[0].holds is True


def test_a_table_beyond_mending_is_refused() -> None:
    with pytest.raises(nr.errors.RequirementNotMet, match="the whole table as one group"):
        run(skewed((1, ""), (2, "")), skewed_policy())
    with pytest.raises(nr.errors.RequirementNotMet):
        run(skewed((1, ""), (2, "")), skewed_policy(infeasible="drop", suppression=0.9))


def test_one_record() -> None:
    assert nr.anonymize(skewed((1, "b")), skewed_policy()).frame()["signs"].to_list() == [["b"]]
    alone = table(1).set_column(4, "signs", pa.array([["cough", "sneeze"]]))
    (terms,) = nr.anonymize(alone, policy()).frame()["signs"].to_list()
    assert terms == ["cough"], "both say cold, sneezing leaves two diseases, a cough three"
