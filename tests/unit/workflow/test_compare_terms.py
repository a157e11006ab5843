"""Candidates for policies with quasi-sensitive columns: the trade-off between left-out terms and generalisation."""

from __future__ import annotations

import tomllib
from math import isnan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.methods.candidates import SECONDS_PER_GROUP, count_query_loss, loss_of, term_candidates
from noren.methods.mondrian import Mondrian
from noren.methods.suppress import Suppress
from noren.workflow import compare as module
from noren.workflow.anonymize import run
from noren.workflow.compare import compare
from noren.workflow.compare_terms import curve_chart
from noren.workflow.comparison import Candidate

N = 150
LABELS = {
    "flu": ["cough", "fever", "ache"],
    "cold": ["cough", "sneeze"],
    "measles": ["fever", "rash", "cough"],
    "migraine": ["ache", "nausea"],
    "allergy": ["sneeze", "rash", "itch"],
    "gastritis": ["nausea", "cramp"],
}
KNOWN = nr.Knowledge.from_pairs([(label, term) for label, terms in LABELS.items() for term in terms])
CLOSE = {"model": "qs-closeness", "on": "signs", "t": 0.35}
FIELDS = {
    "method", "holds", "seconds", "records", "suppressed", "smallest_class", "worst_share", "belief", "query_loss",
    "losses", "classification", "verdicts", "policy", "terms",
}  # fmt: skip


def table(n: int = N) -> pa.Table:
    rng = np.random.default_rng(5)
    held = list(LABELS.values())
    signs = [rng.permutation(held[rng.integers(len(held))])[: rng.integers(1, 4)].tolist() for _ in range(n)]
    return pa.table(
        {
            "who": [f"p{i}" for i in range(n)],
            "age": rng.integers(20, 60, n).tolist(),
            "town": rng.choice(["north", "east", "south"], n).tolist(),
            "shade": rng.choice(["amber", "coral", "denim"], n).tolist(),
            "signs": pa.array(signs, pa.list_(pa.string())),
        }
    )


def policy(method: Any = None, require: Any = None, **columns: Any) -> nr.Policy:
    attributes: dict[str, Any] = {
        "who": "identifier",
        "age": "quasi-identifier",
        "town": "quasi-identifier",
        "shade": "plain",
        "signs": {"role": "quasi-sensitive", "knowledge": KNOWN},
    }
    own = method or {"name": "suppress", "k": 3, "nodes": 500}
    return nr.Policy(attributes=attributes | columns, require=require or [CLOSE], method=own)


@pytest.fixture(scope="module")
def found() -> list[Candidate]:
    return compare(table(), policy())


def by_title(found: list[Candidate]) -> dict[str, Candidate]:
    return {candidate.title: candidate for candidate in found}


CURVE = [f"suppress k={k} seconds=0.05" for k in (1, 2, 5, 10, 20)]
OWN = "suppress k=3 nodes=500"


def test_the_curve_over_k_its_end_and_the_policys_own_method(found):
    assert {candidate.title for candidate in found} == {*CURVE, "mondrian", OWN}
    assert len(found) == 7
    assert all(candidate.holds for candidate in found), [candidate.failure for candidate in found]
    assert {candidate.title for candidate in found if candidate.terms.own} == {OWN}
    assert {candidate.terms.seconds_per_group for candidate in found if not candidate.terms.own} == {0.05, None}


def test_generalisation_grows_with_k_and_left_out_terms_become_fewer(found):
    curve = [by_title(found)[title] for title in CURVE]
    ncp = [candidate.losses["ncp_loss"] for candidate in curve]
    cost = [candidate.losses["term_cost_loss"] for candidate in curve]
    assert ncp[0] == 0
    assert ncp == sorted(ncp)
    assert cost[0] > cost[-1]
    assert cost[0] == max(cost)
    assert [candidate.smallest_class >= k for candidate, k in zip(curve, (1, 2, 5, 10, 20), strict=True)] == [True] * 5
    assert [candidate.terms.k for candidate in curve] == [1, 2, 5, 10, 20]


def test_the_two_ends_are_told(found):
    named = by_title(found)
    assert named[CURVE[0]].terms.way == "removal"
    assert named["mondrian"].terms.way == "generalisation"
    assert named["mondrian"].losses["term_cost_loss"] == named["mondrian"].losses["term_share_loss"] == 0
    assert named["mondrian"].terms.k is None
    assert {named[title].terms.way for title in CURVE[1:]} == {"both"}


def test_the_least_generalisation_comes_first(found):
    ncp = [candidate.losses["ncp_loss"] for candidate in found]
    assert ncp == sorted(ncp)


