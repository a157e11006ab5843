"""The requirement `mechanism`: which rule is replayed, which verdicts it settles, and what a refusal advises."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.errors import RequirementNotMet
from noren.methods.mondrian import Mondrian
from noren.models.verdict import Verdict
from noren.workflow import settling as module
from noren.workflow.anonymize import run
from noren.workflow.mechanism import INSTEAD, _rule, settings_of, used_methods

ROLES = {"age": "quasi-identifier", "ill": "sensitive", "job": "plain"}
DIVERSE = nr.models.FrequencyLDiversity(on="ill", l=2)
PEOPLE = pl.DataFrame(
    {
        "age": [30] * 6 + [40] * 2,
        "ill": ["flu"] * 4 + ["cold", "gout"] + ["cold", "gout"],
        "job": ["cook", "clerk"] * 4,
    }
)
"""Two of the six who are 30 must be moved, and only those with flu can be."""


def rules(method: Any, *more: Any, **roles: str) -> nr.Policy:
    return nr.Policy(
        attributes=ROLES | roles, require=[DIVERSE, *more], method=method, dependence={"most": 1.0}, mechanism="ignored"
    )


def test_a_method_that_the_policy_names_is_replayed_as_it_is_set() -> None:
    policy = rules({"name": "mondrian", "exchange": False})
    assert settings_of(policy, "mondrian")["exchange"] is False
    assert settings_of(policy, "hilbert") == {}
    assert settings_of(None, "mondrian") == {}
    assert settings_of(rules({"name": "auto", "objective": "ncp"}), "auto") == {}, "it chooses, another makes classes"


def test_only_methods_of_classes_are_replayed_with_what_they_came_to() -> None:
    methods = [{"name": "mondrian"}, {"name": "decoys", "on": ["job"]}]
    drawn = nr.models.FrequencyLDiversity(on="job", l=2)
    ((name, settings),) = used_methods(rules(methods, drawn, job="sensitive"), {"class_size": 7})
    assert (name, settings["class_size"]) == ("mondrian", 7)


def test_the_first_method_that_is_known_is_replayed() -> None:
    known = {"exchange": True}
    assert _rule([("of another version", {}), ("mondrian", known)]).says == Mondrian().mechanism().says
    for methods in ([], [("of another version", known)]):
        with pytest.raises(RequirementNotMet, match="cannot be replayed"):
            _rule(methods)


def test_the_original_settles_the_mechanism_and_nothing_else() -> None:
    asked = nr.models.Mechanism(on="ill", most=0.9)
    found = {
        (v.model, v.column): v for v in run(PEOPLE, rules({"name": "mondrian", "blind": False}, asked)).facts.verdicts
    }
    assert {key: verdict.basis for key, verdict in found.items()} == {
        ("frequency-l-diversity", "ill"): "the release alone",
        ("mechanism", "ill"): "the original",
    }
    assert 1 / 3 < found["mechanism", "ill"].achieved <= 0.5, "four of eight have flu, and all are one class"


def test_a_rule_without_a_bound_never_meets_the_requirement() -> None:
    with pytest.raises(RequirementNotMet, match=r"mechanism on 'ill': required 0\.99, achieved 1"):
        run(PEOPLE, rules("three-phase", nr.models.Mechanism(on="ill", most=0.99)))


def test_a_mechanism_that_tells_too_much_is_refused_with_methods_that_do_not() -> None:
    with pytest.raises(RequirementNotMet, match="mechanism on 'ill'") as caught:
        run(PEOPLE, rules("three-phase", nr.models.Mechanism(on="ill", most=0.6)))
    assert caught.value.hint == INSTEAD


def test_another_requirement_that_fails_is_not_mended_by_another_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """The advice to take another method is given only where the mechanism alone stands in the way."""
    failing = Verdict("left-out", "ill", 1.0, 0.0, False, "the release alone", 8, 1, "")
    monkeypatch.setattr(module, "left_out", lambda draft: [failing])
    with pytest.raises(RequirementNotMet, match="left-out on 'ill'") as caught:
        run(PEOPLE, rules("three-phase", nr.models.Mechanism(on="ill", most=0.6)))
    assert caught.value.hint is None
