"""Candidates side by side, and the method that leaves the choice to Noren."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.methods.auto import Auto
from noren.methods.candidates import all_candidates
from noren.policy.options import Margin, PeopleOptions
from noren.workflow import compare as module
from noren.workflow.anonymize import run
from noren.workflow.compare import compare
from noren.workflow.comparison import Candidate

N = 240
SHADES = {"tree": {"warm": ["amber", "coral"], "cool": ["denim", "teal"]}}
GENERALISING = {
    "sweep", "sweep chunk=16", "mondrian", "mondrian strict=false", "hilbert", "three-phase",
    "three-phase refine=false", "incognito", "local-suppression",
}  # fmt: skip
UNBOUNDED = {"sweep", "sweep chunk=16", "three-phase", "three-phase refine=false", "local-suppression"}
"""Methods by which secrets may be certain to whoever replays them."""
EVERYTHING = GENERALISING | {"anatomy", "rating", "decoys"}
FIELDS = {
    "method", "holds", "seconds", "records", "suppressed", "smallest_class", "worst_share", "belief", "query_loss",
    "losses", "classification", "verdicts", "policy",
}  # fmt: skip


def table(n: int = N) -> pa.Table:
    rng = np.random.default_rng(11)
    return pa.table(
        {
            "who": [f"p{i}" for i in range(n)],
            "age": rng.integers(20, 60, n).tolist(),
            "town": rng.choice(["13021", "13022", "13145", "24011"], n).tolist(),
            "shade": rng.choice(["amber", "coral", "denim", "teal"], n).tolist(),
        }
    )


def policy(method: Any = "decoys", require: Any = None, mechanism: str = "judged", **columns: Any) -> nr.Policy:
    attributes = {
        "who": "identifier",
        "age": "quasi-identifier",
        "town": {"role": "quasi-identifier", "hierarchy": {"prefix": [3, 2]}},
        "shade": {"role": "sensitive", "hierarchy": SHADES},
    }
    rules = require or [nr.models.FrequencyLDiversity(on="shade", l=2)]
    return nr.Policy(attributes=attributes | columns, require=rules, method=method, mechanism=mechanism)


@pytest.fixture(scope="module")
def found() -> list[Candidate]:
    return compare(table(), policy(mechanism="ignored"))


def test_what_a_replay_may_give_away_fails_with_the_reason() -> None:
    failed = {one.title: one.failure for one in compare(table(), policy()) if not one.holds}
    assert failed.keys() == UNBOUNDED
    assert all("for certain" in str(why) for why in failed.values())


def test_every_method_that_can_serve_is_tried(found):
    assert {candidate.title for candidate in found} == EVERYTHING
    assert len(found) == len(EVERYTHING)


def test_the_fewest_right_guesses_come_first(found):
    assert all(candidate.holds for candidate in found)
    guessed = [round(candidate.belief, 3) for candidate in found]
    assert guessed == sorted(guessed)
    assert len(set(guessed)) > 3, "methods of the same worst share are told apart"


def test_every_candidate_was_verified_by_the_independent_check(found):
    for candidate in found:
        assert [verdict.model for verdict in candidate.verdicts] == ["frequency-l-diversity"]
        assert all(verdict.holds is True for verdict in candidate.verdicts)
        assert candidate.records == N
        assert candidate.suppressed == 0
        assert candidate.seconds >= 0


def test_risk_is_measured_on_what_is_published(found):
    truth = table().to_pandas().groupby(["age", "town"]).size()
    for candidate in found:
        assert 0 < candidate.worst_share <= 1 / 2 + 1e-9
        if candidate.title in ("anatomy", "rating", "decoys"):
            assert candidate.smallest_class == truth.min(), "exact quasi-identifiers find people"
        elif candidate.methods[0].name != "sweep":
            assert candidate.smallest_class >= 2, "only sweep may blur the secret of a person who stands alone"


def test_figures_are_plain_data(found):
    for candidate in found:
        figures = candidate.figures()
        assert figures.keys() == FIELDS
        assert figures["holds"] is True
        assert figures["losses"] is None if candidate.title == "decoys" else "ncp_loss" in figures["losses"]


@pytest.mark.parametrize("place", range(len(EVERYTHING)))
def test_a_snippet_is_a_method_section_that_makes_the_same_method(found, place):
    candidate = found[place]
    section = tomllib.loads(candidate.snippet)
    assert section.keys() == {"method"}
    assert next(iter(section["method"])) == "name"
    assert policy(section["method"]).methods == candidate.methods


def test_a_method_that_cannot_serve_is_left_out():
    close = compare(table(), policy(require=[{"model": "t-closeness", "on": "shade", "t": 0.4, "distance": "equal"}]))
    assert {candidate.methods[0].name for candidate in close} == {
        "decoys", "mondrian", "hilbert", "three-phase", "incognito", "local-suppression",
    }  # fmt: skip
    alike = compare(table(), policy(require=[nr.models.KAnonymity(k=3)], method="mondrian", shade="plain"))
    assert {"anatomy", "rating", "decoys", "sweep"}.isdisjoint(candidate.methods[0].name for candidate in alike)
    assert all(candidate.worst_share == 0 for candidate in alike), "there is no secret"
    assert all(candidate.smallest_class >= 3 for candidate in alike)


def test_only_those_that_are_named():
    some = compare(table(), policy(), among=["mondrian", "anatomy"])
    assert {candidate.title for candidate in some} == {"mondrian", "mondrian strict=false", "anatomy"}


def test_a_method_that_does_not_exist_is_refused():
    with pytest.raises(nr.errors.QueryError, match="no method 'mondrain' to compare") as caught:
        compare(table(), policy(), among=["mondrian", "mondrain"])
    assert "anatomy, decoys, hilbert" in caught.value.hint


def test_methods_that_cannot_serve_at_all_are_refused():
    alike = policy(require=[nr.models.KAnonymity(k=3)], method="mondrian", shade="plain")
    with pytest.raises(nr.errors.PolicyError, match="no method can serve these requirements"):
        compare(table(), alike, among=["anatomy"])


def test_suppression_is_the_policys_unless_another_is_given():
    rules = policy({"name": "mondrian", "suppression": 0.1})
    titles = {candidate.title for candidate in compare(table(), rules, among=["mondrian"])}
    assert titles == {"mondrian suppression=0.1", "mondrian suppression=0.1 strict=false"}
    titles = {candidate.title for candidate in compare(table(), rules, among=["mondrian"], suppression=0.0)}
    assert titles == {"mondrian", "mondrian strict=false"}
    (dropping,) = compare(table(), policy(), among=["incognito"], suppression=0.2)
    assert 0 <= dropping.suppressed <= 0.2 * N
    assert dropping.records + dropping.suppressed == N
    assert tomllib.loads(dropping.snippet) == {"method": {"name": "incognito", "suppression": 0.2}}


def test_failures_say_why_and_come_last():
    some = compare(table(), policy(require=[nr.models.FrequencyLDiversity(on="shade", l=4)]))
    assert [candidate.holds for candidate in some] == sorted((c.holds for c in some), reverse=True)
    failed = [candidate for candidate in some if not candidate.holds]
    assert failed
    for candidate in failed:
        assert candidate.figures().keys() == {"method", "holds", "seconds", "failure"}
        assert "l" in candidate.failure
        assert candidate.losses is None
    assert {candidate.methods[0].name for candidate in some if candidate.holds} <= {"sweep"}, "only it blurs secrets"


def test_a_candidate_that_the_check_refutes_is_a_failure(monkeypatch):
    real = module.judge_draft

    def doubting(*arguments: Any, **options: Any) -> list[Any]:
        from dataclasses import replace

        return [replace(verdict, holds=False) for verdict in real(*arguments, **options)]

    monkeypatch.setattr(module, "judge_draft", doubting)
    some = compare(table(), policy(), among=["mondrian"])
    assert {candidate.failure for candidate in some} == {"frequency-l-diversity on shade does not hold."}


def test_a_candidate_whose_margins_would_be_refused_is_a_failure():
    """As `anonymize` refuses it: a margin needs columns whose values are listed."""
    asked = policy().model_copy(update={"margins": (Margin(of=("town",), epsilon=1.0),)})
    some = compare(table(), asked, among=["mondrian", "decoys"])
    failure = {candidate.title: candidate.failure for candidate in some}
    assert not failure["decoys"]
    assert "not listed" in failure["mondrian"]
    with pytest.raises(nr.errors.PolicyError, match="not listed"):
        nr.anonymize(table(), asked.with_method(nr.methods.Mondrian()))


def test_a_candidate_of_people_with_more_rows_than_declared_is_a_failure():
    some = table().append_column("patient", pa.array([f"p{i // 3}" for i in range(N)]))
    asked = policy(patient="identifier").model_copy(update={"people": PeopleOptions(key="patient", most_rows=2)})
    (found,) = compare(some, asked, among=["decoys"])
    assert "more rows" in found.failure
    with pytest.raises(nr.errors.DataError, match="more rows"):
        nr.anonymize(some, asked)


def test_nothing_is_written_and_the_table_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = table()
    compare(before, policy(), among=["mondrian"])
    assert before.equals(table())
    assert list(tmp_path.iterdir()) == []


def test_missing_records_are_dropped_for_every_candidate():
    town = [None if i % 10 == 0 else cell for i, cell in enumerate(table()["town"].to_pylist())]
    gaps = table().set_column(2, "town", pa.array(town))
    drop = {"role": "quasi-identifier", "hierarchy": {"prefix": [3, 2]}, "missing": "drop"}
    some = compare(gaps, policy(town=drop), among=["mondrian", "anatomy", "decoys"])
    assert {candidate.records for candidate in some} == {N - N // 10}


def test_a_column_can_be_learned_from_each_release():
    (candidate,) = compare(table(), policy(), among=["incognito"], classify="shade")
    assert candidate.classification is not None
    assert 0 <= candidate.classification["accuracy_released"] <= 1
    assert candidate.classification["rules_preserved"] <= candidate.classification["rules_original"]
    for name in ("who", "nobody"):
        with pytest.raises(nr.errors.QueryError, match=f"no quasi-identifier or sensitive column '{name}'"):
            compare(table(), policy(), among=["incognito"], classify=name)


# ---------------------------------------------------------------- auto


def tried(notes: Any) -> dict[str, float]:
    """The ranking that the note tells."""
    head, _, ranked = notes[0].partition(": ")
    assert head.startswith("auto chose the method with the least ")
    pairs = [item.rpartition(" ") for item in ranked.split(", ")]
    losses = {title: float(loss) for title, _, loss in pairs}
    assert list(losses.values()) == sorted(losses.values())
    return losses


@pytest.mark.parametrize("objective", ["queries", "utility", "ncp"])
def test_auto_tries_all_that_generalise_and_takes_the_least_loss(objective):
    outcome = run(table(), policy({"name": "auto", "objective": objective}))
    losses = tried(outcome.facts.notes)
    assert losses.keys() == GENERALISING - UNBOUNDED
    assert f"least {objective} loss" in outcome.facts.notes[0]
    assert all(column.nodes is not None or column.is_exact for column in outcome.release.statements)
    if objective == "ncp":
        assert outcome.facts.losses["ncp_loss"] == pytest.approx(min(losses.values()), rel=1e-3)
    if objective == "utility":
        assert 1 - outcome.facts.losses["utility_score"] == pytest.approx(min(losses.values()), rel=1e-3, abs=1e-4)


def test_auto_tries_what_it_is_told():
    notes = run(table(), policy({"name": "auto", "among": ["incognito", "mondrian"]})).facts.notes
    assert tried(notes).keys() == {"incognito", "mondrian", "mondrian strict=false"}
    outcome = run(table(), policy({"name": "auto", "among": ["anatomy", "rating"]}))
    assert tried(outcome.facts.notes).keys() == {"anatomy", "rating"}
    assert outcome.release.column("shade").is_class


def test_auto_passes_its_suppression_on():
    outcome = run(table(), policy({"name": "auto", "among": ["incognito"], "suppression": 0.2}))
    assert tried(outcome.facts.notes).keys() == {"incognito suppression=0.2"}
    assert outcome.facts.suppressed <= 0.2 * N


def test_auto_knows_its_candidates():
    with pytest.raises(nr.errors.PolicyError, match=r"method\.among: no method 'decoys' to try"):
        policy({"name": "auto", "among": ["decoys"]})
    says = "no method that generalises or groups can serve this policy"
    with pytest.raises(nr.errors.PolicyError, match=says) as caught:
        policy({"name": "auto"}, age="sensitive-quasi-identifier", require=[
            nr.models.FrequencyLDiversity(on=["age", "shade"], l=2)])  # fmt: skip
    assert 1 < len(caught.value.problems) <= 4
    assert Auto(among=("rating",)).problems(policy().attributes and {}, []) != []


def test_auto_leaves_out_what_fails_and_says_so_if_all_fail():
    many = nr.models.FrequencyLDiversity(on="shade", l=4)
    some = nr.models.FrequencyLDiversity(on="shade", l=3)
    assert tried(run(table(), policy("auto", require=[some])).facts.notes).keys() <= GENERALISING - UNBOUNDED
    with pytest.raises(nr.errors.RequirementNotMet, match="no method meets the requirements: mondrian: ") as caught:
        run(table(), policy({"name": "auto", "among": ["mondrian"]}, require=[many]))
    assert "permit suppression" in caught.value.hint


def test_titles_tell_candidates_apart():
    titles = [method.title for method in all_candidates(0.05)]
    assert len(set(titles)) == len(titles)
    assert all("suppression=0.05" in title for title in titles if title != "local-suppression")


def test_every_design_of_sets_that_lie_apart_is_tried() -> None:
    frame = pa.table({"town": (["Ulm"] * 8 + ["Bonn"] * 8) * 13, "pay": [*range(8)] * 26})
    asked = {"model": "semantic-diversity", "on": "pay", "l": 3, "d": 2}
    columns = {"town": "quasi-identifier", "pay": {"role": "sensitive", "distance": "ordinal"}}
    found = compare(frame, nr.Policy(attributes=columns, require=[asked]))
    designs = {"flat", "balanced", "simple", "duplicate-processing", "uniform-sets"}
    assert {one.title for one in found} == {"decoys", *(f"decoys design={kind}" for kind in designs)}
    refused = {one.title: one.failure for one in found if not one.holds}
    assert "decoys design=flat" not in refused
    assert "at most 0.3333 is permitted" in refused["decoys design=simple"]
    assert 'design = "balanced"' in next(one.snippet for one in found if one.title.endswith("balanced"))


def test_closeness_is_also_tried_with_the_p_of_the_paper() -> None:
    frame = pa.table({"job": ["cook", "clerk", "miner", "nurse"] * 50, "pay": [*range(5)] * 40})
    asked = {"model": "t-closeness", "on": ["job", "pay"], "t": 0.2, "distance": "equal"}
    both = "sensitive-quasi-identifier"
    found = compare(frame, nr.Policy(attributes={"job": both, "pay": both}, require=[asked]))
    assert {one.title for one in found if one.holds} == {"decoys", "decoys prior=data"}
    assert all(0 < one.query_loss < 2 for one in found if one.holds)