def test_every_candidate_was_verified_with_the_prior_of_the_original(found):
    for candidate in found:
        (verdict,) = candidate.verdicts
        assert (verdict.model, verdict.column, verdict.holds) == ("qs-closeness", "signs", True)
        assert verdict.basis == "the original"


def test_figures_are_plain_data(found):
    for candidate in found:
        figures = candidate.figures()
        assert figures.keys() == FIELDS
        terms = figures["terms"]
        assert set(terms["queries"]) == {"1"}, "two quasi-identifiers allow no three conditions"
        assert terms["queries"]["1"]["answered"] + terms["queries"]["1"]["empty"] == 1000
        assert figures["query_loss"] == terms["queries"]["1"]["mean"]
        assert terms["before"]["belief_rise_max_loss"] > 0.35
        for name in ("belief_rise_mean_loss", "belief_rise_of_groups_loss", "belief_rise_max_loss"):
            assert figures["losses"][name] <= terms["before"]["belief_rise_max_loss"]
        assert figures["losses"]["belief_rise_max_loss"] <= 0.35 + 1e-9, "L2 bounds every single label"
        assert 0 <= terms["proven"] <= terms["searched"]


def test_losses_are_those_of_the_release_that_would_be_made(monkeypatch):
    monkeypatch.setattr("noren.methods.base.secret_order", lambda n: np.random.default_rng(n).permutation(n))
    rules = policy({"name": "suppress", "k": 4, "nodes": 2000}, require=[CLOSE, {"model": "k-anonymity", "k": 2}])
    candidate = by_title(compare(table(), rules, among=["suppress"]))["suppress k=4 nodes=2000"]
    facts = run(table(), rules).facts
    (part,) = facts.terms
    assert facts.losses["term_cost_loss"] == pytest.approx(part.mean_cost)
    assert facts.losses["term_share_loss"] == pytest.approx(part.removed / part.entries)
    assert candidate.losses == pytest.approx(dict(facts.losses))
    assert [verdict.model for verdict in candidate.verdicts] == ["qs-closeness", "k-anonymity"]


@pytest.mark.parametrize("place", range(7))
def test_a_snippet_makes_the_same_method(found, place):
    section = tomllib.loads(found[place].snippet)
    assert policy(section["method"]).methods == found[place].methods


def test_k_starts_where_the_requirements_do_and_ends_with_the_records():
    rules = policy(require=[CLOSE, {"model": "k-anonymity", "k": 4}])
    titles = [candidate.title for candidate in compare(table(), rules, among=["suppress"])]
    assert sorted(titles) == sorted([OWN, *(f"suppress k={k} seconds=0.05" for k in (4, 5, 10, 20))])
    few = {candidate.terms.k for candidate in compare(table(12), policy(), among=["suppress"]) if candidate.holds}
    assert few == {1, 2, 3, 5, 10}


def test_groups_larger_than_the_table_are_tried_only_where_the_policy_asks_for_them():
    own = "suppress k=30 nodes=50"
    tried = compare(table(12), policy({"name": "suppress", "k": 30, "nodes": 50}))
    named = by_title(tried)
    assert set(named) == {own, "mondrian", *(f"suppress k={k} seconds=0.05" for k in (1, 2, 5, 10))}
    assert not named[own].holds
    assert tried[-1].title == own, "failures come last"


def test_candidates_keep_the_search_of_the_policy_but_not_its_bounds():
    own = Suppress(k=7, search="adaptive", infeasible="drop", total_seconds=9, balance={"terms": 0.1}, suppression=0.2)
    found = term_candidates(own, [nr.models.KAnonymity(k=10), nr.models.KAnonymity(k=3)], 0.1)
    assert [method.name for method in found] == ["suppress", "suppress", "mondrian"]
    for k, method in zip((10, 20), found, strict=False):
        assert method == Suppress(
            k=k, search="adaptive", infeasible="drop", seconds=SECONDS_PER_GROUP, suppression=0.1
        )  # fmt: skip
    assert found[-1] == Mondrian(suppression=0.1)
    assert [getattr(method, "k", None) for method in term_candidates(Mondrian(), [])] == [1, 2, 5, 10, 20, None]


def test_titles_show_k_and_budgets():
    assert Suppress().title == "suppress k=1"
    assert Suppress(k=2, nodes=50).title == "suppress k=2 nodes=50"
    assert Suppress(balance={"terms": 0.1}).title == "suppress k=1 balance.terms=0.1"


def test_a_budget_of_the_policy_is_a_candidate():
    own = {"name": "suppress", "nodes": 200, "balance": {"generalisation": 0.1}}
    named = by_title(compare(table(), policy(own), among=["suppress"]))
    candidate = named["suppress k=1 nodes=200 balance.generalisation=0.1"]
    assert candidate.terms.own
    assert not candidate.terms.on_curve
    assert candidate.failure or candidate.losses["ncp_loss"] <= 0.1 + 1e-9


def test_another_method_of_the_policy_is_marked():
    named = by_title(compare(table(), policy("mondrian")))
    assert set(named) == {*CURVE, "mondrian"}
    assert [title for title, candidate in named.items() if candidate.terms.own] == ["mondrian"]


def test_sensitive_columns_beside_terms():
    rules = policy(require=[CLOSE, {"model": "frequency-l-diversity", "on": "shade", "l": 2}], shade="sensitive")
    some = [candidate for candidate in compare(table(), rules) if candidate.holds]
    assert some
    for candidate in some:
        assert 0 < candidate.worst_share <= 0.5 + 1e-9
        assert [verdict.model for verdict in candidate.verdicts] == ["qs-closeness", "frequency-l-diversity"]


def test_several_columns_of_terms():
    more = table().append_column("drugs", table()["signs"])
    same = {"role": "quasi-sensitive", "knowledge": KNOWN}
    other = {"role": "quasi-sensitive", "knowledge": nr.Knowledge.from_pairs([("x", t) for t in KNOWN.terms])}
    for drugs, limit in ((same, 0.35), (other, 0.9)):
        require = (
            [{**CLOSE, "on": ["signs", "drugs"]}] if drugs is same else [CLOSE, {**CLOSE, "on": "drugs", "t": limit}]
        )
        named = by_title(compare(more, policy(require=require, drugs=drugs), among=["suppress"]))
        first = named[CURVE[0]]
        assert first.holds, first.failure
        assert len(first.verdicts) == 2
        assert all(verdict.holds for verdict in first.verdicts)
        assert 0 < first.losses["term_cost_loss"] <= 1


def test_what_cannot_be_met_is_a_failure():
    pairs = [(label, term) for label, terms in LABELS.items() for term in terms]
    sure = nr.Knowledge.from_pairs(pairs, priors={"flu": 1.0})
    signs = {"role": "quasi-sensitive", "knowledge": sure}
    hard = compare(table(), policy(require=[CLOSE | {"t": 0.05}], signs=signs))
    assert hard
    assert all(candidate.failure and candidate.terms is None for candidate in hard)
    assert hard[0].figures().keys() == {"method", "holds", "seconds", "failure"}


def test_a_candidate_that_the_check_refutes_is_a_failure(monkeypatch):
    real = module.judge_draft

    def doubting(*arguments: Any, **options: Any) -> list[Any]:
        from dataclasses import replace

        return [replace(verdict, holds=None) for verdict in real(*arguments, **options)]

    monkeypatch.setattr(module, "judge_draft", doubting)
    some = compare(table(), policy(), among=["mondrian"])
    assert {candidate.failure for candidate in some} == {"qs-closeness on signs does not hold."}


def test_terms_cannot_be_learned_by_trees():
    with pytest.raises(nr.errors.QueryError, match="no quasi-identifier or sensitive column 'signs'"):
        compare(table(), policy(), among=["mondrian"], classify="signs")
    (candidate,) = compare(table(), policy(), among=["mondrian"], classify="town")
    assert candidate.classification is not None


def test_a_table_without_terms_in_it_has_no_query_error():
    bare = table().set_column(4, "signs", pa.array([[] for _ in range(N)], pa.list_(pa.string())))
    (candidate,) = compare(bare, policy(), among=["mondrian"])
    assert candidate.holds
    assert isnan(candidate.query_loss)
    assert candidate.terms.queries == {}
    assert candidate.losses["term_share_loss"] == 0
    assert curve_chart([candidate]).to_dict()["layer"]


def test_scores_of_tables_without_a_sensitive_column(monkeypatch):
    seen = {}

    def watch(coded: Any, view: Any) -> Any:
        seen.update({"queries": count_query_loss(coded, view)})
        seen.update({name: loss_of(coded, view, name) for name in ("utility", "ncp")})
        return {}

    monkeypatch.setattr(
        module.TermMeasures, "of", lambda self, draft, view, method: (watch(draft.records_seen, view), None)
    )  # fmt: skip
    compare(table(), policy(), among=["mondrian"])
    assert set(seen) == {"queries", "utility", "ncp"}
    assert all(0 < figure < 1 for figure in seen.values())


def test_the_chart_shows_the_curve(found):
    drawn = found.chart().to_dict()
    rows = drawn["data"]["values"]
    assert {row["label"] for row in rows} == {
        "k=1, term removal only", "k=2", "k=5", "k=10", "k=20", "generalisation only", "",
    }  # fmt: skip
    assert all(row["ncp"] >= 0 and row["cost"] >= 0 for row in rows)
    assert [row["label"] for row in rows if not row["curve"]] == ["generalisation only"]
    assert "NCP" in str(drawn)
